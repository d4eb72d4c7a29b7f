// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file tests opening: what is refused, what is recovered, and how the process ends
// when the engine cannot go on.

func commitRow(t testing.TB, db *DB, key, value string) {
	t.Helper()
	var b kv.Batch
	b.Set([]byte(key), []byte(value))
	if err := db.Commit(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
}

func wantRow(t testing.TB, db *DB, key, want string) {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, found, err := s.Get([]byte(key)); err != nil || !found || string(got) != want {
		t.Errorf("get %q: got %q, %v, %v, want %q", key, got, found, err, want)
	}
}

func mustClose(t testing.TB, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func TestReopen(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		o := Options{Dir: filepath.Join(t.TempDir(), "made", "on", "the", "way"), NoSync: noSync}
		for i := range 3 {
			db := mustOpen(t, o)
			for j := range i {
				wantRow(t, db, fmt.Sprint("row", j), "v")
			}
			commitRow(t, db, fmt.Sprint("row", i), "v")
			if got := db.pebble.FormatMajorVersion(); got != formatVersion {
				t.Errorf("format %d, want %d", got, formatVersion)
			}
			mustClose(t, db)
		}
	}
}

// The directory itself must survive a crash, not only its files.
func TestNewDirectorySurvivesCrash(t *testing.T) {
	disk := vfs.NewCrashableMem()
	db := mustOpen(t, Options{Dir: "a/b/c", FS: disk})
	commitRow(t, db, "k", "v")
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, db)
	db = mustOpen(t, Options{Dir: "a/b/c", FS: crashed})
	wantRow(t, db, "k", "v")
	mustClose(t, db)
}

// A directory that contains only foreign files can be used like an empty one.
func TestOpenBesideForeignFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, Options{Dir: dir})
	defer mustClose(t, db)
	if got := db.pebble.FormatMajorVersion(); got != formatVersion {
		t.Errorf("format %d, want %d", got, formatVersion)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(Options{}); !errors.Is(err, errNoDir) {
		t.Errorf("without a directory: %v", err)
	}
	regular := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(regular, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: regular, Logger: quiet()}); err == nil || errors.Is(err, kv.ErrInUse) {
		t.Errorf("a file as directory: %v", err)
	}
	for value, want := range map[string]error{"999": kv.ErrNewerFormat, "x": kv.ErrCorrupt} {
		disk := vfs.NewMem()
		mustClose(t, mustOpen(t, Options{Dir: "d", FS: disk}))
		createFile(t, disk, "d/marker.format-version.000099."+value)
		if _, err := Open(Options{Dir: "d", FS: disk, Logger: quiet()}); !errors.Is(err, want) {
			t.Errorf("format %q: got %v, want %v", value, err, want)
		}
	}
}

func createFile(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInUse(t *testing.T) {
	parent := t.TempDir()
	dir, link := filepath.Join(parent, "data"), filepath.Join(parent, "link")
	db := mustOpen(t, Options{Dir: dir})
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, link, dir + "/../data/"} {
		if _, err := Open(Options{Dir: name, Logger: quiet()}); !errors.Is(err, kv.ErrInUse) {
			t.Errorf("%s: got %v, want %v", name, err, kv.ErrInUse)
		}
	}
	commitRow(t, db, "k", "v")
	mustClose(t, db)

	child := startChild(t, "hold", dir)
	if line, err := bufio.NewReader(child.stdout).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if _, err := Open(Options{Dir: dir, Logger: quiet()}); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("held by another process: got %v, want %v", err, kv.ErrInUse)
	}
	if err := child.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatalf("the other process: %v", err)
	}
	db = mustOpen(t, Options{Dir: dir})
	wantRow(t, db, "k", "v")
	mustClose(t, db)
}

const damagedRows = 200

// damagedStore makes a store with tables and a log, as a crash leaves it, for a test to
// damage.
func damagedStore(t *testing.T) *vfs.MemFS {
	disk := vfs.NewCrashableMem()
	db := mustOpen(t, Options{Dir: "d", FS: disk})
	for i := range damagedRows {
		commitRow(t, db, fmt.Sprintf("k%03d", i), strings.Repeat(fmt.Sprint(i), 500))
	}
	if err := db.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range damagedRows {
		commitRow(t, db, fmt.Sprint("in the log ", i), strings.Repeat("v", 500))
	}
	defer mustClose(t, db)
	return disk.CrashClone(vfs.CrashCloneCfg{})
}

// A clean stop leaves nothing to replay.
func TestCloseEmptiesTheLog(t *testing.T) {
	disk := vfs.NewMem()
	db := mustOpen(t, Options{Dir: "d", FS: disk})
	commitRow(t, db, "k", strings.Repeat("v", 10_000))
	mustClose(t, db)
	info, err := disk.Stat(findFile(t, disk, ".log"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= 10_000 {
		t.Errorf("the log has %d bytes after a clean stop", info.Size())
	}
	db = mustOpen(t, Options{Dir: "d", FS: disk})
	defer mustClose(t, db)
	wantRow(t, db, "k", strings.Repeat("v", 10_000))
}

// Opening a store with a short log never waits for a compaction, however often it is opened;
// compactions that are due run later.
func TestOpenWaitsForNoCompaction(t *testing.T) {
	disk := vfs.NewCrashableMem()
	for i := range 8 {
		db := mustOpen(t, Options{Dir: "d", FS: disk})
		if n := db.pebble.Metrics().Compact.Count; n != 0 {
			t.Errorf("opening for the %d. time took %d compactions", i+1, n)
		}
		commitRow(t, db, "k", fmt.Sprint(i))
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, db)
		disk = crashed
	}
}

// Damage to a table is found when the table is read, and never gives a wrong result.
func TestDamagedTable(t *testing.T) {
	disk := damagedStore(t)
	damage(t, disk, ".sst", func(data []byte) { data[len(data)/3] ^= 1 })
	db := mustOpen(t, Options{Dir: "d", FS: disk})
	defer mustClose(t, db)
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last error
	for _, err := range s.Scan(nil, nil, kv.Forward) {
		last = err
	}
	if !errors.Is(last, kv.ErrCorrupt) {
		t.Errorf("a scan over a damaged table ends with %v, want %v", last, kv.ErrCorrupt)
	}
	bad := 0
	for i := range damagedRows {
		value, found, err := s.Get(fmt.Appendf(nil, "k%03d", i))
		switch {
		case errors.Is(err, kv.ErrCorrupt):
			bad++
		case err != nil || !found || string(value) != strings.Repeat(fmt.Sprint(i), 500):
			t.Errorf("get %d: %.20q, %v, %v", i, value, found, err)
		}
	}
	if bad == 0 || bad == damagedRows {
		t.Errorf("%d of %d keys are reported corrupt, want some", bad, damagedRows)
	}
}

func TestOpenFindsDamage(t *testing.T) {
	for name, harm := range map[string]func(disk *vfs.MemFS){
		"manifest":         func(disk *vfs.MemFS) { damage(t, disk, "MANIFEST", func(data []byte) { data[10] ^= 1 }) },
		"log":              func(disk *vfs.MemFS) { damage(t, disk, ".log", func(data []byte) { data[2000] ^= 1 }) },
		"missing table":    func(disk *vfs.MemFS) { removeFile(t, disk, ".sst") },
		"missing manifest": func(disk *vfs.MemFS) { removeFile(t, disk, "MANIFEST") },
	} {
		disk := damagedStore(t)
		harm(disk)
		within(t, func() {
			if _, err := Open(Options{Dir: "d", FS: disk, Logger: quiet()}); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("%s: Open returns %v, want %v", name, err, kv.ErrCorrupt)
			}
		})
	}
}

func damage(t *testing.T, disk *vfs.MemFS, kind string, change func(data []byte)) {
	t.Helper()
	data, err := disk.UnsafeGetFileDataBuffer(findFile(t, disk, kind))
	if err != nil {
		t.Fatal(err)
	}
	change(data)
}

func removeFile(t *testing.T, disk *vfs.MemFS, kind string) {
	t.Helper()
	if err := disk.Remove(findFile(t, disk, kind)); err != nil {
		t.Fatal(err)
	}
}

// findFile returns the newest file whose name begins or ends with kind.
func findFile(t *testing.T, disk *vfs.MemFS, kind string) string {
	t.Helper()
	names, err := disk.List("d")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if strings.HasPrefix(name, kind) || strings.HasSuffix(name, kind) {
			return "d/" + name
		}
	}
	t.Fatalf("no %s in %v", kind, names)
	return ""
}

func TestFreeBytes(t *testing.T) {
	db := mustOpen(t, Options{Dir: t.TempDir()})
	defer mustClose(t, db)
	if n, err := db.FreeBytes(); err != nil || n == 0 || n > 1<<60 {
		t.Errorf("disk: %d bytes free, %v", n, err)
	}
	memory, err := OpenMemory(Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, memory)
	if n, err := memory.FreeBytes(); err != nil || n != math.MaxUint64 {
		t.Errorf("memory: %d bytes free, %v", n, err)
	}
}

// Close reports a snapshot that is still open, which is a bug, and using it later does not
// crash.
func TestCloseWithOpenSnapshot(t *testing.T) {
	db, err := OpenMemory(Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	commitRow(t, db, "k", "v")
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err == nil {
		t.Errorf("Close says nothing about an open snapshot")
	}
	if _, _, err := s.Get([]byte("k")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("get: got %v, want %v", err, kv.ErrClosed)
	}
	s.Close()
}

// A failure that the engine cannot survive ends the process, with a message.
func TestFatal(t *testing.T) {
	for _, what := range []string{"manifest", "directory"} {
		child := startChild(t, what, "")
		err := child.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitCode {
			t.Errorf("%s: the process ends with %v, want exit code %d", what, err, exitCode)
		}
		if got := child.stderr.String(); strings.Count(got, "\n") != 1 ||
			!strings.Contains(got, "ends the process") || !strings.Contains(got, syscall.EIO.Error()) {
			t.Errorf("%s: the process says %q, want one line with the cause", what, got)
		}
	}
}

const childVariable = "PEBBLEKV_TEST_CHILD"

type childProcess struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
	stderr strings.Builder // complete after Wait
}

// startChild runs TestChild in a process of its own.
func startChild(t *testing.T, what, dir string) *childProcess {
	t.Helper()
	c := &childProcess{Cmd: exec.Command(os.Args[0], "-test.run=^TestChild$")}
	c.Env = append(os.Environ(), childVariable+"="+what, childVariable+"_DIR="+dir)
	c.Stderr = &c.stderr
	var err error
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.stdout, err = c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// TestChild runs in the processes that startChild starts.
func TestChild(t *testing.T) {
	what := os.Getenv(childVariable)
	switch what {
	case "":
		return
	case "hold":
		db := mustOpen(t, Options{Dir: os.Getenv(childVariable + "_DIR")})
		fmt.Println("open")
		if _, err := io.ReadAll(os.Stdin); err != nil {
			t.Fatal(err)
		}
		mustClose(t, db)
		return
	}
	var on atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		isManifest := strings.Contains(op.Path, "MANIFEST") && op.Kind == errorfs.OpFileSync
		isDirectory := op.Path == "d" && op.Kind == errorfs.OpFileSync
		if on.Load() && (what == "manifest" && isManifest || what == "directory" && isDirectory) {
			return syscall.EIO
		}
		return nil
	}))
	db := mustOpen(t, Options{Dir: "d", FS: fs, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	commitRow(t, db, "k", "v")
	on.Store(true)
	_ = db.pebble.Flush()
	t.Fatal("the process goes on")
}
