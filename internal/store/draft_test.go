// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

func (f *fixture) draft() *Draft {
	f.t.Helper()
	k := f.key("k", "")
	d, err := f.p.NewDraft(LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}, f.clock.Now())
	f.must(err)
	return d
}

// draftIDs returns the ids that a draft's reader finds, in order.
func draftIDs(f *fixture, d *Draft) []string {
	f.t.Helper()
	ids := []string{}
	for after, more := uint64(0), true; more; {
		var ordinals []uint64
		var err error
		ordinals, more, err = d.Reader().Logical(d.logical, after)
		f.must(err)
		for _, o := range ordinals {
			found, live, err := d.Reader().Get(o)
			f.must(err)
			after = o
			if !live {
				continue
			}
			id, err := textOf(found.Body, "id")
			f.must(err)
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// A draft is visible to no reader before it is committed, and does not see the writes of
// others.
func TestDraftIsApart(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	f.put("a", `"v":1`)
	d := f.draft()
	defer d.Close()
	_, err := d.Write(f.item(Replace, "a", `"v":2`))
	f.must(err)
	_, err = d.Write(f.item(Create, "b", ""))
	f.must(err)
	if item, err := f.read("a"); err != nil || !bytes.Contains(item.Body, []byte(`"v":1`)) {
		t.Errorf("others see %s, %v", item.Body, err)
	}
	if _, err := f.read("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("others see an item of a draft: %v", err)
	}
	f.put("c", "")
	if _, _, err := d.Read("c"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a draft sees what came later: %v", err)
	}
	before := f.p.LSN()
	if _, err := d.Commit(t.Context()); !errors.Is(err, ErrChanged) || f.p.LSN() != before {
		t.Errorf("a draft of what has changed: %v, lsn %d to %d", err, before, f.p.LSN())
	}
}

// A draft refuses writes beyond its limits, and Full reports that before.
func TestDraftIsBounded(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	d := f.draft()
	defer d.Close()
	pad := fmt.Sprintf(`"pad":%q`, strings.Repeat("x", 1<<20))
	for i := 0; !d.Full(); i++ {
		_, err := d.Write(f.item(Create, fmt.Sprint(i), pad))
		f.must(err)
	}
	if _, err := d.Write(f.item(Create, "more", "")); !errors.Is(err, ErrTooMuch) {
		t.Errorf("a write to a full draft: %v", err)
	}
	results, err := d.Commit(t.Context())
	f.must(err)
	f.check(len(results) == d.Writes() && f.p.LSN() == 1, "%d results of %d writes, lsn %d", len(results), d.Writes(), f.p.LSN())
	f.checkClean()
}

// draftHistory is a draft, and its expected content.
type draftHistory struct {
	f    *fixture
	d    *Draft
	want map[string]string // etags by id
	uses map[int]string    // ids by unique value
}

// Provisional values of a draft are replaced where they are whole values, and nowhere else.
func TestSettle(t *testing.T) {
	f := newFixture(t, withTTL("-1"))
	d := f.draft()
	defer d.Close()
	was, err := d.Write(f.item(Create, "a", `"note":"x"`))
	f.must(err)
	f.advance(5 * time.Second)
	results, err := d.Commit(t.Context())
	f.must(err)
	is := &results[0]
	quote := func(text string) string { return string(value.AppendString(nil, text)) }
	sentence := quote("the etag was " + was.ETag)
	for text, want := range map[string]string{
		string(was.Body):                              string(is.Body),
		"[1, " + quote(was.ETag) + "]":                "[1," + quote(is.ETag) + "]",
		`{"tag":` + quote(was.ETag[1:37]) + `}`:       `{"tag":` + quote(is.ETag[1:37]) + `}`,
		quote(string(was.Body)):                       quote(string(is.Body)),
		sentence:                                      sentence,
		`{` + quote(was.ETag) + `:true}`:              `{` + quote(was.ETag) + `:true}`,
		quote("{ " + was.ETag + " is no JSON text }"): quote("{ " + was.ETag + " is no JSON text }"),
		`no JSON: ` + was.ETag:                        `no JSON: ` + was.ETag,
		`null`:                                        `null`,
	} {
		if got := string(d.Settle([]byte(text), results)); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

// All writes to a draft are in it as in a map, and in the partition once it is committed.
func TestDraftHistories(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := newFixture(t, withUniqueKeys)
		defer f.p.Close()
		h := &draftHistory{f: f, want: map[string]string{}, uses: map[int]string{}}
		for i := range 3 {
			res := f.put(fmt.Sprint(i), fmt.Sprintf(`"a":%d,"b":%d`, i, i))
			h.want[fmt.Sprint(i)], h.uses[i] = res.ETag, fmt.Sprint(i)
		}
		f.put("expired", `"a":5,"b":5,"ttl":1`)
		f.advance(time.Second)
		h.d = f.draft()
		defer h.d.Close()
		for range rapid.IntRange(0, 12).Draw(r, "writes") {
			h.write(r)
		}
		h.check(r)
		results, err := h.d.Commit(context.Background())
		if err != nil || len(results) != h.d.Writes() {
			r.Fatalf("commit: %d results, %v", len(results), err)
		}
		for _, id := range []string{"0", "1", "2", "3", "expired"} {
			item, err := f.read(id)
			if _, exists := h.want[id]; exists != (err == nil) {
				r.Fatalf("%s after the commit: %v", id, err)
			}
			if err == nil {
				if body, _, err := h.d.Read(id); err != nil || string(h.d.Settle(body, results)) != string(item.Body) {
					r.Fatalf("the draft had %s, %v; there is %s", body, err, item.Body)
				}
			}
		}
		f.checkClean()
	})
}

// write does one write, and checks its result.
func (h *draftHistory) write(r *rapid.T) {
	op := rapid.SampledFrom([]Op{Create, Upsert, Replace, Delete}).Draw(r, "op")
	id := rapid.SampledFrom([]string{"0", "1", "2", "3", "expired"}).Draw(r, "id")
	n := rapid.IntRange(0, 5).Draw(r, "n")
	w := h.f.op(Delete, id)
	if op != Delete {
		w = h.f.item(op, id, fmt.Sprintf(`"a":%d,"b":%d`, n, n))
	}
	etag, exists := h.want[id]
	stale := rapid.Bool().Draw(r, "stale")
	if stale {
		w.IfMatch = "other"
	} else if exists {
		w.IfMatch = etag
	}
	res, err := h.d.Write(w)
	user, used := h.uses[n]
	var want error
	switch {
	case exists && op == Create:
		want = ErrExists
	case !exists && (op == Replace || op == Delete):
		want = ErrNotFound
	case exists && stale:
		want = ErrPrecondition
	case op != Delete && used && user != id:
		want = ErrNotUnique
	}
	if !errors.Is(err, want) || want == nil && err != nil {
		r.Fatalf("op %d of %s with %d: %v, want %v", op, id, n, err, want)
	}
	if err != nil {
		return
	}
	maps.DeleteFunc(h.uses, func(_ int, user string) bool { return user == id })
	delete(h.want, id)
	if op != Delete {
		h.want[id], h.uses[n] = res.ETag, id
		if res.Created == exists {
			r.Fatalf("op %d of %s: created is %v", op, id, res.Created)
		}
	}
}

// check compares the draft with its expected content.
func (h *draftHistory) check(r *rapid.T) {
	if got, want := draftIDs(h.f, h.d), slices.Sorted(maps.Keys(h.want)); !slices.Equal(got, want) {
		r.Fatalf("the draft has %q, want %q", got, want)
	}
	for id, etag := range h.want {
		body, got, err := h.d.Read(id)
		if err != nil || got != etag {
			r.Fatalf("%s: %s, %s, %v; want the etag %s", id, body, got, err, etag)
		}
		rid, err := textOf(body, "_rid")
		if err != nil {
			r.Fatal(err)
		}
		if found, err := h.d.IDOf(rid); err != nil || found != id {
			r.Fatalf("the rid %s of %s leads to %s, %v", rid, id, found, err)
		}
	}
}
