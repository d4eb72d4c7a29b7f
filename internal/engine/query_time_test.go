// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/query"
)

// hasty opens the world with a time that advances by step at every reading.
func (w *world) hasty(step time.Duration) {
	w.t.Helper()
	var looks atomic.Int64
	w.reopen(Options{elapsed: func() time.Duration { return time.Duration(looks.Add(1)) * step }})
}

// A list or a change feed may cover many partitions. A page that has taken long ends
// between two of them, and the next one continues.
func TestPagesEndBetweenPartitions(t *testing.T) {
	const partitions, items = 6, 3
	w := newWorld(t)
	keys := spread(w.container("c", "null", partitions))
	for i := range partitions * items {
		w.put("c", keys[i%partitions], fmt.Sprint(i), "")
	}
	target := Target{Database: "d", Container: "c"}
	pages := map[string]func(at string) (count int, next string, err error){
		"list": func(at string) (int, string, error) {
			p, err := w.e.ListItems(t.Context(), &Request{Target: target, Continuation: at})
			return p.Count, p.Continuation, err
		},
		"change feed": func(at string) (int, string, error) {
			p, err := w.e.ReadChangeFeed(t.Context(), &Request{Target: target, Continuation: at})
			if err == nil && !p.More {
				return p.Count, "", nil
			}
			return p.Count, p.Continuation, err
		},
	}
	for _, step := range []time.Duration{0, query.PageTime + 1} {
		w.hasty(step)
		for name, page := range pages {
			n, count := 0, 0
			for at := ""; n == 0 || at != "" && count < partitions*items; n++ {
				found, next, err := page(at)
				w.must(err)
				if count, at = count+found, next; n > 3*partitions {
					t.Fatalf("%s: does not come to an end", name)
				}
			}
			if count != partitions*items {
				t.Errorf("%s: got %d items, want %d", name, count, partitions*items)
			}
			if (n > 1) != (step > 0) {
				t.Errorf("%s: got %d pages, each step %v", name, n, step)
			}
		}
	}
}

// A query that takes too long is refused, over one item or many, and so is a request for
// its plan.
func TestQueriesHaveADeadline(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.put("c", "k", "wide", `"wide":[`+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+`]`)
	w.hasty(DefaultQueryTime / 2)
	target := Target{Database: "d", Container: "c", PartitionKey: `["k"]`}
	for _, text := range []string{
		"SELECT VALUE COUNT(1) FROM c JOIN a IN c.wide JOIN b IN c.wide JOIN d IN c.wide",
		"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE 1 FROM a IN c.wide JOIN b IN c.wide WHERE a > b)) FROM c",
		`SELECT VALUE REGEXMATCH(REPLICATE("a", 10000), "(?:a?){1000}(?:a?){1000}(?:a?){1000}(?:a?){1000}(?:a?){1000}(?:a?){1000}(?:a?){1000}b") FROM c`,
	} {
		if _, err := w.e.QueryItems(t.Context(), &Request{Target: target, Query: Query{Text: text}}); !errors.Is(err, query.ErrQueryTime) {
			t.Errorf("%s: got %v, want that it takes too long", text, err)
		}
	}
	text := "SELECT VALUE [" + strings.TrimSuffix(strings.Repeat(`REGEXMATCH(c.a, "a{1000}"),`, 10), ",") + "] FROM c"
	if _, _, err := w.e.QueryPlan(t.Context(), target, Query{Text: text}, 0); !errors.Is(err, query.ErrQueryTime) {
		t.Errorf("a plan: got %v, want that it takes too long", err)
	}
}
