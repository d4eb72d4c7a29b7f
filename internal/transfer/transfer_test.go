// SPDX-License-Identifier: MIT

package transfer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// server is a real server whose requests can be counted, and answered in its place.
type server struct {
	*mayfly.Server
	client *client.Client
	// before is called before each request; true means that it has answered.
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func start(t *testing.T) *server {
	t.Helper()
	db, err := mayfly.Open(mayfly.Options{Memory: true, TestClock: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Server: db}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.before.Load(); f != nil && (*f)(w, r) {
			return
		}
		db.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s.client = s.dial(t, h.URL)
	return s
}

func (s *server) dial(t *testing.T, endpoint string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Endpoint: endpoint, Key: mayfly.WellKnownKey, Connections: 8})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var carts = client.Name{Database: "shop", Container: "carts"}

// make makes the container carts.
func (s *server) make(t *testing.T, definition string, throughput int) {
	t.Helper()
	if err := makeDatabase(t.Context(), s.client, &Database{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	d := &Definition{Container: json.RawMessage(definition), Throughput: client.Throughput{Manual: throughput}}
	if _, err := makeContainer(t.Context(), s.client, carts, d); err != nil {
		t.Fatal(err)
	}
}

const plainCarts = `{"id":"carts","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`

// put writes an item.
func (s *server) put(t *testing.T, item string) {
	t.Helper()
	of, err := s.client.Container(t.Context(), carts)
	if err != nil {
		t.Fatal(err)
	}
	o, err := value.ParseObject([]byte(item))
	if err != nil {
		t.Fatal(err)
	}
	key, err := of.KeyOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.WriteItem(t.Context(), carts, []byte(item), key, client.Upsert); err != nil {
		t.Fatal(err)
	}
}

// items returns all items without the server's properties and, if that is asked for, without
// their ttl.
func (s *server) items(t *testing.T, withTTL bool) []string {
	t.Helper()
	var all []string
	for p := (client.Page{MaxItems: 1000}); ; {
		a, err := s.client.ReadItems(t.Context(), carts, p)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := a.Rows(client.Items)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range rows {
			all = append(all, bare(t, raw, withTTL))
		}
		if p.Continuation = a.Continuation(); p.Continuation == "" {
			slices.Sort(all)
			return all
		}
	}
}

// bare returns an item in one form.
func bare(t *testing.T, raw []byte, withTTL bool) string {
	t.Helper()
	var item map[string]any
	if err := json.Unmarshal(raw, &item); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
		delete(item, name)
	}
	if !withTTL {
		delete(item, "ttl")
	}
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d items, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: item %d is\n%s, want\n%s", what, i, got[i], want[i])
		}
	}
}

// importOptions are those of a test.
func (s *server) importOptions(t *testing.T, place string) ImportOptions {
	return ImportOptions{
		To: s.client, Name: carts, Place: place, TTL: Full, Connections: 4, State: place + ".state", MaxRejected: 1000,
		Rejected: func(n client.Name) string { return filepath.Join(t.TempDir(), "rejected") }, Progress: &Progress{},
	}
}

func (s *server) exportOptions(place string) ExportOptions {
	return ExportOptions{From: s.client, Name: carts, Place: place, TTL: Full, Connections: 4, State: place + ".state", Progress: &Progress{}}
}

// odd are items with values that formats may spoil.
var odd = []string{
	`{"id":"1","pk":"a"}`, `{"id":"1","pk":"b","n":12}`, `{"id":"12","pk":"a","text":"12","yes":true,"none":null}`,
	`{"id":"a/b?#%","pk":"ö😀","text":"line\nbreak, \"quote\"","empty":"","list":[1,{"x":"y"}],"e":1e-7,"object":{}}`,
	`{"id":"\"q\"","pk":"a","text":"\"q\"","word":"true","zero":"007","n":-0.5}`, `{"id":"null","pk":"a","text":" "}`,
	`{"id":"no key"}`, `{"id":"zero","pk":""}`, `{"id":"ends","pk":"a","text":"a\r\nb\rc\n","more":"\r\n"}`,
}

func TestFormatsKeepItems(t *testing.T) {
	for _, form := range []string{"jsonl", "json", "csv"} {
		t.Run(form, func(t *testing.T) {
			from, to := start(t), start(t)
			from.make(t, plainCarts, 0)
			to.make(t, plainCarts, 12_000)
			for _, item := range odd {
				from.put(t, item)
			}
			place := filepath.Join(t.TempDir(), "carts."+form)
			if err := Export(t.Context(), from.exportOptions(place)); err != nil {
				t.Fatal(err)
			}
			if err := Export(t.Context(), from.exportOptions(place)); !errors.Is(err, ErrExists) {
				t.Errorf("an export over a file: %v", err)
			}
			if err := Import(t.Context(), to.importOptions(t, place)); err != nil {
				t.Fatal(err)
			}
			equal(t, form, to.items(t, true), from.items(t, true))
			if left, _ := filepath.Glob(place + ".*"); len(left) > 0 {
				t.Errorf("state is left behind: %q", left)
			}
		})
	}
}

// An empty container gives files that can be imported.
func TestEmptyContainer(t *testing.T) {
	for _, form := range []string{"jsonl", "json"} {
		from := start(t)
		from.make(t, plainCarts, 0)
		place := filepath.Join(t.TempDir(), "carts."+form)
		if err := Export(t.Context(), from.exportOptions(place)); err != nil {
			t.Fatal(err)
		}
		if err := Import(t.Context(), from.importOptions(t, place)); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// fill writes items in bulk, and returns them in order.
func (s *server) fill(t *testing.T, n int) []string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"%d\",\"pk\":\"p%d\",\"pad\":%q}\n", i, i%97, strings.Repeat("x", i%50))
	}
	place := filepath.Join(t.TempDir(), "fill.jsonl")
	if err := os.WriteFile(place, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Import(t.Context(), s.importOptions(t, place)); err != nil {
		t.Fatal(err)
	}
	items := s.items(t, true)
	if len(items) != n {
		t.Fatalf("%d items, want %d", len(items), n)
	}
	return items
}

// breakAfter ends a context after some of the requests that change or read items.
func (s *server) breakAfter(requests int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	var n atomic.Int64
	f := func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/docs") && n.Add(1) == requests {
			cancel()
		}
		return false
	}
	s.before.Store(&f)
	return ctx, cancel
}

// A transfer that is interrupted again and again loses nothing and repeats nothing. Each
// second time the state is what an earlier save left, as after a crash.
func TestInterruptedTransfersGoOn(t *testing.T) {
	from, to := start(t), start(t)
	from.make(t, plainCarts, 18_000) // three partitions
	to.make(t, plainCarts, 12_000)
	want := from.fill(t, 3_000)
	for _, form := range []string{"jsonl", "json", "csv"} {
		place := filepath.Join(t.TempDir(), "carts."+form)
		exports := interrupted(t, place+".state", func(before int) error {
			o := from.exportOptions(place)
			ctx, cancel := from.breakAfter(2 + rand.Int64N(3))
			defer cancel()
			return Export(ctx, o)
		})
		from.before.Store(nil)
		raw, err := os.ReadFile(place)
		if err != nil {
			t.Fatal(err)
		}
		imports := interrupted(t, place+".state", func(before int) error {
			o := to.importOptions(t, place)
			o.Write = client.Create // so that an item that is written twice is refused
			// What is done again takes two requests for each item.
			ctx, cancel := to.breakAfter(4 + rand.Int64N(20) + int64(before*200))
			defer cancel()
			err := Import(ctx, o)
			if n := o.Progress.Rejected.Load(); n > 0 {
				t.Errorf("%d rows were rejected", n)
			}
			return err
		})
		to.before.Store(nil)
		equal(t, form, to.items(t, true), want)
		if exports == 0 || imports == 0 {
			t.Errorf("%s: %d exports and %d imports were interrupted, want some", form, exports, imports)
		}
		lines := bytes.Count(raw, []byte(`"pk":"p`))
		if form == "csv" {
			lines = bytes.Count(raw, []byte("\n")) - 1
		}
		if lines != len(want) {
			t.Errorf("%s: the file has %d items, want %d", form, lines, len(want))
		}
		of, err := to.client.Container(t.Context(), carts)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.client.Delete(t.Context(), client.Name{Database: "shop"}, client.Containers, "carts"); err != nil {
			t.Fatal(err)
		}
		if _, err := makeContainer(t.Context(), to.client, carts, &Definition{Container: mustClean(t, of.Definition), Throughput: client.Throughput{Manual: 12_000}}); err != nil {
			t.Fatal(err)
		}
	}
}

// split splits a physical partition of carts in two, and waits for the end.
func (s *server) split(t *testing.T, id string) {
	t.Helper()
	q := url.Values{"database": {carts.Database}, "container": {carts.Container}, "range": {id}}
	for method := http.MethodPost; ; method = http.MethodGet {
		res, err := s.client.Page(t.Context(), method, "cluster/split", q, nil, time.Minute)
		q.Del("range")
		if err != nil {
			t.Error(err) // a handler calls this, too
			return
		}
		var status struct{ State, Error string }
		err = errors.Join(json.NewDecoder(res.Body).Decode(&status), res.Body.Close())
		switch {
		case err != nil || status.State == "failed":
			t.Errorf("the split: %v %s", err, status.Error)
			return
		case status.State == "done":
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// splitAt splits partitions in the midst of a transfer: before the second, the fourth and the
// sixth request of a kind. The second and third to be split are a child and its child.
func (s *server) splitAt(t *testing.T, kind func(*http.Request) bool) {
	var mu sync.Mutex
	n := 0
	f := func(_ http.ResponseWriter, r *http.Request) bool {
		if kind(r) {
			mu.Lock() // a container has one split at a time
			defer mu.Unlock()
			n++
			if id, ok := map[int]string{2: "0", 4: "1", 6: "3"}[n]; ok {
				s.split(t, id)
			}
		}
		return false
	}
	s.before.Store(&f)
}

// partitions wants carts to have as many partitions.
func (s *server) partitions(t *testing.T, want int) {
	t.Helper()
	of, err := s.client.Container(t.Context(), carts)
	if err != nil {
		t.Fatal(err)
	}
	if len(of.Ranges) != want {
		t.Errorf("the container has %d partitions, want %d", len(of.Ranges), want)
	}
}

func isBulk(r *http.Request) bool { return r.Header.Get("X-Ms-Cosmos-Is-Batch-Request") != "" }

// An import goes on in the partitions that those it writes to are split into.
func TestImportGoesOnAfterSplits(t *testing.T) {
	from, to := start(t), start(t)
	from.make(t, plainCarts, 0)
	want := from.fill(t, 8_000)
	place := filepath.Join(t.TempDir(), "carts.jsonl")
	if err := Export(t.Context(), from.exportOptions(place)); err != nil {
		t.Fatal(err)
	}
	to.make(t, plainCarts, 0)
	to.splitAt(t, isBulk)
	if err := Import(t.Context(), to.importOptions(t, place)); err != nil {
		t.Fatal(err)
	}
	to.before.Store(nil)
	to.partitions(t, 4)
	equal(t, "imported", to.items(t, true), want)
}

// An export goes on in the partitions that the one it was reading was split into, whether the
// split came in its midst or while it was interrupted.
func TestExportGoesOnAfterSplits(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, s *server, o ExportOptions) error{
		"while interrupted": func(t *testing.T, s *server, o ExportOptions) error {
			for _, id := range []string{"0", "1", "3"} { // the second and third are a child and its child
				ctx, cancel := s.breakAfter(2)
				defer cancel()
				if err := Export(ctx, o); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("an interrupted export: %w", err)
				}
				s.before.Store(nil)
				s.split(t, id)
			}
			return Export(t.Context(), o)
		},
		"in its midst": func(t *testing.T, s *server, o ExportOptions) error {
			s.splitAt(t, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/docs") })
			return Export(t.Context(), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.make(t, plainCarts, 0)
			want := s.fill(t, 8_000)
			place := filepath.Join(t.TempDir(), "carts.jsonl")
			if err := run(t, s, s.exportOptions(place)); err != nil {
				t.Fatal(err)
			}
			s.before.Store(nil)
			s.partitions(t, 4)
			raw, err := os.ReadFile(place)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range bytes.Lines(raw) {
				got = append(got, bare(t, line, true))
			}
			slices.Sort(got)
			equal(t, name, got, want)
		})
	}
}

// A server that says of every partition that it was split is no endless loop.
func TestExportOfEndlessSplits(t *testing.T) {
	s := start(t)
	s.make(t, plainCarts, 0)
	s.fill(t, 10)
	f := func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/docs"):
			w.Header().Set("X-Ms-Substatus", "1002")
			http.Error(w, "gone", http.StatusGone)
		case strings.HasSuffix(r.URL.Path, "/pkranges"):
			fmt.Fprint(w, `{"PartitionKeyRanges":[{"id":"0","minInclusive":"","maxExclusive":"FF","parents":["0"]}]}`)
		default:
			return false
		}
		return true
	}
	s.before.Store(&f)
	if err := Export(t.Context(), s.exportOptions(filepath.Join(t.TempDir(), "carts.jsonl"))); !errors.Is(err, ErrSplit) {
		t.Errorf("the error is %v", err)
	}
}

func mustClean(t *testing.T, raw []byte) []byte {
	t.Helper()
	out, err := clean(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// interrupted runs a transfer until it comes to its end, and returns how often it did not.
func interrupted(t *testing.T, state string, run func(before int) error) (times int) {
	t.Helper()
	var earlier []byte
	for {
		err := run(times)
		if err == nil {
			return times
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d interruptions: %v", times, err)
		}
		if times++; times > 200 {
			t.Fatal("it comes to no end")
		}
		now, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		if times%2 == 0 && earlier != nil {
			if err := os.WriteFile(state, earlier, 0o600); err != nil {
				t.Fatal(err)
			}
			earlier = nil
			continue
		}
		earlier = now
	}
}

// Rows that cannot be written go to a file with their reasons, and the others are written.
func TestRejectedRows(t *testing.T) {
	s := start(t)
	s.make(t, plainCarts, 12_000)
	dir := t.TempDir()
	place := filepath.Join(dir, "carts.jsonl")
	rows := []string{
		`{"id":"good","pk":"a"}`, `nonsense`, `{"id":7,"pk":"a"}`, `{"id":"list","pk":[1]}`, `{"id":"","pk":"a"}`, `[1]`, ``,
		`{"pk":"a","made":true}`, `{"id":"x/y","pk":"b"}`,
	}
	if err := os.WriteFile(place, []byte(strings.Join(rows, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	o := s.importOptions(t, place)
	o.Rejected = func(client.Name) string { return filepath.Join(dir, "rejected") }
	for range 2 { // the second time nothing changes, also not the id that was made
		o.Progress = &Progress{}
		if err := os.Remove(filepath.Join(dir, "rejected")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := Import(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := s.items(t, true); len(got) != 3 || o.Progress.Rejected.Load() != 5 {
			t.Errorf("%d items, %d rejected: %q", len(got), o.Progress.Rejected.Load(), got)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "rejected"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"line":2,"text":"nonsense"`, `"line":4,`, `"line":5,"item":{"id":""`, `"line":6,"item":[1]`, "400 Bad Request"} {
		if !strings.Contains(strings.ReplaceAll(string(raw), `"line":3,`, ""), want) {
			t.Errorf("the rejected rows lack %s:\n%s", want, raw)
		}
	}
	o.MaxRejected, o.Progress = 2, &Progress{}
	if err := Import(t.Context(), o); !errors.Is(err, ErrManyRejected) {
		t.Errorf("with a limit of two: %v", err)
	}
}

// An array that does not end where its file ends is no success, wherever the file was cut off.
func TestArrayWithoutItsEnd(t *testing.T) {
	s := start(t)
	s.make(t, plainCarts, 0)
	for text, want := range map[string]string{
		`[`:                                  "cut off",
		`[{"id":"1","pk":"a"}`:               "cut off",
		`[{"id":"1","pk":"a"},`:              "cut off",
		`[{"id":"1","pk":"a"},` + "\n":       "cut off",
		`[{"id":"1","pk":"a"},{"id":"2","p`:  "cut off",
		`[{"id":"1","pk":"a"}] [{"id":"2"}]`: "more after the end",
		`[{"id":"1","pk":"a"}]]`:             "more after the end",
		`[{"id":"1","pk":"a"}]` + "\n\n":     "",
	} {
		place := filepath.Join(t.TempDir(), "carts.json")
		if err := os.WriteFile(place, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Import(t.Context(), s.importOptions(t, place))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A file of which every line would be rejected is refused, with the reason.
func TestFilesWithoutRows(t *testing.T) {
	s := start(t)
	s.make(t, plainCarts, 0)
	for _, c := range []struct{ name, text, want string }{
		{"carts.json", "{\n  \"id\": \"1\",\n  \"pk\": \"a\"\n}\n", "over several lines"},
		{"carts.jsonl", "\ufeff{\"id\": \"1\",\r\n\"pk\": \"a\"}\r\n{\"id\": \"2\",\r\n\"pk\": \"a\"}", "over several lines"},
		{"carts.json", "{\"id\":\"1\",\"pk\":\"a\"}\n{\n\"id\":\"2\"\n}", ""},
		{"carts.json", "{\"id\":\n", ""},
		{"carts.jsonl.gz", "\x1f\x8b\b\x00", "compressed"},
		{"carts.csv", "\x1f\x8b\b\x00", "compressed"},
		{"carts.csv", "id,pk\n1,{\n", ""},
		{"carts.json", "", ""},
	} {
		place := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(place, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Import(t.Context(), s.importOptions(t, place))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}

// A server without bulk requests gets the items one by one.
func TestTargetWithoutBulk(t *testing.T) {
	from, to := start(t), start(t)
	from.make(t, plainCarts, 0)
	to.make(t, plainCarts, 0)
	want := from.fill(t, 500)
	place := filepath.Join(t.TempDir(), "carts.jsonl")
	if err := Export(t.Context(), from.exportOptions(place)); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	f := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Ms-Cosmos-Is-Batch-Request") == "" {
			return false
		}
		refused.Add(1)
		http.Error(w, "what is a batch?", http.StatusBadRequest)
		return true
	}
	to.before.Store(&f)
	if err := Import(t.Context(), to.importOptions(t, place)); err != nil {
		t.Fatal(err)
	}
	equal(t, "one by one", to.items(t, true), want)
	if n := refused.Load(); n == 0 || n > 8 {
		t.Errorf("%d bulk requests were refused, want a few", n)
	}
}

// An item keeps what is left of its time, or gets its full time again.
func TestTimeThatIsLeft(t *testing.T) {
	from, to := start(t), start(t)
	definition := `{"id":"carts","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":100,"expireAtPath":"/until"}`
	from.make(t, definition, 0)
	to.make(t, definition, 0)
	for _, s := range []*server{from, to} {
		if err := s.Clock().Set(time.Now().Add(time.Hour).Truncate(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := s.Clock().Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	until := from.Clock().Now().Add(1000 * time.Second).Unix()
	for _, item := range []string{
		`{"id":"default","pk":"a"}`, `{"id":"own","pk":"a","ttl":50}`, `{"id":"short","pk":"a","ttl":20}`, `{"id":"ever","pk":"a","ttl":-1}`,
		fmt.Sprintf(`{"id":"named","pk":"a","until":%d,"ttl":5}`, until),
	} {
		from.put(t, item)
	}
	place := filepath.Join(t.TempDir(), "carts.jsonl")
	if err := Export(t.Context(), from.exportOptions(place)); err != nil {
		t.Fatal(err)
	}
	left := func(mode TTL) map[string]int {
		o := to.importOptions(t, place)
		o.TTL = mode
		if err := Import(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, text := range to.items(t, true) {
			var item struct {
				ID  string
				TTL int
			}
			if err := json.Unmarshal([]byte(text), &item); err != nil {
				t.Fatal(err)
			}
			got[item.ID] = cmp.Or(item.TTL, 0)
		}
		return got
	}
	if err := to.Clock().Advance(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	// The last write was some time in its second, so up to one more second is left.
	if got, want := left(Remaining), map[string]int{"default": 71, "own": 21, "ever": -1, "named": 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("what is left is %v, want %v", got, want)
	}
	if got, want := left(Full), map[string]int{"default": 0, "own": 50, "short": 20, "ever": -1, "named": 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("in full it is %v, want %v", got, want)
	}
	// An export may say it, too.
	if err := from.Clock().Advance(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	o := from.exportOptions(place + "2")
	o.TTL = Remaining
	if err := Export(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(place + "2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"id":"default","pk":"a","ttl":71}`, `{"id":"own","pk":"a","ttl":21}`, `"ttl":-1}`} {
		if !strings.Contains(string(raw), want) || strings.Contains(string(raw), "short") {
			t.Errorf("the export lacks %s, or has what has expired:\n%s", want, raw)
		}
	}
}
