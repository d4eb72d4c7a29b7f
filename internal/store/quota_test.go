// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

// quotaFixture has room for n items like sized's, in the partition or in each logical
// partition.
func quotaFixture(t *testing.T, bound func(bytes int64) Quotas, n int64) *fixture {
	t.Helper()
	probe := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("-1"), nowMs: startMs})
	size := int64(len(probe.sized("k", "probe", 10).Body))
	probe.p.Close()
	f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("-1"), nowMs: startMs, quotas: bound(n * size)})
	t.Cleanup(func() { f.p.Close() })
	return f
}

func inPartition(bytes int64) Quotas { return Quotas{PartitionBytes: bytes} }
func inLogical(bytes int64) Quotas   { return Quotas{LogicalBytes: bytes} }

// sizedWrite is a write of an item whose id has five characters, so that all items whose
// ttl has two digits have the same size.
func (f *fixture) sizedWrite(op Op, pk, id string, ttl int) Write {
	f.t.Helper()
	text := fmt.Sprintf(`{"id":"%5s","pk":%q,"ttl":%d}`, id, pk, ttl)
	o, err := value.ParseObject([]byte(text))
	f.must(err)
	return Write{Op: op, Key: f.key(pk, fmt.Sprintf("%5s", id)), Item: o}
}

func (f *fixture) sized(pk, id string, ttl int) Result {
	f.t.Helper()
	r, err := f.write(f.sizedWrite(Create, pk, id, ttl))
	f.must(err)
	return r
}

// Scenario 59: a full partition, half of it expired and not purged, has room for as much as
// has expired. So has a logical partition.
func TestScenario59ExpiredItemsTakeNoRoom(t *testing.T) {
	const n = 10
	for name, c := range map[string]struct {
		bound func(int64) Quotas
		want  error
	}{"partition": {inPartition, ErrPartitionFull}, "logical partition": {inLogical, ErrLogicalFull}} {
		t.Run(name, func(t *testing.T) {
			f := quotaFixture(t, c.bound, n)
			for i := range n {
				f.sized("k", fmt.Sprint(i), []int{10, 90}[i%2])
			}
			full := func(when string) {
				t.Helper()
				if _, err := f.write(f.sizedWrite(Create, "k", "more", 90)); !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want %v", when, err, c.want)
				}
			}
			full("with as much as it may hold")
			f.advance(11 * time.Second) // the second in which they expired has ended
			for i := range n / 2 {
				f.sized("k", fmt.Sprint("n", i), 90)
			}
			full("with new items in place of expired ones")
			if u, err := f.p.Usage(f.clock.Now()); err != nil || u.Live.Items != n || u.Expired.Items != n/2 {
				t.Errorf("got %+v, %v, want %d live and %d expired", u, err, n, n/2)
			}
			f.checkClean()
		})
	}
}

// An item that replaces an expired one counts with its full size.
func TestQuotaCountsWritesOverExpiredItems(t *testing.T) {
	const n = 10
	for name, c := range map[string]struct {
		bound func(int64) Quotas
		want  error
	}{"partition": {inPartition, ErrPartitionFull}, "logical partition": {inLogical, ErrLogicalFull}} {
		t.Run(name, func(t *testing.T) {
			f := quotaFixture(t, c.bound, n)
			for i := range n {
				f.sized("k", fmt.Sprint(i), 10)
			}
			f.advance(12 * time.Second)
			for i := range n {
				f.sized("k", fmt.Sprint("n", i), 90)
			}
			for i := range n {
				if _, err := f.write(f.sizedWrite(Create, "k", fmt.Sprint(i), 90)); !errors.Is(err, c.want) {
					t.Errorf("over expired item %d in a full one: got %v, want %v", i, err, c.want)
				}
			}
			if u, err := f.p.Usage(f.clock.Now()); err != nil || u.Live.Items != n {
				t.Errorf("got %+v, %v, want %d live", u, err, n)
			}
			// A delete makes room for one item.
			_, err := f.write(Write{Op: Delete, Key: f.sizedWrite(Create, "k", "n0", 90).Key})
			f.must(err)
			f.sized("k", "0", 90)
			if _, err := f.write(f.sizedWrite(Create, "k", "1", 90)); !errors.Is(err, c.want) {
				t.Errorf("after one was deleted and one written: got %v, want %v", err, c.want)
			}
			f.checkClean()
		})
	}
}

// A write that does not make an item larger is never refused, however little room there is.
// Other logical partitions have their own room.
func TestQuotaRefusesNothingThatShrinks(t *testing.T) {
	for name, bound := range map[string]func(int64) Quotas{"partition": inPartition, "logical partition": inLogical} {
		t.Run(name, func(t *testing.T) {
			f := quotaFixture(t, bound, 3)
			for i := range 3 {
				f.sized("k", fmt.Sprint(i), 90)
			}
			_, elsewhere := f.write(f.sizedWrite(Create, "j", "0", 90))
			if want := f.quotas.PartitionBytes == 0; (elsewhere == nil) != want {
				t.Errorf("another partition key: got %v, want room %v", elsewhere, want)
			}
			f.quotas = bound(1) // as if the quota had been lowered
			f.reopen()
			for _, op := range []Op{Replace, Upsert} {
				if _, err := f.write(f.sizedWrite(op, "k", "1", 80)); err != nil {
					t.Errorf("a rewrite of the same size: %v", err)
				}
			}
			smaller, err := value.ParseObject([]byte(`{"id":"    1","pk":"k"}`))
			f.must(err)
			if _, err := f.write(Write{Op: Replace, Key: f.sizedWrite(Replace, "k", "1", 90).Key, Item: smaller}); err != nil {
				t.Errorf("a smaller rewrite: %v", err)
			}
			if _, err := f.write(f.sizedWrite(Replace, "k", "1", 90)); !errors.Is(err, ErrLogicalFull) && !errors.Is(err, ErrPartitionFull) {
				t.Errorf("a larger rewrite: got %v, want it refused", err)
			}
			if _, err := f.write(Write{Op: Delete, Key: f.sizedWrite(Replace, "k", "1", 90).Key}); err != nil {
				t.Errorf("a delete: %v", err)
			}
			f.checkClean()
		})
	}
}

// The tally of a full logical partition stays right while its expired items are purged.
func TestQuotaWhileExpiredItemsArePurged(t *testing.T) {
	const n = 8
	f := quotaFixture(t, inLogical, n)
	for i := range n {
		f.sized("k", fmt.Sprint(i), 10)
	}
	f.advance(12 * time.Second)
	f.sized("k", "n0", 90) // the expired bytes are counted
	done, err := f.p.Purge(context.Background(), Purge{MaxItems: n / 2})
	f.must(err)
	if done.Items != n/2 {
		t.Fatalf("purged %d items, want %d", done.Items, n/2)
	}
	for i := 1; i < n; i++ {
		f.sized("k", fmt.Sprint("n", i), 90)
	}
	if _, err := f.write(f.sizedWrite(Create, "k", "more", 90)); !errors.Is(err, ErrLogicalFull) {
		t.Errorf("with %d live: got %v, want ErrLogicalFull", n, err)
	}
	f.purgeAll()
	if _, err := f.write(f.sizedWrite(Create, "k", "more", 90)); !errors.Is(err, ErrLogicalFull) {
		t.Errorf("after a purge: got %v, want ErrLogicalFull", err)
	}
	f.checkClean()
}

// quotaTwin is the naive twin: the stored items, and when they expire.
type quotaTwin map[string]quotaItem

type quotaItem struct {
	pk         string
	bytes      int64
	deadlineMs int64
}

// live sums up the live bytes, of one partition key or of all, and those that expired
// within the present second, which may not be counted yet.
func (tw quotaTwin) live(pk string, nowMs int64) (live, dying int64) {
	for _, i := range tw {
		switch {
		case pk != "" && pk != i.pk:
		case i.deadlineMs > nowMs:
			live += i.bytes
		case i.deadlineMs/1000 == nowMs/1000:
			dying += i.bytes
		}
	}
	return live, dying
}

// Random writes under both quotas: none exceeds them, and none is refused that would not,
// except for bytes that expired within the present second.
func TestQuotasAgreeWithTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Quotas{PartitionBytes: 2500, LogicalBytes: 1500}
		f := makeFixture(t, kvtest.NewModel(), setup{definition: withTTL("-1"), nowMs: startMs, quotas: q})
		defer func() { f.p.Close() }()
		twin := quotaTwin{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				f.advance(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			case 1:
				_, err := f.p.Purge(context.Background(), Purge{MaxItems: 2})
				f.must(err)
			case 2:
				f.reopen()
			default:
				f.upsertWithin(t, q, twin)
			}
		}
		f.checkClean()
	})
}

func (f *fixture) upsertWithin(t *rapid.T, q Quotas, twin quotaTwin) {
	pk := rapid.SampledFrom([]string{"j", "k"}).Draw(t, "pk")
	id := rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "id")
	ttl := rapid.IntRange(1, 3).Draw(t, "ttl")
	pad := strings.Repeat("x", rapid.SampledFrom([]int{0, 50, 100, 400}).Draw(t, "pad"))
	o, err := value.ParseObject(fmt.Appendf(nil, `{"id":%q,"pk":%q,"ttl":%d,"pad":%q}`, id, pk, ttl, pad))
	f.must(err)
	nowMs := f.clock.Now()
	live, dying := twin.live("", nowMs)
	liveHere, dyingHere := twin.live(pk, nowMs)
	old := twin[pk+id]
	if old.deadlineMs <= nowMs {
		old.bytes = 0
	}
	r, err := f.write(Write{Op: Upsert, Key: f.key(pk, id), Item: o})
	if err == nil {
		grows := int64(len(r.Body)) - old.bytes
		if grows > 0 && (live+grows > q.PartitionBytes || liveHere+grows > q.LogicalBytes) {
			t.Fatalf("%d bytes more were written to %d in the partition, %d here", grows, live, liveHere)
		}
		twin[pk+id] = quotaItem{pk, int64(len(r.Body)), nowMs + 1000*int64(ttl)}
		return
	}
	const systemBytes = 205 // system properties
	grows := int64(len(o.Bytes())) + systemBytes - old.bytes
	switch {
	case errors.Is(err, ErrPartitionFull) && live+dying+grows > q.PartitionBytes:
	case errors.Is(err, ErrLogicalFull) && liveHere+dyingHere+grows > q.LogicalBytes:
	default:
		t.Fatalf("got %v for %d bytes more, with %d and %d in the partition, %d and %d here", err, grows, live, dying, liveHere, dyingHere)
	}
}
