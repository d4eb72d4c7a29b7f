// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// debtLimit is what expired items may take in these tests, about 400 of them.
const debtLimit = 96 << 10

// inDebt runs a test in which purge in the background is as good as stopped by an engine
// that has stalled, and 800 items have expired.
func inDebt(t *testing.T, o Options, test func(w *world)) {
	t.Helper()
	o.PurgeDebt = debtLimit
	if o.Health == nil {
		o.Health = func() kv.Health { return kv.Health{Stalled: true} }
	}
	alive(t, o, func(w *world) {
		w.container("c", "5", 1)
		w.pausePurge(nil, true)
		w.writes(800, 0)
		pass(6 * time.Second)
		if s := w.status("c"); s.Expired.Items != 800 || s.Purge.Debt.Bytes == 0 || s.Purge.Debt.ItemsPerWrite != 0 {
			t.Fatalf("paused: %+v", s)
		}
		test(w)
	})
}

// writes writes n items, so many a second; 0 for as many as there can be.
func (w *world) writes(n, perSecond int) {
	w.t.Helper()
	for i := range n {
		w.put("c", "k", fmt.Sprint(w.e.clock.Now(), "-", i), "")
		if perSecond > 0 {
			pass(time.Second / time.Duration(perSecond))
		}
	}
}

// While purge does not keep up, writes carry purges with them, until expired items take no
// more space than they may. No write is charged for it.
func TestWritesCarryPurges(t *testing.T) {
	var log lines
	inDebt(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		before := w.put("c", "k", "before", "")
		w.pausePurge(nil, false)
		w.writes(400, 200)
		s := w.status("c")
		if s.Purge.Debt.PaidItems < 256 || s.Purge.Debt.PaidItems > 800 || s.Purge.PurgedItems < s.Purge.Debt.PaidItems {
			t.Errorf("400 writes carried %d purges of %d", s.Purge.Debt.PaidItems, s.Purge.PurgedItems)
		}
		if limit := max(int64(debtLimit), s.Live.Bytes); s.Expired.Bytes > limit || s.Purge.Debt.Limit != limit*3/4 {
			t.Errorf("expired items take %d bytes, the limit is %d, and the status says %+v", s.Expired.Bytes, limit, s.Purge.Debt)
		}
		if got := w.e.SystemWork(ru.Debt); got.Items != s.Purge.Debt.PaidItems {
			t.Errorf("the ledger says %+v, the status %+v", got, s.Purge.Debt)
		}
		after := w.put("c", "k", "after.", "")
		if after.Charge != before.Charge {
			t.Errorf("a write that carries purges is charged %v, another %v", after.Charge, before.Charge)
		}
		pass(time.Minute)
		if s := w.status("c"); s.Purge.Debt.ItemsPerWrite != 0 {
			t.Errorf("without debt: %+v", s.Purge.Debt)
		}
		for _, want := range []string{"writes carry purges with them", "writes carry no purges"} {
			if n := strings.Count(log.String(), want); n != 1 {
				t.Errorf("the log says %d times %q", n, want)
			}
		}
	})
}

// While purge may not run, nobody pays, and no write waits.
func TestNobodyPaysForPausedPurge(t *testing.T) {
	for name, forbid := range map[string]func(w *world){
		"paused":          func(w *world) { w.pausePurge(w.find("c"), true) },
		"paused globally": func(w *world) { w.pausePurge(nil, true) },
		"limited": func(w *world) {
			_, err := w.e.LimitPurge(context.Background(), w.find("c"), 1)
			w.must(err)
		},
		"no room": func(w *world) { w.e.space.Store(int32(spaceNone)) },
	} {
		t.Run(name, func(t *testing.T) {
			inDebt(t, Options{}, func(w *world) {
				w.pausePurge(nil, false)
				w.writes(10, 10)
				if s := w.status("c"); s.Purge.Debt.ItemsPerWrite != 2 {
					t.Fatalf("before: %+v", s.Purge.Debt)
				}
				forbid(w)
				pass(time.Second)
				paid := w.status("c").Purge.Debt
				if name == "no room" {
					pass(5 * time.Second) // nothing can be written
				} else {
					began := w.e.meters.elapsed()
					w.writes(300, 0)
					if took := w.e.meters.elapsed() - began; took > 0 {
						t.Errorf("300 writes take %v", took)
					}
				}
				if s := w.status("c"); s.Purge.Debt.PaidItems != paid.PaidItems || s.Purge.Debt.ItemsPerWrite != 0 {
					t.Errorf("writes paid: %+v, before %+v", s.Purge.Debt, paid)
				}
				w.e.space.Store(int32(spaceEnough))
			})
		})
	}
}

// Above sixteen runs in the first level of the engine, each group of writes that pays waits:
// 2 ms for each run more, and 20 ms at most. Without debt none does.
func TestRunsOfTheEngineDelayWrites(t *testing.T) {
	var runs atomic.Int64
	inDebt(t, Options{Health: func() kv.Health { return kv.Health{Stalled: true, ReadAmp: int(runs.Load())} }}, func(w *world) {
		const groups = 5
		for _, c := range []struct {
			runs   int64
			paused bool
			want   time.Duration
		}{
			{16, false, 0}, {17, false, 2 * time.Millisecond}, {20, false, 8 * time.Millisecond}, {26, false, 20 * time.Millisecond},
			{40, false, 20 * time.Millisecond}, {40, true, 0}, {3, false, 0},
		} {
			runs.Store(c.runs)
			w.pausePurge(nil, c.paused)
			pass(400 * time.Millisecond) // until purge has looked at the engine and the backlog
			if s := w.status("c"); (s.Purge.Debt.ItemsPerWrite > 0) == c.paused {
				t.Fatalf("with %d runs, paused %v: %+v", c.runs, c.paused, s.Purge.Debt)
			}
			began := w.e.meters.elapsed()
			w.writes(groups, 0)
			if took := w.e.meters.elapsed() - began; took != groups*c.want {
				t.Errorf("with %d runs, paused %v: %d groups of writes take %v, want %v", c.runs, c.paused, groups, took, groups*c.want)
			}
		}
	})
}

// With enforced throughput, writes carry purges when nothing is left over.
func TestDebtUnderEnforcedThroughput(t *testing.T) {
	alive(t, Options{Throughput: Enforce, PurgeDebt: debtLimit}, func(w *world) {
		w.container("c", "5", 1)
		w.pausePurge(nil, true)
		w.writes(800, 40)
		pass(6 * time.Second)
		w.pausePurge(nil, false)
		ended := w.e.meters.elapsed() + 20*time.Second
		for n := 0; w.e.meters.elapsed() < ended; n++ { // all that the throughput allows
			_, err := w.write(store.Upsert, "c", "k", fmt.Sprint("busy ", n), "")
			var throttled *ThrottledError
			if errors.As(err, &throttled) {
				pass(throttled.RetryAfter)
			} else {
				w.must(err)
			}
		}
		s := w.status("c")
		if s.Purge.Debt.PaidItems == 0 || s.Expired.Bytes > debtLimit {
			t.Errorf("after 20 s: %+v", s)
		}
	})
}

// Items that expired only because of a jump of the wall clock are no debt.
func TestDoubtIsNoDebt(t *testing.T) {
	var jump atomic.Int64
	alive(t, Options{PurgeDebt: debtLimit, ClockSource: func() clock.Reading {
		ms := time.Now().UnixMilli()
		return clock.Reading{WallMs: ms + jump.Load(), MonoMs: ms}
	}}, func(w *world) {
		w.container("c", "600", 1)
		w.writes(800, 0)
		jump.Store(time.Hour.Milliseconds())
		pass(2 * time.Second)
		if s := w.status("c"); s.Expired.Items != 800 || s.Purge.Debt.Bytes != 0 || s.Purge.HeldBack != purge.Clock {
			t.Errorf("in doubt: %+v", s)
		}
		w.writes(300, 150)
		if s := w.status("c"); s.Purge.Debt.ItemsPerWrite != 0 || s.Purge.PurgedItems != 0 {
			t.Errorf("in doubt: %+v", s.Purge)
		}
		w.must(w.e.clock.Confirm())
		pass(5 * time.Second)
		if s := w.status("c"); s.Expired.Items != 0 || s.Live.Items != 300 {
			t.Errorf("confirmed: %+v", s)
		}
	})
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Items in their container's grace are no debt: purge may not take them, and no write pays.
func TestGraceIsNoDebt(t *testing.T) {
	alive(t, Options{PurgeDebt: debtLimit}, func(w *world) {
		w.database("d")
		_, err := w.e.CreateContainer(context.Background(), "d", []byte(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":5,"undeleteGraceSeconds":60}`), partitions(1))
		w.must(err)
		w.writes(800, 0)
		pass(6 * time.Second)
		if s := w.status("c"); s.Expired.Items != 800 || s.Purge.Debt.Bytes != 0 || s.Purge.LagSeconds != 0 {
			t.Errorf("in the grace: %+v", s)
		}
		w.pausePurge(nil, true)
		pass(time.Minute)
		if s := w.status("c"); s.Expired.Items != 800 || s.Purge.Debt.Bytes == 0 || s.Purge.LagSeconds == 0 {
			t.Errorf("after the grace: %+v", s)
		}
	})
}
