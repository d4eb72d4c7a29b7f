// SPDX-License-Identifier: MIT

package pebblekv

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// fillTable opens a store in dir and writes a table of a thousand walked keys and a hundred
// others. It returns the store, and the bytes of the table's filter.
func fillTable(t *testing.T, fs vfs.FS, dir string, walked func([]byte) bool) (*DB, uint64) {
	t.Helper()
	db := mustOpen(t, Options{Dir: dir, FS: fs, IsIndexKey: walked})
	var b kv.Batch
	for i := range 1000 {
		b.Set(fmt.Appendf(nil, "walked%04d", i), []byte("row"))
	}
	for i := range 100 {
		b.Set(fmt.Appendf(nil, "asked%04d", i), []byte("row"))
	}
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := db.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	levels, err := db.pebble.SSTables(pebble.WithProperties())
	if err != nil {
		t.Fatal(err)
	}
	filter := uint64(0)
	for _, tables := range levels {
		for _, table := range tables {
			filter += table.Properties.FilterSize
		}
	}
	return db, filter
}

// expectAll checks that Get finds every key of fillTable, and no other.
func expectAll(t *testing.T, db *DB) {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for kind, n := range map[string]int{"walked": 1000, "asked": 100} {
		for i := range n + 100 {
			_, found, err := s.Get(fmt.Appendf(nil, "%s%04d", kind, i))
			if err != nil || found != (i < n) {
				t.Fatalf("Get of %s key %d of %d = %t, %v", kind, i, n, found, err)
			}
		}
	}
}

// expectFiltered checks that filters excluded the keys that expectAll did not find.
func expectFiltered(t *testing.T, db *DB) {
	t.Helper()
	if hits := db.pebble.Metrics().Filter.Hits; hits < 90 {
		t.Errorf("of 100 keys that do not exist, filters have told %d", hits)
	}
}

// Get finds walked keys, although they are not in filters; other keys are. Data that was
// written without an IsIndexKey function can be read with one, and the other way round.
func TestFiltersWithoutWalkedKeys(t *testing.T) {
	isWalked := func(key []byte) bool { return key[0] == 'w' }
	fs := vfs.NewMem()
	all, fullBytes := fillTable(t, fs, "all", nil)
	expectAll(t, all)
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	all = mustOpen(t, Options{Dir: "all", FS: fs, IsIndexKey: isWalked})
	expectAll(t, all)
	expectFiltered(t, all)
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}

	db, bytes := fillTable(t, fs, "some", isWalked)
	expectAll(t, db)
	if bytes == 0 || bytes*5 > fullBytes {
		t.Errorf("a filter of 100 keys is of %d bytes, one of 1100 of %d", bytes, fullBytes)
	}
	expectFiltered(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, Options{Dir: "some", FS: fs})
	expectAll(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
