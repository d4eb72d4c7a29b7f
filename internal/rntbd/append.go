// SPDX-License-Identifier: MIT

// Making frames. A frame is begun, gets its tokens, and is ended, which fills in its
// length. The payload follows.

package rntbd

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// BeginRequest appends the head of a request.
func BeginRequest(b []byte, r Resource, op Operation, activity GUID) []byte {
	return begin(b, uint32(r)|uint32(op)<<16, activity)
}

// BeginResponse appends the head of an answer.
func BeginResponse(b []byte, status int, activity GUID) []byte {
	return begin(b, uint32(status), activity)
}

func begin(b []byte, word uint32, activity GUID) []byte {
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, word)
	return append(b, activity[:]...)
}

// End fills in the length of the frame that begins at start, after its last token.
func End(b []byte, start int) {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start))
}

// AppendLength appends the length of a payload, which follows it.
func AppendLength(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }

func head(b []byte, id Token, t Type) []byte { return append(b, byte(id), byte(id>>8), byte(t)) }

// AppendByte appends a token of one byte.
func AppendByte(b []byte, id Token, v byte) []byte { return append(head(b, id, Byte), v) }

// AppendFlag appends a token of one byte that is 0 or 1.
func AppendFlag(b []byte, id Token, v bool) []byte {
	if v {
		return AppendByte(b, id, 1)
	}
	return AppendByte(b, id, 0)
}

// AppendULong appends a token of four bytes.
func AppendULong(b []byte, id Token, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(head(b, id, ULong), v)
}

// AppendLongLong appends a token of eight bytes.
func AppendLongLong(b []byte, id Token, v int64) []byte {
	return binary.LittleEndian.AppendUint64(head(b, id, LongLong), uint64(v))
}

// AppendDouble appends a floating-point token.
func AppendDouble(b []byte, id Token, v float64) []byte {
	return binary.LittleEndian.AppendUint64(head(b, id, Double), math.Float64bits(v))
}

// AppendGUID appends a token with an identifier.
func AppendGUID(b []byte, id Token, v GUID) []byte { return append(head(b, id, Guid), v[:]...) }

// Longest values of tokens.
const (
	MaxSmall = math.MaxUint8
	MaxText  = math.MaxUint16
)

// AppendSmall appends a token with a short text, cut at MaxSmall.
func AppendSmall(b []byte, id Token, v string) []byte {
	v = cut(v, MaxSmall)
	return append(append(head(b, id, SmallString), byte(len(v))), v...)
}

// AppendText appends a token with a text, cut at MaxText. A caller whose text must not be
// cut checks its length first.
func AppendText(b []byte, id Token, v string) []byte {
	v = cut(v, MaxText)
	b = binary.LittleEndian.AppendUint16(head(b, id, String), uint16(len(v)))
	return append(b, v...)
}

// AppendBytes appends a token of bytes, cut at MaxText.
func AppendBytes(b []byte, id Token, v string) []byte {
	v = v[:min(len(v), MaxText)]
	b = binary.LittleEndian.AppendUint16(head(b, id, Bytes), uint16(len(v)))
	return append(b, v...)
}

// cut returns at most the first n bytes of a text, and only whole characters.
func cut(v string, n int) string {
	if len(v) <= n {
		return v
	}
	for n > 0 && !utf8.RuneStart(v[n]) {
		n--
	}
	return v[:n]
}
