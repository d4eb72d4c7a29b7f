// SPDX-License-Identifier: MIT

// JSON objects: the bodies that clients send, checked once and kept in compact
// form.

package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxNesting is how deep the objects and arrays of an item may be nested,
// the item itself included.
const MaxNesting = 128

// SyntaxError says why a text is not an object that can be stored.
type SyntaxError struct {
	Offset int    // byte of the input at or after which the fault lies
	Msg    string // for the client
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Msg, e.Offset) }

// Object is a JSON object that has been checked, in compact form: there is no
// space outside strings, and strings and numbers are spelled as they came. It
// is immutable and may be shared; so are all slices that it hands out, which
// callers must not write to.
type Object struct {
	text    []byte
	members []Member // nil if they have not been listed: see [ObjectOf]
}

// Member is one property of an [Object].
type Member struct {
	Name string // without quotes and escapes
	Raw  []byte // the value, as compact JSON
	text []byte // "name":value as written; Raw is its end
}

// Head is the name as it was written, with the colon after it.
func (m *Member) Head() []byte { return m.text[:len(m.text)-len(m.Raw)] }

// Compact checks a JSON text of any kind and copies it without the space around its
// parts. It reports false if it is none.
func Compact(src []byte) (text []byte, ok bool) {
	v := jsontext.Value(bytes.Clone(src))
	if err := v.Compact(); err != nil || len(v) == 0 {
		return nil, false
	}
	return v, true
}

// ParseObject checks and copies src. It accepts one object in strict JSON:
// valid UTF-8, no lone surrogates, no duplicate names at any depth, nothing but
// space around it, at most [MaxNesting] levels, and numbers that a float64 can
// hold. The error is a *[SyntaxError].
func ParseObject(src []byte) (*Object, error) {
	// jsontext's validity check keeps its decoders in a pool and is the fastest
	// way in; only a refused text is read again, to say what is wrong with it.
	if firstByte(src) != '{' || !jsontext.Value(src).IsValid() {
		return nil, diagnose(src)
	}
	var space [16]mark
	text, marks, err := compact(src, space[:0])
	if err != nil {
		return nil, err
	}
	return &Object{text: slices.Clip(text), members: membersOf(text, marks)}, nil
}

// ObjectOf returns the object of a text that [Object.Bytes] has returned before, as stored
// items have it. It does not check the text, and shares its memory. Its properties are found
// in the text when they are asked for, which is the cheaper way for a few of them.
func ObjectOf(text []byte) *Object { return &Object{text: text} }

// Bytes returns the whole object as compact JSON.
func (o *Object) Bytes() []byte { return o.text }

// Members returns the properties of the root in the order they came in.
func (o *Object) Members() []Member {
	if o.members == nil {
		members, _ := Members(o.text)
		return members
	}
	return o.members
}

// Lookup returns the value of a property of the root.
func (o *Object) Lookup(name string) (raw []byte, ok bool) {
	if o.members == nil {
		return memberOf(o.text, name)
	}
	for i := range o.members {
		if o.members[i].Name == name {
			return o.members[i].Raw, true
		}
	}
	return nil, false
}

// At returns the value that p leads to. A property that is absent, and a value
// on the way that is no object, mean that there is none. The empty path leads
// to the object itself.
func (o *Object) At(p Path) (raw []byte, ok bool) {
	if len(p) == 0 {
		return o.text, true
	}
	raw, ok = o.Lookup(p[0])
	for _, name := range p[1:] {
		if !ok {
			break
		}
		raw, ok = memberOf(raw, name)
	}
	return raw, ok
}

// AppendMembers appends "name":value for every property of the root, as
// written, with commas between them and no braces, leaving out those whose name
// skip reports true for. A nil skip leaves out nothing.
func (o *Object) AppendMembers(dst []byte, skip func(name string) bool) []byte {
	written := false
	members := o.Members()
	for i := range members {
		m := &members[i]
		if skip != nil && skip(m.Name) {
			continue
		}
		if written {
			dst = append(dst, ',')
		}
		dst = append(dst, m.text...)
		written = true
	}
	return dst
}

// diagnose says what is wrong with a text that ParseObject has refused.
func diagnose(src []byte) error {
	start := len(src) - len(skipSpace(src))
	if start == len(src) {
		return &SyntaxError{Offset: start, Msg: "the content is empty, expected a JSON object"}
	}
	if src[start] != '{' {
		return &SyntaxError{Offset: start, Msg: "the content is not a JSON object"}
	}
	d := jsontext.NewDecoder(bytes.NewReader(src))
	for {
		_, err := d.ReadToken()
		switch {
		case err != nil:
			return syntaxError(d, err)
		case d.StackDepth() > MaxNesting:
			return tooDeep(int(d.InputOffset()) - 1)
		case d.StackDepth() == 0:
			after := int(d.InputOffset())
			after = len(src) - len(skipSpace(src[after:]))
			return &SyntaxError{Offset: after, Msg: "there is more than one JSON object"}
		}
	}
}

func tooDeep(offset int) *SyntaxError {
	return &SyntaxError{Offset: offset, Msg: fmt.Sprintf("objects and arrays are nested more than %d levels deep", MaxNesting)}
}

// syntaxError puts the decoder's finding into words for a client.
func syntaxError(d *jsontext.Decoder, err error) *SyntaxError {
	offset := int(d.InputOffset())
	var found *jsontext.SyntacticError
	if errors.As(err, &found) {
		offset, err = int(found.ByteOffset), found.Err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &SyntaxError{Offset: offset, Msg: "the JSON text ends too early"}
	case errors.Is(err, jsontext.ErrDuplicateName) && found != nil:
		name := AppendString(nil, found.JSONPointer.LastToken())
		return &SyntaxError{Offset: offset, Msg: "the property name " + string(name) + " occurs twice in one object"}
	}
	return &SyntaxError{Offset: offset, Msg: "the JSON text is malformed: " + err.Error()}
}

// firstByte returns the first byte that is not space, or 0.
func firstByte(src []byte) byte {
	if src = skipSpace(src); len(src) > 0 {
		return src[0]
	}
	return 0
}

func skipSpace(src []byte) []byte {
	i := 0
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	return src[i:]
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }
