// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	benchGroup     = 6
	benchBodyBytes = 1300
	benchRowBytes  = 40
	benchItems     = 20_000
)

// benchKey spreads the id rows, and keeps the other rows of an item in order.
func benchKey(buf []byte, class byte, n uint64) []byte {
	if class == 'k' {
		n *= 0x9e3779b97f4a7c15
	}
	return binary.BigEndian.AppendUint64(append(buf[:0], 'p', 0, 0, 0, 1, class), n)
}

// addItem adds the rows of one new item: the item, its id row and its feed row.
func addItem(b *kv.Batch, n uint64, body, row []byte) {
	var key [32]byte
	binary.BigEndian.PutUint64(body, n)
	b.Set(benchKey(key[:], 'd', n), body)
	b.Set(benchKey(key[:], 'k', n), row)
	b.Set(benchKey(key[:], 'f', n), row)
}

// BenchmarkCommit commits groups of new items, as a partition does.
func BenchmarkCommit(b *testing.B) {
	for _, mode := range []struct {
		name string
		open func(b *testing.B) (*DB, error)
	}{
		{"disk", func(b *testing.B) (*DB, error) { return Open(Options{Dir: b.TempDir(), Logger: quiet()}) }},
		{"nosync", func(b *testing.B) (*DB, error) {
			return Open(Options{Dir: b.TempDir(), NoSync: true, Logger: quiet()})
		}},
		{"memory", func(*testing.B) (*DB, error) { return OpenMemory(Options{Logger: quiet()}) }},
	} {
		for _, require := range []string{"blind", "require"} {
			b.Run(mode.name+"/"+require, func(b *testing.B) {
				db, err := mode.open(b)
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				benchCommit(b, db, require == "require")
			})
		}
	}
}

func benchCommit(b *testing.B, db *DB, conditional bool) {
	lease := []byte("lease")
	body, row := make([]byte, benchBodyBytes), make([]byte, benchRowBytes)
	var batch kv.Batch
	batch.Set(lease, row)
	if err := db.Commit(context.Background(), &batch); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(benchGroup * (benchBodyBytes + 2*benchRowBytes))
	for n := uint64(0); b.Loop(); n += benchGroup {
		batch.Reset()
		if conditional {
			batch.Require(lease, row)
		}
		for i := range uint64(benchGroup) {
			addItem(&batch, n+i, body, row)
		}
		if err := db.Commit(context.Background(), &batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGet reads id rows that exist and that do not, each time from a snapshot
// that has served a few reads before, and from a fresh one.
func BenchmarkGet(b *testing.B) {
	db := benchStore(b)
	defer db.Close()
	for _, reads := range []int{1, 10} {
		for _, absent := range []uint64{0, benchItems} {
			b.Run(fmt.Sprintf("per_snapshot=%d/absent=%v", reads, absent > 0), func(b *testing.B) {
				b.ReportAllocs()
				var s kv.Snapshot
				var key [32]byte
				for n := 0; b.Loop(); n++ {
					if n%reads == 0 {
						s = benchSnapshot(b, db, s)
					}
					k := uint64(n*7919)%benchItems + absent
					_, found, err := s.Get(benchKey(key[:], 'k', k))
					if err != nil || found == (absent > 0) {
						b.Fatal(found, err)
					}
				}
				s.Close()
			})
		}
	}
}

func BenchmarkScan(b *testing.B) {
	const rows = 100
	db := benchStore(b)
	defer db.Close()
	s := benchSnapshot(b, db, nil)
	defer s.Close()
	b.ReportAllocs()
	var lower, upper [32]byte
	for n := 0; b.Loop(); n++ {
		first := uint64(n*7919) % (benchItems - rows)
		got := 0
		for _, err := range s.Scan(benchKey(lower[:], 'f', first), benchKey(upper[:], 'f', first+rows), kv.Forward) {
			if err != nil {
				b.Fatal(err)
			}
			got++
		}
		if got != rows {
			b.Fatal(got)
		}
	}
}

func benchStore(b *testing.B) *DB {
	db := mustOpen(b, Options{Dir: b.TempDir(), NoSync: true})
	body, row := make([]byte, benchBodyBytes), make([]byte, benchRowBytes)
	var batch kv.Batch
	for n := range uint64(benchItems) {
		batch.Reset()
		addItem(&batch, n, body, row)
		if err := db.Commit(context.Background(), &batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.pebble.Flush(); err != nil {
		b.Fatal(err)
	}
	return db
}

func benchSnapshot(b *testing.B, db *DB, old kv.Snapshot) kv.Snapshot {
	if old != nil {
		old.Close()
	}
	s, err := db.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkOpen makes a store, and opens one with a few commits in its log.
func BenchmarkOpen(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		parent := b.TempDir()
		for n := 0; b.Loop(); n++ {
			db := mustOpen(b, Options{Dir: fmt.Sprintf("%s/%d", parent, n)})
			b.StopTimer()
			mustClose(b, db)
			b.StartTimer()
		}
	})
	b.Run("small", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			b.StopTimer()
			db := mustOpen(b, Options{Dir: dir})
			commitRow(b, db, "k", "v")
			mustClose(b, db)
			b.StartTimer()
			db = mustOpen(b, Options{Dir: dir})
			b.StopTimer()
			mustClose(b, db)
			b.StartTimer()
		}
	})
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			db, err := OpenMemory(Options{Logger: quiet()})
			if err != nil {
				b.Fatal(err)
			}
			mustClose(b, db)
		}
	})
}
