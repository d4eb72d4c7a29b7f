// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/value"
)

const withUniqueKeys = `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":2,` +
	`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]},{"paths":["/b","/c"]}]}}`

// uniqueTwin is the naive twin: the live items, searched one by one.
type uniqueTwin map[string]uniqueItem

type uniqueItem struct {
	a, b       int
	deadlineMs int64
}

// taken reports whether a live item other than id has a key of n.
func (tw uniqueTwin) taken(id string, n uniqueItem, nowMs int64) bool {
	for other, i := range tw {
		if other != id && i.deadlineMs > nowMs && (i.a == n.a || i.b == n.b) {
			return true
		}
	}
	return false
}

// Random writes of few items with few values: the same writes succeed as in the twin, in
// groups and alone, over restarts.
func TestUniqueKeysAgreeWithTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := makeFixture(t, kvtest.NewModel(), setup{definition: withUniqueKeys, nowMs: startMs})
		defer func() { f.p.Close() }()
		twin := uniqueTwin{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				f.advance(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			case 1:
				f.reopen()
			case 2:
				id := rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "id")
				_, err := f.write(Write{Op: Delete, Key: f.key("k", id)})
				live := twin[id].deadlineMs > f.clock.Now()
				f.check(errors.Is(err, ErrNotFound) == !live && (err == nil) == live, "delete %s: %v, live %v", id, err, live)
				delete(twin, id)
			default:
				f.upsertUnique(t, twin)
			}
		}
		f.checkClean()
	})
}

func (f *fixture) upsertUnique(t *rapid.T, twin uniqueTwin) {
	id := rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "id")
	n := uniqueItem{a: rapid.IntRange(0, 3).Draw(t, "a"), b: rapid.IntRange(0, 3).Draw(t, "b")}
	_, err := f.write(f.item(Upsert, id, fmt.Sprintf(`"a":%d,"b":%d`, n.a, n.b)))
	if twin.taken(id, n, f.clock.Now()) {
		f.check(errors.Is(err, ErrNotUnique), "upsert %s %+v: %v, but the key is taken: %v", id, n, err, twin)
		return
	}
	f.must(err)
	n.deadlineMs = f.clock.Now() + 2000
	twin[id] = n
}

// Of many writes that want one key at the same moment, in one group, one succeeds.
func TestOneOfManyGetsTheKey(t *testing.T) {
	f := newFixture(t, withUniqueKeys)
	var wg sync.WaitGroup
	won := make(chan string, 20)
	for i := range 20 {
		wg.Go(func() {
			id := fmt.Sprint(i)
			text := fmt.Sprintf(`{"id":%q,"pk":"k","a":"the one","b":%d}`, id, i)
			o, err := value.ParseObject([]byte(text))
			if err != nil {
				t.Error(err)
				return
			}
			_, err = f.p.Write(context.Background(), Write{Op: Create, Key: f.key("k", id), Item: o})
			if err == nil {
				won <- id
			} else if !errors.Is(err, ErrNotUnique) {
				t.Errorf("create %s: %v", id, err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d items have the key, want 1", len(won))
	}
	f.checkClean()
}

// Values that are too long for a key are still distinguished.
func TestLongUniqueValues(t *testing.T) {
	f := newFixture(t, withUniqueKeys)
	long := strings.Repeat("x", 100_000)
	f.put("1", fmt.Sprintf(`"a":"%s1","b":1`, long))
	f.put("2", fmt.Sprintf(`"a":"%s2","b":2`, long))
	if _, err := f.write(f.item(Create, "3", fmt.Sprintf(`"a":"%s1","b":3`, long))); !errors.Is(err, ErrNotUnique) {
		t.Errorf("a long value that is taken: %v", err)
	}
	f.checkClean()
}
