// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

var trackedPaths = []index.Path{{index.Property("a")}, {index.Property("o"), index.Property("b")}, {index.Property("id")}, {index.Property("none")}}

// haveAll determines naively whether every item, expired or not, has a scalar at a path.
func (f *fixture) haveAll(path index.Path) bool {
	f.t.Helper()
	v, err := f.p.acquire()
	f.must(err)
	defer f.p.release(v)
	_, upper := f.p.prefix.space(itemSpace)
	for e, err := range v.snap.Scan(f.p.prefix.appendItemKey(nil, 0), upper, 0) {
		f.must(err)
		_, body, err := parseItem(e.Key, e.Value)
		f.must(err)
		names := make(value.Path, len(path))
		for i, s := range path {
			names[i] = s.String()
		}
		o, err := value.ParseObject(body)
		f.must(err)
		raw, _ := o.At(names)
		if _, scalar := value.FromJSON(raw); !scalar {
			return false
		}
	}
	return true
}

// AllHave is exact after any history, restart and change of the policy.
func TestAllHaveAgreesWithTheItems(t *testing.T) {
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("-1"), nowMs: startMs})
			defer func() { f.p.Close() }()
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				f.trackedStep(t)
				path := rapid.SampledFrom(trackedPaths).Draw(t, "path")
				r := f.reader()
				got, err := r.AllHave(path)
				indexed := r.Indexed()
				r.Close()
				f.must(err)
				// While an index is rebuilt, false may mean that it is not known.
				if want := f.haveAll(path); got != want && (indexed || got) {
					t.Fatalf("all have %v: got %v, want %v", path, got, want)
				}
			}
		})
	}
}

func (f *fixture) trackedStep(t *rapid.T) {
	id := fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "id"))
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		_, err := f.write(Write{Op: Delete, Key: f.key("k", id)})
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	case 1:
		f.advance(time.Second)
	case 2:
		_, err := f.p.Purge(t.Context(), Purge{MaxItems: 2})
		f.must(err)
	case 3:
		f.reopen()
	case 4:
		f.p.ReleaseIdle()
		f.p.ReleaseIdle()
	case 5:
		path := rapid.SampledFrom([]string{"/z/*", "/y/*"}).Draw(t, "excluded")
		f.reconfigure(fmt.Sprintf(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"indexingPolicy":{"excludedPaths":[{"path":%q}]}}`, path))
		for more := rapid.Bool().Draw(t, "rebuild"); more; {
			var err error
			_, more, err = f.p.Reindex(t.Context(), 2)
			f.must(err)
		}
	default:
		properties := rapid.SampledFrom([]string{
			`"a":1,"o":{"b":2}`, `"a":null,"o":{"b":"x"}`, `"a":"","o":{"b":false}`, `"a":1`, `"a":[1],"o":{"b":1}`, `"a":{},"o":{"b":[]}`, `"o":[{"b":1}]`, `"a":1,"o":{"b":2},"ttl":1`,
		}).Draw(t, "properties")
		f.put(id, properties)
	}
}

// Paths beyond the limit are not counted: the answer is false.
func TestAllHaveIsBounded(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	properties := ""
	for i := range maxTracked + 5 {
		properties += fmt.Sprintf(`"p%d":1,`, i)
	}
	f.put("1", properties+`"z":1`)
	known := 0
	for range 2 {
		r := f.reader()
		known = 0
		for i := range maxTracked + 5 {
			all, err := r.AllHave(index.Path{index.Property(fmt.Sprint("p", i))})
			f.must(err)
			if all {
				known++
			}
		}
		r.Close()
	}
	if known != maxTracked {
		t.Errorf("got %d paths, want %d", known, maxTracked)
	}
}

// While others write, the answer may be false, but true is never wrong.
func TestAllHaveIsNeverWronglySo(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.put("0", `"a":1`)
	path := index.Path{index.Property("a")}
	var wait sync.WaitGroup
	for w := range 4 {
		wait.Go(func() {
			for i := range 100 {
				properties := `"a":1`
				if i%10 == 5 {
					properties = `"b":1`
				}
				_, err := f.write(f.item(Upsert, fmt.Sprint(w), properties))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	asked := 0
	for range 300 {
		r := f.reader()
		all, err := r.AllHave(path)
		f.must(err)
		if all {
			asked++
			n, err := r.countRows(path)
			f.must(err)
			if n != r.Items() {
				t.Errorf("%d of %d items have it, and all are said to", n, r.Items())
			}
		}
		r.Close()
	}
	wait.Wait()
	r := f.reader()
	defer r.Close()
	if all, err := r.AllHave(path); err != nil || !all {
		t.Errorf("at the end: got %v, %v, want that all have it (%d yes before)", all, err, asked)
	}
}

// After a later write, a reader still gets the answer for its own view, whatever that write
// has changed.
func TestAllHaveInOlderViews(t *testing.T) {
	f := newFixture(t, withTTL("10"))
	path := index.Path{index.Property("a")}
	f.put("1", `"a":1`)
	ask := func(r *Reader, when string, want bool) {
		t.Helper()
		if got, err := r.AllHave(path); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", when, got, err, want)
		}
	}
	open := func() *Reader {
		r := f.reader()
		t.Cleanup(r.Close)
		return r
	}
	first := open()
	ask(first, "at first", true)
	f.put("2", `"a":2`)
	ask(first, "after a write", true)
	second := open()
	f.put("3", `"b":3`)
	ask(second, "before an item without it", false) // it is not known any more
	third := open()
	ask(third, "with an item without it", false)
	_, err := f.write(Write{Op: Delete, Key: f.key("k", "3")})
	f.must(err)
	ask(third, "after that is deleted", false)
	fourth := open()
	ask(fourth, "without it", true)
	f.put("4", `"b":4`)
	f.put("5", `"a":5`) // which does not expire
	fifth := open()
	f.advance(9 * time.Second)
	f.put("5", `"a":5`)
	f.advance(time.Second)
	f.check(f.purgeAll() == 3, "not purged")
	ask(fifth, "before a purge, when it lived", false)
	ask(open(), "after a purge", true)
	f.p.ReleaseIdle()
	f.p.ReleaseIdle()
	ask(open(), "after a rest", true)
}

// A reader that asks while another counts waits for the count.
func TestAllHaveIsCountedOnce(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	f.createMany(0, 3000, `"a":1`)
	var wait sync.WaitGroup
	n := f.scanned(func() {
		for range 8 {
			wait.Go(func() {
				r, err := f.p.NewReader(f.clock.Now())
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Close()
				if all, err := r.AllHave(index.Path{index.Property("a")}); err != nil || !all {
					t.Errorf("got %v, %v, want that all have it", all, err)
				}
			})
		}
		wait.Wait()
	})
	if n != 3000 {
		t.Errorf("%d rows were read, want 3000", n)
	}
}

// Readers that wait for a count see writes that came during it.
func TestAllHaveWhileOthersWrite(t *testing.T) {
	for properties, want := range map[string]bool{`"a":2`: true, `"b":2`: false} {
		f := newFixture(t, withTTL("-1"))
		path := index.Path{index.Property("a")}
		for i := range 3 {
			f.put(fmt.Sprint(i), `"a":1`)
		}
		answer := make(chan bool)
		write := func() {
			f.put("new", properties)
			newer := f.reader()
			go func() {
				all, err := newer.AllHave(path)
				newer.Close() // before the answer: the test ends with it
				if err != nil {
					t.Error(err)
				}
				answer <- all
			}()
		}
		f.db.onScan.Store(&write)
		first := f.reader()
		defer first.Close()
		if all, err := first.AllHave(path); err != nil || !all {
			t.Errorf("%s: the counting reader got %v, %v, want yes", properties, all, err)
		}
		if got := <-answer; got != want {
			t.Errorf("%s: the waiting reader got %v, want %v", properties, got, want)
		}
		again := f.reader()
		defer again.Close()
		if all, err := again.AllHave(path); err != nil || all != want {
			t.Errorf("%s: later %v, %v, want %v", properties, all, err, want)
		}
	}
}

// A reader that waits may be stopped.
func TestWaitingForACountMayEnd(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.put("1", `"a":1`)
	path := index.Path{index.Property("a")}
	f.p.mu.tracked = map[string]*trackedPath{string(index.AppendStart(nil, index.Scalars, path)): {done: make(chan struct{})}} // a count that never ends
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := f.reader()
	defer r.Close()
	r.StopWith(Stop{Look: ctx.Err, Done: ctx.Done()})
	if _, err := r.AllHave(path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// When the reader that counts is stopped, one of those that wait counts.
func TestCountIsTakenOver(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	f.createMany(0, stopSteps+1, `"a":1`)
	path := index.Path{index.Property("a")}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan bool)
	off := func() {
		next := f.reader()
		go func() {
			all, err := next.AllHave(path)
			next.Close() // before the answer: the test ends with it
			if err != nil {
				t.Error(err)
			}
			answer <- all
		}()
		cancel()
	}
	f.db.onScan.Store(&off)
	first := f.reader()
	defer first.Close()
	first.StopWith(Stop{Look: ctx.Err, Done: ctx.Done()})
	if _, err := first.AllHave(path); !errors.Is(err, context.Canceled) {
		t.Errorf("the stopped reader got %v", err)
	}
	if !<-answer {
		t.Error("the waiting reader has no answer")
	}
}
