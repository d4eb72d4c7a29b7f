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

// expired reports whether the item is gone at nowMs.
func (h *header) expired(c *catalog.Container, nowMs int64) bool {
	return deadline(h.writtenMs, h.ttl, c.DefaultTTL) <= nowMs
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
