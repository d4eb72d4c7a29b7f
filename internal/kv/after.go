// SPDX-License-Identifier: MIT

package kv

import "slices"

// After returns the first key after all keys that begin with p, which has a byte that is
// not 0xff.
func After(p []byte) []byte { return Raise(slices.Clone(p)) }

// Raise is After in the memory of its argument.
func Raise(p []byte) []byte {
	end := len(p)
	for p[end-1] == 0xff {
		end--
	}
	p[end-1]++
	return p[:end]
}
