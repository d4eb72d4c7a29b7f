// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// A lazy commit is visible at once. A crash may undo it, as a whole and only together with all
// commits after it: it is durable once a later commit is.
func TestLazyCommits(t *testing.T) {
	disk := vfs.NewCrashableMem()
	db := mustOpen(t, Options{Dir: "data", FS: disk})
	defer mustClose(t, db)
	commit := func(n int, lazy bool) {
		t.Helper()
		var b kv.Batch
		b.Set(fmt.Appendf(nil, "%d a", n), nil)
		b.Set(fmt.Appendf(nil, "%d b", n), nil)
		if lazy {
			b.Lazy()
		}
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	commit(0, false)
	commit(1, true)
	if got := rowsOf(t, db); got != 4 {
		t.Errorf("a lazy commit shows %d rows, want 4", got)
	}
	crashed := func() int {
		t.Helper()
		db := mustOpen(t, Options{Dir: "data", FS: disk.CrashClone(vfs.CrashCloneCfg{})})
		defer mustClose(t, db)
		return rowsOf(t, db)
	}
	if got := crashed(); got != 2 {
		t.Errorf("after a crash that keeps nothing unsynced there are %d rows, want those of the durable commit", got)
	}
	commit(2, false)
	if got := crashed(); got != 6 {
		t.Errorf("after a durable commit and a crash there are %d rows, want all 6", got)
	}
}

func rowsOf(t *testing.T, db *DB) int {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	for _, err := range s.Scan(nil, nil, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
