// SPDX-License-Identifier: MIT

//go:build unix

package mayfly

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Whatever the umask, only their owner has access to files and directories: to new ones,
// and to those that an older version has left open.
func TestFilesArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	root := t.TempDir()
	dir := filepath.Join(root, "a", "data")
	s := serveTest(t, Options{Dir: dir})
	s.makeContainer(t)
	s.must(t, 201, "POST", items, `{"id":"1","pk":"a"}`, pk("a"))
	checkPrivate(t, filepath.Join(root, "a"))
	s.stop(t)
	checkPrivate(t, filepath.Join(root, "a"))

	for _, d := range []string{dir, filepath.Join(dir, "db")} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	serveTest(t, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}).stop(t)
	checkPrivate(t, filepath.Join(root, "a"))
	if n := strings.Count(log.String(), "closed the data's directory to other users"); n != 2 {
		t.Errorf("two directories were closed, and the log has %d:\n%s", n, &log)
	}
}

// checkPrivate checks the modes of everything below dir.
func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		files++
		return nil
	})
	if err != nil || files < 8 {
		t.Errorf("%d files: %v", files, err)
	}
}

// A directory that also holds other files stays as it is.
func TestSharedDirectoryStaysOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	serveTest(t, Options{Dir: dir}).stop(t)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory is %v, %v", info.Mode(), err)
	}
	checkPrivate(t, filepath.Join(dir, "db"))
}
