// SPDX-License-Identifier: MIT

// Rows that come in the order that was asked for: each is shown when it is found.

package query

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// streaming is a page in the making, of rows in order. It is a type with methods, since
// functions inside of one another would take memory anew for every item.
type streaming struct {
	*execution
	// replay is where the page goes on, if it begins before that: DISTINCT has to meet
	// again what it met before.
	replay *token
	row    func() bool // onRow, once for all items
	ended  bool
	failed error
	// ahead says that the page has all its rows, and looks for another. If there is one,
	// the next page begins with it.
	ahead bool

	// Of the item that is looked at:
	item candidate
	done bool // it is one of the pages before
	rows int  // how many it has had
}

// stream answers a query whose rows come in the order that was asked for.
func (x *execution) stream() error {
	if x.at.Taken >= x.q.Program.Slice().Limit {
		return nil
	}
	s := &streaming{execution: x}
	s.row = s.onRow
	x.endsAnywhere = x.q.PageTime > 0
	if x.seen != nil && x.at.position.started() {
		resume := x.at
		s.replay, x.at.position, x.behind = &resume, position{}, true
	}
	err := x.path.find(x, s.onItem)
	if err == nil && x.at.Taken >= x.q.Program.Slice().Limit {
		x.page.Token = ""
	}
	return err
}

// onItem shows the rows of an item.
func (s *streaming) onItem(c candidate) (more bool, err error) {
	s.item, s.rows, s.failed = c, 0, nil
	s.done = s.replay != nil && !s.replay.position.same(&s.item) && !s.before(&s.replay.position, &s.item)
	if s.behind && !s.done {
		s.catchUp()
	}
	err = s.runner.Rows(datum.Raw(c.Body), s.row)
	if err = errors.Join(err, s.failed); err != nil || s.ended {
		return false, err
	}
	if s.done {
		return true, nil
	}
	s.at.set(&s.item, s.rows)
	if s.late() && s.begins.beforeRow(&s.item, s.rows) {
		return false, s.endPage()
	}
	return true, nil
}

// onRow shows a row, if it is one of this page, and reports whether to go on.
func (s *streaming) onRow() bool {
	s.rows++
	s.matched = true
	if s.replay == nil && s.at.position.same(&s.item) && s.rows <= s.at.Rows {
		return true
	}
	if s.ended = s.at.Taken >= s.q.Program.Slice().Limit; s.ended {
		return false
	}
	begun := s.beginRow()
	written, ok, err := s.runner.AppendProjection(begun)
	s.page.Rows = written[:len(s.page.Rows)] // with the room that it has now
	if s.failed = err; err != nil || !ok {
		return err == nil
	}
	again, err := s.known(written[len(begun):])
	if s.failed = err; again || err != nil {
		return err == nil
	}
	if s.done || s.replay != nil && s.replay.position.same(&s.item) && s.rows <= s.replay.Rows {
		return true
	}
	if s.ahead {
		s.leave()
		return false
	}
	skip, end := s.window()
	if s.ended = end; skip || end {
		return !end
	}
	s.endRow(written)
	if s.ended = s.at.Taken >= s.q.Program.Slice().Limit; s.ended {
		return false
	}
	if s.ahead = s.full() && s.looksAhead(); s.ahead {
		return true
	}
	if s.full() || s.late() {
		s.at.set(&s.item, s.rows)
		s.failed, s.ended = s.endPage(), true
		return false
	}
	return true
}

// leave leaves the row that was found to the next page, which reads it again: so it is
// none of this page's work.
func (s *streaming) leave() {
	if s.rows == 1 {
		s.page.Work.Items--
		s.page.Work.Bytes -= int64(len(s.item.Body))
		s.matched = false
	}
	s.at.set(&s.item, s.rows-1)
	s.failed, s.ended = s.endPage(), true
}

// looksAhead reports whether a full page looks for another row before it says that there
// may be one: the page with the last row of a query has no continuation. All items of a
// range are an exception: there the service does not look, and clients count the empty
// page that follows.
func (x *execution) looksAhead() bool {
	_, all := x.path.(allItems)
	return !all || x.q.Scope.Logical != nil || x.q.Program.Query().Where != nil || x.q.Program.Distinct()
}

// endPage makes the token of what follows the position, with what the present row is
// ordered by.
func (x *execution) endPage() error {
	if x.path.order() == byKeys {
		keys, err := x.runner.AppendSortKeys(nil)
		if err != nil {
			return err
		}
		x.at.Keys = keyTexts(keys)
	}
	x.end()
	return nil
}

// end makes the token of what follows.
func (x *execution) end() {
	x.at.Path = x.path.name()
	x.page.Token = x.at.encode(&x.q)
}

// before reports whether a position comes before an item in the order of the path.
func (x *execution) before(p *position, c *candidate) bool {
	if w, ok := x.path.(*walkPath); ok {
		return w.before(x, p, c)
	}
	return p.Ordinal < c.Ordinal
}
