// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// maxIdentityBytes follows from the limits on ids and partition keys.
const maxIdentityBytes = 1<<16 - 1

// row makes an item's row.
func row(h header, body string) []byte {
	b := append(make([]byte, h.bytes()), h.identity...)
	h.size = len(body)
	h.put(b)
	return append(b, body...)
}

// The layout is on disks: it must not change without a new version.
func TestHeaderBytes(t *testing.T) {
	h := header{lsn: 0x0102030405060708, n: 0x090a, writtenMs: 0x0b0c0d0e0f101112, ttl: 0x13141516, identity: []byte("identity")}
	want := "01" + "0102030405060708" + "090a" + "0b0c0d0e0f101112" + "13141516" + "00000002" + "0008" +
		hex.EncodeToString([]byte("identity")) + hex.EncodeToString([]byte("{}"))
	if got := hex.EncodeToString(row(h, "{}")); got != want {
		t.Errorf("row:\ngot  %s\nwant %s", got, want)
	}
	plain := want
	h.atMs = 0x1f20212223242526
	want = "02" + plain[2:2*plainBytes] + "0000000000000000" + "1f20212223242526" + plain[2*plainBytes:]
	if got := hex.EncodeToString(row(h, "{}")); got != want {
		t.Errorf("row:\ngot  %s\nwant %s", got, want)
	}
	h.atMs, h.baseMs, h.touched = 0, 0x1718191a1b1c1d1e, touched{position{0x2728292a2b2c2d2e, 0x2f30}, true}
	want = "03" + plain[2:2*plainBytes] + "1718191a1b1c1d1e" + "0000000000000000" + "2728292a2b2c2d2e" + "2f30" + "01" + plain[2*plainBytes:]
	if got := hex.EncodeToString(row(h, "{}")); got != want {
		t.Errorf("row:\ngot  %s\nwant %s", got, want)
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	for _, h := range []header{
		{},
		{lsn: 1, writtenMs: startMs},
		{lsn: math.MaxUint64, n: math.MaxUint16, writtenMs: math.MaxInt64, ttl: math.MaxInt32, identity: bytes.Repeat([]byte{0xff}, maxIdentityBytes)},
		{lsn: 2, ttl: catalog.TTLForever, identity: []byte{0}},
		{lsn: 3, atMs: startMs, identity: []byte{1}},
		{lsn: 4, baseMs: startMs, ttl: 5, identity: []byte{1}},
		{lsn: 5, baseMs: startMs, touched: touched{position{4, 3}, true}, identity: []byte{1}},
	} {
		for _, body := range []string{"", "{}", `{"id":"a"}`} {
			got, gotBody, err := parseItem([]byte("key"), row(h, body))
			h.size = len(body)
			if err != nil || got.lsn != h.lsn || got.n != h.n || got.writtenMs != h.writtenMs || got.ttl != h.ttl || got.baseMs != h.baseMs || got.atMs != h.atMs || got.touched != h.touched ||
				got.size != h.size || !bytes.Equal(got.identity, h.identity) || string(gotBody) != body {
				t.Errorf("got %+v, %q, %v, want %+v, %q", got, gotBody, err, h, body)
			}
		}
	}
}

func TestParseItemRefuses(t *testing.T) {
	good := row(header{lsn: 1, identity: []byte("i")}, "{}")
	for name, bad := range map[string][]byte{
		"nothing":                {},
		"a header cut short":     good[:plainBytes-1],
		"a version 2 of nothing": append([]byte{timedVersion}, append(bytes.Clone(good[1:plainBytes]), make([]byte, 16)...)...),
		"a version 2 cut short":  append([]byte{timedVersion}, good[1:]...),
		"a version 3 of nothing": append([]byte{touchedVersion}, append(bytes.Clone(good[1:plainBytes]), make([]byte, 27)...)...),
		"a version 3 cut short":  append([]byte{touchedVersion}, good[1:]...),
		"a body cut short":       good[:len(good)-1],
		"a longer body":          append(slices.Clone(good), '}'),
		"version 0":              append([]byte{0}, good[1:]...),
		"a newer version":        append([]byte{touchedVersion + 1}, good[1:]...),
		"a huge size":            append(append(slices.Clone(good[:23]), 0xff, 0xff, 0xff, 0xff), good[27:]...),
	} {
		if _, _, err := parseItem([]byte("key"), bad); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

func FuzzParseItem(f *testing.F) {
	f.Add([]byte{})
	f.Add(row(header{}, ""))
	f.Add(row(header{lsn: 7, n: 1, writtenMs: startMs, ttl: 5, identity: []byte("abc")}, `{"id":"a"}`))
	f.Add(row(header{lsn: 7, writtenMs: startMs, baseMs: startMs, touched: touched{position{6, 1}, true}, identity: []byte("abc")}, `{"id":"a"}`))
	f.Add(row(header{ttl: catalog.TTLForever, writtenMs: -1}, "{}")[:plainBytes])
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, body, err := parseItem([]byte("key"), raw)
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
			return
		}
		if again := row(h, string(body)); !bytes.Equal(again, raw) {
			t.Errorf("%x is read as what would be written as %x", raw, again)
		}
	})
}
