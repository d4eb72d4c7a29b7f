// SPDX-License-Identifier: MIT

// Listing the items of a container, page by page.

package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
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
	var begun listPlaces
	if r.Continuation != "" {
		if begun, err = parseContinuation(c, r.Continuation, s.first, s.last); err != nil {
			return page, err
		}
		s.first = begun[0].at
	}
	page.Charge = 0 // nothing was read yet
	ends := e.meters.elapsed() + query.PageTime
	for i := s.first; i <= s.last; i++ {
		id := c.Ranges[i].ID
		p, err := e.partition(c, id)
		if err == nil {
			err = e.meters.admit(c, id)
		}
		if err != nil && i > s.first && endsPage(err) {
			// The client gets what is there, and asks for the rest later.
			page.Continuation = begun.continuation(c, i)
			break
		}
		if err != nil {
			return page, err
		}
		page.Partition = id
		q.After = begun.after(c, i)
		part, err := p.List(ctx, q, nowMs)
		if err != nil {
			e.listFailed(&page, err)
			return page, err
		}
		page.LSN = part.LSN
		if err := seen.check(&c.Ranges[i], part.LSN); err != nil {
			e.listFailed(&page, err)
			return page, err
		}
		if page.Count > 0 && part.Count > 0 && len(part.Items) > q.MaxBytes {
			// A partition returns its first item whatever its size, but here it is not
			// the page's first.
			page.Continuation = begun.continuation(c, i)
			break
		}
		e.addRows(&page, part.Items, part.Count, ru.Read(0))
		if part.More {
			page.Continuation = begun.at(i, part.Last).continuation(c, i)
			break
		}
		q.MaxItems -= part.Count
		q.MaxBytes -= len(part.Items)
		if i < s.last && (q.MaxItems <= 0 || q.MaxBytes <= 0 || e.meters.elapsed() > ends) {
			page.Continuation = begun.continuation(c, i+1)
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
// partition, and it stays valid if the item is deleted:
//
//	+RID:{rid}#RT:1
//
// A partition that was made by a split has items with ordinals of its parents. So there its
// id follows, and then where the next ones begin that were made from the same range, if the
// page began in that:
//
//	+RID:{rid}#RT:1#PKR:{id},{id}:{ordinal},…
const continuationPrefix, continuationSuffix, continuationRanges = "+RID:", "#RT:1", "#PKR:"

// listPlace is a partition, by its position, and the ordinal after which a list begins there.
type listPlace struct {
	at      int
	ordinal uint64
}

// listPlaces are where a list begins, in ascending order of positions, the first one first.
// In the partitions that are not among them it begins at the beginning.
type listPlaces []listPlace

// from returns the places from a position on.
func (l listPlaces) from(i int) listPlaces {
	n := slices.IndexFunc(l, func(p listPlace) bool { return p.at >= i })
	if n < 0 {
		return nil
	}
	return l[n:]
}

// at returns the places from a position on, with another beginning there.
func (l listPlaces) at(i int, ordinal uint64) listPlaces {
	return append(listPlaces{{i, ordinal}}, l.from(i+1)...)
}

// after returns the ordinal after which the list begins in a partition.
func (l listPlaces) after(c *catalog.Container, i int) uint64 {
	if next := l.from(i); len(next) > 0 && next[0].at == i {
		return next[0].ordinal
	}
	if r := &c.Ranges[i]; len(r.Parents) == 0 {
		return store.FirstOrdinal(r.ID)
	}
	return 0
}

// continuation returns the text for a page that begins at a position.
func (l listPlaces) continuation(c *catalog.Container, i int) string {
	id, after := c.Ranges[i].ID, l.after(c, i)
	text, rest := continuation(c, after), l.from(i+1)
	if store.PartitionOf(after) == id && len(rest) == 0 {
		return text
	}
	text += continuationRanges + strconv.Itoa(id)
	for _, p := range rest {
		text += "," + strconv.Itoa(c.Ranges[p.at].ID) + ":" + strconv.FormatUint(p.ordinal, 10)
	}
	return text
}

func continuation(c *catalog.Container, after uint64) string {
	return continuationPrefix + c.RID.ItemRID(after) + continuationSuffix
}

// parseContinuation returns where a list of the partitions from first to last goes on.
func parseContinuation(c *catalog.Container, text string, first, last int) (places listPlaces, err error) {
	text, ranges, split := strings.Cut(text, continuationRanges)
	inner, ok1 := strings.CutPrefix(text, continuationPrefix)
	inner, ok2 := strings.CutSuffix(inner, continuationSuffix)
	after, ok3 := c.RID.Ordinal(inner)
	if !ok1 || !ok2 || !ok3 || len(ranges) > maxContinuationBytes {
		return nil, ErrContinuation
	}
	if !split {
		ranges = strconv.Itoa(store.PartitionOf(after))
	}
	for n, part := range strings.Split(ranges, ",") {
		number, ordinal, other := strings.Cut(part, ":")
		id, err := strconv.ParseUint(number, 10, 16)
		if n > 0 && err == nil {
			after, err = strconv.ParseUint(ordinal, 10, 64)
		}
		if err != nil || other != (n > 0) {
			return nil, ErrContinuation
		}
		of := descendants(c, int(id), first, last)
		if len(of) == 0 || len(places) > 0 && of[0] <= places[len(places)-1].at {
			return nil, ErrContinuation
		}
		for _, i := range of {
			places = append(places, listPlace{i, after})
		}
	}
	return places, nil
}
