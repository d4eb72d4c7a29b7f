// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// all lists everything that r asks for, and returns the ids, one string for each page.
func (w *world) all(r *Request) []string {
	w.t.Helper()
	r.Database, r.Container = "d", "c"
	var pages []string
	for {
		page, err := w.e.ListItems(context.Background(), r)
		w.must(err)
		items, ok := value.Elements(fmt.Appendf(nil, "[%s]", page.Rows))
		if !ok || len(items) != page.Count || page.Container == nil || page.Charge < 1 {
			w.t.Fatalf("a page of %d items, charge %v: %q", page.Count, page.Charge, page.Rows)
		}
		var ids []string
		for _, raw := range items {
			o, err := value.ParseObject(raw)
			w.must(err)
			id, _ := o.Lookup("id")
			ids = append(ids, strings.Trim(string(id), `"`))
		}
		pages = append(pages, strings.Join(ids, " "))
		if page.Continuation == "" {
			return pages
		}
		if page.Continuation == r.Continuation {
			w.t.Fatalf("continuation %s leads to itself", page.Continuation)
		}
		r.Continuation = page.Continuation
	}
}

// Lists return the partitions in their order, whatever the page size and wherever a page
// ends, also across restarts.
func TestListAcrossPartitions(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "100", 4))
	// Partition 0 has two live items, 1 only an expired one, 2 nothing, and 3 three live
	// ones with an expired one between them.
	w.put("c", keys[0], "a", "")
	w.put("c", keys[0], "b", "")
	w.put("c", keys[1], "dead", `"ttl":1`)
	w.put("c", keys[3], "c", "")
	w.put("c", keys[3], "dead", `"ttl":1`)
	w.put("c", keys[3], "d", "")
	w.put("c", keys[3], "e", "")
	w.advance(time.Second)
	for range 2 {
		for size := 1; size <= 6; size++ {
			if got, want := strings.Fields(strings.Join(w.all(&Request{MaxItems: size}), " ")), strings.Fields("a b c d e"); !slices.Equal(got, want) {
				t.Errorf("in pages of %d: got %v, want %v", size, got, want)
			}
		}
		for i, want := range []string{"a b", "", "", "c d e"} {
			if got := w.all(&Request{Range: catalog.RangeID(i)}); len(got) != 1 || got[0] != want {
				t.Errorf("range %d: got %q, want %q", i, got, want)
			}
			if got := w.all(&Request{Target: Target{PartitionKey: fmt.Sprintf("[%q]", keys[i])}}); len(got) != 1 || got[0] != want {
				t.Errorf("partition key of range %d: got %q, want %q", i, got, want)
			}
		}
		w.reopen(Options{})
	}
	c, err := w.e.Container("d", "c")
	w.must(err)
	if got := w.all(&Request{Range: c.RID.String() + ",3", MaxItems: 2}); len(got) != 2 || got[0] != "c d" {
		t.Errorf("a range with its container's rid: got %q", got)
	}
	for _, gone := range []string{"4", "-1", "x", "0,0", "other,0", "1.0", " 0"} {
		r := &Request{Target: Target{Database: "d", Container: "c"}, Range: gone}
		if _, err := w.e.ListItems(t.Context(), r); !errors.Is(err, ErrRangeGone) {
			t.Errorf("range %q: got %v, want ErrRangeGone", gone, err)
		}
	}
}

func TestPageItems(t *testing.T) {
	for asked, want := range map[int]int{0: 100, 1: 1, 100: 100, 1000: 1000, 1001: 1000, -1: 1000, -5: 1000} {
		if got := pageItems(asked); got != want {
			t.Errorf("asked for %d: got %d, want %d", asked, got, want)
		}
	}
}

// A page has at most maxPageBytes, unless its first item alone has more, however the
// items are distributed over the partitions.
func TestPageBytes(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "null", 4))
	big := `"pad":"` + strings.Repeat("x", 3*maxPageBytes/8) + `"` // two fit into a page
	for i, pk := range keys {
		w.put("c", pk, fmt.Sprint(i), big)
	}
	w.put("c", keys[3], "small", "")
	if got, want := w.all(&Request{MaxItems: -1}), []string{"0 1", "2 3 small"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r := &Request{Target: Target{Database: "d", Container: "c"}, MaxItems: -1}
	for more := true; more; more = r.Continuation != "" {
		page, err := w.e.ListItems(t.Context(), r)
		w.must(err)
		if len(page.Rows) > maxPageBytes {
			t.Errorf("a page has %d bytes, at most %d are allowed", len(page.Rows), maxPageBytes)
		}
		r.Continuation = page.Continuation
	}
}

func TestContinuation(t *testing.T) {
	c := manyRanges(catalog.MaxPartitions)
	for _, ordinal := range []uint64{0, 1, store.FirstOrdinal(3), store.FirstOrdinal(3) + 1<<47, store.FirstOrdinal(255)} {
		text := continuation(c, ordinal)
		places, err := parseContinuation(c, text, 0, 255)
		if want := (listPlaces{{store.PartitionOf(ordinal), ordinal}}); err != nil || !slices.Equal(places, want) {
			t.Errorf("%s: got %v, %v, want %v", text, places, err, want)
		}
		if len(text) > 100 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%s is not a header's text", text)
		}
	}
	if got, want := continuation(c, 5), "+RID:AAAAAYAAAAIFAAAAAAAAAA==#RT:1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	other := &catalog.Container{RID: catalog.ContainerRID{Database: 1, Container: 3}}
	good := continuation(c, store.FirstOrdinal(2)+1)
	for name, bad := range map[string]string{
		"nothing": "", "no prefix": strings.TrimPrefix(good, "+RID:"), "no suffix": strings.TrimSuffix(good, "#RT:1"),
		"another container's": continuation(other, 5), "a container": "+RID:" + c.RID.String() + "#RT:1",
		"a range": "+RID:" + c.RID.RangeRID(2) + "#RT:1", "nonsense": "+RID:nonsense#RT:1", "more after it": good + "#TRC:5",
		"below the scope": continuation(c, store.FirstOrdinal(0)+1), "above the scope": continuation(c, store.FirstOrdinal(3)),
	} {
		if _, err := parseContinuation(c, bad, 1, 2); !errors.Is(err, ErrContinuation) {
			t.Errorf("%s, %q: got %v, want ErrContinuation", name, bad, err)
		}
	}
	if _, err := parseContinuation(c, good, 1, 2); err != nil {
		t.Errorf("in its scope: %v", err)
	}
}

func TestForeignContinuation(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "null", 2)
	keys := spread(c)
	for _, r := range []*Request{
		{Continuation: "nonsense"},
		{Continuation: continuation(c, store.FirstOrdinal(2))},
		{Range: "0", Continuation: continuation(c, store.FirstOrdinal(1)+1)},
		{Target: Target{PartitionKey: fmt.Sprintf("[%q]", keys[1])}, Continuation: continuation(c, 1)},
	} {
		r.Database, r.Container = "d", "c"
		if _, err := w.e.ListItems(t.Context(), r); !errors.Is(err, ErrContinuation) {
			t.Errorf("%+v: got %v, want ErrContinuation", r, err)
		}
	}
}

func FuzzContinuation(f *testing.F) {
	c := manyRanges(catalog.MaxPartitions)
	f.Add("")
	f.Add("+RID:AAAAAYAAAAIFAAAAAAAAAA==#RT:1#PKR:7")
	f.Add("+RID:AAAAAYAAAAIFAAAAAAAAAA==#RT:1#PKR:7,9:12,10:0")
	f.Add(continuation(c, 0))
	f.Add(continuation(c, store.FirstOrdinal(200)+7))
	f.Add("+RID:AAAAAYAAAAIFAAAAAAAAAA==#RT:1#TRC:1")
	f.Add("+RID:" + c.RID.RangeRID(1) + "#RT:1")
	f.Fuzz(func(t *testing.T, text string) {
		places, err := parseContinuation(c, text, 0, catalog.MaxPartitions-1)
		switch {
		case err != nil:
			if !errors.Is(err, ErrContinuation) {
				t.Errorf("%q: got %v, want ErrContinuation", text, err)
			}
		default:
			again := places.continuation(c, places[0].at)
			if read, err := parseContinuation(c, again, 0, catalog.MaxPartitions-1); err != nil || !slices.Equal(read, places) {
				t.Errorf("%q is read as %v, which is %q, and that %v, %v", text, places, again, read, err)
			}
		}
	})
}

// manyRanges returns a container with so many ranges.
func manyRanges(n int) *catalog.Container {
	c := &catalog.Container{RID: catalog.ContainerRID{Database: 1, Container: 2}}
	for i := range n {
		c.Ranges = append(c.Ranges, catalog.Range{ID: i})
	}
	return c
}
