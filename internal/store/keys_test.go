// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// The bytes of every key. They are on disks: none may change without a new format.
func TestKeyBytes(t *testing.T) {
	const partition = "70" + "00000102" + "00000304" + "0506"
	p := partitionPrefix(catalog.ContainerRID{Database: 0x102, Container: 0x304}, 0x506)
	identity := appendIdentity(nil, []byte{0xab, 0x00, 0xcd}, value.PartitionKey{value.String("k"), value.Number(1)}, "id/\x00")
	indexRow, err := appendIndexRow(nil, &header{writtenMs: 2, ttl: catalog.TTLForever, identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	fullMeta := meta{
		LSN: 1, NextOrdinal: 2, Amount: Amount{3, 4}, Epoch: 5, ContainerDefault: -1, Final: cuts{6, 7},
		ChangedMs: 8, Generation: 9, Overfull: 15, Marks: marks{{At: position{10, 11}}, {12, position{13, 14}}},
	}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"prefix", p[:], partition},
		{"item", p.appendItemKey(nil, 0x0102030405060708), partition + "64" + "0102030405060708"},
		{"identity", identity, "ab00ffcd" + "0001" + "50" + "6b" + "0001" + "40" + "bff0000000000000" + "00" + "69642f00"},
		{"id", p.appendIDKey(nil, identity), partition + "6b" + hex.EncodeToString(identity)},
		{"id, of a long partition key", p.appendIDKey(nil, appendIdentity(nil, []byte{0xab}, value.PartitionKey{value.String(strings.Repeat("k", 600))}, "id")),
			partition + "6b" + "ab" + "0001" + "01" + "aeff921f60b99a979edfbdbe673b82efbfe56515152d0b701f24ab5f9848d97e" + "6964"},
		{"feed", p.appendFeedKey(nil, position{0x0102030405060708, 0x090a}), partition + "66" + "0102030405060708" + "090a"},
		{"own", p.appendOrderKey(nil, kindOwn, mark{0x1112131415161718, position{0x0102030405060708, 0x090a}}),
			partition + "78" + "1112131415161718" + "0102030405060708" + "090a"},
		{"unique", p.appendKey(nil, uniqueSpace, []byte("key")), partition + "75" + "6b6579"},
		{"stat, inherits", p.appendStatKey(nil, bucketKey{classInherits, levelSecond, 0x0102030405}), partition + "73" + "69" + "73" + "0000000102030405"},
		{"stat, own", p.appendStatKey(nil, bucketKey{classOwn, levelMinute, 1}), partition + "73" + "6f" + "6d" + "0000000000000001"},
		{"stat, never", p.appendStatKey(nil, bucketKey{classNever, levelHour, 0}), partition + "73" + "6e" + "68" + "0000000000000000"},
		{"meta", p.metaKey(), partition + "6d"},
		{"meta row", fullMeta.encode(), "03" + "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" +
			"0000000000000005" + "ffffffff" + "0000000000000006" + "0000000000000007" + "0000000000000008" + "00000009" +
			"0000000000000000" + "000000000000000f" + "0000000000000000" + "0000" + "0000000000000000" + "000000000000000a" + "000b" + "000000000000000c" + "000000000000000d" + "000e"},
		{"index", p.appendIndexKey(nil, 0x01020304, []byte("term"), 0x0102030405060708),
			partition + "69" + "01020304" + "7465726d" + "0102030405060708"},
		{"part", p.appendKey(nil, partSpace, []byte("logical")), partition + "62" + hex.EncodeToString([]byte("logical"))},
		{"event", p.appendEventKey(nil, EventKey{GoneMs: 1, DeadlineMs: 2, LSN: 3, N: 4}),
			partition + "65" + "0000000000000001" + "0000000000000002" + "0000000000000003" + "0004"},
		{"index row", indexRow, "0000000000000002" + "ffffffff" + "ab00cd"},
		{"part row", (Amount{1, 2}).append(nil), "0000000000000001" + "0000000000000002"},
		{"event row", appendEventRow(nil, &current{ordinal: 1, header: header{writtenMs: 2, ttl: 3, identity: []byte("i")}}),
			"0000000000000001" + "0000000000000002" + "00000003" + "69"},
		{"counter row", bucketRow(1, 2, 3), "0000000000000001" + "0000000000000002" + "0000000000000003" + "0001" + "03e7"},
		{"feed row", feedRowOf(&current{ordinal: 1, header: header{writtenMs: 2, ttl: 3, size: 4}}),
			"0000000000000001" + "0000000000000002" + "01" + "00000004"},
		{"feed row of a touch", feedRowOf(&current{ordinal: 1, header: header{writtenMs: 2, baseMs: 5, ttl: 3, size: 4}}),
			"0000000000000001" + "0000000000000005" + "81" + "00000004"},
		{"feed row of a touch that the feed shows", feedRowOf(&current{ordinal: 1, header: header{writtenMs: 2, baseMs: 5, touched: touched{shown: true}, size: 4}}),
			"0000000000000001" + "0000000000000005" + "00" + "00000004"},
		{"own row", appendOwnRow(nil, &current{ordinal: 1, header: header{size: 4}}), "0000000000000001" + "00000004"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	if kinds := []ttlKind{life{}.kind(), life{ttl: 5}.kind(), life{ttl: catalog.TTLForever}.kind()}; !slices.Equal(kinds, []ttlKind{0, 1, 2}) {
		t.Errorf("kinds of ttl in the feed: got %v, want 0, 1, 2", kinds)
	}
}

// Appending keeps what dst has, and keys do not share memory with the prefix.
func TestKeysAppend(t *testing.T) {
	p := partitionPrefix(catalog.ContainerRID{Database: 1, Container: 2}, 3)
	before := p
	for name, key := range map[string][]byte{
		"item": p.appendItemKey([]byte("x"), 1), "id": p.appendKey([]byte("x"), idSpace, []byte("i")),
		"feed": p.appendFeedKey([]byte("x"), position{1, 2}), "own": p.appendOrderKey([]byte("x"), kindOwn, mark{1, position{2, 3}}),
		"stat": p.appendStatKey([]byte("x"), bucketKey{classOwn, levelSecond, 1}),
	} {
		if key[0] != 'x' || !bytes.HasPrefix(key[1:], p[:]) {
			t.Errorf("%s key: got %x, want x and the prefix", name, key)
		}
		clear(key)
	}
	clear(p.metaKey())
	lower, upper := p.space(itemSpace)
	clear(lower)
	clear(upper)
	if p != before {
		t.Errorf("the prefix has become %x", p)
	}
}

// Keys are made in the room that is there, also since long partition keys are hashed in them.
func TestKeysAllocate(t *testing.T) {
	p := partitionPrefix(catalog.ContainerRID{Database: 1, Container: 2}, 3)
	l := LogicalPartition{EPK: []byte("01234567"), PartitionKey: value.PartitionKey{value.String("a key")}}
	identity := append(l.appendPlace(nil), "an id"...)
	room := make([]byte, 0, 256)
	for what, appendTo := range map[string]func(){
		"the key of an id row":         func() { p.appendIDKey(room, identity) },
		"the place of a partition key": func() { l.appendPlace(room) },
	} {
		if n := testing.AllocsPerRun(100, appendTo); n != 0 {
			t.Errorf("%s: got %v allocations, want none", what, n)
		}
	}
}

// Numbers sort as numbers, and every key is in its space.
func TestKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rid := func(name string) catalog.ContainerRID {
			return catalog.ContainerRID{
				Database:  catalog.DatabaseRID(rapid.Uint32().Draw(t, name+" db")),
				Container: rapid.Uint32Max(1<<31-1).Draw(t, name+" container"),
			}
		}
		p := partitionPrefix(rid("own"), rapid.IntRange(0, catalog.MaxPartitions-1).Draw(t, "index"))
		number := rapid.Uint64Max(1 << 63)
		n := rapid.Uint16()
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		an, bn := n.Draw(t, "an"), n.Draw(t, "bn")
		aMs, bMs := int64(a>>1), int64(b>>1)
		order := func(name string, ka, kb []byte, want int) {
			if got := bytes.Compare(ka, kb); got != want {
				t.Errorf("%s keys of %d.%d and %d.%d: got order %d, want %d", name, a, an, b, bn, got, want)
			}
		}
		byNumber, byBoth := compare(a, b), compare(a, b)
		if byBoth == 0 {
			byBoth = compare(uint64(an), uint64(bn))
		}
		order("item", p.appendItemKey(nil, a), p.appendItemKey(nil, b), byNumber)
		order("feed", p.appendFeedKey(nil, position{a, an}), p.appendFeedKey(nil, position{b, bn}), byBoth)
		order("own", p.appendOrderKey(nil, kindOwn, mark{aMs, position{1, 0}}), p.appendOrderKey(nil, kindOwn, mark{bMs, position{1, 0}}), compare(uint64(aMs), uint64(bMs)))
		order("own of one moment", p.appendOrderKey(nil, kindOwn, mark{5, position{a, an}}), p.appendOrderKey(nil, kindOwn, mark{5, position{b, bn}}), byBoth)
		order("stat", p.appendStatKey(nil, bucketKey{classOwn, levelSecond, aMs}), p.appendStatKey(nil, bucketKey{classOwn, levelSecond, bMs}), compare(uint64(aMs), uint64(bMs)))
		for space, key := range map[byte][]byte{
			itemSpace: p.appendItemKey(nil, a), idSpace: p.appendKey(nil, idSpace, []byte{0xff}), feedSpace: p.appendFeedKey(nil, position{a, an}),
			ownSpace: p.appendOrderKey(nil, kindOwn, mark{aMs, position{b, bn}}), statSpace: p.appendStatKey(nil, bucketKey{classNever, levelSecond, aMs}), metaSpace: p.metaKey(),
		} {
			lower, upper := p.space(space)
			if bytes.Compare(key, lower) < 0 || bytes.Compare(key, upper) >= 0 {
				t.Errorf("key %x is not in space %c", key, space)
			}
			if bytes.Compare(key, kv.After(p[:])) >= 0 || !bytes.HasPrefix(key, p[:]) {
				t.Errorf("key %x is not in the partition", key)
			}
		}
		got, err := ordinalOf(p.appendItemKey(nil, a))
		if err != nil || got != a {
			t.Errorf("ordinal of an item's key: got %d, %v, want %d", got, err, a)
		}
	})
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestKeyAfter(t *testing.T) {
	for in, want := range map[string]string{
		"70": "71", "7000": "7001", "70ff": "71", "70ffff": "71", "707f": "7080",
		// Bytes that are not UTF-8 are handled like any other.
		"7080": "7081", "7085": "7086", "70fe": "70ff", "70efbfbd": "70efbfbe", "7085ff": "7086",
	} {
		raw, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(kv.After(raw)); got != want {
			t.Errorf("after %s: got %s, want %s", in, got, want)
		}
		if hex.EncodeToString(raw) != in {
			t.Errorf("keyAfter has changed its argument %s", in)
		}
	}
}

// A drop removes a whole container or database, and nothing else.
func TestDropsCoverWholeContainers(t *testing.T) {
	target := catalog.ContainerRID{Database: 1, Container: 0xff}
	for _, c := range []catalog.ContainerRID{
		{Database: 1, Container: 0xfe}, target, {Database: 1, Container: 0x100}, {Database: 2, Container: 0xff}, {Database: 0, Container: 0xff},
	} {
		for _, index := range []int{0, 1, 127, 128, 255} {
			p := partitionPrefix(c, index)
			for _, key := range [][]byte{p[:], p.metaKey(), p.appendKey(nil, idSpace, bytes.Repeat([]byte{0xff}, 5))} {
				var container, database kv.Batch
				DropContainer(&container, false, &catalog.Container{RID: target})
				if got, want := covers(&container, key), c == target; got != want {
					t.Errorf("drop of container %v: key %x is covered %v, want %v", target, key, got, want)
				}
				DropDatabase(&database, false, &catalog.Database{RID: target.Database})
				if got, want := covers(&database, key), c.Database == target.Database; got != want {
					t.Errorf("drop of database %v: key %x is covered %v, want %v", target.Database, key, got, want)
				}
			}
		}
	}
}

// covers reports whether the batch's one operation is a range delete over key.
func covers(b *kv.Batch, key []byte) bool {
	for op := range b.Ops {
		return op.Kind == kv.OpDeleteRange && bytes.Compare(op.Key, key) <= 0 && bytes.Compare(key, op.Value) < 0
	}
	return false
}

// FuzzIdentity parses foreign bytes as an identity: encoding the result gives the same
// bytes, and an encoded identity parses to its parts, in their order.
func FuzzIdentity(f *testing.F) {
	f.Add([]byte{}, "", "", 0.0)
	f.Add(appendIdentity(nil, []byte{1, 0, 2}, value.PartitionKey{value.String("a"), value.Null(), value.Scalar{}}, "id"), "a", "b", 1.5)
	f.Add(appendIdentity(nil, nil, nil, ""), "\x00", "\x00\xff", math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, raw []byte, pk, id string, number float64) {
		if i, err := parseIdentity(raw); err == nil {
			if again := appendIdentity(nil, i.epk, i.pk, i.id); !bytes.Equal(again, raw) {
				t.Errorf("%x is read as what would be written as %x", raw, again)
			}
		}
		if math.IsNaN(number) {
			return // not a number, which JSON does not have
		}
		k := value.PartitionKey{value.String(pk), value.Number(number), value.Bool(true)}
		written := appendIdentity(nil, raw, k, id)
		i, err := parseIdentity(written)
		if err != nil || !bytes.Equal(i.epk, raw) || !i.pk.Equal(k) || i.id != id {
			t.Errorf("identity %x, %v, %q: got %x, %v, %q, %v", raw, k, id, i.epk, i.pk, i.id, err)
		}
		next := appendIdentity(nil, append(slices.Clone(raw), 0), k, "")
		if bytes.Compare(written, next) >= 0 {
			t.Errorf("the longer epk %x00 sorts before %x", raw, raw)
		}
	})
}
