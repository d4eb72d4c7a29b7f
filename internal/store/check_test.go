// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// scene is a sound partition that a test then damages, row by row. Its items are "inherits"
// (ordinal 1, lsn 4, rewritten), "own" (2, lsn 2) and "forever" (3, lsn 3). Each has a
// unique u, which is its id. All damage goes into one batch.
type scene struct {
	*fixture
	prefix prefix
	batch  kv.Batch
}

func newScene(t *testing.T) *scene {
	f := newFixture(t, strings.TrimSuffix(withTTL("1000"), "}")+`,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}}`)
	f.put("inherits", `"u":"inherits"`)
	f.put("own", `"u":"own","ttl":100`)
	f.put("forever", `"u":"forever","ttl":-1`)
	f.advance(2500 * time.Millisecond)
	f.put("inherits", `"u":"inherits","rewritten":true`)
	f.checkClean()
	return &scene{fixture: f, prefix: partitionPrefix(f.container.RID, 0)}
}

func (s *scene) row(key []byte) []byte {
	s.t.Helper()
	raw, found := s.rows()[string(key)]
	s.check(found, "there is no row %x to damage", key)
	return []byte(raw)
}

func (s *scene) remove(key []byte) {
	s.row(key)
	s.batch.Delete(key, 0)
}

// alter replaces a row with what change returns for it.
func (s *scene) alter(key []byte, change func([]byte) []byte) { s.batch.Set(key, change(s.row(key))) }

func (s *scene) itemKey(ordinal uint64) []byte { return s.prefix.appendItemKey(nil, ordinal) }
func (s *scene) idKey(id string) []byte {
	k := s.key("k", id)
	return s.prefix.appendKey(nil, idSpace, appendIdentity(nil, k.EPK, k.PartitionKey, k.ID))
}
func (s *scene) uniqueKey(u string) []byte {
	tuple := value.AppendKey([]byte{tuplePlain, elementScalar}, value.String(u))
	return s.prefix.appendKey(nil, uniqueSpace, append(s.key("k", "").PartitionKey.AppendKey([]byte{0}), tuple...))
}
func (s *scene) feedKey(lsn uint64) []byte { return s.prefix.appendFeedKey(nil, position{LSN: lsn}) }
func (s *scene) ownKey() []byte {
	return s.prefix.appendOrderKey(nil, kindOwn, mark{startMs + 100_000, position{LSN: 2}})
}
func (s *scene) statKey(c class, l level, start int64) []byte {
	return s.prefix.appendStatKey(nil, bucketKey{c, l, start})
}

// stringTerm is the entry of a property whose value is a string.
func stringTerm(property, text string) []byte {
	return append(index.AppendStart(nil, index.Scalars, index.Path{index.Property(property)}), index.Exactly(value.String(text)).PlaceOf(0).Value.Bytes()...)
}

// indexKey is the key of an item's index row, for a property whose value is a string.
func (s *scene) indexKey(property, text string, ordinal uint64) []byte {
	term := stringTerm(property, text)
	return s.prefix.appendIndexKey(nil, 1, term, ordinal)
}

// partKey is the key of the totals of the logical partition "k".
func (s *scene) partKey() []byte {
	k := s.key("k", "")
	return s.prefix.appendKey(nil, partSpace, appendIdentity(nil, k.EPK, k.PartitionKey, ""))
}

// event writes the event row of an item with a key, changed by change.
func (s *scene) event(at EventKey, ordinal uint64, change func([]byte) []byte) {
	k := s.key("k", "gone")
	c := current{ordinal: ordinal, header: header{writtenMs: startMs, ttl: 1, identity: appendIdentity(nil, k.EPK, k.PartitionKey, k.ID)}}
	s.batch.Set(s.prefix.appendEventKey(nil, at), change(appendEventRow(nil, &c)))
}

// meta changes the meta row.
func (s *scene) meta(change func(*meta)) {
	snap, err := s.db.Snapshot()
	s.must(err)
	defer snap.Close()
	m, _, err := (stored{snap, &s.prefix}).readMeta(0)
	s.must(err)
	change(&m)
	s.batch.Set(s.prefix.metaKey(), m.encode())
}

// header changes the header of an item, and leaves its body.
func (s *scene) header(ordinal uint64, change func(*header)) {
	s.alter(s.itemKey(ordinal), func(raw []byte) []byte {
		h, body, err := parseItem(nil, raw)
		s.must(err)
		change(&h)
		return row(h, string(body))
	})
}

// body changes the body of an item, and the size in its header.
func (s *scene) body(ordinal uint64, change func(string) string) {
	s.alter(s.itemKey(ordinal), func(raw []byte) []byte {
		h, body, err := parseItem(nil, raw)
		s.must(err)
		return row(h, change(string(body)))
	})
}

func replaced(old, fresh string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, fresh, 1) }
}

func cut(raw []byte) []byte      { return raw[:len(raw)-1] }
func lengthen(raw []byte) []byte { return append(raw, 0) }

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func TestCheckNamesTheDamage(t *testing.T) {
	const second = startMs/1000 + 2                                           // of the rewritten item
	const minute, hour = second / 60 * 60, (startMs/1000 + 100) / 3600 * 3600 // of that, and of the own deadline
	for _, c := range []struct {
		name   string
		damage func(*scene)
		want   []string // each in one problem, and no problem without one
	}{
		{"id row removed", func(s *scene) { s.remove(s.idKey("own")) }, []string{"item 2 has no id row"}},
		{"id row leads elsewhere", func(s *scene) { s.batch.Set(s.idKey("own"), number(3)) },
			[]string{"item 2 has a id row that says 0000000000000003 instead of 0000000000000002", "is not one that item 3 has"}},
		{"id row leads nowhere", func(s *scene) { s.batch.Set(s.idKey("own"), number(77)) },
			[]string{"item 2 has a id row that says", "belongs to item 77, which does not exist"}},
		{"id row cut", func(s *scene) { s.alter(s.idKey("own"), cut) }, []string{"item 2 has a id row that says", "is not an id row"}},
		{"second id row", func(s *scene) { s.batch.Set(s.idKey("stray"), number(2)) }, []string{"is not one that item 2 has"}},

		{"feed row removed", func(s *scene) { s.remove(s.feedKey(4)) }, []string{"item 1 has no feed row"}},
		{"feed row altered", func(s *scene) {
			s.alter(s.feedKey(4), func(b []byte) []byte { b[16] = byte(kindNever); return b })
		}, []string{"item 1 has a feed row that says"}},
		{"feed row cut", func(s *scene) { s.alter(s.feedKey(4), cut) }, []string{"item 1 has a feed row that says", "is not a feed row"}},
		{"feed row of an old version", func(s *scene) { s.batch.Set(s.feedKey(1), s.row(s.feedKey(2))) }, []string{"is not one that item 2 has"}},
		{"feed row twice in an lsn", func(s *scene) { s.batch.Set(s.prefix.appendFeedKey(nil, position{4, 1}), s.row(s.feedKey(4))) },
			[]string{"is not one that item 1 has"}},
		{"feed row of no item", func(s *scene) {
			s.batch.Set(s.feedKey(1), append(number(77), s.row(s.feedKey(2))[8:]...))
		}, []string{"belongs to item 77, which does not exist"}},
		{"feed key too long", func(s *scene) { s.batch.Set(append(s.feedKey(4), 0), s.row(s.feedKey(4))) }, []string{"is not a feed row"}},

		{"own row removed", func(s *scene) { s.remove(s.ownKey()) }, []string{"item 2 has no own row"}},
		{"own row altered", func(s *scene) { s.alter(s.ownKey(), func(b []byte) []byte { b[11]++; return b }) },
			[]string{"item 2 has a own row that says"}},
		{"own row cut", func(s *scene) { s.alter(s.ownKey(), cut) }, []string{"item 2 has a own row that says", "is not an own row"}},
		{"own row of another moment", func(s *scene) {
			s.batch.Set(s.prefix.appendOrderKey(nil, kindOwn, mark{startMs + 99_000, position{LSN: 2}}), s.row(s.ownKey()))
		}, []string{"is not one that item 2 has"}},
		{"own row of an item that has none", func(s *scene) {
			s.batch.Set(s.prefix.appendOrderKey(nil, kindOwn, mark{startMs + 100_000, position{LSN: 3}}), append(number(3), 0, 0, 0, 0))
		}, []string{"is not one that item 3 has"}},
		{"own row of no item", func(s *scene) {
			s.batch.Set(s.prefix.appendOrderKey(nil, kindOwn, mark{startMs, position{LSN: 1}}), append(number(77), 0, 0, 0, 0))
		}, []string{"belongs to item 77, which does not exist"}},

		{"unique key's row removed", func(s *scene) { s.remove(s.uniqueKey("own")) }, []string{"item 2 has no unique key's row"}},
		{"unique key's row of another item", func(s *scene) { s.row(s.uniqueKey("own")); s.batch.Set(s.uniqueKey("own"), number(3)) },
			[]string{"item 2 has a unique key's row that says", "is not one that item 3 has"}},
		{"unique key's row cut", func(s *scene) { s.alter(s.uniqueKey("own"), cut) },
			[]string{"item 2 has a unique key's row that says", "is not a unique key's row"}},
		{"unique key's row of no item", func(s *scene) { s.batch.Set(s.uniqueKey("stray"), number(2)) }, []string{"is not one that item 2 has"}},
		{"unique key's row of no item", func(s *scene) { s.batch.Set(s.uniqueKey("stray"), number(77)) }, []string{"belongs to item 77, which does not exist"}},

		{"counter removed", func(s *scene) { s.remove(s.statKey(classInherits, levelSecond, second)) },
			[]string{fmt.Sprintf("counter i s %d is missing: it should hold 1 items", second)}},
		{"counter of items", func(s *scene) {
			s.alter(s.statKey(classNever, levelSecond, 0), func(b []byte) []byte { b[7]++; return b })
		},
			[]string{"counter n s 0 holds 2 items"}},
		{"counter of bytes", func(s *scene) {
			s.alter(s.statKey(classNever, levelSecond, 0), func(b []byte) []byte { b[14]++; return b })
		},
			[]string{"counter n s 0 holds 1 items"}},
		{"counter's first lsn", func(s *scene) {
			s.alter(s.statKey(classNever, levelSecond, 0), func(b []byte) []byte { b[23]++; return b })
		},
			[]string{"from lsn 4, ms 0 to 0, but there are 1 items"}},
		{"counter cut", func(s *scene) { s.alter(s.statKey(classNever, levelSecond, 0), cut) },
			[]string{"not a counter", "counter n s 0 is missing"}},
		{"counter key too long", func(s *scene) { s.batch.Set(append(s.statKey(classNever, levelSecond, 0), 0), bucketRow(0, 0, 0)) }, []string{"not a counter's key"}},
		{"counter of nothing", func(s *scene) { s.batch.Set(s.statKey(classOwn, levelSecond, 7), bucketRow(1, 100, 1)) },
			[]string{"counter o s 7 holds 1 items, 100 bytes from lsn 1, ms 1 to 999, but there are 0 items"}},

		{"minute's counter removed", func(s *scene) { s.remove(s.statKey(classInherits, levelMinute, minute)) },
			[]string{fmt.Sprintf("counter i m %d is missing: it should hold 1 items", minute)}},
		{"hour's counter removed", func(s *scene) { s.remove(s.statKey(classOwn, levelHour, hour)) },
			[]string{fmt.Sprintf("counter o h %d is missing: it should hold 1 items", hour)}},
		{"minute's counter of items", func(s *scene) {
			s.alter(s.statKey(classInherits, levelMinute, minute), func(b []byte) []byte { b[7]++; return b })
		}, []string{fmt.Sprintf("counter i m %d holds 2 items", minute)}},
		{"hour's counter of bytes", func(s *scene) {
			s.alter(s.statKey(classOwn, levelHour, hour), func(b []byte) []byte { b[14]++; return b })
		}, []string{fmt.Sprintf("counter o h %d holds 1 items", hour)}},
		{"minute's counter with an lsn", func(s *scene) {
			s.alter(s.statKey(classInherits, levelMinute, minute), func(b []byte) []byte { b[23]++; return b })
		}, []string{fmt.Sprintf("counter i m %d holds 1 items", minute)}},
		{"counter of no level", func(s *scene) { s.batch.Set(s.statKey(classOwn, 'x', 7), bucketRow(1, 100, 1)) },
			[]string{"counter o x 7 holds 1 items"}},
		{"counter that is empty", func(s *scene) { s.batch.Set(s.statKey(classOwn, levelSecond, 7), bucketRow(0, 0, 0)) },
			[]string{"counter o s 7 holds 0 items"}},
		{"counter whose items come before", func(s *scene) {
			s.alter(s.statKey(classInherits, levelSecond, second), func(b []byte) []byte { b[25]++; return b })
		}, []string{fmt.Sprintf("counter i s %d holds 1 items, 263 bytes from lsn 4, ms 501 to 500, but", second)}},
		{"counter whose items come after", func(s *scene) {
			s.alter(s.statKey(classInherits, levelSecond, second), func(b []byte) []byte { b[27]--; return b })
		}, []string{fmt.Sprintf("counter i s %d holds 1 items, 263 bytes from lsn 4, ms 500 to 499, but", second)}},

		{"index row removed", func(s *scene) { s.remove(s.indexKey("u", "own", 2)) }, []string{"item 2 has no index row"}},
		{"index row of another moment", func(s *scene) {
			s.alter(s.indexKey("u", "own", 2), func(b []byte) []byte { b[7]++; return b })
		}, []string{"item 2 has a index row that says"}},
		{"index row of another ttl", func(s *scene) {
			s.alter(s.indexKey("u", "own", 2), func(b []byte) []byte { b[11]++; return b })
		}, []string{"item 2 has a index row that says"}},
		{"index row of another partition key", func(s *scene) { s.alter(s.indexKey("u", "own", 2), lengthen) },
			[]string{"item 2 has a index row that says"}},
		{"index row cut", func(s *scene) {
			s.alter(s.indexKey("u", "own", 2), func(b []byte) []byte { return b[:indexRowBytes-1] })
		}, []string{"item 2 has a index row that says", "is not an index row of generation 1"}},
		{"index row of a term that the item has not", func(s *scene) {
			s.batch.Set(s.indexKey("u", "stray", 2), s.row(s.indexKey("u", "own", 2)))
		}, []string{"is not one that item 2 has"}},
		{"index row of no item", func(s *scene) {
			s.batch.Set(s.indexKey("u", "own", 77), s.row(s.indexKey("u", "own", 2)))
		}, []string{"belongs to item 77, which does not exist"}},
		{"index row of another generation", func(s *scene) {
			term := stringTerm("u", "own")
			s.batch.Set(s.prefix.appendIndexKey(nil, 2, term, 2), s.row(s.indexKey("u", "own", 2)))
		}, []string{"is not an index row of generation 1"}},
		{"index key too short", func(s *scene) {
			s.batch.Set(append(s.prefix.appendIndexStart(nil, 1), stringTerm("u", "own")[0]), make([]byte, indexRowBytes))
		},
			[]string{"is not an index row of generation 1"}},

		{"logical partition's totals removed", func(s *scene) { s.remove(s.partKey()) }, []string{"has no totals: it holds 3 items"}},
		{"logical partition's items", func(s *scene) { s.alter(s.partKey(), func(b []byte) []byte { b[7]++; return b }) },
			[]string{"are 4 items, 762 bytes, but there are 3 items, 762 bytes"}},
		{"logical partition's bytes", func(s *scene) { s.alter(s.partKey(), func(b []byte) []byte { b[15]++; return b }) },
			[]string{"are 3 items, 763 bytes, but there are 3 items, 762 bytes"}},
		{"logical partition's totals cut", func(s *scene) { s.alter(s.partKey(), cut) },
			[]string{"not the totals of a logical partition", "has no totals: it holds 3 items"}},
		{"totals of a logical partition without items", func(s *scene) {
			s.batch.Set(append(s.partKey(), 'x'), (Amount{1, 100}).append(nil))
		}, []string{"are 1 items, 100 bytes, but there are 0 items, 0 bytes"}},
		{"empty totals of a logical partition", func(s *scene) { s.batch.Set(append(s.partKey(), 'x'), (Amount{}).append(nil)) },
			[]string{"are 0 items, 0 bytes, but there are 0 items"}},

		{"partition's items", func(s *scene) { s.meta(func(m *meta) { m.Items-- }) },
			[]string{"the partition's totals are 2 items, 762 bytes, but there are 3 items, 762 bytes"}},
		{"partition's bytes", func(s *scene) { s.meta(func(m *meta) { m.Bytes++ }) },
			[]string{"the partition's totals are 3 items, 763 bytes, but there are 3 items, 762 bytes"}},
		{"purge has passed an item that inherits", func(s *scene) { s.meta(func(m *meta) { m.Marks[kindInherits].At = position{LSN: 4} }) },
			[]string{"item 1, lsn 4, inherits its TTL, but purge has passed lsn 4"}},
		{"purge has passed only others in the feed", func(s *scene) { s.meta(func(m *meta) { m.Marks[kindInherits].At = position{LSN: 3, N: 7} }) }, nil},
		{"purge has passed an item with a ttl", func(s *scene) {
			s.meta(func(m *meta) { m.Marks[kindOwn] = mark{startMs + 100_000, position{LSN: 2}} })
		}, []string{fmt.Sprintf("item 2 expires at %d ms, but purge has passed %d ms", startMs+100_000, startMs+100_000)}},
		{"purge has passed the moment of an item", func(s *scene) { s.meta(func(m *meta) { m.Marks[kindOwn].ExpiryMs = startMs + 100_001 }) },
			[]string{"item 2 expires at"}},
		{"purge has passed all before it", func(s *scene) {
			s.meta(func(m *meta) { m.Marks[kindOwn] = mark{startMs + 100_000, position{LSN: 1, N: 9}} })
		}, nil},

		{"event of a purged item", func(s *scene) {
			s.event(EventKey{startMs + 9, startMs + 9, 5, 0}, 77, func(b []byte) []byte { return b })
		}, nil},
		{"event of an item that is there", func(s *scene) {
			s.event(EventKey{startMs + 9, startMs + 9, 5, 0}, 2, func(b []byte) []byte { return b })
		}, []string{"says that item 2 was purged, but it exists"}},
		{"event cut", func(s *scene) {
			s.event(EventKey{startMs + 9, startMs + 9, 5, 0}, 77, func(b []byte) []byte { return b[:eventRowBytes-1] })
		}, []string{"not an event"}},
		{"event without a readable identity", func(s *scene) {
			s.event(EventKey{startMs + 9, startMs + 9, 5, 0}, 77, func(b []byte) []byte { return b[:eventRowBytes+3] })
		}, []string{"malformed key"}},
		{"event's key too short", func(s *scene) { s.batch.Set(append(s.prefix[:], eventSpace), nil) }, []string{"not an event's key"}},

		{"item removed", func(s *scene) { s.remove(s.itemKey(2)) },
			[]string{"belongs to item 2, which does not exist", fmt.Sprintf("counter o s %d holds 1 items", startMs/1000+100),
				"counter o m 1700000100 holds 1 items", "counter o h 1699999200 holds 1 items",
				"bytes, but there are 2 items", "the partition's totals are 3 items"}},
		{"item cut", func(s *scene) { s.alter(s.itemKey(2), cut) },
			[]string{"an item of the wrong length", "is not one that item 2 has", "counter o ", "the totals of logical partition", "the partition's totals are"}},
		{"item key too long", func(s *scene) { s.batch.Set(append(s.itemKey(2), 0), s.row(s.itemKey(2))) }, []string{"not an item's key"}},
		{"item twice", func(s *scene) {
			s.batch.Set(s.itemKey(4), s.row(s.itemKey(3)))
		}, []string{
			"item 4, lsn 3, is beyond", "item 4 has _rid", "item 4 has a id row that says", "item 4 has a feed row that says",
			"item 4 has a unique key's row that says", "item 4 has no index row", "counter n s 0 holds 1 items", "the totals of logical partition", "the partition's totals are",
		}},
		{"item of an earlier version", func(s *scene) { s.header(1, func(h *header) { h.lsn = 1 }) },
			[]string{"item 1 has _etag", "item 1 has no feed row", "is not one that item 1 has", "from lsn 4, ms 500 to 500, but there are 1 items"}},
		{"item of an lsn to come", func(s *scene) { s.header(1, func(h *header) { h.lsn = 9 }) },
			[]string{"item 1, lsn 9, is beyond the partition's next ordinal 4 and last lsn 4", "item 1 has _etag",
				"item 1 has no feed row", "is not one that item 1 has"}},
		{"item with another place in its lsn", func(s *scene) { s.header(1, func(h *header) { h.n = 1 }) },
			[]string{"item 1 has _etag", "item 1 has no feed row", "is not one that item 1 has"}},
		{"item with another ttl", func(s *scene) { s.header(2, func(h *header) { h.ttl = 101 }) },
			[]string{"item 2 has no own row", "item 2 has a index row that says", "is not one that item 2 has", "counter o "}},
		{"item without its ttl", func(s *scene) { s.header(2, func(h *header) { h.ttl = catalog.TTLAbsent }) },
			[]string{"item 2 has a feed row that says", "item 2 has a index row that says", "is not one that item 2 has", "counter "}},
		{"item of another second", func(s *scene) { s.header(1, func(h *header) { h.writtenMs += 1000 }) },
			[]string{"item 1 has _etag", "item 1 has _ts", "item 1 has a feed row that says", "item 1 has a index row that says", "counter i "}},
		{"item of another identity", func(s *scene) {
			s.header(2, func(h *header) { h.identity = append(slices.Clone(h.identity), 'x') })
		}, []string{`item 2 has id "own", but is kept as "ownx"`, "item 2 has no id row", "is not one that item 2 has"}},
		{"item without identity", func(s *scene) { s.header(2, func(h *header) { h.identity = nil }) },
			[]string{"item 2 has no readable identity", "item 2 has no id row", "is not one that item 2 has", "the totals of logical partition"}},
		{"item of another partition key", func(s *scene) {
			s.header(2, func(h *header) {
				h.identity = appendIdentity(nil, s.key("k", "").EPK, s.key("j", "").PartitionKey, "own")
			})
		}, []string{`item 2 with partition key ["j"] does not belong here`, "item 2 has no id row", "item 2 has no unique key's row", "is not one that item 2 has",
			"the totals of logical partition", "has no totals: it holds 1 items"}},

		{"body is no JSON", func(s *scene) { s.body(2, replaced("{", "[")) }, []string{"item 2 is not JSON", "is not one that item 2 has"}},
		{"body of another size", func(s *scene) { s.body(2, replaced(`"pk"`, `"p"`)) },
			[]string{"item 2 has a feed row that says", "item 2 has a own row that says", "item 2 has no index row", "is not one that item 2 has",
				"counter o ", "the totals of logical partition", "the partition's totals are"}},
		{"body with another _rid", func(s *scene) { s.body(2, replaced(`"_rid":"AAAAAY`, `"_rid":"AAAAAZ`)) }, []string{"item 2 has _rid"}},
		{"body with another _etag", func(s *scene) { s.body(2, replaced(`000000002\""`, `000000003\""`)) }, []string{"item 2 has _etag"}},
		{"body with another _ts", func(s *scene) { s.body(2, replaced(`"_ts":17`, `"_ts":18`)) },
			[]string{fmt.Sprintf("item 2 has _ts 1800000000, but was written at %d ms", startMs)}},
		{"body with another id", func(s *scene) { s.body(2, replaced(`"id":"own"`, `"id":"0wn"`)) }, []string{`item 2 has id "0wn", but is kept as "own"`, "item 2 has no index row", "is not one that item 2 has"}},
		{"body with a number for an id", func(s *scene) { s.body(2, replaced(`"id":"own"`, `"id":12345`)) }, []string{`item 2 has id 12345`, "item 2 has no index row", "is not one that item 2 has"}},

		{"meta row removed", func(s *scene) { s.remove(s.prefix.metaKey()) },
			[]string{"item 1, lsn 4, is beyond", "item 2, lsn 2, is beyond", "item 3, lsn 3, is beyond", "has no index row",
				"is not an index row of generation 0", "the partition's totals are 0 items, 0 bytes, but there are 3 items"}},
		{"meta row of an earlier state", func(s *scene) { s.meta(func(m *meta) { m.LSN, m.NextOrdinal = 3, 3 }) },
			[]string{"item 1, lsn 4, is beyond the partition's next ordinal 3 and last lsn 3", "item 3, lsn 3, is beyond"}},
		{"time runs backwards", func(s *scene) {
			s.header(1, func(h *header) { h.writtenMs -= 2501 })
			s.alter(s.feedKey(4), func(b []byte) []byte {
				binary.BigEndian.PutUint64(b[8:], startMs-1)
				return b
			})
		}, []string{fmt.Sprintf("lsn 4 was written at %d ms, before lsn 3 at %d ms", startMs-1, startMs), "item 1 has _etag", "item 1 has _ts",
			"item 1 has a index row that says", "counter i "}},

		{"row of no kind", func(s *scene) { s.batch.Set(append(s.prefix[:], 'a'), nil) }, []string{"is of no kind"}},
		{"first row", func(s *scene) { s.batch.Set(s.prefix[:], nil) }, []string{"is of no kind"}},
		{"last row", func(s *scene) { s.batch.Set(append(s.prefix[:], 0xff, 0xff), nil) }, []string{"is of no kind"}},
		{"row after meta", func(s *scene) { s.batch.Set(append(s.prefix.metaKey(), 0), nil) }, []string{"is of no kind"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.damage(s)
			s.must(s.db.Commit(context.Background(), &s.batch))
			found := s.problems()
			for _, want := range c.want {
				s.check(slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, want) }), "no problem says %q; there are %q", want, found)
			}
			for _, p := range found {
				s.check(strings.HasPrefix(p, `container "c" of database "db", partition 0: `), "%q does not say where", p)
				s.check(slices.ContainsFunc(c.want, func(want string) bool { return strings.Contains(p, want) }), "unexpected problem %q", p)
			}
		})
	}
}

func TestCheckCounts(t *testing.T) {
	s := newScene(t)
	snap, err := s.db.Snapshot()
	s.must(err)
	defer snap.Close()
	totals, err := Check(snap, s.container, 0, func() {}, func(string) {})
	s.must(err)
	want := Amount{Items: 3}
	for _, id := range []string{"inherits", "own", "forever"} {
		item, err := s.read(id)
		s.must(err)
		want.Bytes += int64(len(item.Body))
	}
	if totals != want {
		t.Errorf("got %+v, want %+v", totals, want)
	}
}

// With a broken meta row, neither the check nor Open can continue.
func TestBrokenMetaRow(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"cut": cut, "longer": lengthen, "newer": func(b []byte) []byte { b[0]++; return b },
	} {
		s := newScene(t)
		s.alter(s.prefix.metaKey(), change)
		s.must(s.db.Commit(context.Background(), &s.batch))
		snap, err := s.db.Snapshot()
		s.must(err)
		if _, err := Check(snap, s.container, 0, func() {}, func(string) {}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("check of a meta row that is %s: got %v, want ErrCorrupt", name, err)
		}
		snap.Close()
		if _, err := Open(Options{DB: s.db, Clock: s.clock, Container: s.container}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("open with a meta row that is %s: got %v, want ErrCorrupt", name, err)
		}
	}
}

// Broken rows are errors for readers and writers, and never look like missing ones.
func TestBrokenRowsAreErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*scene)
	}{
		{"id row cut", func(s *scene) { s.alter(s.idKey("own"), cut) }},
		{"id row leads nowhere", func(s *scene) { s.batch.Set(s.idKey("own"), number(77)) }},
		{"item cut", func(s *scene) { s.alter(s.itemKey(2), cut) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.damage(s)
			s.must(s.db.Commit(context.Background(), &s.batch))
			s.reopen()
			if _, err := s.read("own"); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("read: got %v, want ErrCorrupt", err)
			}
			if _, err := s.write(s.item(Upsert, "own", "")); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("write: got %v, want ErrCorrupt", err)
			}
			k := s.key("k", "")
			within := &LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}
			if _, err := s.p.List(context.Background(), List{Within: within, MaxItems: 9, MaxBytes: 9999}, startMs); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("list of a partition key: got %v, want ErrCorrupt", err)
			}
			if _, err := s.read("forever"); err != nil {
				t.Errorf("another item: %v", err)
			}
			s.put("forever", "")
		})
	}
	s := newScene(t)
	s.batch.Set(append(s.itemKey(2), 0), nil)
	s.must(s.db.Commit(context.Background(), &s.batch))
	s.reopen()
	if _, err := s.p.List(context.Background(), List{MaxItems: 9, MaxBytes: 9999}, startMs); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("list over a broken key: got %v, want ErrCorrupt", err)
	}
}

func TestCheckOrphans(t *testing.T) {
	one, many := catalog.ContainerRID{Database: 1, Container: 1}, catalog.ContainerRID{Database: 1, Container: 2}
	known := func(rid catalog.ContainerRID) int { return map[catalog.ContainerRID]int{one: 1, many: 200}[rid] }
	at := func(rid catalog.ContainerRID, index int) []byte {
		p := partitionPrefix(rid, index)
		return p.metaKey()
	}
	for _, c := range []struct {
		name string
		keys [][]byte
		want []string
	}{
		{"none", [][]byte{at(one, 0), at(many, 0), at(many, 127), at(many, 128), at(many, 199)}, nil},
		{"unknown container", [][]byte{at(one, 0), at(catalog.ContainerRID{Database: 1, Container: 3}, 0)}, []string{"partition 0 of container AAAAAYAAAAM="}},
		{"unknown database", [][]byte{at(catalog.ContainerRID{Database: 9, Container: 1}, 0)}, []string{"partition 0 of container AAAACYAAAAE="}},
		{"partition beyond the last", [][]byte{at(one, 0), at(one, 1)}, []string{"partition 1 of container AAAAAYAAAAE="}},
		{"far partition after one whose number is no text", [][]byte{at(many, 128), at(many, 201), at(many, 255)},
			[]string{"partition 201 of container AAAAAYAAAAI=", "partition 255 of container AAAAAYAAAAI="}},
		{"short keys", [][]byte{{'p'}, {'p', 0}, at(one, 0)[:prefixBytes]}, []string{"row 70 ", "row 7000 ", "row 7000000001000000010000 "}},
		{"other keys", [][]byte{{'o', 0xff}, {'q'}}, nil},
	} {
		db := kvtest.NewModel()
		var b kv.Batch
		for _, key := range c.keys {
			b.Set(key, nil)
		}
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		snap, err := db.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		if err := CheckOrphans(snap, func(c catalog.ContainerRID, index int) bool { return index < known(c) }, func(p string) { found = append(found, p) }); err != nil {
			t.Fatal(err)
		}
		snap.Close()
		same := slices.EqualFunc(found, c.want, strings.Contains)
		if !same {
			t.Errorf("%s: got %q, want %q", c.name, found, c.want)
		}
	}
}
