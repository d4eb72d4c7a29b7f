// SPDX-License-Identifier: MIT

// Parsing JSON without changing a byte. It is only for valid text, and passes over it once,
// since some answers have megabytes. For invalid text the results are meaningless, but
// parsing ends.

package scripttest

import "bytes"

// member is a property of an object, as it is written.
type member struct {
	name string
	raw  []byte
}

// members returns the properties of an object in their order, and none for any other value.
func members(object []byte) []member {
	var list []member
	s := scanner{text: object}
	if !s.accept('{') {
		return nil
	}
	for s.at < len(s.text) && !s.accept('}') {
		s.accept(',')
		name := unquoted(s.value())
		s.accept(':')
		list = append(list, member{name, s.value()})
	}
	return list
}

// elements returns the elements of an array.
func elements(array []byte) [][]byte {
	var list [][]byte
	s := scanner{text: array}
	if !s.accept('[') {
		return nil
	}
	for s.at < len(s.text) && !s.accept(']') {
		s.accept(',')
		list = append(list, s.value())
	}
	return list
}

// lookup returns the value of a property of an object.
func lookup(object []byte, name string) (raw []byte, found bool) {
	for _, m := range members(object) {
		if m.name == name {
			return m.raw, true
		}
	}
	return nil, false
}

type scanner struct {
	text []byte
	at   int
}

// accept skips space and the given character, if that is next.
func (s *scanner) accept(char byte) bool {
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n"), s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at == len(s.text) || s.text[s.at] != char {
		return false
	}
	s.at++
	return true
}

// value skips a value and returns its text.
func (s *scanner) value() []byte {
	if s.accept('"') {
		start := s.at - 1
		s.string()
		return s.text[start:s.at]
	}
	start := s.at
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			s.at++
			s.string()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				s.at++
				return s.text[start:s.at]
			}
		}
		if depth <= 0 && s.at > start && bytes.IndexByte([]byte(",:]} \t\r\n"), s.text[s.at]) >= 0 {
			return s.text[start:s.at]
		}
		s.at++
	}
	return s.text[start:]
}

// string skips the rest of a string, after its opening quote.
func (s *scanner) string() {
	for s.at < len(s.text) {
		quote := bytes.IndexByte(s.text[s.at:], '"')
		if quote < 0 {
			s.at = len(s.text)
			return
		}
		rest := s.text[s.at : s.at+quote]
		s.at += quote + 1
		if backslashes := len(rest) - len(bytes.TrimRight(rest, `\`)); backslashes%2 == 0 {
			return
		}
	}
}
