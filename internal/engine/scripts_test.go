// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

func udf(name string) catalog.Address { return scriptAt(catalog.UDFs, name) }

func udfBody(name, text string) []byte { return fmt.Appendf(nil, `{"id":%q,"body":%q}`, name, text) }

func (w *world) udf(name, text string) {
	w.t.Helper()
	_, err := w.e.CreateScript(w.t.Context(), udf(""), udfBody(name, text))
	w.must(err)
}

func (w *world) query(ctx context.Context, text string) (Answer, error) {
	return w.e.QueryItems(ctx, &Request{
		Target: Target{Database: "d", Container: "c"}, Query: Query{Text: text, Params: map[string]datum.Value{}}, CrossPartition: true,
	})
}

// Queries run while the function that they call is replaced: each query calls one version
// for all its items.
func TestUDFsWhileTheyAreReplaced(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	for i := range 20 {
		_, err := w.write(store.Create, "c", "k", fmt.Sprint(i), "")
		w.must(err)
	}
	w.udf("version", "function() { return 0 }")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				page, err := w.query(t.Context(), "SELECT VALUE udf.version() FROM c")
				if err != nil {
					t.Error(err)
					return
				}
				rows := strings.Split(string(page.Rows), ",")
				if len(rows) != 20 || strings.Count(string(page.Rows), rows[0]) < 20 {
					t.Errorf("one query called several versions: %s", page.Rows)
				}
			}
		})
	}
	for i := range 30 {
		_, err := w.e.ReplaceScript(t.Context(), udf("version"), udfBody("version", fmt.Sprintf("function() { return 'v%d' }", i%10)), "")
		w.must(err)
	}
	all.Wait()
}

func TestUDFRefusals(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	_, err := w.e.CreateScript(t.Context(), catalog.Address{Kind: catalog.UDFs, Database: "d", Container: "none"}, udfBody("f", "x => x"))
	if !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("create in no container: %v", err)
	}
	var bad *CompileError
	if _, err := w.e.CreateScript(t.Context(), udf(""), udfBody("f", "function(")); !errors.As(err, &bad) || !strings.HasPrefix(bad.Message, "Encountered exception while compiling Javascript.") {
		t.Errorf("create of what does not compile: %v", err)
	}
	if _, err := w.e.catalog.Find(udf("f")); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("it was kept: %v", err)
	}
	w.udf("f", "x => x")
	if _, err := w.e.ReplaceScript(t.Context(), udf("f"), udfBody("f", "function("), ""); !errors.As(err, &bad) {
		t.Errorf("replace by what does not compile: %v", err)
	}
	w.e.space.Store(int32(spaceLow))
	defer w.e.space.Store(int32(spaceEnough))
	if _, err := w.e.CreateScript(t.Context(), udf(""), udfBody("g", "x => x")); !errors.Is(err, ErrDiskFull) {
		t.Errorf("create on a full disk: %v", err)
	}
	w.must(w.e.Delete(t.Context(), udf("f"), "")) // makes room
}

// A refusal for too many functions is no failed commit: the engine goes on.
func TestTooManyUDFsIsNoFailure(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	var err error
	for i := 0; err == nil; i++ {
		_, err = w.e.CreateScript(t.Context(), udf(""), udfBody(fmt.Sprint("f", i), "x => x"))
	}
	if !errors.Is(err, catalog.ErrTooManyScripts) {
		t.Fatal(err)
	}
	w.must(w.e.Delete(t.Context(), udf("f0"), ""))
	w.udf("again", "x => x")
}

// A client that goes away ends the function that its query runs.
func TestUDFOfACancelledQuery(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.udf("loop", "function() { for (;;); }")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.query(ctx, "SELECT VALUE udf.loop()"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Computed properties cannot call functions, and plans do not need them.
func TestUDFsAndPlans(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 4)
	if _, plan, err := w.e.QueryPlan(t.Context(), Target{Database: "d", Container: "c"}, Query{Text: "SELECT VALUE udf.none(c.id) FROM c ORDER BY c.id"}, ^clientplan.FeatureSet(0)); err != nil || !strings.Contains(string(plan), "udf.none") {
		t.Errorf("%s, %v", plan, err)
	}
	var refused *InvalidError
	if _, err := w.query(t.Context(), "SELECT VALUE udf.none(1)"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "'udf.none'") {
		t.Error(err)
	}
}

// BenchmarkUDF measures what a function call adds to a query, for each item.
func BenchmarkUDF(b *testing.B) {
	const items = 1000
	w := newWorld(b)
	w.container("c", "null", 1)
	for i := range items {
		w.put("c", "k", fmt.Sprint(i), "")
	}
	w.udf("same", "x => x")
	for name, text := range map[string]string{
		"without": "SELECT * FROM c WHERE c.id || '' = 'x'",
		"scalar":  "SELECT * FROM c WHERE udf.same(c.id) = 'x'",
		"object":  "SELECT * FROM c WHERE udf.same(c) = 'x'",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := w.query(b.Context(), text); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*items), "us/item")
		})
	}
}
