// SPDX-License-Identifier: MIT

package engine

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// opRead is a read, in addition to the store's writes. opTouch is a read that restarts the
// item's countdown: only that counts here, since it happens after the read.
const (
	opRead  store.Op = 0
	opTouch store.Op = -1
)

// linearInput is a client's request for one item.
type linearInput struct {
	item    string
	op      store.Op
	ifMatch string
	ttl     catalog.TTL
	at      int64 // the deadline that the item names, in seconds, 0 for none
}

// verdict is the result of a request.
type verdict string

const (
	verdictDone         verdict = "done"
	verdictCreated      verdict = "created"
	verdictNotFound     verdict = "not found"
	verdictExists       verdict = "exists"
	verdictPrecondition verdict = "precondition"
	verdictTouched      verdict = "touched"

	verdicts = 6 // in all
)

// linearOutput is what the client saw: the clock before and after the request, and its
// answer. ts is that of a write, in seconds; lsn is the partition's, for reads and for
// successful writes.
type linearOutput struct {
	verdict verdict
	etag    string
	ts      int64
	lsn     uint64
	lo, hi  int64
}

// linearState is an item in the model. It does not change when the item expires: that is
// decided for each answer, by its time.
type linearState struct {
	exists bool
	etag   string
	ts     int64
	ttl    catalog.TTL
	at     int64 // the deadline that it names, in seconds, 0 for none
	// touchedLo and touchedHi are between what times it was last touched; 0 if it was not.
	touchedLo, touchedHi int64
	lsn                  uint64 // the highest seen so far
}

const noDeadline = 1 << 62

// deadline returns between which milliseconds the item expires. They differ only if time has
// passed during its last touch.
func (s linearState) deadline(containerDefault catalog.TTL) (lo, hi int64) {
	ttl := s.ttl
	if ttl == catalog.TTLAbsent {
		ttl = containerDefault
	}
	switch {
	case s.at != 0:
		return max(s.at, s.ts) * 1000, max(s.at, s.ts) * 1000
	case containerDefault == catalog.TTLAbsent || ttl < 0:
		return noDeadline, noDeadline
	}
	life := int64(ttl) * 1000
	return max(s.ts*1000, s.touchedLo) + life, max(s.ts*1000, s.touchedHi) + life
}

// linearModel is the model of one item in a container with this defaultTtl. Histories are
// split by item.
func linearModel(containerDefault catalog.TTL) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Partition: byItem,
		Init:      func() any { return linearState{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(linearState).step(containerDefault, input.(linearInput), output.(linearOutput))
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(seed, state.(linearState)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

func byItem(history []porcupine.Operation) [][]porcupine.Operation {
	index := map[string]int{}
	var items [][]porcupine.Operation
	for _, o := range history {
		name := o.Input.(linearInput).item
		i, known := index[name]
		if !known {
			i = len(items)
			index[name] = i
			items = append(items, nil)
		}
		items[i] = append(items[i], o)
	}
	return items
}

// step reports whether the answer is right for an item in state s, and returns the next
// state.
func (s linearState) step(containerDefault catalog.TTL, in linearInput, out linearOutput) (bool, linearState) {
	early, end := s.deadline(containerDefault)
	wasAlive := s.exists && end > out.lo    // at some moment of the request
	wasGone := !s.exists || early <= out.hi // likewise
	switch {
	case in.op == opTouch && out.verdict != verdictTouched:
		return true, s
	case in.op == opTouch:
		next := s
		next.touchedLo, next.touchedHi = max(s.touchedLo, out.lo), out.hi
		return wasAlive && s.at == 0 && end != noDeadline, next
	}
	switch out.verdict {
	case verdictNotFound:
		next := s
		if in.op == opRead {
			next.lsn = out.lsn
		}
		return wasGone && in.op != store.Create && in.op != store.Upsert && next.lsn >= s.lsn, next
	case verdictExists:
		return wasAlive && (in.op == store.Create || in.op == store.Undelete), s
	case verdictPrecondition:
		return wasAlive && in.ifMatch != "" && in.ifMatch != s.etag && in.op != store.Create && in.op != opRead, s
	}
	if in.op == opRead {
		next := s
		next.lsn = out.lsn
		return wasAlive && out.verdict == verdictDone && out.etag == s.etag && out.lsn >= s.lsn, next
	}
	return s.write(early, end, in, out)
}

// write is a step that changed the item.
func (s linearState) write(early, end int64, in linearInput, out linearOutput) (bool, linearState) {
	if out.lsn <= s.lsn {
		return false, s
	}
	matches := in.ifMatch == "" || in.ifMatch == s.etag
	if in.op == store.Delete {
		return s.exists && end > out.lo && matches && out.verdict == verdictDone, linearState{lsn: out.lsn}
	}
	// A put has its time to the second, and the clock moves by whole seconds.
	at := out.ts * 1000
	next := linearState{exists: true, etag: out.etag, ts: out.ts, ttl: in.ttl, at: in.at, lsn: out.lsn}
	if at < out.lo || at > out.hi || out.etag == s.etag || out.ts < s.ts {
		return false, s
	}
	alive, gone := s.exists && end > at, !s.exists || early <= at
	switch out.verdict {
	case verdictCreated:
		return gone && (in.op == store.Create || in.op == store.Upsert), next
	case verdictDone:
		if in.op == store.Undelete {
			return s.exists && early <= at, next
		}
		return alive && matches && (in.op == store.Upsert || in.op == store.Replace), next
	}
	return false, s
}

// The model must not accept everything: these are histories that it must refuse, with
// valid twins.
func TestLinearModelRefuses(t *testing.T) {
	const second = 1000
	type op = porcupine.Operation
	create := func(etag string, ttl catalog.TTL, ts int64, lsn uint64) op {
		return op{Input: linearInput{item: "a", op: store.Create, ttl: ttl}, Output: linearOutput{verdictCreated, etag, ts, lsn, ts * second, ts * second}}
	}
	put := func(o store.Op, v verdict, etag, ifMatch string, ts int64, lsn uint64) op {
		return op{Input: linearInput{item: "a", op: o, ifMatch: ifMatch}, Output: linearOutput{v, etag, ts, lsn, ts * second, ts * second}}
	}
	remove := func(v verdict, ifMatch string, lo, hi int64, lsn uint64) op {
		return op{Input: linearInput{item: "a", op: store.Delete, ifMatch: ifMatch}, Output: linearOutput{v, "", 0, lsn, lo * second, hi * second}}
	}
	read := func(v verdict, etag string, lo, hi int64, lsn uint64) op {
		return op{Input: linearInput{item: "a", op: opRead}, Output: linearOutput{v, etag, 0, lsn, lo * second, hi * second}}
	}
	named := func(etag string, at, ts int64, lsn uint64) op {
		return op{Input: linearInput{item: "a", op: store.Create, at: at}, Output: linearOutput{verdictCreated, etag, ts, lsn, ts * second, ts * second}}
	}
	touch := func(v verdict, lo, hi int64) op {
		return op{Input: linearInput{item: "a", op: opTouch}, Output: linearOutput{verdict: v, lo: lo * second, hi: hi * second}}
	}
	for _, c := range []struct {
		name string
		// Each request ends before the next begins. The container's default is 2 s.
		history []op
		good    bool
	}{
		{"read of what is there", []op{create("x", 0, 10, 1), read(verdictDone, "x", 11, 11, 1)}, true},
		{"read of what has expired by default", []op{create("x", 0, 10, 1), read(verdictDone, "x", 12, 12, 1)}, false},
		{"read that began in time", []op{create("x", 0, 10, 1), read(verdictDone, "x", 11, 12, 1)}, true},
		{"read of what has expired by its own ttl", []op{create("x", 1, 10, 1), read(verdictDone, "x", 11, 11, 1)}, false},
		{"read of what never expires", []op{create("x", -1, 10, 1), read(verdictDone, "x", 99, 99, 1)}, true},
		{"miss of what is there", []op{create("x", 0, 10, 1), read(verdictNotFound, "", 10, 11, 1)}, false},
		{"miss of what expires meanwhile", []op{create("x", 0, 10, 1), read(verdictNotFound, "", 10, 12, 1)}, true},
		{"miss before the first write", []op{read(verdictNotFound, "", 10, 10, 0), create("x", 0, 10, 1)}, true},
		{"stale read", []op{create("x", -1, 10, 1), put(store.Upsert, verdictDone, "y", "", 10, 2), read(verdictDone, "x", 10, 10, 2)}, false},
		{"read of the future", []op{create("x", -1, 10, 1), read(verdictDone, "y", 10, 10, 1), put(store.Upsert, verdictDone, "y", "", 10, 2)}, false},
		{"read after a delete", []op{create("x", -1, 10, 1), remove(verdictDone, "", 10, 10, 2), read(verdictDone, "x", 10, 10, 2)}, false},
		{"miss after a delete", []op{create("x", -1, 10, 1), remove(verdictDone, "", 10, 10, 2), read(verdictNotFound, "", 10, 10, 2)}, true},
		{"partition that goes back", []op{create("x", -1, 10, 5), read(verdictDone, "x", 10, 10, 4)}, false},

		{"undelete of what has expired", []op{create("x", 0, 10, 1), put(store.Undelete, verdictDone, "y", "", 12, 2), read(verdictDone, "y", 13, 13, 2)}, true},
		{"undelete of what is there", []op{create("x", 0, 10, 1), put(store.Undelete, verdictDone, "y", "", 11, 2)}, false},
		{"undelete of what was deleted", []op{create("x", 0, 10, 1), remove(verdictDone, "", 10, 10, 2), put(store.Undelete, verdictDone, "y", "", 12, 3)}, false},
		{"undelete refused, since it is there", []op{create("x", 0, 10, 1), put(store.Undelete, verdictExists, "", "", 11, 0)}, true},
		{"undelete refused, though it has expired", []op{create("x", 0, 10, 1), put(store.Undelete, verdictExists, "", "", 12, 0)}, false},
		{"read before the deadline that it names", []op{named("x", 15, 10, 1), read(verdictDone, "x", 14, 14, 1)}, true},
		{"read at the deadline that it names", []op{named("x", 15, 10, 1), read(verdictDone, "x", 15, 15, 1)}, false},
		{"read of what named a deadline that had passed", []op{named("x", 5, 10, 1), read(verdictDone, "x", 10, 10, 1)}, false},
		{"read after a touch", []op{create("x", 0, 10, 1), touch(verdictTouched, 11, 11), read(verdictDone, "x", 12, 12, 2)}, true},
		{"miss after a touch", []op{create("x", 0, 10, 1), touch(verdictTouched, 11, 11), read(verdictNotFound, "", 12, 12, 2)}, false},
		{"read after a touch has run out", []op{create("x", 0, 10, 1), touch(verdictTouched, 11, 11), read(verdictDone, "x", 13, 13, 2)}, false},
		{"either after a touch that took time", []op{create("x", 0, 10, 1), touch(verdictTouched, 10, 11), read(verdictNotFound, "", 12, 12, 2)}, true},
		{"touch of what has expired", []op{create("x", 0, 10, 1), touch(verdictTouched, 12, 12)}, false},
		{"touch of what never expires", []op{create("x", -1, 10, 1), touch(verdictTouched, 12, 12)}, false},
		{"touch of what names its deadline", []op{named("x", 15, 10, 1), touch(verdictTouched, 12, 12)}, false},

		{"create over what is there", []op{create("x", 0, 10, 1), create("y", 0, 11, 2)}, false},
		{"create over what has expired", []op{create("x", 0, 10, 1), create("y", 0, 12, 2)}, true},
		{"exists, and it does", []op{create("x", 0, 10, 1), put(store.Create, verdictExists, "", "", 11, 0)}, true},
		{"exists, but it has expired", []op{create("x", 0, 10, 1), put(store.Create, verdictExists, "", "", 12, 0)}, false},
		{"exists, but it does not", []op{put(store.Create, verdictExists, "", "", 12, 0)}, false},

		{"upsert that replaces", []op{create("x", 0, 10, 1), put(store.Upsert, verdictDone, "y", "", 11, 2)}, true},
		{"upsert that replaces what has expired", []op{create("x", 0, 10, 1), put(store.Upsert, verdictDone, "y", "", 12, 2)}, false},
		{"upsert that creates over what is there", []op{create("x", 0, 10, 1), put(store.Upsert, verdictCreated, "y", "", 11, 2)}, false},
		{"upsert that creates ignores the etag", []op{create("x", 0, 10, 1), put(store.Upsert, verdictCreated, "y", "z", 12, 2)}, true},
		{"upsert in spite of another etag", []op{create("x", 0, 10, 1), put(store.Upsert, verdictDone, "y", "z", 11, 2)}, false},

		{"replace", []op{create("x", 0, 10, 1), put(store.Replace, verdictDone, "y", "x", 11, 2)}, true},
		{"replace of nothing", []op{put(store.Replace, verdictDone, "y", "", 11, 2)}, false},
		{"replace of what has expired", []op{create("x", 0, 10, 1), put(store.Replace, verdictDone, "y", "", 12, 2)}, false},
		{"replace in spite of another etag", []op{create("x", 0, 10, 1), put(store.Replace, verdictDone, "y", "z", 11, 2)}, false},
		{"two replaces of one version", []op{create("x", 0, 10, 1), put(store.Replace, verdictDone, "y", "x", 11, 2), put(store.Replace, verdictDone, "z", "x", 11, 3)}, false},
		{"precondition, and it fails", []op{create("x", 0, 10, 1), put(store.Replace, verdictPrecondition, "", "z", 11, 0)}, true},
		{"precondition, but it holds", []op{create("x", 0, 10, 1), put(store.Replace, verdictPrecondition, "", "x", 11, 0)}, false},
		{"precondition, but there was none", []op{create("x", 0, 10, 1), put(store.Replace, verdictPrecondition, "", "", 11, 0)}, false},
		{"precondition of what has expired", []op{create("x", 0, 10, 1), put(store.Replace, verdictPrecondition, "", "z", 12, 0)}, false},
		{"replace finds nothing", []op{put(store.Replace, verdictNotFound, "", "", 11, 0)}, true},
		{"replace finds nothing, but it is there", []op{create("x", 0, 10, 1), put(store.Replace, verdictNotFound, "", "", 11, 0)}, false},

		{"delete", []op{create("x", 0, 10, 1), remove(verdictDone, "x", 11, 11, 2)}, true},
		{"delete twice", []op{create("x", 0, 10, 1), remove(verdictDone, "", 11, 11, 2), remove(verdictDone, "", 11, 11, 3)}, false},
		{"delete of what has expired", []op{create("x", 0, 10, 1), remove(verdictDone, "", 12, 12, 2)}, false},
		{"delete in spite of another etag", []op{create("x", 0, 10, 1), remove(verdictDone, "z", 11, 11, 2)}, false},
		{"delete finds nothing, but it is there", []op{create("x", 0, 10, 1), remove(verdictNotFound, "", 11, 11, 0)}, false},

		{"lsn given twice", []op{create("x", 0, 10, 1), put(store.Upsert, verdictDone, "y", "", 11, 1)}, false},
		{"etag given twice", []op{create("x", 0, 10, 1), put(store.Upsert, verdictDone, "x", "", 11, 2)}, false},
		{"time goes back", []op{create("x", -1, 10, 1), put(store.Upsert, verdictDone, "y", "", 9, 2)}, false},
		{"time of a write is not that of its request", []op{{
			Input: linearInput{item: "a", op: store.Create}, Output: linearOutput{verdictCreated, "x", 10, 1, 11 * second, 12 * second},
		}}, false},
	} {
		for i := range c.history {
			c.history[i].Call, c.history[i].Return = int64(2*i), int64(2*i+1)
		}
		if got := porcupine.CheckOperations(linearModel(2), c.history); got != c.good {
			t.Errorf("%s: accepted is %v, want %v", c.name, got, c.good)
		}
	}
}
