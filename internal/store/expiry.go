// SPDX-License-Identifier: MIT

// When an item expires. This file alone decides it: reads, lists, writes and counters call
// it, each with one moment for the whole request.

package store

import (
	"encoding/binary"
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/value"
)

// never is the deadline of an item that does not expire.
const never = math.MaxInt64

// life is what decides, under the container's settings, when an item expires: a ttl, and
// the time from which it counts. Index rows have it too, so that an index can be read
// without its items.
type life struct {
	ms  int64 // the last write or touch; with ttlNamed the deadline itself
	ttl catalog.TTL
}

// ttlNamed is the ttl of a life whose time is the deadline, since the item names it. No
// client can write it.
const ttlNamed catalog.TTL = -2

// lifeBytes is the length of a life in a row: ms 8, ttl 4.
const lifeBytes = 12

func (l life) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, uint64(l.ms)), uint32(l.ttl))
}

func decodeLife(raw []byte) life {
	return life{int64(binary.BigEndian.Uint64(raw)), catalog.TTL(binary.BigEndian.Uint32(raw[8:]))}
}

// life returns what decides when the item expires. A deadline that it names wins over its
// ttl.
func (h *header) life() life {
	if h.atMs != 0 {
		return life{h.atMs, ttlNamed}
	}
	return life{max(h.writtenMs, h.baseMs), h.ttl}
}

// kind returns the order in which an item with this life expires.
func (l life) kind() ttlKind {
	switch l.ttl {
	case catalog.TTLAbsent:
		return kindInherits
	case catalog.TTLForever:
		return kindNever
	default:
		return kindOwn
	}
}

// orderMs returns the time by which an item is sorted in the order of its kind: its
// deadline if it has a ttl of its own or names its deadline, whatever the container's
// settings are, else its last write.
func (l life) orderMs() int64 {
	if l.ttl > 0 {
		return l.ms + 1000*int64(l.ttl)
	}
	return l.ms
}

// deadline returns the millisecond at which an item expires, given its container's default:
//
//	                 container: absent   -1      n
//	item: nothing               never    never   last write + n s
//	      ttl -1                never    never   never
//	      ttl m                 never    last write + m s
//	      names a deadline      never    that deadline
//
// Times are milliseconds in 64 bits. So an item never lives shorter than its TTL, though
// its _ts has whole seconds, and adding 2147483647 seconds does not overflow.
func (l life) deadline(containerDefault catalog.TTL) int64 {
	switch {
	case containerDefault == catalog.TTLAbsent: // TTL is off: the item's own has no effect
		return never
	case l.kind() == kindOwn:
		return l.orderMs()
	case l.kind() == kindNever || containerDefault == catalog.TTLForever:
		return never
	default:
		return l.ms + 1000*int64(containerDefault)
	}
}

// deadline returns the millisecond at which the item expires, given its container's default.
func (h *header) deadline(containerDefault catalog.TTL) int64 {
	return h.life().deadline(containerDefault)
}

// slides reports whether a read at nowMs restarts the countdown of a live item: it has used
// up so many percent of its life. A deadline that the item names stays, and an item that
// never expires has no countdown.
func (l life) slides(containerDefault catalog.TTL, percent int, nowMs int64) bool {
	d := l.deadline(containerDefault)
	if d == never || l.ttl == ttlNamed || d <= nowMs {
		return false
	}
	used := nowMs - l.ms
	return used > 0 && 100*used >= int64(percent)*(d-l.ms)
}

// rules decide, together with an item's header, whether the item is expired.
type rules struct {
	containerDefault catalog.TTL
	// With ttlFinality, items that had expired when the settings changed stay expired:
	// final has the cuts of that moment. Zero is none.
	final cuts
}

// inert reports whether no item expires under the rules.
func (r *rules) inert() bool {
	return r.containerDefault == catalog.TTLAbsent && r.final == cuts{}
}

// expires reports whether items of a kind expire at all.
func (r *rules) expires(k ttlKind) bool {
	if k == kindOwn {
		return r.containerDefault != catalog.TTLAbsent
	}
	return k == kindInherits && r.containerDefault > 0
}

// expiresAt returns when an item of a kind expires, given its orderMs.
func (r *rules) expiresAt(k ttlKind, ms int64) int64 {
	if k == kindOwn {
		return ms
	}
	return life{ms: ms}.deadline(r.containerDefault)
}

// cuts divide live from expired items at one moment, by kind. An item that inherits the
// container's TTL is expired if it was last written at or before its cut, and an item with
// a ttl or a deadline of its own if its deadline is at or before its cut.
type cuts [expiring]int64

// noCut is before all items: none is expired.
const noCut = -1

// cutsAt returns the cuts at nowMs.
func (r *rules) cutsAt(nowMs int64) cuts {
	c := cuts{noCut, noCut}
	for k, ms := range r.final {
		if ms > 0 {
			c[k] = ms
		}
	}
	if r.containerDefault == catalog.TTLAbsent {
		return c
	}
	c[kindOwn] = max(c[kindOwn], nowMs)
	if r.containerDefault > 0 {
		c[kindInherits] = max(c[kindInherits], nowMs-1000*int64(r.containerDefault))
	}
	return c
}

// atHorizon returns the rules to purge and report items by: both are irreversible, so they
// use the clock's horizon in place of the time. Items that settings made final at a time in
// doubt have to wait too. doubtMs is how far the time is past the horizon.
func (r rules) atHorizon(horizonMs, doubtMs int64) rules {
	if r.final[kindOwn] > horizonMs {
		r.final = cuts{max(0, r.final[kindInherits]-doubtMs), horizonMs}
	}
	return r
}

// horizon returns the clock's horizon, and how far the time is past it.
func (p *Partition) horizon() (horizonMs, doubtMs int64) {
	horizonMs = p.clock.Horizon()
	return horizonMs, p.time() - horizonMs // a jump between the two readings only adds to the doubt
}

// expired reports whether an item with this life is expired.
func (c cuts) expired(l life) bool {
	k := l.kind()
	return k < expiring && l.orderMs() <= c[k]
}

// earliest has, of several items, those that expire first, by kind: the earliest write of
// the items that inherit the container's TTL, and the earliest deadline of the others.
type earliest [expiring]int64

// earliestOfNone is the earliest of no items.
var earliestOfNone = earliest{never, never}

// with includes another item.
func (s earliest) with(l life) earliest {
	if k := l.kind(); k < expiring {
		s[k] = min(s[k], l.orderMs())
	}
	return s
}

// noneExpired reports whether none of several items is expired.
func (c cuts) noneExpired(s earliest) bool {
	return s[kindOwn] > c[kindOwn] && s[kindInherits] > c[kindInherits]
}

// expired reports whether the item is expired at nowMs.
func (h *header) expired(r *rules, nowMs int64) bool {
	return r.cutsAt(nowMs).expired(h.life())
}

// finalise returns the rules of the container's new settings, which replace r at nowMs.
// Without ttlFinality, an expired item that is not purged yet is live again when its TTL is
// raised.
func (r *rules) finalise(c *catalog.Container, nowMs int64) rules {
	next := rules{containerDefault: c.DefaultTTL}
	if c.Final() {
		was := r.cutsAt(nowMs)
		next.final = cuts{max(was[kindInherits], 0), max(was[kindOwn], 0)}
	}
	return next
}

// TTLError refuses an item for its ttl.
type TTLError struct {
	Value string // the JSON text that the client sent
}

func (e *TTLError) Error() string {
	return "The input ttl '" + e.Value + "' is invalid. " + catalog.TTLRule
}

// itemTTL reads an item's own ttl: the root property of exactly this name. While the
// container's TTL is off, any value is accepted. An invalid one counts as absent, also when
// TTL is switched on later.
func itemTTL(o *value.Object, c *catalog.Container) (catalog.TTL, error) {
	raw, found := o.Lookup("ttl")
	if !found {
		return catalog.TTLAbsent, nil
	}
	ttl, ok := catalog.ParseTTL(raw)
	if !ok && c.DefaultTTL != catalog.TTLAbsent {
		return 0, &TTLError{value.Clip(string(raw))}
	}
	return ttl, nil
}

// DeadlineError refuses an item for the value at its container's expireAtPath.
type DeadlineError struct {
	Path  string
	Value string // the JSON text that the client sent
	// NowMs is the time if the deadline has passed, 0 if the value is none.
	NowMs int64
}

func (e *DeadlineError) Error() string {
	what := "The value " + e.Value + " at '" + e.Path + "', the container's expireAtPath, "
	if e.NowMs == 0 {
		return what + "is invalid. " + catalog.DeadlineRule
	}
	return what + "is a deadline that has passed: it is " + clock.Stamp(e.NowMs) + ". Ensure to provide a later one, or set the container's expireAtPast to 'accept'."
}

// namedDeadline is the deadline that an item names at its container's expireAtPath. The
// zero value is none.
type namedDeadline struct {
	ms   int64
	text string // its JSON text, for a refusal
}

// itemDeadline reads the deadline that an item names. Without an expireAtPath, which a
// container has only while its TTL is on, there is none. An item's deadline is decoded here
// once: another path holds for items that are written from then on.
func itemDeadline(o *value.Object, c *catalog.Container) (namedDeadline, error) {
	if c.ExpireAtPath == nil {
		return namedDeadline{}, nil
	}
	raw, found := o.At(c.ExpireAtPath)
	if !found || string(raw) == "null" {
		return namedDeadline{}, nil
	}
	ms, ok := catalog.ParseDeadline(raw)
	if !ok {
		return namedDeadline{}, &DeadlineError{Path: c.ExpireAtPath.String(), Value: value.Clip(string(raw))}
	}
	return namedDeadline{ms, value.Clip(string(raw))}, nil
}

// from returns the deadline of an item that is written at nowMs, 0 for none. One that has
// passed is refused, unless the container accepts it: then the item expires at nowMs, which
// no mark of purge and no event has passed.
func (d namedDeadline) from(nowMs int64, c *catalog.Container) (int64, error) {
	switch {
	case d.ms == 0 || d.ms > nowMs:
		return d.ms, nil
	case c.ExpireAtPast:
		return nowMs, nil
	}
	return 0, &DeadlineError{c.ExpireAtPath.String(), d.text, nowMs}
}

// rewound returns the header with its times taken back by a rewind of the clock. A deadline
// that the client has named stays. One that had passed at the write is the moment of the
// write, and goes back with it.
func (h *header) rewound(back func(ms int64) int64) header {
	next := *h
	next.writtenMs = back(h.writtenMs)
	if h.baseMs != 0 {
		next.baseMs = back(h.baseMs)
	}
	if h.atMs != 0 && h.atMs <= h.writtenMs {
		next.atMs = max(1, min(h.atMs, next.writtenMs))
	}
	return next
}
