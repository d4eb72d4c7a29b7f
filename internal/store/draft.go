// SPDX-License-Identifier: MIT

// Drafts: one logical partition at one moment, with changes on top of it that nobody
// else sees. A draft is made outside of the loop, in as long as it takes, and then
// committed as a whole if nothing has changed under it.

package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxDraft is how many writes a draft may have, and draftBytes how long the items
	// may be that they write.
	maxDraft   = 10_000
	draftBytes = 8 << 20
	// draftOrdinals are what new items have until they are committed. No item gets
	// that far.
	draftOrdinals = catalog.MaxOrdinal - maxDraft
	// draftLSNs are in the etags that items have until then.
	draftLSNs = 1 << 62
)

// Draft is a logical partition with changes. It is for one goroutine.
type Draft struct {
	p       *Partition
	r       *Reader
	logical LogicalPartition
	nowMs   int64

	byID      map[string]*drafted
	byOrdinal map[uint64]*drafted
	holders   map[string]*drafted // by unique key
	ops       []Write
	stamps    []stamp // of the ops
	bytes     int

	// Memory is what the request may take; nil for no bounds.
	Memory *memory.Share
}

// drafted is an item that the draft has changed.
type drafted struct {
	ordinal uint64
	exists  bool // false if it was deleted
	body    []byte
	unique  [][]byte
}

// stamp is what the draft has written into an item in place of what only the loop
// knows.
type stamp struct {
	etag, rid string
	ts        int64
}

// NewDraft begins a draft of a logical partition as of nowMs. The caller closes it,
// soon.
func (p *Partition) NewDraft(l LogicalPartition, nowMs int64) (*Draft, error) {
	r, err := p.NewReader(nowMs)
	if err != nil {
		return nil, err
	}
	d := &Draft{
		p: p, r: r, logical: l, nowMs: nowMs,
		byID: map[string]*drafted{}, byOrdinal: map[uint64]*drafted{}, holders: map[string]*drafted{},
	}
	r.draft = d
	return d, nil
}

// Close lets go of the partition.
func (d *Draft) Close() { d.r.Close() }

// Reader returns a reader of the logical partition with the draft's changes. It is
// closed with the draft.
func (d *Draft) Reader() *Reader { return d.r }

// Empty reports whether nothing was written.
func (d *Draft) Empty() bool { return len(d.ops) == 0 }

// OnlyDeletes reports whether the draft adds nothing.
func (d *Draft) OnlyDeletes() bool {
	return !slices.ContainsFunc(d.ops, func(w Write) bool { return w.Op != Delete })
}

// Writes is how many writes the draft has.
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
	r, ok := catalog.ParseRID(rid)
	if !ok || r.Container != d.r.Container().RID || r.Ordinal == 0 {
		return "", ErrNotFound
	}
	f, live, err := d.r.Get(r.Ordinal)
	if err != nil {
		return "", err
	}
	if !live || !bytes.Equal(f.EPK, d.logical.EPK) {
		return "", ErrNotFound
	}
	id, err := textOf(f.Body, "id")
	if err != nil {
		return "", err
	}
	// Another partition key may have the same hash.
	again, live, err := d.r.Find(d.key(id))
	if err == nil && (!live || again.Ordinal != r.Ordinal) {
		err = ErrNotFound
	}
	return id, err
}

// textOf returns a property of an item that is a string.
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

// Write does a Create, Upsert, Replace or Delete in the draft. The result has an etag
// and a rid that Settle knows; the LSN and the work are unknown.
func (d *Draft) Write(r Write) (Result, error) {
	if d.Full() {
		return Result{}, ErrTooMuch
	}
	w, err := prepare(r, d.r.Container(), room{})
	if err != nil {
		return Result{}, err
	}
	old, live, err := d.r.Find(r.Key)
	if err != nil {
		return Result{}, err
	}
	etag := ""
	if live {
		if etag, err = textOf(old.Body, "_etag"); err != nil {
			return Result{}, err
		}
	}
	if err := admitted(w, live, func() string { return etag }); err != nil {
		return Result{}, err
	}
	id := r.Key.ID
	if w.renames() {
		id = r.NewID
		if _, taken, err := d.r.Find(d.key(id)); err != nil || taken {
			return Result{}, cmp.Or(err, ErrExists)
		}
	}
	next := &drafted{ordinal: old.Ordinal, exists: r.Op != Delete, unique: w.unique}
	if !live {
		next.ordinal = draftOrdinals + uint64(len(d.ops))
	}
	if err := d.claim(next); err != nil {
		return Result{}, err
	}
	res := Result{Created: next.exists && !live}
	op := Write{Op: Replace, Key: r.Key, Item: r.Item, NewID: r.NewID}
	switch {
	case r.Op == Delete:
		op.Op = Delete
		d.stamps = append(d.stamps, stamp{})
	default:
		if !live {
			op.Op = Create
		}
		res.Body, res.ETag = d.fill(w, next.ordinal)
		next.body = res.Body
	}
	d.ops = append(d.ops, op)
	d.bytes += len(next.body)
	d.lay(r.Key.ID, id, next)
	return res, nil
}

// fill renders an item as far as it is known, and notes what is to be replaced.
func (d *Draft) fill(w *write, ordinal uint64) (body []byte, etag string) {
	c := &current{ordinal: ordinal, header: header{
		lsn: draftLSNs + uint64(len(d.ops)), writtenMs: d.nowMs, ttl: w.ttl, identity: w.identity, size: len(w.row) - w.places.body,
	}}
	body, etag = w.fill(c, d.r.Container(), d.p.index)
	s := stamp{etag: strings.Trim(etag, `"`), ts: d.nowMs / 1000}
	if ordinal >= draftOrdinals {
		s.rid = d.r.Container().RID.ItemRID(ordinal)
	}
	d.stamps = append(d.stamps, s)
	return body, etag
}

// lay puts an item over the one that was there, with its id or with another one.
func (d *Draft) lay(was, id string, next *drafted) {
	if old := d.byID[was]; old != nil {
		for _, key := range old.unique {
			delete(d.holders, string(key))
		}
	}
	d.byID[was] = &drafted{}
	for _, key := range next.unique {
		d.holders[string(key)] = next
	}
	d.byID[id], d.byOrdinal[next.ordinal] = next, next
}

// claim checks that an item may hold its unique keys.
func (d *Draft) claim(next *drafted) error {
	for _, key := range next.unique {
		if h := d.holders[string(key)]; h != nil && h.ordinal != next.ordinal {
			return ErrNotUnique
		}
		raw, found, err := d.r.v.snap.Get(d.p.prefix.appendUniqueKey(nil, key))
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if len(raw) != uniqueRowBytes {
			return corrupt(key, "not a unique key's row")
		}
		holder := binary.BigEndian.Uint64(raw)
		if holder == next.ordinal || d.byOrdinal[holder] != nil {
			continue // it holds what it has in the draft
		}
		_, live, _, err := d.r.stored(nil, holder)
		if err != nil {
			return err
		}
		if live {
			return ErrNotUnique
		}
	}
	return nil
}

// after returns the ordinals of new items after one.
func (d *Draft) after(ordinal uint64) []uint64 {
	var all []uint64
	for i := range uint64(len(d.ops)) {
		if o := draftOrdinals + i; o > ordinal && d.byOrdinal[o] != nil {
			all = append(all, o)
		}
	}
	return all
}

// found returns what the draft has of an item; known is false if that is nothing.
func (d *Draft) found(i *drafted) (f Found, live, known bool) {
	if i == nil {
		return Found{}, false, false
	}
	return Found{Ordinal: i.ordinal, EPK: d.logical.EPK, Body: i.body}, i.exists, true
}

// Commit does the writes, durably: all of them, or none. With ErrChanged the logical
// partition is not what it was when the draft began, and nothing was done.
func (d *Draft) Commit(ctx context.Context) ([]Result, error) {
	if len(d.ops) == 0 {
		return nil, nil
	}
	same := Write{Op: Unchanged, Key: d.key(""), Since: d.r.LSN(), Memory: d.Memory}
	results, err := d.p.WriteAll(ctx, append([]Write{same}, d.ops...))
	switch {
	case errors.Is(err, ErrChanged), errors.Is(err, ErrNotFound), errors.Is(err, ErrExists):
		return nil, ErrChanged // items expire meanwhile, too
	case err != nil:
		return nil, err
	}
	return results[1:], nil
}

// Settle returns a text in which the etags, rids and times that the draft gave out
// are those that the items got when it was committed.
func (d *Draft) Settle(text []byte, results []Result) []byte {
	if len(text) == 0 {
		return text
	}
	const etag, ts = `"_etag":"\"`, `\"","_attachments":"attachments/","_ts":`
	var pairs []string
	for i, s := range d.stamps {
		if s.etag == "" {
			continue
		}
		is := strings.Trim(results[i].ETag, `"`)
		if at := bytes.LastIndexByte(results[i].Body, ':'); at > 0 {
			pairs = append(pairs, etag+s.etag+ts+strconv.FormatInt(s.ts, 10), etag+is+ts+string(bytes.TrimRight(results[i].Body[at+1:], "} ")))
		}
		pairs = append(pairs, s.etag, is)
		if rid, err := textOf(results[i].Body, "_rid"); s.rid != "" && err == nil {
			pairs = append(pairs, s.rid, rid)
		}
	}
	if len(pairs) == 0 {
		return text
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}

// without leaves out the items that the draft has deleted.
func (d *Draft) without(ordinals []uint64) []uint64 {
	return slices.DeleteFunc(ordinals, func(o uint64) bool { return d.byOrdinal[o] != nil && !d.byOrdinal[o].exists })
}
