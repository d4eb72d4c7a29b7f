// SPDX-License-Identifier: MIT

//go:build !invariants

package invariant

import "testing"

func TestWithoutTheTagNothingIsChecked(t *testing.T) {
	if Enabled {
		t.Error("Enabled: got true, want false without the tag")
	}
	lsn := 1_000_000 // boxing a small integer would not allocate in any build
	allocations := testing.AllocsPerRun(100, func() {
		Check(false, "lsn %d follows %d", lsn, lsn)
		lsn++
	})
	if allocations != 0 {
		t.Errorf("Check: got %v allocations a call, want 0", allocations)
	}
	if Sometimes(100) {
		t.Error("Sometimes(100): got true, want false without the tag")
	}
}
