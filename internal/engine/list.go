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
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	defaultPageItems = 100
	maxPageItems     = 1000
	maxPageBytes     = 4 << 20
)

// ItemList is a request for a page of a container's items.
type ItemList struct {
	Target
	// Range is the id of the one partition key range to list, or empty for all.
	Range string
	// StartEPK and EndEPK bound the effective partition keys, as hexadecimal text.
	StartEPK, EndEPK string
	// MaxItems is what the client asked for: 0 for nothing, -1 for as many as fit.
	MaxItems     int
	Continuation string
	SessionToken string
}

// ItemPage is a page of items.
type ItemPage struct {
	Container *catalog.Container
	// Partition is the last that the page has looked at.
	Partition int
	// Items holds the items' JSON, with commas between them.
	Items []byte
	Count int
	// Continuation asks for the next page; empty after the last.
	Continuation string
	LSN          uint64
	Charge       ru.Units
}

// ListItems returns a page of the items of a container, of one of its partition
// key ranges or of one partition key, in the order of their creation.
func (e *Engine) ListItems(ctx context.Context, r ItemList) (ItemPage, error) {
	defer e.observe(e.begin())
	session, err := parseSession(r.SessionToken)
	if err != nil {
		return ItemPage{Charge: ru.ListBase}, err
	}
	nowMs := e.clock.Now()
	var page ItemPage
	err = whileClosed(func() (err error) {
		page, err = e.listItems(ctx, r, session, nowMs)
		return err
	})
	return page, err
}

func (e *Engine) listItems(ctx context.Context, r ItemList, seen session, nowMs int64) (ItemPage, error) {
	page := ItemPage{Charge: ru.ListBase}
	c, err := e.target(r.Target)
	if err != nil {
		return page, err
	}
	page.Container = c
	q := store.List{MaxItems: pageItems(r.MaxItems), MaxBytes: maxPageBytes}
	first, last, err := listScope(c, &r, &q)
	if err != nil {
		return page, err
	}
	if r.Continuation != "" {
		if first, q.After, err = parseContinuation(c, r.Continuation, first, last); err != nil {
			return page, err
		}
	}
	page.Charge = 0 // nothing has been done yet
	ends := e.meters.elapsed() + query.PageTime
	for i := first; i <= last; i++ {
		if err := e.meters.admit(c, i); err != nil {
			if i == first {
				return page, err
			}
			// The client has what it could get, and asks for the rest again.
			page.Continuation = continuation(c, store.FirstOrdinal(i))
			break
		}
		page.Partition = i
		p, err := e.partition(c, i)
		if err != nil {
			return page, e.listFailed(&page, err)
		}
		part, err := p.List(ctx, q, nowMs)
		if err != nil {
			return page, e.listFailed(&page, err)
		}
		page.LSN = part.LSN
		if err := seen.check(i, part.LSN); err != nil {
			return page, e.listFailed(&page, err)
		}
		if page.Count > 0 && part.Count > 0 && len(part.Items) > q.MaxBytes {
			// A partition's first item is returned whatever its size; here it
			// is not the page's first.
			page.Continuation = continuation(c, store.FirstOrdinal(i))
			break
		}
		page.add(&part)
		e.settleList(&page)
		if part.More {
			page.Continuation = continuation(c, part.Last)
			break
		}
		q.After = 0
		q.MaxItems -= part.Count
		q.MaxBytes -= len(part.Items)
		if i < last && (q.MaxItems <= 0 || q.MaxBytes <= 0 || e.meters.elapsed() > ends) {
			page.Continuation = continuation(c, store.FirstOrdinal(i+1))
			break
		}
	}
	return page, nil
}

// settleList charges the last partition of a page for what it has added to it, so
// that the page's charge is that of all its items together.
func (e *Engine) settleList(page *ItemPage) {
	before := page.Charge
	page.Charge = ru.ListBase + ru.Read(len(page.Items))
	e.meters.settle(page.Container, page.Partition, page.Charge-before)
}

// listFailed charges for a page that ends in an error.
func (e *Engine) listFailed(page *ItemPage, err error) error {
	if page.Charge == 0 && !errors.Is(err, store.ErrClosed) {
		page.Charge = ru.ListBase
		e.meters.settle(page.Container, page.Partition, page.Charge)
	}
	return err
}

func (page *ItemPage) add(part *store.Page) {
	switch {
	case part.Count == 0:
	case page.Count == 0:
		page.Items = part.Items
	default:
		page.Items = append(append(page.Items, ','), part.Items...)
	}
	page.Count += part.Count
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

// listScope returns the first and last partition to list, and narrows q to what of
// them was asked for.
func listScope(c *catalog.Container, r *ItemList, q *store.List) (first, last int, err error) {
	var s queryScope
	if r.PartitionKey != "" {
		var k value.PartitionKey
		if k, err = queryKey(c, r.PartitionKey); err == nil {
			s = keyScope(c, k)
		}
	} else {
		s, err = rangeScope(c, r.Range, r.StartEPK, r.EndEPK)
	}
	q.Within, q.MinEPK, q.MaxEPK = s.Logical, s.MinEPK, s.MaxEPK
	return s.first, s.last, err
}

// A continuation is the rid of the item after which to go on. Its ordinal tells
// the partition too, and it stays good whatever happens to the item.
const continuationPrefix, continuationSuffix = "+RID:", "#RT:1"

func continuation(c *catalog.Container, after uint64) string {
	return continuationPrefix + c.RID.ItemRID(after) + continuationSuffix
}

func parseContinuation(c *catalog.Container, text string, first, last int) (partition int, after uint64, err error) {
	inner, ok1 := strings.CutPrefix(text, continuationPrefix)
	inner, ok2 := strings.CutSuffix(inner, continuationSuffix)
	rid, ok3 := catalog.ParseRID(inner)
	if !ok1 || !ok2 || !ok3 || !rid.Item || rid.Container != c.RID {
		return 0, 0, ErrContinuation
	}
	partition = store.PartitionOf(rid.Ordinal)
	if partition < first || partition > last {
		return 0, 0, ErrContinuation
	}
	return partition, rid.Ordinal, nil
}
