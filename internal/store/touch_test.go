// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"testing"
	"time"
)

// slide reads an item and restarts its countdown, whatever it has used up of its life.
func (f *fixture) slide(id string) {
	f.t.Helper()
	item, err := f.read(id)
	f.must(err)
	if f.p.Slide(&item, f.key("k", id), 0, f.clock.Now()) == 0 {
		f.t.Fatalf("the countdown of %q was not restarted", id)
	}
}

// A delete by partition key removes the items that were there when it began, also those that
// a read touches meanwhile.
func TestRemovalOfATouchedItem(t *testing.T) {
	f := newFixture(t, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":10}`)
	f.put("a", "")
	k := f.key("k", "")
	r := &removal{logical: (&LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}).appendPlace(nil), begin: true}
	f.must(f.p.removeStep(context.Background(), r))
	f.advance(time.Second)
	f.slide("a")
	f.put("later", "")
	f.must(f.p.removeAll(context.Background(), r))
	if _, err := f.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the touched item: got %v, want ErrNotFound", err)
	}
	if _, err := f.read("later"); err != nil {
		t.Errorf("an item that was written later: %v", err)
	}
	f.checkClean()
}

// A touch is no change to a draft: a stored procedure need not run again for it.
func TestATouchIsNoChangeToADraft(t *testing.T) {
	f := newFixture(t, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":10}`)
	f.put("a", "")
	f.advance(time.Second)
	lsn := f.p.LSN()
	f.slide("a")
	unchanged := Write{Op: Unchanged, Key: f.key("k", "a"), Since: lsn}
	if _, err := f.p.WriteAll(context.Background(), []Write{unchanged}); err != nil {
		t.Errorf("after a touch: %v", err)
	}
	f.put("a", "")
	if _, err := f.p.WriteAll(context.Background(), []Write{unchanged}); !errors.Is(err, ErrChanged) {
		t.Errorf("after a write: %v, want ErrChanged", err)
	}
}

// An item that was touched after it was planned to be purged has changed: it lives on.
func TestATouchedItemHasChanged(t *testing.T) {
	for name, more := range map[string]string{
		"a touch that the change feed does not show": "",
		"a touch that it shows":                      `,"slidingTtlInChangeFeed":true`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":10`+more+`}`)
			f.put("a", "")
			f.advance(time.Second)
			k := f.key("k", "a")
			var planned current
			inLoop := func(do func(w *writer) error) {
				t.Helper()
				_, err := f.p.submit(context.Background(), &job{task: &task{do: do}})
				f.must(err)
			}
			inLoop(func(w *writer) (err error) {
				planned, err = w.current(appendIdentity(nil, k.EPK, k.PartitionKey, k.ID))
				return err
			})
			lsn := f.p.LSN()
			for touches := range 3 {
				var same bool
				inLoop(func(w *writer) (err error) {
					same, err = w.unchanged(lsn, &planned)
					return err
				})
				if same != (touches == 0) {
					t.Errorf("after %d touches: unchanged is %v", touches, same)
				}
				f.advance(time.Second)
				f.slide("a")
			}
		})
	}
}

// Touched items are purged on time, among others that were not touched, in both orders.
func TestPurgeOfTouchedItems(t *testing.T) {
	f := newFixture(t, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":10}`)
	for _, id := range []string{"a", "b", "c"} {
		f.put(id, "")
		f.put("own "+id, `"ttl":10`)
	}
	f.advance(5 * time.Second)
	f.slide("b")
	f.slide("own b")
	for _, step := range []struct {
		after time.Duration
		items int64
	}{{4999 * time.Millisecond, 0}, {time.Millisecond, 4}, {4999 * time.Millisecond, 0}, {time.Millisecond, 2}} {
		f.advance(step.after)
		done, err := f.p.Purge(context.Background(), Purge{MaxItems: 100})
		f.must(err)
		if done.Items != step.items {
			t.Errorf("at %d: purged %d items, want %d", f.clock.Now(), done.Items, step.items)
		}
		f.checkClean()
	}
}
