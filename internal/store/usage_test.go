// SPDX-License-Identifier: MIT

package store

import (
	"testing"
	"time"
)

// LiveEstimate is exact after a write or a purge, and at most a second late after an item
// has expired.
func TestLiveEstimate(t *testing.T) {
	f := makeFixture(t, inMemory(t), setup{definition: withTTL("10"), nowMs: startMs})
	defer func() { f.p.Close() }()
	live := func(want int64) {
		t.Helper()
		got, err := f.p.LiveEstimate(f.clock.Now())
		if err != nil || got.Items != want {
			t.Errorf("%d items are live, %v, want %d", got.Items, err, want)
		}
		if u, err := f.p.Usage(f.clock.Now()); err != nil || want == u.Live.Items && got != u.Live {
			t.Errorf("%+v is live, counted anew %+v, %v", got, u.Live, err)
		}
	}
	f.createMany(0, 5, "")
	live(5)
	f.createMany(5, 7, `"ttl":100`)
	live(7)
	f.advance(9900 * time.Millisecond)
	live(7)
	f.advance(200 * time.Millisecond)
	live(7) // of which five expired a tenth of a second ago
	f.advance(time.Second)
	live(2)
	f.createMany(0, 3, "") // in place of three that have expired
	live(5)
	if _, err := f.p.Purge(t.Context(), Purge{MaxItems: 100}); err != nil {
		t.Fatal(err)
	}
	live(5)
	f.createMany(7, 8, "")
	live(6)
}
