// SPDX-License-Identifier: MIT

//go:build !invariants

package invariant

// Enabled says whether this build checks invariants.
const Enabled = false

// Check does nothing in this build.
func Check(cond bool, format string, args ...any) {}

// Sometimes is false in this build.
func Sometimes(percent int) bool { return false }
