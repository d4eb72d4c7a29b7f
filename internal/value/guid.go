// SPDX-License-Identifier: MIT

package value

import "math/rand/v2"

// GUIDChars is how long a GUID is as text.
const GUIDChars = 36

// PutGUID writes 128 bits in the form of a GUID into dst, which has room for GUIDChars.
func PutGUID(dst []byte, high, low uint64) {
	const digits = "0123456789abcdef"
	dst = dst[:GUIDChars]
	for i := range dst {
		switch i {
		case 8, 13, 18, 23:
			dst[i] = '-'
			continue
		}
		dst[i] = digits[high>>60]
		high = high<<4 | low>>60
		low <<= 4
	}
}

// NewGUID returns a random GUID, of version 4.
func NewGUID() string {
	const version, variant = 4 << 12, 2 << 62
	var text [GUIDChars]byte
	PutGUID(text[:], rand.Uint64()&^0xf000|version, rand.Uint64()&^(3<<62)|variant)
	return string(text[:])
}
