// SPDX-License-Identifier: MIT

package engine

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/sql"
)

// A page that is full has no continuation if nothing was ever written to the
// partitions that are left; one that was written to is looked at.
func TestFullPageBeforeEmptyPartitions(t *testing.T) {
	w := newWorld(t)
	keys := spread(w.container("c", "null", 4))
	page := func(continuation string) QueryPage {
		p, err := w.e.QueryItems(t.Context(), ItemQuery{
			Target: Target{Database: "d", Container: "c"}, Query: Query{Text: "SELECT VALUE c.id FROM c", Params: map[string]sql.Value{}},
			CrossPartition: true, MaxItems: 1, Continuation: continuation,
		})
		w.must(err)
		return p
	}
	w.put("c", keys[1], "one", "")
	if p := page(""); p.Count != 1 || p.Continuation != "" {
		t.Errorf("%d rows with the continuation %q, want 1 and none", p.Count, p.Continuation)
	}
	w.put("c", keys[3], "three", "")
	p := page("")
	if p.Count != 1 || p.Continuation == "" {
		t.Fatalf("%d rows with the continuation %q, want 1 and one", p.Count, p.Continuation)
	}
	if p = page(p.Continuation); string(p.Rows) != `"three"` || p.Continuation != "" {
		t.Errorf("then %s with the continuation %q", p.Rows, p.Continuation)
	}
}
