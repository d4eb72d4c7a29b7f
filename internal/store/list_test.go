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

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// scopes are the two ways to list: all items, and those of one partition key.
func (f *fixture) scopes() map[string]*LogicalPartition {
	k := f.key("k", "")
	return map[string]*LogicalPartition{"all": nil, "a partition key": {EPK: k.EPK, PartitionKey: k.PartitionKey}}
}

// ids returns the ids of a page's items.
func ids(t *testing.T, page Page) string {
	t.Helper()
	items, ok := value.Elements(fmt.Appendf(nil, "[%s]", page.Items))
	if !ok || len(items) != page.Count {
		t.Errorf("a page of %d items is %q", page.Count, page.Items)
	}
	var ids []string
	for _, item := range items {
		ids = append(ids, strings.Trim(property(item, "id"), `"`))
	}
	return strings.Join(ids, " ")
}

// pages lists all items and returns their ids, with a | after each page.
func (f *fixture) pages(t *testing.T, q List) string {
	t.Helper()
	var all []string
	for {
		page, err := f.p.List(context.Background(), q, f.clock.Now())
		f.must(err)
		all = append(all, ids(t, page))
		if !page.More {
			return strings.Join(all, "|")
		}
		if page.Last <= q.After {
			t.Fatalf("a page that went from %d to %d wants to go on", q.After, page.Last)
		}
		q.After = page.Last
	}
}

func TestPages(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	for scope, within := range f.scopes() {
		if got := f.pages(t, List{Within: within, MaxItems: 3, MaxBytes: 1000}); got != "" {
			t.Errorf("%s of nothing: got %q", scope, got)
		}
	}
	for _, id := range []string{"e", "d", "gone", "c", "b", "a"} {
		f.put(id, "")
	}
	_, err := f.write(Write{Op: Delete, Key: f.key("k", "gone")})
	f.must(err)
	size := f.put("e", "").Work.Bytes // a rewrite keeps its ordinal
	for _, c := range []struct {
		items, bytes int
		want         string
	}{
		{100, 1 << 20, "e d c b a"},
		{5, 1 << 20, "e d c b a"},
		{4, 1 << 20, "e d c b|a"},
		{2, 1 << 20, "e d|c b|a"},
		{1, 1 << 20, "e|d|c|b|a"},
		{100, 1, "e|d|c|b|a"}, // the first always fits
		{100, 2*size + 1, "e d|c b|a"},
		{100, 2 * size, "e|d|c|b|a"}, // the comma counts
		{3, 2*size + 1, "e d|c b|a"},
	} {
		for scope, within := range f.scopes() {
			if got := f.pages(t, List{Within: within, MaxItems: c.items, MaxBytes: c.bytes}); got != c.want {
				t.Errorf("%s in pages of %d items, %d bytes: got %q, want %q", scope, c.items, c.bytes, got, c.want)
			}
		}
	}
}

// A page resumes by ordinal: whatever happens meanwhile to the item that it ended with,
// nothing is repeated or lost.
func TestPagesWhileItemsChange(t *testing.T) {
	for _, scope := range []string{"all", "a partition key"} {
		f := newFixture(t, withTTL("100"))
		for i := range 6 {
			f.put(fmt.Sprint(i), "")
		}
		q := List{Within: f.scopes()[scope], MaxItems: 2, MaxBytes: 1 << 20}
		page, err := f.p.List(context.Background(), q, f.clock.Now())
		f.must(err)
		_, err = f.write(Write{Op: Delete, Key: f.key("k", "1")})
		f.must(err)
		f.put("0", `"rewritten":true`)
		f.put("2", `"rewritten":true`)
		f.put("3", `"ttl":1`)
		f.put("6", "")
		f.advance(time.Second)
		q.After = page.Last
		if got, want := ids(t, page)+"|"+f.pages(t, q), "0 1|2 4|5 6"; got != want {
			t.Errorf("%s: got %q, want %q", scope, got, want)
		}
	}
}

// Items of other partition keys are not listed, also if their keys look similar.
func TestListOfOnePartitionKey(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	for _, pk := range []string{"", "k", "kk", "k\x00", "\x00k", "K"} {
		o, err := value.ParseObject(fmt.Appendf(nil, `{"id":"of %d","pk":%s}`, len(pk), value.AppendString(nil, pk)))
		f.must(err)
		_, err = f.write(Write{Op: Upsert, Key: f.key(pk, fmt.Sprint("of ", len(pk))), Item: o})
		f.must(err)
	}
	if got := f.pages(t, List{Within: f.scopes()["a partition key"], MaxItems: 9, MaxBytes: 1 << 20}); got != "of 1" {
		t.Errorf("got %q, want the one item of k", got)
	}
}

// fill writes n items with ordinals from 1 straight into the engine: only the rows that a
// list reads. The first expired items have a ttl of their own.
func (f *fixture) fill(n, expired int) {
	f.t.Helper()
	x := partitionPrefix(f.container.RID, 0)
	var b kv.Batch
	for i := 1; i <= n; i++ {
		k := f.key("k", fmt.Sprintf("%x", uint32(i)*2654435761)) // ids in another order than ordinals
		h := header{lsn: uint64(i), writtenMs: startMs, identity: appendIdentity(nil, k.EPK, k.PartitionKey, k.ID)}
		if i <= expired {
			h.ttl = 1
		}
		b.Set(x.appendItemKey(nil, uint64(i)), row(h, fmt.Sprintf(`{"id":"%d"}`, i)))
		b.Set(x.appendKey(nil, idSpace, h.identity), binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	m := meta{LSN: uint64(n), NextOrdinal: uint64(n) + 1, Epoch: f.container.Epoch, Generation: f.container.IndexGeneration}
	m.ContainerDefault = int32(f.container.DefaultTTL)
	b.Set(x.metaKey(), m.encode())
	f.must(f.db.Commit(context.Background(), &b))
	f.reopen()
}

// A page over many expired items ends early, empty, and the next one resumes.
func TestPageOverManyExpired(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	const n = pageRows + oldestOrdinals + 2
	f.fill(n, n-1)
	f.advance(time.Second)
	for scope, within := range f.scopes() {
		q := List{Within: within, MaxItems: 1, MaxBytes: 1 << 20}
		page, err := f.p.List(context.Background(), q, f.clock.Now())
		f.must(err)
		if page.Count != 0 || !page.More || page.Last < pageRows {
			t.Errorf("%s: got %d items up to %d, more %v; want none after %d rows, and more", scope, page.Count, page.Last, page.More, pageRows)
		}
		q.After = page.Last
		if got, want := f.pages(t, q), fmt.Sprint(n); got != want {
			t.Errorf("%s after that: got %q, want %s", scope, got, want)
		}
	}
}

// The items of a large logical partition come in the order of their creation, whatever the
// order of their ids.
func TestLargeLogicalPartition(t *testing.T) {
	const n = 2*oldestOrdinals + 100
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	f.fill(n, 0)
	for _, size := range []int{1000, oldestOrdinals, oldestOrdinals + 1, n} {
		q := List{Within: f.scopes()["a partition key"], MaxItems: size, MaxBytes: 1 << 30}
		next := 1
		for more := true; more; {
			page, err := f.p.List(context.Background(), q, f.clock.Now())
			f.must(err)
			for id := range strings.SplitSeq(ids(t, page), " ") {
				if id != fmt.Sprint(next) {
					t.Fatalf("in pages of %d: item %s comes where %d should", size, id, next)
				}
				next++
			}
			q.After, more = page.Last, page.More
		}
		if next != n+1 {
			t.Errorf("in pages of %d: %d items came, want %d", size, next-1, n)
		}
	}
}

func TestListEndsWithItsContext(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("-1"))
	f.fill(2*oldestOrdinals, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for scope, within := range f.scopes() {
		if _, err := f.p.List(ctx, List{Within: within, MaxItems: 10, MaxBytes: 1 << 20}, startMs); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", scope, err)
		}
	}
}
