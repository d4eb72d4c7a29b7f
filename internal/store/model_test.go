// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// modelRounds is how many times the histories of each kind are run, times MAYFLY_LONG. With
// MAYFLY_LONG=100 that is a million steps of partitions, and a million writes in them.
const modelRounds = 1

// Random histories on one partition, compared with its twin: every answer, and after each
// restart the rows and counters.
func TestPartitionAgainstTwin(t *testing.T) {
	const unique = `,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]},{"paths":["/v"]}]}`
	for name, k := range map[string]kind{
		"the only partition": {}, "one of five": {throughput: catalog.Throughput{Manual: 25_100}, index: 3}, "unique keys": {properties: unique},
	} {
		t.Run(name, func(t *testing.T) {
			for range modelRounds * kvtest.LongFactor(t) {
				rapid.Check(t, func(t *rapid.T) { runHistory(t, k) })
			}
		})
	}
}

// kind is the kind of partition of a history.
type kind struct {
	throughput catalog.Throughput
	index      int
	properties string // of the container
}

// definition is the container's definition under the given settings.
func (k kind) definition(s twinSettings) string {
	return `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}` + s.members() + k.properties + "}"
}

func runHistory(t *rapid.T, k kind) {
	h := newHistory(t, k)
	t.Repeat(map[string]func(*rapid.T){
		"write":     h.writeOne,
		"rewrite":   h.writeOne, // twice, since it has many variants
		"group":     h.writeGroup,
		"bundle":    h.writeBundles,
		"race":      h.purgeBesideWrites,
		"read":      h.readOne,
		"undelete":  h.undelete,
		"slide":     h.slide,
		"slides":    h.slideBesideWrites,
		"list":      h.listPage,
		"settings":  h.changeSettings,
		"purge":     h.purge,
		"purge all": h.purgeAll,
		"poll":      h.poll,
		"advance":   h.advance,
		"idle":      func(*rapid.T) { h.f.p.ReleaseIdle() },
		"restart":   h.restart,
		"crash":     h.restartUnderNewSettings,
		"transient": h.comeAndGo,
		"":          h.checkAll,
	})
	h.restart(t)
	h.checkAll(t)
	h.pollAll(t)
	h.f.p.Close()
	if h.f.failures.Load() != 0 || h.f.db.open.Load() != 0 {
		t.Errorf("%d failures, %d snapshots left open", h.f.failures.Load(), h.f.db.open.Load())
	}
}

// history is a partition, its twin and the lists under way.
type history struct {
	kind  kind
	f     *fixture
	twin  *twin
	keys  []string // partition keys of this partition
	lists map[string]uint64

	cursor    EventKey // of a reader of events
	lastEvent EventKey // the last event
	marks     meta     // as they were last seen
}

var modelIDs = []string{"a", "b", "c", "d"}

func newHistory(t *rapid.T, k kind) *history {
	h := &history{kind: k, lists: map[string]uint64{}}
	s := setup{definition: k.definition(twinSettings{}), nowMs: startMs, throughput: k.throughput, index: k.index}
	h.f = makeFixture(t, kvtest.NewModel(), s)
	for i := 0; len(h.keys) < 2; i++ { // one in five belongs to the partition
		if k := fmt.Sprint("k", i); h.f.container.Partition(h.f.key(k, "").EPK) == s.index {
			h.keys = append(h.keys, k)
		}
	}
	h.twin = newTwin(h.f.container, s.index)
	h.twin.unique = k.properties != ""
	return h
}

// draw draws a write. Its conditions often hold.
func (h *history) draw(t *rapid.T) twinWrite {
	w := twinWrite{
		op:  rapid.SampledFrom([]Op{Create, Upsert, Upsert, Upsert, Replace, Replace, Delete, Undelete}).Draw(t, "op"),
		pk:  rapid.SampledFrom(h.keys).Draw(t, "pk"),
		id:  rapid.SampledFrom(modelIDs).Draw(t, "id"),
		ttl: rapid.SampledFrom([]string{"", "", "-1", "1", "2", "3", "2147483647", "0", "-2", "null"}).Draw(t, "ttl"),
	}
	if rapid.IntRange(0, 3).Draw(t, "with a deadline") == 0 {
		w.at = h.twin.nowMs/1000 + rapid.Int64Range(-2, 4).Draw(t, "at")
	}
	if w.op == Replace {
		w.newID = rapid.SampledFrom(append([]string{""}, modelIDs...)).Draw(t, "new id")
	}
	if rapid.Bool().Draw(t, "with more") {
		w.more = `"` + strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "more")) + `"`
	}
	if h.twin.unique {
		w.u = rapid.SampledFrom([]string{"1", "2", "3", `"x"`, "[1]"}).Draw(t, "u")
		w.v = rapid.SampledFrom([]string{"1", "2", "3", "4", "null"}).Draw(t, "v")
	}
	etag := rapid.Custom(func(t *rapid.T) string {
		if i := h.twin.items[w.name()]; i != nil && rapid.IntRange(0, 2).Draw(t, "current") > 0 {
			return i.etag
		}
		return rapid.SampledFrom([]string{`"00000000-0000-0000-0000-000000000000"`, "*"}).Draw(t, "etag")
	})
	switch rapid.IntRange(0, 5).Draw(t, "condition") {
	case 0:
		w.ifMatch = etag.Draw(t, "ifMatch")
	case 1:
		w.ifNoneMatch = etag.Draw(t, "ifNoneMatch")
	}
	return w
}

// asked is the write for the partition.
func (h *history) asked(t rapid.TB, w twinWrite) Write {
	r := Write{Op: w.op, Key: h.f.key(w.pk, w.id), NewID: w.newID, IfMatch: w.ifMatch, IfNoneMatch: w.ifNoneMatch}
	if w.op == Undelete {
		r.Change = h.changed(w)
	} else if w.op != Delete {
		var err error
		if r.Item, err = value.ParseObject([]byte(w.text())); err != nil {
			t.Fatalf("%s: %v", w.text(), err)
		}
	}
	return r
}

func (h *history) writeOne(t *rapid.T) {
	w := h.draw(t)
	got, err := h.f.write(h.asked(t, w))
	h.compare(t, w, got, err)
}

// compare does a write on the twin too, and compares the outcome.
func (h *history) compare(t *rapid.T, w twinWrite, got Result, err error) {
	before := h.twin.items[w.name()]
	want := h.twin.write(w)
	var bad *TTLError
	var late *DeadlineError
	switch {
	case want.past:
		if !errors.As(err, &late) || late.NowMs != h.twin.nowMs {
			t.Fatalf("%+v: got %v, want the deadline refused", w, err)
		}
		return
	case want.badTTL:
		if !errors.As(err, &bad) || bad.Value != w.ttl {
			t.Fatalf("%+v: got %v, want the ttl refused", w, err)
		}
		return
	case !errors.Is(err, want.err) || want.err == nil && err != nil:
		t.Fatalf("%+v: got %v, want %v", w, err, want.err)
	case want.err != nil:
		return
	}
	if string(got.Body) != want.body || got.Created != want.created || got.LSN != want.lsn || got.ETag != want.etag {
		t.Fatalf("%+v:\ngot  %+v, %s\nwant %+v", w, got, got.Body, want)
	}
	work := [2]int{len(want.body), 0}
	if w.op == Delete {
		work = [2]int{0, len(before.body)}
	} else if !want.created {
		work[1] = len(before.body)
	}
	if w.op != Delete && h.twin.etags[got.ETag] {
		t.Fatalf("%+v: etag %s is given twice", w, got.ETag)
	}
	h.twin.etags[got.ETag] = true
	if (got.Work.Bytes != work[0]) || got.Work.OldBytes != work[1] {
		t.Fatalf("%+v: got work %+v, want bytes and old bytes %v", w, got.Work, work)
	}
}

// writeGroup lets several writes wait while a first one is committed, so that they become
// one group, in their order.
func (h *history) writeGroup(t *rapid.T) { h.writeBeside(t, func() func() { return func() {} }) }

// writeBeside is writeGroup with a task that begins while the writes wait, and is waited
// for at the end.
func (h *history) writeBeside(t *rapid.T, begin func() (wait func())) {
	writes := make([]twinWrite, rapid.IntRange(1, 8).Draw(t, "writes"))
	for i := range writes {
		writes[i] = h.draw(t)
		if h.refusedUnseen(writes[i]) {
			writes[i].ttl = ""
		}
	}
	g := h.f.db.holdAfterApplying()
	head := twinWrite{op: Upsert, pk: h.keys[0], id: "head", u: `"head"`, v: `"head"`}
	first := h.f.start(h.asked(t, head))
	<-g.entered
	done := make([]<-chan answered, len(writes))
	for i, w := range writes {
		done[i] = h.f.start(h.asked(t, w))
		h.f.queued(i + 1)
	}
	wait := begin()
	h.f.db.stopPlaying()
	g.open <- struct{}{}
	a := <-first
	h.compare(t, head, a.result, a.err)
	for i, w := range writes {
		a := <-done[i]
		h.compare(t, w, a.result, a.err)
	}
	wait()
}

// refusedUnseen reports whether a write is refused for its ttl before it is queued.
func (h *history) refusedUnseen(w twinWrite) bool {
	return w.op != Delete && w.op != Undelete && h.twin.settings.ttl != 0 && (w.ttl == "0" || w.ttl == "-2" || w.ttl == "null")
}

func (h *history) readOne(t *rapid.T) {
	pk, id := rapid.SampledFrom(h.keys).Draw(t, "pk"), rapid.SampledFrom(modelIDs).Draw(t, "id")
	i := h.twin.items[pk+"/"+id]
	condition := ""
	if i != nil && rapid.Bool().Draw(t, "if none match") {
		condition = i.etag
	}
	item, err := h.f.p.Read(nil, h.f.key(pk, id), condition, h.twin.nowMs)
	if item.LSN != h.twin.lsn {
		t.Fatalf("read of %s/%s: got lsn %d, want %d", pk, id, item.LSN, h.twin.lsn)
	}
	switch {
	case !h.twin.isLive(i):
		if !errors.Is(err, ErrNotFound) || item.Body != nil || item.ETag != "" {
			t.Fatalf("read of %s/%s: got %s, %v, want ErrNotFound", pk, id, item.Body, err)
		}
	case condition != "":
		if !errors.Is(err, ErrNotModified) || item.Body != nil || item.ETag != i.etag || item.ItemLSN != i.lsn {
			t.Fatalf("read of %s/%s: got %+v, %v, want ErrNotModified", pk, id, item, err)
		}
	case err != nil || string(item.Body) != i.body || item.ETag != i.etag || item.ItemLSN != i.lsn:
		t.Fatalf("read of %s/%s: got %+v, %s, %v, want %+v", pk, id, item, item.Body, err, i)
	}
}

// undelete brings back an item, if it has expired and was not purged. It also looks for it
// in the list of those that can come back.
func (h *history) undelete(t *rapid.T) {
	w := h.draw(t)
	w.op, w.newID, w.ifMatch, w.ifNoneMatch = Undelete, "", "", ""
	if i := h.twin.items[w.name()]; i != nil { // it keeps its unique keys
		w.u, w.v = i.u, i.v
	}
	items, more, err := h.f.p.Undeletable(context.Background(), 100, h.twin.nowMs)
	listed := 0
	for _, i := range h.twin.items {
		if !h.twin.isLive(i) {
			listed++
		}
	}
	if err != nil || more || len(items) != listed {
		t.Fatalf("undeletable: got %+v, %v, %v, want %d", items, more, err, listed)
	}
	got, err := h.f.write(h.asked(t, w))
	h.compare(t, w, got, err)
}

// slide reads an item and restarts its countdown.
func (h *history) slide(t *rapid.T) {
	pk, id, percent := h.drawSlide(t)
	h.compareSlide(t, pk, id, percent, h.slideOne(t, pk, id, percent))
}

func (h *history) drawSlide(t *rapid.T) (pk, id string, percent int) {
	percents := rapid.SampledFrom([]int{0, 0, 10, 50, 99})
	return rapid.SampledFrom(h.keys).Draw(t, "pk"), rapid.SampledFrom(modelIDs).Draw(t, "id"), percents.Draw(t, "percent")
}

func (h *history) slideOne(t rapid.TB, pk, id string, percent int) bool {
	key := h.f.key(pk, id)
	item, err := h.f.p.Read(nil, key, "", h.twin.nowMs)
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatalf("read of %s/%s: %v", pk, id, err)
	}
	return h.f.p.Slide(&item, key, percent, h.twin.nowMs) > 0
}

// compareSlide does a touch on the twin too.
func (h *history) compareSlide(t *rapid.T, pk, id string, percent int, got bool) {
	i := h.twin.items[pk+"/"+id]
	if want := i != nil && h.twin.slide(i, int64(percent)); got != want {
		t.Fatalf("sliding of %s/%s after %d%%: got %v, want %v: %+v", pk, id, percent, got, want, i)
	}
}

// slideBesideWrites reads an item before a group of writes, and restarts its countdown after
// them, in the same group.
func (h *history) slideBesideWrites(t *rapid.T) {
	pk, id, percent := h.drawSlide(t)
	before, slid := h.twin.items[pk+"/"+id], false
	if before != nil && !h.twin.copy().slide(before, int64(percent)) {
		return // it would not get to the queue
	}
	h.writeBeside(t, func() func() {
		over := make(chan struct{})
		waiting := len(h.f.p.queue)
		go func() {
			defer close(over)
			slid = h.slideOne(t, pk, id, percent)
		}()
		if before != nil {
			h.f.queued(waiting + 1)
		}
		return func() { <-over }
	})
	if before != nil {
		h.compareSlide(t, pk, id, percent, slid)
	}
}

// listPage reads the next page of a list under way, or the first of a new one.
func (h *history) listPage(t *rapid.T) {
	pk := rapid.SampledFrom(append([]string{""}, h.keys...)).Draw(t, "list")
	q := List{
		After:    h.lists[pk],
		MaxItems: rapid.IntRange(1, 9).Draw(t, "items"),
		MaxBytes: rapid.SampledFrom([]int{1, 400, 800, 1 << 20}).Draw(t, "bytes"),
	}
	if pk != "" {
		k := h.f.key(pk, "")
		q.Within = &LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}
	}
	page, err := h.f.p.List(context.Background(), q, h.twin.nowMs)
	if err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	if err := h.twin.checkPage(pk, q, page); err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	h.lists[pk] = page.Last
	if !page.More {
		delete(h.lists, pk)
	}
}

func (h *history) advance(t *rapid.T) {
	ms := rapid.Int64Range(1, 3500).Draw(t, "ms")
	h.f.advance(time.Duration(ms) * time.Millisecond)
	h.twin.nowMs += ms
}

// comeAndGo writes an item and deletes it before any check.
func (h *history) comeAndGo(t *rapid.T) {
	for _, op := range []Op{Upsert, Delete} {
		w := twinWrite{op: op, pk: h.keys[1], id: "transient", u: `"transient"`, v: `"transient"`}
		got, err := h.f.write(h.asked(t, w))
		h.compare(t, w, got, err)
	}
}

// restart closes the partition, checks its rows and opens it again.
func (h *history) restart(t *rapid.T) {
	h.f.p.Close()
	if found := h.f.problems(); len(found) > 0 {
		t.Fatalf("check: got %q, want no problem", found)
	}
	h.compareCounters(t)
	h.checkDue(t)
	h.f.open()
}

func (h *history) compareCounters(t *rapid.T) {
	want := h.twin.buckets()
	x := partitionPrefix(h.f.container.RID, h.f.index)
	snap, err := h.f.db.Snapshot()
	h.f.must(err)
	defer snap.Close()
	lower, upper := x.space(statSpace)
	for e, err := range snap.Scan(lower, upper, kv.Forward) {
		h.f.must(err)
		k := bucketKey{class(e.Key[prefixBytes+1]), level(e.Key[prefixBytes+2]), int64(binary.BigEndian.Uint64(e.Key[prefixBytes+3:]))}
		got, err := decodeBucket(e)
		h.f.must(err)
		if w := want[k]; got.Amount != w.Amount || got.firstLSN > w.firstLSN {
			t.Fatalf("counter %c %c %d: got %+v, want %+v", k.class, k.level, k.start, got, w)
		}
		delete(want, k)
	}
	if len(want) > 0 {
		t.Fatalf("counters are missing: %v", want)
	}
}
