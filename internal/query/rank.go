// SPDX-License-Identifier: MIT

// ORDER BY RANK: scores depend on all items, so they are looked at twice: once to
// learn how common the terms are, and once for the rows. Where an index knows the
// words of the texts, it is asked instead of the items.

package query

import (
	"cmp"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
)

// rankedRow is a row with what it is ranked by.
type rankedRow struct {
	heldRow
	scores []float64
}

// rank answers a query whose rows are ordered by how well they match.
func (x *execution) rank() error {
	stats, err := x.statistics()
	if err != nil {
		return err
	}
	if p, ok := x.path.(*textPath); ok {
		return x.rankTexts(p, stats)
	}
	ranking := x.q.Program.Ranking()
	var rows []rankedRow
	err = x.path.find(x, func(c candidate) (bool, error) {
		var failed error
		n := 0
		err := x.runner.Rows(datum.Raw(c.Body), func() bool {
			n++
			row, ok, err := x.runner.AppendProjection(nil)
			if failed = err; err != nil || !ok {
				return err == nil
			}
			score, err := x.runner.AppendScores(nil, stats)
			if err == nil {
				err = x.hold(len(row) + rowOverhead)
			}
			rows, failed = append(rows, rankedRow{heldRow{markOf(c.Ordinal, n), row, c.Ordinal}, score}), err
			return err == nil
		})
		return true, errors.Join(err, failed)
	})
	if err != nil {
		return err
	}
	// Rows that are equally good come in the order of their creation, however they were
	// found.
	slices.SortStableFunc(rows, func(a, b rankedRow) int { return cmp.Compare(a.ordinal, b.ordinal) })
	scores := make([][]float64, len(rows))
	for i := range rows {
		scores[i] = rows[i].scores
	}
	ranked := make([]heldRow, 0, len(rows))
	for _, i := range ranking.Rank(scores) {
		again, err := x.known(rows[i].json)
		if err != nil {
			return err
		}
		if !again {
			ranked = append(ranked, rows[i].heldRow)
		}
	}
	return x.emitFrom(ranked, x.q.Program.Slice().Offset)
}

// statistics counts the terms of a ranking, in all items, also those that have no row.
func (x *execution) statistics() ([]function.TextStatistics, error) {
	ranking := x.q.Program.Ranking()
	stats := ranking.NewStatistics()
	_, all := x.path.(allItems)
	if questions, ok := ranking.Texts(); ok && x.pl.indexed && !(all && x.q.Scope.Logical != nil) {
		if p := x.pl.answers(questions); p != nil {
			return stats, p.each(x, func(item textItem) (bool, error) {
				for i, count := range item.counts {
					stats[i].Add(count)
				}
				return true, nil
			})
		}
	}
	count := func(c candidate) (bool, error) { return true, x.runner.CountText(stats, datum.Raw(c.Body)) }
	return stats, allItems{}.find(x, count)
}

// rankTexts ranks all items by what the index knows of their texts, and reads those
// that the page shows.
func (x *execution) rankTexts(p *textPath, stats []function.TextStatistics) error {
	ranking := x.q.Program.Ranking()
	var ordinals []uint64
	var scores [][]float64
	err := p.each(x, func(item textItem) (bool, error) {
		ordinals = append(ordinals, item.ordinal)
		scores = append(scores, ranking.TextScores(nil, stats, item.counts))
		return true, x.hold(rankedBytes + 8*len(item.counts))
	})
	if err != nil {
		return err
	}
	rows := make([]heldRow, 0, len(ordinals))
	for _, i := range ranking.Rank(scores) {
		rows = append(rows, heldRow{mark: markOf(ordinals[i], 1), ordinal: ordinals[i]})
	}
	return x.emitFrom(rows, x.q.Program.Slice().Offset)
}

// rowOf reads an item and makes its row, if it has one.
func (x *execution) rowOf(ordinal uint64) (row []byte, ok bool, err error) {
	f, live, err := x.r.Get(ordinal)
	if err != nil || !live {
		return nil, false, err
	}
	x.read(&f)
	if _, err := x.runner.Filter(datum.Raw(f.Body)); err != nil {
		return nil, false, err
	}
	x.page.Work.Matched++ // it has been ranked
	return x.runner.AppendProjection(nil)
}

// rankedBytes is about what an item takes that is ranked without being read.
const rankedBytes = 96
