// SPDX-License-Identifier: MIT

// Parses terms. Only tests do: they check that terms are self-delimiting and injective.

package index

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

// termsBelow returns the bounds of the terms of all paths below the given one. It returns
// false if the path is too long for them to be one range.
func termsBelow(path ...step) (lower, upper []byte, ok bool) {
	var e pathEncoder
	p := e.walk(path)
	lower = append(bytes.Clone(e.steps[:p.kept]), pathElements)
	upper = append(bytes.Clone(e.steps[:p.kept]), pathAfter)
	return lower, upper, p.cut == 0
}

// lowerLeads undoes raiseLeads. It returns false for bytes that raiseLeads never returns.
func lowerLeads(text string) (string, bool) {
	raw := []byte(text)
	for i, b := range raw {
		switch b {
		case leadE000, leadF000:
			return "", false
		case leadE000 + leadRaise, leadF000 + leadRaise:
			raw[i] -= leadRaise
		}
	}
	return string(raw), true
}

// termPath is a parsed {path}.
type termPath struct {
	steps []step // the first ones, if it is cut
	isCut bool
	hash  termHash // if it is cut
}

// termKind is the kind of a {value}.
type termKind uint8

const (
	termScalar termKind = iota
	termCutString
	termEmptyArray
	termEmptyObject
)

// termValue is a parsed {value}.
type termValue struct {
	kind   termKind
	scalar value.Scalar // of a cut string its first bytes, which may end within a character
	hash   termHash     // of a cut string
}

// parseTerm parses the term that raw begins with and returns the bytes after it. The error
// is [value.ErrKey].
func parseTerm(raw []byte) (p termPath, v termValue, rest []byte, err error) {
	if p, rest, err = parseTermPath(raw); err != nil {
		return termPath{}, termValue{}, nil, err
	}
	if v, rest, err = parseTermValue(rest); err != nil {
		return termPath{}, termValue{}, nil, err
	}
	return p, v, rest, nil
}

func parseTermPath(raw []byte) (p termPath, rest []byte, err error) {
	for rest = raw; len(raw)-len(rest) <= maxTermPathBytes && len(rest) > 0; {
		tag := rest[0]
		rest = rest[1:]
		switch tag {
		case pathEnd:
			return p, rest, nil
		case pathCut:
			if len(rest) < termHashBytes {
				return termPath{}, nil, malformedTerm("the hash of the path is cut short")
			}
			p.isCut, p.hash = true, termHash(rest)
			return p, rest[termHashBytes:], nil
		case pathElements:
			p.steps = append(p.steps, step{elements: true})
		case pathProperty:
			var name []byte
			if name, rest, err = value.DecodeBytesKey(rest); err != nil {
				return termPath{}, nil, err
			}
			p.steps = append(p.steps, step{name: string(name)})
		default:
			return termPath{}, nil, malformedTerm("there is no such step")
		}
	}
	return termPath{}, nil, malformedTerm("the path has no end where it must")
}

func parseTermValue(raw []byte) (v termValue, rest []byte, err error) {
	if len(raw) > 0 {
		switch raw[0] {
		case tagEmptyArray:
			return termValue{kind: termEmptyArray}, raw[1:], nil
		case tagEmptyObject:
			return termValue{kind: termEmptyObject}, raw[1:], nil
		}
	}
	if v, rest, ok := parseCutString(raw); ok {
		return v, rest, nil
	}
	if v.scalar, rest, err = value.DecodeKey(raw); err != nil {
		return termValue{}, nil, err
	}
	ok := v.scalar.Defined()
	if text, isString := v.scalar.Text(); isString {
		text, ok = lowerLeads(text)
		ok = ok && len(raw)-len(rest)-len("\x50\x00\x01") <= maxTermValueBytes
		v.scalar = value.String(text)
	}
	if !ok {
		return termValue{}, nil, malformedTerm("the value is never written")
	}
	return v, rest, nil
}

// parseCutString parses a cut string, and returns false if raw does not begin with one.
func parseCutString(raw []byte) (v termValue, rest []byte, ok bool) {
	end := 1 // after the tag
	for end+1 < len(raw) && end <= maxTermValueBytes && (raw[end] != escape || raw[end+1] == escapedZero) {
		if raw[end] == escape {
			end++
		}
		end++
	}
	kept := end - 1
	if kept < maxTermValueBytes-1 || kept > maxTermValueBytes || end+2+termHashBytes > len(raw) || raw[end] != escape || raw[end+1] != escapedCut {
		return termValue{}, nil, false
	}
	first, after, err := value.DecodeKey(append(slices.Clone(raw[:end]), escape, escapedEnd))
	text, isString := first.Text()
	if err != nil || len(after) > 0 || !isString {
		return termValue{}, nil, false
	}
	if text, ok = lowerLeads(text); !ok {
		return termValue{}, nil, false
	}
	rest = raw[end+2:]
	return termValue{termCutString, value.String(text), termHash(rest)}, rest[termHashBytes:], true
}

func malformedTerm(why string) error { return fmt.Errorf("%w: %s", value.ErrKey, why) }
