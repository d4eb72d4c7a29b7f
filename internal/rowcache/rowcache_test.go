// SPDX-License-Identifier: MIT

package rowcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// testRow returns a row of so many bytes.
func testRow(fill byte, size int) []byte { return bytes.Repeat([]byte{fill}, size) }

func keyOf(owner uint32, number uint64) Key {
	k, ok := KeyOf(owner, number)
	if !ok {
		panic("no key")
	}
	return k
}

// Different rows have different keys, and rows whose numbers are too large have none.
func TestKeys(t *testing.T) {
	const most = 1<<itemBits - 1
	seen := map[Key]bool{}
	for _, owner := range []uint32{1, 2, 1<<24 - 1} {
		for _, number := range []uint64{0, 1, most} {
			k := keyOf(owner, number)
			if seen[k] || k == 0 {
				t.Errorf("owner %d, row %d: %x", owner, number, k)
			}
			seen[k] = true
		}
	}
	if _, ok := KeyOf(1, most+1); ok {
		t.Error("a row with too large a number has a key")
	}
	if _, ok := KeyOf(1<<24, 0); ok {
		t.Error("an owner with too large a number has a key")
	}
	if _, ok := KeyOf(0, 1); ok {
		t.Error("owner 0 has a key")
	}
}

// A hint leads only its owner to the row, and to the last one with that name.
func TestHints(t *testing.T) {
	c := New(1 << 20)
	for i := range uint64(100) {
		name := fmt.Append(nil, "name ", i)
		c.Hint(name, keyOf(1, i))
		if k := c.Hinted(1, name); k != keyOf(1, i) {
			t.Errorf("%s: got %x", name, k)
		}
		if k := c.Hinted(2, name); k != 0 {
			t.Errorf("another owner is led to %x", k)
		}
	}
	var none Cache
	none.Hint([]byte("a"), 1)
	if k := none.Hinted(0, []byte("a")); k != 0 {
		t.Errorf("a cache without memory leads to %x", k)
	}
}

// A table behaves like a map, whatever is put and removed.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		twin := map[Key]address{}
		// Few keys, so that they meet, and some with the same home.
		keys := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Key {
			return Key(1 + rapid.Uint64Range(0, 300).Draw(t, "key")<<rapid.SampledFrom([]int{0, 40, 56}).Draw(t, "shift"))
		}), 1, 200, rapid.ID[Key]).Draw(t, "keys")
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			k := rapid.SampledFrom(keys).Draw(t, "of")
			if rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				table.remove(k)
				delete(twin, k)
			} else {
				p := address(rapid.Uint64().Draw(t, "address"))
				table.put(k, p)
				twin[k] = p
			}
		}
		if table.used != len(twin) {
			t.Errorf("%d are used, want %d", table.used, len(twin))
		}
		for _, k := range keys {
			got, found := table.get(k)
			if want, is := twin[k]; found != is || got != want {
				t.Errorf("%x: got %x, %v, want %x, %v", k, got, found, want, is)
			}
		}
	})
}

func anyRow([]byte) bool { return true }

// A row that does not fit is not returned.
func TestRowsThatDoNotFit(t *testing.T) {
	c := New(shardCount * chunkBytes)
	k, want := keyOf(1, 1), testRow(7, 100)
	c.Put(k, want)
	for _, fits := range []bool{true, false} {
		got, found := c.Get(nil, k, func(row []byte) bool {
			if string(row) != string(want) {
				t.Errorf("asked whether %x fits, want %x", row, want)
			}
			return fits
		})
		if found != fits || (got != nil) != fits {
			t.Errorf("fits is %v: got %x, %v", fits, got, found)
		}
	}
}

// However many rows are put and removed, memory is bounded, and Get returns the last row that
// was put, or none.
func TestCacheIsBounded(t *testing.T) {
	const chunks = 3
	c := New(chunks * shardCount * chunkBytes)
	last := map[Key][]byte{}
	hits := 0
	for n := range 20_000 {
		k := keyOf(uint32(1+rand.IntN(2)), rand.Uint64N(4000))
		switch rand.IntN(4) {
		case 0:
			c.Remove(k)
			delete(last, k)
		case 1:
			got, found := c.Get([]byte("before"), k, anyRow)
			if found {
				hits++
			}
			if found && string(got) != "before"+string(last[k]) || !found && string(got) != "before" {
				t.Fatalf("%v: got %x", k, got)
			}
		default:
			if last[k] == nil {
				last[k] = testRow(byte(n), 1+rand.IntN(8000))
				c.Put(k, last[k])
			} else if _, found := c.Get(nil, k, anyRow); !found {
				c.Put(k, last[k]) // its chunk was reused
			}
		}
	}
	if hits < 100 {
		t.Errorf("%d hits", hits)
	}
	for i := range c.shards {
		s := &c.shards[i]
		if len(s.chunks) != chunks {
			t.Errorf("%d chunks, want %d", len(s.chunks), chunks)
		}
		for _, chunk := range s.chunks {
			if cap(chunk) != chunkBytes {
				t.Errorf("a chunk of %d bytes", cap(chunk))
			}
		}
		rows := 0
		for _, chunk := range s.chunks {
			for len(chunk) > 0 {
				_, _, chunk = cutRow(chunk)
				rows++
			}
		}
		if s.addresses.used > rows {
			t.Errorf("%d addresses for %d rows", s.addresses.used, rows)
		}
	}
	k := keyOf(9, 9)
	c.Put(k, testRow(1, MaxRowBytes+1))
	if _, found := c.Get(nil, k, anyRow); found {
		t.Error("a large row is kept")
	}
	var none Cache
	none.Put(k, testRow(1, 100))
	if _, found := none.Get(nil, k, anyRow); found {
		t.Error("a cache without memory keeps a row")
	}
}
