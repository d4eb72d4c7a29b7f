// SPDX-License-Identifier: MIT

package kv

import "slices"

// After returns the first key after all keys that begin with p. At least one byte of p must
// not be 0xff.
func After(p []byte) []byte { return Raise(slices.Clone(p)) }

// Raise is After, but changes p itself.
func Raise(p []byte) []byte {
	end := len(p)
	for p[end-1] == 0xff {
		end--
	}
	p[end-1]++
	return p[:end]
}
