// SPDX-License-Identifier: MIT

package store

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// property returns the JSON of a property of an item, "" if it has none.
func property(body []byte, name string) string {
	o, err := value.ParseObject(body)
	if err != nil {
		return fmt.Sprintf("%q is no item: %v", body, err)
	}
	raw, _ := o.Lookup(name)
	return string(raw)
}

func equalRows(a, b map[string]string) bool { return maps.Equal(a, b) }

// The exact bytes of an answer: the client's properties in their order and spelling, except
// for system properties, then the system properties.
func TestBodyBytes(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	o, err := value.ParseObject([]byte(`{ "z" : 1.50, "_ts" : 7, "id":"a", "_etag":"x", "pk":"k",
		"\u0041":"\u00e9", "_rid":1, "_self":2, "_attachments":3, "_lsn":4, "n":{"_ts": 8} }`))
	f.must(err)
	r, err := f.write(Write{Op: Create, Key: f.key("k", "a"), Item: o})
	f.must(err)
	want := `{"z":1.50,"id":"a","pk":"k","\u0041":"\u00e9","_lsn":4,"n":{"_ts":8},` +
		`"_rid":"AAAAAYAAAAEBAAAAAAAAAA==","_self":"dbs/AAAAAQ==/colls/AAAAAYAAAAE=/docs/AAAAAYAAAAEBAAAAAAAAAA==/",` +
		`"_etag":"\"6553f100-0000-0000-0000-000000000001\"","_attachments":"attachments/","_ts":1700000000}`
	if string(r.Body) != want {
		t.Errorf("body:\ngot  %s\nwant %s", r.Body, want)
	}
	if want := `"6553f100-0000-0000-0000-000000000001"`; r.ETag != want || !r.Created || r.LSN != 1 || r.Work.Bytes != len(r.Body) {
		t.Errorf("got %+v, want created, lsn 1, etag %s, %d bytes", r, want, len(r.Body))
	}
	item, err := f.read("a")
	f.must(err)
	if string(item.Body) != want || item.ETag != r.ETag || item.LSN != 1 || item.ItemLSN != 1 {
		t.Errorf("read: got %+v, want what the write returned", item)
	}
}

// On a machine whose clock was never set it is 1970, and _ts is a short number.
func TestTimestampOfFewDigits(t *testing.T) {
	for _, nowMs := range []int64{0, 999, 1000, 86_400_000, 999_999_999_999, 1_000_000_000_000, 9_999_999_999_000} {
		f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("5"), nowMs: nowMs})
		r := f.put("a", "")
		if got, want := property(r.Body, "_ts"), fmt.Sprint(nowMs/1000); got != want {
			t.Errorf("_ts at %d ms: got %s, want %s", nowMs, got, want)
		}
		f.checkClean()
		f.p.Close()
	}
}

func TestConditions(t *testing.T) {
	const current, other = "current", `"00000000-0000-0000-0000-000000000000"`
	exists := map[Op]error{Create: ErrExists}
	missing := map[Op]error{Replace: ErrNotFound, Delete: ErrNotFound}
	precondition := map[Op]error{Create: ErrExists, Upsert: ErrPrecondition, Replace: ErrPrecondition, Delete: ErrPrecondition}
	for _, c := range []struct {
		ifMatch, ifNoneMatch string
		live, absent         map[Op]error // the outcome of each write
	}{
		{"", "", exists, missing},
		{current, "", exists, missing},
		{"unquoted", "", exists, missing},
		{"*", "", exists, missing},
		{other, "", precondition, missing},
		{"", other, exists, missing},
		{"", current, precondition, missing},
		{"", "*", precondition, missing},
		{current, other, exists, missing},
		{current, current, precondition, missing},
		{other, other, precondition, missing},
	} {
		for _, op := range []Op{Create, Upsert, Replace, Delete} {
			f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("null"), nowMs: startMs})
			old := f.put("live", "")
			for id, want := range map[string]error{"live": c.live[op], "absent": c.absent[op]} {
				w := f.item(op, id, "")
				w.IfMatch, w.IfNoneMatch = etagFor(c.ifMatch, old.ETag), etagFor(c.ifNoneMatch, old.ETag)
				if _, err := f.write(w); !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("op %d of an item that is %s, If-Match %q, If-None-Match %q: got %v, want %v",
						op, id, c.ifMatch, c.ifNoneMatch, err, want)
				}
			}
			f.p.Close()
		}
	}
}

func etagFor(condition, etag string) string {
	switch condition {
	case "current":
		return etag
	case "unquoted":
		return etag[1 : len(etag)-1]
	}
	return condition
}

func TestReadConditions(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	old := f.put("a", "")
	for condition, want := range map[string]error{
		"": nil, old.ETag: ErrNotModified, old.ETag[1 : len(old.ETag)-1]: ErrNotModified, "*": ErrNotModified, `"x"`: nil,
	} {
		item, err := f.p.Read(nil, f.key("k", "a"), condition, f.clock.Now())
		if !errors.Is(err, want) || want == nil && err != nil || item.ETag != old.ETag || item.LSN != 1 {
			t.Errorf("If-None-Match %q: got %+v, %v, want %v, with etag and lsn", condition, item, err, want)
		}
		if (item.Body == nil) != (want != nil) {
			t.Errorf("If-None-Match %q: got body %q", condition, item.Body)
		}
	}
	if item, err := f.read("none"); !errors.Is(err, ErrNotFound) || item.LSN != 1 {
		t.Errorf("a missing item: got %+v, %v, want ErrNotFound with the lsn", item, err)
	}
}

// The same id in two partition keys names two items.
func TestSameIDInTwoPartitionKeys(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", `"v":1`)
	o, err := value.ParseObject([]byte(`{"id":"a","pk":"other"}`))
	f.must(err)
	if _, err := f.write(Write{Op: Create, Key: f.key("other", "a"), Item: o}); err != nil {
		t.Errorf("create of the same id in another partition key: %v", err)
	}
	if _, err := f.write(Write{Op: Delete, Key: f.key("other", "a")}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := f.read("a"); err != nil {
		t.Errorf("the first one: %v", err)
	}
	f.checkClean()
}

// Ordinals and lsns continue where they were, whatever is deleted and restarted in between.
func TestNumbersAreNeverGivenTwice(t *testing.T) {
	f := newFixture(t, withTTL("1"))
	seen := map[string]bool{}
	lsn := uint64(0)
	for round := range 5 {
		for _, id := range []string{"a", "b"} {
			r := f.put(id, fmt.Sprintf(`"round":%d`, round))
			lsn++
			if r.LSN != lsn || seen[r.ETag] || r.Created && seen[property(r.Body, "_rid")] {
				t.Fatalf("round %d: got lsn %d, etag %s, %s: want lsn %d and what was never used", round, r.LSN, r.ETag, r.Body, lsn)
			}
			seen[r.ETag], seen[property(r.Body, "_rid")] = true, true
		}
		if round%2 == 0 {
			r, err := f.write(Write{Op: Delete, Key: f.key("k", "b")})
			lsn++
			f.must(err)
			f.check(r.LSN == lsn, "delete: got lsn %d, want %d", r.LSN, lsn)
		} else {
			f.advance(time.Second) // both expire, and are replaced
		}
		f.reopen()
	}
	f.checkClean()
}
