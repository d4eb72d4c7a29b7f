// SPDX-License-Identifier: MIT

//go:build invariants

package invariant

import (
	"fmt"
	"math/rand/v2"
)

// Enabled says whether this build checks invariants.
const Enabled = true

// Check panics unless cond holds. The text is the broken promise, with the
// values that break it.
func Check(cond bool, format string, args ...any) {
	if !cond {
		panic("invariant violated: " + fmt.Sprintf(format, args...))
	}
}

// Sometimes is true in about percent of 100 calls: a fast path that steps aside
// sometimes lets every test walk the slow path too.
func Sometimes(percent int) bool {
	return rand.IntN(100) < percent
}
