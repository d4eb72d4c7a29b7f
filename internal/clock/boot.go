// SPDX-License-Identifier: MIT

package clock

import "crypto/sha256"

// Boot is one reading of the machine's boot clock.
type Boot struct {
	// ID names the boot: it changes when the machine restarts. Empty if the system
	// does not name its boots.
	ID string
	// Ms counts from the start of the machine, or from another fixed moment of the
	// boot. It also counts while the machine sleeps, where the system has such a clock.
	Ms int64
}

// BootKey stands for a boot's ID in the saved state; zero if the boot has no ID.
type BootKey [16]byte

func (b Boot) key() (k BootKey) {
	if b.ID != "" {
		sum := sha256.Sum256([]byte(b.ID))
		copy(k[:], sum[:])
	}
	return k
}

// Watch returns a function that counts milliseconds from some fixed moment, while the
// machine sleeps too, where the system has such a clock. Nodes of a shared engine judge the
// engine's time by it; it is not the time of anything.
func Watch() func() int64 {
	source, boot := machine(), machineBoot()
	return func() int64 { return boot(source()).Ms }
}
