// SPDX-License-Identifier: MIT

// ORDER BY RANK: scores depend on all items, so they are read twice: once to learn
// how common the terms are, and once for the rows.

package query

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/sql"
)

// rank answers a query whose rows are ordered by how well they match.
func (x *execution) rank() error {
	ranking := x.q.Program.Ranking()
	stats := ranking.NewStatistics()
	chosen := x.plan
	x.plan = &plan{method: fullScan}
	if x.q.Scope.Logical != nil {
		x.plan.method = logicalScan
	}
	err := x.candidates(func(c candidate) (bool, error) { return true, x.runner.CountText(stats, sql.Raw(c.Body)) })
	x.plan = chosen
	if err != nil {
		return err
	}
	var rows [][]byte
	var scores [][]float64
	err = x.candidates(func(c candidate) (bool, error) {
		var failed error
		err := x.runner.Rows(sql.Raw(c.Body), func() bool {
			row, ok, err := x.runner.AppendProjection(nil)
			if failed = err; err != nil || !ok {
				return err == nil
			}
			score, err := x.runner.AppendScores(nil, stats)
			if err == nil {
				err = x.hold(len(row) + rowOverhead)
			}
			rows, scores, failed = append(rows, row), append(scores, score), err
			return err == nil
		})
		return true, errors.Join(err, failed)
	})
	if err != nil {
		return err
	}
	ranked := make([][]byte, 0, len(rows))
	for _, i := range ranking.Rank(scores) {
		again, err := x.met(rows[i])
		if err != nil {
			return err
		}
		if !again {
			ranked = append(ranked, rows[i])
		}
	}
	s := x.q.Program.Slice()
	ranked = ranked[min(s.Offset, int64(len(ranked))):]
	return x.emitFrom(ranked[:min(s.Limit, int64(len(ranked)))])
}

// emitFrom makes a page of rows that are all there, from where the last one ended.
func (x *execution) emitFrom(rows [][]byte) error {
	for i := int(min(x.at.Taken, int64(len(rows)))); i < len(rows); i++ {
		x.emit(rows[i])
		x.at.Taken = int64(i + 1)
		if x.due() && i+1 < len(rows) {
			x.at.Method = methodRows
			x.page.Token = x.at.encode(x.q.Program)
			return nil
		}
	}
	return nil
}
