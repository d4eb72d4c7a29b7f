// SPDX-License-Identifier: MIT

package catalog

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// ETagChars is the length of an etag with its quotes.
const ETagChars = 38

// ETag returns the quoted, GUID-like text that identifies one version of a resource. The
// two numbers together must never be used for another version.
func ETag(high, low uint64) string {
	var text [ETagChars]byte
	PutETag(text[:], high, low)
	return string(text[:])
}

// PutETag writes the etag into dst, which has room for ETagChars.
func PutETag(dst []byte, high, low uint64) {
	dst[0], dst[ETagChars-1] = '"', '"'
	value.PutGUID(dst[1:], high, low)
}

// SameETag compares an etag from a request with a resource's. Some clients leave out the
// quotes.
func SameETag(given, etag string) bool {
	return given == etag || strings.Trim(given, `"`) == strings.Trim(etag, `"`)
}
