// SPDX-License-Identifier: MIT

package clock

import "crypto/sha256"

// Boot is a look at the machine's boot clock.
type Boot struct {
	// ID names the boot: another one after the machine was started anew. Empty if
	// that cannot be told.
	ID string
	// Ms is since the machine was booted, or some other fixed moment of the boot. It
	// goes on while the machine sleeps, if that can be had.
	Ms int64
}

// BootKey stands for a boot's ID in the kept state; zero for none.
type BootKey [16]byte

func (b Boot) key() (k BootKey) {
	if b.ID != "" {
		sum := sha256.Sum256([]byte(b.ID))
		copy(k[:], sum[:])
	}
	return k
}
