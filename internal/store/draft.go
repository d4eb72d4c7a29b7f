// SPDX-License-Identifier: MIT

// Drafts: one logical partition at one moment, with a transaction over it. A draft is made
// outside of the loop and may take long. It is then committed as a whole, if the logical
// partition has not changed since: the loop, which alone knows lsn, ordinals and time, does
// its writes again. Quotas are checked there.

package store

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxDraft is the most writes in a draft, and draftBytes the most bytes of items that
	// they write.
	maxDraft   = 10_000
	draftBytes = 8 << 20
	// draftOrdinals is the first ordinal that new items have until they are committed.
	// Ordinals of stored items never get that high.
	draftOrdinals = catalog.MaxOrdinal - maxDraft
	// draftLSNs is the lsn after which drafts number their writes. It is in the etags of
	// items until they are committed.
	draftLSNs = 1 << 62
)

// Draft is a logical partition with changes. It is for one goroutine.
type Draft struct {
	r       *Reader
	w       writer // its transaction is what the reader sees
	logical LogicalPartition

	ops    []Write
	stamps []stamp // of the ops
	bytes  int

	// Memory is what the request may take; nil is no limit.
	Memory *memory.Share
}

// stamp is the provisional values that the draft wrote into an item, where only the loop
// knows the real ones.
type stamp struct{ etag, rid string }

// NewDraft begins a draft of a logical partition as of nowMs. The caller closes it soon,
// since it holds a snapshot.
func (p *Partition) NewDraft(l LogicalPartition, nowMs int64) (*Draft, error) {
	r, err := p.NewReader(nowMs)
	if err != nil {
		return nil, err
	}
	d := &Draft{r: r, w: writer{p: p}, logical: l}
	d.w.init()
	d.w.reset()
	d.w.view, d.w.moment = r.v, moment{p.notBefore(nowMs), p.notBefore(nowMs)}
	d.w.meta = meta{LSN: draftLSNs, NextOrdinal: draftOrdinals}
	r.over = d.w.tx
	return d, nil
}

// Close releases the partition.
func (d *Draft) Close() { d.r.Close() }

// Reader returns a reader of the logical partition with the draft's changes. It is
// closed with the draft.
func (d *Draft) Reader() *Reader { return d.r }

// Empty reports whether the draft has no writes.
func (d *Draft) Empty() bool { return len(d.ops) == 0 }

// OnlyDeletes reports whether all writes are deletes.
func (d *Draft) OnlyDeletes() bool {
	return !slices.ContainsFunc(d.ops, func(w Write) bool { return w.Op != Delete })
}

// Writes returns the number of writes.
func (d *Draft) Writes() int { return len(d.ops) }

// Full reports whether the draft takes no more writes.
func (d *Draft) Full() bool { return len(d.ops) >= maxDraft || d.bytes >= draftBytes }

func (d *Draft) key(id string) Key { return Key{d.logical.EPK, d.logical.PartitionKey, id} }

// Read returns the item with an id.
func (d *Draft) Read(id string) (body []byte, etag string, err error) {
	f, live, err := d.r.Find(d.key(id))
	if err != nil {
		return nil, "", err
	}
	if !live {
		return nil, "", ErrNotFound
	}
	etag, err = textOf(f.Body, "_etag")
	return bytes.Clone(f.Body), etag, err
}

// IDOf returns the id of the item with a rid.
func (d *Draft) IDOf(rid string) (string, error) {
	ordinal, ok := d.r.Container().RID.Ordinal(rid)
	if !ok || ordinal == 0 {
		return "", ErrNotFound
	}
	c, known := d.w.changedAt(ordinal)
	if !known {
		var err error
		if c, err = d.r.v.itemAt(ordinal); err != nil {
			return "", err
		}
		c.exists = c.exists && !d.r.cut.expired(c.header.life())
	}
	id, ours := bytes.CutPrefix(c.header.identity, d.logical.appendKey(nil))
	if !c.exists || !ours {
		return "", ErrNotFound
	}
	return string(id), nil
}

// textOf returns a property of an item whose value is a string.
func textOf(body []byte, name string) (string, error) {
	o, err := value.ParseObject(body)
	if err != nil {
		return "", err
	}
	raw, _ := o.Lookup(name)
	v, _ := value.FromJSON(raw)
	text, _ := v.Text()
	return text, nil
}

// Write does a Create, Upsert, Replace or Delete in the draft. The etag and the rid of the
// result are provisional; Settle replaces them. LSN and Work are not set.
func (d *Draft) Write(r Write) (Result, error) {
	if d.Full() {
		return Result{}, ErrTooMuch
	}
	w, err := prepare(r, d.r.Container(), memory.Room{})
	if err != nil {
		return Result{}, err
	}
	d.w.out.Reset() // the commit makes the rows again
	res, err := d.w.execute(w)
	if err != nil {
		return Result{}, err
	}
	op := Write{Op: Replace, Key: r.Key, Item: r.Item, NewID: r.NewID}
	switch {
	case r.Op == Delete:
		op.Op = Delete
	case res.Created:
		op.Op = Create
	}
	d.ops = append(d.ops, op)
	d.stamps = append(d.stamps, d.stampOf(w, &res))
	d.bytes += len(res.Body)
	res.LSN, res.Work = 0, ru.WriteWork{}
	return res, nil
}

// stampOf returns the provisional values in an item that was written.
func (d *Draft) stampOf(w *write, res *Result) (s stamp) {
	if w.row == nil {
		return stamp{}
	}
	s.etag = res.ETag
	if c, _ := d.w.changed(w.next); c.ordinal >= draftOrdinals {
		s.rid = d.r.Container().RID.ItemRID(c.ordinal)
	}
	return s
}

// Commit does the writes, durably: all of them or none. With ErrChanged, the logical
// partition has changed since the draft began, and nothing was written.
func (d *Draft) Commit(ctx context.Context) ([]Result, error) {
	if len(d.ops) == 0 {
		return nil, nil
	}
	same := Write{Op: Unchanged, Key: d.key(""), Since: d.r.LSN(), Memory: d.Memory}
	results, err := d.w.p.WriteAll(ctx, append([]Write{same}, d.ops...))
	switch {
	case errors.Is(err, ErrChanged), errors.Is(err, ErrNotFound), errors.Is(err, ErrExists):
		return nil, ErrChanged // an item that expires meanwhile is a change too
	case err != nil:
		return nil, err
	}
	return results[1:], nil
}
