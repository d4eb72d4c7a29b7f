// SPDX-License-Identifier: MIT

// Package rntbd is the wire format of direct mode: frames, their tokens, and the numbers
// that stand for resources, operations and levels. It is pure: it reads and makes bytes,
// and knows neither connections nor what requests mean.
//
// A frame is a head, tokens, and sometimes a payload. The head has the length of head and
// tokens, two numbers and an id. A token is an id, the type of its value, and the value.
// A token says which REST header, or which part of the path, its value stands for. All
// numbers are little-endian.
//
//  1. No length is trusted: it is compared with what is there, or with a limit, before
//     anything is sliced or made.
//  2. A token that a table lists must have the declared type, so its value can be read
//     without a check. A token that no table lists is skipped by the length of its type.
package rntbd

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/mayflydb/mayfly/internal/value"
)

// ErrMalformed is the error of bytes that are not a frame. Nothing can be read after
// them, since it is not known where the next frame begins.
var ErrMalformed = errors.New("malformed frame")

const (
	// HeadBytes is the length of a head.
	HeadBytes = 24
	// MaxHeadBytes is the largest length of head and tokens. It is twice what HTTP's
	// headers may have, since a session token or continuation has up to 64 KiB.
	MaxHeadBytes = 128 << 10
	// LengthBytes is the length of the number before a payload.
	LengthBytes = 4
	// SniffBytes is how many bytes of a connection tell whether it is in this format.
	SniffBytes = 8
)

// Sniff reports whether a connection that begins with these bytes is in this format, once
// SniffBytes are there. With fewer it reports whether it may be. The first frame opens the
// channel: it is not long, and its resource and operation are zero. No HTTP request and no
// TLS handshake has zeros there.
func Sniff(first []byte) bool {
	for i, b := range first[:min(len(first), SniffBytes)] {
		if i == 2 && b > MaxHeadBytes>>16 || i > 2 && b != 0 {
			return false
		}
	}
	return true
}

// RequestHead is the head of a request.
type RequestHead struct {
	// Length is the length of head and tokens.
	Length    int
	Resource  Resource
	Operation Operation
	// Activity identifies the request in logs; its answer has the same.
	Activity GUID
}

// ResponseHead is the head of an answer.
type ResponseHead struct {
	Length   int
	Status   int
	Activity GUID
}

// ParseRequestHead parses the first HeadBytes of a request.
func ParseRequestHead(b []byte) (h RequestHead, err error) {
	if h.Length, err = headLength(b); err != nil {
		return h, err
	}
	h.Resource, h.Operation = Resource(binary.LittleEndian.Uint16(b[4:])), Operation(binary.LittleEndian.Uint16(b[6:]))
	h.Activity = GUID(b[8:HeadBytes])
	return h, nil
}

// ParseResponseHead parses the first HeadBytes of an answer.
func ParseResponseHead(b []byte) (h ResponseHead, err error) {
	if h.Length, err = headLength(b); err != nil {
		return h, err
	}
	h.Status, h.Activity = int(binary.LittleEndian.Uint32(b[4:])), GUID(b[8:HeadBytes])
	return h, nil
}

func headLength(b []byte) (int, error) {
	if len(b) < HeadBytes {
		return 0, ErrMalformed
	}
	n := binary.LittleEndian.Uint32(b)
	if n < HeadBytes || n > MaxHeadBytes {
		return 0, ErrMalformed
	}
	return int(n), nil
}

// GUID is an identifier of 16 bytes, in the order of the wire.
type GUID [16]byte

// String returns the GUID's text. The first three groups of its digits are numbers, and
// so are reversed on the wire.
func (g GUID) String() string {
	high := uint64(binary.LittleEndian.Uint32(g[:]))<<32 |
		uint64(binary.LittleEndian.Uint16(g[4:]))<<16 | uint64(binary.LittleEndian.Uint16(g[6:]))
	var text [value.GUIDChars]byte
	value.PutGUID(text[:], high, binary.BigEndian.Uint64(g[8:]))
	return string(text[:])
}

// Scanner reads tokens. The text that it scans may be longer than its tokens' values, and
// the values share its memory.
type Scanner struct {
	// ID is the current token, and Type its type.
	ID   Token
	Type Type

	rest, value string
	table       *Table
	err         error
}

// Scan returns a scanner of the tokens of a frame.
func Scan(tokens string, table *Table) Scanner { return Scanner{rest: tokens, table: table} }

// Next goes to the next token. It returns false at the end, and at an error.
func (s *Scanner) Next() bool {
	if len(s.rest) == 0 || s.err != nil {
		return false
	}
	if len(s.rest) < tokenHeadBytes {
		return s.fail()
	}
	s.ID, s.Type = Token(s.rest[0])|Token(s.rest[1])<<8, Type(s.rest[2])
	if declared, listed := s.table.typeOf(s.ID); listed && declared != s.Type || s.Type >= types {
		return s.fail()
	}
	s.rest = s.rest[tokenHeadBytes:]
	n, prefix := uint64(sizes[s.Type].fixed), sizes[s.Type].prefix
	if len(s.rest) < prefix {
		return s.fail()
	}
	for i := range prefix {
		n |= uint64(s.rest[i]) << (8 * i)
	}
	if n > uint64(len(s.rest)-prefix) {
		return s.fail()
	}
	end := prefix + int(n)
	s.value, s.rest = s.rest[prefix:end], s.rest[end:]
	return true
}

func (s *Scanner) fail() bool {
	s.value, s.err = "", ErrMalformed
	return false
}

// Err returns ErrMalformed if the scan ended at something that is no token.
func (s *Scanner) Err() error { return s.err }

// Text returns the value of a token of strings or bytes.
func (s *Scanner) Text() string { return s.value }

// Byte returns the value of a token of one byte.
func (s *Scanner) Byte() byte { return byte(s.number()) }

// Flag reports whether a token of one byte is not zero.
func (s *Scanner) Flag() bool { return s.number() != 0 }

// Uint32 returns the value of a token of four bytes.
func (s *Scanner) Uint32() uint32 { return uint32(s.number()) }

// Int64 returns the value of a token of eight bytes.
func (s *Scanner) Int64() int64 { return int64(s.number()) }

// Double returns the value of a floating-point token.
func (s *Scanner) Double() float64 { return math.Float64frombits(s.number()) }

// number returns up to eight bytes of the value as a number.
func (s *Scanner) number() (n uint64) {
	for i := range min(len(s.value), 8) {
		n |= uint64(s.value[i]) << (8 * i)
	}
	return n
}
