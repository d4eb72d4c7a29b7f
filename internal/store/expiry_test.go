// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

func TestDeadline(t *testing.T) {
	const at = startMs + 999
	const absent, forever, longest = catalog.TTLAbsent, catalog.TTLForever, catalog.TTL(math.MaxInt32)
	for _, c := range []struct {
		own, container catalog.TTL
		want           int64
	}{
		{absent, absent, never},
		{absent, forever, never},
		{absent, 10, at + 10_000},
		{forever, absent, never},
		{forever, forever, never},
		{forever, 10, never},
		{3, absent, never},
		{3, forever, at + 3_000},
		{3, 10, at + 3_000},

		{30, 10, at + 30_000},
		{1, longest, at + 1_000},
		{absent, longest, at + 2_147_483_647_000},
		{longest, forever, at + 2_147_483_647_000},
		{longest, absent, never},

		{ttlNamed, absent, never},
		{ttlNamed, forever, at},
		{ttlNamed, 10, at},
	} {
		if got := (life{at, c.own}).deadline(c.container); got != c.want {
			t.Errorf("deadline of ttl %d in defaultTtl %d: got %d, want %d", c.own, c.container, got, c.want)
		}
	}
}

// An item is live to the last millisecond of its time and not one longer, also if it was
// written in the middle of a second.
func TestLastMillisecond(t *testing.T) {
	for _, c := range []struct {
		name, defaultTTL, properties string
		lives                        time.Duration
	}{
		{"by the container's default", "2", "", 2 * time.Second},
		{"by its own ttl", "100", `"ttl":1`, time.Second},
		{"by its own ttl alone", "-1", `"ttl":1`, time.Second},
		{"the longest", "-1", `"ttl":2147483647`, math.MaxInt32 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, withTTL(c.defaultTTL))
			f.advance(999 * time.Millisecond)
			f.put("a", c.properties)
			f.advance(c.lives - time.Millisecond)
			if _, err := f.read("a"); err != nil {
				t.Errorf("a millisecond before the deadline: %v", err)
			}
			f.advance(time.Millisecond)
			if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
				t.Errorf("at the deadline: got %v, want ErrNotFound", err)
			}
		})
	}
}

// The largest time and the largest ttl together do not overflow.
func TestTimeToLiveAtTheEndOfTime(t *testing.T) {
	f := newFixture(t, withTTL("2147483647"))
	f.must(f.clock.Set(9_999_999_999_999))
	f.put("a", `"ttl":2147483647`)
	f.put("b", "")
	for _, id := range []string{"a", "b"} {
		if _, err := f.read(id); err != nil {
			t.Errorf("item %s: %v", id, err)
		}
	}
	f.checkClean()
}

func TestItemTTL(t *testing.T) {
	const rule = " is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire."
	for _, c := range []struct {
		properties string
		want       catalog.TTL
		refused    string // the value that the error quotes
	}{
		{``, catalog.TTLAbsent, ""},
		{`"ttl":-1`, catalog.TTLForever, ""},
		{`"ttl":1`, 1, ""},
		{`"ttl":2147483647`, math.MaxInt32, ""},
		{`"ttl":5.0`, 5, ""},
		{`"ttl":5e0`, 5, ""},
		{`"ttl":0.5e1`, 5, ""},
		{`"ttl":0`, 0, "0"},
		{`"ttl":-0`, 0, "-0"},
		{`"ttl":-2`, 0, "-2"},
		{`"ttl":-10`, 0, "-10"},
		{`"ttl":2147483648`, 0, "2147483648"},
		{`"ttl":1e300`, 0, "1e300"},
		{`"ttl":1.5`, 0, "1.5"},
		{`"ttl":null`, 0, "null"},
		{`"ttl":"10"`, 0, `"10"`},
		{`"ttl":true`, 0, "true"},
		{`"ttl":{}`, 0, "{}"},
		{`"ttl":[1]`, 0, "[1]"},
		{`"ttl":"` + strings.Repeat("x", 300) + `"`, 0, `"` + strings.Repeat("x", 299) + "…"},
		{`"a":{"ttl":0}`, catalog.TTLAbsent, ""},
		{`"TTL":0,"_ttl":0,"TimeToLive":0`, catalog.TTLAbsent, ""},
	} {
		o, err := value.ParseObject([]byte(`{"id":"a"` + strings.TrimSuffix(","+c.properties, ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range []catalog.TTL{catalog.TTLForever, 10} {
			got, err := itemTTL(o, &catalog.Container{Definition: catalog.Definition{DefaultTTL: on}})
			var bad *TTLError
			switch {
			case c.refused == "":
				if err != nil || got != c.want {
					t.Errorf("%s: got %d, %v, want %d", c.properties, got, err, c.want)
				}
			case !errors.As(err, &bad) || bad.Error() != "The input ttl '"+c.refused+"'"+rule:
				t.Errorf("%s: got error %v, want one that quotes %s", c.properties, err, c.refused)
			}
		}
		got, err := itemTTL(o, &catalog.Container{})
		if err != nil || got != c.want {
			t.Errorf("%s while TTL is off: got %d, %v, want %d and no error", c.properties, got, err, c.want)
		}
	}
}

// An invalid ttl may be stored while TTL is off, and has no effect when TTL is switched on.
func TestInvalidTTLStaysInert(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("zero", `"ttl":0`)
	f.put("two", `"ttl":2`)
	f.advance(5 * time.Second)
	f.reconfigure(withTTL("-1"))
	if item, err := f.read("zero"); err != nil || !strings.Contains(string(item.Body), `"ttl":0`) {
		t.Errorf("an invalid ttl: got %s, %v, want the item as it came", item.Body, err)
	}
	if _, err := f.read("two"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a ttl of 2, 5 s later: got %v, want ErrNotFound", err)
	}
	f.reconfigure(withTTL("6"))
	if _, err := f.read("zero"); err != nil {
		t.Errorf("an invalid ttl before the default is over: %v", err)
	}
	f.advance(time.Second)
	if _, err := f.read("zero"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an invalid ttl after the default: got %v, want ErrNotFound", err)
	}
	f.checkClean()
}

// How requests treat an item that has expired and is not purged.
func TestExpiredItemsAreGone(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(f *fixture, old Result) error
		want error
	}{
		{"read", func(f *fixture, _ Result) error { _, err := f.read("a"); return err }, ErrNotFound},
		{"read if none match", func(f *fixture, old Result) error {
			_, err := f.p.Read(nil, f.key("k", "a"), old.ETag, f.clock.Now())
			return err
		}, ErrNotFound},
		{"replace", func(f *fixture, _ Result) error { _, err := f.write(f.item(Replace, "a", "")); return err }, ErrNotFound},
		{"replace if match", func(f *fixture, old Result) error {
			w := f.item(Replace, "a", "")
			w.IfMatch = old.ETag
			_, err := f.write(w)
			return err
		}, ErrNotFound},
		{"delete", func(f *fixture, _ Result) error {
			_, err := f.write(Write{Op: Delete, Key: f.key("k", "a")})
			return err
		}, ErrNotFound},
		{"delete if match another", func(f *fixture, _ Result) error {
			_, err := f.write(Write{Op: Delete, Key: f.key("k", "a"), IfMatch: `"x"`})
			return err
		}, ErrNotFound},
		{"create", func(f *fixture, old Result) error {
			r, err := f.write(f.item(Create, "a", ""))
			f.check(r.Created && property(r.Body, "_rid") != property(old.Body, "_rid") && r.ETag != old.ETag,
				"create over an expired item: got %s, want a new item", r.Body)
			return err
		}, nil},
		{"upsert", func(f *fixture, old Result) error {
			w := f.item(Upsert, "a", "")
			w.IfMatch = `"x"` // an upsert that creates ignores it
			r, err := f.write(w)
			f.check(r.Created && property(r.Body, "_rid") != property(old.Body, "_rid"),
				"upsert over an expired item: got %s, want a new item", r.Body)
			return err
		}, nil},
		{"list", func(f *fixture, _ Result) error {
			page, err := f.p.List(context.Background(), List{MaxItems: 10, MaxBytes: 1000}, f.clock.Now())
			f.check(page.Count == 0 && len(page.Items) == 0 && !page.More, "list: got %+v, want nothing", page)
			return err
		}, nil},
		{"list a partition key", func(f *fixture, _ Result) error {
			k := f.key("k", "")
			within := &LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}
			page, err := f.p.List(context.Background(), List{Within: within, MaxItems: 10, MaxBytes: 1000}, f.clock.Now())
			f.check(page.Count == 0 && len(page.Items) == 0 && !page.More, "list: got %+v, want nothing", page)
			return err
		}, nil},
	} {
		for _, properties := range []string{"", `"ttl":3`} {
			t.Run(c.name+" "+properties, func(t *testing.T) {
				f := newFixture(t, withTTL("3"))
				old := f.put("a", properties)
				f.advance(3 * time.Second)
				if err := c.do(f, old); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				f.checkClean()
			})
		}
	}
}

// A change of the default holds for all items at once, in both directions, and
// rewrites none.
func TestDefaultChangeRewritesNothing(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("inherits", "")
	f.put("forever", `"ttl":-1`)
	f.put("own", `"ttl":60`)
	f.advance(100 * time.Second)
	before := f.rows()
	for _, c := range []struct {
		defaultTTL string
		live       string
	}{
		{"null", "inherits forever own"},
		{"60", "forever"},
		{"3600", "inherits forever"},
		{"-1", "inherits forever"},
		{"null", "inherits forever own"},
		{"100", "forever"},
		{"101", "inherits forever"},
	} {
		f.reconfigure(withTTL(c.defaultTTL))
		var live []string
		for _, id := range []string{"inherits", "forever", "own"} {
			if _, err := f.read(id); err == nil {
				live = append(live, id)
			}
		}
		if got := strings.Join(live, " "); got != c.live {
			t.Errorf("defaultTtl %s: live are %q, want %q", c.defaultTTL, got, c.live)
		}
	}
	after := f.rows()
	x := partitionPrefix(f.container.RID, 0)
	delete(before, string(x.metaKey())) // the one row that knows of the settings
	delete(after, string(x.metaKey()))
	if !equalRows(before, after) {
		t.Errorf("rows have changed: got %q, want %q", after, before)
	}
}

// Every write restarts the countdown, a read does not, and a refused write
// neither.
func TestWhatRestartsTheCountdown(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(f *fixture)
		restart bool
	}{
		{"upsert", func(f *fixture) { f.put("a", "") }, true},
		{"replace", func(f *fixture) { _, err := f.write(f.item(Replace, "a", "")); f.must(err) }, true},
		{"read", func(f *fixture) { _, err := f.read("a"); f.must(err) }, false},
		{"create", func(f *fixture) { _, _ = f.write(f.item(Create, "a", "")) }, false},
		{"replace that does not match", func(f *fixture) {
			w := f.item(Replace, "a", "")
			w.IfMatch = `"x"`
			_, _ = f.write(w)
		}, false},
		{"upsert with an invalid ttl", func(f *fixture) { _, _ = f.write(f.item(Upsert, "a", `"ttl":0`)) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, withTTL("10"))
			f.put("a", "")
			f.advance(9 * time.Second)
			c.do(f)
			f.advance(time.Second)
			if _, err := f.read("a"); (err == nil) != c.restart {
				t.Errorf("10 s after the first write: got %v, want live %v", err, c.restart)
			}
		})
	}
}

// The earliest of several items decides whether any is expired.
func TestEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cuts{rapid.Int64Range(noCut, 20_000).Draw(t, "inherit"), rapid.Int64Range(noCut, 20_000).Draw(t, "own")}
		first, expired := earliestOfNone, false
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			writtenMs := rapid.Int64Range(0, 25_000).Draw(t, "written")
			own := rapid.SampledFrom([]catalog.TTL{catalog.TTLAbsent, catalog.TTLForever, 1, 3, 10}).Draw(t, "ttl")
			first = first.with(life{writtenMs, own})
			expired = expired || c.expired(life{writtenMs, own})
		}
		if got := c.noneExpired(first); got == expired {
			t.Errorf("none is expired: got %v, want %v", got, !expired)
		}
	})
}
