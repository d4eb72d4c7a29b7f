// SPDX-License-Identifier: MIT

// The meta row: a partition's lsn, totals, settings and marks. It changes in the same batch
// as the rows that it describes.

package store

import (
	"encoding/binary"
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

const metaVersion = 3

// meta is the meta row. Its fields are written in this order, in big-endian, after a byte
// for the version.
type meta struct {
	LSN         uint64
	NextOrdinal uint64
	Amount      // all items, expired or not

	// Epoch is that of the container's settings that the partition applies. The fields that
	// follow are from those settings.
	Epoch            uint64
	ContainerDefault int32
	Final            cuts // 0 for none
	// ChangedMs is when the container's default TTL last changed. Items that expired
	// because of that change expired at that moment.
	ChangedMs int64
	// Generation is that of the index rows. Items up to the ordinal IndexedTo have their
	// index rows, and so have all items written since the generation began.
	Generation uint32
	IndexedTo  uint64
	// Overfull is how many of those items have no index rows because they have too much to
	// index.
	Overfull int64
	// PrunedMs is the moment before which events were removed.
	PrunedMs int64
	// 2 unused bytes follow, always zero.

	// Commits counts the commits that wrote the row. It tells whether a commit happened.
	Commits uint64

	// Up to its mark, an order has no items of its kind: they were purged or written again,
	// which moved them. Only a rewind moves a mark back.
	Marks marks
}

// indexedAll is the IndexedTo of a partition whose items all have their index rows.
const indexedAll = math.MaxUint64

// metaBytes is the length of the row: the version, the fields and the unused bytes.
const metaBytes = 1 + 4*8 + 8 + 4 + 3*8 + 4 + 8 + 8 + 8 + 2 + 8 + positionBytes + markBytes

func (m *meta) encode() []byte {
	b := append(make([]byte, 0, metaBytes), metaVersion)
	for _, n := range [...]uint64{m.LSN, m.NextOrdinal, uint64(m.Items), uint64(m.Bytes), m.Epoch} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(m.ContainerDefault))
	for _, n := range [...]int64{m.Final[kindInherits], m.Final[kindOwn], m.ChangedMs} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = binary.BigEndian.AppendUint32(b, m.Generation)
	b = binary.BigEndian.AppendUint64(b, m.IndexedTo)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Overfull))
	b = binary.BigEndian.AppendUint64(b, uint64(m.PrunedMs))
	return m.Marks.append(binary.BigEndian.AppendUint64(append(b, 0, 0), m.Commits))
}

// decodeMeta reads what encode wrote.
func decodeMeta(e kv.Entry) (meta, error) {
	if len(e.Value) != metaBytes || e.Value[0] != metaVersion {
		return meta{}, corrupt(e.Key, "not a partition's meta row")
	}
	raw := e.Value[1:]
	number := func(at int) uint64 { return binary.BigEndian.Uint64(raw[at:]) }
	return meta{
		LSN: number(0), NextOrdinal: number(8), Amount: decodeAmount(raw[16:]), Epoch: number(32),
		ContainerDefault: int32(binary.BigEndian.Uint32(raw[40:])),
		Final:            cuts{int64(number(44)), int64(number(52))}, ChangedMs: int64(number(60)),
		Generation: binary.BigEndian.Uint32(raw[68:]), IndexedTo: number(72), Overfull: int64(number(80)),
		PrunedMs: int64(number(88)),
		Commits:  number(98), Marks: decodeMarks(raw[106:]),
	}, nil
}

// readMeta returns the meta row of a partition, or its first state if there is none.
func (s stored) readMeta(index int) (m meta, found bool, err error) {
	m, found, err = rowAt(s.snap, s.prefix.metaKey(), decodeMeta)
	if err == nil && !found {
		m = meta{NextOrdinal: FirstOrdinal(index) + 1, IndexedTo: indexedAll}
	}
	return m, found, err
}

func (m *meta) rules() rules {
	return rules{catalog.TTL(m.ContainerDefault), m.Final}
}

// adopt takes over the container's settings at nowMs, unless the partition already has
// them.
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
	m.ContainerDefault, m.Final = int32(next.containerDefault), next.final
	if m.Generation != c.IndexGeneration {
		m.IndexedTo, m.Overfull = indexedAll, 0
		if m.Generation != 0 { // no item has index rows of the new policy yet
			m.IndexedTo = 0
		}
		m.Generation = c.IndexGeneration
	}
}
