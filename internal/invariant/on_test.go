// SPDX-License-Identifier: MIT

//go:build invariants

package invariant

import "testing"

func TestCheckPanicsWithTheBrokenPromise(t *testing.T) {
	tests := []struct {
		name  string
		check func()
		want  any
	}{
		{"holds", func() { Check(true, "lsn %d follows %d", 3, 2) }, nil},
		{"broken", func() { Check(false, "lsn %d follows %d", 2, 2) }, "invariant violated: lsn 2 follows 2"},
		{"no arguments", func() { Check(false, "loop has one owner") }, "invariant violated: loop has one owner"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != test.want {
					t.Errorf("panic value: got %v, want %v", got, test.want)
				}
			}()
			test.check()
		})
	}
}

func TestSometimesKeepsItsShare(t *testing.T) {
	if !Enabled {
		t.Error("Enabled: got false, want true under the tag")
	}
	const calls = 20_000
	share := func(percent int) int {
		n := 0
		for range calls {
			if Sometimes(percent) {
				n++
			}
		}
		return n
	}
	if n := share(0); n != 0 {
		t.Errorf("Sometimes(0): true %d times of %d, want never", n, calls)
	}
	if n := share(100); n != calls {
		t.Errorf("Sometimes(100): true %d times of %d, want always", n, calls)
	}
	// 25% of 20,000 is 5,000 with a standard deviation of 61: 1,000 either way
	// cannot happen by chance.
	if n := share(25); n < 4_000 || n > 6_000 {
		t.Errorf("Sometimes(25): true %d times of %d, want about 5,000", n, calls)
	}
}
