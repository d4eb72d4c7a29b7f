// SPDX-License-Identifier: MIT

package pgkv

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/kv"
)

// effect is what a batch does to the store, without the operations that others undo.
type effect struct {
	requires []kv.Op // each once
	absent   []kv.Op // each once
	ranges   []kv.Op
	deletes  []kv.Op
	sets     []kv.Op
}

// effectOf finds the effect of a batch: for each key its last operation, unless a range that
// was deleted later covers it. Rows are in the order of keys, so that commits lock them in the
// same order.
func effectOf(b *kv.Batch) effect {
	all := make([]kv.Op, 0, b.Len())
	for op := range b.Ops {
		all = append(all, op)
	}
	var e effect
	done := make(map[string]struct{}, len(all))
	for _, op := range slices.Backward(all) {
		switch op.Kind {
		case kv.OpRequire:
			e.requires = append(e.requires, op)
			continue
		case kv.OpRequireAbsent:
			e.absent = append(e.absent, op)
			continue
		case kv.OpDeleteRange:
			if bytes.Compare(op.Key, op.Value) < 0 {
				e.ranges = append(e.ranges, op)
			}
			continue
		}
		if _, later := done[string(op.Key)]; later || covered(e.ranges, op.Key) {
			continue
		}
		done[string(op.Key)] = struct{}{}
		if op.Kind == kv.OpSet {
			e.sets = append(e.sets, op)
		} else {
			e.deletes = append(e.deletes, op)
		}
	}
	for _, ops := range []*[]kv.Op{&e.requires, &e.absent, &e.ranges, &e.deletes, &e.sets} {
		slices.SortFunc(*ops, func(a, b kv.Op) int {
			if c := bytes.Compare(a.Key, b.Key); c != 0 {
				return c
			}
			return bytes.Compare(a.Value, b.Value)
		})
		*ops = slices.CompactFunc(*ops, func(a, b kv.Op) bool {
			return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
		})
	}
	return e
}

func covered(ranges []kv.Op, key []byte) bool {
	for _, r := range ranges {
		if bytes.Compare(r.Key, key) <= 0 && bytes.Compare(key, r.Value) < 0 {
			return true
		}
	}
	return false
}

// message returns the text that commits the batch, or "" if there is nothing to do. The
// statements of one message are one transaction.
func message(b *kv.Batch) string {
	if b.Len() == 0 {
		return ""
	}
	e := effectOf(b)
	var m strings.Builder
	m.Grow(2*b.Bytes() + 32*b.Len() + 256)
	m.WriteString("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
	if b.IsLazy() {
		m.WriteString(";SET LOCAL synchronous_commit=off")
	}
	empty := m.Len()
	e.writeChecks(&m)
	for _, r := range e.ranges {
		m.WriteByte(';')
		deleteRange(&m, r.Key, r.Value)
	}
	for i, op := range e.sets {
		if i == 0 {
			m.WriteString(";INSERT INTO kv VALUES(")
		} else {
			m.WriteString("),(")
		}
		literal(&m, op.Key)
		m.WriteByte(',')
		literal(&m, op.Value)
	}
	if len(e.sets) > 0 {
		m.WriteString(")ON CONFLICT(k)DO UPDATE SET v=EXCLUDED.v")
	}
	if len(e.deletes) > 0 {
		m.WriteString(";DELETE FROM kv WHERE k IN(")
		literals(&m, e.deletes)
		m.WriteByte(')')
	}
	if m.Len() == empty {
		return ""
	}
	return m.String()
}

func deleteRange(m *strings.Builder, lower, upper []byte) {
	m.WriteString("DELETE FROM kv WHERE k>=")
	literal(m, lower)
	m.WriteString(" AND k<")
	literal(m, upper)
}

// writeChecks writes statements that divide by zero unless all Requires hold. A key that two
// Requires want to have different values fails.
//
// The rows are locked until the batch is committed: a commit that changes such a row comes
// before this one, which then fails, or becomes visible after it. They are locked before all
// other rows, and those that the batch also writes are not shared, so that commits rarely
// wait for each other.
func (e effect) writeChecks(m *strings.Builder) {
	var kept, changed []kv.Op
	for _, op := range e.requires {
		if e.writes(op.Key) {
			changed = append(changed, op)
		} else {
			kept = append(kept, op)
		}
	}
	writeCheck(m, changed, " FOR UPDATE")
	writeCheck(m, kept, " FOR SHARE")
	if len(e.absent) > 0 {
		m.WriteString(";SELECT 1/(count(*)=0)::int FROM kv WHERE k IN(")
		literals(m, e.absent)
		m.WriteByte(')')
	}
}

// writeCheck writes a statement that divides by zero unless all of these Requires hold.
func writeCheck(m *strings.Builder, requires []kv.Op, lock string) {
	if len(requires) == 0 {
		return
	}
	m.WriteString(";SELECT 1/(count(*)=")
	m.WriteString(strconv.Itoa(len(requires)))
	m.WriteString(")::int FROM(SELECT 1 FROM kv WHERE k IN(") // which the index can find, unlike an OR
	literals(m, requires)
	m.WriteString(")AND(")
	for i, op := range requires {
		if i > 0 {
			m.WriteString(" OR ")
		}
		m.WriteString("k=")
		literal(m, op.Key)
		m.WriteString(" AND v=")
		literal(m, op.Value)
	}
	m.WriteByte(')')
	m.WriteString(lock)
	m.WriteString(")AS r")
}

// writes reports whether the batch sets or deletes a key.
func (e effect) writes(key []byte) bool {
	by := func(op kv.Op, key []byte) int { return bytes.Compare(op.Key, key) }
	_, set := slices.BinarySearchFunc(e.sets, key, by)
	_, deleted := slices.BinarySearchFunc(e.deletes, key, by)
	return set || deleted || covered(e.ranges, key)
}

// literals writes the keys of ops, with commas between.
func literals(m *strings.Builder, ops []kv.Op) {
	for i, op := range ops {
		if i > 0 {
			m.WriteByte(',')
		}
		literal(m, op.Key)
	}
}

// literal writes a constant, whose type the server takes from the column beside it.
func literal(m *strings.Builder, value []byte) {
	m.WriteString(`'\x`)
	var room [512]byte
	for len(value) > 0 {
		n := min(len(value), len(room)/2)
		m.Write(room[:hex.Encode(room[:], value[:n])])
		value = value[n:]
	}
	m.WriteByte('\'')
}
