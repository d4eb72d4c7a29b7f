// SPDX-License-Identifier: MIT

package sql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// Whatever an expression does with one item, it ends soon after it is interrupted. Each of
// these would run for hours otherwise.
func TestExpressionsEndWhenTold(t *testing.T) {
	long := strings.Repeat("a", 1<<19)
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + "]"
	item := fmt.Sprintf(`{"s":%q,"x":%s,"many":[%s],"words":%q}`, long, numbers, manyOf(100_000, "%d"), strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaab ", 10_000))
	list := func(of string, times int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(of+",", times), ",") + "]"
	}
	const large = ` FROM c JOIN s IN (SELECT VALUE c.s)`
	for name, text := range map[string]string{
		"joins":                `SELECT VALUE 1 FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x WHERE a + b + d = 0`,
		"a subquery":           `SELECT VALUE ARRAY(SELECT VALUE a FROM a IN c.x JOIN b IN c.x JOIN d IN c.x WHERE a = 0) FROM c`,
		"a regular expression": `SELECT VALUE REGEXMATCH(c.s, "(?:a?){1000}(?:a?){1000}(?:a?){1000}b") FROM c`,
		"an extract":           `SELECT VALUE REGEXEXTRACT(c.s, "(?:a?){1000}(?:a?){1000}(?:a?){1000}b") FROM c`,
		"an extract of all":    `SELECT VALUE REGEXEXTRACTALL(c.s, "a.*b|a") FROM c`,
		"LIKE":                 `SELECT VALUE ` + list(`s LIKE "%a`+strings.Repeat("_", 60)+`b%"`, 2000) + large,
		"strings that grow":    `SELECT VALUE ` + list(`LENGTH(REPLACE(s, "aaaa", "bbbbb"))`, 10_000) + large,
		"strings put together": `SELECT VALUE ` + list(`s || "b" = "c"`, 30_000) + large,
		"sets":                 `SELECT VALUE ` + list(`ARRAY_LENGTH(SETUNION(c.many, c.many))`, 10_000) + ` FROM c`,
		"words that are alike": `SELECT VALUE ` + list(`FULLTEXTCONTAINS(c.words, {"term": "aaaaaaaaaaaaaaaaaaaaaaac", "distance": 2})`, 4000) + ` FROM c`,
		"a parameter":          `SELECT VALUE ` + list(`LENGTH(UPPER(CONCAT(@long, c.y ?? "")))`, 10_000) + ` FROM c`,
	} {
		asked := 0
		cx := &function.Context{Interrupted: func() error {
			if asked++; asked > 2 {
				return errTest
			}
			return nil
		}}
		p := mustCompile(t, text, map[string]datum.Value{"@long": datum.Str(long)})
		if _, err := Evaluate(p, [][]byte{[]byte(item)}, cx); !errors.Is(err, errTest) || asked != 3 {
			t.Errorf("%s: asked %d times and got %v, want the error of Interrupted", name, asked, err)
		}
	}
}

// A constant that takes long to work out ends the compilation when it is interrupted.
func TestCompilationEndsWhenTold(t *testing.T) {
	for _, text := range []string{
		`SELECT VALUE REGEXMATCH(@long, "(?:a?){1000}(?:a?){1000}(?:a?){1000}b")`,
		`SELECT VALUE [` + strings.TrimSuffix(strings.Repeat(`REGEXMATCH(c.a, "(?:a|b|c|d|e){1000}"),`, 10_000), ",") + `] FROM c`,
	} {
		q, err := syntax.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		_, err = Compile(q, CompileOptions{Params: map[string]datum.Value{"@long": datum.Str(strings.Repeat("a", 1<<20))}, Interrupted: func() error {
			if asked++; asked > 1 {
				return errTest
			}
			return nil
		}})
		if !errors.Is(err, errTest) {
			t.Errorf("%.50s: got %v, want the error of Interrupted", text, err)
		}
	}
}
