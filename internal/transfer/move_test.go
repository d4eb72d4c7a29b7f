// SPDX-License-Identifier: MIT

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

func moveOptions(t *testing.T, from, to *server) MoveOptions {
	dir := t.TempDir()
	return MoveOptions{
		From: from.client,
		ImportOptions: ImportOptions{
			To: to.client, TTL: Remaining, Connections: 4, State: filepath.Join(dir, "state"), MaxRejected: 10, Progress: &Progress{},
			Rejected: func(n client.Name) string { return filepath.Join(dir, "rejected") },
		},
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("it does not come to: %s", what)
		}
	}
}

const richCarts = `{"id":"carts","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":1000,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]},
	"indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/pad/*"}],"compositeIndexes":[[{"path":"/pk","order":"ascending"},{"path":"/n","order":"descending"}]]}`

// fillRich writes items with ttls of their own.
func (s *server) fillRich(t *testing.T, n int) {
	t.Helper()
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, `{"id":"%d","pk":"p%d","n":%d,"ttl":%d}`+"\n", i, i%7, i, []int{-1, 500, 2000}[i%3])
	}
	place := filepath.Join(t.TempDir(), "rich.jsonl")
	if err := os.WriteFile(place, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Import(t.Context(), s.importOptions(t, place)); err != nil {
		t.Fatal(err)
	}
}

// A container moves with its definition, scripts, throughput and what is left of its items'
// time, and then follows what is written, until it is stopped, also if it is interrupted.
func TestMoveAndFollow(t *testing.T) {
	for name, policy := range map[string]string{"latest versions": "}", "all versions and deletes": `,"changeFeedPolicy":{"retentionDuration":10}}`} {
		t.Run(name, func(t *testing.T) {
			from, to := start(t), start(t)
			from.make(t, richCarts+policy, 18_000)
			if err := from.client.Create(t.Context(), carts, client.Procedures, []byte(`{"id":"hello","body":"function () { getContext().getResponse().setBody('hi'); }"}`), nil); err != nil {
				t.Fatal(err)
			}
			if err := from.client.Create(t.Context(), carts, client.Functions, []byte(`{"id":"twice","body":"function (x) { return 2 * x; }"}`), nil); err != nil {
				t.Fatal(err)
			}
			from.fillRich(t, 3000)
			o := moveOptions(t, from, to)
			o.Follow = true

			// The first run is interrupted in the middle of the copy.
			ctx, cancel := to.breakAfter(7)
			defer cancel()
			if err := Move(ctx, o); !errors.Is(err, context.Canceled) {
				t.Fatalf("an interrupted move: %v", err)
			}
			to.before.Store(nil)
			some := len(to.items(t, false))
			if some == 0 || some == 3000 {
				t.Fatalf("%d items are there after the interruption", some)
			}
			// Deletes before the copy is complete.
			if err := deleteItem(t, from, "1", "p1"); err != nil {
				t.Fatal(err)
			}

			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			o.Progress = &Progress{}
			ended := make(chan error, 1)
			go func() { ended <- Move(ctx, o) }()
			eventually(t, "the copy is complete", o.Progress.Followed.Load)
			from.put(t, `{"id":"new","pk":"p1","n":-1}`)
			from.put(t, `{"id":"2","pk":"p2","n":2,"changed":true}`)
			from.put(t, `{"id":"short","pk":"p2","n":-2}`)
			if err := deleteItem(t, from, "short", "p2"); err != nil {
				t.Fatal(err)
			}
			from.put(t, `{"id":"last","pk":"p1","n":-3}`)
			has := func(s *server, text string) bool {
				for _, item := range s.items(t, false) {
					if strings.Contains(item, text) {
						return true
					}
				}
				return false
			}
			eventually(t, "the last write has followed", func() bool {
				return has(to, `"id":"last"`) && has(to, `"changed":true`) && has(to, `"id":"new"`) && (policy == "}" || !has(to, `"id":"short"`))
			})
			cancel()
			if err := <-ended; err != nil {
				t.Fatalf("it is stopped: %v", err)
			}
			if policy == "}" { // deletes do not follow
				_ = deleteItem(t, to, "1", "p1")
				_ = deleteItem(t, to, "short", "p2")
			}
			equal(t, name, to.items(t, false), from.items(t, false))
			if n := o.Progress.Rejected.Load(); n != 0 {
				t.Errorf("%d rows were rejected", n)
			}
			sameDefinition(t, from, to)
			remains(t, from, to)

			// It goes on where it was stopped.
			from.put(t, `{"id":"later","pk":"p1","n":-4}`)
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			o.Progress = &Progress{}
			go func() { ended <- Move(ctx, o) }()
			eventually(t, "what was written meanwhile has followed", func() bool { return has(to, `"id":"later"`) })
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if n := o.Progress.Items.Load(); n > 100 {
				t.Errorf("it wrote %d items again", n)
			}
		})
	}
}

func deleteItem(t *testing.T, s *server, id, pk string) error {
	t.Helper()
	_, err := s.client.DeleteItem(t.Context(), carts, id, value.PartitionKey{value.String(pk)})
	return err
}

// sameDefinition checks that both containers have one definition and the same scripts.
func sameDefinition(t *testing.T, from, to *server) {
	t.Helper()
	of := func(s *server) string {
		throughputs, err := s.client.Throughputs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.client.Container(t.Context(), carts)
		if err != nil {
			t.Fatal(err)
		}
		d, err := readDefinition(t.Context(), s.client, c, throughputs)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := of(to), of(from); got != want || !strings.Contains(want, "hello") || !strings.Contains(want, "18000") {
		t.Errorf("the definition is\n%s, want\n%s", got, want)
	}
}

// remains checks that items end on both servers within the seconds that rounding and the move
// itself may add, and never earlier than at the source.
func remains(t *testing.T, from, to *server) {
	t.Helper()
	deadlines := func(s *server) map[string]int64 {
		at := map[string]int64{}
		a, err := s.client.ReadItems(t.Context(), carts, client.Page{MaxItems: -1})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := a.Rows(client.Items)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range rows {
			var item struct {
				ID  string
				TTL *int64
				TS  int64 `json:"_ts"`
			}
			if err := json.Unmarshal(raw, &item); err != nil {
				t.Fatal(err)
			}
			life := int64(1000)
			if item.TTL != nil {
				life = *item.TTL
			}
			if life > 0 {
				at[item.ID] = item.TS + life
			}
		}
		return at
	}
	const slack = 90 // seconds, for a busy machine
	ours := deadlines(to)
	n := 0
	for id, want := range deadlines(from) {
		got, ok := ours[id]
		if !ok {
			continue // on another page
		}
		if n++; got < want || got > want+slack {
			t.Fatalf("item %s ends at %d, want %d or a little later", id, got, want)
		}
	}
	if n == 0 {
		t.Error("no item ends on both servers")
	}
}

// Everything moves: several databases, and containers without items.
func TestMoveEverything(t *testing.T) {
	from, to := start(t), start(t)
	from.make(t, plainCarts, 0)
	from.fill(t, 50)
	other := client.Name{Database: "other/db?", Container: "a b%"}
	if err := makeDatabase(t.Context(), from.client, &Database{ID: "other/db?"}); err == nil {
		t.Fatal("the server takes a name with a slash: this test should, too")
	}
	other = client.Name{Database: "ö ther.", Container: "a b%"}
	if err := makeDatabase(t.Context(), from.client, &Database{ID: other.Database, Throughput: client.Throughput{Autoscale: 4000}}); err != nil {
		t.Fatal(err)
	}
	if _, err := makeContainer(t.Context(), from.client, other, &Definition{Container: []byte(`{"id":"a b%","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := from.client.WriteItem(t.Context(), other, []byte(`{"id":"1","a":"x","b":2}`), value.PartitionKey{value.String("x"), value.Number(2)}, client.Upsert); err != nil {
		t.Fatal(err)
	}
	check := func(how string) {
		t.Helper()
		equal(t, how, to.items(t, true), from.items(t, true))
		if a, err := to.client.ReadItem(t.Context(), other, "1", value.PartitionKey{value.String("x"), value.Number(2)}); err != nil || a.Status != http.StatusOK {
			t.Errorf("%s: %v", how, err)
		}
		for _, db := range []string{"shop", other.Database} {
			if err := to.client.Delete(t.Context(), client.Name{}, client.Databases, db); err != nil {
				t.Error(err)
			}
		}
	}
	if err := Move(t.Context(), moveOptions(t, from, to)); err != nil {
		t.Fatal(err)
	}
	check("from another account")
	dir := t.TempDir()
	e := from.exportOptions(dir)
	e.Name, e.Directory = client.Name{}, true
	if err := Export(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	i := to.importOptions(t, dir)
	i.Name = client.Name{}
	if err := Import(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	check("from a directory")
}

// A container that is there with another partition key is left alone.
func TestMoveIntoAnotherContainer(t *testing.T) {
	from, to := start(t), start(t)
	from.make(t, plainCarts, 0)
	to.make(t, strings.Replace(plainCarts, "/pk", "/other", 1), 0)
	if err := Move(t.Context(), moveOptions(t, from, to)); err == nil || !strings.Contains(err.Error(), "another partition key") {
		t.Errorf("the error is %v", err)
	}
}

// A move goes on while partitions of its source and of its target are split, in the copy and
// while it follows.
func TestMoveGoesOnAfterSplits(t *testing.T) {
	for name, policy := range map[string]string{"latest versions": "}", "all versions and deletes": `,"changeFeedPolicy":{"retentionDuration":10}}`} {
		t.Run(name, func(t *testing.T) {
			from, to := start(t), start(t)
			from.make(t, strings.TrimSuffix(plainCarts, "}")+policy, 0)
			want := from.fill(t, 8_000)
			from.splitAt(t, func(r *http.Request) bool { return r.Header.Get("A-Im") != "" })
			to.splitAt(t, isBulk)
			o := moveOptions(t, from, to)
			o.Follow = true
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- Move(ctx, o) }()
			done := func(what string, holds func() bool) {
				t.Helper()
				eventually(t, what, func() bool {
					select {
					case err := <-ended:
						t.Fatalf("the move has ended: %v", err)
					default:
					}
					return holds()
				})
			}
			done("the copy is complete", o.Progress.Followed.Load)
			from.before.Store(nil)
			to.before.Store(nil)
			equal(t, "copied", to.items(t, true), want)
			for i, id := range []string{"2", "4"} {
				from.split(t, id)
				from.put(t, fmt.Sprintf(`{"id":"after","pk":"p%d","n":%d}`, i, i))
			}
			done("what is written after a split follows", func() bool { return len(to.items(t, true)) == len(want)+2 })
			from.partitions(t, 6)
			to.partitions(t, 4)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Partitions that were split go on where the one before them was.
func TestSplitPartitions(t *testing.T) {
	from, to := start(t), start(t)
	from.make(t, plainCarts, 0)
	from.fill(t, 10)
	var asked atomic.Int64
	f := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("A-Im") == "" {
			return false
		}
		asked.Add(1)
		w.Header().Set("X-Ms-Substatus", "1002")
		http.Error(w, "gone", http.StatusGone)
		return true
	}
	from.before.Store(&f)
	if err := Move(t.Context(), moveOptions(t, from, to)); !errors.Is(err, ErrSplit) || asked.Load() != 1 {
		t.Errorf("after %d requests the error is %v", asked.Load(), err)
	}
	m := &moving{state: &stateFile{}}
	c := &moved{
		part: &part{Ranges: map[string]*place{"0": {At: "17", Versions: "18"}}},
		from: &client.Container{Ranges: []client.Range{{ID: "1", Parents: []string{"0"}}, {ID: "2", Parents: []string{"0"}}, {ID: "3"}}},
	}
	m.state.adopt(c.part, c.from.Ranges)
	for id, want := range map[string]string{"1": "17", "2": "17"} {
		if at := c.part.Ranges[id]; at == nil || at.At != want || at == c.part.Ranges["0"] {
			t.Errorf("partition %s begins at %+v, want %s", id, at, want)
		}
	}
	if c.part.Ranges["3"] != nil {
		t.Error("a partition without parents begins somewhere")
	}
}
