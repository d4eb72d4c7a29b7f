// SPDX-License-Identifier: MIT

// The whole of a query over items that are all in memory: rows are ordered, made distinct
// and cut in the order of the clauses, and not in pages as package query does.

package sql

import (
	"math"
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
)

// Evaluate runs a program over items, each compact JSON, and returns all its rows.
// Items and rows are in memory at once.
func Evaluate(p *Program, items [][]byte, cx *function.Context) ([][]byte, error) {
	if p.input != nil {
		var err error
		if items, err = Evaluate(p.input, items, cx); err != nil {
			return nil, err
		}
	}
	if !p.rowed {
		items = [][]byte{nil}
	}
	r := p.NewRunner(cx)
	var (
		rows []heldRow
		err  error
	)
	if p.Grouped() {
		rows, err = evaluateGroups(r, items)
	} else {
		rows, err = evaluateRows(r, items)
	}
	if err != nil {
		return nil, err
	}
	if p.Ranking() != nil {
		if rows, err = rankRows(r, items, rows); err != nil {
			return nil, err
		}
	}
	if len(p.OrderBy()) > 0 {
		slices.SortStableFunc(rows, func(a, b heldRow) int { return p.CompareSortKeys(a.keys, b.keys) })
	}
	if p.Distinct() {
		rows = distinctRows(rows)
	}
	slice := p.Slice()
	rows = rows[min(slice.Offset, int64(len(rows))):]
	rows = rows[:min(slice.Limit, int64(len(rows)))]
	result := make([][]byte, len(rows))
	for i := range rows {
		result[i] = rows[i].json
	}
	return result, nil
}

// EvaluateOver runs a program over the rows of its input, which the caller has: all in
// memory.
func EvaluateOver(p *Program, rows [][]byte, cx *function.Context) ([][]byte, error) {
	// The program is shared: what is changed is a copy.
	outer := *p
	outer.input = nil
	return Evaluate(&outer, rows, cx)
}

// heldRow is a row before it is ordered and cut. It has the item for ranking, which comes
// after all rows are known.
type heldRow struct {
	json []byte
	keys []datum.Value
	item []byte
}

// rankRows orders the rows of a query with ORDER BY RANK, where every item has
// one at most. Statistics are counted over all items, also those that the filter leaves out.
func rankRows(r *Runner, items [][]byte, rows []heldRow) ([]heldRow, error) {
	ranking := r.p.Ranking()
	stats := ranking.NewStatistics()
	for _, item := range items {
		if err := r.CountText(stats, datum.Raw(item)); err != nil {
			return nil, err
		}
	}
	scores := make([][]float64, len(rows))
	for i, row := range rows {
		if _, err := r.Filter(datum.Raw(row.item)); err != nil {
			return nil, err
		}
		var err error
		if scores[i], err = r.AppendScores(nil, stats); err != nil {
			return nil, err
		}
	}
	ranked := make([]heldRow, 0, len(rows))
	for _, i := range ranking.Rank(scores) {
		ranked = append(ranked, rows[i])
	}
	return ranked, nil
}

// evaluateRows projects every row and keeps its sort keys. Keys are not computed for rows that
// are not in the result.
func evaluateRows(r *Runner, items [][]byte) (rows []heldRow, err error) {
	for _, item := range items {
		var failed error
		err := r.Rows(datum.Raw(item), func() bool {
			row := heldRow{item: item}
			var ok bool
			if row.json, ok, failed = r.AppendProjection(nil); failed != nil || !ok {
				return failed == nil
			}
			row.keys, failed = r.AppendSortKeys(nil)
			rows = append(rows, row)
			return failed == nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// evaluateGroups collects the rows of all items as a subquery collects those of one, but without
// its limit: the caller holds all items already.
func evaluateGroups(r *Runner, items [][]byte) (rows []heldRow, err error) {
	feed := func(add func() bool) bool {
		for _, item := range items {
			if r.Rows(datum.Raw(item), add) != nil {
				return false
			}
		}
		return true
	}
	r.p.main.runGroups(&r.f, feed, math.MaxInt, func(v datum.Value) bool {
		rows = append(rows, heldRow{json: v.AppendJSON(nil)})
		return r.finish(v) == nil
	})
	return rows, r.f.cx.Err()
}

// distinctRows leaves the first of equal rows, after they are ordered: which of them is first
// depends on the order.
func distinctRows(rows []heldRow) []heldRow {
	seen := datum.Set{}
	return slices.DeleteFunc(rows, func(row heldRow) bool { return seen.Add(datum.Raw(row.json)) == 0 })
}
