// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/store"
)

// Concurrent patches and transactions: none is lost, and a transaction that reads both
// items finds their sum unchanged.
func TestPatchesAndBatchesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	target := Target{Database: "d", Container: "c", PartitionKey: `["k"]`}
	for _, id := range []string{"a", "b"} {
		_, err := w.e.WriteItem(context.Background(), &Request{Target: target, Op: store.Create, Body: fmt.Appendf(nil, `{"id":%q,"pk":"k","n":0,"m":0}`, id)})
		w.must(err)
	}
	by := func(id string, n int) ItemOp {
		return ItemOp{Op: store.Update, ID: id, Body: fmt.Appendf(nil, `[{"op":"incr","path":"/n","value":%d}]`, n)}
	}
	const clients, rounds = 4, 25
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := range rounds {
				n := client*rounds + i
				b := &Request{Target: target, Atomic: true, Ops: []ItemOp{by("a", n), {Op: store.Read, ID: "a"}, {Op: store.Read, ID: "b"}, by("b", -n)}}
				if i%5 == 4 { // fails, and must leave a unchanged
					b.Ops = append(b.Ops, ItemOp{Op: store.Create, Body: []byte(`{"id":"a","pk":"k"}`)})
				}
				res, err := w.e.Batch(context.Background(), b)
				if err != nil || (res.Ops[0].Err == nil) != (i%5 != 4) {
					t.Errorf("batch %d: %v, %v", i, res.Ops, err)
				}
				if i%5 != 4 && number(t, res.Ops[1].Body, "n")+number(t, res.Ops[2].Body, "n") != n {
					t.Errorf("a reader within a batch sees %s and %s, when %d has been moved to a alone", res.Ops[1].Body, res.Ops[2].Body, n)
				}
				patch := &Request{Target: target, Op: store.Update, Body: []byte(`[{"op":"incr","path":"/m","value":1}]`)}
				patch.ID = "a"
				if _, err := w.e.WriteItem(context.Background(), patch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	res, err := w.e.Batch(context.Background(), &Request{Target: target, Atomic: true, Ops: []ItemOp{{Op: store.Read, ID: "a"}, {Op: store.Read, ID: "b"}}})
	w.must(err)
	a, b := res.Ops[0].Body, res.Ops[1].Body
	if number(t, a, "n")+number(t, b, "n") != 0 || number(t, a, "m") != clients*rounds {
		t.Errorf("got %s and %s, want n to add up to 0, and m of a to be %d", a, b, clients*rounds)
	}
}

func number(t *testing.T, body []byte, name string) int {
	t.Helper()
	var item map[string]any
	if err := json.Unmarshal(body, &item); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	n, _ := item[name].(float64)
	return int(n)
}
