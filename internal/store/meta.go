// SPDX-License-Identifier: MIT

// The meta row: what a partition knows of itself. It changes in the same batch as
// whatever it speaks of.

package store

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv"
)

const metaVersion = 2

// meta is the partition's own row. Its fields are written in this order, in
// big-endian, after a byte for the version.
type meta struct {
	LSN         uint64
	NextOrdinal uint64
	// Items and Bytes are all that there is, expired or not.
	Items, Bytes int64

	// Epoch is that of the container's settings that the partition goes by, and
	// what follows is what it took from them.
	Epoch            uint64
	ContainerDefault int32
	FinalInheritMs   int64
	FinalOwnMs       int64
	// ChangedMs is when the container's default TTL last changed: what expired by
	// the change did so at that moment.
	ChangedMs int64
	// Generation is that of the index rows. Items up to the ordinal IndexedTo have
	// theirs, and so has whatever was written since the generation began.
	Generation uint32
	IndexedTo  uint64

	// Up to FeedMark no item inherits its TTL, and up to OwnMark none has a ttl of
	// its own: purge has taken them away, or they have moved on. Neither ever goes
	// back.
	FeedMark position
	OwnMark  ownPosition
}

// indexedAll is the IndexedTo of a partition whose items all have their index rows.
const indexedAll = math.MaxUint64

// position is a place in the feed: after this lsn and n.
type position struct {
	LSN uint64
	N   uint16
}

// ownPosition is a place in the expiry order of the items with a ttl of their own.
type ownPosition struct {
	ExpiryMs int64
	At       position
}

var metaBytes = 1 + binary.Size(meta{})

func (m *meta) encode() []byte {
	b, err := binary.Append(make([]byte, 0, metaBytes), binary.BigEndian, m)
	invariant.Check(err == nil, "a meta row cannot be encoded: %v", err)
	return append(append(make([]byte, 0, metaBytes), metaVersion), b...)
}

func readMeta(snap kv.Snapshot, x *prefix, index int) (m meta, found bool, err error) {
	raw, found, err := snap.Get(x.metaKey())
	if err != nil {
		return meta{}, false, err
	}
	if !found {
		return meta{NextOrdinal: FirstOrdinal(index) + 1, IndexedTo: indexedAll}, false, nil
	}
	if len(raw) != metaBytes || raw[0] != metaVersion {
		return meta{}, false, corrupt(x.metaKey(), "not a partition's meta row")
	}
	if err := binary.Read(bytes.NewReader(raw[1:]), binary.BigEndian, &m); err != nil {
		return meta{}, false, corrupt(x.metaKey(), err.Error())
	}
	return m, true, nil
}

func (m *meta) rules() rules {
	return rules{catalog.TTL(m.ContainerDefault), m.FinalInheritMs, m.FinalOwnMs}
}

// adopt takes over the container's settings at nowMs. It does nothing for those
// that the partition has already.
func (m *meta) adopt(c *catalog.Container, nowMs int64) {
	if m.Epoch == c.Epoch {
		return
	}
	was := m.rules()
	next := was.finalise(c, nowMs)
	if next.containerDefault != was.containerDefault || m.Epoch == 0 {
		m.ChangedMs = nowMs
	}
	m.Epoch = c.Epoch
	m.ContainerDefault = int32(next.containerDefault)
	m.FinalInheritMs, m.FinalOwnMs = next.finalInheritMs, next.finalOwnMs
	if m.Generation != 0 && m.Generation != c.IndexGeneration {
		m.IndexedTo = 0
	}
	m.Generation = c.IndexGeneration
}
