// SPDX-License-Identifier: MIT

package cli

import (
	"io"
	"strings"
	"testing"
	"time"
)

// Long work says how far it is, how fast, and how long the rest will take, for each step.
func TestWorkIsShown(t *testing.T) {
	w := &work{}
	says := func(want string) {
		t.Helper()
		if got := w.line(0, false); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	// ago lets a step have begun some time ago, in the middle of the second that is shown.
	ago := func(d time.Duration) { w.began = time.Now().Add(-d) }
	w.begin("counting", "rows", 0)
	says("counting")
	w.reach(1200)
	says("counting 1,200 rows")
	w.begin("checking", "items", 4000)
	w.reach(1000)
	ago(1000 * time.Second)
	says("checking  25%  1,000 of 4,000 items, 0/s, 50m0s left")
	if got := w.line(0, true); !strings.Contains(got, "checking [======                  ]  25%") {
		t.Errorf("with a bar it says %q", got)
	}
	w.begin("receiving", "", 4<<20)
	if n, err := io.Copy(io.Discard, w.counted(io.LimitReader(strings.NewReader(strings.Repeat("x", 1<<21)), 1<<20))); n != 1<<20 || err != nil {
		t.Fatal(n, err)
	}
	ago(1000 * time.Second)
	says("receiving  25%  1.0 MiB of 4.0 MiB, 1.0 KiB/s, 50m0s left")
	w.reach(4 << 20)
	says("receiving 100%  4.0 MiB of 4.0 MiB, 4.1 KiB/s")
}
