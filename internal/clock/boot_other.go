// SPDX-License-Identifier: MIT

//go:build !linux && !darwin

package clock

// machineBoot returns a function that reads the monotonic clock. On Windows that clock
// counts while the machine sleeps; elsewhere, waking up looks like a jump. The boot has
// no ID, so restarts cannot be verified.
func machineBoot() func(Reading) Boot {
	return func(r Reading) Boot { return Boot{Ms: r.MonoMs} }
}
