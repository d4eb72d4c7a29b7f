// SPDX-License-Identifier: MIT

package sql

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// templateValues are of all kinds that a parameter can have, in several spellings.
var templateValues = []string{
	`null`, `true`, `false`, `0`, `-1.5`, `1e3`, `12345678901234567890`, `"x"`, `""`, `"a\"b"`, `"\u00e9"`, `[1]`, `[]`, `{"k":1}`,
}

// templateItems have each of the values at one path or another.
func templateItems() [][]byte {
	var items [][]byte
	for i, v := range templateValues {
		items = append(items, fmt.Appendf(nil, `{"id":"%d","a":%s,"b":%d,"list":[%s,2]}`, i, v, i, v))
	}
	return append(items, []byte(`{"id":"none"}`))
}

// Programs that are bound must be what the query is with literals in place of the
// parameters: in what they say to an index, and in their rows.
func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		text   string
		serves bool // other values of the same kinds
	}{
		{`SELECT VALUE c.id FROM c WHERE c.a = @a`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a != @a AND c.b >= @b`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a < @a OR c.a > @b`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a = @a OR c.a = @b OR c.a = 3`, true},
		{`SELECT VALUE c.id FROM c WHERE NOT (c.a <= @a) AND c.id != "none"`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a BETWEEN @a AND @b`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a NOT BETWEEN @a AND 7`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a IN (@a, 1, @b)`, true},
		{`SELECT VALUE c.id FROM c WHERE c.a NOT IN (@a, c.b, @b)`, true},
		{`SELECT c.id, c.a = @a AS same FROM c ORDER BY c.id`, true},
		{`SELECT VALUE c.id FROM c WHERE EXISTS (SELECT VALUE x FROM x IN c.list WHERE x = @a)`, true},
		{`SELECT c.a = @a AS same, COUNT(1) AS n FROM c GROUP BY c.a = @a`, true},
		{`SELECT VALUE c.id FROM c JOIN x IN c.list WHERE x = @a AND c.a = @a`, true},
		{`SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.a, {"type":"Point","coordinates":[1,2]}) < @a`, true},
		{`SELECT VALUE c.id FROM c WHERE c.b > 3`, true},
		{`SELECT VALUE c.id FROM c WHERE STARTSWITH(c.a, @a) AND c.a = @a`, true},
		{`SELECT VALUE c.id FROM c WHERE CONTAINS(c.a, @a) OR ENDSWITH(c.id, @b)`, true},
		{`SELECT VALUE c.id FROM c WHERE NOT StringEquals(c.a, @a)`, true},
		{`SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.list, @a) AND NOT ARRAY_CONTAINS(c.list, @b)`, true},
		{`SELECT TOP 3 VALUE c.id FROM c WHERE c.a = @a OFFSET 1 LIMIT 7`, true},

		{`SELECT VALUE c.id FROM c WHERE @a = c.a`, false},
		{`SELECT VALUE c.id FROM c WHERE @a = @b AND c.b > 3`, false},
		{`SELECT VALUE c.id FROM c WHERE 1 = @a OR c.a = @a`, false},
		{`SELECT VALUE c.id FROM c WHERE c.b + 1 > @b AND c.a = (@a ?? 1)`, false},
		{`SELECT VALUE c.id FROM c WHERE c[@a] = @b`, false},
		{`SELECT VALUE c.id FROM c WHERE STARTSWITH(c.a, @a, true) AND c.a = @a`, false},
		{`SELECT VALUE c.id FROM c WHERE STARTSWITH(@a, c.a)`, false},
		{`SELECT VALUE c.id FROM c WHERE STARTSWITH(@a, @b) OR c.a = 1`, false},
		{`SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@a, c.b)`, false},
		{`SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.list, @a, true)`, false},
		{`SELECT VALUE c.id FROM c WHERE c.a LIKE @a`, false},
		{`SELECT VALUE c.id FROM c WHERE (LET x = @a IN c.a = x)`, false},
		{`SELECT VALUE c.id FROM c WHERE c.a IN (1, 2, 3, 4, 5, 6, 7, 8, @a)`, false},
		{`SELECT VALUE IS_NULL(@a) FROM c WHERE c.a = @a`, false},
		{`SELECT VALUE c.id FROM (SELECT DISTINCT VALUE d FROM d) c WHERE c.a = @a`, false},
	} {
		t.Run(c.text, func(t *testing.T) { testTemplate(t, c.text, c.serves) })
	}
}

func testTemplate(t *testing.T, text string, serves bool) {
	q, err := syntax.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	bound := 0
	for i, first := range templateValues {
		p, err := Compile(q, CompileOptions{Params: templateParams(first, templateValues[0])})
		if err != nil {
			t.Fatal(err)
		}
		template := p.Template()
		if (template != nil) != serves {
			t.Fatalf("with %s: template %v, want one: %v", first, template, serves)
		}
		for k, a := range templateValues {
			b := templateValues[(i+k)%len(templateValues)]
			literal := mustCompile(t, strings.NewReplacer("@a", a, "@b", b).Replace(text), nil)
			params := templateParams(a, b)
			got, ok := (*Program)(nil), false
			if template != nil {
				got, ok = template.Bind(params)
			}
			if ok {
				bound++
			} else if got, err = Compile(q, CompileOptions{Params: params}); err != nil {
				t.Fatal(err)
			}
			if got.Params()["@a"] != params["@a"] {
				t.Errorf("the program has the parameters %v, want %v", got.Params(), params)
			}
			sameProgram(t, got, literal)
		}
	}
	if serves != (bound > 0) {
		t.Errorf("%d programs were bound", bound)
	}
}

func templateParams(a, b string) map[string]datum.Value {
	return map[string]datum.Value{"@a": datum.Raw([]byte(a)), "@b": datum.Raw([]byte(b))}
}

// sameProgram compares conditions and rows.
func sameProgram(t *testing.T, got, want *Program) {
	t.Helper()
	if g, w := conditionDump(got.Condition()), conditionDump(want.Condition()); g != w {
		t.Errorf("%s: condition %s, want %s", want.Query(), g, w)
	}
	gotRows, err := Evaluate(got, templateItems(), &function.Context{})
	wantRows, wantErr := Evaluate(want, templateItems(), &function.Context{})
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !bytes.Equal(bytes.Join(gotRows, []byte(" ")), bytes.Join(wantRows, []byte(" "))) {
		t.Errorf("%s: got %s (%v), want %s (%v)", want.Query(), gotRows, err, wantRows, wantErr)
	}
}

func conditionDump(c *Condition) string {
	s := fmt.Sprint(c.Op, c.Path, c.Kind, c.Exact)
	for _, v := range c.Values {
		s += " " + string(v.AppendCanonical(nil))
	}
	for _, part := range c.Of {
		s += " (" + conditionDump(part) + ")"
	}
	return s
}

// A template demands parameters of the kinds that it was made with, all of them.
func TestTemplateRefuses(t *testing.T) {
	template := mustCompile(t, `SELECT * FROM c WHERE c.a = @a`, map[string]datum.Value{"@a": datum.Int(1)}).Template()
	for _, params := range []map[string]datum.Value{nil, {"@b": datum.Int(1)}, {"@a": datum.Str("1")}, {"@a": datum.Null()}, {"@a": datum.Undefined()}} {
		if p, ok := template.Bind(params); ok {
			t.Errorf("%v: bound to %v", params, p.Params())
		}
	}
	if _, ok := template.Bind(map[string]datum.Value{"@a": datum.Float(2.5), "@other": datum.Int(1)}); !ok {
		t.Error("another number was refused")
	}
}

// How many rows are wanted is said by each program's own parameters.
func TestTemplateCounts(t *testing.T) {
	q, err := syntax.Parse(`SELECT TOP @t VALUE c.id FROM c WHERE c.b >= @b OFFSET @o LIMIT @l`)
	if err != nil {
		t.Fatal(err)
	}
	params := func(top, limit, offset datum.Value) map[string]datum.Value {
		return map[string]datum.Value{"@t": top, "@l": limit, "@o": offset, "@b": datum.Int(0)}
	}
	p, err := Compile(q, CompileOptions{Params: params(datum.Int(3), datum.Int(2), datum.Int(1))})
	if err != nil {
		t.Fatal(err)
	}
	bound, ok := p.Template().Bind(params(datum.Int(4), datum.Int(5), datum.Int(6)))
	if want := (Slice{Offset: 6, Limit: 4}); !ok || bound.Slice() != want || p.Slice() != (Slice{1, 2}) {
		t.Errorf("bound %v to %v, want %v; before %v", ok, bound.Slice(), want, p.Slice())
	}
	for _, c := range []struct {
		params map[string]datum.Value
		code   string
	}{
		{params(datum.Str("4"), datum.Int(1), datum.Int(1)), "SC2060"},
		{params(datum.Int(1), datum.Int(-1), datum.Int(1)), "SC2061"},
		{params(datum.Int(1), datum.Int(1), datum.Float(1.5)), "SC2062"},
		{map[string]datum.Value{"@b": datum.Int(0), "@t": datum.Int(1), "@l": datum.Int(1)}, "SC2062"},
	} {
		if _, ok := p.Template().Bind(c.params); ok {
			t.Errorf("%v: bound", c.params)
		}
		var refused *syntax.Error
		if _, err := Compile(q, CompileOptions{Params: c.params}); !errors.As(err, &refused) || refused.Code != c.code {
			t.Errorf("%v: %v, want %s", c.params, err, c.code)
		}
	}
}

// Beyond a number of arguments, parameters are constants.
func TestManyParameters(t *testing.T) {
	params := map[string]datum.Value{}
	var parts []string
	for i := range maxArguments + 1 {
		name := fmt.Sprintf("@p%d", i)
		params[name] = datum.Int(int64(i))
		parts = append(parts, "c.a = "+name)
	}
	items := [][]byte{[]byte(`{"a":0}`), fmt.Appendf(nil, `{"a":%d}`, maxArguments), []byte(`{"a":-1}`)}
	for n, serves := range map[int]bool{maxArguments: true, maxArguments + 1: false} {
		p := mustCompile(t, "SELECT * FROM c WHERE "+strings.Join(parts[:n], " OR "), params)
		rows, err := Evaluate(p, items, &function.Context{})
		if want := 1 + n - maxArguments; err != nil || len(rows) != want || (p.Template() != nil) != serves {
			t.Errorf("%d parameters: %d rows (%v), want %d; template %v", n, len(rows), err, want, p.Template() != nil)
		}
		if got := len(p.Condition().Values); got != n {
			t.Errorf("%d parameters: the condition has %d values", n, got)
		}
	}
}

// One template serves many at once, each with values of their own.
func TestTemplateIsShared(t *testing.T) {
	template := mustCompile(t, `SELECT VALUE c.id FROM c WHERE c.b = @b AND c.id != @a`, map[string]datum.Value{"@a": datum.Str(""), "@b": datum.Int(0)}).Template()
	items := templateItems()
	var all sync.WaitGroup
	for i := range len(templateValues) {
		all.Go(func() {
			p, ok := template.Bind(map[string]datum.Value{"@a": datum.Str("none"), "@b": datum.Int(int64(i))})
			if !ok {
				t.Error("not bound")
				return
			}
			rows, err := Evaluate(p, items, &function.Context{})
			if want := fmt.Sprintf(`"%d"`, i); err != nil || len(rows) != 1 || string(rows[0]) != want {
				t.Errorf("got %s (%v), want %s", rows, err, want)
			}
		})
	}
	all.Wait()
}
