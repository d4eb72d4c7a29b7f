// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// Scalars about the edges: of numbers, of how an index cuts strings, and of the
// orders of UTF-8 and UTF-16, which differ beyond U+FFFF. They are JSON, and few
// enough that items often share one.
var (
	numbers = []string{"0", "-0", "1", "1.0", "2", "-1", "1.5", "1e2", "100", "9007199254740993", "9007199254740992", "5e-324", "-5e-324", "1.7976931348623157e308", "-1.7976931348623157e308"}
	strs    = quoted(
		"", "a", "ab", "abc", "b", "B", "a\x00", "a\x00b", "\x01", "é", "z", "\ue000", "\uffff", "a\ufb01", "\U00010000", "a😀", "😀", "\ud7ff",
		x(255), x(255)+"\x00", x(256), x(256)+"\x00", x(257), x(256)+"y", x(256)+"z", x(256)+"yy", x(256)+"\ue000", x(256)+"😀",
		x(255)+"é", x(254)+"😀", x(254)+"😀a", x(254)+"\ue000", strings.Repeat("\x00", 127), strings.Repeat("\x00", 128), strings.Repeat("\x00", 129), x(2000)+"b", x(2000)+"a",
	)
	words   = []string{"null", "true", "false"}
	scalars = append(append(append([]string{}, words...), numbers...), strs...)
	nested  = []string{"[]", "{}", "[1]", `["a","ab",1]`, "[[1],[]]", `[{"x":1},{"x":"a"}]`, "[null,true]", `{"x":1}`, `{"x":"a","y":[1]}`, `{"x":{"y":"a"}}`, `{"x":null}`, `{"y":1}`}
)

func x(n int) string { return strings.Repeat("x", n) }

func quoted(list ...string) []string {
	for i, s := range list {
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range s {
			if r < ' ' {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
		list[i] = b.String()
	}
	return list
}

// uniform draws a number below n, all of them alike: rapid's own ranges and samples
// prefer what is small and comes first, and so hardly ever make an item that has
// everything, or a long list of items that all have.
func uniform(t *rapid.T, label string, n int) int {
	v := 0
	for _, bit := range rapid.SliceOfN(rapid.Bool(), 12, 12).Draw(t, label) {
		v <<= 1
		if bit {
			v++
		}
	}
	return v % n
}

func pick(t *rapid.T, label string, from ...string) string {
	return from[uniform(t, label, len(from))]
}

func chance(t *rapid.T, label string, percent int) bool { return uniform(t, label, 100) >= 100-percent }

// random draws what one run of a test is about. Its scalars are a few of all, so that
// items and queries often mean the same.
type random struct {
	*rapid.T
	pool []string
	// orders are the composite indexes of the last policy that was drawn.
	orders []string
}

func newRandom(t *rapid.T) *random {
	r := &random{T: t, pool: slices.Clone(words)}
	for range 6 {
		r.pool = append(r.pool, pick(t, "number", numbers...))
	}
	for range 14 {
		r.pool = append(r.pool, pick(t, "text", strs...))
	}
	return r
}

func anyScalar(t *random) string {
	if chance(t.T, "of the pool", 85) {
		return pick(t.T, "scalar", t.pool...)
	}
	switch uniform(t.T, "kind", 6) {
	case 0:
		return pick(t.T, "word", words...)
	case 1, 2:
		return pick(t.T, "number", numbers...)
	}
	return pick(t.T, "text", strs...)
}

func anyValue(t *random) string {
	if chance(t.T, "nested", 20) {
		return pick(t.T, "value", nested...)
	}
	return anyScalar(t)
}

// anyMembers draws the members of an item.
func anyMembers(t *random) string {
	var members []string
	for _, name := range []string{"a", "b", "o", "arr", "full"} {
		switch {
		case name == "full": // that every item has, most of the time
			if !chance(t.T, "no full", 1) {
				members = append(members, `"full":`+anyScalar(t))
			}
		case name == "arr" && chance(t.T, "array", 70):
			n := uniform(t.T, "elements", 5)
			list := make([]string, n)
			for i := range list {
				list[i] = anyValue(t)
			}
			members = append(members, `"arr":[`+strings.Join(list, ",")+"]")
		case name == "o" && chance(t.T, "object", 60):
			members = append(members, `"o":`+pick(t.T, "o", `{"x":1}`, `{"x":"a"}`, `{"x":"b","y":1}`, `{"x":[1]}`, `{}`, `[{"x":1}]`))
		case chance(t.T, "present", 80):
			members = append(members, strconv.Quote(name)+":"+anyValue(t))
		}
	}
	members = append(members, specialMembers(t)...)
	if chance(t.T, "summand", 90) {
		members = append(members, `"n":`+pick(t.T, "n", "1", "2", "3", "4", "5", "6", "7", "null"))
	}
	if chance(t.T, "own ttl", 30) {
		members = append(members, `"ttl":`+pick(t.T, "ttl", "1", "5", "30", "-1"))
	}
	return strings.Join(members, ",")
}

var policies = []string{
	`{}`, `{` + specialIndexes + `}`, `{` + specialIndexes + `}`,
	`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"}]}`,
	`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/?"},{"path":"/arr/[]/*"}]}`,
	`{"includedPaths":[{"path":"/a/?"},{"path":"/full/?"},{"path":"/o/x/?"}],"excludedPaths":[{"path":"/*"}]}`,
	`{"includedPaths":[{"path":"/arr/[]/?"}],"excludedPaths":[{"path":"/*"}]}`,
	`{"indexingMode":"none","automatic":false}`,
}

// compositePolicies are lists of composite indexes: "/x /y-" is ascending by x, then
// descending by y.
var compositePolicies = [][]string{
	{"/a /full"}, {"/full- /n", "/n /full-", "/pk /full /a-"}, {"/a /b- /n", "/_ts- /full", "/pk /n"}, {"/n /a /full"},
	{"/n /full", "/n- /a", "/o/x /n", "/a- /full-"}, {"/full /a /n", "/a /id", "/arr /full"}, {"/pk /n- /full", "/n /pk /full"},
}

// composites is a policy with composite indexes.
func composites(list []string) string {
	var all []string
	for _, composite := range list {
		var paths []string
		for _, p := range strings.Fields(composite) {
			path, descending := strings.CutSuffix(p, "-")
			order := map[bool]string{false: "ascending", true: "descending"}[descending]
			paths = append(paths, fmt.Sprintf(`{"path":%q,"order":%q}`, path, order))
		}
		all = append(all, "["+strings.Join(paths, ",")+"]")
	}
	return `{"compositeIndexes":[` + strings.Join(all, ",") + `]}`
}

// anySettings draws an indexing policy and a default TTL.
func anySettings(t *random) string {
	policy := pick(t.T, "policy", policies...)
	t.orders = nil
	if chance(t.T, "composite", 45) {
		t.orders = compositePolicies[uniform(t.T, "composites", len(compositePolicies))]
		policy = composites(t.orders)
	}
	settings := specialSettings + `,"indexingPolicy":` + policy
	if !strings.Contains(policy, "none") {
		settings += `,"defaultTtl":` + pick(t.T, "default", "-1", "10", "1000")
	}
	return settings
}

// A query in parts, so that a test can say what its answer must be.
type randomQuery struct {
	distinct        bool
	selected        string
	from            string
	where           string
	groupBy         string
	orderBy         string
	descending      bool
	offset, limit   int // limit < 0: none
	top             bool
	ordered, sliced bool
	gathered        int64 // how many rows of a range are; 0 is as usual
}

func (q *randomQuery) String() string { return q.text(q.sliced) }

// text is the query with TOP, OFFSET and LIMIT, or without.
func (q *randomQuery) text(sliced bool) string {
	s := "SELECT "
	if q.distinct {
		s += "DISTINCT "
	}
	if sliced && q.top {
		s += fmt.Sprintf("TOP %d ", q.limit)
	}
	s += q.selected + " FROM " + q.from
	if q.where != "" {
		s += " WHERE " + q.where
	}
	s += q.groupBy + q.orderBy
	if sliced && !q.top {
		s += fmt.Sprintf(" OFFSET %d LIMIT %d", q.offset, q.limit)
	}
	return s
}

var paths = []string{"c.a", "c.a", "c.b", "c.full", "c.full", "c.o.x", "c.arr[0]", "c.arr", "c.o", "c.missing", "c.id", "c.pk", "c.n", "c.ttl", "c._ts"}

func anyComparison(t *random, path string) string {
	switch pick(t.T, "condition", "compare", "compare", "compare", "in", "between", "prefix", "like", "contains", "kind", "bare") {
	case "compare":
		return path + " " + pick(t.T, "operator", "=", "=", "!=", "<", "<=", ">", ">=") + " " + anyValue(t)
	case "in":
		n := 1 + uniform(t.T, "list", 5)
		list := make([]string, n)
		for i := range list {
			list[i] = anyValue(t)
		}
		if chance(t.T, "in an array", 30) {
			return pick(t.T, "not", "", "NOT ") + "ARRAY_CONTAINS([" + strings.Join(list, ", ") + "], " + path + ")"
		}
		return path + pick(t.T, "in", " IN (", " IN (", " NOT IN (") + strings.Join(list, ", ") + ")"
	case "between":
		return "(" + path + pick(t.T, "between", " BETWEEN ", " NOT BETWEEN ") + anyScalar(t) + " AND " + anyScalar(t) + ")"
	case "prefix":
		return "STARTSWITH(" + path + ", " + pick(t.T, "text", strs...) + pick(t.T, "fold", ")", ")", ", true)", ", false)")
	case "like":
		return path + " LIKE " + pick(t.T, "pattern", `"a%"`, `"x%"`, `"%b"`, `"ab"`, `"a_c"`, `"`+x(256)+`%"`,
			`"a!b" ESCAPE "!"`, `"a!%%" ESCAPE "!"`)
	case "contains":
		return "ARRAY_CONTAINS(" + path + ", " + anyValue(t) + pick(t.T, "partial", ")", ")", ", true)")
	case "kind":
		return pick(t.T, "is", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT", "IS_PRIMITIVE", "IS_DEFINED") + "(" + path + ")"
	}
	return path
}

// anyFilter draws a filter. There may be several conditions on one path, which an
// index answers as one.
func anyFilter(t *random, aliases []string, depth int) string {
	path := pick(t.T, "path", append(slices.Clone(aliases), paths...)...)
	switch pick(t.T, "filter", "one", "one", "one", "and", "same", "or", "not") {
	case "and":
		if depth > 0 {
			return "(" + anyFilter(t, aliases, depth-1) + " AND " + anyFilter(t, aliases, depth-1) + ")"
		}
	case "same":
		return "(" + anyComparison(t, path) + " AND " + anyComparison(t, path) + ")"
	case "or":
		if depth > 0 {
			return "(" + anyFilter(t, aliases, depth-1) + " OR " + anyFilter(t, aliases, depth-1) + ")"
		}
	case "not":
		return "NOT (" + anyComparison(t, path) + ")"
	}
	return anyComparison(t, path)
}

// anyQuery draws a query: one of any kind, or one that an index can answer.
func anyQuery(t *random) *randomQuery {
	if chance(t.T, "special", 30) {
		return specialQuery(t)
	}
	switch uniform(t.T, "query", 10) {
	case 0, 1, 2, 3:
		return indexedQuery(t)
	case 4, 5, 6:
		return compositeQuery(t)
	}
	return mixedQuery(t)
}

// indexedQuery draws a query over a path or two that most items have.
func indexedQuery(t *random) *randomQuery {
	q := &randomQuery{from: "c", limit: -1, selected: pick(t.T, "select", "VALUE c", "c.id", "VALUE c.full", "c.id, c.a", "VALUE COUNT(1)")}
	path := pick(t.T, "path", "c.full", "c.full", "c.a", "c.o.x", "c.n")
	switch pick(t.T, "where", "nothing", "one", "one", "two", "other") {
	case "one":
		q.where = anyComparison(t, path)
	case "two":
		q.where = anyComparison(t, path) + " AND " + anyComparison(t, path)
	case "other":
		q.where = anyComparison(t, pick(t.T, "path", "c.b", "c.id", "c.full"))
	}
	if q.selected != "VALUE COUNT(1)" {
		q.distinct = chance(t.T, "distinct", 15)
		if chance(t.T, "ordered", 70) {
			q.orderedBy(t, path)
		}
	}
	q.slice(t)
	return q
}

// compositeQuery draws a query that a composite index may answer: by a few values, a
// range, and an order of several properties.
func compositeQuery(t *random) *randomQuery {
	q := &randomQuery{from: "c", limit: -1, selected: pick(t.T, "select", "VALUE c", "c.id", "VALUE c.full", "c.id, c.a, c.n", "VALUE COUNT(1)")}
	some := func() string {
		return pick(t.T, "path", "c.full", "c.a", "c.n", "c.b", "c.pk", "c.id", "c.o.x", "c._ts", "c.arr")
	}
	var where []string
	for range uniform(t.T, "facts", 4) {
		switch path := some(); pick(t.T, "fact", "=", "=", "=", "pk", "any") {
		case "=":
			where = append(where, path+" = "+anyScalar(t))
		case "pk":
			where = append(where, `c.pk = "k"`)
		default:
			where = append(where, anyComparison(t, path))
		}
	}
	q.where = strings.Join(where, " AND ")
	counts := q.selected == "VALUE COUNT(1)"
	q.distinct = !counts && chance(t.T, "distinct", 10)
	if len(t.orders) > 0 && chance(t.T, "served", 85) {
		q.servedBy(t, pick(t.T, "index", t.orders...))
	} else if !counts && chance(t.T, "ordered", 75) {
		q.orderedBy(t, some())
		for range uniform(t.T, "more keys", 3) {
			q.orderBy += ", " + some() + pick(t.T, "direction", "", " DESC")
		}
	}
	q.slice(t)
	return q
}

// servedBy makes a query ask for a part of a composite index, most of the time in its
// order or the opposite.
func (q *randomQuery) servedBy(t *random, index string) {
	paths := strings.Fields(index)
	equal := uniform(t.T, "equal", len(paths))
	var where, keys []string
	opposite := rapid.Bool().Draw(t.T, "opposite")
	whole := rapid.Bool().Draw(t.T, "whole")
	for i, p := range paths {
		path, descending := strings.CutSuffix(p, "-")
		path = "c" + strings.ReplaceAll(path, "/", ".")
		switch {
		case i < equal && path == "c.pk":
			where = append(where, `c.pk = "k"`)
		case i < equal && path == "c.n":
			where = append(where, "c.n = "+pick(t.T, "n", "1", "2", "3"))
		case i < equal:
			where = append(where, path+" = "+anyScalar(t))
		case i == equal && chance(t.T, "range", 40):
			where = append(where, anyComparison(t, path))
		}
		if i < equal && !whole {
			continue
		}
		if len(keys) == 0 {
			q.descending = descending != opposite
		}
		if descending != opposite {
			path += " DESC"
		}
		keys = append(keys, path)
	}
	if chance(t.T, "only", 70) || q.where == "" {
		q.where = strings.Join(where, " AND ")
	}
	if q.selected != "VALUE COUNT(1)" && chance(t.T, "ordered", 80) {
		q.ordered, q.orderBy = true, " ORDER BY "+strings.Join(keys, ", ")
	}
}

func (q *randomQuery) orderedBy(t *random, path string) {
	q.ordered, q.descending = true, rapid.Bool().Draw(t.T, "descending")
	q.orderBy = " ORDER BY " + path
	if q.descending {
		q.orderBy += " DESC"
	}
}

func (q *randomQuery) slice(t *random) {
	if !chance(t.T, "sliced", 30) {
		return
	}
	q.sliced, q.top = true, rapid.Bool().Draw(t.T, "top")
	q.limit = uniform(t.T, "limit", 13)
	if !q.top {
		q.offset = uniform(t.T, "offset", 9)
	}
}

func mixedQuery(t *random) *randomQuery {
	q := &randomQuery{from: "c", limit: -1}
	var aliases []string
	switch pick(t.T, "from", "c", "c", "c", "c", "join", "joins", "element", "path", "nested") {
	case "join":
		q.from, aliases = "c JOIN t IN c.arr", []string{"t", "t", "t.x"}
	case "joins":
		q.from, aliases = "c JOIN t IN c.arr JOIN u IN c.arr", []string{"t", "u"}
	case "element":
		q.from, aliases = "c JOIN (SELECT VALUE e FROM e IN c.arr WHERE e != null) t", []string{"t"}
	case "path":
		q.from, aliases = "c JOIN t IN c.o", []string{"t"}
	case "nested":
		q.from = pick(t.T, "inner", "(SELECT DISTINCT c.a, c.n FROM c) c", "(SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) c", "(SELECT c.a, c.n FROM c WHERE c.a > 0) c")
	}
	if chance(t.T, "where", 75) {
		q.where = anyFilter(t, aliases, 2)
	}
	q.choose(t, aliases)
	q.slice(t)
	return q
}

// choose draws what to select, and in which order.
func (q *randomQuery) choose(t *random, aliases []string) {
	all := append(aliases, "c.a", "c.b", "c.full", "c.o", "c.arr[0]", "c.n")
	switch pick(t.T, "shape", "rows", "rows", "rows", "count", "aggregates", "groups") {
	case "count":
		q.selected = pick(t.T, "count", "VALUE COUNT(1)", "COUNT(1) AS n", `VALUE [{"item": COUNT(1)}]`, "VALUE COUNT(c.a)", "VALUE COUNT(undefined)", "COUNT(1), COUNT(null)")
		return
	case "aggregates":
		q.selected = pick(t.T, "aggregate", "SUM(c.n), AVG(c.n), MIN(c.a), MAX(c.full)", "VALUE MIN(c.a)", "VALUE {s: SUM(c.n), m: MAX(c.n)}", "VALUE COUNTIF(c.n > 3)")
		return
	case "groups":
		key := pick(t.T, "key", all...)
		q.selected, q.groupBy = key+" AS k, COUNT(1) AS n, MIN(c.full) AS m, SUM(c.n) AS s", " GROUP BY "+key
		if chance(t.T, "value", 30) {
			q.selected = "VALUE COUNT(1)"
		}
		q.distinct = chance(t.T, "distinct", 30)
		if chance(t.T, "ordered", 40) {
			q.orderedBy(t, key)
		}
		return
	}
	q.selected = pick(t.T, "select", "VALUE c", "c.id", "c.id, c.a", "VALUE c.a", "VALUE c.full", "c.a, c.b AS second", "VALUE [c.id, c.full]")
	if len(aliases) > 0 && rapid.Bool().Draw(t.T, "alias") {
		q.selected = pick(t.T, "select", "VALUE t", "c.id, t", "t AS x")
	}
	q.distinct = chance(t.T, "distinct", 20)
	if strings.HasPrefix(q.from, "(") || !chance(t.T, "ordered", 45) {
		return
	}
	q.orderedBy(t, pick(t.T, "order", "c.a", "c.full", "c.full", "c.full", "c.o.x", "c.n", "c.id", "c.missing", "c.arr[0]", "c._ts"))
}
