// SPDX-License-Identifier: MIT

// Listing the items of a container, page by page.

package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	defaultPageItems = 100
	maxPageItems     = 1000
	maxPageBytes     = 4 << 20
)

// ListItems returns a page of the items of a container, of one of its partition
// key ranges or of one partition key, in the order of their creation.
func (e *Engine) ListItems(ctx context.Context, r *Request) (page Answer, err error) {
	nowMs := e.clock.Now()
	defer e.observe(e.begin())
	seen, err := e.lookUp(r, &page, ru.ListBase)
	if err != nil {
		return page, err
	}
	c := page.Container
	s, err := pageScope(c, r)
	if err != nil {
		return page, err
	}
	q := store.List{MaxItems: pageItems(r.MaxItems), MaxBytes: maxPageBytes, Within: s.Logical, MinEPK: s.MinEPK, MaxEPK: s.MaxEPK}
	if r.Continuation != "" {
		if s.first, q.After, err = parseContinuation(c, r.Continuation, s.first, s.last); err != nil {
			return page, err
		}
	}
	page.Charge = 0 // nothing was read yet
	ends := e.meters.elapsed() + query.PageTime
	for i := s.first; i <= s.last; i++ {
		p, err := e.partition(c, i)
		if err == nil {
			err = e.meters.admit(c, i)
		}
		if err != nil && i > s.first && endsPage(err) {
			// The client gets what is there, and asks for the rest later.
			page.Continuation = continuation(c, store.FirstOrdinal(i))
			break
		}
		if err != nil {
			return page, err
		}
		page.Partition = i
		part, err := p.List(ctx, q, nowMs)
		if err != nil {
			e.listFailed(&page, err)
			return page, err
		}
		page.LSN = part.LSN
		if err := seen.check(i, part.LSN); err != nil {
			e.listFailed(&page, err)
			return page, err
		}
		if page.Count > 0 && part.Count > 0 && len(part.Items) > q.MaxBytes {
			// A partition returns its first item whatever its size, but here it is not
			// the page's first.
			page.Continuation = continuation(c, store.FirstOrdinal(i))
			break
		}
		e.addRows(&page, part.Items, part.Count, ru.Read(0))
		if part.More {
			page.Continuation = continuation(c, part.Last)
			break
		}
		q.After = 0
		q.MaxItems -= part.Count
		q.MaxBytes -= len(part.Items)
		if i < s.last && (q.MaxItems <= 0 || q.MaxBytes <= 0 || e.meters.elapsed() > ends) {
			page.Continuation = continuation(c, store.FirstOrdinal(i+1))
			break
		}
	}
	return page, nil
}

// endsPage reports whether a page ends before the partition that the error is of: it is
// throttled, or another node owns it.
func endsPage(err error) bool {
	var throttled *ThrottledError
	var elsewhere *NotOwnerError
	return errors.As(err, &throttled) || errors.As(err, &elsewhere)
}

// addRows adds the rows of a partition to a page, and settles the increase of the page's
// charge with that partition. So the page's charge is that of all its rows together. A
// page without rows costs empty.
func (e *Engine) addRows(page *Answer, rows []byte, n int, empty ru.Units) {
	switch {
	case n == 0:
	case page.Count == 0:
		page.Rows = rows
	default:
		page.Rows = append(append(page.Rows, ','), rows...)
	}
	page.Count += n
	before := page.Charge
	if page.Charge = ru.ListBase + empty; page.Count > 0 {
		page.Charge = ru.ListBase + ru.Read(len(page.Rows))
	}
	e.meters.settle(page.Container, page.Partition, page.Charge-before)
}

// listFailed charges for a page that ends with an error.
func (e *Engine) listFailed(page *Answer, err error) {
	if page.Charge == 0 && !errors.Is(err, store.ErrClosed) {
		page.Charge = ru.ListBase
		e.meters.settle(page.Container, page.Partition, page.Charge)
	}
}

func pageItems(asked int) int {
	switch {
	case asked == 0:
		return defaultPageItems
	case asked < 0 || asked > maxPageItems:
		return maxPageItems
	}
	return asked
}

// A continuation is the rid after which the next page begins. Its ordinal also tells the
// partition, and it stays valid if the item is deleted.
const continuationPrefix, continuationSuffix = "+RID:", "#RT:1"

func continuation(c *catalog.Container, after uint64) string {
	return continuationPrefix + c.RID.ItemRID(after) + continuationSuffix
}

func parseContinuation(c *catalog.Container, text string, first, last int) (partition int, after uint64, err error) {
	inner, ok1 := strings.CutPrefix(text, continuationPrefix)
	inner, ok2 := strings.CutSuffix(inner, continuationSuffix)
	after, ok3 := c.RID.Ordinal(inner)
	partition = store.PartitionOf(after)
	if !ok1 || !ok2 || !ok3 || partition < first || partition > last {
		return 0, 0, ErrContinuation
	}
	return partition, after, nil
}
