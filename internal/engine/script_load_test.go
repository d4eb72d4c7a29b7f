// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
)

// scriptRequests are the requests that run scripts. Each creates the item "new" or reads
// the item "old".
var scriptRequests = map[string]func(ctx context.Context, w *world) error{
	"procedure": func(ctx context.Context, w *world) error {
		_, err := w.e.Execute(ctx, execution("create", ""))
		return err
	},
	"write with a trigger": func(ctx context.Context, w *world) error {
		_, err := w.e.WriteItem(ctx, &Request{
			Target: item("c", "k", "new"), Op: store.Create, Body: body("k", "new", ""), PreTriggers: "nothing",
		})
		return err
	},
	"query with a function": func(ctx context.Context, w *world) error {
		page, err := w.query(ctx, "SELECT VALUE udf.same(c.id) FROM c WHERE c.id = 'old'")
		if err == nil && page.Count == 0 {
			return store.ErrNotFound
		}
		return err
	},
}

// scriptWorld has scripts, and few seats.
func scriptWorld(t *testing.T, o script.GateOptions) *world {
	w := newWorld(t)
	w.e.scripts = script.NewPool(script.PoolOptions{Gate: o, Time: scriptTime})
	w.container("c", "10", 1)
	w.udf("same", "x => x")
	w.trigger("nothing", "Pre", "function() {}")
	w.procedure("create", `function() { __.createDocument(__.getSelfLink(), {id: "new", pk: "k"}) }`)
	w.procedure("ask", `function() {
		__.queryDocuments(__.getSelfLink(), "SELECT VALUE udf.same(c.id) FROM c", (err, rows) => { if (err) throw err; __.response.setBody(rows.length) });
	}`)
	w.put("c", "k", "old", "")
	return w
}

// While all seats are taken, a request that needs one does nothing, and requests that
// need none are served.
func TestTooManyScripts(t *testing.T) {
	for name, request := range scriptRequests {
		t.Run(name, func(t *testing.T) {
			w := scriptWorld(t, script.GateOptions{Slots: 1})
			seat, err := w.e.scripts.Enter(t.Context())
			w.must(err)
			if err := request(t.Context(), w); !errors.Is(err, ErrScriptsBusy) {
				t.Errorf("with all slots taken: %v", err)
			}
			if _, err := w.read("c", "k", "new"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the item of a script that did not run: %v", err)
			}
			w.put("c", "k", "plain", "")
			if _, err := w.query(t.Context(), "SELECT * FROM c"); err != nil {
				t.Errorf("a query without functions: %v", err)
			}
			seat.Leave()
			w.must(request(t.Context(), w))
			if running, _ := w.e.ScriptLoad(); running != 0 {
				t.Errorf("%d scripts are running after the last", running)
			}
		})
	}
}

// A request that waits for a seat ends when its client goes away. Otherwise it sees the
// state at the time when it gets the seat.
func TestScriptsWait(t *testing.T) {
	for name, request := range scriptRequests {
		t.Run(name, func(t *testing.T) {
			w := scriptWorld(t, script.GateOptions{Slots: 1, Queue: 1, Wait: time.Hour})
			seat, err := w.e.scripts.Enter(t.Context())
			w.must(err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			begin := func() {
				go func() { ended <- request(ctx, w) }()
				for waiting := 0; waiting == 0; _, waiting = w.e.ScriptLoad() {
					runtime.Gosched()
				}
			}
			begin()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("of a client that went away: %v", err)
			}
			ctx = t.Context()
			begin()
			w.advance(10 * time.Second) // the item expires
			seat.Leave()
			if err := <-ended; (name == "query with a function") != errors.Is(err, store.ErrNotFound) {
				t.Errorf("after its turn has come: %v", err)
			}
		})
	}
}

// Scripts that call functions in their own queries need only one seat.
func TestScriptsThatQueryNeedOneSlot(t *testing.T) {
	w := scriptWorld(t, script.GateOptions{Slots: 2, Queue: 100, Wait: time.Hour})
	var all sync.WaitGroup
	for client := range 6 {
		all.Go(func() {
			for range 5 {
				request := func() error {
					res, err := w.e.Execute(t.Context(), execution("ask", ""))
					if err == nil && string(res.Body) != "1" {
						err = fmt.Errorf("the script found %s items, want 1", res.Body)
					}
					return err
				}
				if client%2 == 0 {
					request = func() error { return scriptRequests["query with a function"](t.Context(), w) }
				}
				if err := request(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
