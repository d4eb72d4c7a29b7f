// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

// The copies that a split makes have what was deleted since, until the split ends: erasure
// waits for that.
func TestEraseWaitsForASplit(t *testing.T) {
	alone(t)
	w := newWorld(t)
	c := w.container("c", "-1", 1)
	for _, pk := range []string{"a", "b", "c", "d"} {
		w.put("c", pk, "1", "")
	}
	_, err := w.write(store.Delete, "c", "a", "1", "")
	w.must(err)

	held := &splitRun{id: partitionID{c.RID, c.Ranges[0].ID}, done: make(chan struct{})}
	w.e.mu.Lock()
	w.e.mu.splits[c.RID] = held
	w.e.mu.Unlock()
	erased := make(chan error, 1)
	go func() {
		_, err := w.e.EraseNow(context.Background(), c)
		erased <- err
	}()
	select {
	case err := <-erased:
		t.Fatalf("erased during the split: %v", err)
	case <-time.After(200 * time.Millisecond): // an erasure of so little takes a tenth of that
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.e.EraseNow(ctx, c); err == nil {
		t.Error("an erasure whose client has gone goes on")
	}
	close(held.done)
	w.must(<-erased)
	if w.split("0"); len(w.named("c").Ranges) != 2 {
		t.Errorf("the container has %d partitions", len(w.named("c").Ranges))
	}
	_, err = w.e.EraseNow(context.Background(), nil)
	w.must(err)
}
