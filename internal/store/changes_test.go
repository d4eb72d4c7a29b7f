// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// TestLastBefore compares the search with a scan of all rows.
func TestLastBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lsn := uint64(rapid.IntRange(0, 40).Draw(t, "lsn"))
		at := map[uint64]int64{} // times by lsn
		ms := int64(0)
		for i := uint64(1); i <= lsn; i++ {
			ms += int64(rapid.IntRange(0, 2).Draw(t, "step"))
			if rapid.Bool().Draw(t, "row") {
				at[i] = ms
			}
		}
		sinceMs := int64(rapid.IntRange(0, 50).Draw(t, "since"))
		got, err := lastBefore(lsn, sinceMs, func(from uint64) (uint64, int64, bool, error) {
			for i := from; i <= lsn; i++ {
				if ms, found := at[i]; found {
					return i, ms, true, nil
				}
			}
			return 0, 0, false, nil
		})
		if err != nil || got > lsn {
			t.Fatalf("lsn %d of %d: %v", got, lsn, err)
		}
		for i, ms := range at {
			if (ms >= sinceMs) != (i > got) {
				t.Fatalf("what comes after lsn %d was written since %d, and lsn %d was written at %d", got, sinceMs, i, ms)
			}
		}
	})
}

// bundles writes n lists of items, each list at one lsn.
func (f *fixture) bundles(n, items int, properties string) {
	f.t.Helper()
	for i := range n {
		ops := make([]Write, items)
		for j := range ops {
			ops[j] = f.item(Upsert, fmt.Sprintf("item %d %d", i, j), properties)
		}
		_, err := f.p.WriteAll(context.Background(), ops)
		f.must(err)
	}
}

// TestChangesDoNotCutAnLSN: a page has all changes of an lsn or none.
func TestChangesDoNotCutAnLSN(t *testing.T) {
	for _, all := range []bool{false, true} {
		f := newFixture(t, withVersions)
		f.bundles(3, 4, "")
		f.put("alone", "")
		var counts []int
		for at := uint64(0); at < f.p.LSN(); {
			page, err := f.p.Changes(context.Background(), Changes{
				AllVersions: all, Start: ChangeStart{After: at}, MaxItems: 5, MaxBytes: 1 << 20,
			}, f.clock.Now())
			f.must(err)
			counts, at = append(counts, page.Count), page.Position
		}
		f.check(fmt.Sprint(counts) == "[8 5]", "all versions %v: pages of %v changes, want [8 5]", all, counts)
	}
}

// TestChangesOverManyExpired: a page that finds nothing to return ends early, and the next
// resumes after it.
func TestChangesOverManyExpired(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withTTL("60"))
	f.bundles(6, pageRows/5, "")
	f.put("kept", `"ttl":-1`)
	f.advance(time.Minute)
	q := Changes{MaxItems: 10, MaxBytes: 1 << 20}
	page, err := f.p.Changes(context.Background(), q, f.clock.Now())
	f.must(err)
	f.check(page.Count == 0 && page.More && page.Position == 5, "the first page has %d items, and ends at lsn %d, more %v", page.Count, page.Position, page.More)
	q.Start.After = page.Position
	page, err = f.p.Changes(context.Background(), q, f.clock.Now())
	f.must(err)
	f.check(page.Count == 1 && !page.More && page.Position == 7, "the second page has %d items, and ends at lsn %d, more %v", page.Count, page.Position, page.More)
}

// TestChangesOverOtherKeys: a page reads items that are not asked for only up to a limit.
func TestChangesOverOtherKeys(t *testing.T) {
	f := newFixtureOn(t, inMemory(t), withVersions)
	pad := `"pad":"` + strings.Repeat("x", 1<<20) + `"`
	const items = passedBytes>>20 + 3
	for i := range items {
		f.put(fmt.Sprint(i), pad)
	}
	k := value.PartitionKey{value.String("another")}
	within := &LogicalPartition{EPK: f.container.PartitionKey.AppendEPK(nil, k), PartitionKey: k}
	for _, all := range []bool{false, true} {
		q := Changes{AllVersions: all, Within: within, MaxItems: 10, MaxBytes: 1 << 20}
		page, err := f.p.Changes(context.Background(), q, f.clock.Now())
		f.must(err)
		f.check(page.Count == 0 && page.More && page.Position < items, "all versions %v: the first page ends at lsn %d of %d", all, page.Position, items)
		q.Start.After = page.Position
		page, err = f.p.Changes(context.Background(), q, f.clock.Now())
		f.must(err)
		f.check(page.Count == 0 && !page.More && page.Position == items, "all versions %v: the second page ends at lsn %d of %d", all, page.Position, items)
	}
}
