// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
)

// count is a script that adds one to the n of an item, and then throws if doomed.
const count = `const count = (id, doomed) => __.readDocument(__.getAltLink() + "/docs/" + id, (err, item) => {
	if (err) throw err;
	item.n++;
	__.replaceDocument(item._self, item, {etag: item._etag}, err => { if (err || doomed) throw err || new Error("doomed") });
});`

// counters are three ways to add one to both a and b, or to neither if doomed.
var counters = []struct {
	name string
	add  func(e *Engine, client int, doomed bool) error
}{
	{"batches", func(e *Engine, _ int, doomed bool) error {
		one := []byte(`[{"op":"incr","path":"/n","value":1}]`)
		b := &Request{Target: item("c", "k", ""), Atomic: true, Ops: []ItemOp{{Op: store.Update, ID: "a", Body: one}, {Op: store.Update, ID: "b", Body: one}}}
		if doomed {
			b.Ops = append(b.Ops, ItemOp{Op: store.Create, Body: body("k", "a", "")})
		}
		res, err := e.Batch(context.Background(), b)
		if err != nil {
			return err
		}
		return res.Ops[len(res.Ops)-1].Err
	}},
	{"procedures", func(e *Engine, _ int, doomed bool) error {
		_, err := e.Execute(context.Background(), execution("both", fmt.Sprintf("[%t]", doomed)))
		return err
	}},
	{"triggers", func(e *Engine, client int, doomed bool) error {
		id := fmt.Sprintf("main%d", client)
		_, err := e.WriteItem(context.Background(), &Request{
			Target: item("c", "k", id), Op: store.Upsert, Body: body("k", id, fmt.Sprintf(`"doomed":%t`, doomed)),
			PreTriggers: "before", PostTriggers: "after",
		})
		return err
	}},
}

// Batches, procedures and triggers count in the same two items concurrently. Each counts
// in both or in neither, concurrent readers find them equal, and in the end no count is
// missing.
func TestAllOrNothingAtOnce(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.procedure("both", `function(doomed) { `+count+` count("a"); count("b", doomed) }`)
	w.trigger("before", "Pre", `function() { `+count+` count("a") }`)
	w.trigger("after", "Post", `function() { `+count+` count("b", getContext().getResponse().getBody().doomed) }`)
	w.put("c", "k", "a", `"n":0`)
	w.put("c", "k", "b", `"n":0`)
	w.raceCounters()
}

func (w *world) raceCounters() {
	const clients, each = 2, 12 // of each way
	var writers, readers sync.WaitGroup
	ended := make(chan struct{})
	for name, read := range map[string]func() (a, b int){"query": w.queryPair, "list": w.listPair} {
		readers.Go(func() { w.watchPair(name, read, ended) })
	}
	for _, c := range counters {
		for client := range clients {
			writers.Go(func() {
				for i := range each {
					if err := persist(func() error { return c.add(w.e, client, false) }); err != nil {
						w.t.Errorf("%s: %v", c.name, err)
					}
					if i%4 > 0 {
						continue
					}
					if err := persist(func() error { return c.add(w.e, client, true) }); err == nil {
						w.t.Errorf("%s: one that must fail did not", c.name)
					}
				}
			})
		}
	}
	writers.Wait()
	close(ended)
	readers.Wait()
	if a, b := w.listPair(); a != len(counters)*clients*each || b != a {
		w.t.Errorf("counted %d and %d, want %d", a, b, len(counters)*clients*each)
	}
}

// persist repeats an operation while other writes conflict with it.
func persist(do func() error) (err error) {
	const most = 1000
	for range most {
		if err = do(); !errors.Is(err, ErrContended) {
			return err
		}
	}
	return err
}

// watchPair reads both items until the writers have ended: they are equal, and only grow.
func (w *world) watchPair(name string, read func() (a, b int), ended <-chan struct{}) {
	for last := 0; ; {
		a, b := read()
		if a != b || a < last {
			w.t.Errorf("a %s sees %d and %d, after %d", name, a, b, last)
			return
		}
		last = a
		select {
		case <-ended:
			return
		default:
		}
	}
}

func (w *world) queryPair() (a, b int) {
	page, err := w.e.QueryItems(context.Background(), &Request{
		Target: item("c", "k", ""), Query: Query{Text: `SELECT c.id, c.n FROM c WHERE c.n >= 0`, Params: map[string]datum.Value{}},
	})
	return w.pair(page.Rows, err)
}

func (w *world) listPair() (a, b int) {
	page, err := w.e.ListItems(context.Background(), &Request{Target: item("c", "k", "")})
	return w.pair(page.Rows, err)
}

// pair finds both items among the rows of a page.
func (w *world) pair(rows []byte, err error) (a, b int) {
	var all []struct {
		ID string
		N  int
	}
	if err == nil {
		err = json.Unmarshal(fmt.Appendf(nil, "[%s]", rows), &all)
	}
	if err != nil {
		w.t.Error(err)
	}
	a, b = -1, -2
	for _, i := range all {
		switch i.ID {
		case "a":
			a = i.N
		case "b":
			b = i.N
		}
	}
	return a, b
}

func (w *world) trigger(name, when, text string) {
	w.t.Helper()
	target := scriptAt(catalog.Triggers, "")
	_, err := w.e.CreateScript(context.Background(), target, fmt.Appendf(nil, `{"id":%q,"triggerType":%q,"triggerOperation":"All","body":%q}`, name, when, text))
	w.must(err)
}
