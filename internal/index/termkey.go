// SPDX-License-Identifier: MIT

// The bytes of a term, {path}{value}: a path in an item, and the value at it.
//
// A path is its steps and an end:
//
//	end       01
//	elements  02                            of an array, all of them alike
//	property  03 {name, escaped, its end}   (value.AppendBytesKey)
//	cut       04 {16 bytes of hash}
//
// A value is null, a boolean or a number as value.AppendKey writes it, or one of
//
//	string        50 {escaped} 00 01
//	string, cut   50 {the first bytes, escaped} 00 02 {16 bytes of hash}
//	empty array   60
//	empty object  70
//
// A string is escaped as value.AppendKey does, with EE and EF written as F5 and F6:
// queries order strings by their UTF-16 code units, in which U+E000 to U+FFFF come after
// all other characters. These are the characters that begin with EE or EF in UTF-8. No
// character begins with F5 or F6.
//
// Invariants:
//
//  1. All terms of one path lie together, in the order of their values, and before those
//     of the paths below it.
//  2. The terms below a path that is not cut are one range: from {steps} 02 to
//     {steps} 05, cut ones included.
//  3. Self-delimiting: the end of a term follows from its bytes, so that the ordinal can
//     follow it.
//  4. Injective, except for collisions of 16 bytes of SHA-256.
//  5. Bounded: neither part exceeds its limit by more than the mark and the hash.
//
// A path whose steps take more than maxTermPathBytes keeps the steps that fit
// from its beginning; the hash is a chain over the others, each link the SHA-256
// of the link before (32 zero bytes before the first) and the step. So a walk over an item
// hashes a name once, and not once for every leaf below it.
//
// A string whose escaped bytes are more than maxTermValueBytes keeps as many of
// them, or one less where an escape would be cut in two; the hash is of the whole
// string. 00 02 sorts after 00 01, which ends the string of just the bytes that were kept,
// and before all other bytes that can follow them. So cut strings are in order among the
// others, and only cut strings with the same beginning are in no order.

package index

import (
	"crypto/sha256"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxTermPathBytes and maxTermValueBytes bound the rows of the index.
	maxTermPathBytes  = 256
	maxTermValueBytes = 256

	pathEnd      byte = 0x01
	pathElements byte = 0x02
	pathProperty byte = 0x03
	pathCut      byte = 0x04
	// pathAfter is above all bytes that can follow a path's steps.
	pathAfter byte = 0x05

	// The tags of empty values are above those of all scalars, arrays before
	// objects, as values of these types sort.
	tagEmptyArray  byte = 0x60
	tagEmptyObject byte = 0x70

	// In an escaped string, 00 is followed by 01 at the end, by 02 at a cut, and by FF
	// where it stands for itself.
	escape      byte = 0x00
	escapedEnd  byte = 0x01
	escapedCut  byte = 0x02
	escapedZero byte = 0xFF

	termHashBytes = 16

	// The first bytes in UTF-8 of U+E000 to U+FFFF, and the number that is added to them
	// so that they sort above those of all other characters.
	leadE000  byte = 0xEE
	leadF000  byte = 0xEF
	leadRaise byte = 7
)

// termHash tells paths or strings with the same beginning apart after they are cut.
type termHash [termHashBytes]byte

// step leads from a value to one of its properties, or to its elements if it is
// an array.
type step struct {
	name     string
	elements bool
}

// pathOffset is the path of a value in an item, as a position in the pathEncoder.
type pathOffset struct {
	kept int // bytes of the encoder's steps
	cut  int // steps after those
}

// pathEncoder encodes paths step by step. It holds the steps of one path. Their beginnings
// are the paths above it.
type pathEncoder struct {
	steps  [maxTermPathBytes]byte
	chains [][sha256.Size]byte // after each step that is cut
	link   []byte              // memory for hashing
}

// property returns the path of a property of the value at p.
func (e *pathEncoder) property(p pathOffset, name []byte) pathOffset {
	return e.stepped(p, value.AppendBytesKey(append(e.steps[:p.kept], pathProperty), name))
}

// elements returns the path of the elements of the array at p.
func (e *pathEncoder) elements(p pathOffset) pathOffset {
	return e.stepped(p, append(e.steps[:p.kept], pathElements))
}

// stepped returns the path with the given steps, which are those of p and one more. The
// caller has written them to e.steps as far as they fit.
func (e *pathEncoder) stepped(p pathOffset, steps []byte) pathOffset {
	if p.cut == 0 && len(steps) <= maxTermPathBytes {
		return pathOffset{kept: len(steps)}
	}
	var before [sha256.Size]byte
	if p.cut > 0 {
		before = e.chains[p.cut-1]
	}
	e.link = append(append(e.link[:0], before[:]...), steps[p.kept:]...)
	e.chains = append(e.chains[:p.cut], sha256.Sum256(e.link))
	return pathOffset{p.kept, p.cut + 1}
}

// appendPath appends the encoding of p's path.
func (e *pathEncoder) appendPath(dst []byte, p pathOffset) []byte {
	dst = append(dst, e.steps[:p.kept]...)
	if p.cut > 0 {
		return append(append(dst, pathCut), e.chains[p.cut-1][:termHashBytes]...)
	}
	return append(dst, pathEnd)
}

func (e *pathEncoder) walk(steps []step) pathOffset {
	var p pathOffset
	for _, s := range steps {
		if s.elements {
			p = e.elements(p)
		} else {
			p = e.property(p, []byte(s.name))
		}
	}
	return p
}

// appendTermPath appends {path}, which all terms of exactly this path begin with.
func appendTermPath(dst []byte, path ...step) []byte {
	var e pathEncoder
	p := e.walk(path)
	return e.appendPath(dst, p)
}

// appendTermString appends the {value} of a string.
func appendTermString(dst, s []byte) []byte {
	start := len(dst) + 1 // after the tag
	// Escaping makes a string no shorter, so later bytes cannot be needed.
	dst = value.AppendStringKey(dst, s[:min(len(s), maxTermValueBytes+1)])
	raiseLeads(dst[start:])
	end := start + maxTermValueBytes
	if len(dst)-len("\x00\x01") <= end {
		return dst
	}
	if dst[end-1] == escape {
		end--
	}
	sum := sha256.Sum256(s)
	return append(append(dst[:end], escape, escapedCut), sum[:termHashBytes]...)
}

// raiseLeads changes the order of the bytes to that of UTF-16 code units.
func raiseLeads(escaped []byte) {
	for i, b := range escaped {
		if b == leadE000 || b == leadF000 {
			escaped[i] += leadRaise
		}
	}
}
