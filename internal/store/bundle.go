// SPDX-License-Identifier: MIT

// Bundles: several writes that all happen, or none does. They execute in order, each on the
// result of those before, in a child of the group's transaction. If one of them fails, the
// child is dropped, and the group continues without the bundle.
//
// The writes of a bundle share one lsn. Their n counts from 1.

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
)

const (
	// maxBundle is how many operations a bundle may have: n has 16 bits.
	maxBundle = 1<<16 - 1
	// bundleBytes bounds the rows that a bundle writes, and bundleReadBytes the items that
	// it reads.
	bundleBytes     = 24 << 20
	bundleReadBytes = 10 << 20
)

// WriteError says which operation of a WriteAll failed, and why.
type WriteError struct {
	Index int
	Err   error
}

func (e *WriteError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }

func (e *WriteError) Unwrap() error { return e.Err }

// WriteAll does several operations on items of this partition, in order, each seeing the
// writes before it, at one moment, and durably: all of them or none. If one fails, the
// error is a *WriteError. The writes share one lsn. Without writes, the partition's lsn
// stays the same.
func (p *Partition) WriteAll(ctx context.Context, ops []Write) ([]Result, error) {
	if len(ops) > maxBundle {
		return nil, &WriteError{maxBundle, ErrTooMuch}
	}
	for t := p.attempts(roomOf(ctx, ops)); ; {
		j := &job{bundle: prepareAll(ops, p.Container(), t.room)}
		for _, logical := range t.tallied {
			j.bundle.tallied(logical)
		}
		_, err := p.submit(ctx, j)
		if t.retry(ctx, j, &err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return j.bundle.results, nil
	}
}

// Outcome is the result of one operation of a WriteEach.
type Outcome struct {
	Result
	Err error
}

// ErrSkipped: an earlier operation has failed.
var ErrSkipped = errors.New("an operation before it has failed")

// EachOptions are the options of a WriteEach.
type EachOptions struct {
	// StopAtFailure skips all operations after one that fails.
	StopAtFailure bool
}

// WriteEach does several operations on items of this partition, in order, each seeing the
// writes before it, and durably, but independently: one that fails does not affect the
// others. An error means that no operation was done. If the partition ends after some were
// done, the others fail one by one: a caller that repeats a request after an error must not
// repeat what was done.
func (p *Partition) WriteEach(ctx context.Context, ops []Write, o EachOptions) ([]Outcome, error) {
	all := make([]Outcome, 0, len(ops))
	read := 0
	t := p.attempts(roomOf(ctx, ops))
	for len(all) < len(ops) {
		b := prepareAll(ops[len(all):], p.Container(), t.room)
		b.each, b.read = &o, read
		j := &job{bundle: b}
		_, err := p.submit(ctx, j)
		if t.retry(ctx, j, &err) {
			continue
		}
		switch {
		case err != nil && len(all) == 0:
			return nil, err
		case err != nil:
			return append(all, slices.Repeat([]Outcome{{Err: err}}, len(ops)-len(all))...), nil
		}
		read, t.n = b.read, 0
		for _, out := range b.outcomes {
			if errors.Is(out.Err, errTally) {
				out.Result, out.Err = p.Write(ctx, ops[len(all)])
			}
			all = append(all, out)
		}
		if o.StopAtFailure && len(all) > 0 && all[len(all)-1].Err != nil {
			break
		}
	}
	return append(all, slices.Repeat([]Outcome{{Err: ErrSkipped}}, len(ops)-len(all))...), nil
}

// bundle is the prepared operations of a WriteAll or a WriteEach.
type bundle struct {
	writes  []*write
	results []Result

	each     *EachOptions // nil for a WriteAll
	outcomes []Outcome    // of the operations done so far
	read     int          // bytes of items read so far
}

// prepareAll prepares operations. One that cannot be prepared fails when its turn comes,
// since an earlier one may fail first, for another reason.
func prepareAll(ops []Write, c *catalog.Container, m memory.Room) *bundle {
	b := &bundle{writes: make([]*write, len(ops)), results: make([]Result, 0, len(ops))}
	for i, op := range ops {
		w, err := (*write)(nil), op.Err
		if err == nil {
			w, err = prepare(op, c, m)
		}
		if err != nil {
			w = &write{op: op.Op, epoch: c.Epoch, more: &unprepared{err: err}}
		}
		b.writes[i] = w
	}
	return b
}

// roomOf returns the memory of the request that all operations belong to.
func roomOf(ctx context.Context, ops []Write) memory.Room {
	for i := range ops {
		if ops[i].Memory != nil {
			return memory.RoomIn(ctx, ops[i].Memory)
		}
	}
	return memory.Room{}
}

// bytes is about what the bundle adds to a group.
func (b *bundle) bytes() int {
	bytes := 0
	for _, w := range b.writes {
		bytes += w.bytes()
	}
	return bytes
}

// tallied records that the expired bytes of a logical partition were counted.
func (b *bundle) tallied(logical []byte) {
	for _, w := range b.writes {
		w.tallied = w.tallied || bytes.Equal(w.place(), logical)
	}
}

// executeAll does all operations of a bundle, or none.
func (w *writer) executeAll(b *bundle) (err error) {
	if b.each != nil {
		return w.executeEach(b)
	}
	w.beginChild()
	defer func() { w.endChild(err != nil) }()
	b.read, b.results = 0, b.results[:0] // it may have been tried before
	for i, r := range b.writes {
		res, err := w.executeNext(b, r)
		if err == nil && w.batch.Bytes()-w.bytes > bundleBytes {
			err = ErrTooMuch
		}
		if err != nil {
			return &WriteError{i, err}
		}
		b.results = append(b.results, res)
	}
	return nil
}

// executeEach does the operations of a bundle one by one. It stops early if the batch is
// full, or if one fails and the caller has to act on that.
func (w *writer) executeEach(b *bundle) error {
	for _, r := range b.writes {
		if r.epoch != w.view.container.Epoch {
			return errStale // no operation was done yet
		}
		if len(b.outcomes) > 0 && w.batch.Bytes() > fullBytes {
			return nil
		}
		res, err := w.executeNext(b, r)
		b.outcomes = append(b.outcomes, Outcome{res, err})
		if errors.Is(err, errTally) || err != nil && b.each.StopAtFailure {
			return nil
		}
	}
	return nil
}

func (w *writer) executeNext(b *bundle, r *write) (Result, error) {
	if r.more != nil && r.more.err != nil && r.epoch == w.view.container.Epoch {
		return Result{}, r.more.err
	}
	res, err := w.execute(r)
	if r.op == Read {
		if b.read += len(res.Body); b.read > bundleReadBytes {
			return Result{}, ErrTooMuch
		}
		if !r.share.TryTake(int64(len(res.Body))) {
			return Result{}, memory.ErrFull
		}
	}
	return res, err
}

// readOnly does an operation that changes nothing.
func (w *writer) readOnly(r *write, old *current) (Result, error) {
	res := Result{LSN: w.meta.LSN}
	if r.op == Unchanged {
		part, err := w.loadPart(r.place())
		if err == nil && part.lsn > r.more.asked.Since {
			err = ErrChanged
		}
		return res, err
	}
	if old.live {
		res.ETag = old.header.etagText(old.ordinal)
	}
	modified := !old.live || r.ifNoneMatch == "" || !catalog.Matches(r.ifNoneMatch, res.ETag)
	switch {
	case r.op == Verify && old.live && (!modified || !catalog.Matches(r.ifMatch, res.ETag)),
		r.op == Verify && !old.live && r.ifMatch != "":
		return Result{}, ErrPrecondition
	case r.op == Verify:
		return res, nil
	case !old.live:
		return Result{}, ErrNotFound
	case !modified:
		res.NotModified = true
	default:
		res.Body = old.body
	}
	return res, nil
}

// change prepares the write of an Update or Undelete from the present item.
func (w *writer) change(r *write, old *current) (*write, error) {
	asked := r.more.asked
	item, err := asked.Change(old.body)
	if err != nil {
		return nil, err
	}
	m := memory.RoomNow(asked.Memory)
	next, err := prepare(Write{Op: Replace, Key: asked.Key, Item: item, Memory: asked.Memory}, w.view.container, m)
	if err != nil {
		return nil, err
	}
	next.tallied, next.revives = r.tallied, r.op == Undelete
	return next, nil
}
