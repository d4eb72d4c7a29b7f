// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// touchCharge is the charge of a touch: that of a small write without an index.
const touchCharge ru.Units = 4.95

// sliding makes a container whose reads restart countdowns after half of an item's life.
func (w *world) sliding(ttl string) *catalog.Container {
	w.t.Helper()
	return w.container("c", ttl+`,"slidingTtlPercent":50`, 1)
}

func (w *world) expires(id string) int64 {
	w.t.Helper()
	x, err := w.e.Explain(w.t.Context(), w.find("c"), id, value.PartitionKey{value.String("k")})
	w.must(err)
	return *x.ExpiresAtMs
}

// Many readers of one item that is due have one touch, and one of them pays for it.
func TestManyReadersTouchOnce(t *testing.T) {
	w := newWorld(t)
	w.sliding("10")
	w.put("c", "k", "a", "")
	w.advance(5 * time.Second)
	before, err := w.read("c", "k", "a")
	w.must(err)
	w.advance(5 * time.Second)
	var readers sync.WaitGroup
	var mu sync.Mutex
	var paid ru.Units
	for range 64 {
		readers.Go(func() {
			a, err := w.read("c", "k", "a")
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.ETag != before.ETag || a.ItemLSN != before.ItemLSN || string(a.Body) != string(before.Body) {
				t.Errorf("got %+v, %v, want %+v", a, err, before)
			}
			paid += a.Charge - ru.Read(len(a.Body))
		})
	}
	readers.Wait()
	after, err := w.read("c", "k", "a")
	w.must(err)
	if !near(paid, touchCharge) || after.LSN != before.LSN+2 { // with the touch of the first read
		t.Errorf("%v RU for touches, and lsn %d after %d", paid, after.LSN, before.LSN)
	}
	if at := w.expires("a"); at != startMs+20_000 {
		t.Errorf("it expires at %d, want %d", at, startMs+20_000)
	}
}

// On a disk that is nearly full, reads go on without restarting countdowns.
func TestNoTouchOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	w.sliding("10")
	w.put("c", "k", "a", "")
	w.advance(9 * time.Second)
	for _, full := range []space{spaceLow, spaceNone} {
		w.e.space.Store(int32(full))
		a, err := w.read("c", "k", "a")
		if err != nil || !near(a.Charge, ru.Read(len(a.Body))) || w.expires("a") != startMs+10_000 {
			t.Errorf("a read on a full disk: %v RU, %v, and the item expires at %d", a.Charge, err, w.expires("a"))
		}
	}
	w.e.space.Store(int32(spaceEnough))
	_, err := w.read("c", "k", "a")
	w.must(err)
	if at := w.expires("a"); at != startMs+19_000 {
		t.Errorf("it expires at %d, want %d", at, startMs+19_000)
	}
}

// A touch refuses no read: a read that is admitted restarts the countdown, whatever is left
// over, and what that costs is paid back by later requests.
func TestTouchUnderEnforcedThroughput(t *testing.T) {
	w := newWorld(t)
	s := w.metered(Enforce)
	w.provisioned("c", catalog.Throughput{Manual: 400})
	_, err := w.e.ReplaceContainer(t.Context(), "d", "c", definition("c", `10,"slidingTtlPercent":50`), "")
	w.must(err)
	w.put("c", "k", "a", "")
	w.advance(9 * time.Second)
	var throttled *ThrottledError
	for range 1000 {
		a, err := w.e.ReadItem(&Request{Target: item("c", "k", "a"), SlidingTTL: SlidingOff})
		if errors.As(err, &throttled) {
			break
		}
		w.must(err)
		if a.Charge != 1 {
			t.Fatalf("a read costs %v RU", a.Charge)
		}
	}
	s.advance(throttled.RetryAfter) // just enough for one more read
	a, err := w.read("c", "k", "a")
	if err != nil || !near(a.Charge, 1+touchCharge) || w.expires("a") != startMs+19_000 {
		t.Errorf("a read with no throughput to spare: %v RU, %v, and the item expires at %d", a.Charge, err, w.expires("a"))
	}
	if _, err := w.read("c", "k", "a"); !errors.As(err, &throttled) {
		t.Errorf("the next read: %v, want it throttled", err)
	}
}

// A read of an item that is due while its container is dropped ends as any other read does.
func TestTouchOfADroppedContainer(t *testing.T) {
	w := newWorld(t)
	w.sliding("10")
	w.put("c", "k", "a", "")
	w.advance(9 * time.Second)
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			if _, err := w.read("c", "k", "a"); err != nil && !errors.Is(err, ErrOwnerNotFound) && !errors.Is(err, store.ErrClosed) {
				t.Errorf("read: %v", err)
			}
		})
	}
	w.must(w.e.DeleteContainer(t.Context(), "d", "c", ""))
	readers.Wait()
}
