// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"strings"
)

// specialIndexes are members of a policy: indexes of all special kinds.
const specialIndexes = `"fullTextIndexes":[{"path":"/text"},{"path":"/o/x"}]`

// Words of texts: some are the same but for their ending, some are no words, and one
// is longer than what an index keeps of it.
var textWords = []string{
	"red", "red", "green", "blue", "bicycle", "bicycles", "riding", "ride", "the", "of", "mountain", "東京", "x2", "1,977", "it's",
	x(300), x(299) + "y",
}

func anyText(t *random) string {
	list := make([]string, uniform(t.T, "words", 12))
	for i := range list {
		list[i] = pick(t.T, "word", textWords...)
	}
	return strings.Join(list, pick(t.T, "between", " ", " ", ", ", ". "))
}

// specialMembers draws what the special indexes are about.
func specialMembers(t *random) []string {
	var members []string
	switch pick(t.T, "text", "text", "text", "text", "none", "other") {
	case "text":
		members = append(members, fmt.Sprintf(`"text":%q`, anyText(t)))
	case "other":
		members = append(members, `"text":`+anyValue(t))
	}
	return members
}

// anyTerm draws a term: a word, several that follow each other, or one that may be
// misspelled.
func anyTerm(t *random) string {
	switch pick(t.T, "term", "word", "word", "word", "word", "phrase", "phrase", "fuzzy", "none") {
	case "phrase":
		return fmt.Sprintf("%q", pick(t.T, "word", textWords...)+" "+pick(t.T, "word", textWords...))
	case "fuzzy":
		return fmt.Sprintf(`{"term": %q, "distance": %d}`, pick(t.T, "word", textWords...), uniform(t.T, "edits", 3))
	case "none":
		return pick(t.T, "no term", `""`, `"the"`, `"nowhere"`)
	}
	return fmt.Sprintf("%q", pick(t.T, "word", textWords...))
}

func anyTerms(t *random) string {
	list := make([]string, 1+uniform(t.T, "terms", 3))
	for i := range list {
		list[i] = anyTerm(t)
	}
	return strings.Join(list, ", ")
}

// textPath draws a path of texts, which may have an index or not.
func textPath(t *random) string {
	return pick(t.T, "path", "c.text", "c.text", "c.text", "c.o.x", "c.b")
}

func textFilter(t *random) string {
	if chance(t.T, "one", 40) {
		return "FullTextContains(" + textPath(t) + ", " + anyTerm(t) + ")"
	}
	return pick(t.T, "function", "FullTextContainsAll", "FullTextContainsAny") + "(" + textPath(t) + ", " + anyTerms(t) + ")"
}

func textScore(t *random) string { return "FullTextScore(" + textPath(t) + ", " + anyTerms(t) + ")" }

// specialQuery draws a query that a special index can answer.
func specialQuery(t *random) *randomQuery {
	q := &randomQuery{from: "c", limit: -1, selected: pick(t.T, "select", "VALUE c", "c.id", "VALUE c.full", "VALUE c.a", "c.id, c.text", "VALUE COUNT(1)")}
	if chance(t.T, "where", 60) {
		q.where = textFilter(t)
		if chance(t.T, "more", 40) {
			q.where += pick(t.T, "and", " AND ", " AND ", " OR ") + anyComparison(t, pick(t.T, "path", "c.full", "c.n", "c.a"))
		}
	}
	if q.selected == "VALUE COUNT(1)" {
		if chance(t.T, "statistics", 50) {
			q.where = ""
			q.selected = fmt.Sprintf("COUNT(1) AS items, [{words: SUM(_FullTextWordCount(%s)), hits: [COUNTIF(FullTextContains(%s, %s)), COUNTIF(FullTextContains(%s, %s))]}] AS texts",
				textPath(t), textPath(t), anyTerm(t), textPath(t), anyTerm(t))
		}
		return q
	}
	q.distinct = chance(t.T, "distinct", 15)
	switch pick(t.T, "order", "none", "path", "rank", "rank", "fused", "score", "score") {
	case "path":
		q.orderedBy(t, pick(t.T, "path", "c.full", "c.n"))
	case "rank":
		q.ordered, q.orderBy = true, " ORDER BY RANK "+textScore(t)
	case "fused":
		q.ordered, q.orderBy = true, " ORDER BY RANK RRF("+textScore(t)+", "+textScore(t)+pick(t.T, "weights", ")", ", [1, 2])")
	case "score":
		q.orderedBy(t, fmt.Sprintf("_FullTextScore(%s, [%s], 40, 200, [3, 5, 7])", textPath(t), anyTerms(t)))
	}
	q.slice(t)
	return q
}
