// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// The plans of queries, as files under testdata/plans. A file makes a container and
// fills it, and asks:
//
//	container         members of the definition; the partition opens anew
//	items             one on each line: partition key, id, members
//	many n= pk=       items with "i" and "half" that count, "same" and "word", "third" and "fifth"
//	policy            other members of the definition, before the index is rebuilt
//	rebuild           the index
//	explain [pk=]     queries, one on each line; the plan of each follows it
func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		var f *fixture
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "container" {
				f = newFixture(t, d.Input)
				return ""
			}
			f.t = t
			switch d.Cmd {
			case "items":
				for line := range strings.Lines(d.Input) {
					part := strings.SplitN(strings.TrimSpace(line), " ", 3)
					f.put(part[0], part[1], part[2])
				}
			case "many":
				var n int
				var pk string
				d.ScanArgs(t, "n", &n)
				d.ScanArgs(t, "pk", &pk)
				for i := range n {
					f.put(pk, fmt.Sprint(i), fmt.Sprintf(`"i":%d,"half":%d,"same":1,"word":"w%03d","tags":["t%d","all"],"third":%d,"fifth":%d`, i, i/2, i, i%7, i%3, i%5))
				}
			case "policy":
				f.reconfigure(d.Input)
			case "rebuild":
				f.reindex(100)
			case "explain":
				return f.explain(d)
			default:
				d.Fatalf(t, "there is no command %s", d.Cmd)
			}
			return ""
		})
	})
}

func (f *fixture) explain(d *datadriven.TestData) string {
	var b strings.Builder
	for line := range strings.Lines(d.Input) {
		text := strings.TrimSpace(line)
		q := f.request("SELECT 1")
		var computed []sql.Computed
		for _, p := range f.container.Computed {
			parsed, err := syntax.Parse(p.Query)
			f.must(err)
			computed = append(computed, sql.Computed{Name: p.Name, Query: parsed})
		}
		q.Program = compileWith(f.t, text, sql.CompileOptions{Computed: computed})
		if len(d.CmdArgs) > 0 {
			q.Scope.Logical = f.logical(d.CmdArgs[0].Vals[0])
		}
		plan, err := explain(q)
		f.must(err)
		fmt.Fprintf(&b, "%s\n    %s\n", text, plan)
		if page := f.page(q); page.Plan() != plan {
			fmt.Fprintf(&b, "    but it ran as: %s\n", page.Plan())
		}
	}
	return b.String()
}
