// SPDX-License-Identifier: MIT

// The meta row: what a partition knows of itself. It changes in the same batch as
// whatever it speaks of.

package store

import (
	"encoding/binary"
	"math"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

const metaVersion = 3

// meta is the partition's own row. Its fields are written in this order, in
// big-endian, after a byte for the version.
type meta struct {
	LSN         uint64
	NextOrdinal uint64
	Amount      // all that there is, expired or not

	// Epoch is that of the container's settings that the partition goes by, and
	// what follows is what it took from them.
	Epoch            uint64
	ContainerDefault int32
	Final            cuts // 0 for none
	// ChangedMs is when the container's default TTL last changed: what expired by
	// the change did so at that moment.
	ChangedMs int64
	// Generation is that of the index rows. Items up to the ordinal IndexedTo have
	// theirs, and so has whatever was written since the generation began.
	Generation uint32
	IndexedTo  uint64
	// Overfull is how many of those items have no rows, since they have too much to
	// index.
	Overfull int64
	// 18 bytes follow that mean nothing: an index that lagged behind had its place here.

	// Up to its mark an order has no item of its kind: purge has taken them away, or
	// they have moved on. Neither mark ever goes back.
	Marks marks
}

// indexedAll is the IndexedTo of a partition whose items all have their index rows.
const indexedAll = math.MaxUint64

// metaBytes is the length of the row: the version and the fields.
const metaBytes = 1 + 4*8 + 8 + 4 + 3*8 + 4 + 8 + 8 + 18 + positionBytes + markBytes

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
	return m.Marks.append(append(b, make([]byte, 18)...))
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
		Marks: decodeMarks(raw[106:]),
	}, nil
}

// readMeta returns the meta row of a partition, or what it begins with if there is none.
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
	m.ContainerDefault, m.Final = int32(next.containerDefault), next.final
	if m.Generation != c.IndexGeneration {
		m.IndexedTo, m.Overfull = indexedAll, 0
		if m.Generation != 0 { // no item has the index rows of the new policy
			m.IndexedTo = 0
		}
		m.Generation = c.IndexGeneration
	}
}
