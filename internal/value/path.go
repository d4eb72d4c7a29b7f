// SPDX-License-Identifier: MIT

// Paths to one property of an item, as partition keys, unique keys and
// composite indexes name it.

package value

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	// ErrPathSlash is returned for a path that does not begin with a slash.
	ErrPathSlash = errors.New("path does not start with a slash")
	// ErrPathSyntax is returned for a path that begins well and goes wrong:
	// an empty segment, a trailing slash, a wildcard, a bad quotation.
	ErrPathSyntax = errors.New("path is malformed")
)

// MaxPathSegments is the longest path: an item has no property that is deeper.
const MaxPathSegments = MaxNesting

// Path leads from the root of an item to one property, a name per level.
type Path []string

// ParsePath reads paths like /a/b and /"a b"/c. A segment in quotes, double as
// in indexing policies or single as SDKs also take them, is a JSON string
// between them and may hold any character; one without quotes holds no
// wildcard (*, ?, [ and ]), quotation mark, backslash or control character and
// has no space at its ends. No segment is empty. The error is [ErrPathSlash]
// or [ErrPathSyntax].
func ParsePath(s string) (Path, error) {
	if !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("%w: %q", ErrPathSlash, s)
	}
	malformed := func(reason string) error { return fmt.Errorf("%w: %q: %s", ErrPathSyntax, s, reason) }
	if !utf8.ValidString(s) {
		return nil, malformed("not valid UTF-8")
	}
	var p Path
	for rest := s; rest != ""; {
		if rest[0] != '/' {
			return nil, malformed("text after a quoted segment")
		}
		if len(p) == MaxPathSegments {
			return nil, malformed(fmt.Sprintf("more than %d segments", MaxPathSegments))
		}
		segment, after, reason := nextSegment(rest[1:])
		if reason == "" && segment == "" {
			reason = "empty segment or trailing slash"
		}
		if reason != "" {
			return nil, malformed(reason)
		}
		p = append(p, segment)
		rest = after
	}
	return p, nil
}

// nextSegment returns the first segment of s, which begins after a slash, and
// what follows the segment. The reason is empty when all is well.
func nextSegment(s string) (segment, rest, reason string) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		return quotedSegment(s)
	}
	segment, rest = s, ""
	if i := strings.IndexByte(s, '/'); i >= 0 {
		segment, rest = s[:i], s[i:]
	}
	return segment, rest, plainFault(segment)
}

func quotedSegment(s string) (segment, rest, reason string) {
	body, rest, ok := CutQuoted(s)
	if !ok {
		return "", "", "quotation has no end"
	}
	if s[0] == '\'' {
		// As a JSON string: \' needs no escape there, and " does.
		body = strings.NewReplacer(`\\`, `\\`, `\"`, `\"`, `\'`, `'`, `"`, `\"`).Replace(body)
	}
	unquoted, err := jsontext.AppendUnquote(nil, `"`+body+`"`)
	if err != nil {
		return "", "", "quoted segment is not a JSON string"
	}
	return string(unquoted), rest, ""
}

// plainFault says why a segment cannot stand without quotes, or nothing.
func plainFault(segment string) string {
	for _, r := range segment {
		switch {
		case r == '*' || r == '?' || r == '[' || r == ']':
			return "wildcard " + string(r)
		case r == '"' || r == '\\':
			return "unexpected " + string(r)
		case r < ' ' || r == 0x7F:
			return "control character"
		}
	}
	if strings.TrimSpace(segment) != segment {
		return "space at the end of a segment"
	}
	return ""
}

// String returns the path's text, with quotes only where they are needed:
// ParsePath gives the same path back.
func (p Path) String() string {
	var b []byte
	for _, segment := range p {
		b = append(b, '/')
		if plainFault(segment) != "" || strings.HasPrefix(segment, "'") || strings.Contains(segment, "/") {
			b = AppendString(b, segment)
		} else {
			b = append(b, segment...)
		}
	}
	return string(b)
}
