// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
)

// Random histories, with readers of both modes of the change feed that resume with pages of
// any size. The reader of latest versions sees every live item as it is. The reader of all
// versions sees every change of each item, once and in order.
func TestChangeFeedAgainstTwin(t *testing.T) {
	for range modelRounds * kvtest.LongFactor(t) {
		rapid.Check(t, runFeedHistory)
	}
}

func runFeedHistory(t *rapid.T) {
	h := &feedHistory{items: map[string]*feedItem{}, changes: map[string][]string{}, ttl: 5, inFeed: rapid.Bool().Draw(t, "touches in the feed")}
	h.f = makeFixture(t, kvtest.NewModel(), setup{definition: h.definition(), nowMs: startMs})
	defer func() { h.f.p.Close() }()
	for range 2 {
		h.latest = append(h.latest, &latestReader{start: ChangeStart{Beginning: true}, seen: map[string]string{}})
		h.all = append(h.all, h.newReader())
	}
	t.Repeat(map[string]func(*rapid.T){
		"write":   func(t *rapid.T) { h.f.t = t; h.write(t) },
		"rewrite": func(t *rapid.T) { h.f.t = t; h.write(t) },
		"bundle":  func(t *rapid.T) { h.f.t = t; h.writeAll(t) },
		"advance": func(t *rapid.T) {
			h.f.t = t
			h.advance(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
		},
		"slide":    func(t *rapid.T) { h.f.t = t; h.slide(t) },
		"settings": func(t *rapid.T) { h.f.t = t; h.changeTTL(t) },
		"purge":    func(t *rapid.T) { h.f.t = t; h.purge(rapid.IntRange(1, 3).Draw(t, "items")) },
		"restart":  func(t *rapid.T) { h.f.t = t; h.f.reopen(); h.f.checkClean() },
		"latest":   func(t *rapid.T) { h.f.t = t; h.readLatest(t) },
		"all":      func(t *rapid.T) { h.f.t = t; h.readAll(t) },
		"now":      func(t *rapid.T) { h.f.t = t; h.all[1] = h.newReader() },
		"retire":   func(t *rapid.T) { h.f.t = t; h.retire(t) },
	})
	h.f.t = t
	h.readLatest(t)
	h.readAll(t)
	h.f.checkClean()
}

// feedHistory is a partition, and the changes that its feed should return.
type feedHistory struct {
	f       *fixture
	ttl     int // the container's default; 0 for none
	inFeed  bool
	items   map[string]*feedItem
	changes map[string][]string // the changes of each item
	writes  int
	latest  []*latestReader
	all     []*versionsReader
}

type feedItem struct {
	body      string // as written, without the system properties
	ttl       int    // its own; 0 for none
	writtenMs int64  // when it was written, or touched
	touches   int
}

// latestReader has seen these versions.
type latestReader struct {
	start ChangeStart
	seen  map[string]string
}

// versionsReader has seen so many changes of each item.
type versionsReader struct {
	start ChangeStart
	seen  map[string]int
}

const feedRetention = 10 * time.Minute

func (h *feedHistory) definition() string {
	text := `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"changeFeedPolicy":{"retentionDuration":10}`
	if h.ttl != 0 {
		text += fmt.Sprintf(`,"defaultTtl":%d`, h.ttl)
	}
	if h.inFeed {
		text += `,"slidingTtlInChangeFeed":true`
	}
	return text + "}"
}

// slide restarts the countdown of an item. The log does not have that, and the feed of latest
// versions only if the container says so.
func (h *feedHistory) slide(t *rapid.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "id")
	item, err := h.f.read(id)
	if h.items[id] == nil {
		if !errors.Is(err, ErrNotFound) {
			t.Fatalf("read of %q: %v, want ErrNotFound", id, err)
		}
		return
	}
	h.f.must(err)
	if h.f.p.Slide(&item, h.f.key("k", id), 0, h.f.clock.Now()) > 0 {
		h.items[id].writtenMs = h.f.clock.Now()
		if h.inFeed {
			h.items[id].touches++
		}
	}
}

// settle lets items expire that have reached their deadline. Logged changes stay.
func (h *feedHistory) settle() {
	for id, i := range h.items {
		seconds := h.ttl
		if i.ttl != 0 && h.ttl != 0 {
			seconds = i.ttl
		}
		if seconds > 0 && i.writtenMs+int64(seconds)*1000 <= h.f.clock.Now() {
			h.changes[id] = append(h.changes[id], "expired")
			delete(h.items, id)
		}
	}
}

// drawWrite returns a write, and a function that checks its outcome.
func (h *feedHistory) drawWrite(t *rapid.T) (Write, func() error) {
	ids := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	id := ids.Draw(t, "id")
	op := rapid.SampledFrom([]Op{Create, Upsert, Upsert, Replace, Delete}).Draw(t, "op")
	if op == Delete {
		return Write{Op: Delete, Key: h.f.key("k", id)}, func() error {
			if h.items[id] == nil {
				return ErrNotFound
			}
			h.changes[id] = append(h.changes[id], "delete")
			delete(h.items, id)
			return nil
		}
	}
	h.writes++
	item := &feedItem{ttl: rapid.SampledFrom([]int{0, 0, -1, 2, 7}).Draw(t, "ttl"), writtenMs: h.f.clock.Now()}
	properties := fmt.Sprintf(`"n":%d`, h.writes)
	if item.ttl != 0 {
		properties += fmt.Sprintf(`,"ttl":%d`, item.ttl)
	}
	item.body = fmt.Sprint(h.writes)
	newID := id
	if op == Replace {
		newID = ids.Draw(t, "new id")
	}
	w := h.f.item(op, newID, properties)
	w.Key.ID, w.NewID = id, newID
	return w, func() error {
		old := h.items[id]
		switch {
		case old != nil && newID != id && h.items[newID] != nil:
			return ErrExists
		case old != nil && op == Create:
			return ErrExists
		case old == nil && op == Replace:
			return ErrNotFound
		case old != nil:
			h.changes[newID] = append(h.changes[newID], "replace "+item.body)
			delete(h.items, id)
		default:
			h.changes[id] = append(h.changes[id], "create "+item.body)
		}
		h.items[newID] = item
		return nil
	}
}

func (h *feedHistory) write(t *rapid.T) {
	w, do := h.drawWrite(t)
	_, err := h.f.write(w)
	if want := do(); !errors.Is(err, want) {
		t.Fatalf("write %v %s: %v, want %v", w.Op, w.Key.ID, err, want)
	}
}

// writeAll does several writes, or none.
func (h *feedHistory) writeAll(t *rapid.T) {
	var ops []Write
	items, changes := map[string]*feedItem{}, map[string][]string{}
	for id, i := range h.items {
		items[id] = i
	}
	for id, list := range h.changes {
		changes[id] = slices.Clone(list)
	}
	var want error
	for range rapid.IntRange(1, 4).Draw(t, "ops") {
		w, do := h.drawWrite(t)
		ops = append(ops, w)
		if err := do(); want == nil {
			want = err
		}
	}
	if want != nil {
		h.items, h.changes = items, changes
	}
	if _, err := h.f.p.WriteAll(context.Background(), ops); !errors.Is(err, want) {
		t.Fatalf("write all: %v, want %v", err, want)
	}
}

func (h *feedHistory) advance(d time.Duration) {
	h.f.advance(d)
	h.settle()
}

func (h *feedHistory) changeTTL(t *rapid.T) {
	h.ttl = rapid.SampledFrom([]int{0, -1, 3, 6}).Draw(t, "default")
	h.f.reconfigure(h.definition())
	h.settle()
}

func (h *feedHistory) purge(items int) {
	_, err := h.f.p.Purge(context.Background(), Purge{MaxItems: items, Cause: ru.Sweep})
	h.f.must(err)
}

// page reads a page, and checks what holds for all pages.
func (h *feedHistory) page(t *rapid.T, q Changes) (ChangePage, []feedChange) {
	q.MaxItems, q.MaxBytes = rapid.IntRange(1, 6).Draw(t, "page"), 1<<20
	page, err := h.f.p.Changes(context.Background(), q, h.f.clock.Now())
	h.f.must(err)
	var changes []feedChange
	h.f.must(json.Unmarshal([]byte("["+string(page.Items)+"]"), &changes))
	if len(changes) != page.Count || page.Position > page.LSN || page.Position < q.Start.After || !page.More && page.Position != page.LSN {
		t.Fatalf("a page of %d changes after %d: %+v", len(changes), q.Start.After, page)
	}
	return page, changes
}

// readLatest reads the new changes in latest version mode.
func (h *feedHistory) readLatest(t *rapid.T) {
	r := rapid.SampledFrom(h.latest).Draw(t, "reader")
	for more := true; more; {
		page, items := h.page(t, Changes{Start: r.start})
		after := r.start.After
		for i, item := range items {
			lsn, id, n := item.LSN, item.ID, fmt.Sprint(item.N)
			if lsn <= after && (i == 0 || lsn < after) || lsn > page.Position || lsn <= r.start.After {
				t.Fatalf("lsn %d comes after %d in a page from %d to %d", lsn, after, r.start.After, page.Position)
			}
			if h.items[id] == nil || h.items[id].body != n {
				t.Fatalf("the feed has %s of %q, which is %+v", n, id, h.items[id])
			}
			after = lsn
			if n = fmt.Sprint(n, " ", h.items[id].touches); r.seen[id] == n {
				t.Fatalf("the feed has %s of %q again", n, id)
			}
			r.seen[id] = n
		}
		r.start, more = ChangeStart{After: page.Position}, page.More
	}
	for id, i := range h.items {
		if n := fmt.Sprint(i.body, " ", i.touches); r.seen[id] != n {
			t.Fatalf("the reader has seen %q of %q, which is %q", r.seen[id], id, n)
		}
	}
}

// newReader begins now, after all changes so far.
func (h *feedHistory) newReader() *versionsReader {
	h.f.must(h.f.p.LogExpired(context.Background(), h.f.clock.Now()))
	page, err := h.f.p.Changes(context.Background(), Changes{AllVersions: true, Start: ChangeStart{Now: true}, MaxItems: 1}, h.f.clock.Now())
	h.f.must(err)
	r := &versionsReader{ChangeStart{After: page.Position}, map[string]int{}}
	for id, changes := range h.changes {
		r.seen[id] = len(changes)
	}
	return r
}

// readAll reads the new changes in the mode of all versions.
func (h *feedHistory) readAll(t *rapid.T) {
	h.readAllBy(t, rapid.SampledFrom(h.all).Draw(t, "reader"))
}

func (h *feedHistory) readAllBy(t *rapid.T, r *versionsReader) {
	h.f.must(h.f.p.LogExpired(context.Background(), h.f.clock.Now()))
	for more := true; more; {
		page, changes := h.page(t, Changes{AllVersions: true, Start: r.start})
		for _, c := range changes {
			id, what := c.what()
			if changes := h.changes[id]; r.seen[id] >= len(changes) || changes[r.seen[id]] != what {
				t.Fatalf("the feed has %q of %q, whose changes are %q, of which it had returned %d", what, id, changes, r.seen[id])
			}
			r.seen[id]++
		}
		r.start, more = ChangeStart{After: page.Position}, page.More
	}
	for id, changes := range h.changes {
		if r.seen[id] != len(changes) {
			t.Fatalf("of %q, whose changes are %q, only %d were returned", id, changes, r.seen[id])
		}
	}
}

// feedVersion is an item in the feed.
type feedVersion struct {
	ID  string
	N   int
	LSN uint64 `json:"_lsn"`
}

// feedChange is a change in the feed of either mode.
type feedChange struct {
	feedVersion
	Current  feedVersion
	Metadata struct {
		OperationType, ID string
		TimeToLiveExpired bool
	}
}

// what returns the change and the item's id.
func (c *feedChange) what() (id, what string) {
	switch {
	case c.Metadata.TimeToLiveExpired:
		return c.Metadata.ID, "expired"
	case c.Metadata.OperationType == "delete":
		return c.Metadata.ID, "delete"
	}
	return c.Current.ID, fmt.Sprintf("%s %d", c.Metadata.OperationType, c.Current.N)
}

// retire lets the log become too old, after all readers have read it, and purges it.
func (h *feedHistory) retire(t *rapid.T) {
	for _, r := range slices.Clone(h.all) {
		h.readAllBy(t, r)
	}
	h.advance(feedRetention + 2*logPruneEveryMs*time.Millisecond)
	h.purge(1000)
	for key := range h.f.rows() {
		row := strings.TrimPrefix(key, string(h.f.p.prefix[:]))
		if row[0] == logSpace && !h.recent(key) {
			t.Fatalf("the log has %x still", key)
		}
	}
}

// recent reports whether a row of the log is of the last group.
func (h *feedHistory) recent(key string) bool {
	row, err := parseLogRow(kv.Entry{Key: []byte(key), Value: []byte(h.f.rows()[key])})
	h.f.must(err)
	return row.atMs > h.f.clock.Now()-feedRetention.Milliseconds()
}
