// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// Limits of the service.
const (
	MaxItemBytes      = 2 << 20
	maxIDBytes        = 1023
	maxKeyBytes       = 2048
	maxDropRetries    = 8
	maxHierarchyDepth = 3
)

// WriteItem creates, upserts, replaces, patches or deletes an item, durably.
func (e *Engine) WriteItem(ctx context.Context, r *Request) (a Answer, err error) {
	a.Charge = ru.Refused
	if err := e.admits(r.Op); err != nil {
		return a, err
	}
	if r.PreTriggers != "" || r.PostTriggers != "" {
		return e.writeTriggered(ctx, r)
	}
	d, err := draftOf(r.op())
	if err != nil {
		return a, err
	}
	defer e.observe(e.begin())
	if _, err := e.lookUp(r, &a, ru.Refused); err != nil {
		return a, err
	}
	w, err := e.bind(a.Container, &d)
	if err != nil {
		return a, err
	}
	w.Memory = r.Memory
	p, err := e.admit(&a, a.Container.Partition(w.Key.EPK))
	if err != nil {
		return a, err
	}
	defer e.settle(&a, &err)
	done, err := p.Write(ctx, w)
	if err != nil {
		a.LSN, a.Answered = p.LSN(), true // an error has the partition's position too
		return a, err
	}
	if r.Op == store.Delete {
		e.removed()
	}
	a.Created, a.Body, a.ETag = done.Created, done.Body, done.ETag
	a.LSN, a.ItemLSN, a.Charge = done.LSN, done.LSN, done.Work.Charge()
	a.count(p, e.clock.Now())
	return a, nil
}

// count adds what the partition holds to the answer of a write. The write has succeeded,
// so a failure here is not reported.
func (a *Answer) count(p *store.Partition, nowMs int64) {
	live, err := p.LiveEstimate(nowMs)
	a.Live, a.Counted = live, err == nil
}

// draft is an operation with its parsed body. The remaining checks depend on the
// container.
type draft struct {
	ItemOp
	item  *value.Object
	patch *patch
}

// draftOf parses the body of an operation, if it has one.
func draftOf(op ItemOp) (d draft, err error) {
	d.ItemOp = op
	switch op.Op {
	case store.Create, store.Upsert, store.Replace:
		d.item, err = parseItem(op.Body)
	case store.Update:
		d.patch, err = parsePatch(op.Body)
	}
	return d, err
}

// bind turns a draft into a write for a partition of the container.
func (e *Engine) bind(c *catalog.Container, d *draft) (w store.Write, err error) {
	w = store.Write{Op: d.Op, Item: d.item, IfMatch: d.IfMatch, IfNoneMatch: d.IfNoneMatch}
	if w.Key, w.NewID, err = writeKey(c, d); err != nil {
		return store.Write{}, err
	}
	if d.patch != nil {
		w.Change, err = e.change(c, d.patch)
	}
	return w, err
}

// ReadItem returns an item. With store.ErrNotModified the etag is set.
func (e *Engine) ReadItem(r *Request) (a Answer, err error) {
	nowMs := e.clock.Now()
	defer e.observe(e.begin())
	seen, err := e.lookUp(r, &a, ru.NotFound)
	if err != nil {
		return a, err
	}
	k, err := givenKey(a.Container, r.PartitionKey)
	if err != nil {
		return a, err
	}
	percent, slides, err := sliding(a.Container, r.SlidingTTL)
	if err != nil {
		return a, err
	}
	key := itemKey(a.Container, k, r.ID)
	p, err := e.admit(&a, a.Container.Partition(key.EPK))
	if err != nil {
		return a, err
	}
	defer e.settle(&a, &err)
	item, err := p.Read(r.Room, key, r.IfNoneMatch, nowMs)
	a.LSN, a.Answered, a.Room = item.LSN, true, item.Room
	if ahead := seen.check(a.Container.RangeOf(a.Partition), item.LSN); ahead != nil {
		return a, ahead
	}
	a.Body, a.ETag, a.ItemLSN = item.Body, item.ETag, item.ItemLSN
	a.Live, a.Counted = item.Live, item.ItemLSN != 0
	a.Charge = ru.Read(len(item.Body))
	if slides && e.writable() == nil {
		a.Charge += p.Slide(&item, key, percent, nowMs)
	}
	return a, err
}

// SlidingOff is the SlidingTTL of a read that restarts no countdown.
const SlidingOff = "off"

// sliding returns after how many percent of an item's life a read restarts its countdown,
// and whether it does so at all: as the request says, or else the container.
func sliding(c *catalog.Container, asked string) (percent int, slides bool, err error) {
	switch asked {
	case "":
		return c.SlidingPercent, c.SlidingPercent > 0, nil
	case SlidingOff:
		return 0, false, nil
	}
	percent, err = strconv.Atoi(asked)
	if err != nil || percent < 0 || percent > catalog.MaxSlidingPercent {
		return 0, false, invalid("The sliding TTL '%s' is invalid. Ensure to provide an integer from 0 to %d, or '%s'.", value.Clip(asked), catalog.MaxSlidingPercent, SlidingOff)
	}
	return percent, true, nil
}

// parseItem checks an item. As in the service, its strings may contain unescaped tabs,
// carriage returns and line feeds. They are escaped here, so that every reader gets valid
// JSON.
func parseItem(body []byte) (*value.Object, error) {
	if len(body) > MaxItemBytes {
		return nil, ErrTooLarge
	}
	o, err := value.ParseObject(body)
	if err != nil {
		escaped, parseErr := value.ParseObject(value.EscapeSpace(body))
		if parseErr != nil {
			return nil, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
		}
		if len(escaped.Bytes()) > MaxItemBytes {
			return nil, ErrTooLarge
		}
		o = escaped
	}
	return o, nil
}

// writeKey returns the key of the item that a write changes: the given partition key,
// which must be the body's, and the id of the target or the body. For a replace it also
// returns the item's new id, which is the body's.
func writeKey(c *catalog.Container, d *draft) (key store.Key, newID string, err error) {
	if d.item == nil {
		k, err := givenKey(c, d.PartitionKey)
		if err != nil {
			return store.Key{}, "", err
		}
		return itemKey(c, k, d.ID), "", nil
	}
	id, err := bodyID(d.item)
	if err != nil {
		return store.Key{}, "", err
	}
	k, err := bodyKey(c, d.item)
	if err != nil {
		return store.Key{}, "", err
	}
	if d.PartitionKey != "" {
		given, err := givenKey(c, d.PartitionKey)
		if err != nil {
			return store.Key{}, "", err
		}
		if !given.Equal(k) {
			return store.Key{}, "", ErrKeyMismatch
		}
	}
	if d.Op == store.Replace {
		return itemKey(c, k, d.ID), id, nil
	}
	return itemKey(c, k, id), "", nil
}

func itemKey(c *catalog.Container, k value.PartitionKey, id string) store.Key {
	return store.Key{EPK: c.PartitionKey.AppendEPK(nil, k), PartitionKey: k, ID: id}
}

func bodyID(o *value.Object) (string, error) {
	raw, ok := o.Lookup("id")
	if !ok {
		return "", invalid("The input content is invalid because the required properties - 'id; ' - are missing")
	}
	v, _ := value.FromJSON(raw)
	id, ok := v.Text()
	if !ok || id == "" || len(id) > maxIDBytes {
		return "", invalid("The input name '%s' is invalid. Ensure to provide a unique non-empty string less than '1024' characters.", value.Clip(string(raw)))
	}
	return id, nil
}

// bodyKey returns the partition key of an item. A value that is no scalar counts as
// missing.
func bodyKey(c *catalog.Container, o *value.Object) (value.PartitionKey, error) {
	k := make(value.PartitionKey, 0, maxHierarchyDepth)
	for _, path := range c.PartitionKey.Paths {
		var v value.Scalar
		if raw, found := o.At(path); found {
			v, _ = value.FromJSON(raw)
		}
		k = append(k, v)
	}
	return k, checkKeySize(k)
}

// givenKey parses the partition key given with a request.
func givenKey(c *catalog.Container, text string) (value.PartitionKey, error) {
	if text == "" {
		return nil, ErrNoKey
	}
	k, err := value.ParsePartitionKey(text)
	if err != nil {
		return nil, invalid("Partition key %s is invalid: %v.", value.Clip(text), err)
	}
	if len(k) == 0 { // "none": the item has no such property
		k = make(value.PartitionKey, len(c.PartitionKey.Paths))
	}
	if len(k) != len(c.PartitionKey.Paths) {
		return nil, ErrKeyForm
	}
	return k, checkKeySize(k)
}

// checkKeySize checks a partition key's length. The service documents 101 bytes for
// version 1, but accepts longer ones, of which it hashes only the beginning.
func checkKeySize(k value.PartitionKey) error {
	if n := k.Size(); n > maxKeyBytes {
		return invalid("The partition key is %d bytes long, more than the %d bytes that it may have.", n, maxKeyBytes)
	}
	return nil
}
