// SPDX-License-Identifier: MIT

package engine

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/sql"
)

// A page that is full has a continuation, even if it holds the last row: the service
// does not look ahead, and tests of the Go SDK count the empty page that follows.
func TestContinuationOfAFullPage(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "null", 4))
	page := func(most int, continuation string) QueryPage {
		p, err := w.e.QueryItems(t.Context(), ItemQuery{
			Target: Target{Database: "d", Container: "c"}, Query: Query{Text: "SELECT VALUE c.id FROM c", Params: map[string]sql.Value{}},
			CrossPartition: true, MaxItems: most, Continuation: continuation,
		})
		w.must(err)
		return p
	}
	w.put("c", keys[1], "one", "")
	w.put("c", keys[3], "three", "")
	p := page(2, "")
	if string(p.Rows) != `"one","three"` || p.Continuation == "" {
		t.Fatalf("%s with the continuation %q, want both and one", p.Rows, p.Continuation)
	}
	if p = page(2, p.Continuation); p.Count != 0 || p.Continuation != "" {
		t.Errorf("then %d rows with the continuation %q, want none", p.Count, p.Continuation)
	}
	if p = page(3, ""); p.Count != 2 || p.Continuation != "" {
		t.Errorf("%d rows with the continuation %q on a page with room for 3", p.Count, p.Continuation)
	}
}
