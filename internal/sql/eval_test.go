// SPDX-License-Identifier: MIT

package sql

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

func TestLimitsOfExecution(t *testing.T) {
	long := `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", 2000), ",") + `]}`
	refuse(t, `SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a`, "", "more than 1048576 rows of one item", long)
	refuse(t, `SELECT VALUE ARRAY(SELECT VALUE 1 FROM x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x = 2) FROM c`, "", "rows of one item",
		`{"a":[`+strings.TrimSuffix(strings.Repeat("1,", 1<<20), ",")+`]}`)

	wide := fmt.Sprintf(`{"s":%q,"a":[%s]}`, strings.Repeat("x", 10000), strings.TrimSuffix(strings.Repeat("1,", 1000), ","))
	for _, query := range []string{
		`SELECT VALUE ARRAY(SELECT VALUE c.s FROM x IN c.a) FROM c`,
		`SELECT VALUE (SELECT VALUE MAKELIST(c.s) FROM x IN c.a) FROM c`,
		`SELECT VALUE MAKELIST(c.s) FROM c JOIN x IN c.a`,
		`SELECT VALUE [` + strings.Repeat("c.s,", 1000) + `1] FROM c`,
		`SELECT VALUE {` + manyOf(1000, "a%d:c.s") + `} FROM c`,
		`SELECT ` + manyOf(1000, "c.s AS a%d") + ` FROM c`,
	} {
		if rows, err := evalAll(query, wide); !errors.Is(err, function.ErrResultTooLarge) {
			t.Errorf("%s: %d rows, %v; want ErrResultTooLarge", query, len(rows), err)
		}
	}
}

// manyOf returns n texts with their numbers in them, with commas between.
func manyOf(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ",")
}

// A row that looks into a large item over and over is interrupted on the way.
func TestInterruptionWithinARow(t *testing.T) {
	p := mustCompile(t, `SELECT VALUE CONCAT(`+manyOf(10_000, "c.z%d")+`) FROM c`, nil)
	asked := 0
	cx := &function.Context{Interrupted: func() error {
		asked++
		return errTest
	}}
	item := `{"s":"` + strings.Repeat("x", 1<<20) + `"}`
	r := p.NewRunner(cx)
	err := r.Rows(datum.Raw([]byte(item)), func() bool {
		_, _ = r.Project()
		return true
	})
	if !errors.Is(err, errTest) || asked != 1 {
		t.Errorf("asked %d times: %v; want to be stopped at the first", asked, err)
	}
}

func TestInterruption(t *testing.T) {
	p := mustCompile(t, `SELECT VALUE x FROM c JOIN x IN c.a`, nil)
	asked := 0
	cx := &function.Context{Interrupted: func() error {
		if asked++; asked == 3 {
			return errTest
		}
		return nil
	}}
	item := []byte(`{"a":[` + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `]}`)
	rows, err := Evaluate(p, [][]byte{item}, cx)
	if !errors.Is(err, errTest) || rows != nil || asked != 3 {
		t.Errorf("%d rows, %v after %d questions", len(rows), err, asked)
	}
}

// errStopped ends an execution that a fuzzer has made too long.
var errStopped = errors.New("stopped")

// FuzzCompile runs whatever compiles. A query and its printed form must have the
// same result.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`SELECT * FROM c WHERE c.age > 20 AND c.city IN ("Graz", null) ORDER BY c.id DESC OFFSET 1 LIMIT 2`,
		`SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags WHERE t LIKE "a%"`,
		`SELECT c.city, COUNT(1) AS n, MAKESET(c.age) FROM c GROUP BY c.city`,
		`SELECT VALUE ARRAY(SELECT p.n, (SELECT VALUE COUNT(1) FROM c.tags) x FROM p IN c.pets) FROM c`,
		`SELECT VALUE x.a FROM (SELECT DISTINCT c.address AS a FROM c) x`,
		`SELECT VALUE c.age ?? -1 FROM c WHERE EXISTS(SELECT VALUE p FROM p IN c.pets WHERE p.w BETWEEN 1 AND 3)`,
		`SELECT TOP 2 c.pets[0].n, 1 / 0 FROM c`,
		`SELECT VALUE {"a": [1, undefined], "b": NOT true ? 1 << 2 : ~3}`,
		`SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.city, "graz"), FullTextScore(c.id, "bob"), [1, 2])`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := syntax.Parse(text)
		if err != nil {
			return
		}
		want, err := runFuzzed(q)
		again, parseErr := syntax.Parse(q.String())
		if parseErr != nil {
			t.Fatalf("%s is printed as %s: %v", text, q, parseErr)
		}
		got, againErr := runFuzzed(again)
		if (err == nil) != (againErr == nil) || !bytes.Equal(want, got) {
			t.Fatalf("%s\nhas the result %s, %v\nand printed as %s\n%s, %v", text, want, err, q, got, againErr)
		}
	})
}

func runFuzzed(q *syntax.Query) ([]byte, error) {
	p, err := Compile(q, CompileOptions{Params: map[string]datum.Value{"@p": datum.Int(1)}})
	if err != nil {
		return nil, err
	}
	steps := 0
	cx := &function.Context{Random: func() float64 { return 0.5 }, Interrupted: func() error {
		if steps++; steps > 50 {
			return errStopped
		}
		return nil
	}}
	rows, err := Evaluate(p, [][]byte{[]byte(ann), []byte(bob), []byte(cid), []byte(dora)}, cx)
	return bytes.Join(rows, []byte(" ")), err
}
