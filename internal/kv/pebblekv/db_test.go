// SPDX-License-Identifier: MIT

package pebblekv

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// smallTables makes a store flush and compact after a few batches.
func smallTables(p *pebble.Options) {
	p.MemTableSize = 32 << 10
	p.TargetFileSizes[0] = 8 << 10
	p.LBaseMaxBytes = 32 << 10
	for i := range p.Levels {
		p.Levels[i].BlockSize = 1 << 10
	}
}

func mustOpen(t testing.TB, o Options) *DB {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet()
	}
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// everyOther reports about half of all keys as walked.
func everyOther(key []byte) bool { return len(key) > 0 && key[len(key)-1]%2 == 0 }

func TestConformance(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (*DB, error){
		"memory": func(*testing.T) (*DB, error) { return OpenMemory(Options{Logger: quiet()}) },
		"disk": func(t *testing.T) (*DB, error) {
			return Open(Options{Dir: t.TempDir(), Logger: quiet()})
		},
		"without sync": func(*testing.T) (*DB, error) {
			return Open(Options{Dir: "d", FS: vfs.NewMem(), NoSync: true, Logger: quiet()})
		},
		"small tables": func(*testing.T) (*DB, error) {
			return Open(Options{Dir: "d", FS: vfs.NewMem(), Logger: quiet(), tune: smallTables})
		},
		"small tables with keys that are walked": func(*testing.T) (*DB, error) {
			return Open(Options{Dir: "d", FS: vfs.NewMem(), Logger: quiet(), tune: smallTables, IsIndexKey: everyOther})
		},
		"small tables without log": func(*testing.T) (*DB, error) {
			return OpenMemory(Options{Logger: quiet(), tune: smallTables})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the store on disk mostly waits for the disk
			kvtest.Run(t, func(t *testing.T) kv.DB {
				db, err := open(t)
				if err != nil {
					t.Fatal(err)
				}
				return db
			})
		})
	}
}
