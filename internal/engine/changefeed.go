// SPDX-License-Identifier: MIT

// The change feed: which partitions a request reads, where it continues in each, and its
// charge.

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
	"github.com/mayflydb/mayfly/internal/value"
)

// ChangeFeedNow is the position after all present changes.
const ChangeFeedNow = "*"

// ReadChangeFeed returns a page of the change feed of a container, of one of its
// partition key ranges, of a range of effective partition keys or of one partition
// key.
func (e *Engine) ReadChangeFeed(ctx context.Context, r *Request) (page Answer, err error) {
	nowMs := e.clock.Now()
	defer e.observe(e.begin())
	seen, err := e.lookUp(r, &page, ru.ListBase)
	if err != nil {
		return page, err
	}
	s, err := pageScope(page.Container, r)
	if err != nil {
		return page, err
	}
	at, err := r.position(page.Container, s.first, s.last)
	if err != nil {
		return page, err
	}
	page.Charge = 0 // nothing was read yet
	q := store.Changes{
		Within: s.Logical, MinEPK: s.MinEPK, MaxEPK: s.MaxEPK, AllVersions: r.AllVersions, Wrapped: r.Wrapped,
		MaxItems: pageItems(r.MaxItems), MaxBytes: maxPageBytes,
	}
	first, ends := at.turn, e.meters.elapsed()+query.PageTime
	for n := range at.starts {
		turn := (first + n) % len(at.starts)
		if q.MaxItems == 0 && at.starts[turn].Known() {
			page.More = true
			continue
		}
		of := &page.Container.Ranges[s.first+turn]
		page.Partition = of.ID
		q.Start = at.starts[turn]
		part, err := e.changesOf(ctx, &page, q, nowMs)
		if elsewhere := (*NotOwnerError)(nil); n > 0 && errors.As(err, &elsewhere) {
			more, err := e.peek(ctx, page.Container, page.Partition, &at.starts[turn], q.AllVersions)
			if err != nil {
				return page, err
			}
			if more && !page.More { // the next page begins there, at its owner
				page.More, at.turn = true, turn
			}
			continue
		}
		if err != nil {
			return page, err
		}
		if err := seen.check(of, part.LSN); err != nil {
			return page, err
		}
		at.starts[turn] = store.ChangeStart{After: part.Position, Incarnation: part.Incarnation}
		if part.More {
			page.More = true
			at.turn = (turn + 1) % len(at.starts)
		}
		q.MaxItems, q.MaxBytes = max(0, q.MaxItems-part.Count), q.MaxBytes-len(part.Items)
		if late := e.meters.elapsed() > ends; late && q.MaxItems > 0 {
			q.MaxItems, at.turn = 0, (turn+1)%len(at.starts)
		}
		if q.MaxBytes <= 0 {
			q.MaxItems = 0
		}
	}
	page.Continuation = at.encode()
	return page, nil
}

// peek reports whether a partition of another node has changes after a start, and replaces
// a start that is no position by one.
func (e *Engine) peek(ctx context.Context, c *catalog.Container, partition int, start *store.ChangeStart, allVersions bool) (more bool, err error) {
	seen, err := gatherThose(ctx, e, c, []int{partition}, opPeek, peeking{*start, allVersions})
	if err != nil {
		return false, err
	}
	found := seen[c.PositionOf(partition)]
	*start = found.Start
	return found.More, nil
}

// peeking is a question about changes after a start, and peeked the answer.
type (
	peeking struct {
		Start       store.ChangeStart
		AllVersions bool
	}
	peeked struct {
		Start store.ChangeStart
		More  bool
	}
)

// opPeek looks at the changes of a partition. It knows no bounds within the partition, so it
// may report changes that a page then leaves out.
var opPeek = newOperation(operation[peeking, peeked]{"peek", func(ctx context.Context, e *Engine, _ *catalog.Container, _ int, p *store.Partition, q peeking) (peeked, error) {
	nowMs := e.clock.Now()
	if q.AllVersions && e.writable() == nil {
		if err := p.LogExpired(ctx, nowMs); err != nil {
			return peeked{}, err
		}
	}
	at := peeked{Start: q.Start}
	if !q.Start.Known() {
		begin, err := p.Changes(ctx, store.Changes{Start: q.Start, AllVersions: q.AllVersions, MaxBytes: maxPageBytes}, nowMs)
		if err != nil {
			return peeked{}, err
		}
		at.Start = store.ChangeStart{After: begin.Position, Incarnation: begin.Incarnation}
	}
	next, err := p.Changes(ctx, store.Changes{Start: at.Start, AllVersions: q.AllVersions, MaxItems: 1, MaxBytes: maxPageBytes}, nowMs)
	at.More = next.Count > 0 || next.More
	return at, err
}, false})

// changesOf adds the changes of the page's current partition to the page, and charges for
// them.
func (e *Engine) changesOf(ctx context.Context, page *Answer, q store.Changes, nowMs int64) (store.ChangePage, error) {
	p, err := e.partition(page.Container, page.Partition)
	if err != nil {
		return store.ChangePage{}, err
	}
	if err := e.meters.admit(page.Container, page.Partition); err != nil {
		return store.ChangePage{}, err
	}
	if q.AllVersions && e.writable() == nil {
		if err := p.LogExpired(ctx, nowMs); err != nil {
			return store.ChangePage{}, err
		}
	}
	part, err := p.Changes(ctx, q, nowMs)
	if errors.Is(err, store.ErrClosed) {
		return part, err
	}
	page.LSN = part.LSN
	e.addRows(page, part.Items, part.Count, 0)
	return part, err
}

// changePosition is a position in the change feeds of one or several partitions. For one
// partition, its text is the LSN, with as many zeros before it as its incarnation says:
// clients parse the text as a number, and compare it with other LSNs. For several it is
//
//	{turn}@{lsn}-{incarnation}.{lsn}-{incarnation}.…
//
// where turn is the partition that comes first in the next page, so that one with
// constant writes does not keep the others from being read. An unknown incarnation is
// left out. If ranges were split since, each of those that they became goes on at their lsn.
type changePosition struct {
	turn   int
	starts []store.ChangeStart
}

// maxPositionBytes bounds the length of a position from a client: each partition takes at
// most 24 bytes.
const maxPositionBytes = 8 + 24*catalog.MaxPartitions

// position returns where to begin in each of the partitions from first to last.
func (r *Request) position(c *catalog.Container, first, last int) (changePosition, error) {
	at := changePosition{starts: make([]store.ChangeStart, last-first+1)}
	switch r.Continuation {
	case "":
		for i := range at.starts {
			at.starts[i] = store.ChangeStart{SinceMs: r.SinceMs, Beginning: r.SinceMs == 0}
		}
		return at, nil
	case ChangeFeedNow:
		for i := range at.starts {
			at.starts[i].Now = true
		}
		return at, nil
	}
	was, err := r.parsePositions(len(at.starts))
	if err != nil {
		return at, err
	}
	of, ok := origins(c, first, last, len(was.starts))
	if !ok {
		return at, r.refusal()
	}
	for i, origin := range of {
		at.starts[i] = was.starts[origin]
	}
	at.turn = slices.Index(of, was.turn)
	return at, nil
}

func (r *Request) refusal() error {
	return invalid("'%s' is not a position in this change feed. Begin without one, or with '*' for now.", value.Clip(r.Continuation))
}

// parsePosition parses a position in one partition.
func parsePosition(text string) (store.ChangeStart, bool) {
	digits := strings.TrimLeft(text[:max(len(text)-1, 0)], "0") + text[max(len(text)-1, 0):]
	zeros := len(text) - len(digits)
	lsn, err := strconv.ParseUint(digits, 10, 64)
	return store.ChangeStart{After: lsn, Incarnation: uint8(zeros)}, err == nil && zeros <= store.MaxIncarnation
}

// parsePositions parses a position in at most so many partitions.
func (r *Request) parsePositions(most int) (at changePosition, err error) {
	turn, position, several := strings.Cut(r.Continuation, "@")
	if !several {
		start, ok := parsePosition(r.Continuation)
		if !ok {
			return at, r.refusal()
		}
		return changePosition{starts: []store.ChangeStart{start}}, nil
	}
	n, err := strconv.ParseUint(turn, 10, 16)
	if err != nil || len(r.Continuation) > maxPositionBytes {
		return at, r.refusal()
	}
	at.turn = int(n)
	texts := strings.SplitN(position, ".", most+1)
	if at.turn >= len(texts) || len(texts) > most || len(texts) == 1 {
		return at, r.refusal()
	}
	at.starts = make([]store.ChangeStart, len(texts))
	for i, text := range texts {
		digits, of, known := strings.Cut(text, "-")
		lsn, err := strconv.ParseUint(digits, 10, 64)
		incarnation := uint64(0)
		if known && err == nil {
			incarnation, err = strconv.ParseUint(of, 10, 8)
		}
		if err != nil || incarnation > store.MaxIncarnation {
			return at, r.refusal()
		}
		at.starts[i] = store.ChangeStart{After: lsn, Incarnation: uint8(incarnation)}
	}
	return at, nil
}

func (at *changePosition) encode() string {
	if len(at.starts) == 1 {
		s := at.starts[0]
		return strings.Repeat("0", int(s.Incarnation)) + strconv.FormatUint(s.After, 10)
	}
	out := append(strconv.AppendInt(nil, int64(at.turn), 10), '@')
	for i, s := range at.starts {
		if i > 0 {
			out = append(out, '.')
		}
		out = strconv.AppendUint(out, s.After, 10)
		if s.Incarnation != 0 {
			out = strconv.AppendUint(append(out, '-'), uint64(s.Incarnation), 10)
		}
	}
	return string(out)
}
