// SPDX-License-Identifier: MIT

// The model of one item, by which histories are judged. Time is part of it: each answer has
// the moments between which it was made, and an item is gone when its time has passed.

package main

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/anishathalye/porcupine"
)

// verb is what a client asks for.
type verb string

const (
	read    verb = "read"
	create  verb = "create"
	upsert  verb = "upsert"
	replace verb = "replace"
	remove  verb = "delete"
)

// verdict is the answer to it.
type verdict string

const (
	done         verdict = "done"
	created      verdict = "created"
	notFound     verdict = "not found"
	exists       verdict = "exists"
	precondition verdict = "precondition failed"
	unknown      verdict = "no answer" // it may have been executed, or may still be
)

// asked is a client's request for one item.
type asked struct {
	item    string // with its container
	verb    verb
	v       int64 // of the body that is written
	ttl     int   // in seconds; 0 for the container's
	ifMatch int64 // the v of the version whose etag was named; 0 for none
}

// told is the answer. v and tsMs are those of the item in it, or of what a request without
// an answer turned out to have written; 0 if that was never seen.
type told struct {
	verdict verdict
	v       int64
	tsMs    int64
	lsn     uint64
	at      moment
}

// state is an item. It does not change when the item expires: that is decided for each
// answer, by its moments.
type state struct {
	exists bool
	v      int64
	// The item is gone from a time between these. What answers say about it brings them
	// together: once it was gone anywhere, no answer shows it any more.
	goneLo, goneHi int64
	lsn            uint64
}

const (
	never = math.MaxInt64
	// lateMs is how long after it was sent a write without an answer may get its time: as
	// long as an item's whole history, and a time out of a node.
	lateMs = 5 * 60 * 1000
)

// model is that of an item in a container with this default, in seconds; -1 is for ever.
func model(containerTTL int) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, output any) (bool, any) {
			return s.(state).step(containerTTL, input.(asked), output.(told))
		},
		Equal:             func(a, b any) bool { return a == b },
		Hash:              func(s any) uint64 { return maphash.Comparable(seed, s.(state)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

// alive returns the item as it is if it was alive at some moment of an answer.
func (s state) alive(at moment) (state, bool) {
	if !s.exists || s.goneHi <= at.lo {
		return s, false
	}
	s.goneLo = max(s.goneLo, at.lo+1)
	return s, true
}

// gone returns the item as it is if it was gone at some moment of an answer.
func (s state) gone(at moment) (state, bool) {
	if !s.exists {
		return s, true
	}
	if s.goneLo > at.hi {
		return s, false
	}
	s.goneHi = min(s.goneHi, at.hi)
	return s, true
}

// step reports whether an answer is right for an item in state s, and returns the next state.
func (s state) step(containerTTL int, in asked, out told) (bool, state) {
	if out.verdict == unknown {
		return true, s.maybe(containerTTL, in, out)
	}
	if out.lsn != 0 {
		if out.lsn < s.lsn || out.lsn == s.lsn && in.verb != read && (out.verdict == done || out.verdict == created) {
			return false, s
		}
		s.lsn = out.lsn
	}
	switch out.verdict {
	case notFound:
		next, ok := s.gone(out.at)
		return ok && in.verb != create && in.verb != upsert, next
	case exists:
		next, ok := s.alive(out.at)
		return ok && in.verb == create, next
	case precondition:
		next, ok := s.alive(out.at)
		return ok && in.ifMatch != 0 && in.ifMatch != s.v, next
	}
	switch in.verb {
	case read:
		next, ok := s.alive(out.at)
		return ok && out.v == s.v, next
	case remove:
		_, ok := s.alive(out.at)
		return ok && s.matches(in), state{lsn: s.lsn}
	}
	ok := false
	if out.verdict == created {
		_, ok = s.gone(out.at)
		ok = ok && in.verb != replace
	} else {
		_, ok = s.alive(out.at)
		ok = ok && in.verb != create && s.matches(in)
	}
	next, possible := s.written(containerTTL, in, out)
	return ok && possible && out.v == in.v, next
}

func (s state) matches(in asked) bool { return in.ifMatch == 0 || in.ifMatch == s.v }

// written returns the item after a write, and whether its time is one of the answer's. The
// time is known to the second; a write counts from the end of its millisecond.
func (s state) written(containerTTL int, in asked, out told) (state, bool) {
	lo, hi := max(out.tsMs, out.at.lo), min(out.tsMs+999, out.at.hi+1)
	next := state{exists: true, v: in.v, goneLo: never, goneHi: never, lsn: s.lsn}
	ttl := in.ttl
	if ttl == 0 {
		ttl = containerTTL
	}
	if ttl > 0 {
		next.goneLo, next.goneHi = lo+int64(ttl)*1000, hi+int64(ttl)*1000
	}
	return next, lo <= hi
}

// maybe returns the item after a request without an answer, at a time at which it would have
// been executed. That it was never executed is its execution after everything else.
func (s state) maybe(containerTTL int, in asked, out told) state {
	when := moment{out.at.lo, never - 1}
	if out.tsMs != 0 {
		when = moment{max(out.tsMs, out.at.lo), out.tsMs + 999}
	}
	_, alive := s.alive(when)
	_, gone := s.gone(when)
	alive = alive && s.matches(in)
	switch in.verb {
	case read:
		return s
	case remove:
		if alive {
			return state{lsn: s.lsn}
		}
		return s
	case replace:
		gone = false
	case create:
		alive = false
	}
	if !alive && !gone {
		return s
	}
	if out.tsMs == 0 { // its time is not known
		next, _ := s.written(containerTTL, in, told{tsMs: out.at.lo, at: moment{out.at.lo, never - 1}})
		if next.goneHi != never {
			next.goneHi += lateMs
		}
		return next
	}
	next, possible := s.written(containerTTL, in, told{tsMs: out.tsMs, at: moment{out.at.lo, never - 1}})
	if !possible {
		return s
	}
	return next
}
