// SPDX-License-Identifier: MIT

// Pages of rows that have no position of their own: those that are ranked, whose scores
// depend on all items, and those of a query over the rows of another. A number of rows
// to pass over would pass over others once some that were shown are gone. So a token
// holds marks of the last ones that are done, shown or passed over by OFFSET, and the
// next page goes on after the latest that is still there.

package query

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/mayflydb/mayfly/internal/sql"
)

const (
	// maxDone is how many rows a token has marks of. If all of these are gone, so many
	// rows less are passed over: none, if no more were done.
	maxDone = 32
	// maxMet is how many rows of a DISTINCT query a token has marks of. Where rows come
	// in an order there is one: what is like it follows.
	maxMet    = 16
	markBytes = 8
)

// heldRow is a row of a page whose rows are all known before one is shown.
type heldRow struct {
	mark    uint64
	json    []byte
	ordinal uint64 // of the item that the row is made from when it is shown
}

// markOf returns the mark of the nth row of an item.
func markOf(ordinal uint64, n int) uint64 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], ordinal)
	binary.BigEndian.PutUint64(b[8:], uint64(n))
	return markText(b[:])
}

func markText(text []byte) uint64 {
	h := fnv.New64a()
	h.Write(text)
	return h.Sum64()
}

// held gives rows that are of no one item their marks: what they say, and how many said
// the same before.
func held(rows [][]byte) []heldRow {
	out := make([]heldRow, len(rows))
	said := map[uint64]int{}
	for i, row := range rows {
		text := markText(row)
		said[text]++
		out[i] = heldRow{mark: markOf(text, said[text]), json: row}
	}
	return out
}

// pass notes that a row is done.
func (t *token) pass(mark uint64) { t.Done = appendMark(t.Done, mark, maxDone) }

// meet notes that DISTINCT let a row pass.
func (t *token) meet(mark uint64, p *sql.Program) {
	most := maxMet
	if len(p.OrderBy()) > 0 {
		most = 1
	}
	t.Met = appendMark(t.Met, mark, most)
}

// appendMark adds a mark, and drops the first if there are too many.
func appendMark(marks []byte, mark uint64, most int) []byte {
	marks = binary.BigEndian.AppendUint64(marks, mark)
	return marks[max(0, len(marks)-most*markBytes):]
}

// marksIn returns where each mark is.
func marksIn(marks []byte) map[uint64]int {
	at := map[uint64]int{}
	for i := 0; i+markBytes <= len(marks); i += markBytes {
		at[binary.BigEndian.Uint64(marks[i:])] = i
	}
	return at
}

// show notes that a row was shown.
func (t *token) show(mark uint64) {
	t.pass(mark)
	t.Taken++
}

// goOn returns where the rows begin that are not done, of n rows with these marks, and
// how many to pass over from there.
func (t *token) goOn(n int, mark func(i int) uint64, offset int64) (first int, pass int64) {
	if len(t.Done) == 0 {
		return 0, offset + t.Taken
	}
	age := marksIn(t.Done)
	latest := -1
	for i := range n {
		if at, ok := age[mark(i)]; ok && at > latest {
			latest, first = at, i+1
		}
	}
	if latest >= 0 {
		return first, 0
	}
	return 0, max(0, offset+t.Taken-int64(len(t.Done)/markBytes))
}

// emitFrom makes a page of rows that are all known, from where the last one ended.
func (x *execution) emitFrom(rows []heldRow, offset int64) error {
	first, pass := x.at.goOn(len(rows), func(i int) uint64 { return rows[i].mark }, offset)
	limit := x.q.Program.Slice().Limit
	for i := first; i < len(rows) && x.at.Taken < limit; i++ {
		row, ok, err := &rows[i], true, error(nil)
		// A row that is passed over is made only if there may be none.
		if row.json == nil && (pass == 0 || x.q.Program.SelectsValue()) {
			row.json, ok, err = x.rowOf(row.ordinal)
		}
		switch {
		case err != nil:
			return err
		case !ok:
			continue
		case pass > 0:
			pass--
			x.at.pass(row.mark)
			continue
		}
		x.emit(row.json)
		x.at.show(row.mark)
		if x.full() && i+1 < len(rows) && x.at.Taken < limit {
			x.end()
			return nil
		}
	}
	return nil
}
