// SPDX-License-Identifier: MIT

package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/oracle"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/store"
)

// A query over a partition answers what the naive way answers over its live items,
// whatever the index, the scope, the page size and the state of a rebuild.
func TestRunAgreesWithTheNaiveWay(t *testing.T) {
	world := newWorld(t, inMemory(t))
	containers := 0
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(r *rapid.T) {
			t := newRandom(r)
			containers++
			f := *world
			f.t = r
			f.create(fmt.Sprintf("c%d", containers), anySettings(t))
			defer func() { f.p.Close() }()
			f.fill(t)
			for range 1 + uniform(t.T, "rounds", 3) {
				f.disturb(t)
				for range 1 + uniform(t.T, "queries", 12) {
					f.compareWithOracle(t, anyQuery(t), f.anyScope(t))
				}
			}
			f.checkRows()
		})
	}
}

var partitionKeys = []string{"k", "k", "l", "m"}

// fill writes items: mostly few, sometimes so many that a partition key is no longer
// read whole.
func (f *fixture) fill(t *random) {
	n := uniform(t.T, "items", 41)
	if chance(t.T, "many", 6) {
		n = logicalItems + 20
		for i := range n {
			f.put("k", fmt.Sprint("more", i), fmt.Sprintf(`"full":%s,"a":%s,"n":%d`, scalars[i%len(scalars)], scalars[i*7%len(scalars)], i%9))
		}
		n = 10
	}
	for range n {
		f.write(t)
	}
}

func (f *fixture) write(t *random) {
	f.put(pick(t.T, "pk", partitionKeys...), fmt.Sprint("i", uniform(t.T, "id", 61)), anyMembers(t))
}

// disturb changes something between queries.
func (f *fixture) disturb(t *random) {
	switch pick(t.T, "disturb", "nothing", "write", "time", "time", "purge", "policy", "rebuild", "restart") {
	case "write":
		for range 1 + uniform(t.T, "writes", 5) {
			f.write(t)
		}
	case "time":
		f.advance(time.Duration(rapid.IntRange(1, 15_000).Draw(t.T, "ms")) * time.Millisecond)
	case "purge":
		f.purge()
	case "policy":
		f.reconfigure(anySettings(t))
		f.rebuildPartly(t)
	case "rebuild":
		f.reindex(3)
	case "restart":
		f.reopen()
	}
}

func (f *fixture) rebuildPartly(t *random) {
	for range uniform(t.T, "groups", 4) {
		_, _, err := f.p.Reindex(f.context(), 3)
		f.must(err)
	}
}

func (f *fixture) anyScope(t *random) Scope {
	switch pick(t.T, "scope", "all", "all", "all", "logical", "prefix", "range") {
	case "prefix":
		epk := f.logical(pick(t.T, "pk", "k", "l", "m", "none")).EPK
		return Scope{Logical: &store.LogicalPartition{EPK: epk[:1+uniform(t.T, "bytes", len(epk))], Prefix: true}}
	case "logical":
		return Scope{Logical: f.logical(pick(t.T, "pk", "k", "l", "m", "none"))}
	case "range":
		low, high := f.logical(pick(t.T, "from", "k", "l", "m")).EPK, f.logical(pick(t.T, "to", "k", "l", "m")).EPK
		switch pick(t.T, "bounds", "both", "from", "to") {
		case "from":
			return Scope{MinEPK: low}
		case "to":
			return Scope{MaxEPK: high}
		}
		return Scope{MinEPK: low, MaxEPK: high}
	}
	return Scope{}
}

// live returns the live items of a scope in the order of their creation.
func (f *fixture) live(s Scope) [][]byte {
	f.t.Helper()
	page, err := f.p.List(f.context(), store.List{MaxItems: 1 << 20, MaxBytes: 1 << 30}, f.clock.Now())
	f.must(err)
	var raw []json.RawMessage
	f.must(json.Unmarshal(slices.Concat([]byte("["), page.Items, []byte("]")), &raw))
	var items [][]byte
	for _, item := range raw {
		pk, _ := datum.Raw(item).Member("pk").AsString()
		epk := f.logical(pk).EPK
		if s.Logical != nil && !s.Logical.Holds(epk) || bytes.Compare(epk, s.MinEPK) < 0 || s.MaxEPK != nil && bytes.Compare(epk, s.MaxEPK) >= 0 {
			continue
		}
		items = append(items, item)
	}
	return items
}

// canonical makes rows comparable: 1 and 1.0 are equal, so that either may stand for
// both.
func canonical(rows []string) []string {
	for i, row := range rows {
		rows[i] = string(datum.Raw([]byte(row)).AppendCanonical(nil))
	}
	return rows
}

func (f *fixture) naive(text string, s Scope, descending bool) []string {
	f.t.Helper()
	items := f.live(s)
	if descending { // rows with equal keys come in the direction of the keys
		slices.Reverse(items)
	}
	q, err := syntax.Parse(text)
	f.must(err)
	var values []datum.Value
	for _, item := range items {
		values = append(values, datum.Raw(item))
	}
	rows, err := oracle.Rows(q, values, &function.Context{NowMs: f.clock.Now(), Random: half})
	f.must(err)
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = string(row.AppendCanonical(nil))
	}
	return texts
}

// compareWithOracle runs a query in pages of several sizes.
func (f *fixture) compareWithOracle(t *random, q *randomQuery, s Scope) {
	text := q.String()
	if !q.ordered { // then any rows do for a slice
		text = q.text(false)
	}
	want := f.naive(text, s, q.ordered && q.descending)
	q.gathered = int64(uniform(t.T, "gathered", 2) * 5)
	for _, size := range []int{1, 2, 7, 1000} {
		r := f.request(q.String())
		r.Scope, r.MaxRows, r.gathered = s, size, q.gathered
		if chance(t.T, "short", 10) {
			r.MaxBytes = 1 + uniform(t.T, "bytes", 2000)
		}
		got := canonical(f.all(r))
		if problem := judge(q, got, slices.Clone(want)); problem != "" {
			plan, err := explain(r)
			f.must(err)
			t.Fatalf("%s\npages of %d, plan: %s, scope %+v\n%s", q, size, plan, s, problem)
		}
	}
	f.compareHurried(t, q, s, want)
}

// judge says what is wrong with the rows of a query. Without an order they come in that of
// creation, unless ranges have more rows than are gathered. Then all rows are as good as
// others: of a slice the number counts.
func judge(q *randomQuery, got, want []string) string {
	created := q.gathered == 0 && q.groupBy == "" && !strings.HasPrefix(q.from, "(")
	if created && !q.ordered && q.sliced {
		want = want[min(q.offset, len(want)):]
		want = want[:min(q.limit, len(want))]
	}
	if !q.ordered && !created {
		slices.Sort(want)
		slices.Sort(got)
	}
	if q.ordered || created || !q.sliced {
		if !slices.Equal(got, want) {
			return difference(got, want)
		}
		return ""
	}
	if n := max(0, min(q.limit, len(want)-q.offset)); len(got) != n {
		return fmt.Sprintf("got %d rows, want %d: %s", len(got), n, difference(got, want))
	}
	for rest := want; len(got) > 0; got = got[1:] {
		i := slices.Index(rest, got[0])
		if i < 0 {
			return fmt.Sprintf("%s is no row, or is there too often", got[0])
		}
		rest = slices.Delete(slices.Clone(rest), i, i+1)
	}
	return ""
}

func difference(got, want []string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	at := func(rows []string) string {
		if i >= len(rows) {
			return "the end"
		}
		return clip(rows[i])
	}
	return fmt.Sprintf("got %d rows, want %d; row %d:\ngot  %s\nwant %s", len(got), len(want), i, at(got), at(want))
}

func clip(s string) string {
	if len(s) > 700 {
		return s[:700] + "…"
	}
	return s
}
