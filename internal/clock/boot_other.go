// SPDX-License-Identifier: MIT

//go:build !linux && !darwin

package clock

// machineBoot is the monotonic clock: on Windows it counts sleep, and elsewhere waking
// up is a jump. Restarts cannot be verified.
func machineBoot() func(Reading) Boot {
	return func(r Reading) Boot { return Boot{Ms: r.MonoMs} }
}
