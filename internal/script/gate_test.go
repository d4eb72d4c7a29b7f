// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const testWait = time.Second

func testGate(slots, queue int) *gate {
	return newGate(GateOptions{Slots: slots, Queue: queue, Wait: testWait})
}

func TestGateBoundsWhoIsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, all = 3, 50
		g := testGate(slots, all)
		var inside, most atomic.Int32
		var ended sync.WaitGroup
		for range all {
			ended.Go(func() {
				if err := g.enter(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(testWait / all) // on the test's clock, which jumps when all goroutines wait
				inside.Add(-1)
				g.leave()
			})
		}
		ended.Wait()
		if most.Load() != slots {
			t.Errorf("%d were inside at once, want %d", most.Load(), slots)
		}
	})
}

func TestGateRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(1, 2)
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		left, late := make(chan error, 1), make(chan error, 1)
		go func() { left <- g.enter(ctx) }()
		go func() { late <- g.enter(t.Context()) }()
		synctest.Wait()
		if err := g.enter(t.Context()); !errors.Is(err, ErrBusy) || time.Since(began) != 0 {
			t.Errorf("with a full queue: %v after %v", err, time.Since(began))
		}
		if inside, waiting := g.load(); inside != 1 || waiting != 2 {
			t.Errorf("%d are inside and %d wait, want 1 and 2", inside, waiting)
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("of a client that went away: %v after %v", err, time.Since(began))
		}
		if err := <-late; !errors.Is(err, ErrBusy) || time.Since(began) != testWait {
			t.Errorf("without a slot: %v after %v", err, time.Since(began))
		}
		if err := g.enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("of a client that is gone: %v", err)
		}
		g.leave()
		if err := g.enter(t.Context()); err != nil {
			t.Errorf("when all have left: %v", err)
		}
	})
}

// A goroutine that comes while others wait does not overtake them.
func TestGateKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 10
		g := testGate(1, all)
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		entered := make(chan int, all)
		for i := range all {
			go func() {
				if err := g.enter(t.Context()); err != nil {
					t.Error(err)
				}
				entered <- i
				g.leave()
			}()
			synctest.Wait()
		}
		g.leave()
		var order []int
		for range all {
			order = append(order, <-entered)
		}
		if !slices.IsSorted(order) {
			t.Errorf("they entered as %v", order)
		}
	})
}
