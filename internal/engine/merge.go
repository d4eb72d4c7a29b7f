// SPDX-License-Identifier: MIT

// Queries whose rows have to be merged over several partitions, for clients that leave that
// to the server. SDKs do not: they ask for a plan, and merge themselves. Both follow the same
// plan, of package clientplan.
//
// Each partition is asked for pages of the plan's query, as a client would ask, by whichever
// node owns it (merge_range.go). How a page is continued is in merge_token.go.

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxMergedBytes bounds what a merge holds in memory beside its page: rows that it has
	// of the partitions, groups, and the rows that DISTINCT has met.
	maxMergedBytes = 64 << 20
	// mergedRowBytes is about what a row that is held takes beside its text.
	mergedRowBytes = 160
)

// QueryMerged is QueryItems for clients that leave it to the server to merge the rows of
// several partitions.
func (e *Engine) QueryMerged(ctx context.Context, r *Request) (page Answer, err error) {
	at, merged, err := parseMergedContinuation(mergedPrefix, r.Continuation)
	if err != nil {
		return page, err
	}
	if merged && (r.PartitionKey != "" || r.Range != "" || r.StartEPK != "" || r.EndEPK != "") {
		return page, ErrContinuation // of all partitions, and the request is for a part of them
	}
	if !merged {
		page, err = e.QueryItems(ctx, r)
		var needsPlan *NeedsPlanError
		if !errors.As(err, &needsPlan) || r.StartEPK != "" || r.EndEPK != "" {
			return page, err
		}
	}
	page = Answer{}
	if _, err = e.lookUp(r, &page, ru.Refused); err != nil {
		return page, err
	}
	program, err := e.compile(ctx, page.Container, &r.Query)
	if err != nil {
		return page, err
	}
	if err := checkOrder(page.Container, program); err != nil {
		return page, err
	}
	plan, err := clientplan.New(program, clientplan.Options{Features: ^clientplan.FeatureSet(0), PartitionKey: page.Container.PartitionKey.Paths})
	if err != nil {
		return page, err
	}
	positions := keyPositions(page.Container, plan.Keys)
	m := &merge{e: e, ctx: ctx, r: r, c: page.Container, plan: plan, positions: positions, page: &page, rows: pageItems(r.MaxItems), at: at, look: e.Watch(ctx), began: e.meters.elapsed()}
	if len(positions) == 1 && !merged {
		lasts, err := m.lasts()
		if err != nil {
			return page, err
		}
		if !lasts || r.Continuation != "" {
			one := *r
			one.Range = catalog.RangeID(page.Container.Ranges[positions[0]].ID)
			return e.QueryItems(ctx, &one)
		}
	}
	if !merged && r.Continuation != "" || merged && at.Query != m.fingerprint() {
		return page, ErrContinuation
	}
	defer m.letGo()
	page.Charge = 0 // from here on, what the partitions say
	err = m.answer()
	return page, err
}

// keyPositions returns the positions of the partitions that can have rows under the keys.
func keyPositions(c *catalog.Container, keys clientplan.KeyScope) (positions []int) {
	if !keys.All && len(keys.Keys) == 0 {
		return []int{0} // any partition gives the result
	}
	for i := range c.Ranges {
		has := func(k value.PartitionKey) bool {
			s := keyScope(c, k)
			return s.first <= i && i <= s.last
		}
		if keys.All || slices.ContainsFunc(keys.Keys, has) {
			positions = append(positions, i)
		}
	}
	return positions
}

// merge is a page in the making.
type merge struct {
	e         *Engine
	ctx       context.Context
	r         *Request
	c         *catalog.Container
	plan      *clientplan.Plan
	positions []int // of the partitions that are asked, in ascending order
	page      *Answer
	rows      int                // how many the page may have
	at        mergedContinuation // where the page begins
	look      func() error
	began     time.Duration

	// exact says that a continuation can tell where each partition goes on. Without that, a
	// page begins anew, and passes over the rows of the pages before.
	exact       bool
	info        *clientplan.QueryInfo // nil for ORDER BY RANK, and for a part
	first, last int64                 // the rows that are asked for; last is -1 for no end
	n           int64                 // how many rows of the result were met
	passing     bool                  // over the rows of the pages before
	mark        string                // of the last row, if rows are told apart
	seen        map[string]bool       // the marks of all rows, if equal ones are not adjacent
	held        int64                 // bytes of memory

	part *part // if the page is of a part of a query that a client merges
	from int   // the position of the partition of the row that is put
}

// answer makes the page.
func (m *merge) answer() error {
	if m.plan.Hybrid != nil {
		return m.ranked()
	}
	m.info = m.plan.Query
	m.first, m.last = m.info.Window()
	if m.info.Distinct == clientplan.DistinctUnordered {
		m.seen = map[string]bool{}
	}
	var err error
	if m.exact, err = m.tellsPlaces(); err != nil {
		return err
	}
	m.begin()
	switch {
	case m.info.Groups():
		return m.grouped()
	case m.info.OrderBy != nil:
		return m.ordered(m.info, func(row datum.Value) (bool, error) { return m.put(clientplan.Payload(row)) })
	}
	if err := m.listed(m.info.Text(m.r.Query.Text), m.put); err != nil || !m.info.DistinctCount {
		return err
	}
	return m.emit(m.info.Counted(m.n))
}

// lasts reports whether the page is merged although one partition has all its rows: its
// continuation then goes on should the partition be split, and that of the partition would not.
func (m *merge) lasts() (bool, error) {
	if m.plan.Hybrid != nil || m.plan.Query.Distinct == clientplan.DistinctUnordered {
		return false, nil
	}
	m.info = m.plan.Query
	return m.tellsPlaces()
}

// tellsPlaces reports whether the page can be continued exactly where it ends, and is such a
// continuation itself.
func (m *merge) tellsPlaces() (bool, error) {
	switch {
	case m.info.Groups() || m.seen != nil || m.at.countsOnly():
		return false, nil
	case m.info.OrderBy == nil:
		return true, nil
	}
	program, err := m.e.compile(m.ctx, m.c, &Query{Text: m.info.Text(m.r.Query.Text), Params: m.r.Query.Params})
	return err == nil && !m.info.NonStreamingOrderBy && query.Resumable(program), err
}

// begin begins where the page before has ended.
func (m *merge) begin() {
	if m.exact {
		m.n, m.mark = m.at.Rows, m.at.Mark
		return
	}
	m.passing = m.at.Rows > 0
}

// grouped answers GROUP BY and aggregates, once all parts of all groups are there.
func (m *merge) grouped() error {
	groups := m.info.NewGroups()
	add := func(row datum.Value) (bool, error) { return false, m.hold(groups.Add(row)) }
	var err error
	if m.info.OrderBy != nil {
		err = m.ordered(m.info, func(row datum.Value) (bool, error) { return add(clientplan.Payload(row)) })
	} else {
		err = m.listed(m.info.Text(m.r.Query.Text), add)
	}
	if err != nil {
		return err
	}
	return m.putAll(groups.Rows)
}

// ranked answers ORDER BY RANK, once all rows are there that one of the scores has found.
func (m *merge) ranked() error {
	h := m.plan.Hybrid
	m.first, m.last = h.Window()
	m.begin()
	var statistics []datum.Value
	if h.Statistics != "" {
		err := m.listed(h.Statistics, func(row datum.Value) (bool, error) {
			statistics = append(statistics, row.Detach())
			return false, m.hold(row.Size() + mergedRowBytes)
		})
		if err != nil {
			return err
		}
	}
	var found []datum.Value
	met := map[string]bool{}
	for i := range h.Components {
		info := h.Filled(i, statistics)
		first, last := info.Window()
		n := int64(0)
		err := m.ordered(info, func(row datum.Value) (bool, error) {
			n++
			if rid := clientplan.RID(row); n > first && !met[rid] {
				met[rid] = true
				found = append(found, clientplan.Payload(row).Detach())
				if err := m.hold(row.Size() + 2*mergedRowBytes); err != nil {
					return false, err
				}
			}
			return last >= 0 && n >= last, nil
		})
		if err != nil {
			return err
		}
	}
	return m.putAll(slices.Values(h.Fused(found)))
}

// putAll puts rows into the page as far as they fit.
func (m *merge) putAll(rows iter.Seq[datum.Value]) error {
	for row := range rows {
		if end, err := m.put(row); end || err != nil {
			return err
		}
	}
	return nil
}

// put puts the next row of the result into the page if it belongs there, and reports whether
// the page ends before it or with it.
func (m *merge) put(row datum.Value) (end bool, err error) {
	switch {
	case m.last >= 0 && m.n >= m.last:
		return true, nil
	case !m.exact && m.full():
		return true, m.continueAt(mergedContinuation{})
	}
	if m.info != nil && m.info.Distinct != clientplan.DistinctNone {
		if again, err := m.met(row); again || err != nil {
			return false, err
		}
	}
	m.n++
	switch {
	case m.info != nil && m.info.DistinctCount:
		return false, nil
	case m.passing:
		// Without the row that the last page ended with, the number decides.
		if m.seen != nil && m.mark == m.at.Mark {
			m.n = m.at.Rows
		}
		m.passing = m.n < m.at.Rows
		return false, nil
	case m.n <= m.first:
		return false, nil
	case m.part != nil && !slices.Contains(m.part.of, m.from):
		return m.n == m.last, nil
	}
	return m.n == m.last, m.emit(row)
}

// met reports whether DISTINCT has met an equal row, and remembers this one.
func (m *merge) met(row datum.Value) (again bool, err error) {
	sum := sha256.Sum256(row.AppendCanonical(nil))
	mark := base64.RawStdEncoding.EncodeToString(sum[:markBytes])
	if m.seen == nil {
		again = mark == m.mark
	} else if again = m.seen[mark]; !again {
		m.seen[mark] = true
		err = m.hold(len(mark) + mergedRowBytes)
	}
	if !again {
		m.mark = mark
	}
	return again, err
}

// markBytes is how much of a row's hash tells it apart.
const markBytes = 16

// emit adds a row to the page.
func (m *merge) emit(row datum.Value) error {
	if err := m.r.Memory.Take(m.ctx, int64(row.Size()+mergedRowBytes)); err != nil {
		return err
	}
	if m.page.Count > 0 {
		m.page.Rows = append(m.page.Rows, ',')
	}
	m.page.Rows = row.AppendJSON(m.page.Rows)
	m.page.Count++
	return nil
}

// full reports whether the page should end: it has all that it may have, or has worked for
// long enough. The latter ends no page whose next one would have to begin anew, and none
// without rows but those of a part in no order, whose clients are used to that.
func (m *merge) full() bool {
	return m.page.Count >= m.rows || len(m.page.Rows) >= maxPageBytes ||
		m.exact && (m.page.Count > 0 || m.part != nil && m.part.order == nil) && m.e.meters.elapsed()-m.began > query.PageTime
}

// wanted is how many rows a partition is asked for.
func (m *merge) wanted() int {
	if !m.exact {
		return maxRangeRows
	}
	return int(min(int64(m.rows-m.page.Count)+max(m.first-m.n, 0), maxRangeRows))
}

// mostHeld is how much memory a merge may hold.
func (m *merge) mostHeld() int64 { return min(maxMergedBytes, m.r.Memory.Most()) }

// hold takes memory for something that outlives a row.
func (m *merge) hold(bytes int) error {
	if m.held+int64(bytes) > m.mostHeld() {
		return query.ErrSortTooLarge
	}
	if err := m.r.Memory.Take(m.ctx, int64(bytes)); err != nil {
		return err
	}
	m.held += int64(bytes)
	return nil
}

// release gives back memory that was held.
func (m *merge) release(bytes int) {
	m.held -= int64(bytes)
	m.r.Memory.Give(int64(bytes))
}

// letGo gives back all memory but the page's.
func (m *merge) letGo() { m.release(int(m.held)) }
