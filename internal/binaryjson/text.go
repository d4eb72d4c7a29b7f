// SPDX-License-Identifier: MIT

// The many forms of strings.

package binaryjson

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
	// dateDigits are the characters of markDateTime.
	dateDigits = " 0123456789:-.TZ"

	guidBytes = 16
)

// text appends the string at the start of b, in quotes, and returns what follows it.
func (d *decoder) text(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, ErrMalformed
	}
	mark := b[0]
	switch {
	case mark >= markSystem && mark < markUser:
		d.quote(system[mark-markSystem])
		return b[1:], nil
	case mark >= markText && mark < markTextL:
		n := int(mark - markText)
		if len(b) < 1+n {
			return nil, ErrMalformed
		}
		return b[1+n:], d.plain(b[1 : 1+n])
	case mark >= markTextL && mark < markReference:
		inner, rest, err := cut(b[1:], mark-markTextL)
		if err != nil {
			return nil, err
		}
		return rest, d.plain(inner)
	case mark >= markReference && mark < markUint64:
		target, rest, err := d.reference(b)
		if err != nil {
			return nil, err
		}
		_, err = d.text(target)
		return rest, err
	case mark >= markBase64 && mark < markGUID:
		return d.base64(mark, b[1:])
	case mark >= markGUID && mark < markHex:
		return d.guid(mark, b[1:])
	case mark >= markHex && mark < markText:
		return d.packed(mark, b[1:])
	}
	return nil, ErrMalformed
}

// plain appends a string that is there as it is.
func (d *decoder) plain(text []byte) error {
	if !utf8.Valid(text) {
		return ErrMalformed
	}
	d.quote(string(text))
	return d.room()
}

func (d *decoder) quote(text string) { d.out = value.AppendString(d.out, text) }

// guid appends a GUID, whose digits are pairs with the second digit first.
func (d *decoder) guid(mark byte, b []byte) (rest []byte, err error) {
	if len(b) < guidBytes {
		return nil, ErrMalformed
	}
	digits := lowerDigits
	if mark == markGUID+1 {
		digits = upperDigits
	}
	var text []byte
	for i, c := range b[:guidBytes] {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, digits[c&0xf], digits[c>>4])
	}
	if mark == markGUID+2 {
		text = append(append([]byte{'"'}, text...), '"')
	}
	d.quote(string(text))
	return b[guidBytes:], nil
}

// base64 appends a string in base64, of which the bytes are there. A quarter of its length
// comes first, then the number of = at its end, or the complement of that number if they
// were left out.
func (d *decoder) base64(mark byte, b []byte) (rest []byte, err error) {
	quarter, b, err := prefix(b, (mark-markBase64)&1)
	if err != nil || len(b) == 0 {
		return nil, ErrMalformed
	}
	padding, padded := int(b[0]), true
	if padding > 2 {
		padding, padded = int(^b[0]), false
	}
	b = b[1:]
	n := int(quarter)*3 - padding
	if padding > 2 || n < 0 || n > len(b) {
		return nil, ErrMalformed
	}
	encoding := base64.StdEncoding
	if mark >= markBase64URL {
		encoding = base64.URLEncoding
	}
	if !padded {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	d.quote(encoding.EncodeToString(b[:n]))
	return b[n:], d.room()
}

// packed appends a string of characters that have fewer than eight bits each.
func (d *decoder) packed(mark byte, b []byte) (rest []byte, err error) {
	width := byte(0)
	if mark == markPacked7+1 {
		width = 1
	}
	n, b, err := prefix(b, width)
	if err != nil {
		return nil, err
	}
	bits, digits, lowest := 4, "", byte(0)
	switch {
	case mark == markHex:
		digits = lowerDigits
	case mark == markHex+1:
		digits = upperDigits
	case mark == markDateTime:
		digits = dateDigits
	case mark >= markPacked7:
		bits = 7
	default: // the lowest of the characters follows
		if len(b) == 0 {
			return nil, ErrMalformed
		}
		bits, lowest, b = int(mark-markPacked4)+4, b[0], b[1:]
	}
	size := (int(n)*bits + 7) / 8
	if size > len(b) {
		return nil, ErrMalformed
	}
	text := make([]byte, n)
	for i := range text {
		at := i * bits
		pair := uint16(b[at/8])
		if at%8+bits > 8 {
			pair |= uint16(b[at/8+1]) << 8
		}
		c := byte(pair>>(at%8)) & (1<<bits - 1)
		if digits != "" {
			c = digits[c]
		}
		text[i] = c + lowest
	}
	return b[size:], d.plain(text)
}
