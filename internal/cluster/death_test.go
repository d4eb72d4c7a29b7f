// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// preferredKey returns a key whose preferred node is the named one.
func preferredKey(t *testing.T, n *Node, name string) []byte {
	t.Helper()
	for i := range 1000 {
		key := fmt.Appendf(nil, "p%do", i)
		if who, _, err := n.Preferred(key); err == nil && who == name {
			return key
		}
	}
	t.Fatalf("node %s is preferred for nothing", name)
	return nil
}

// owned has the world's node own a key that it is preferred for.
func (w *world) owned(name string) ([]byte, Lease) {
	w.t.Helper()
	time.Sleep(time.Second) // two beats: all nodes know one another
	key := preferredKey(w.t, w.nodes[name], name)
	lease, err := w.nodes[name].Own(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return key, lease
}

// successor claims a key at whichever of the nodes the others name, and returns it.
func (w *world) successor(key []byte, at string) (string, Lease) {
	w.t.Helper()
	for range 5 {
		lease, err := w.nodes[at].Own(w.t.Context(), key)
		var other *NotOwnerError
		switch {
		case err == nil:
			return at, lease
		case errors.As(err, &other):
			at = other.Node
		default:
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("the nodes pass the partition round")
	return "", Lease{}
}

// TestStoppedNode stops the process of an owner. It is killed after three seconds, its
// partition goes to another node under a higher epoch, and when it wakes up it can neither
// write nor answer, until it has registered anew.
func TestStoppedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		dropped := 0
		o := w.options("a")
		o.Dropped = func() { dropped++ }
		a := w.joinWith(o)
		b := w.join("b")
		w.join("c")
		key, lease := w.owned("a")
		told, err := a.Moment(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		w.links["a"].hold()
		stopped := time.Now()
		asked := make(chan error, 1)
		go func() {
			_, err := a.Moment(context.Background())
			asked <- err
		}()
		var other *NotOwnerError
		for {
			if _, err := b.Own(t.Context(), key); !errors.As(err, &other) || other.Node != "a" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		// Its last beat was up to half a second before.
		if d := time.Since(stopped); d < 2500*time.Millisecond || d > 4*time.Second {
			t.Errorf("a stopped node was killed after %v", d)
		}
		name, next := w.successor(key, "b")
		if next.Epoch <= lease.Epoch || next.OpenedMs < told.NowMs {
			t.Errorf("node %s claimed %+v after %+v at %d", name, next, lease, told.NowMs)
		}
		if err := w.write(key, lease); !errors.Is(err, kv.ErrConflict) {
			t.Errorf("the stopped owner's commit: %v", err)
		}
		if err := w.write(key, next); err != nil {
			t.Error(err)
		}

		w.links["a"].heal()
		if err := <-asked; !errors.Is(err, ErrNotAlive) {
			t.Errorf("the stopped owner answered: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := a.Ready(); err != nil || dropped != 1 {
			t.Errorf("after it woke up: %v, dropped %d times", err, dropped)
		}
		m, err := a.Moment(t.Context())
		if err != nil || m.NowMs < told.NowMs {
			t.Errorf("its time %+v, %v", m, err)
		}
	})
}

// TestGoneProcess: a node whose address refuses connections is killed after a second, and
// its successor opens at or above every moment that it took.
func TestGoneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.join("a")
		o := w.options("b")
		o.Refuses = func(_ context.Context, address string) bool { return address == "http://a" }
		b := w.joinWith(o)
		key, _ := w.owned("a")
		told, err := w.nodes["a"].Moment(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.links["a"].hold()
		start := time.Now()
		for {
			lease, err := b.Own(t.Context(), key)
			if err == nil {
				if lease.OpenedMs < told.NowMs {
					t.Errorf("opened at %d, before the moment %d", lease.OpenedMs, told.NowMs)
				}
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		// A second of silence, a beat, and what is left of the reserve of the floor.
		if d := time.Since(start); d < time.Second || d > 2500*time.Millisecond {
			t.Errorf("taken over after %v", d)
		}
	})
}

// TestClaimWaitsForTheFloor: a claimer waits until the time has passed the floor of the
// killed node. If that is too far ahead, it waits for two seconds, then opens there.
func TestClaimWaitsForTheFloor(t *testing.T) {
	for _, test := range []struct{ reserve, wait time.Duration }{
		{2 * time.Second, 0},                       // passed while it was dying
		{6 * time.Second, 1500 * time.Millisecond}, // less a beat
		{20 * time.Second, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			o := w.options("a")
			o.Reserve = test.reserve
			a := w.joinWith(o)
			b := w.join("b")
			key, _ := w.owned("a")
			told, err := a.Moment(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.links["a"].hold()
			time.Sleep(4 * time.Second)
			dead := b.Members()[0]
			if dead.State != "dead" || dead.FloorMs < told.NowMs {
				t.Fatalf("member %+v", dead)
			}
			start := time.Now()
			lease, err := b.Own(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d < test.wait-500*time.Millisecond || d > test.wait+500*time.Millisecond {
				t.Errorf("reserve %v: waited %v", test.reserve, d)
			}
			if lease.OpenedMs < dead.FloorMs {
				t.Errorf("reserve %v: opened at %d, the floor is %d", test.reserve, lease.OpenedMs, dead.FloorMs)
			}
		})
	}
}

// TestSilentEngine: while the engine cannot be reached, no node is killed for it.
func TestSilentEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"a", "b", "c"} {
			w.join(name)
		}
		time.Sleep(time.Second)
		for _, l := range w.links {
			l.set(func(l *link) { l.cut = true })
		}
		time.Sleep(10 * time.Second)
		if _, err := w.nodes["a"].Moment(t.Context()); !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("a moment without the engine: %v", err)
		}
		w.links["b"].heal()
		time.Sleep(1200 * time.Millisecond)
		w.links["a"].heal()
		w.links["c"].heal()
		time.Sleep(5 * time.Second)
		for _, m := range w.nodes["a"].Members() {
			if m.State != "serving" {
				t.Errorf("%+v", m)
			}
		}
	})
}

// TestDrainedNodeDies: a node that drains and is declared dead drains on when it has registered
// anew. One that is started anew serves.
func TestDrainedNodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.join("a"), w.join("b")
		if err := a.DrainNode(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		before := b.Incarnation("b")
		if err := a.Kill(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if after := b.Incarnation("b"); b.Ready() != nil || after == before || !b.Draining() {
			t.Errorf("b is ready: %v, was %x and is %x, and drains: %v", b.Ready(), before, after, b.Draining())
		}
		if again := w.join("b"); again.Draining() {
			t.Error("a node that is started anew drains")
		}
	})
}

// TestSameName: a process that starts under the name of another takes its place, and the
// other stays down instead of taking it back.
func TestSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.join("a")
		key, _ := w.owned("a")
		second := w.join("a")
		if _, err := first.Moment(t.Context()); !errors.Is(err, ErrReplaced) {
			t.Errorf("the first: %v", err)
		}
		time.Sleep(5 * time.Second)
		if err := first.Ready(); !errors.Is(err, ErrReplaced) {
			t.Errorf("the first, later: %v", err)
		}
		if lease, err := second.Own(t.Context(), key); err != nil || lease.Epoch != 2 {
			t.Errorf("the second: %+v, %v", lease, err)
		}
	})
}

// TestFrozenClockStandsStillOverDeaths replaces the owner of a partition while the clock is
// frozen. No time is above that, so the partition opens at it, although no node has beaten
// since the owner started.
func TestFrozenClockStandsStillOverDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"a", "b"} {
			o := w.options(name)
			o.TestClock = true
			w.joinWith(o)
		}
		key, _ := w.owned("a")
		if err := w.nodes["b"].Clock().Freeze(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // all nodes beat, and save a floor that is exact
		frozen, err := w.nodes["b"].Moment(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first of them dies before its first beat
			w.links["a"].hold()
			o := w.options("a")
			o.TestClock = true
			lease, err := w.joinWith(o).Own(t.Context(), key)
			if err != nil || lease.OpenedMs != frozen.NowMs {
				t.Errorf("the partition opens at %d, %v, though the clock is frozen at %d", lease.OpenedMs, err, frozen.NowMs)
			}
		}
	})
}
