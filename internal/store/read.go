// SPDX-License-Identifier: MIT

// Reading items: from the published view, at one moment, and never an expired one. Reads do
// not enter the loop.

package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

// Item is an item as it was read.
type Item struct {
	Body []byte
	// Room is the memory that the body is in. The caller may pass it to the next read.
	Room []byte
	ETag string
	// ItemLSN is that of the item's last write, LSN that of the partition at the read.
	ItemLSN, LSN uint64
	// Live is the partition's LiveEstimate.
	Live Amount

	life life
	at   *published
}

// Read returns the item with the given key, as of nowMs, in the memory of room if there is
// enough. LSN is set on success, and with ErrNotModified and ErrNotFound.
func (p *Partition) Read(room []byte, k Key, ifNoneMatch string, nowMs int64) (Item, error) {
	nowMs = p.notBefore(nowMs)
	h, row, at, err := p.find(room[:0], k, nowMs)
	item := Item{LSN: at.meta.LSN, Live: at.live, Room: row}
	if err != nil {
		return item, err
	}
	if h.expired(&at.rules, nowMs) {
		p.ledger.Add(ru.DeadRead, ru.Read(h.size), 1, int64(h.size))
		return item, ErrNotFound
	}
	if !at.liveKnown {
		if item.Live, err = p.countLive(nowMs); err != nil {
			return item, err
		}
	}
	item.life, item.at = h.life(), at.published
	if item.ETag, err = etagIn(row[len(row)-h.size:]); err != nil {
		return item, err
	}
	item.ItemLSN = h.wroteAt().LSN
	if ifNoneMatch != "" && catalog.Matches(ifNoneMatch, item.ETag) {
		return item, ErrNotModified
	}
	item.Body = row[len(row)-h.size:]
	return item, nil
}

// readState is the state that an item was read from.
type readState struct {
	*published
	live      Amount
	liveKnown bool // live is set
}

// find appends the row of the item with the given key to dst, which is empty, whether the
// item is expired or not. It looks in the cache first.
func (p *Partition) find(dst []byte, k Key, nowMs int64) (h header, row []byte, at readState, err error) {
	var space [256]byte
	key := p.prefix.appendKey(space[:0], idSpace, nil)
	key = appendIdentity(key, k.EPK, k.PartitionKey, k.ID)
	identity := key[prefixBytes+1:]
	at, err = p.presentState(nowMs)
	if err != nil {
		return header{}, dst, at, err
	}
	if row, found := p.rows.find(dst, identity, at.meta.LSN); found {
		h, _, err = parseItem(nil, row)
		return h, row, at, err
	}
	v, err := p.acquire()
	if err != nil {
		return header{}, dst, at, err
	}
	defer p.release(v)
	if at.number != v.number {
		at.published, at.liveKnown = v.published, false
	}
	ordinal, found, err := rowAt(v.snap, p.prefix.appendIDKey(make([]byte, 0, len(key)), identity), parseOrdinalRow) // key itself stays on the stack
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return header{}, dst, at, err
	}
	h, _, row, err = p.itemInto(dst, v, ordinal, true)
	if key, ok := p.rows.key(ordinal); ok && err == nil {
		p.rows.cache.Hint(h.identity, key)
	}
	return h, row, at, err
}

// presentState returns the published state, and how much is live if that is known.
func (p *Partition) presentState(nowMs int64) (at readState, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.published = p.mu.now
	at.live, at.liveKnown = p.liveLocked(nowMs)
	if p.mu.closed {
		err = ErrClosed
	}
	return at, err
}

// item returns the item with the given ordinal, expired or not.
func (p *Partition) item(v *view, ordinal uint64) (header, []byte, error) {
	h, body, _, err := p.itemInto(nil, v, ordinal, false)
	return h, body, err
}

// itemInto appends the row of an item to dst, which is empty, and parses it. With keep, the
// row is cached for later reads.
func (p *Partition) itemInto(dst []byte, v *view, ordinal uint64, keep bool) (h header, body, row []byte, err error) {
	var space [32]byte
	key := p.prefix.appendItemKey(space[:0], ordinal)
	row, found, err := p.readRow(v, dst, key, ordinal, keep)
	if err == nil && !found {
		err = corrupt(key, "an id row leads to no item")
	}
	if err != nil {
		return header{}, nil, row, err
	}
	h, body, err = parseItem(key, row)
	return h, body, row, err
}

// List asks for a page of items in the order of their creation.
type List struct {
	// Within, if set, asks for the items of one logical partition.
	Within *LogicalPartition
	// MinEPK and MaxEPK bound the effective partition keys, inclusive and exclusive; nil is
	// no bound.
	MinEPK, MaxEPK []byte
	// After is the ordinal after which to begin; zero is the beginning.
	After    uint64
	MaxItems int
	MaxBytes int
}

// LogicalPartition is all items with one partition key.
type LogicalPartition struct {
	EPK          []byte
	PartitionKey value.PartitionKey
	// Prefix says that PartitionKey is the beginning of hierarchical keys. The items of all
	// keys that begin with it are included.
	Prefix bool
}

// appendKey appends {epk}{pk}. With Prefix it appends what all keys with the prefix begin
// with.
func (l *LogicalPartition) appendKey(dst []byte) []byte {
	dst = value.AppendBytesKey(dst, l.EPK)
	if l.Prefix {
		return dst[:len(dst)-len(value.AppendBytesKey(nil, nil))] // without its terminator
	}
	return l.PartitionKey.AppendKey(dst)
}

// appendPlace appends what appendKey does, as it is in keys.
func (l *LogicalPartition) appendPlace(dst []byte) []byte {
	whole := l.appendKey(dst)
	if l.Prefix {
		return whole
	}
	return append(whole[:len(dst)], placed(whole[len(dst):])...)
}

// Holds reports whether an effective partition key belongs to the logical partition.
func (l *LogicalPartition) Holds(epk []byte) bool {
	if l.Prefix {
		return bytes.HasPrefix(epk, l.EPK)
	}
	return bytes.Equal(epk, l.EPK)
}

// Page is one page of a List.
type Page struct {
	// Items holds the bodies, with commas between them.
	Items []byte
	Count int
	// Last is the last ordinal that the page looked at. More reports whether there may be
	// items after it.
	Last uint64
	More bool
	LSN  uint64
}

// A page that passes over many items, because they have expired or are not asked for, ends
// early: it may be empty, with More. pageRows bounds the rows that it looks at, and
// passedBytes the bytes of items that it reads and does not return.
const (
	pageRows    = 50_000
	passedBytes = 32 << 20
)

// List returns a page, as of nowMs.
func (p *Partition) List(ctx context.Context, q List, nowMs int64) (Page, error) {
	l := lister{q: q}
	err := l.open(p, nowMs)
	if err != nil {
		return Page{}, err
	}
	defer l.Close()
	l.page = Page{LSN: l.LSN(), Last: q.After}
	if q.Within != nil {
		l.stop.Look = ctx.Err
		err = l.logicalPartition()
	} else {
		err = l.all(ctx)
	}
	return l.page, err
}

type lister struct {
	Reader
	q    List
	page Page
	// passed is the bytes of items that were read and not returned.
	passed int64
}

// all lists the items of all logical partitions.
func (l *lister) all(ctx context.Context) error {
	_, upper := l.p.prefix.space(itemSpace)
	lower := l.p.prefix.appendItemKey(nil, l.q.After+1)
	rows := 0
	for e, err := range l.v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return err
		}
		ordinal, err := ordinalOf(e.Key)
		if err != nil {
			return err
		}
		h, body, err := parseItem(e.Key, e.Value)
		if err != nil {
			return err
		}
		if l.full(len(body)) || rows == pageRows || l.passed >= passedBytes {
			l.page.More = true
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rows++
		inside, err := epkBetween(h.identity, l.q.MinEPK, l.q.MaxEPK)
		if err != nil {
			return err
		}
		if inside {
			l.add(ordinal, &h, body)
		} else {
			l.page.Last = ordinal
			l.passed += int64(len(body))
		}
	}
	return nil
}

// epkBetween reports whether an item's effective partition key is between lower, inclusive,
// and upper, exclusive. Nil is no bound.
func epkBetween(identity, lower, upper []byte) (bool, error) {
	if lower == nil && upper == nil {
		return true, nil
	}
	epk, _, err := value.DecodeBytesKey(identity)
	return bytes.Compare(epk, lower) >= 0 && (upper == nil || bytes.Compare(epk, upper) < 0), err
}

func ordinalOf(itemKey []byte) (uint64, error) {
	if len(itemKey) != prefixBytes+1+8 {
		return 0, corrupt(itemKey, "not an item's key")
	}
	return binary.BigEndian.Uint64(itemKey[prefixBytes+1:]), nil
}

// parseOrdinalRow returns the ordinal in an id row or a unique key's row.
func parseOrdinalRow(e kv.Entry) (uint64, error) {
	if len(e.Value) != idRowBytes {
		return 0, corrupt(e.Key, "not "+derivedRows[e.Key[prefixBytes]].aRow)
	}
	return binary.BigEndian.Uint64(e.Value), nil
}

// itemOf parses an item's row. The result shares its memory.
func itemOf(e kv.Entry) (c current, err error) {
	c.exists = true
	if c.ordinal, err = ordinalOf(e.Key); err == nil {
		c.header, c.body, err = parseItem(e.Key, e.Value)
	}
	return c, err
}

// full reports whether a body of the given length does not fit into the page. The first
// always fits.
func (l *lister) full(bytes int) bool {
	return l.page.Count > 0 && (l.page.Count >= l.q.MaxItems || len(l.page.Items)+len(",")+bytes > l.q.MaxBytes)
}

// add adds an item to the page, unless it has expired.
func (l *lister) add(ordinal uint64, h *header, body []byte) {
	l.page.Last = ordinal
	if l.cut.expired(h.life()) {
		l.expired = l.expired.Plus(h.amount(1))
		l.passed += int64(len(body))
		return
	}
	if l.page.Count > 0 {
		l.page.Items = append(l.page.Items, ',')
	}
	l.page.Items = append(l.page.Items, body...)
	l.page.Count++
}

// logicalPartition lists the items of a logical partition. It finds them through their id
// rows, which are adjacent, and returns the oldest after the start of the page. A page of n
// items scans all id rows of the logical partition, of a few bytes each, and reads little
// more than n items.
func (l *lister) logicalPartition() error {
	for rows := 0; ; {
		ordinals, more, err := l.oldest(l.q.Within, l.page.Last)
		if err != nil {
			return err
		}
		warm := 0
		for i, ordinal := range ordinals {
			if i == warm {
				warm += l.p.warmItems(l.v, ordinals[i:])
			}
			h, body, err := l.p.item(l.v, ordinal)
			if err != nil {
				return err
			}
			if l.full(len(body)) || l.passed >= passedBytes {
				l.page.More = true
				return nil
			}
			l.add(ordinal, &h, body)
		}
		if !more {
			return nil
		}
		rows += len(ordinals)
		if l.page.Count >= l.q.MaxItems || rows >= pageRows {
			l.page.More = true
			return nil
		}
	}
}

// oldestOrdinals is how many ordinals one scan of the id rows returns, even if fewer items
// are asked for: the next ones may all have expired.
const oldestOrdinals = 4096

// oldest returns the lowest ordinals of a logical partition above after, in ascending
// order, and whether there are more.
func (r *Reader) oldest(l *LogicalPartition, after uint64) (ordinals []uint64, more bool, err error) {
	lower := l.appendPlace(r.p.prefix.appendKey(nil, idSpace, nil))
	keepOldest := func() {
		slices.Sort(ordinals)
		if len(ordinals) > oldestOrdinals {
			ordinals, more = ordinals[:oldestOrdinals], true
		}
	}
	for e, err := range r.v.snap.Scan(lower, kv.After(lower), kv.Forward) {
		var ordinal uint64
		if err == nil {
			err = r.step()
		}
		if err == nil {
			ordinal, err = parseOrdinalRow(e)
		}
		if err != nil {
			return nil, false, err
		}
		if ordinal > after {
			ordinals = append(ordinals, ordinal)
		}
		if len(ordinals) == 2*oldestOrdinals {
			keepOldest()
		}
	}
	keepOldest()
	return ordinals, more, nil
}
