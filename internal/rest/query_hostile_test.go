// SPDX-License-Identifier: MIT

package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// maxHostileBytes bounds what one hostile query may allocate, in total.
const maxHostileBytes = 256 << 20

// TestHostileQueries: every query is answered, or refused with a reason, in bounded
// memory, and the server goes on.
func TestHostileQueries(t *testing.T) {
	h := newContainer(t)
	numbers := strings.TrimSuffix(strings.Repeat("7,", 1000), ",")
	call(t, h, "POST", docsPath, fmt.Sprintf(`{"id":"1","pk":"p","s":%q,"arr":[%s]}`, strings.Repeat("a", 100_000), numbers), pk("p"), 201)
	around := func(open, core, end string, n int) string {
		return strings.Repeat(open, n) + core + strings.Repeat(end, n)
	}
	list := func(n int, format, separator string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, separator)
	}
	const deep = 20_000
	const refused, served = http.StatusBadRequest, http.StatusOK
	for _, c := range []struct {
		name, query string
		status      int
		text        string
	}{
		{"parentheses", "SELECT VALUE " + around("(", "1", ")", deep), refused, "nested too deeply"},
		{"arrays", "SELECT VALUE " + around("[", "", "]", deep), refused, "nested too deeply"},
		{"objects", "SELECT VALUE " + around("{a:", "1", "}", deep), refused, "nested too deeply"},
		{"negations", "SELECT VALUE " + around("NOT ", "true", "", deep), refused, "nested too deeply"},
		{"sums", "SELECT VALUE " + around("1+", "1", "", deep), refused, "nested too deeply"},
		{"alternatives", "SELECT VALUE c.id FROM c WHERE " + list(deep, "c.n = %d", " OR "), refused, "nested too deeply"},
		{"paths", "SELECT VALUE c" + around(".a", "", "", deep) + " FROM c", refused, "nested too deeply"},
		{"subqueries", "SELECT VALUE " + around("(SELECT VALUE ", "1", ")", 2000), refused, "too many nested subqueries"},
		{"a long list", "SELECT VALUE c.id FROM c WHERE c.id IN (" + list(deep, "'%d'", ",") + ")", served, `"1"`},
		{"a cross product", "SELECT VALUE COUNT(1) FROM c " + list(8, "JOIN j%d IN c.arr", " "), refused, "rows of one item"},
		{"a cross product in an array", "SELECT VALUE ARRAY(SELECT VALUE 1 FROM a IN c.arr JOIN b IN c.arr JOIN d IN c.arr) FROM c", refused, ""},
		{"a string of strings", "SELECT VALUE REPLACE(c.s, 'a', c.s) FROM c", refused, "more than 4 MB"},
		{"a long string", "SELECT VALUE CONCAT(" + list(1000, "c.s/*%d*/", ",") + ") FROM c", refused, "more than 4 MB"},
		{"a wide row", "SELECT " + list(1000, "c.s AS s%d", ",") + " FROM c", refused, "more than 4 MB"},
		{"a wide object", "SELECT VALUE {" + list(1000, "s%d:c.s", ",") + "} FROM c", refused, "more than 4 MB"},
		{"a wide array", "SELECT VALUE [" + list(1000, "c.s/*%d*/", ",") + "] FROM c", refused, "more than 4 MB"},
		{"a pattern that backtracks", "SELECT VALUE RegexMatch(c.s, '(a+)+b') FROM c", served, "false"},
		{"a pattern that grows", "SELECT VALUE RegexMatch(c.s, '((a{1,30}){1,30}){1,30}') FROM c", refused, "regular expression"},
		{"a LIKE that backtracks", "SELECT VALUE c.s LIKE '" + around("%a", "%b", "", 2000) + "' FROM c", served, "false"},
	} {
		body, err := json.Marshal(map[string]string{"query": c.query})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := call(t, h, "POST", docsPath, string(body), asQuery(nil), c.status)
		runtime.ReadMemStats(&after)
		if !strings.Contains(string(a.body), c.text) {
			t.Errorf("%s: answered with %.300s, want %s", c.name, a.body, c.text)
		}
		if spent := after.TotalAlloc - before.TotalAlloc; spent > maxHostileBytes {
			t.Errorf("%s: allocated %d MB, want at most %d", c.name, spent>>20, maxHostileBytes>>20)
		}
	}
}
