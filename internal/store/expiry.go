// SPDX-License-Identifier: MIT

// When an item expires. This is the only place that decides it: reads, lists,
// writes and counters ask here, each with one moment that stands still for the
// whole request.

package store

import (
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// never is the deadline of an item that does not expire.
const never = math.MaxInt64

// deadline returns the millisecond at which an item written at writtenMs is
// gone, given its own ttl and its container's default:
//
//	            container: absent   -1      n
//	item: absent           never    never   writtenMs + n s
//	      -1               never    never   never
//	      m                never    m       writtenMs + m s
//
// Milliseconds in 64 bits: an item lives no shorter than it was told to, though
// its _ts has whole seconds, and 2147483647 seconds from now are no overflow.
func deadline(writtenMs int64, own, containerDefault catalog.TTL) int64 {
	switch {
	case containerDefault == catalog.TTLAbsent: // off: the item's own is inert
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

// ownDeadline is the deadline by the item's own ttl, which is positive: the
// place of its row in the expiry order, whatever the container says at the time.
func ownDeadline(writtenMs int64, own catalog.TTL) int64 {
	return writtenMs + 1000*int64(own)
}

// rules are what decides, beside an item's own header, whether it is expired.
type rules struct {
	containerDefault catalog.TTL
	// With ttlFinality, what had expired when the settings changed stays so: final is
	// where the lines were. Zero is none.
	final cuts
}

// inert reports whether nothing ever expires by the rules.
func (r *rules) inert() bool {
	return r.containerDefault == catalog.TTLAbsent && r.final == cuts{}
}

// expires reports whether the items of a kind expire at some time.
func (r *rules) expires(k ttlKind) bool {
	if k == kindOwn {
		return r.containerDefault != catalog.TTLAbsent
	}
	return k == kindInherits && r.containerDefault > 0
}

// expiresAt returns when an item expires, given by what time it lies in the order of its
// kind.
func (r *rules) expiresAt(k ttlKind, ms int64) int64 {
	if k == kindOwn {
		return ms
	}
	return deadline(ms, catalog.TTLAbsent, r.containerDefault)
}

// cuts are the two lines between the living and the dead at one moment, one in each
// order: an item that inherits the container's TTL is gone if it was last written at or
// before this millisecond, and one with a ttl of its own if its deadline is.
type cuts [expiring]int64

// noCut is before everything.
const noCut = -1

// cutsAt returns where the lines are at nowMs.
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

// atHorizon returns the rules by which something may be taken away or told for good, with
// the clock's horizon in place of the time: what settings made final at a time that is
// in doubt waits too. doubtMs is how far the time is past the horizon.
func (r rules) atHorizon(horizonMs, doubtMs int64) rules {
	if r.final[kindOwn] > horizonMs {
		r.final = cuts{max(0, r.final[kindInherits]-doubtMs), horizonMs}
	}
	return r
}

// horizon returns the clock's, and how far the time is past it.
func (p *Partition) horizon() (horizonMs, doubtMs int64) {
	horizonMs = p.clock.Horizon()
	return horizonMs, p.clock.Now() - horizonMs // a jump in between only adds to the doubt
}

// expired reports whether an item written at writtenMs with this ttl of its own is
// expired.
func (c cuts) expired(writtenMs int64, own catalog.TTL) bool {
	k := kindOf(own)
	return k < expiring && orderMs(writtenMs, own) <= c[k]
}

// earliest is what dies first of several items, by kind: the earliest write of those that
// inherit the container's TTL, and the earliest deadline of the others.
type earliest [expiring]int64

// earliestOfNone is soonest of no items.
var earliestOfNone = earliest{never, never}

// with adds an item.
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

// expired reports whether the item is gone at nowMs.
func (h *header) expired(r *rules, nowMs int64) bool {
	return r.cutsAt(nowMs).expired(h.writtenMs, h.ttl)
}

// finalise returns the rules of the container's new settings, which replace those
// of r at nowMs. Without ttlFinality an expired item that is still there comes
// back when its TTL is raised.
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

// itemTTL reads an item's own ttl: the root property of exactly this name. While
// the container's TTL is off nothing is refused, and what is no valid ttl counts
// as absent, also when it is switched on later.
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
