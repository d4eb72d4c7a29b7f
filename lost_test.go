// SPDX-License-Identifier: MIT

package mayfly

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The data of a server that was started and stopped twice loses one file. Open either
// fails and changes none of the others, or finds all items.
func TestServerLosesFile(t *testing.T) {
	dir := t.TempDir()
	const stops = 2
	for i := range stops {
		s := serveTest(t, Options{Dir: dir})
		if i == 0 {
			s.makeContainer(t)
		}
		s.must(t, 201, "POST", items, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i), pk("a"))
		s.stop(t)
	}
	before := tree(t, filepath.Join(dir, "db"))
	refused := 0
	for _, name := range slices.Sorted(maps.Keys(before)) {
		path := filepath.Join(dir, "db", name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		rest := tree(t, filepath.Join(dir, "db"))
		s, err := Open(Options{Dir: dir})
		if err != nil {
			refused++
			if after := tree(t, filepath.Join(dir, "db")); !maps.Equal(rest, after) {
				t.Errorf("without %s: the data is refused, and was changed", name)
			}
			if err := os.WriteFile(path, []byte(before[name]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("without %s: Close = %v", name, err)
		}
		if report := checkClean(t, dir); report.Items != stops {
			t.Errorf("without %s: there are %d items, want %d", name, report.Items, stops)
		}
		if err := os.RemoveAll(filepath.Join(dir, "db")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "db"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range before {
			if err := os.WriteFile(filepath.Join(dir, "db", name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused < 3 { // the marker, the manifest, the tables
		t.Errorf("only %d of %d files are needed", refused, len(before))
	}
}

// tree returns the files in dir with their contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	names, err := fs.Glob(root, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "LOCK" {
			files[name] = string(content)
		}
	}
	return files
}
