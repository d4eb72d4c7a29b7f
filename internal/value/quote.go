// SPDX-License-Identifier: MIT

// JSON string quoting, in UTF-8 for bodies and in ASCII for headers.

package value

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// maxHeaderRune is the last character that may stand in a header as it is.
// Like the SDKs, DEL is escaped too.
const maxHeaderRune = '~'

// AppendString appends s as a JSON string, escaping only what JSON demands.
// Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	return appendQuoted(dst, s, utf8.MaxRune)
}

// AppendASCIIString appends s as a JSON string of printable ASCII alone, for
// use in a header. Bytes that are not UTF-8 become U+FFFD.
func AppendASCIIString(dst []byte, s string) []byte {
	return appendQuoted(dst, s, maxHeaderRune)
}

// appendQuoted escapes what JSON demands and every character above last.
func appendQuoted(dst []byte, s string, last rune) []byte {
	dst = append(dst, '"')
	start := 0 // of the text that is copied as it is
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		verbatim := r >= ' ' && r <= last && r != '"' && r != '\\'
		if r == utf8.RuneError && size == 1 {
			verbatim = false
		}
		if !verbatim {
			dst = append(dst, s[start:i]...)
			dst = appendEscaped(dst, r, last)
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscaped(dst []byte, r, last rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if ' ' <= r && r <= last {
		return utf8.AppendRune(dst, r)
	}
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendUnit(appendUnit(dst, high), low)
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, unit rune) []byte {
	return append(dst, '\\', 'u',
		hexDigits[unit>>12&0xF], hexDigits[unit>>8&0xF], hexDigits[unit>>4&0xF], hexDigits[unit&0xF])
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
