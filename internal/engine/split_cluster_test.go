// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// A node may be asked about a partition that a split has just ended: for the asking node it is
// there, and its owner may still have it open.
func TestAskedAfterASplit(t *testing.T) {
	ns := newNodes(t)
	ns.begin("a")
	ns.container("c", "null", 1)
	if _, err := ns.put("a", "c", "key", "item", ""); err != nil {
		t.Fatal(err)
	}
	e := ns.all["a"]
	c, err := e.Container("d", "c")
	if err != nil {
		t.Fatal(err)
	}
	const ended = 7
	e.mu.Lock()
	e.mu.open[partitionID{c.RID, ended}] = e.mu.open[partitionID{c.RID, 0}]
	e.mu.Unlock()
	defer e.take(partitionID{c.RID, ended})
	args, err := encode(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{opSplit.name, opUsage.name} {
		q, err := encode(question{of, c.RID, []int{ended}, args})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := e.Asked(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var replies []reply
		if err := decode(raw, &replies); err != nil || len(replies) != 1 {
			t.Fatalf("%s: %d replies, %v", of, len(replies), err)
		}
		if err := replies[0].err(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v, want that the partition is closed", of, err)
		}
	}
}

// A partition of a cluster is split twice, by a node that need not own it, while clients of all
// nodes write and read, and partitions move. Nothing that was acknowledged is lost, and every node
// finds all of it.
func TestSplitInACluster(t *testing.T) {
	ns := newNodes(t)
	ns.settled = 100 * time.Millisecond // partitions move
	ns.begin("a", "b", "c")
	ns.container("c", "null", 1)
	names := []string{"a", "b", "c"}
	var stop atomic.Bool
	var writing sync.WaitGroup
	var written [3]int
	for n, at := range names {
		writing.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if _, err := ns.put(at, "c", fmt.Sprint("key ", i%60), fmt.Sprint(at, i), ""); err != nil {
					t.Errorf("write %d at %s: %v", i, at, err)
					return
				}
				written[n] = i + 1
				if _, err := ns.read(names[i%3], "c", fmt.Sprint("key ", i%60), fmt.Sprint(at, i)); err != nil {
					t.Errorf("read %d of %s at %s: %v", i, at, names[i%3], err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	// split splits a range, again if its partition moves in between, and returns a new range.
	split := func(at, id string) string {
		t.Helper()
		e := ns.all[at]
		for tries := 0; ; tries++ {
			if err := e.Moment(t.Context()); err != nil {
				t.Fatal(err)
			}
			c, err := e.Container("d", "c")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = e.SplitRange(t.Context(), c, id); err != nil && tries > 50 {
				t.Fatal(err)
			}
			for err == nil {
				last, found, failed := e.SplitStatus(t.Context(), c)
				if failed != nil || !found {
					t.Fatalf("the split is %+v, %v", last, failed)
				}
				if last.State == SplitDone {
					return last.Ranges[1]
				}
				if last.State == SplitFailed {
					t.Logf("the split failed: %s", last.Error)
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	time.Sleep(200 * time.Millisecond)
	id := split("b", "0")
	split("c", id)
	stop.Store(true)
	writing.Wait()
	for n, at := range names {
		if written[n] == 0 {
			t.Errorf("nothing was written at %s", at)
		}
		for i := range written[n] {
			if _, err := ns.read(names[i%3], "c", fmt.Sprint("key ", i%60), fmt.Sprint(at, i)); err != nil {
				t.Fatalf("%s%d, at %s: %v", at, i, names[i%3], err)
			}
		}
	}
	c, err := ns.all["a"].Container("d", "c")
	if err != nil || len(c.Ranges) != 3 {
		t.Fatalf("there are %d ranges, %v", len(c.Ranges), err)
	}
}

// Why a range cannot be split is told alike by each node, whichever owns the range.
func TestSplitRefusedInACluster(t *testing.T) {
	ns := startNodes(t, "a", "b")
	ns.meet()
	ns.container("narrow", "null", 1)
	was := ns.container("c", "null", 1)
	var narrow *catalog.Container
	for n := 0; ; n++ { // the first range, until it has no more than one key
		narrow = ns.find("a", "narrow")
		id := narrow.Ranges[0].ID
		_, err := one(t.Context(), ns.all["a"], narrow, id, opSplit, 0)
		var refused *InvalidError
		if errors.As(err, &refused) {
			break
		}
		if err != nil || n > 40 {
			t.Fatalf("split %d: %v", n, err)
		}
		for ns.find("a", "narrow").PositionOf(id) >= 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for at, e := range ns.all {
		var refused *InvalidError
		if _, err := e.SplitRange(t.Context(), narrow, catalog.RangeID(narrow.Ranges[0].ID)); !errors.As(err, &refused) || !strings.Contains(refused.Message, "too few keys") {
			t.Errorf("at %s: %v, want that there are too few keys", at, err)
		}
	}
	if _, err := ns.all["b"].SplitRange(t.Context(), was, "0"); err != nil {
		t.Fatal(err)
	}
	for now := was; now.PositionOf(0) >= 0; now = ns.find("a", "c") {
		time.Sleep(5 * time.Millisecond)
	}
	refused := func(why string, want error) { // a request that has the container as it was
		t.Helper()
		for at, e := range ns.all {
			if err := e.Moment(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := e.SplitRange(t.Context(), was, "0"); !errors.Is(err, want) {
				t.Errorf("%s, at %s: %v, want: %v", why, at, err, want)
			}
		}
	}
	refused("a range that was split", ErrRangeGone)
	if err := ns.all["a"].DeleteContainer(t.Context(), "d", "c", ""); err != nil {
		t.Fatal(err)
	}
	refused("a container that is gone", ErrOwnerNotFound)
}
