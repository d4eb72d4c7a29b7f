// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
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

// Target names a container, and an item in it, as a request does.
type Target struct {
	Database, Container string
	// ID is that of the item; for a create or upsert it is in the body.
	ID string
	// PartitionKey is the text of the header, empty if there was none.
	PartitionKey string
	// IntendedRID is the container's rid as the client remembers it, or empty.
	IntendedRID string
}

// ItemWrite is a request to change an item. Body is the item, or the patch.
type ItemWrite struct {
	Target
	Op                   store.Op
	Body                 []byte
	IfMatch, IfNoneMatch string
	Triggers             Triggers
	// SessionToken must be one, if it is given. A write does not wait for it.
	SessionToken string
	// Memory is what the request may take; nil for no bounds.
	Memory *memory.Share
}

// ItemResult is what came of an operation on an item, as far as it came: the
// container and partition are set even with an error, where they were found.
type ItemResult struct {
	Container *catalog.Container
	Partition int
	Created   bool
	Body      []byte
	Room      []byte // of a read: the memory that the body lies in
	ETag      string
	// LSN is the partition's, ItemLSN that of the item's last write.
	LSN, ItemLSN uint64
	// Answered says that a partition did. Its LSN is 0 if it was never written to.
	Answered bool
	// Live is what the partition has, as of a second ago at most, if it is Counted.
	Live    store.Amount
	Counted bool
	Charge  ru.Units
}

// count adds what the partition has to what came of a write. That has happened, so that
// it is no failure if this cannot be told.
func (r *ItemResult) count(p *store.Partition, nowMs int64) {
	live, err := p.LiveLately(nowMs)
	r.Live, r.Counted = live, err == nil
}

// WriteItem creates, upserts, replaces, patches or deletes an item, durably.
func (e *Engine) WriteItem(ctx context.Context, r ItemWrite) (ItemResult, error) {
	defer e.observe(e.begin())
	res := ItemResult{Charge: ru.Refused}
	if err := e.admits(r.Op); err != nil {
		return res, err
	}
	if _, err := parseSession(r.SessionToken); err != nil {
		return res, err
	}
	if r.Triggers.Any() {
		return e.writeTriggered(ctx, &r)
	}
	d, err := draftOf(r)
	if err != nil {
		return res, err
	}
	err = whileClosed(func() error {
		c, err := e.target(r.Target)
		if err != nil {
			return err
		}
		res.Container = c
		w, err := e.bind(c, &d)
		if err != nil {
			return err
		}
		return e.onPartition(&res, w.Key.EPK, func(p *store.Partition) error {
			done, err := p.Write(ctx, w)
			if errors.Is(err, store.ErrClosed) {
				return err
			}
			if err != nil {
				res.LSN, res.Answered = p.LSN(), true // a refusal tells where the partition is, too
				return err
			}
			if r.Op == store.Delete {
				e.removed()
			}
			res.Created, res.Body, res.ETag = done.Created, done.Body, done.ETag
			res.LSN, res.ItemLSN, res.Charge = done.LSN, done.LSN, done.Work.Charge()
			res.count(p, e.clock.Now())
			return nil
		})
	})
	return res, err
}

// whileClosed does something again as long as the partition that it goes to is closed: a
// container was dropped, and another one may have its name by now. It ends when the
// database stops.
func whileClosed(do func() error) error {
	for range maxDropRetries {
		if err := do(); !errors.Is(err, store.ErrClosed) {
			return err
		}
	}
	return ErrStopping
}

// onPartition does something with the partition of an effective partition key, admits it
// and settles its charge. The container is known.
func (e *Engine) onPartition(res *ItemResult, epk []byte, do func(*store.Partition) error) error {
	c := res.Container
	res.Partition = c.Partition(epk)
	if err := e.meters.admit(c, res.Partition); err != nil {
		res.Charge = 0
		return err
	}
	p, err := e.partition(c, res.Partition)
	if err == nil {
		err = do(p)
	}
	if !errors.Is(err, store.ErrClosed) {
		e.meters.settle(c, res.Partition, res.Charge)
	}
	return err
}

// draft is a write whose body was read. What is left to be checked depends on the
// container.
type draft struct {
	ItemWrite
	item  *value.Object
	patch *patch
}

// draftOf reads the body of a write, if it has one.
func draftOf(r ItemWrite) (d draft, err error) {
	d.ItemWrite = r
	switch r.Op {
	case store.Create, store.Upsert, store.Replace:
		d.item, err = parseItem(r.Body)
	case store.Update:
		d.patch, err = parsePatch(r.Body)
	}
	return d, err
}

// bind makes what a partition of the container can do of a draft.
func (e *Engine) bind(c *catalog.Container, d *draft) (w store.Write, err error) {
	w = store.Write{Op: d.Op, Item: d.item, IfMatch: d.IfMatch, IfNoneMatch: d.IfNoneMatch, Memory: d.Memory}
	if w.Key, w.NewID, err = writeKey(c, &d.ItemWrite, d.item); err != nil {
		return store.Write{}, err
	}
	if d.patch != nil {
		w.Change, err = e.change(c, d.patch)
	}
	return w, err
}

// ItemRead is a request to read an item.
type ItemRead struct {
	Target
	IfNoneMatch  string
	SessionToken string
	Room         []byte // memory for the item, if it is enough
}

// ReadItem returns an item. With store.ErrNotModified the etag is set.
func (e *Engine) ReadItem(r ItemRead) (ItemResult, error) {
	defer e.observe(e.begin())
	res := ItemResult{Charge: ru.NotFound}
	session, err := parseSession(r.SessionToken)
	if err != nil {
		return res, err
	}
	nowMs := e.clock.Now()
	err = whileClosed(func() error {
		c, err := e.target(r.Target)
		if err != nil {
			return err
		}
		res.Container = c
		k, err := headerKey(c, r.PartitionKey)
		if err != nil {
			return err
		}
		key := itemKey(c, k, r.ID)
		return e.onPartition(&res, key.EPK, func(p *store.Partition) error {
			item, err := p.Read(r.Room, key, r.IfNoneMatch, nowMs)
			if errors.Is(err, store.ErrClosed) {
				return err
			}
			res.LSN, res.Answered, res.Room = item.LSN, true, item.Room
			if ahead := session.check(res.Partition, item.LSN); ahead != nil {
				return ahead
			}
			res.Body, res.ETag, res.ItemLSN = item.Body, item.ETag, item.ItemLSN
			res.Live, res.Counted = item.Live, item.ItemLSN != 0
			res.Charge = ru.Read(len(item.Body))
			return err
		})
	})
	return res, err
}

// target looks a container up for an operation on its items.
func (e *Engine) target(t Target) (*catalog.Container, error) {
	c, err := e.catalog.Container(t.Database, t.Container)
	if err != nil {
		return nil, ownerMissing(err)
	}
	if t.IntendedRID != "" && t.IntendedRID != c.RIDText {
		return nil, ErrContainerChanged
	}
	return c, nil
}

// parseItem checks an item. As with the service, its strings may have tabs, carriage
// returns and line feeds in them that are not escaped. They are escaped here, so that
// what is kept is JSON for every reader.
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

// writeKey returns the key of the item that a write is about: the header's
// partition key, which must be the body's, and the id of path or body. For a replace
// it returns the id that the item will have, too, which is the body's.
func writeKey(c *catalog.Container, r *ItemWrite, o *value.Object) (key store.Key, newID string, err error) {
	if o == nil {
		k, err := headerKey(c, r.PartitionKey)
		if err != nil {
			return store.Key{}, "", err
		}
		return itemKey(c, k, r.ID), "", nil
	}
	id, err := bodyID(o)
	if err != nil {
		return store.Key{}, "", err
	}
	k, err := bodyKey(c, o)
	if err != nil {
		return store.Key{}, "", err
	}
	if r.PartitionKey != "" {
		given, err := headerKey(c, r.PartitionKey)
		if err != nil {
			return store.Key{}, "", err
		}
		if !given.Equal(k) {
			return store.Key{}, "", ErrKeyMismatch
		}
	}
	if r.Op == store.Replace {
		return itemKey(c, k, r.ID), id, nil
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

// bodyKey takes the partition key out of an item. What is no scalar is no value of a
// key: the item is kept as one without the property.
func bodyKey(c *catalog.Container, o *value.Object) (value.PartitionKey, error) {
	k := make(value.PartitionKey, 0, maxHierarchyDepth)
	for _, path := range c.PartitionKey.Paths {
		var v value.Value
		if raw, found := o.At(path); found {
			v, _ = value.FromJSON(raw)
		}
		k = append(k, v)
	}
	return k, checkKeySize(k)
}

// headerKey reads the partition key that was given with a request.
func headerKey(c *catalog.Container, text string) (value.PartitionKey, error) {
	if text == "" {
		return nil, invalid("PartitionKey value must be supplied for this operation, in the header x-ms-documentdb-partitionkey.")
	}
	k, err := value.ParsePartitionKey(text)
	if err != nil {
		return nil, invalid("Partition key %s is invalid, in the header x-ms-documentdb-partitionkey: %v.", value.Clip(text), err)
	}
	if len(k) == 0 { // "none": the item has no such property
		k = make(value.PartitionKey, len(c.PartitionKey.Paths))
	}
	if len(k) != len(c.PartitionKey.Paths) {
		return nil, ErrKeyForm
	}
	return k, checkKeySize(k)
}

// checkKeySize: the service documents 101 bytes for a key of version 1, and takes
// longer ones all the same, of which only the beginning is hashed.
func checkKeySize(k value.PartitionKey) error {
	if n := k.Size(); n > maxKeyBytes {
		return invalid("The partition key is %d bytes long, more than the %d bytes that it may have.", n, maxKeyBytes)
	}
	return nil
}
