// SPDX-License-Identifier: MIT

// Text for clients: JSON strings, and what is quoted back to them.

package value

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendString appends s as a JSON string, escaping only what JSON demands.
// Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	// The error says that s was not UTF-8, and what was appended is all the same.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// maxClipped is how many bytes of what a client sent are quoted back to it.
const maxClipped = 300

// Clip shortens what a client sent before it is quoted back, without cutting a
// character in two.
func Clip(s string) string {
	if len(s) <= maxClipped {
		return s
	}
	return strings.ToValidUTF8(s[:maxClipped], "") + "…"
}
