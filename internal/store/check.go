// SPDX-License-Identifier: MIT

// Checking a partition at rest: every item has all its derived rows, every derived row has
// its item, the counters agree with both, and the body of each item agrees with its header.

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// CountItems returns how many items the counters of a partition at rest say that there are,
// expired ones among them.
func CountItems(snap kv.Snapshot, c *catalog.Container, index int) (int64, error) {
	x := partitionPrefix(c.RID, index)
	s := stored{snap, &x}
	m, _, err := s.readMeta(index)
	return m.Items, err
}

// Check reads every row of a partition, calls seen for each item and report for each problem,
// and returns how much there is. An error means that the check could not continue.
func Check(snap kv.Snapshot, c *catalog.Container, index int, seen func(), report func(problem string)) (Amount, error) {
	x := partitionPrefix(c.RID, index)
	k := &checker{
		stored: stored{snap, &x}, container: c, index: index,
		report: func(format string, args ...any) {
			report(fmt.Sprintf("container %q of database %q, partition %d: %s", c.ID, c.DatabaseID, index, fmt.Sprintf(format, args...)))
		},
		correct: map[byte]int{}, seen: seen,
	}
	found, err := false, error(nil)
	if k.meta, found, err = k.readMeta(index); err != nil {
		return Amount{}, err
	}
	if err := k.startLog(); err != nil {
		return Amount{}, err
	}
	k.earlierPolicy = found && k.meta.Generation != c.IndexGeneration
	k.shadow(&k.all)
	k.shadow(&k.one)
	for _, pass := range []struct {
		space byte
		row   func(kv.Entry) error
	}{
		{logSpace, checked(k, parseLogRow, k.logRow)}, {itemSpace, checked(k, itemOf, k.item)}, {feedSpace, checked(k, parseFeedRow, k.feedRow)},
		{partSpace, checked(k, decodePart, k.part)}, {statSpace, checked(k, parseBucket, k.stat)},
		{eventSpace, checked(k, parseEventRow, k.event)}, {removalSpace, checked(k, parseRemoval, k.removal)},
	} {
		if err := k.each(pass.space, pass.row); err != nil {
			return k.all.meta.Amount, err
		}
	}
	if err := k.strays(); err != nil {
		return k.all.meta.Amount, err
	}
	k.totals()
	k.logEnds()
	return k.all.meta.Amount, k.unknownRows()
}

// checker checks a partition. It writes every item again, with a writer whose batch is not
// committed, and compares its rows and counts with those in the partition.
type checker struct {
	stored
	container *catalog.Container
	index     int
	meta      meta
	report    func(format string, args ...any)
	seen      func() // called for each item
	// all has written and counted all items. Its memory grows with the number of seconds in
	// which items were written or expire. one writes a single item.
	all, one writer
	// correct counts the rows that are as their items require, by space.
	correct map[byte]int
	// earlierPolicy: the partition has not adopted the container's indexing policy yet. Its
	// index rows are of an unknown policy, and will be dropped when it does.
	earlierPolicy bool
	lastLSN       uint64
	lastMs        int64
	overfull      int64 // items that have too much to index
	log           logCheck
}

// each calls check with every row of a space.
func (k *checker) each(space byte, check func(kv.Entry) error) error {
	lower, upper := k.prefix.space(space)
	for e, err := range k.snap.Scan(lower, upper, kv.Forward) {
		if err == nil {
			err = check(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checked returns a check of parsed rows. It reports rows that cannot be parsed.
func checked[T any](k *checker, parse func(kv.Entry) (T, error), check func(kv.Entry, T) error) func(kv.Entry) error {
	return func(e kv.Entry) error {
		row, err := parse(e)
		if err != nil {
			if e.Key[prefixBytes] != feedSpace { // strays reports feed rows
				k.report("%v", err)
			}
			return nil
		}
		return check(e, row)
	}
}

// item checks an item and all its derived rows.
func (k *checker) item(e kv.Entry, c current) error {
	h, ordinal := &c.header, c.ordinal
	k.seen()
	if ordinal >= k.meta.NextOrdinal || h.lsn > k.meta.LSN {
		k.report("item %d, lsn %d, is beyond the partition's next ordinal %d and last lsn %d", ordinal, h.lsn, k.meta.NextOrdinal, k.meta.LSN)
	}
	k.checkMark(h, ordinal)
	k.body(&c)
	k.logged(&c)
	return k.derived(&c, e.Value)
}

// body compares the item's JSON with its header, and with the partition.
func (k *checker) body(c *current) {
	o, err := value.ParseObject(c.body)
	if err != nil {
		k.report("item %d is not JSON: %v", c.ordinal, err)
		return
	}
	for _, p := range []struct{ name, want string }{
		{"_rid", k.container.RID.ItemRID(c.ordinal)},
		{"_etag", c.header.etagText(c.ordinal)},
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

// feedRow checks that times do not decrease along the feed.
func (k *checker) feedRow(_ kv.Entry, row orderRow) error {
	if row.ms < k.lastMs {
		k.report("lsn %d was written at %d ms, before lsn %d at %d ms", row.At.LSN, row.ms, k.lastLSN, k.lastMs)
	}
	k.lastLSN, k.lastMs = row.At.LSN, row.ms
	return nil
}

// stat compares a counter with the count.
func (k *checker) stat(_ kv.Entry, b keyedBucket) error {
	want := k.all.buckets[b.bucketKey]
	delete(k.all.buckets, b.bucketKey)
	if want.Items == 0 || b.Amount != want.Amount || b.firstLSN > want.firstLSN ||
		b.firstMs > want.firstMs || b.lastMs < want.lastMs {
		k.report("counter %c %c %d holds %d items, %d bytes from lsn %d, ms %d to %d, but there are %d items, %d bytes from lsn %d, ms %d to %d",
			b.class, b.level, b.start, b.Items, b.Bytes, b.firstLSN, b.firstMs, b.lastMs,
			want.Items, want.Bytes, want.firstLSN, want.firstMs, want.lastMs)
	}
	return nil
}

// totals reports counts that have no row, and totals of the partition that differ.
func (k *checker) totals() {
	for b, n := range k.all.buckets {
		k.report("counter %c %c %d is missing: it should hold %d items", b.class, b.level, b.start, n.Items)
	}
	for logical, p := range k.all.parts {
		k.report("logical partition %x has no totals: it holds %d items", logical, p.Items)
	}
	if counted := k.all.meta.Amount; counted != k.meta.Amount {
		k.report("the partition's totals are %d items, %d bytes, but there are %d items, %d bytes",
			k.meta.Items, k.meta.Bytes, counted.Items, counted.Bytes)
	}
	if k.overfull != k.meta.Overfull && !k.earlierPolicy {
		k.report("the partition knows of %d items that have too much to index, but there are %d", k.meta.Overfull, k.overfull)
	}
}

// unknownRows reports rows between the known spaces.
func (k *checker) unknownRows() error {
	from := k.prefix[:]
	for _, space := range []byte{partSpace, itemSpace, eventSpace, feedSpace, indexSpace, idSpace, logStateSpace, metaSpace, ownerSpace, removalSpace, statSpace, uniqueSpace, logSpace, ownSpace} {
		lower, upper := k.prefix.space(space)
		if err := k.nothingIn(from, lower); err != nil {
			return err
		}
		if from = upper; space == metaSpace || space == logStateSpace || space == ownerSpace { // one row, not a space
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

// CheckOrphans reports rows of partitions that do not exist. known reports
// whether a container has a partition, or a split makes it.
func CheckOrphans(snap kv.Snapshot, known func(c catalog.ContainerRID, index int) bool, report func(problem string)) error {
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
		if index := int(binary.BigEndian.Uint16(key[9:])); !known(c, index) {
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
