// SPDX-License-Identifier: MIT

package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// withComposites is the definition of a container with these composite indexes: "/x /y-" is
// ascending by x, then descending by y.
func withComposites(list ...string) string {
	var all []string
	for _, composite := range list {
		var paths []string
		for _, p := range strings.Fields(composite) {
			path, descending := strings.CutSuffix(p, "-")
			order := "ascending"
			if descending {
				order = "descending"
			}
			paths = append(paths, fmt.Sprintf(`{"path":%q,"order":%q}`, path, order))
		}
		all = append(all, "["+strings.Join(paths, ",")+"]")
	}
	return `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"indexingPolicy":{"compositeIndexes":[` + strings.Join(all, ",") + `]}}`
}

// Which composite indexes have rows, and when a change of the policy makes them again.
func TestIndexedComposites(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   int
	}{
		{withComposites("/x /y", "/y /x"), 2},
		{withComposites("/x /y", "/x- /y-", "/x /y-", "/x- /y"), 2},
		{withComposites("/x /y", "/x /y"), 1},
		{withComposites("/x /_ts-", "/_rid /x", "/_etag /x", "/x /_ts/y"), 1},
		{strings.TrimSuffix(withComposites("/x /low", "/x /y"), "}") + `,"computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.x) FROM c"}]}`, 1},
		{`{"id":"c","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"indexingMode":"none","compositeIndexes":[[{"path":"/x"},{"path":"/y"}]]}}`, 0},
	} {
		d, err := catalog.ParseDefinition([]byte(c.policy))
		if err != nil || len(d.IndexedComposites) != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.policy, len(d.IndexedComposites), err, c.want)
		}
	}
	f := newFixture(t, withComposites("/x /y"))
	for i, c := range []struct {
		list []string
		want uint32
	}{{[]string{"/x /y"}, 1}, {[]string{"/x /y", "/x- /y-"}, 1}, {[]string{"/x /y-"}, 2}, {[]string{"/x /y-", "/y /x"}, 3}, {nil, 4}} {
		if f.reconfigure(withComposites(c.list...)); f.container.IndexGeneration != c.want {
			t.Errorf("change %d: got generation %d, want %d", i, f.container.IndexGeneration, c.want)
		}
	}
}

var compositePolicies = [][]string{
	{"/x /y"}, {"/x- /y"}, {"/x /y-", "/y /x /_ts"}, {"/_ts- /x", "/x- /y-", "/y- /x"}, {"/o/p /x /y /_ts-"}, nil,
}

// The rows of a composite index are the live items in its order, in both directions,
// whatever happens to the items and the policy.
func TestCompositeAgreesWithItems(t *testing.T) {
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			policy := func() string { return withComposites(rapid.SampledFrom(compositePolicies).Draw(t, "policy")...) }
			f := makeFixture(t, kvtest.NewModel(), setup{definition: policy(), nowMs: startMs})
			defer func() { f.p.Close() }()
			for range rapid.IntRange(1, 30).Draw(t, "steps") {
				id := fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "id"))
				switch rapid.IntRange(0, 15).Draw(t, "step") {
				case 0:
					f.reconfigure(policy())
				case 1:
					_, _, err := f.p.Reindex(t.Context(), 3)
					f.must(err)
				case 2:
					f.advance(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond)
				case 3:
					_, err := f.p.Purge(t.Context(), Purge{MaxItems: 4})
					f.must(err)
				case 4:
					_, _ = f.write(Write{Op: Delete, Key: f.key("k", id)})
				case 5:
					f.reopen()
				default:
					f.put(id, anyComposed(t))
				}
				if f.indexed() {
					f.compareCompositesWithItems(t)
				}
			}
			f.checkClean()
			f.reindexAll(4)
			f.compareCompositesWithItems(t)
			f.checkClean()
		})
	}
}

func anyComposed(t *rapid.T) string {
	scalar := rapid.SampledFrom([]string{"", "null", "true", "1", "-1", "1.5", `""`, `"a"`, `"\u0000"`, `"\ue000"`, `"😀"`, "[]", `[1]`, "{}",
		`"` + strings.Repeat("l", 256) + `"`, `"` + strings.Repeat("l", 257) + `"`, `"` + strings.Repeat("l", 257) + `m"`})
	members := []string{`"ttl":` + rapid.SampledFrom([]string{"-1", "1", "2"}).Draw(t, "ttl")}
	for _, name := range []string{"x", "y", "o"} {
		v := scalar.Draw(t, name)
		if name == "o" && v != "" {
			v = `{"p":` + v + `}`
		}
		if v != "" {
			members = append(members, fmt.Sprintf("%q:%s", name, v))
		}
	}
	return strings.Join(members, ",")
}

// composed is an item as a composite index sees it.
type composed struct {
	ordinal uint64
	values  []value.Scalar
	kinds   []int  // by the order of types
	long    []bool // strings that the index cuts
}

func (f *fixture) composed(r *Reader, paths []catalog.CompositePath) map[uint64]composed {
	all := map[uint64]composed{}
	for found, err := range r.Scan(0) {
		f.must(err)
		o := f.object(found.Body)
		c := composed{ordinal: found.Ordinal}
		for _, p := range paths {
			raw, ok := o.At(p.Path)
			v, _ := value.FromJSON(raw)
			kind := int(v.Kind())
			switch {
			case ok && raw[0] == '[':
				kind = 100
			case ok && raw[0] == '{':
				kind = 101
			}
			text, _ := v.Text()
			c.values, c.kinds, c.long = append(c.values, v), append(c.kinds, kind), append(c.long, len(text) > 256)
		}
		all[found.Ordinal] = c
	}
	return all
}

// object parses a body.
func (f *fixture) object(body []byte) *value.Object {
	f.t.Helper()
	o, err := value.ParseObject(body)
	f.must(err)
	return o
}

// compareUTF16 compares two scalars as queries do: strings by their UTF-16 code units.
func compareUTF16(a, b value.Scalar) int {
	x, isText := a.Text()
	y, both := b.Text()
	if isText && both {
		return slices.Compare(utf16.Encode([]rune(x)), utf16.Encode([]rune(y)))
	}
	return value.Compare(a, b)
}

// compareComposed orders two items, and reports whether an index can order them.
func compareComposed(paths []catalog.CompositePath, a, b composed) (order int, known bool) {
	for i, p := range paths {
		order = cmp.Compare(a.kinds[i], b.kinds[i])
		if order == 0 && (a.kinds[i] >= 100 || a.long[i] && b.long[i]) {
			return 0, false
		}
		if order == 0 {
			order = compareUTF16(a.values[i], b.values[i])
		}
		if p.Descending {
			order = -order
		}
		if order != 0 {
			return order, true
		}
	}
	order = cmp.Compare(a.ordinal, b.ordinal)
	if paths[0].Descending {
		order = -order
	}
	return order, true
}

func (f *fixture) compareCompositesWithItems(t *rapid.T) {
	r := f.reader()
	defer r.Close()
	for number, paths := range r.Container().IndexedComposites {
		items := f.composed(r, paths)
		forward := f.compositeHits(r, CompositeRange{Number: number}, IndexScan{})
		backward := f.compositeHits(r, CompositeRange{Number: number}, IndexScan{Order: kv.Reverse})
		f.check(len(forward) == len(items), "index %d has %d rows, want %d", number, len(forward), len(items))
		for i, hit := range forward {
			if i == 0 {
				continue
			}
			if order, known := compareComposed(paths, items[forward[i-1].Ordinal], items[hit.Ordinal]); known && order >= 0 {
				t.Errorf("index %d: %+v comes before %+v", number, items[forward[i-1].Ordinal], items[hit.Ordinal])
			} else if !known && !forward[i-1].Value.Rough() {
				t.Errorf("index %d: %x is not rough", number, forward[i-1].Value)
			}
		}
		slices.Reverse(backward)
		f.check(slices.EqualFunc(forward, backward, sameHit), "index %d: the two directions differ", number)
		if len(forward) > 0 {
			f.compareCompositeParts(t, r, number, forward, items)
		}
	}
}

func sameHit(a, b Hit) bool { return a.Ordinal == b.Ordinal && a.Value.Compare(b.Value) == 0 }

func (f *fixture) compositeHits(r *Reader, c CompositeRange, s IndexScan) (hits []Hit) {
	s.Composite = &c
	for hit, err := range r.Index(s) {
		f.must(err)
		hits = append(hits, Hit{Place: index.Place{Value: hit.Value.Clone(), Ordinal: hit.Ordinal}})
	}
	return hits
}

// compareCompositeParts reads parts of an index: from a place on, and by values.
func (f *fixture) compareCompositeParts(t *rapid.T, r *Reader, number int, all []Hit, items map[uint64]composed) {
	paths := r.Container().IndexedComposites[number]
	at := rapid.IntRange(0, len(all)-1).Draw(t, "place")
	model := items[all[at].Ordinal]
	values := make([]index.Component, len(paths))
	for i := range paths {
		switch model.kinds[i] {
		case 100:
			values[i] = index.ArrayComponent()
		case 101:
			values[i] = index.ObjectComponent()
		default:
			values[i] = index.ScalarComponent(model.values[i])
		}
	}
	place := index.CompositePlace(paths, values, model.ordinal)
	first, last := at, at+1
	for first > 0 && all[first-1].Value.Compare(place.Value) == 0 {
		first--
	}
	for last < len(all) && all[last].Value.Compare(place.Value) == 0 {
		last++
	}
	f.check(sameHit(Hit{Place: place}, all[at]), "index %d: row %d is said to be at %x", number, at, place.Value)
	for _, c := range []struct {
		s    IndexScan
		want int
	}{
		{IndexScan{From: place}, len(all) - at}, {IndexScan{From: place, Order: kv.Reverse}, at + 1},
		{IndexScan{Alike: place}, len(all) - first}, {IndexScan{Alike: place, Order: kv.Reverse}, last},
	} {
		if got := f.compositeHits(r, CompositeRange{Number: number}, c.s); len(got) != c.want {
			t.Errorf("index %d, %+v: got %d rows, want %d", number, c.s, len(got), c.want)
		}
	}
	equal := rapid.IntRange(0, len(paths)-1).Draw(t, "equal")
	if slices.ContainsFunc(model.kinds[:equal+1], func(k int) bool { return k >= 100 }) || slices.Contains(model.values[:equal+1], value.Scalar{}) || slices.Contains(model.long[:equal], true) {
		return
	}
	parts := map[string]struct {
		of    func(value.Scalar) index.ValueRange
		holds func(order int) bool
	}{
		">=": {index.AtLeast, func(order int) bool { return order >= 0 }}, ">": {index.Above, func(order int) bool { return order > 0 }},
		"<=": {index.AtMost, func(order int) bool { return order <= 0 }}, "<": {index.Below, func(order int) bool { return order < 0 }},
	}
	name := rapid.SampledFrom([]string{">=", ">", "<=", "<"}).Draw(t, "part")
	next := parts[name].of(model.values[equal])
	got := f.compositeHits(r, CompositeRange{number, model.values[:equal], &next}, IndexScan{})
	var want []Hit
	for _, hit := range all {
		c := items[hit.Ordinal]
		if slices.Equal(c.values[:equal], model.values[:equal]) && c.kinds[equal] == model.kinds[equal] &&
			(parts[name].holds(compareUTF16(c.values[equal], model.values[equal])) || c.long[equal] && model.long[equal]) {
			want = append(want, hit)
		}
	}
	f.check(slices.EqualFunc(got, want, sameHit), "index %d, %v %s %v: got %d rows, want %d", number, model.values[:equal], name, model.values[equal], len(got), len(want))
}
