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
