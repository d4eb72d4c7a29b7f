// SPDX-License-Identifier: MIT

package engine

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// FuzzChangePosition: every text from a client is refused, or is a position that is
// written in the same form again.
func FuzzChangePosition(f *testing.F) {
	for _, seed := range []string{"", "*", "0", "18446744073709551615", "0@1.2", "1@0.0", "2@1.2", "@1.2", "1.2", "1@1.2.3", "-1", "1@+1.2", "0x1", "1@ 1.2", "0000", "00012", "0@1-63.2-64", "0@1-5.2", "1@1-.2"} {
		for _, partitions := range []int{1, 2, catalog.MaxPartitions} {
			f.Add(seed, partitions)
		}
	}
	f.Fuzz(func(t *testing.T, text string, partitions int) {
		if partitions < 1 || partitions > catalog.MaxPartitions {
			t.Skip()
		}
		at, err := (&Request{Continuation: text}).position(manyRanges(partitions), 0, partitions-1)
		if err != nil {
			return
		}
		if len(at.starts) != partitions || at.turn < 0 || at.turn >= partitions {
			t.Fatalf("%q is a position at turn %d of %d partitions, want one of %d", text, at.turn, len(at.starts), partitions)
		}
		again, err := (&Request{Continuation: at.encode()}).position(manyRanges(partitions), 0, partitions-1)
		if err != nil || again.encode() != at.encode() {
			t.Errorf("%q is told as %q, which is read as %q: %v", text, at.encode(), again.encode(), err)
		}
	})
}
