// SPDX-License-Identifier: MIT

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// ends reports whether a batch ends the split of a partition: it deletes the owner row.
func ends(b *kv.Batch, owner []byte) bool {
	for op := range b.Ops {
		if op.Kind == kv.OpDelete && bytes.Equal(op.Key, owner) {
			return true
		}
	}
	return false
}

// The commit that ends a split has no answer, while clients of both nodes write. Whether it
// happened before that was known, never happens, or comes later, there is the parent with
// everything or there are the children with everything, and a split can be done.
func TestSplitWithoutAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		// before and after say that the commit happens before its answer is lost, and after
		// that, as soon as it can; if late, when others have written to the partition.
		before, after, late bool
		want                string
	}{
		"it happened":            {before: true, want: "1[0] 2[0]"},
		"it never happens":       {want: "0[]"},
		"it comes at once":       {after: true},
		"it comes, but too late": {after: true, late: true, want: "0[]"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := startNodes(t, "a", "b")
			rid := ns.container("c", "null", 1).RID
			key := store.OwnerKey(rid, 0)
			var items sync.Mutex // guards the following
			var kept [][2]string // that were acknowledged
			put := func(at string, i int) {
				t.Helper()
				pk, id := fmt.Sprint("key ", i%40), fmt.Sprint(at, i)
				switch _, err := ns.put(at, "c", pk, id, ""); {
				case err == nil:
					items.Lock()
					defer items.Unlock()
					kept = append(kept, [2]string{pk, id})
				case !errors.Is(err, store.ErrUnknown):
					t.Errorf("write %d at %s: %v", i, at, err)
				}
			}
			for i := range 200 {
				put("a", i)
			}
			lost, arrived := make(chan struct{}), make(chan error, 1)
			release := make(chan struct{})
			var once sync.Once
			for _, link := range ns.links {
				commit := func(b *kv.Batch, do func() error) error {
					if !ends(b, key) {
						return do()
					}
					var err error
					first := false
					once.Do(func() { first = true })
					if !first {
						return do()
					}
					defer close(lost)
					if c.before {
						err = do()
					}
					if c.after {
						go func() {
							if c.late {
								<-release
							}
							arrived <- do()
						}()
					}
					return errors.Join(err, kv.ErrUnknown)
				}
				link.commit.Store(&commit)
			}
			var stop atomic.Bool
			var writing sync.WaitGroup
			for _, at := range []string{"a", "b"} {
				writing.Go(func() {
					for i := 200; !stop.Load(); i++ {
						put(at, i)
						time.Sleep(time.Millisecond)
					}
				})
			}
			if _, err := ns.all["b"].SplitRange(t.Context(), ns.find("b", "c"), "0"); err != nil {
				t.Fatal(err)
			}
			<-lost
			for i := range 40 { // each is answered by the parent again, or by a child
				put([]string{"a", "b"}[i%2], 10_000+i)
			}
			close(release)
			if c.after {
				if err := <-arrived; err != nil && !errors.Is(err, kv.ErrConflict) || c.late && err == nil {
					t.Errorf("the commit that came later: %v", err)
				}
			}
			stop.Store(true)
			writing.Wait()
			check := func() string {
				t.Helper()
				for _, item := range kept {
					if _, err := ns.read("b", "c", item[0], item[1]); err != nil {
						t.Fatalf("%s: %v", item, err)
					}
				}
				if n := ns.list("a", "c"); n < len(kept) {
					t.Errorf("a list has %d items, and %d were acknowledged", n, len(kept))
				}
				return splitRangesOf(ns.find("a", "c"))
			}
			got := check()
			if got != c.want && (c.want != "" || got != "0[]" && got != "1[0] 2[0]") {
				t.Errorf("the ranges are %s, want %s", got, c.want)
			}
			left := ns.find("a", "c")
			if _, err := ns.all["a"].SplitRange(t.Context(), left, fmt.Sprint(left.Ranges[0].ID)); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); len(ns.find("a", "c").Ranges) == len(left.Ranges); time.Sleep(time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatal("the next split does not end")
				}
			}
			check()
		})
	}
}
