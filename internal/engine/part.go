// SPDX-License-Identifier: MIT

// Parts of queries that clients merge, for a range that was split: what a plan has a client
// send to each range (clientplan.IsPart). The partitions that were made from the range answer
// in its place, whichever nodes own them, as the range would have.
//
//  1. Rows in order are merged (merge_range.go), those with equal keys by their items. So they
//     come in the order in which the range had them, and a place in it is one in each partition.
//  2. Other rows come of one partition after the other, in pages of their own: the client puts them
//     together anyway.
//
// What cannot be done so is refused as all other requests for the range are, with ErrRangeGone:
// most clients then read the ranges again, and go on in those.

package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
)

const (
	// partPrefix is what the continuation of a part begins with, and no other.
	partPrefix = "part."
	// maxPartContinuation is less than any SDK takes in a header.
	maxPartContinuation = 8 << 10
)

// part is what a merge has to know if it answers for a range that was split.
type part struct {
	text  string // the query as its continuations know it
	order []clientplan.SortOrder
	of    []int // the positions of the partitions whose rows are asked for
	// origin is the range that was split, and token the continuation that it gave before.
	origin int
	token  string
}

// isPartContinuation reports whether a page of a part goes on, which may be in any of the ranges
// that were made from its range.
func isPartContinuation(text string) bool { return strings.HasPrefix(text, partPrefix) }

// queryPart answers a request that names a range which was split, or goes on with a part, if it
// is for a part. It refuses all others.
func (e *Engine) queryPart(ctx context.Context, r *Request) (page Answer, err error) {
	if _, err = e.lookUp(r, &page, ru.Refused); err != nil {
		return page, err
	}
	c, began := page.Container, e.meters.elapsed()
	p, err := e.compile(ctx, c, &r.Query)
	if err != nil {
		return page, err
	}
	if err := checkOrder(c, p); err != nil {
		return page, err
	}
	m := &merge{e: e, ctx: ctx, r: r, c: c, page: &page, rows: pageRows(p, r), look: e.Watch(ctx), began: began, last: -1}
	if err := m.beginPart(p); err != nil {
		return page, err
	}
	defer m.letGo()
	page.Compiled, page.LatestFirst, page.Charge = e.meters.elapsed()-began, p.LatestFirst(), 0
	page.Merged = p.Distinct() || p.HasGroupKeys()
	if m.part.order != nil {
		err = m.ordered(&clientplan.QueryInfo{OrderBy: m.part.order}, m.put)
	} else {
		err = m.listed(r.Query.Text, m.put)
	}
	if errors.Is(err, query.ErrSortTooLarge) || errors.Is(err, query.ErrQueryTime) {
		err = ErrRangeGone // one partition alone may need less
	}
	return page, err
}

// beginPart begins where the page before has ended.
func (m *merge) beginPart(p *sql.Program) (err error) {
	r := m.r
	if r.PartitionKey != "" || r.Range == "" {
		return ErrContinuation
	}
	id, err := rangeNumber(m.c, r.Range)
	if err != nil {
		return err
	}
	all := descendants(m.c, id, 0, len(m.c.Ranges)-1)
	if m.positions, err = m.reached(p, all); err != nil {
		return err
	}
	relearns := r.Relearns && r.Continuation == "" && slices.Contains(all, len(m.c.Ranges)-1)
	switch isPart := clientplan.IsPart(p, len(m.positions) == 1) && !r.Optimistic; {
	case len(all) == 0 || relearns || !isPart && !isPartContinuation(r.Continuation):
		return ErrRangeGone
	case !isPart:
		return ErrContinuation
	}
	m.part = &part{text: unfiltered(p), of: all, origin: id, token: r.Continuation}
	if p.Query().OrderBy != nil {
		m.part.order = clientplan.PartOrder(p)
	}
	m.exact = m.part.order == nil || query.Resumable(p)
	at, goesOn, err := parseMergedContinuation(partPrefix, r.Continuation)
	switch {
	case err != nil:
		return err
	case !goesOn:
		at = mergedContinuation{Query: m.fingerprint()}
	case at.Query != m.fingerprint() || m.exact && len(at.Keys) != len(m.part.order) || m.part.order == nil && at.Places == nil:
		return ErrContinuation
	default:
		m.part.token = at.Token
	}
	done := query.DoneBefore(tokenOf(m.part.token))
	if !goesOn {
		at.Rows, at.RID, at.Same = done.Taken, m.c.RID.ItemRID(done.Ordinal), int64(done.Rows)
	} else if !m.exact {
		m.part.origin = at.Range
		m.positions, err = m.reached(p, descendants(m.c, at.Range, 0, len(m.c.Ranges)-1))
		if err != nil || len(m.positions) == 0 {
			return ErrContinuation
		}
	}
	if limit := p.Slice().Limit; limit != sql.NoLimit {
		m.last = limit
	}
	m.at = at
	if m.begin(); !m.exact {
		m.n = done.Taken
		m.passing = m.n < at.Rows
	}
	return nil
}

// tokenOf returns the token of a continuation of one range.
func tokenOf(continuation string) string {
	_, token, _ := strings.Cut(continuation, ".")
	return token
}

// reached returns those of the partitions that the query can have rows of, or any if it has none.
func (m *merge) reached(p *sql.Program, all []int) ([]int, error) {
	bounds, err := rangeScope(m.c, "", m.r.StartEPK, m.r.EndEPK)
	if err != nil {
		return nil, err
	}
	keyed := keyPositions(m.c, clientplan.ScopeKeys(p, m.c.PartitionKey.Paths))
	of := slices.DeleteFunc(slices.Clone(all), func(i int) bool {
		return i < bounds.first || i > bounds.last || !slices.Contains(keyed, i)
	})
	if len(of) == 0 && len(all) > 0 {
		of = all[:1]
	}
	return of, nil
}

// partCursors fills in a cursor for each partition. A place in the order is the same in all.
func (m *merge) partCursors(all []*cursor) []*cursor {
	var f *resumeFilter
	token, passed := m.part.token, int64(0)
	if m.at.Keys != nil {
		f, token, passed = &resumeFilter{Value: m.at.Keys, RID: m.at.RID}, "", m.at.Same
	} else if own := m.r.Query.Resume; own != nil {
		f = &resumeFilter{Value: resumeTexts(own.Values), RID: own.RID, Exclude: own.Exclude}
	}
	body := m.body(m.r.Query.Text, f)
	for n, i := range m.positions {
		all[n] = &cursor{at: i, body: body, token: token, item: m.at.RID, passed: passed}
	}
	return all
}

// continuePartAt continues the page at a place, or, where none is exact, after as many rows.
func (m *merge) continuePartAt(at mergedContinuation) error {
	if !m.exact {
		at.Range, at.Token = m.part.origin, m.part.token
	}
	limit := maxPartContinuation
	if m.r.MaxContinuationKB > 0 {
		limit = min(limit, m.r.MaxContinuationKB<<10)
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return err
	}
	m.page.Continuation = partPrefix + base64.RawURLEncoding.EncodeToString(raw)
	if len(m.page.Continuation) > limit {
		m.page.Continuation = ""
		return ErrRangeGone
	}
	return nil
}

// unfiltered returns the text of a query as its continuations know it: a place in an order holds
// under any filter, and clients change that to go on.
func unfiltered(p *sql.Program) string {
	q := *p.Query()
	if q.OrderBy != nil {
		q.Where = nil
	}
	return q.String()
}
