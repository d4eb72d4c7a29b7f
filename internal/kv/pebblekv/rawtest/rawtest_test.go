// SPDX-License-Identifier: MIT

package rawtest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

// In a table that is compressed well, no text is found as it is, and every text in its parts.
func TestFindInCompressedTables(t *testing.T) {
	dir := t.TempDir()
	o := &pebble.Options{DisableWAL: true, FormatMajorVersion: pebble.FormatNewest, DisableAutomaticCompactions: true}
	o.Levels[0].BlockSize, o.Levels[0].IndexBlockSize = 1<<10, 1<<10
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.UniformDBCompressionSettings(block.ZstdCompression) })
	db, err := pebble.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%c%c ", 'a'+random.IntN(9), 'a'+random.IntN(9))
		}
		return b.String()
	}
	set := func(key, value string) {
		t.Helper()
		if err := db.Set([]byte(key), []byte(value), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2000 {
		set(fmt.Sprintf("%s key %d", strings.Repeat("k", 30), i), words(20))
		set(fmt.Sprintf("common-prefix-of-%04d", i), "")
	}
	set("k row", words(50)+"in-a-value"+words(50))
	set("m", "in-an-old-version")
	snapshot := db.NewSnapshot() // keeps it
	set("m", words(100))
	// The only rows of a block each, so that their keys are boundaries.
	for i := range 40 {
		set(fmt.Sprintf("n-in-boundaries-%02d", i), strings.Repeat(words(10), 40))
	}
	if err := db.DeleteRange([]byte("x-in-a-range-delete"), []byte("y-at-its-end"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"in-a-value":            {": row", ": block of rows"},
		"in-an-old-version":     {": row"},
		"common-prefix-of-1234": {": row"}, // no block has it as a whole
		"-in-boundaries":        {": row", ": block of the index"},
		"x-in-a-range-delete":   {": block of range deletes"},
		"y-at-its-end":          {": block of range deletes"},
		"in-no-file":            nil,
	} {
		found, err := Find(dir, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		places := strings.Join(found, "\n")
		for _, part := range want {
			if !strings.Contains(places, ".sst"+part) {
				t.Errorf("%s: found in %q, want %q too", text, places, part)
			}
		}
		if want == nil && places != "" {
			t.Errorf("%s: found in %q", text, places)
		}
		if text == "in-a-value" && strings.Contains(places, ".sst at ") {
			t.Errorf("%s: found in %q: the table is not compressed", text, places)
		}
	}
}
