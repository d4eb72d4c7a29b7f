// SPDX-License-Identifier: MIT

package clientplan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// FuzzPlan checks that nothing makes the planner panic, and that clients can send
// back what it has rewritten.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		``, `SELECT *`, `SELECT VALUE -1.5e3 FROM c`, `SELECT DISTINCT TOP 5 c.a, c["b"] AS "x y" FROM root c`,
		`SELECT * FROM x IN c.a[0].b JOIN (SELECT VALUE 1) y WHERE NOT x.a BETWEEN 1 AND 2`,
		`SELECT COUNT(1), AVG(c.x) m FROM c GROUP BY c.y OFFSET 1 LIMIT 2`,
		`SELECT VALUE MIN(c.x) FROM c WHERE c.k IN (1, 'a', null)`,
		`SELECT c.x, COUNT(1) FROM c WHERE (LET y = c.k + 1 IN y > 2) GROUP BY c.x ORDER BY c.x DESC`,
		`SELECT VALUE {a: [1, {}], 'b': @p ?? -0x1F} FROM c ORDER BY c.a DESC, c.b`,
		`SELECT (c.a LIKE '%\u00e9' ESCAPE '!') ? udf.f(1) : EXISTS(SELECT 1) FROM c -- end`,
		`SELECT TOP 3 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a', ['b']), VectorDistance(c.v, [1]), [1, -2])`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c) s`,
		`SELECT VALUE (-5).x[0]["y"] /* NaN */ || Infinity`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := syntax.Parse(text); err == nil {
			checkRewritten(t, q)
		}
	})
}

// checkRewritten compiles what a plan has clients send.
func checkRewritten(t *testing.T, q *syntax.Query) {
	o := sql.CompileOptions{Params: map[string]datum.Value{"@p": datum.Int(1)}}
	program, err := sql.Compile(q, o)
	if err != nil {
		return
	}
	plan, err := New(program, Options{Features: allFeatures})
	if err != nil {
		return
	}
	for _, text := range plan.rewritten() {
		text = fillPlaceholders(text)
		if text == "" || len(text) > syntax.MaxTextBytes {
			continue
		}
		again, err := syntax.Parse(text)
		if err == nil {
			_, err = sql.Compile(again, o)
		}
		if err != nil {
			t.Fatalf("%q is rewritten as %q: %v", q, text, err)
		}
	}
}

// rewritten returns all queries of a plan.
func (p *Plan) rewritten() []string {
	if p.Query != nil {
		return []string{p.Query.Rewritten}
	}
	texts := []string{p.Hybrid.Statistics}
	for _, c := range p.Hybrid.Components {
		texts = append(texts, c.Rewritten)
	}
	return texts
}

// fillPlaceholders does what a client does at the beginning of a query.
func fillPlaceholders(text string) string {
	for i := range 5 {
		at := fmt.Sprintf("%d}", i)
		text = strings.NewReplacer(
			strings.Trim(resumeFilter, "()"), "true", totalItemsPlaceholder, "10",
			totalWordsPlaceholder+at, "100", hitCountsPlaceholder+at, "[1]").Replace(text)
	}
	return text
}
