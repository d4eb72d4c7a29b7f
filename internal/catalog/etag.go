// SPDX-License-Identifier: MIT

package catalog

import "strings"

// ETagChars is the length of an etag with its quotes.
const ETagChars = 38

// ETag returns the quoted, GUID-like text that stands for one version of a
// resource. The two numbers together must never be used for another version.
func ETag(high, low uint64) string {
	var text [ETagChars]byte
	PutETag(text[:], high, low)
	return string(text[:])
}

// PutETag writes the etag into dst, which has room for ETagChars.
func PutETag(dst []byte, high, low uint64) {
	const digits = "0123456789abcdef"
	dst = dst[:ETagChars]
	dst[0], dst[ETagChars-1] = '"', '"'
	at := 1
	for nibble := range 32 {
		if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 {
			dst[at] = '-'
			at++
		}
		dst[at] = digits[high>>60]
		high = high<<4 | low>>60
		low <<= 4
		at++
	}
}

// SameETag compares an etag from a request with a resource's: some clients leave
// out the quotes.
func SameETag(given, etag string) bool {
	return given == etag || strings.Trim(given, `"`) == strings.Trim(etag, `"`)
}
