// SPDX-License-Identifier: MIT

// Bringing back expired items that are not purged yet.

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// Undelete brings back an expired item that is not purged, with a new ttl, and explains when
// it expires from then on. It is a write: the item gets a new etag, and the change feed shows
// it. The error is store.ErrNotFound, store.ErrLive or store.ErrFinal if it cannot come back.
func (e *Engine) Undelete(ctx context.Context, c *catalog.Container, id string, pk value.PartitionKey, ttl catalog.TTL) (x Explanation, err error) {
	if ttl == catalog.TTLAbsent {
		return x, invalid("Give the ttl that the item comes back with: a number of seconds, or -1 for an item that never expires.")
	}
	if err := e.writable(); err != nil {
		return x, err
	}
	k, err := givenKey(c, pk.String())
	if err != nil {
		return x, err
	}
	if _, err := e.undelete(ctx, c, itemKey(c, k, id), ttl); err != nil {
		return x, err
	}
	x, err = e.Explain(ctx, c, id, pk)
	if errors.Is(err, store.ErrNotFound) { // the item came back, and that is what was asked
		x = Explanation{Database: c.DatabaseID, Container: c.ID, ID: id, PartitionKey: json.RawMessage(pk.String()), Moment: clock.At(e.clock.Now()), Source: sourceNone}
		x.Reason, err = "It came back, and was deleted since.", nil
	}
	return x, err
}

// undelete does the write, and charges it.
func (e *Engine) undelete(ctx context.Context, c *catalog.Container, k store.Key, ttl catalog.TTL) (a Answer, err error) {
	defer e.observe(e.begin())
	a = Answer{Container: c, Charge: ru.Refused}
	p, err := e.admit(&a, c.Partition(k.EPK))
	if err != nil {
		return a, err
	}
	defer e.settle(&a, &err)
	done, err := p.Write(ctx, store.Write{Op: store.Undelete, Key: k, Change: e.renewal(c, ttl)})
	if err == nil {
		a.Body, a.ETag, a.LSN, a.Charge = done.Body, done.ETag, done.LSN, done.Work.Charge()
	}
	return a, err
}

// renewal returns the function that gives an item a new ttl. If the item names its deadline,
// that wins over any ttl, and so the deadline changes: to that of the ttl, in the form that it
// has, or to null for an item that never expires.
func (e *Engine) renewal(c *catalog.Container, ttl catalog.TTL) func([]byte) (*value.Object, error) {
	return func(body []byte) (*value.Object, error) {
		p := &patch{ops: []patchOp{{kind: patchSet, path: value.Path{"ttl"}, value: strconv.AppendInt(nil, int64(ttl), 10)}}}
		item, err := value.ParseObject(body)
		if err != nil {
			return nil, err
		}
		if raw, found := item.At(c.ExpireAtPath); c.ExpireAtPath != nil && found && string(raw) != "null" {
			p.ops = append(p.ops, patchOp{kind: patchSet, path: c.ExpireAtPath, value: deadlineIn(raw, e.clock.Now(), ttl)})
		}
		if err := p.check(c); err != nil {
			return nil, err
		}
		return p.apply(body)
	}
}

// deadlineIn returns the deadline of a ttl that begins at nowMs, in the form of another one:
// seconds, of which a part counts as a whole one, or an instant.
func deadlineIn(form []byte, nowMs int64, ttl catalog.TTL) []byte {
	if ttl == catalog.TTLForever {
		return []byte("null")
	}
	ms := nowMs + 1000*int64(ttl)
	if form[0] == '"' {
		return value.AppendString(nil, clock.Stamp(ms))
	}
	return strconv.AppendInt(nil, (ms+999)/1000, 10)
}

// Undeletable lists expired items that can be undeleted.
type Undeletable struct {
	Database  string `json:"database"`
	Container string `json:"container"`
	clock.Moment
	// GraceSeconds is how long after their deadlines items are kept for certain.
	GraceSeconds int64             `json:"undeleteGraceSeconds"`
	Items        []UndeletableItem `json:"items"`
	// More says that there are further items.
	More bool `json:"more"`
}

// UndeletableItem is an expired item that is not purged.
type UndeletableItem struct {
	ID           string          `json:"id"`
	PartitionKey json.RawMessage `json:"partitionKey"`
	WrittenAt    string          `json:"writtenAt"`
	ExpiredAt    string          `json:"expiredAt"`
	// PurgedFrom is when purge may take it. It may be later that purge does.
	PurgedFrom string `json:"purgedFrom"`
}

// MaxUndeletable bounds the items of a list, of each partition.
const MaxUndeletable = 1000

// Undeletable lists expired items of a container, at most so many of each partition: those
// that purge takes first.
func (e *Engine) Undeletable(ctx context.Context, c *catalog.Container, most int) (Undeletable, error) {
	u := Undeletable{
		Database: c.DatabaseID, Container: c.ID, Moment: clock.At(e.clock.Now()),
		GraceSeconds: int64(c.UndeleteGrace / time.Second), Items: []UndeletableItem{},
	}
	if c.Final() {
		return u, nil
	}
	parts, err := gather(ctx, e, c, opUndeletable, undeletable{most, u.NowMs})
	for _, part := range parts {
		u.More = u.More || part.More
		u.Items = append(u.Items, part.Items...)
	}
	return u, err
}

// undeletable is a question about items that can come back.
type undeletable struct {
	Most  int
	NowMs int64
}

// undeletablePart is the answer of a partition.
type undeletablePart struct {
	Items []UndeletableItem
	More  bool
}

var opUndeletable = newOperation(operation[undeletable, undeletablePart]{"undeletable", func(ctx context.Context, _ *Engine, _ *catalog.Container, _ int, p *store.Partition, q undeletable) (part undeletablePart, err error) {
	items, more, err := p.Undeletable(ctx, q.Most, q.NowMs)
	part.More = more
	for _, i := range items {
		part.Items = append(part.Items, UndeletableItem{
			i.ID, json.RawMessage(i.PartitionKey.String()), clock.Stamp(i.WrittenMs), clock.Stamp(i.DeadlineMs), clock.Stamp(i.PurgeMs),
		})
	}
	return part, err
}, false})
