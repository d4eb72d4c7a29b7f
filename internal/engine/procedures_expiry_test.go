// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store"
)

// Scenario 44, for scripts: an item that is live when a script begins is live for all its
// reads and queries, however the clock moves. The life of items that it writes begins
// with the commit.
func TestScenario44AScriptIsOfOneMoment(t *testing.T) {
	w := newWorld(t)
	w.container("c", "10", 1)
	w.put("c", "k", "a", "")
	w.advance(9 * time.Second)
	w.procedure("look", `function() {
		const began = Date.now(), seen = [];
		const see = (err, v) => {
			seen.push(err ? err.number : Array.isArray(v) ? v[0] : v.id);
			__.response.setBody([seen, Date.now() < began + 10e3]);
		};
		const pass = () => __.queryDocuments(__.getSelfLink(), "time passes", () => {});
		const a = __.getAltLink() + "/docs/a", count = "SELECT VALUE COUNT(1) FROM c";
		__.readDocument(a, see);
		pass();
		__.queryDocuments(__.getSelfLink(), count, see);
		__.readDocument(a, see);
		pass();
		__.queryDocuments(__.getSelfLink(), count, see);
		__.createDocument(__.getSelfLink(), {id: "b", pk: "k"}, see);
		pass();
		__.queryDocuments(__.getSelfLink(), count, see);
	}`)
	passed := 0
	w.e.options.Explain = func(error) (int, string) {
		passed++
		w.advance(10 * time.Second)
		return 400, noQuery
	}
	res, err := w.e.Execute(t.Context(), execution("look", ""))
	w.must(err)
	if passed != 3 {
		t.Errorf("time has passed %d times, want 3", passed)
	}
	if got, want := string(res.Body), `[["a",1,"a",1,"b",2],true]`; got != want {
		t.Errorf("the script has seen %s, want %s", got, want)
	}
	if _, err := w.read("c", "k", "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the script: got %v, want ErrNotFound", err)
	}
	w.advance(10*time.Second - time.Millisecond)
	if _, err := w.read("c", "k", "b"); err != nil {
		t.Errorf("what it wrote, before its deadline: %v", err)
	}
	w.advance(time.Millisecond)
	if _, err := w.read("c", "k", "b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what it wrote, at its deadline: got %v, want ErrNotFound", err)
	}
}
