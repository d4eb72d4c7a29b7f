// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

// split splits a range of container "c", waits for the end, and returns the container then.
func (w *world) split(id string) *catalog.Container {
	w.t.Helper()
	s := w.beginSplit(id)
	w.awaitSplit()
	last, found, err := w.e.SplitStatus(context.Background(), w.named("c"))
	w.must(err)
	if !found || last.State != SplitDone || last.Copied != last.Items || !slices.Equal(last.Ranges, s.Ranges) {
		w.t.Fatalf("the split is %+v", last)
	}
	return w.named("c")
}

func (w *world) beginSplit(id string) SplitStatus {
	w.t.Helper()
	s, err := w.e.SplitRange(context.Background(), w.named("c"), id)
	w.must(err)
	return s
}

// awaitSplit waits for the end of the last split of container "c".
func (w *world) awaitSplit() {
	w.t.Helper()
	w.e.mu.RLock()
	run := w.e.mu.splits[w.named("c").RID]
	w.e.mu.RUnlock()
	<-run.done
}

func (w *world) named(name string) *catalog.Container {
	w.t.Helper()
	c, err := w.e.Container("d", name)
	w.must(err)
	return c
}

// ids returns the ids of the items in the rows of a page.
func ids(t testing.TB, rows []byte) (all []string) {
	t.Helper()
	var items []struct{ ID string }
	if err := json.Unmarshal(append(append([]byte("["), rows...), ']'), &items); err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		all = append(all, i.ID)
	}
	return all
}

// follow reads pages from a continuation to the end, and returns the ids of their items.
func (w *world) follow(r Request, read func(*Request) (Answer, error)) (all []string) {
	w.t.Helper()
	for n := 0; ; n++ {
		page, err := again(func() (Answer, error) { return read(&r) })
		w.must(err)
		all = append(all, ids(w.t, page.Rows)...)
		if r.Continuation = page.Continuation; r.Continuation == "" {
			return all
		}
		if n > 1000 {
			w.t.Fatal("the pages have no end")
		}
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func splitRangesOf(c *catalog.Container) string {
	var all []string
	for _, r := range c.Ranges {
		all = append(all, fmt.Sprintf("%d%v", r.ID, r.Parents))
	}
	return strings.Join(all, " ")
}

// Everything that a client holds from before a split goes on after it: etags, rids, session
// tokens, continuations, positions in both modes of the change feed, cursors of events.
func TestSplitKeepsWhatClientsHold(t *testing.T) {
	w := newWorld(t)
	w.database("d")
	_, err := w.e.CreateContainer(t.Context(), "d", []byte(`{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":-1,"changeFeedPolicy":{"retentionDuration":10}}`), catalog.Throughput{})
	w.must(err)
	var want []string
	written := map[string]Answer{}
	for i := range 60 {
		id := fmt.Sprintf("i%02d", i)
		written[id] = w.put("c", fmt.Sprint("key ", i), id, fmt.Sprintf(`"n":%d`, i%7))
		want = append(want, id)
	}
	for i := range 5 {
		w.put("c", fmt.Sprint("key ", i), fmt.Sprint("mayfly", i), `"ttl":5`)
	}
	whole := Target{Database: "d", Container: "c"}
	list := func(r *Request) (Answer, error) { return w.e.ListItems(t.Context(), r) }
	query := func(r *Request) (Answer, error) { return w.e.QueryItems(t.Context(), r) }
	feed := func(r *Request) (Answer, error) { return w.e.ReadChangeFeed(t.Context(), r) }
	w.advance(10 * time.Second) // the mayflies are gone
	_, err = w.e.PurgeNow(t.Context(), w.named("c"))
	w.must(err)

	begun := map[string]*Request{}
	var before map[string][]string
	first := func(name string, r Request, read func(*Request) (Answer, error)) {
		t.Helper()
		r.Target, r.MaxItems = whole, 10
		page, err := read(&r)
		w.must(err)
		if page.Continuation == "" || page.Count == 0 {
			t.Fatalf("%s: the first page has %d items and the continuation %q", name, page.Count, page.Continuation)
		}
		r.Continuation = page.Continuation
		begun[name] = &r
		if before == nil {
			before = map[string][]string{}
		}
		before[name] = ids(t, page.Rows)
	}
	first("list", Request{}, list)
	first("query", Request{Query: Query{Text: "SELECT c.id FROM c"}, CrossPartition: true}, query)
	first("range query", Request{Range: "0", Query: Query{Text: "SELECT c.id FROM c ORDER BY c.n"}, CrossPartition: true}, query)
	first("feed", Request{}, feed)
	events, err := w.e.Events(t.Context(), w.named("c"), EventStart{})
	w.must(err)
	if len(events.Events) != 5 {
		t.Fatalf("%d events", len(events.Events))
	}
	now, err := feed(&Request{Target: whole, Continuation: ChangeFeedNow, AllVersions: true})
	w.must(err)
	session := SessionToken(0, written["i59"].LSN)

	c := w.split("0")
	if got := splitRangesOf(c); got != "1[0] 2[0]" {
		t.Fatalf("the ranges are %s", got)
	}
	for i := range 60 {
		id := fmt.Sprintf("i%02d", i)
		a, err := again(func() (Answer, error) {
			return w.e.ReadItem(&Request{Target: item("c", fmt.Sprint("key ", i), id), SessionToken: session})
		})
		if err != nil || string(a.Body) != string(written[id].Body) || a.ETag != written[id].ETag || a.Partition == 0 {
			t.Fatalf("%s: got %s, etag %s, partition %d, %v, want %s", id, a.Body, a.ETag, a.Partition, err, written[id].Body)
		}
		var parts struct {
			RID string `json:"_rid"`
		}
		w.must(json.Unmarshal(a.Body, &parts))
		found, err := w.e.ResolveRID(t.Context(), Target{Database: c.RID.Database.String(), Container: c.RIDText, ID: parts.RID})
		if err == nil && found.ID != id {
			t.Fatalf("rid %s is that of %s, %v, want %s", parts.RID, found.ID, err, id)
		}
	}
	if _, err := w.e.ReadItem(&Request{Target: item("c", "key 0", "i00"), SessionToken: SessionToken(0, written["i59"].LSN+1000)}); !errors.Is(err, ErrSession) {
		t.Errorf("a token of the parent that is ahead: got %v, want ErrSession", err)
	}
	if _, err := w.e.ListItems(t.Context(), &Request{Target: whole, Range: "0"}); !errors.Is(err, ErrRangeGone) {
		t.Errorf("the range that was split: got %v, want ErrRangeGone", err)
	}
	for name, read := range map[string]func(*Request) (Answer, error){"list": list, "query": query} {
		got := sorted(append(before[name], w.follow(*begun[name], read)...))
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	// A query of the range goes on in both, as clients do.
	got := before["range query"]
	for _, id := range []string{"1", "2"} {
		r := *begun["range query"]
		r.Range = id
		got = append(got, w.follow(r, query)...)
	}
	if got = sorted(got); !slices.Equal(got, want) {
		t.Errorf("range query: got %q, want %q", got, want)
	}
	// The feed of the container, and of each of the new ranges from the old position.
	for name, ranges := range map[string][]string{"whole": {""}, "each": {"1", "2"}} {
		got := slices.Clone(before["feed"])
		for _, id := range ranges {
			r := *begun["feed"]
			r.Range = id
			for more := true; more; {
				page, err := feed(&r)
				w.must(err)
				got = append(got, ids(t, page.Rows)...)
				r.Continuation, more = page.Continuation, page.More
			}
		}
		if got = sorted(got); !slices.Equal(got, want) {
			t.Errorf("feed, %s: got %q, want %q", name, got, want)
		}
	}
	// New items in both, with etags and ordinals of their own, and all versions of them.
	w.put("c", "key 0", "new", "")
	w.put("c", "key 1", "new", "")
	w.put("c", "key 2", "new", "")
	if _, err := w.write(store.Delete, "c", "key 3", "i03", ""); err != nil {
		t.Fatal(err)
	}
	page, err := feed(&Request{Target: whole, Continuation: now.Continuation, AllVersions: true})
	w.must(err)
	if page.Count != 4 {
		t.Errorf("all versions after the split: got %d changes, %s, want 4", page.Count, page.Rows)
	}
	// Events: none twice, and those to come.
	next, err := w.e.NextEvents(t.Context(), w.named("c"), events.Cursor)
	w.must(err)
	if len(next.Events) != 0 {
		t.Errorf("%d events again", len(next.Events))
	}
	w.put("c", "key 1", "late", `"ttl":1`)
	w.put("c", "key 2", "late", `"ttl":1`)
	w.advance(3 * time.Second)
	if next, err = w.e.NextEvents(t.Context(), w.named("c"), next.Cursor); err != nil || len(next.Events) != 2 {
		t.Errorf("got %d events, %v, want 2", len(next.Events), err)
	}
	u, err := w.e.Usage(t.Context(), w.named("c"))
	if err != nil || u.Live.Items != 62 {
		t.Errorf("usage is %+v, %v", u, err)
	}
	w.reopen(Options{})
	if got := splitRangesOf(w.named("c")); got != "1[0] 2[0]" {
		t.Errorf("opened again, the ranges are %s", got)
	}
	if page, err := w.list("c", -1); err != nil || page.Count != 62 {
		t.Errorf("opened again: %d items, %v", page.Count, err)
	}
}

// Ranges are split again and again, while items are written, replaced, deleted and expire.
// Nothing is lost, nothing comes back, and no write fails.
func TestSplitsUnderWrites(t *testing.T) {
	w := newWorld(t)
	w.container("c", "-1", 1)
	const writers, keys = 4, 40
	last := make([]map[string]string, writers) // by item; "" if it is deleted
	var stop atomic.Bool
	var writes atomic.Int64
	var writing sync.WaitGroup
	for n := range writers {
		last[n] = map[string]string{}
		writing.Go(func() {
			for i := 0; !stop.Load(); i++ {
				pk, id := fmt.Sprint("key ", (i*7+n)%keys), fmt.Sprintf("w%d-%d", n, i%97)
				op := store.Upsert
				if i%5 == 4 && last[n][pk+"/"+id] != "" {
					op = store.Delete
				}
				a, err := w.write(op, "c", pk, id, fmt.Sprintf(`"i":%d`, i))
				if err != nil {
					t.Errorf("%d %s/%s: %v", op, pk, id, err)
					return
				}
				last[n][pk+"/"+id] = string(a.Body)
				writes.Add(1)
				if op != store.Delete {
					if got, err := w.read("c", pk, id); err != nil || string(got.Body) != string(a.Body) {
						t.Errorf("after its write, %s/%s is %s, %v", pk, id, got.Body, err)
						return
					}
				}
			}
		})
	}
	for i, id := range []string{"0", "1", "2", "4"} {
		for writes.Load() < int64(300*i) && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		w.split(id)
	}
	stop.Store(true)
	writing.Wait()
	if got := splitRangesOf(w.named("c")); got != "3[0 1] 7[0 1 4] 8[0 1 4] 5[0 2] 6[0 2]" {
		t.Errorf("the ranges are %s", got)
	}
	want := 0
	for n := range writers {
		for name, body := range last[n] {
			pk, id, _ := strings.Cut(name, "/")
			a, err := w.read("c", pk, id)
			if body == "" {
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s was deleted, and is %s, %v", name, a.Body, err)
				}
				continue
			}
			if want++; err != nil || string(a.Body) != body {
				t.Errorf("%s is %s, %v, want %s", name, a.Body, err, body)
			}
		}
	}
	u, err := w.e.Usage(t.Context(), w.named("c"))
	if err != nil || u.Live.Items != int64(want) {
		t.Errorf("there are %+v, %v, want %d items", u.Live, err, want)
	}
}

// A container without items can be split, and one partition key cannot be divided further
// than its hash.
func TestSplitEmptyAndRefused(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "null", 2)
	now := w.split("1")
	if got := splitRangesOf(now); got != "0[] 2[1] 3[1]" {
		t.Errorf("the ranges are %s", got)
	}
	for _, id := range []string{"1", "9", "x", "-1"} {
		if _, err := w.e.SplitRange(t.Context(), now, id); !errors.Is(err, ErrRangeGone) {
			t.Errorf("range %s: got %v, want ErrRangeGone", id, err)
		}
	}
	keys := spread(c)
	for _, key := range keys {
		w.put("c", key, "a", "")
	}
	if page, err := w.list("c", -1); err != nil || page.Count != len(keys) {
		t.Errorf("%d items, %v", page.Count, err)
	}
}

// A split does not divide the keys with one first value of a hierarchical key: a query for that
// value has one answer, without a plan.
func TestSplitOfHierarchicalKeys(t *testing.T) {
	w := newWorld(t)
	w.database("d")
	_, err := w.e.CreateContainer(t.Context(), "d", []byte(`{"id":"c","partitionKey":{"paths":["/tenant","/user"],"kind":"MultiHash","version":2}}`), catalog.Throughput{})
	w.must(err)
	for tenant := range 3 {
		for user := range 20 {
			body := fmt.Appendf(nil, `{"id":"i%d","tenant":"t%d","user":"u%d"}`, user, tenant, user)
			_, err := w.e.WriteItem(t.Context(), &Request{Target: Target{Database: "d", Container: "c"}, Op: store.Upsert, Body: body})
			w.must(err)
		}
	}
	w.split("0")
	c := w.named("c")
	if parts, err := w.e.UsageByRange(t.Context(), c); err != nil || parts[0].Live.Items == 0 || parts[1].Live.Items == 0 {
		t.Errorf("the partitions have %+v, %v", parts, err)
	}
	for tenant := range 3 {
		page, err := again(func() (Answer, error) {
			return w.e.QueryItems(t.Context(), &Request{
				Target: Target{Database: "d", Container: "c", PartitionKey: fmt.Sprintf(`["t%d"]`, tenant)}, Query: Query{Text: "SELECT VALUE COUNT(1) FROM c"},
			})
		})
		if err != nil || string(page.Rows) != "20" || page.Continuation != "" {
			t.Errorf("tenant %d: got %s, %v", tenant, page.Rows, err)
		}
	}
}

// Settings that change while a partition is being split hold in the children, which are
// copied again.
func TestSplitUnderNewSettings(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	for i := range 200 {
		w.put("c", fmt.Sprint("key ", i), "a", "")
	}
	w.beginSplit("0")
	w.replace("c", "7")
	w.awaitSplit()
	c := w.named("c")
	if got := splitRangesOf(c); !strings.Contains(got, "[0]") || len(c.Ranges) != 2 {
		t.Fatalf("the ranges are %s", got)
	}
	if page, err := w.list("c", -1); err != nil || page.Count != 200 {
		t.Errorf("%d items, %v, want 200", page.Count, err)
	}
	w.advance(8 * time.Second)
	if page, err := w.list("c", -1); err != nil || page.Count != 0 {
		t.Errorf("%d items after their ttl, %v", page.Count, err)
	}
}

// A container may be deleted, and the server stopped, in the middle of a split. Then the
// split is abandoned, and another one can be begun.
func TestSplitAbandoned(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	for i := range 300 {
		w.put("c", fmt.Sprint("key ", i), "a", "")
	}
	w.beginSplit("0")
	w.reopen(Options{}) // may come before or after the end
	id := "0"
	if c := w.named("c"); len(c.Ranges) == 2 {
		id = catalog.RangeID(c.Ranges[0].ID)
	}
	w.split(id)
	if page, err := w.list("c", -1); err != nil || page.Count != 300 {
		t.Errorf("%d items, %v", page.Count, err)
	}
	w.beginSplit(catalog.RangeID(w.named("c").Ranges[0].ID))
	c := w.named("c")
	w.must(w.e.Delete(t.Context(), catalog.Address{Kind: catalog.Containers, Database: "d", ID: "c"}, ""))
	if n := w.rowsOf(c); n != 0 {
		t.Errorf("%d rows are left of the container", n)
	}
}
