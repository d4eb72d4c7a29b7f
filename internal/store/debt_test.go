// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
)

// inBubble runs a test of a partition in a bubble, in which waiting takes no time.
func inBubble(t *testing.T, test func(f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("10"), nowMs: startMs})
		test(f)
		f.p.Close()
		f.check(f.failures.Load() == 0 && f.db.open.Load() == 0, "%d failures, %d snapshots left open", f.failures.Load(), f.db.open.Load())
		f.checkClean()
	})
}

// expire writes n items and lets them expire.
func (f *fixture) expire(n int) {
	f.t.Helper()
	for i := range n {
		f.put(fmt.Sprint("old ", i), "")
	}
	f.advance(10 * time.Second)
}

// took returns how long n writes take.
func (f *fixture) took(n int) time.Duration {
	f.t.Helper()
	began := time.Now()
	for i := range n {
		f.put(fmt.Sprint("new ", i), "")
	}
	return time.Since(began)
}

// owed returns what is owed now.
func (f *fixture) owed() float64 {
	f.p.debt.mu.Lock()
	defer f.p.debt.mu.Unlock()
	return f.p.debt.mu.owed
}

func (f *fixture) levy(itemsPerWrite float64, step int) {
	f.p.debt.mu.Lock()
	f.p.debt.mu.step = float64(step)
	f.p.debt.mu.Unlock()
	f.p.SetLevy(Levy{ItemsPerWrite: itemsPerWrite})
}

// payer purges what is owed until there is no levy. Its result is what it purged.
func (f *fixture) payer() (stop func() Purged) {
	var total Purged
	var err error
	var end sync.WaitGroup
	end.Go(func() {
		for owed := f.p.Owed(context.Background()); owed > 0 && err == nil; owed = f.p.Owed(context.Background()) {
			var done Purged
			done, err = f.p.Purge(context.Background(), Purge{MaxItems: owed, Cause: ru.Debt})
			total.Amount, total.Units = total.Plus(done.Amount), total.Units+done.Units
			if done.Items == 0 {
				f.p.SetLevy(Levy{}) // writes must not wait for what does not come
			}
		}
	})
	return func() Purged {
		f.p.SetLevy(Levy{})
		end.Wait()
		f.must(err)
		return total
	}
}

// Under a levy of two, writes carry the purge of two items each, in steps, and the backlog
// shrinks by that.
func TestWritesPay(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.expire(100)
		f.levy(2, 8)
		stop := f.payer()
		f.took(20)
		synctest.Wait()
		owed := f.owed()
		paid := stop()
		if owed >= 8 || float64(paid.Items)+owed != 40 || f.ledger.Total(ru.Debt).Items != paid.Items {
			t.Errorf("for 20 items written, %d were purged and %v are owed; the ledger has %+v", paid.Items, owed, f.ledger.Total(ru.Debt))
		}
		if b, err := f.p.Backlog(); err != nil || b.Expired.Items != 100-paid.Items || b.Live.Items != 20 || b.Purged.Items != paid.Items {
			t.Errorf("the backlog is %+v, %v", b, err)
		}
		if f.owed() != 0 {
			t.Errorf("without a levy, %v items are owed", f.owed())
		}
	})
}

// What another purge removes is paid, too: then writes wait for nothing.
func TestBackgroundPays(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.expire(50)
		f.levy(2, 8)
		f.took(5)
		if _, err := f.p.Purge(context.Background(), Purge{MaxItems: 7, Cause: ru.Sweep}); err != nil || f.owed() != 3 {
			t.Errorf("after a purge of 7, %v of 10 items are owed, %v", f.owed(), err)
		}
		if took := f.took(6); took > 0 {
			t.Errorf("writes that owe less than two steps take %v", took)
		}
	})
}

// Writes that owe too much wait for a purge, though not for ever; a levy that ends, or a
// partition that is closed, ends the wait.
func TestWritesWait(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.expire(5)
		f.levy(2, 8)
		if took := f.took(8); took > 0 { // they owe 16 then
			t.Errorf("the first writes take %v", took)
		}
		f.took(1) // an earlier end of a levy may end its wait
		for range 3 {
			if took := f.took(1); took != payWait {
				t.Errorf("with nothing paid, a write takes %v, want %v", took, payWait)
			}
		}
		if most := 2.0 * mostSteps * 8; f.owed() > most {
			t.Errorf("%v items are owed, more than %v", f.owed(), most)
		}
		f.p.SetLevy(Levy{})
		if took := f.took(10); took > 0 {
			t.Errorf("without a levy, writes take %v", took)
		}
		f.levy(2, 1)
		f.took(1)
		late := f.start(f.item(Upsert, "late", ""))
		began := time.Now()
		f.p.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("to close takes %v", took)
		}
		<-late
		f.open()
	})
}

// Owed waits until a step is owed, and ends with its context.
func TestOwed(t *testing.T) {
	inBubble(t, func(f *fixture) {
		if got := f.p.Owed(context.Background()); got != 0 {
			t.Errorf("without a levy %d items are owed", got)
		}
		f.levy(1.5, 6)
		got := make(chan int)
		go func() { got <- f.p.Owed(context.Background()) }()
		f.took(3)
		synctest.Wait()
		select {
		case n := <-got:
			t.Fatalf("after three writes %d items are owed", n)
		default:
		}
		f.took(1)
		if n := <-got; n != 6 {
			t.Errorf("after four writes %d items are owed, want 6", n)
		}
		f.levy(1, 100)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if n := f.p.Owed(ctx); n != 0 {
			t.Errorf("after its context has ended, %d items are owed", n)
		}
	})
}

// For an engine that is behind, each group of writes waits.
func TestWritesAreDelayed(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.p.SetLevy(Levy{ItemsPerWrite: 0.1, Delay: 3 * time.Millisecond})
		if took := f.took(5); took != 15*time.Millisecond {
			t.Errorf("five groups with a delay of 3 ms take %v", took)
		}
	})
}
