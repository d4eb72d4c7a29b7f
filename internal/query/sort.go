// SPDX-License-Identifier: MIT

// Rows that have to be sorted, and rows of rows. A page of a sorted result holds no
// more than the page in memory, and what OFFSET passes over: each page looks at all
// items anew and keeps the first rows after its token.

package query

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
)

// sortedRow is a row with its position in the order.
type sortedRow struct {
	keys    []datum.Value
	ordinal uint64
	n       int // among the rows of its item
	json    []byte
	bytes   int
}

// detach makes the row's keys its own, and notes about how much memory it takes.
func (r *sortedRow) detach() {
	r.bytes = len(r.json) + rowOverhead
	detached := make([]datum.Value, len(r.keys))
	for i, k := range r.keys {
		detached[i] = k.Detach()
		if k.Kind() >= datum.KindString {
			r.bytes += len(k.AppendJSON(nil))
		}
	}
	r.keys = detached
}

// sort answers a query whose rows have to be put in order.
func (x *execution) sort() error {
	if x.at.Taken >= x.q.Program.Slice().Limit {
		return nil
	}
	h := &rowHeap{x: x, most: x.room()}
	if x.at.position.started() {
		h.after = &sortedRow{keys: x.at.keys, ordinal: x.at.Ordinal, n: x.at.Rows}
	}
	x.at.position, x.sorting = position{}, h
	later := x.projectsLater()
	whole := later && x.q.Program.Query().Select.Star // an item always has such a row
	var keys []datum.Value
	var row []byte
	err := x.path.find(x, func(c candidate) (bool, error) {
		n := 0
		var failed error
		err := x.runner.Rows(datum.Raw(c.Body), func() bool {
			n++
			x.matched = true
			if keys, failed = x.runner.AppendSortKeys(keys[:0]); failed != nil {
				return false
			}
			found := sortedRow{keys: keys, ordinal: c.Ordinal, n: n}
			if !h.wants(&found) {
				return true
			}
			ok := whole
			if !whole {
				row, ok, failed = x.runner.AppendProjection(row[:0])
			}
			if failed != nil || !ok {
				return failed == nil
			}
			if !later {
				found.json = bytes.Clone(row)
			}
			failed = h.add(found)
			return failed == nil
		})
		return true, errors.Join(err, failed)
	})
	if err != nil {
		return err
	}
	return x.emitSorted(h)
}

// projectsLater reports whether a row is made anew when it is shown, rather than held:
// items may be large, and few of those that are met are shown.
func (x *execution) projectsLater() bool { return x.q.Program.Plain() && !x.q.Program.Distinct() }

// project makes the row of an item.
func (x *execution) project(row *sortedRow) error {
	if row.json != nil {
		return nil
	}
	f, live, err := x.r.Get(row.ordinal)
	if err != nil || !live {
		return err
	}
	if _, err := x.runner.Filter(datum.Raw(f.Body)); err != nil {
		return err
	}
	row.json, _, err = x.runner.AppendProjection(nil)
	return err
}

// room is how many rows a page has to look at: those that it shows, those that
// OFFSET passes over, and one to know whether there are more. DISTINCT may need all.
func (x *execution) room() int {
	if x.q.Program.Distinct() {
		return 0
	}
	s := x.q.Program.Slice()
	shown := min(int64(x.q.MaxRows), s.Limit-x.at.Taken)
	return int(min(s.Offset-x.at.Skipped+shown+1, 1<<30))
}

// emitSorted makes a page of the first rows.
func (x *execution) emitSorted(h *rowHeap) error {
	rows := h.sorted()
	var last *sortedRow // of a page that is full
	for i := range rows {
		row := &rows[i]
		again, err := x.known(row.json)
		if err != nil {
			return err
		}
		if again || h.after != nil && x.q.Program.Distinct() && !h.less(h.after, row) {
			continue
		}
		if last != nil {
			x.endSorted(last)
			return nil
		}
		skip, end := x.window()
		if end {
			return nil
		}
		x.at.Ordinal, x.at.Rows, x.at.Keys = row.ordinal, row.n, nil
		if skip {
			continue
		}
		if err := x.project(row); err != nil {
			return err
		}
		x.emit(row.json)
		if x.full() {
			last = row
		}
	}
	if last != nil && h.dropped {
		x.endSorted(last)
	}
	return nil
}

// endSorted makes the token of what follows a row.
func (x *execution) endSorted(last *sortedRow) {
	if x.at.Taken < x.q.Program.Slice().Limit {
		x.at.Keys = keyTexts(last.keys)
		x.end()
	}
}

// rowHeap keeps the first rows of an order, the last of them on top.
type rowHeap struct {
	x       *execution
	most    int // of its rows; 0 is no limit
	rows    []sortedRow
	after   *sortedRow // rows up to this one were shown before
	dropped bool       // there were more
}

// less orders rows as compareRows does, and those of one item as they come.
func (h *rowHeap) less(a, b *sortedRow) bool {
	order := compareRows(h.x.q.Program, a.keys, b.keys, a.ordinal, b.ordinal)
	if order == 0 {
		order = a.n - b.n
	}
	return order < 0
}

// compareRows orders two rows by their keys, then in the order of their creation, or the
// opposite.
func compareRows(p *sql.Program, a, b []datum.Value, aOrdinal, bOrdinal uint64) int {
	order := p.CompareSortKeys(a, b)
	if order == 0 {
		if order = cmp.Compare(aOrdinal, bOrdinal); p.LatestFirst() {
			order = -order
		}
	}
	return order
}

// wants reports whether a row may be on the page.
func (h *rowHeap) wants(row *sortedRow) bool {
	if h.after != nil && h.most > 0 && !h.less(h.after, row) {
		return false
	}
	if h.most > 0 && len(h.rows) == h.most && !h.less(row, &h.rows[0]) {
		h.dropped = true
		return false
	}
	return true
}

// add keeps a row, and drops the last if there are too many.
func (h *rowHeap) add(row sortedRow) error {
	row.detach()
	if err := h.x.hold(row.bytes); err != nil {
		return err
	}
	heap.Push(h, row)
	if h.most > 0 && len(h.rows) > h.most {
		last := heap.Pop(h).(sortedRow)
		h.x.release(last.bytes)
		h.dropped = true
	}
	return nil
}

// sorted empties the heap, the first row first.
func (h *rowHeap) sorted() []sortedRow {
	rows := make([]sortedRow, len(h.rows))
	for i := len(rows) - 1; i >= 0; i-- {
		rows[i] = heap.Pop(h).(sortedRow)
	}
	return rows
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *rowHeap) Len() int           { return len(h.rows) }
func (h *rowHeap) Less(i, j int) bool { return h.less(&h.rows[j], &h.rows[i]) }
func (h *rowHeap) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *rowHeap) Push(row any)       { h.rows = append(h.rows, row.(sortedRow)) }
func (h *rowHeap) Pop() any {
	last := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return last
}

// nested answers a query over the rows of another that has to be complete first:
// SELECT … FROM (SELECT DISTINCT …). What the inner one gives is held in memory.
func (x *execution) nested() error {
	rows, err := x.inner(x.q.Program.Input())
	if err != nil {
		return err
	}
	cx := &function.Context{NowMs: x.q.NowMs, Random: x.q.Random, UDF: x.q.UDF, Interrupted: x.look, Every: x.q.every}
	outer, err := sql.EvaluateOver(x.q.Program, rows, cx)
	if err != nil {
		return err
	}
	return x.emitFrom(held(outer), 0) // OFFSET and LIMIT were applied
}

// innerCopies is how often the rows of an inner query are in memory besides: as one text,
// each by itself, and as the rows that the outer one makes of them.
const innerCopies = 3

// inner returns all rows of a query.
func (x *execution) inner(p *sql.Program) ([][]byte, error) {
	var rows [][]byte
	q := x.q
	q.Program, q.Token, q.MaxRows = p, "", 1<<30
	q.MaxBytes = maxHeldBytes
	q.PageTime = 0 // it has to be complete, or there is no page
	sub, err := newExecution(x.ctx, q, x.r)
	if err != nil {
		return nil, err
	}
	defer sub.letGo()
	if err := sub.answer(); err != nil {
		return nil, err
	}
	switch {
	case sub.crowded:
		return nil, memory.ErrFull
	case sub.page.Token != "":
		return nil, ErrSortTooLarge
	}
	if err := x.input(innerCopies * len(sub.page.Rows)); err != nil {
		return nil, err
	}
	for v := range datum.Raw(append(append([]byte{'['}, sub.page.Rows...), ']')).Elements {
		rows = append(rows, v.AppendJSON(nil))
	}
	x.page.Indexes = sub.page.Indexes
	x.page.Work.Items += sub.page.Work.Items
	x.page.Work.Bytes += sub.page.Work.Bytes
	x.page.Work.Matched += sub.page.Work.Matched
	x.page.Work.IndexRows += sub.page.Work.IndexRows
	return rows, nil
}
