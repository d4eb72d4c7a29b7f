// SPDX-License-Identifier: MIT

// When an item expires. This file alone decides it: reads, lists, writes and counters call
// it, each with one moment for the whole request.

package store

import (
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// never is the deadline of an item that does not expire.
const never = math.MaxInt64

// deadline returns the millisecond at which an item written at writtenMs expires, given its
// own ttl and its container's default:
//
//	            container: absent   -1      n
//	item: absent           never    never   writtenMs + n s
//	      -1               never    never   never
//	      m                never    m       writtenMs + m s
//
// Times are milliseconds in 64 bits. So an item never lives shorter than its TTL, though
// its _ts has whole seconds, and adding 2147483647 seconds does not overflow.
func deadline(writtenMs int64, own, containerDefault catalog.TTL) int64 {
	switch {
	case containerDefault == catalog.TTLAbsent: // TTL is off: the item's own has no effect
		return never
	case own == catalog.TTLForever:
		return never
	case own != catalog.TTLAbsent:
		return ownDeadline(writtenMs, own)
	case containerDefault == catalog.TTLForever:
		return never
	default:
		return writtenMs + 1000*int64(containerDefault)
	}
}

// ownDeadline returns the deadline by the item's own ttl, which is positive. It is the time
// in the key of the item's own row, whatever the container's settings are.
func ownDeadline(writtenMs int64, own catalog.TTL) int64 {
	return writtenMs + 1000*int64(own)
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
	return deadline(ms, catalog.TTLAbsent, r.containerDefault)
}

// cuts divide live from expired items at one moment, by kind. An item that inherits the
// container's TTL is expired if it was last written at or before its cut, and an item with
// a ttl of its own if its deadline is at or before its cut.
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
	return horizonMs, p.clock.Now() - horizonMs // a jump between the two readings only adds to the doubt
}

// expired reports whether an item written at writtenMs with this ttl of its own is expired.
func (c cuts) expired(writtenMs int64, own catalog.TTL) bool {
	k := kindOf(own)
	return k < expiring && orderMs(writtenMs, own) <= c[k]
}

// earliest has, of several items, those that expire first, by kind: the earliest write of
// the items that inherit the container's TTL, and the earliest deadline of those with a ttl
// of their own.
type earliest [expiring]int64

// earliestOfNone is the earliest of no items.
var earliestOfNone = earliest{never, never}

// with includes another item.
func (s earliest) with(writtenMs int64, own catalog.TTL) earliest {
	if k := kindOf(own); k < expiring {
		s[k] = min(s[k], orderMs(writtenMs, own))
	}
	return s
}

// noneExpired reports whether none of several items is expired.
func (c cuts) noneExpired(s earliest) bool {
	return s[kindOwn] > c[kindOwn] && s[kindInherits] > c[kindInherits]
}

// expired reports whether the item is expired at nowMs.
func (h *header) expired(r *rules, nowMs int64) bool {
	return r.cutsAt(nowMs).expired(h.writtenMs, h.ttl)
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
