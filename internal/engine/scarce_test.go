// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv/pgkv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
	"github.com/mayflydb/mayfly/internal/store"
)

// A node serves more partitions than it has snapshots: those that nothing reads give theirs
// up. Twelve partitions share two snapshots here, and are written and read all at once.
func TestMorePartitionsThanSnapshots(t *testing.T) {
	const partitionsOpen, rounds = 12, 3
	db, err := pgkv.Open(t.Context(), pgkv.Options{URL: pgtest.New(t), Connections: pgkv.ReservedConnections + 2, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{DB: db, TestClock: true, Cluster: &cluster.Options{Name: "a", Address: "http://a"}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, e: e}
	defer func() {
		w.must(e.Close())
		w.must(db.Close())
	}()
	c := w.container("c", "null", partitionsOpen)
	for round := range rounds {
		var all sync.WaitGroup
		for _, pk := range spread(c) {
			all.Go(func() {
				if _, err := w.write(store.Create, "c", pk, fmt.Sprint(round), ""); err != nil {
					t.Errorf("round %d, key %s: %v", round, pk, err)
				}
				if _, err := w.read("c", pk, fmt.Sprint(round)); err != nil {
					t.Errorf("round %d, key %s: %v", round, pk, err)
				}
				// The list of a partition reads items behind the cache.
				if _, err := w.e.ListItems(context.Background(), &Request{Target: Target{Database: "d", Container: "c"}, MaxItems: 100}); err != nil {
					t.Errorf("round %d, list: %v", round, err)
				}
			})
		}
		all.Wait()
	}
}
