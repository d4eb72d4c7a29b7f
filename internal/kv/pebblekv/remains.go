// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/mayflydb/mayfly/internal/kv"
)

// What is left of deleted data is derived from the tables: each records, when it is written,
// the oldest sequence number of the deletes in it. A delete in a table above the last level
// may hide rows in the tables below it. A delete in any table names a key. A row that is
// hidden by a newer one in the same table is there because a snapshot saw it. No other table
// can hold deleted data: a delete is dropped only where nothing is left for it to hide.
//
// Deletes that are only in logs are derived from the first of them since the last erasure.

// marks are the oldest sequence numbers of a table's deletes; 0 for none.
type marks struct {
	// deleted is that of a delete, of a range delete (or lower), or of a row that hides an
	// older version in the same table.
	deleted uint64
	// replaced is that of a row that was deleted and set again in one batch. It hides an older
	// version only in lower levels.
	replaced uint64
	// only says that the table holds nothing but deletes.
	only bool
}

// oldest returns the oldest delete that a table of the level has anything left of.
func (m marks) oldest(lastLevel bool) uint64 {
	if lastLevel || m.replaced == 0 {
		return m.deleted
	}
	if m.deleted == 0 {
		return m.replaced
	}
	return min(m.deleted, m.replaced)
}

func (m marks) append(dst []byte) []byte {
	if m.deleted == 0 && m.replaced == 0 {
		return dst
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, m.deleted), m.replaced)
}

func decodeMarks(raw []byte) (m marks, ok bool) {
	if len(raw) == 0 {
		return m, true
	}
	deleted, n := binary.Uvarint(raw)
	if n <= 0 {
		return m, false
	}
	replaced, k := binary.Uvarint(raw[n:])
	return marks{deleted: deleted, replaced: replaced}, k > 0 && n+k == len(raw)
}

// marksProperty is the name of the property of tables that has their marks. Data that is
// written by a version without it has tables without it.
const marksProperty = "mayfly.deletes"

// collector collects the marks of a table that is being written.
type collector struct {
	marks marks
	// last is the key before, and seq the sequence number of its newest version.
	last []byte
	seq  uint64
}

func newCollector() pebble.BlockPropertyCollector { return &collector{} }

// Name implements sstable.BlockPropertyCollector.
func (c *collector) Name() string { return marksProperty }

func lower(oldest *uint64, seq uint64) {
	if *oldest == 0 || seq < *oldest {
		*oldest = seq
	}
}

// AddPointKey implements sstable.BlockPropertyCollector.
func (c *collector) AddPointKey(key pebble.InternalKey, _ []byte) error {
	// A sequence number of 0 is that of a row of which there is no other version.
	seq := max(uint64(key.SeqNum()), 1)
	switch key.Kind() {
	case pebble.InternalKeyKindSet:
	case pebble.InternalKeyKindSetWithDelete:
		lower(&c.marks.replaced, seq)
	default:
		lower(&c.marks.deleted, seq)
	}
	if bytes.Equal(c.last, key.UserKey) {
		lower(&c.marks.deleted, c.seq)
	} else {
		c.last, c.seq = append(c.last[:0], key.UserKey...), seq
	}
	return nil
}

// FinishTable implements sstable.BlockPropertyCollector.
func (c *collector) FinishTable(buf []byte) ([]byte, error) { return c.marks.append(buf), nil }

// The other methods: blocks have no property, and there are no range keys with values.

func (c *collector) AddRangeKeys(sstable.Span) error             { return nil }
func (c *collector) FinishDataBlock(buf []byte) ([]byte, error)  { return buf, nil }
func (c *collector) AddPrevDataBlockToIndexBlock()               {}
func (c *collector) FinishIndexBlock(buf []byte) ([]byte, error) { return buf, nil }
func (c *collector) SupportsSuffixReplacement() bool             { return false }
func (c *collector) AddCollectedWithSuffixReplacement([]byte, []byte, []byte) error {
	return fmt.Errorf("%s: no suffixes", marksProperty)
}

// table is a table of the store.
type table struct {
	number   uint64 // of its file
	level    int
	smallest []byte
	largest  []byte // inclusive
	bytes    uint64
	oldest   uint64 // delete of which something is left, 0 for none
	only     bool   // it holds only deletes
}

const lastLevel = 6

// overlaps reports whether the table may hold keys of the range.
func (t *table) overlaps(r kv.Range) bool {
	return (r.Upper == nil || bytes.Compare(t.smallest, r.Upper) < 0) && bytes.Compare(t.largest, r.Lower) >= 0
}

func (t *table) overlapsAny(ranges []kv.Range) bool { return slices.ContainsFunc(ranges, t.overlaps) }

func (t *table) remains() kv.Remains { return kv.Remains{Oldest: t.oldest, Tables: 1, Bytes: t.bytes} }

// known has the marks of tables, by their number: a table never changes.
type known struct {
	sync.Mutex
	marks map[uint64]marks
}

// tables returns all tables, level by level from the first.
func (db *DB) tables() ([]table, error) {
	levels, err := db.pebble.SSTables()
	if err != nil {
		return nil, translate(err)
	}
	db.known.Lock()
	defer db.known.Unlock()
	now := make(map[uint64]marks, len(db.known.marks))
	missing := false
	for _, level := range levels {
		for i := range level {
			number := uint64(level[i].BackingSSTNum)
			m, ok := db.known.marks[number]
			missing = missing || !ok
			now[number] = m
		}
	}
	if missing { // properties are read from all tables, or from none
		if levels, err = db.pebble.SSTables(pebble.WithProperties()); err != nil {
			return nil, translate(err)
		}
		clear(now)
		for _, level := range levels {
			for i := range level {
				now[uint64(level[i].BackingSSTNum)] = marksOf(&level[i])
			}
		}
	}
	db.known.marks = now
	var all []table
	for l, level := range levels {
		for i := range level {
			t := &level[i]
			number := uint64(t.BackingSSTNum)
			all = append(all, table{
				number: number, level: l, bytes: t.Size,
				smallest: t.Smallest.UserKey, largest: t.Largest.UserKey,
				oldest: now[number].oldest(l == lastLevel), only: now[number].only,
			})
		}
	}
	forgetFirstKey(all)
	return all, nil
}

// forgetFirstKey clears the marks of tables that hold only deletes of the first key, unless
// there is a row for them to hide: Erase writes such deletes.
func forgetFirstKey(all []table) {
	own := func(t *table) bool { return t.only && string(t.smallest) == firstKey && string(t.largest) == firstKey }
	for i := range all {
		if t := &all[i]; string(t.smallest) == firstKey && !own(t) {
			return
		}
	}
	for i := range all {
		if t := &all[i]; own(t) {
			t.oldest = 0
		}
	}
}

// marksOf returns the marks of a table from its properties.
func marksOf(t *pebble.SSTableInfo) marks {
	first := max(uint64(t.SmallestSeqNum), 1)
	all := marks{deleted: first}
	if t.Properties == nil || t.Virtual {
		return all
	}
	raw, found := t.Properties.UserProperties[marksProperty]
	if !found {
		// The table was written by a version without marks. Rows without sequence numbers
		// are all that is left of their keys.
		if t.LargestSeqNum == 0 && t.Properties.NumDeletions == 0 {
			return marks{}
		}
		return all
	}
	m, ok := marks{}, len(raw) > 0
	if ok {
		m, ok = decodeMarks([]byte(raw[1:])) // after the engine's number of the property
	}
	if !ok {
		return all
	}
	// The engine does not show range deletes to the collector.
	if t.Properties.NumRangeDeletions > 0 {
		lower(&m.deleted, first)
	}
	m.only = t.Properties.NumEntries == t.Properties.NumDeletions
	return m
}

// Remains implements kv.DB. The position is the engine's sequence number.
func (db *DB) Remains(ranges []kv.Range) (position uint64, left []kv.Remains, err error) {
	db.life.RLock()
	defer db.life.RUnlock()
	if db.closed.Load() {
		return 0, nil, kv.ErrClosed
	}
	position = db.now()
	tables, err := db.tables()
	if err != nil {
		return 0, nil, err
	}
	left = make([]kv.Remains, len(ranges))
	inLogs := kv.Remains{Oldest: db.logged.Load()}
	for i, r := range ranges {
		left[i] = inLogs
		for j := range tables {
			if t := &tables[j]; t.oldest != 0 && t.overlaps(r) {
				left[i] = left[i].Add(t.remains())
			}
		}
		left[i] = left[i].Add(kv.Remains{Oldest: db.aside.oldest(r, position)})
	}
	return position, left, nil
}

// enginePosition returns one more than the engine's last sequence number; 0 if it cannot be
// read, and then the next commit shows it.
func (db *DB) enginePosition() uint64 {
	empty := db.pebble.NewBatch()
	defer func() { _ = empty.Close() }() // it holds memory alone
	if empty.LogData([]byte{0}, nil) != nil || db.pebble.Apply(empty, pebble.NoSync) != nil {
		return 0
	}
	return uint64(empty.SeqNum())
}

// now returns the position. Until the first commit it is not known.
func (db *DB) now() uint64 {
	if db.position.Load() == 0 {
		db.reached(db.enginePosition())
	}
	return db.position.Load()
}

// reached records a position.
func (db *DB) reached(position uint64) {
	for {
		now := db.position.Load()
		if position <= now || db.position.CompareAndSwap(now, position) {
			return
		}
	}
}

// notePosition records a commit that was applied: the engine's position after it, and
// whether it deleted anything.
func (db *DB) notePosition(pb *pebble.Batch, deletes bool) {
	first := uint64(pb.SeqNum())
	last := first + uint64(pb.Count()) // one more than the last
	if first == 0 {
		// The batch was as large as a memtable, and has become one: the engine has taken its
		// data. The position is that of an empty batch behind it.
		first, last = max(db.position.Load(), 1), db.enginePosition()
	}
	db.reached(last)
	if deletes && db.logged.Load() == 0 {
		db.logged.CompareAndSwap(0, first)
	}
}
