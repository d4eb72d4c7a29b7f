// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
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

func pick(t *rapid.T, label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, label)
}

func chance(t *rapid.T, label string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(t, label) < percent
}

func anyScalar(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return pick(t, "word", words...)
	case 1, 2:
		return pick(t, "number", numbers...)
	}
	return pick(t, "text", strs...)
}

func anyValue(t *rapid.T) string {
	if chance(t, "nested", 20) {
		return pick(t, "value", nested...)
	}
	return anyScalar(t)
}

// anyMembers draws the members of an item.
func anyMembers(t *rapid.T) string {
	var members []string
	for _, name := range []string{"a", "b", "o", "arr", "full"} {
		switch {
		case name == "full": // that every item has, most of the time
			if !chance(t, "no full", 1) {
				members = append(members, `"full":`+anyScalar(t))
			}
		case name == "arr" && chance(t, "array", 70):
			n := rapid.IntRange(0, 4).Draw(t, "elements")
			list := make([]string, n)
			for i := range list {
				list[i] = anyValue(t)
			}
			members = append(members, `"arr":[`+strings.Join(list, ",")+"]")
		case name == "o" && chance(t, "object", 60):
			members = append(members, `"o":`+pick(t, "o", `{"x":1}`, `{"x":"a"}`, `{"x":"b","y":1}`, `{"x":[1]}`, `{}`, `[{"x":1}]`))
		case chance(t, "present", 80):
			members = append(members, strconv.Quote(name)+":"+anyValue(t))
		}
	}
	if chance(t, "summand", 90) {
		members = append(members, `"n":`+pick(t, "n", "1", "2", "3", "4", "5", "6", "7", "null"))
	}
	if chance(t, "own ttl", 30) {
		members = append(members, `"ttl":`+pick(t, "ttl", "1", "5", "30", "-1"))
	}
	return strings.Join(members, ",")
}

var policies = []string{
	`{}`, `{}`, `{}`,
	`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"}]}`,
	`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/?"},{"path":"/arr/[]/*"}]}`,
	`{"includedPaths":[{"path":"/a/?"},{"path":"/full/?"},{"path":"/o/x/?"}],"excludedPaths":[{"path":"/*"}]}`,
	`{"includedPaths":[{"path":"/arr/[]/?"}],"excludedPaths":[{"path":"/*"}]}`,
	`{"indexingMode":"none","automatic":false}`,
}

// anySettings draws an indexing policy and a default TTL.
func anySettings(t *rapid.T) string {
	policy := pick(t, "policy", policies...)
	settings := `"indexingPolicy":` + policy
	if !strings.Contains(policy, "none") {
		settings += `,"defaultTtl":` + pick(t, "default", "-1", "10", "1000")
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

func anyComparison(t *rapid.T, path string) string {
	switch pick(t, "condition", "compare", "compare", "compare", "in", "between", "prefix", "like", "contains", "kind", "bare") {
	case "compare":
		return path + " " + pick(t, "operator", "=", "=", "!=", "<", "<=", ">", ">=") + " " + anyValue(t)
	case "in":
		n := rapid.IntRange(1, 5).Draw(t, "list")
		list := make([]string, n)
		for i := range list {
			list[i] = anyValue(t)
		}
		return path + pick(t, "in", " IN (", " IN (", " NOT IN (") + strings.Join(list, ", ") + ")"
	case "between":
		return "(" + path + pick(t, "between", " BETWEEN ", " NOT BETWEEN ") + anyScalar(t) + " AND " + anyScalar(t) + ")"
	case "prefix":
		return "STARTSWITH(" + path + ", " + pick(t, "text", strs...) + pick(t, "fold", ")", ")", ", true)", ", false)")
	case "like":
		return path + " LIKE " + pick(t, "pattern", `"a%"`, `"x%"`, `"%b"`, `"ab"`, `"a_c"`, `"`+x(256)+`%"`)
	case "contains":
		return "ARRAY_CONTAINS(" + path + ", " + anyValue(t) + pick(t, "partial", ")", ")", ", true)")
	case "kind":
		return pick(t, "is", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT", "IS_PRIMITIVE", "IS_DEFINED") + "(" + path + ")"
	}
	return path
}

// anyFilter draws a filter. There may be several conditions on one path, which an
// index answers as one.
func anyFilter(t *rapid.T, aliases []string, depth int) string {
	path := rapid.SampledFrom(append(aliases, paths...)).Draw(t, "path")
	switch pick(t, "filter", "one", "one", "one", "and", "same", "or", "not") {
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

func anyQuery(t *rapid.T) *randomQuery {
	q := &randomQuery{from: "c", limit: -1}
	var aliases []string
	switch pick(t, "from", "c", "c", "c", "c", "join", "joins", "element", "path", "nested") {
	case "join":
		q.from, aliases = "c JOIN t IN c.arr", []string{"t", "t", "t.x"}
	case "joins":
		q.from, aliases = "c JOIN t IN c.arr JOIN u IN c.arr", []string{"t", "u"}
	case "element":
		q.from, aliases = "c JOIN (SELECT VALUE e FROM e IN c.arr WHERE e != null) t", []string{"t"}
	case "path":
		q.from, aliases = "c JOIN t IN c.o", []string{"t"}
	case "nested":
		q.from = pick(t, "inner", "(SELECT DISTINCT c.a, c.n FROM c) c", "(SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) c", "(SELECT c.a, c.n FROM c WHERE c.a > 0) c")
	}
	if chance(t, "where", 75) {
		q.where = anyFilter(t, aliases, 2)
	}
	q.choose(t, aliases)
	if chance(t, "sliced", 30) {
		q.sliced, q.top = true, rapid.Bool().Draw(t, "top")
		q.limit = rapid.IntRange(0, 12).Draw(t, "limit")
		if !q.top {
			q.offset = rapid.IntRange(0, 8).Draw(t, "offset")
		}
	}
	return q
}

// choose draws what to select, and in which order.
func (q *randomQuery) choose(t *rapid.T, aliases []string) {
	all := append(aliases, "c.a", "c.b", "c.full", "c.o", "c.arr[0]", "c.n")
	switch pick(t, "shape", "rows", "rows", "rows", "count", "aggregates", "groups") {
	case "count":
		q.selected = pick(t, "count", "VALUE COUNT(1)", "COUNT(1) AS n", `VALUE [{"item": COUNT(1)}]`, "VALUE COUNT(c.a)", "VALUE COUNT(undefined)", "COUNT(1), COUNT(null)")
		return
	case "aggregates":
		q.selected = pick(t, "aggregate", "SUM(c.n), AVG(c.n), MIN(c.a), MAX(c.full)", "VALUE MIN(c.a)", "VALUE {s: SUM(c.n), m: MAX(c.n)}", "VALUE COUNTIF(c.n > 3)")
		return
	case "groups":
		key := pick(t, "key", all...)
		q.selected, q.groupBy = key+" AS k, COUNT(1) AS n, MIN(c.full) AS m, SUM(c.n) AS s", " GROUP BY "+key
		if chance(t, "value", 30) {
			q.selected = "VALUE COUNT(1)"
		}
		q.distinct = chance(t, "distinct", 30)
		return
	}
	q.selected = pick(t, "select", "VALUE c", "c.id", "c.id, c.a", "VALUE c.a", "VALUE c.full", "c.a, c.b AS second", "VALUE [c.id, c.full]")
	if len(aliases) > 0 && rapid.Bool().Draw(t, "alias") {
		q.selected = pick(t, "select", "VALUE t", "c.id, t", "t AS x")
	}
	q.distinct = chance(t, "distinct", 20)
	if strings.HasPrefix(q.from, "(") || !chance(t, "ordered", 45) {
		return
	}
	q.ordered, q.descending = true, rapid.Bool().Draw(t, "descending")
	q.orderBy = " ORDER BY " + pick(t, "order", "c.a", "c.full", "c.full", "c.full", "c.o.x", "c.n", "c.id", "c.missing", "c.arr[0]", "c._ts")
	if q.descending {
		q.orderBy += " DESC"
	}
}
