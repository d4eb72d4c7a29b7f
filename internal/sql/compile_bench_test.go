// SPDX-License-Identifier: MIT

package sql

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// BenchmarkCompile measures what a query costs before its first item.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"equality", "SELECT * FROM c WHERE c.a = @a"},
		{"projection", "SELECT c.id, c.n FROM c WHERE c.pk = @a AND c.n >= @b"},
		{"order", "SELECT VALUE c.x FROM c JOIN t IN c.tags WHERE t.name = @a OR NOT c.done ORDER BY c.x OFFSET 0 LIMIT 10"},
	} {
		b.Run(c.name, func(b *testing.B) {
			q, err := syntax.Parse(c.text)
			if err != nil {
				b.Fatal(err)
			}
			params := map[string]datum.Value{"@a": datum.Str("x"), "@b": datum.Int(0)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compile(q, CompileOptions{Params: params}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBind measures what it costs to use a program again, with other values.
func BenchmarkBind(b *testing.B) {
	params := map[string]datum.Value{"@a": datum.Str("x"), "@b": datum.Int(0)}
	template := mustCompile(b, "SELECT c.id, c.n FROM c WHERE c.pk = @a AND c.n >= @b", params).Template()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := template.Bind(params); !ok {
			b.Fatal("not bound")
		}
	}
}
