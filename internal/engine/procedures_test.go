// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

// testExplain returns the text of an error.
func testExplain(err error) (int, string) {
	if errors.Is(err, store.ErrNotFound) {
		return 404, err.Error()
	}
	return 400, err.Error()
}

// noQuery is the reply to a script that sends an invalid query. Tests act during a script
// when it gets this reply.
const noQuery = "no query"

func (w *world) procedure(name, text string) {
	w.t.Helper()
	_, err := w.e.CreateScript(context.Background(), scriptAt(catalog.Procedures, ""), udfBody(name, text))
	w.must(err)
}

func execution(name, args string) *Request {
	return &Request{Target: Target{Database: "d", Container: "c", ID: name, PartitionKey: `["k"]`}, Body: []byte(args)}
}

// transfer moves an amount from one item to another, and never more than there is.
const transfer = `function(from, to, amount) {
	const link = id => __.getAltLink() + "/docs/" + id;
	const must = err => { if (err) throw err };
	__.readDocument(link(from), (err, a) => { must(err);
		__.readDocument(link(to), (err, b) => { must(err);
			if (a.n < amount) return __.response.setBody("too little");
			a.n -= amount; b.n += amount;
			__.replaceDocument(a._self, a, {etag: a._etag}, must);
			__.replaceDocument(b._self, b, {etag: b._etag}, must);
			__.queryDocuments(__.getSelfLink(), "SELECT VALUE SUM(c.n) FROM c", (err, rows) => { must(err); __.response.setBody(rows[0]) });
		});
	});
}`

// Concurrent transfers between a few items neither lose nor create amounts: no script
// sees half of another.
func TestTransfers(t *testing.T) {
	const clients, moves, items, each = 6, 15, 3, 100
	w := newWorld(t)
	w.container("c", "null", 1)
	w.procedure("transfer", transfer)
	for i := range items {
		w.put("c", "k", fmt.Sprint(i), fmt.Sprintf(`"n":%d`, each))
	}
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(client)))
			for done := 0; done < moves; {
				from := rng.IntN(items)
				args := fmt.Sprintf(`["%d","%d",%d]`, from, (from+1+rng.IntN(items-1))%items, 1+rng.IntN(60))
				res, err := w.e.Execute(context.Background(), execution("transfer", args))
				switch got := string(res.Body); {
				case errors.Is(err, ErrContended):
				case err != nil:
					t.Error(err)
					return
				case got != fmt.Sprint(items*each) && got != `"too little"`:
					t.Errorf("a transfer saw the sum %s", got)
					return
				default:
					done++
				}
			}
		})
	}
	all.Wait()
	if got := w.sum("c", items); got != items*each {
		t.Errorf("the sum is %d, want %d", got, items*each)
	}
}

// sum adds up the n of items.
func (w *world) sum(container string, items int) int {
	w.t.Helper()
	sum := 0
	for i := range items {
		res, err := w.read(container, "k", fmt.Sprint(i))
		w.must(err)
		var item struct{ N int }
		w.must(json.Unmarshal(res.Body, &item))
		sum += item.N
	}
	return sum
}

// The machine crashes during transfers: afterwards no amount is missing.
func TestTransfersAndCrashes(t *testing.T) {
	const moves, items, each = 20, 3, 100
	fs := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(7, 7))
	open := func(fs *vfs.MemFS) *world {
		db, err := pebblekv.Open(pebblekv.Options{Dir: "data", FS: fs, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, db: db}
		w.open(Options{})
		return w
	}
	w := open(fs)
	w.container("c", "null", 1)
	w.procedure("transfer", transfer)
	for i := range items {
		w.put("c", "k", fmt.Sprint(i), fmt.Sprintf(`"n":%d`, each))
	}
	var disks []*vfs.MemFS
	stop, crashed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(crashed)
		for range 2 * moves {
			disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 10 * rng.IntN(11), RNG: rng}))
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for i := range moves {
		_, err := w.e.Execute(t.Context(), execution("transfer", fmt.Sprintf(`["%d","%d",7]`, i%items, (i+1)%items)))
		w.must(err)
	}
	close(stop)
	<-crashed
	w.close()
	for _, disk := range disks {
		after := open(disk)
		if got := after.sum("c", items); got != items*each {
			t.Errorf("after a crash the sum is %d, want %d", got, items*each)
		}
		if _, err := after.e.catalog.Find(scriptAt(catalog.Procedures, "transfer")); err != nil {
			t.Errorf("after a crash the procedure is gone: %v", err)
		}
		after.close()
	}
}

// A script's answer has the final etags, rids and times of the items that it wrote, not
// those of the draft.
func TestAnswersTellWhatWasWritten(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.put("c", "k", "old", "")
	w.procedure("write", `function() {
		const seen = [];
		const see = (err, doc) => { if (err) throw err; seen.push(doc); __.response.setBody({docs: seen, text: JSON.stringify(seen), links: seen.map(d => d._self)}) };
		__.createDocument(__.getSelfLink(), {id: "new", pk: "k"}, see);
		__.upsertDocument(__.getSelfLink(), {id: "old", pk: "k", n: 1}, see);
	}`)
	res, err := w.e.Execute(t.Context(), execution("write", ""))
	w.must(err)
	var answer struct {
		Docs  []json.RawMessage
		Text  string
		Links []string
	}
	w.must(json.Unmarshal(res.Body, &answer))
	var bodies []string
	for i, id := range []string{"new", "old"} {
		item, err := w.read("c", "k", id)
		w.must(err)
		bodies = append(bodies, string(item.Body))
		if string(answer.Docs[i]) != string(item.Body) {
			t.Errorf("the answer has %s, and a read %s", answer.Docs[i], item.Body)
		}
		if !strings.Contains(string(item.Body), answer.Links[i]) {
			t.Errorf("the answer has the link %s, and a read %s", answer.Links[i], item.Body)
		}
	}
	if want := "[" + strings.Join(bodies, ",") + "]"; answer.Text != want {
		t.Errorf("the answer has the text %s, want %s", answer.Text, want)
	}
	if item, _ := w.read("c", "k", "new"); item.LSN != res.LSN {
		t.Errorf("the answer is of lsn %d, and a read of %d", res.LSN, item.LSN)
	}
}

// A script whose logical partition changes during every run fails after a while, and has
// written nothing.
func TestContendedScript(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.procedure("write", `function() { __.queryDocuments(__.getSelfLink(), "now", () => __.createDocument(__.getSelfLink(), {id: "mine", pk: "k"})) }`)
	runs := 0
	e := execution("write", "")
	w.e.options.Explain = func(error) (int, string) { // another request writes while the script runs
		runs++
		w.put("c", "k", "other", fmt.Sprintf(`"n":%d`, runs))
		return 400, noQuery
	}
	if _, err := w.e.Execute(t.Context(), e); !errors.Is(err, ErrContended) || runs != maxScriptRuns {
		t.Errorf("%d runs, %v", runs, err)
	}
	if _, err := w.read("c", "k", "mine"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the item of a script that gave up: %v", err)
	}
	// A write to another partition key does not conflict.
	runs = 0
	w.e.options.Explain = func(error) (int, string) {
		runs++
		w.put("c", "elsewhere", "other", "")
		return 400, noQuery
	}
	if _, err := w.e.Execute(t.Context(), e); err != nil || runs != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// An item that expires between a script and its commit makes the script run again: it
// must not be restored.
func TestItemExpiresUnderScript(t *testing.T) {
	w := newWorld(t)
	w.container("c", "10", 1)
	w.put("c", "k", "a", "")
	w.procedure("touch", `function() {
		__.readDocument(__.getAltLink() + "/docs/a", (err, a) => {
			if (err) throw err;
			__.queryDocuments(__.getSelfLink(), "now", () => __.replaceDocument(a._self, a));
		});
	}`)
	e := execution("touch", "")
	w.e.options.Explain = func(err error) (int, string) {
		w.must(w.e.Clock().Advance(10_000_000_000))
		return testExplain(err)
	}
	var failed *ScriptError
	if _, err := w.e.Execute(t.Context(), e); !errors.As(err, &failed) || failed.Number != 404 {
		t.Errorf("%v, want that the item is not found", err)
	}
	if _, err := w.read("c", "k", "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an expired item is back: %v", err)
	}
}

// Triggers keep a count exact under concurrent writes.
func TestTriggersCount(t *testing.T) {
	const clients, writes = 4, 10
	w := newWorld(t)
	w.container("c", "null", 1)
	target := scriptAt(catalog.Triggers, "")
	_, err := w.e.CreateScript(t.Context(), target, []byte(`{"id":"count","triggerType":"Post","triggerOperation":"Create","body":`+
		`"function() { __.readDocument(__.getAltLink() + '/docs/count', (err, doc) => __.upsertDocument(__.getSelfLink(), {id: 'count', pk: 'k', n: (err ? 0 : doc.n) + 1})) }"}`))
	w.must(err)
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := 0; i < writes; {
				id := fmt.Sprintf("%d-%d", client, i)
				_, err := w.e.WriteItem(context.Background(), &Request{
					Target: item("c", "k", id), Op: store.Create, Body: body("k", id, ""), PostTriggers: "count",
				})
				if err == nil {
					i++
				} else if !errors.Is(err, ErrContended) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	res, err := w.read("c", "k", "count")
	w.must(err)
	if !strings.Contains(string(res.Body), fmt.Sprintf(`"n":%d`, clients*writes)) {
		t.Errorf("counted %s, want %d", res.Body, clients*writes)
	}
}
