// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// feedRowOf returns the feed row of an item's last write or touch.
func feedRowOf(c *current) []byte {
	rows, _ := c.header.feedRows()
	return rows[0].append(nil, c)
}

// FuzzRows parses foreign bytes as each kind of derived row: encoding the result gives the
// same bytes, and bytes that do not parse are reported as corrupt.
func FuzzRows(f *testing.F) {
	x := partitionPrefix(catalog.ContainerRID{Database: 1, Container: 1}, 0)
	identity := appendIdentity(nil, []byte{1, 2}, value.PartitionKey{value.String("k")}, "id")
	c := current{ordinal: 7, header: header{lsn: 3, n: 1, writtenMs: startMs, ttl: 5, size: 100, identity: identity}}
	f.Add([]byte{}, []byte{})
	f.Add(x.appendFeedKey(nil, position{3, 1}), feedRowOf(&c))
	touchedItem := c
	touchedItem.header.baseMs = startMs + 1
	f.Add(x.appendFeedKey(nil, position{3, 1}), feedRowOf(&touchedItem))
	f.Add(x.appendOrderKey(nil, kindOwn, mark{startMs + 5000, position{3, 1}}), appendOwnRow(nil, &c))
	f.Add(x.appendEventKey(nil, EventKey{startMs + 6000, startMs + 5000, 3, 1}), appendEventRow(nil, &c))
	f.Add(x.appendStatKey(nil, bucketKey{classOwn, levelMinute, 60}), bucketRow(1, 2, 3))
	f.Add(x.appendKey(nil, partSpace, identity), (Amount{1, 2}).append(nil))
	f.Fuzz(func(t *testing.T, key, row []byte) {
		same := func(kind string, err error, againKey, againRow []byte) {
			t.Helper()
			switch {
			case err != nil && !errors.Is(err, kv.ErrCorrupt):
				t.Errorf("%s: got %v, want ErrCorrupt", kind, err)
			case err == nil && (len(againKey) != len(key) || !bytes.Equal(againKey[prefixBytes+1:], key[prefixBytes+1:]) || !bytes.Equal(againRow, row)):
				t.Errorf("%s: %x, %x is read as what would be written as %x, %x", kind, key, row, againKey, againRow)
			}
		}
		e := kv.Entry{Key: key, Value: row}
		feed, err := parseFeedRow(e)
		if err == nil { // it has only the size and the kind of the header
			r := feedRow{feed.At, feed.ms, byte(feed.kind)}
			if feed.hidden {
				r.kind |= hiddenBit
			}
			same("feed row", err, x.appendFeedKey(nil, feed.At), r.append(nil, &current{ordinal: feed.ordinal, header: header{size: int(feed.size)}}))
		}
		own, err := parseOwnRow(e)
		if err == nil && own.ordinal != 0 {
			again := x.appendOrderKey(nil, kindOwn, own.mark)
			same("own row", nil, again, row)
		}
		event, err := parseEventRow(e)
		if err == nil {
			i := current{ordinal: event.Ordinal, header: header{writtenMs: event.WrittenMs, ttl: event.TTL, identity: row[eventRowBytes:]}}
			same("event", nil, x.appendEventKey(nil, event.Key), appendEventRow(nil, &i))
		} else {
			same("event", err, nil, nil)
		}
		if b, err := decodeBucket(e); err != nil || !bytes.Equal(b.append(nil), row) {
			same("counter", err, nil, nil)
		}
		if p, err := decodePart(e); err != nil || !bytes.Equal(p.Amount.append(nil), row) {
			same("part", err, nil, nil)
		}
		if b, err := parseBucket(e); err == nil {
			same("counter's key", nil, x.appendStatKey(nil, b.bucketKey), row)
		}
	})
}
