// SPDX-License-Identifier: MIT

package main

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// The model must not accept everything: these are histories that it must refuse, with valid
// twins. The container's items live for ever unless they have a ttl.
func TestModel(t *testing.T) {
	type op = porcupine.Operation
	at := func(lo, hi int64) moment { return moment{lo, hi} }
	write := func(v verb, as verdict, version int64, ttl int, ms int64, lsn uint64) op {
		return op{Input: asked{item: "a", verb: v, v: version, ttl: ttl}, Output: told{verdict: as, v: version, tsMs: ms - ms%1000, lsn: lsn, at: at(ms, ms)}}
	}
	look := func(as verdict, version, ms int64, lsn uint64) op {
		return op{Input: asked{item: "a", verb: read}, Output: told{verdict: as, v: version, lsn: lsn, at: at(ms, ms)}}
	}
	lost := func(v verb, version int64, ttl int, calledMs, tsMs int64) op {
		return op{Input: asked{item: "a", verb: v, v: version, ttl: ttl}, Output: told{verdict: unknown, v: version, tsMs: tsMs, at: at(calledMs, 0)}}
	}
	matching := func(o op, version int64) op {
		in := o.Input.(asked)
		in.ifMatch = version
		o.Input = in
		return o
	}
	gone := func(as verdict, ms int64, lsn uint64) op {
		return op{Input: asked{item: "a", verb: remove}, Output: told{verdict: as, lsn: lsn, at: at(ms, ms)}}
	}
	base := write(create, created, 1, 0, 10_500, 1)
	brief := write(create, created, 1, 2, 10_500, 1) // gone at 12,501 at the latest
	const now = 1_795_000_000_500                    // where times are real ones
	for _, c := range []struct {
		name    string
		history []op // each ends before the next begins
		good    bool
	}{
		{"read of what is there", []op{base, look(done, 1, 99_000, 1)}, true},
		{"an acknowledged write is lost", []op{base, look(notFound, 0, 10_501, 1)}, false},
		{"an acknowledged replace is lost", []op{base, write(upsert, done, 2, 0, 10_600, 2), look(done, 1, 10_700, 2)}, false},
		{"lost, after a partition went back", []op{base, look(done, 1, 10_600, 7), look(done, 1, 10_700, 6)}, false},
		{"two writes with one lsn", []op{base, write(upsert, done, 2, 0, 10_600, 2), write(upsert, done, 3, 0, 10_700, 2)}, false},
		{"read before the deadline", []op{brief, look(done, 1, 12_499, 1)}, true},
		{"read at the deadline", []op{brief, look(done, 1, 12_501, 1)}, false},
		{"gone at the deadline", []op{brief, look(notFound, 0, 12_501, 1)}, true},
		{"gone before the deadline", []op{brief, look(notFound, 0, 12_499, 1)}, false},
		{"seen again after it was gone", []op{lost(create, 1, 2, 10_000, 10_000), look(notFound, 0, 12_300, 1), look(done, 1, 12_300, 1)}, true}, // the create was late, and then the item is new
		{"seen again by an earlier clock", []op{{
			Input: asked{verb: create, v: 1, ttl: 2}, Output: told{verdict: created, v: 1, tsMs: 10_000, lsn: 1, at: at(10_000, 10_900)},
		}, look(done, 1, 12_300, 1), look(notFound, 0, 12_400, 1), look(done, 1, 12_350, 1)}, true},
		{"seen again by the same clock", []op{{
			Input: asked{verb: create, v: 1, ttl: 2}, Output: told{verdict: created, v: 1, tsMs: 10_000, lsn: 1, at: at(10_000, 10_900)},
		}, look(done, 1, 12_300, 1), look(notFound, 0, 12_400, 1), look(done, 1, 12_401, 1)}, false},
		{"create over what is there", []op{base, write(create, created, 2, 0, 10_600, 2)}, false},
		{"create over what has expired", []op{brief, write(create, created, 2, 0, 12_501, 2)}, true},
		{"exists, and it does", []op{brief, write(create, exists, 2, 0, 12_000, 0)}, true},
		{"exists, but it has expired", []op{brief, write(create, exists, 2, 0, 12_501, 0)}, false},
		{"upsert that replaces what has expired", []op{brief, write(upsert, done, 2, 0, 12_501, 2)}, false},
		{"replace of what has expired", []op{brief, write(replace, done, 2, 0, 12_501, 2)}, false},
		{"replace of another version", []op{base, matching(write(replace, done, 2, 0, 10_600, 2), 9)}, false},
		{"two replaces of one version", []op{base, matching(write(replace, done, 2, 0, 10_600, 2), 1), matching(write(replace, done, 3, 0, 10_600, 3), 1)}, false},
		{"precondition that fails", []op{base, matching(write(replace, precondition, 2, 0, 10_600, 0), 9)}, true},
		{"precondition that holds", []op{base, matching(write(replace, precondition, 2, 0, 10_600, 0), 1)}, false},
		{"delete", []op{base, gone(done, 10_600, 2), look(notFound, 0, 10_700, 2)}, true},
		{"read after a delete", []op{base, gone(done, 10_600, 2), look(done, 1, 10_700, 2)}, false},
		{"delete of what has expired", []op{brief, gone(done, 12_501, 2)}, false},

		{"no answer, and it happened", []op{base, lost(upsert, 2, 0, 10_600, 10_000), look(done, 2, 10_700, 2)}, true},
		{"no answer, and it did not happen", []op{base, lost(upsert, 2, 0, 10_600, 0), look(done, 1, 10_700, 1)}, true},
		{"no answer, and it happened later", []op{base, lost(upsert, 2, 0, 10_600, 10_000), look(done, 1, 10_700, 1), look(done, 2, 10_800, 2)}, true},
		{"no answer, and it came and went", []op{base, lost(upsert, 2, 0, 10_600, 10_000), look(done, 2, 10_700, 2), look(done, 1, 10_800, 2)}, false},
		{"no answer, and a delete that may have happened", []op{base, lost(remove, 0, 0, 10_600, 0), look(notFound, 0, 10_700, 2)}, true},
		{"no answer, and it expired", []op{lost(create, 1, 2, 10_000, 10_000), look(done, 1, 11_999, 1), look(notFound, 0, 13_000, 1)}, true},
		{"no answer, and it lives too long", []op{lost(create, 1, 2, 10_000, 10_000), look(done, 1, 13_000, 1)}, false},
		{"no answer, never seen, but it is in the way", []op{lost(create, 1, 2, 10_000, 0), write(create, exists, 2, 0, 11_000, 0)}, true},
		{"no answer to a create, and it replaced what was there", []op{base, lost(create, 2, 0, 10_600, 10_000), look(done, 2, 10_700, 2)}, false},
		{"no answer to a replace, and it created", []op{lost(replace, 2, 0, 10_600, 10_000), look(done, 2, 10_700, 2)}, false},
		{"no answer, never seen, and it came late", []op{lost(create, 1, 1, now, 0), write(upsert, done, 2, 0, now+2_000, 2)}, true},
		{"no answer, never seen, and it lives far too long", []op{lost(create, 1, 1, now, 0), write(upsert, done, 2, 0, now+2*lateMs, 2)}, false},
		{"the time of a write is not that of its request", []op{{
			Input: asked{verb: create, v: 1}, Output: told{verdict: created, v: 1, tsMs: 9_000, lsn: 1, at: at(10_000, 10_100)},
		}}, false},
	} {
		for i := range c.history {
			c.history[i].Call, c.history[i].Return = int64(2*i), int64(2*i+1)
			if c.history[i].Output.(told).verdict == unknown {
				c.history[i].Return = 1000
			}
		}
		if got := porcupine.CheckOperations(model(-1), c.history); got != c.good {
			t.Errorf("%s: accepted is %v, want %v", c.name, got, c.good)
		}
	}
}
