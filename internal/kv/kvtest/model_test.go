// SPDX-License-Identifier: MIT

package kvtest_test

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func TestModel(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.DB { return kvtest.NewModel() })
}

func TestModelHandles(t *testing.T) {
	kvtest.RunShared(t, func(*testing.T) func() kv.DB {
		first := kvtest.NewModel()
		return func() kv.DB { return first.Another() }
	})
}

// A test may set the engine's time, back too.
func TestModelTime(t *testing.T) {
	db := kvtest.NewModel()
	for _, want := range []int64{5, 3} {
		db.SetTime(func() int64 { return want })
		if _, ms, err := db.Another().Look(t.Context()); ms != want || err != nil {
			t.Errorf("got the time %d, %v, want %d", ms, err, want)
		}
	}
}

// A caller that keeps an Entry beyond its step must notice with the Model.
func TestModelSpoilsEntries(t *testing.T) {
	db := kvtest.NewModel()
	var b kv.Batch
	b.Set([]byte("a"), []byte("1"))
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var kept kv.Entry
	for e, err := range s.Scan(nil, nil, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		kept = e
	}
	if string(kept.Key) == "a" || string(kept.Value) == "1" {
		t.Errorf("an entry is still %q=%q after its step", kept.Key, kept.Value)
	}
}
