// SPDX-License-Identifier: MIT

// Checking a partition at rest: every item has all its derived rows, every
// derived row has its item, the counters agree with both, and the body of each
// item says what its header says.

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Check looks at every row of a partition, calls report for each problem and returns what
// there is. An error means that the check itself could not go on.
func Check(snap kv.Snapshot, c *catalog.Container, index int, report func(problem string)) (Amount, error) {
	k := &checker{
		snap: snap, container: c, index: index, prefix: partitionPrefix(c.RID, index),
		report: func(format string, args ...any) {
			report(fmt.Sprintf("container %q of database %q, partition %d: %s", c.ID, c.DatabaseID, index, fmt.Sprintf(format, args...)))
		},
		counted: map[bucketKey]bucket{},
		parts:   map[string]part{},
	}
	var err error
	found := false
	if k.meta, found, err = readMeta(snap, &k.prefix, index); err != nil {
		return Amount{}, err
	}
	if err := k.startLog(); err != nil {
		return Amount{}, err
	}
	k.earlierPolicy = found && k.meta.Generation != c.IndexGeneration
	for _, pass := range []struct {
		space byte
		row   func(kv.Entry) error
	}{
		{logSpace, k.logRow}, {itemSpace, k.item}, {idSpace, k.idRow}, {feedSpace, k.feedRow}, {ownSpace, k.ownRow},
		{uniqueSpace, k.uniqueRow}, {indexSpace, k.indexRow}, {partSpace, k.part}, {statSpace, k.stat},
		{eventSpace, k.event}, {removalSpace, k.removal},
	} {
		lower, upper := k.prefix.space(pass.space)
		for e, err := range snap.Scan(lower, upper, kv.Forward) {
			if err == nil {
				err = pass.row(e)
			}
			if err != nil {
				return k.totals, err
			}
		}
	}
	for b, n := range k.counted {
		k.report("counter %c %c %d is missing: it should hold %d items", b.class, b.level, b.start, n.Items)
	}
	for logical, p := range k.parts {
		k.report("logical partition %x has no totals: it holds %d items", logical, p.Items)
	}
	if k.totals != (k.meta.Amount) {
		k.report("the partition's totals are %d items, %d bytes, but there are %d items, %d bytes",
			k.meta.Items, k.meta.Bytes, k.totals.Items, k.totals.Bytes)
	}
	k.logEnds()
	if k.overfull != k.meta.Overfull && !k.earlierPolicy {
		k.report("the partition knows of %d items that have too much to index, but there are %d", k.meta.Overfull, k.overfull)
	}
	return k.totals, k.strangers()
}

type checker struct {
	snap      kv.Snapshot
	container *catalog.Container
	index     int
	prefix    prefix
	meta      meta
	report    func(format string, args ...any)
	totals    Amount
	// earlierPolicy: the partition has not met the container's indexing policy yet,
	// and its index rows, which leave when it does, go by one that is not known.
	earlierPolicy bool
	lastLSN       uint64
	lastMs        int64
	// counted is what the counters should say. It is as long as there are
	// seconds in which anything was written or expires.
	counted  map[bucketKey]bucket
	overfull int64 // items that have too much to index
	// parts is what the rows of the logical partitions should say.
	parts map[string]part
	log   logCheck
}

// item checks an item and looks for each of its derived rows.
func (k *checker) item(e kv.Entry) error {
	ordinal, err := ordinalOf(e.Key)
	if err != nil {
		k.report("%v", err)
		return nil
	}
	h, body, err := parseItem(e.Key, e.Value)
	if err != nil {
		k.report("%v", err)
		return nil
	}
	c := &current{exists: true, ordinal: ordinal, header: h}
	k.count(&h)
	if ordinal >= k.meta.NextOrdinal || h.lsn > k.meta.LSN {
		k.report("item %d, lsn %d, is beyond the partition's next ordinal %d and last lsn %d", ordinal, h.lsn, k.meta.NextOrdinal, k.meta.LSN)
	}
	k.passed(&h, ordinal)
	k.body(c, body)
	k.logged(c, body)
	if err := k.derived(c, k.prefix.appendIDKey(nil, h.identity), binary.BigEndian.AppendUint64(nil, ordinal), "id row"); err != nil {
		return err
	}
	if err := k.derived(c, k.prefix.appendFeedKey(nil, h.lsn, h.n), appendFeedRow(nil, c), "feed row"); err != nil {
		return err
	}
	if err := k.unique(c, body); err != nil {
		return err
	}
	if err := k.indexed(c, body); err != nil {
		return err
	}
	if kindOf(h.ttl) != kindOwn {
		return nil
	}
	return k.derived(c, k.prefix.appendOrderKey(nil, kindOwn, h.mark()), appendOwnRow(nil, c), "own row")
}

// unique looks for the rows of the unique keys that the item holds.
func (k *checker) unique(c *current, body []byte) error {
	keys, err := heldBy(k.container, &c.header, body)
	if err != nil {
		return nil // k.body has reported what cannot be read
	}
	for _, key := range keys {
		if err := k.derived(c, k.prefix.appendUniqueKey(nil, key), binary.BigEndian.AppendUint64(nil, c.ordinal), "unique key's row"); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) derived(c *current, key, want []byte, what string) error {
	got, found, err := k.snap.Get(key)
	switch {
	case err != nil:
		return err
	case !found:
		k.report("item %d has no %s", c.ordinal, what)
	case !bytes.Equal(got, want):
		k.report("item %d has a %s that says %x instead of %x", c.ordinal, what, got, want)
	}
	return nil
}

// body compares what the item's JSON says with its header and its place.
func (k *checker) body(c *current, body []byte) {
	o, err := value.ParseObject(body)
	if err != nil {
		k.report("item %d is not JSON: %v", c.ordinal, err)
		return
	}
	for _, p := range []struct{ name, want string }{
		{"_rid", k.container.RID.ItemRID(c.ordinal)},
		{"_etag", c.header.etagText(k.index)},
	} {
		raw, _ := o.Lookup(p.name)
		if v, _ := value.FromJSON(raw); v != value.String(p.want) {
			k.report("item %d has %s %s, want %s", c.ordinal, p.name, raw, p.want)
		}
	}
	ts, _ := o.Lookup("_ts")
	if v, _ := value.FromJSON(ts); v != value.Number(float64(c.header.writtenMs/1000)) {
		k.report("item %d has _ts %s, but was written at %d ms", c.ordinal, ts, c.header.writtenMs)
	}
	i, err := parseIdentity(c.header.identity)
	if err != nil {
		k.report("item %d has no readable identity: %v", c.ordinal, err)
		return
	}
	if id, _ := o.Lookup("id"); !isText(id, i.id) {
		k.report("item %d has id %s, but is kept as %q", c.ordinal, id, i.id)
	}
	if epk := k.container.PartitionKey.AppendEPK(nil, i.pk); !bytes.Equal(epk, i.epk) || k.container.Partition(epk) != k.index {
		k.report("item %d with partition key %s does not belong here", c.ordinal, i.pk)
	}
}

func isText(raw []byte, want string) bool {
	v, _ := value.FromJSON(raw)
	return v == value.String(want)
}

// owner reports whether a derived row's item exists and has the row.
func (k *checker) owner(e kv.Entry, ordinal uint64, has func(h header, body []byte) bool) error {
	key := k.prefix.appendItemKey(nil, ordinal)
	row, found, err := k.snap.Get(key)
	if err != nil {
		return err
	}
	if !found {
		k.report("row %x belongs to item %d, which does not exist", e.Key, ordinal)
		return nil
	}
	if h, body, err := parseItem(key, row); err != nil || !has(h, body) {
		k.report("row %x is not one that item %d has", e.Key, ordinal)
	}
	return nil
}

func (k *checker) idRow(e kv.Entry) error {
	if len(e.Value) != idRowBytes {
		k.report("row %x is not an id row", e.Key)
		return nil
	}
	return k.owner(e, binary.BigEndian.Uint64(e.Value), func(h header, _ []byte) bool {
		return bytes.Equal(h.identity, e.Key[prefixBytes+1:])
	})
}

func (k *checker) feedRow(e kv.Entry) error {
	if len(e.Value) != feedRowBytes || len(e.Key) != prefixBytes+1+10 {
		k.report("row %x is not a feed row", e.Key)
		return nil
	}
	lsn := binary.BigEndian.Uint64(e.Key[prefixBytes+1:])
	writtenMs := int64(binary.BigEndian.Uint64(e.Value[8:]))
	if writtenMs < k.lastMs {
		k.report("lsn %d was written at %d ms, before lsn %d at %d ms", lsn, writtenMs, k.lastLSN, k.lastMs)
	}
	k.lastLSN, k.lastMs = lsn, writtenMs
	return k.owner(e, binary.BigEndian.Uint64(e.Value), func(h header, _ []byte) bool {
		return bytes.Equal(e.Key, k.prefix.appendFeedKey(nil, h.lsn, h.n))
	})
}

func (k *checker) ownRow(e kv.Entry) error {
	if len(e.Value) != ownRowBytes || len(e.Key) != prefixBytes+1+18 {
		k.report("row %x is not an own row", e.Key)
		return nil
	}
	return k.owner(e, binary.BigEndian.Uint64(e.Value), func(h header, _ []byte) bool {
		return kindOf(h.ttl) == kindOwn &&
			bytes.Equal(e.Key, k.prefix.appendOrderKey(nil, kindOwn, h.mark()))
	})
}

func (k *checker) uniqueRow(e kv.Entry) error {
	if len(e.Value) != uniqueRowBytes {
		k.report("row %x is not a unique key's row", e.Key)
		return nil
	}
	return k.owner(e, binary.BigEndian.Uint64(e.Value), func(h header, body []byte) bool {
		keys, err := heldBy(k.container, &h, body)
		return err == nil && slices.ContainsFunc(keys, func(key []byte) bool {
			return bytes.Equal(key, e.Key[prefixBytes+1:])
		})
	})
}

// stat compares a counter with what was counted.
func (k *checker) stat(e kv.Entry) error {
	at, err := parseStatKey(e.Key)
	if err != nil {
		k.report("%v", err)
		return nil
	}
	b, err := decodeBucket(e.Key, e.Value)
	if err != nil {
		k.report("%v", err)
		return nil
	}
	want := k.counted[at]
	delete(k.counted, at)
	if want.Items == 0 || b.Items != want.Items || b.Bytes != want.Bytes || b.firstLSN > want.firstLSN ||
		b.firstMs > want.firstMs || b.lastMs < want.lastMs {
		k.report("counter %c %c %d holds %d items, %d bytes from lsn %d, ms %d to %d, but there are %d items, %d bytes from lsn %d, ms %d to %d",
			at.class, at.level, at.start, b.Items, b.Bytes, b.firstLSN, b.firstMs, b.lastMs,
			want.Items, want.Bytes, want.firstLSN, want.firstMs, want.lastMs)
	}
	return nil
}

// strangers reports the rows that are of no kind: what lies between the spaces.
func (k *checker) strangers() error {
	from := k.prefix[:]
	for _, space := range []byte{partSpace, itemSpace, eventSpace, feedSpace, indexSpace, idSpace, logStateSpace, metaSpace, removalSpace, statSpace, uniqueSpace, logSpace, ownSpace} {
		lower, upper := k.prefix.space(space)
		if err := k.nothingIn(from, lower); err != nil {
			return err
		}
		if from = upper; space == metaSpace || space == logStateSpace { // one row, not a space
			from = append(lower, 0)
		}
	}
	return k.nothingIn(from, kv.After(k.prefix[:]))
}

func (k *checker) nothingIn(lower, upper []byte) error {
	for e, err := range k.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return err
		}
		k.report("row %x is of no kind", e.Key)
	}
	return nil
}

// CheckOrphans reports partitions whose container does not exist. known tells
// how many partitions a container has, 0 if there is no such container.
func CheckOrphans(snap kv.Snapshot, known func(catalog.ContainerRID) int, report func(problem string)) error {
	lower, upper := []byte{partitionTag}, []byte{partitionTag + 1}
	for {
		key, err := firstKey(snap, lower, upper)
		if err != nil || key == nil {
			return err
		}
		if len(key) <= prefixBytes {
			report(fmt.Sprintf("row %x belongs to no partition", key))
			lower = append(key, 0)
			continue
		}
		c := catalog.ContainerRID{
			Database:  catalog.DatabaseRID(binary.BigEndian.Uint32(key[1:])),
			Container: binary.BigEndian.Uint32(key[5:]),
		}
		if index := int(binary.BigEndian.Uint16(key[9:])); index >= known(c) {
			report(fmt.Sprintf("there are rows of partition %d of container %s, which does not exist", index, c))
		}
		lower = kv.After(key[:prefixBytes])
	}
}

// firstKey returns a copy of the first key in a range, nil if there is none.
func firstKey(snap kv.Snapshot, lower, upper []byte) ([]byte, error) {
	for e, err := range snap.Scan(lower, upper, kv.Forward) {
		return bytes.Clone(e.Key), err
	}
	return nil, nil
}
