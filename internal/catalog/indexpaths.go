// SPDX-License-Identifier: MIT

// Index paths: which values of an item are indexed according to the indexing policy,
// compiled into a tree that is walked together with the item.
//
// A path ends with "/?", for the scalar at this path, or with "/*", for everything at
// and below it. Without either it counts as "/*" (the service refuses it). Of the paths
// that match a value the most precise one decides: a deeper path before a shorter one,
// and "/?" before "/*". The service does not document a path that is both included and
// excluded. Here it is excluded: that costs only speed, and the client asked for it.
//
// An empty object or array is no scalar: "/*" covers it, "/?" does not.
//
// Whatever the policy says, "id" is indexed, as in the service. System properties are
// not: other rows serve queries for them.

package catalog

import (
	"errors"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// errIndexPath: a text is no index path. Callers make the message, since they have the
// text.
var errIndexPath = errors.New("malformed index path")

// everything is the node below which all values are indexed.
var everything = newEverything()

func newEverything() *IndexNode {
	n := &IndexNode{scalar: true, below: true}
	n.rest, n.elements = n, n
	return n
}

// IndexPaths says which values of an item are indexed. It is immutable, and its zero
// value indexes nothing.
type IndexPaths struct{ root *IndexNode }

// Empty reports whether no value is indexed.
func (x *IndexPaths) Empty() bool { return x.root == nil }

// Root returns the node of the whole item, nil if nothing of it is indexed.
func (x *IndexPaths) Root() *IndexNode { return x.root }

// Equal reports whether the same values are indexed by both.
func (x *IndexPaths) Equal(y *IndexPaths) bool { return x.root.equal(y.root) }

// IndexNode says what is indexed of a value and of what is inside it. A nil node means
// nothing, so the value can be skipped.
type IndexNode struct {
	scalar, below bool
	first         [4]uint64             // the first bytes of the names, as a set
	names         map[string]*IndexNode // only those that differ from rest
	rest          *IndexNode            // of all other properties: everything or nil
	elements      *IndexNode
}

// Scalar reports whether the value is indexed if it is a scalar.
func (n *IndexNode) Scalar() bool { return n.scalar }

// Empty reports whether the value is indexed if it is an empty object or array.
func (n *IndexNode) Empty() bool { return n.below }

// Elements returns the node of the elements, if the value is an array.
func (n *IndexNode) Elements() *IndexNode { return n.elements }

// Property returns the node of a property, if the value is an object. The set of first
// bytes avoids nearly all look-ups: under the default policy only names that begin like a
// system property need one.
func (n *IndexNode) Property(name []byte) *IndexNode {
	if len(name) == 0 || n.first[name[0]>>6]&(1<<(name[0]&63)) == 0 {
		return n.rest
	}
	if child, ok := n.names[string(name)]; ok {
		return child
	}
	return n.rest
}

// equal compares trees. Each policy has exactly one tree, so trees differ if and only if
// they index differently. Their depth is bounded by [value.MaxPathSegments].
func (n *IndexNode) equal(o *IndexNode) bool {
	if n == o || n == nil || o == nil || n == everything || o == everything {
		return n == o
	}
	if n.scalar != o.scalar || n.below != o.below || len(n.names) != len(o.names) || !n.elements.equal(o.elements) {
		return false
	}
	for name, child := range n.names {
		if other, ok := o.names[name]; !ok || !child.equal(other) {
			return false
		}
	}
	return true
}

// verdict is what the policy's paths say about a path of an item.
type verdict uint8

const (
	unsaid verdict = iota
	in
	out
)

func (v verdict) or(inherited bool) bool { return v == in || v == unsaid && inherited }

// indexMarks is the tree of the policy's paths.
type indexMarks struct {
	scalar, below verdict
	names         map[string]*indexMarks
	elements      *indexMarks
}

// compileIndexPaths builds the tree of a policy whose mode is not "none".
func compileIndexPaths(included, excluded []string) (IndexPaths, error) {
	root := &indexMarks{}
	for _, list := range []struct {
		paths []string
		says  verdict
	}{{included, in}, {excluded, out}} {
		for _, text := range list.paths {
			p, err := parseIndexPath(text)
			if err != nil {
				return IndexPaths{}, err
			}
			root.mark(p, list.says)
		}
	}
	root.property("id").scalar = in
	for _, name := range systemProperties {
		*root.property(name) = indexMarks{scalar: out, below: out}
	}
	// An item is neither a scalar nor an array.
	root.scalar, root.elements = unsaid, nil
	return IndexPaths{root.resolve(false)}, nil
}

func (m *indexMarks) mark(p policyPath, says verdict) {
	for _, s := range p.steps {
		if s.elements {
			if m.elements == nil {
				m.elements = &indexMarks{}
			}
			m = m.elements
		} else {
			m = m.property(s.name)
		}
	}
	if p.scalar {
		m.scalar = says
	} else {
		m.below = says
	}
}

func (m *indexMarks) property(name string) *indexMarks {
	child := m.names[name]
	if child == nil {
		child = &indexMarks{}
		if m.names == nil {
			m.names = map[string]*indexMarks{}
		}
		m.names[name] = child
	}
	return child
}

// resolve turns marks into a node; inherited is the verdict for the path above. If
// everything below is alike, the result is the node everything, or nil.
func (m *indexMarks) resolve(inherited bool) *IndexNode {
	n := &IndexNode{below: m.below.or(inherited)}
	n.scalar = m.scalar.or(n.below)
	if n.below {
		n.rest = everything
	}
	n.elements = n.rest
	if m.elements != nil {
		n.elements = m.elements.resolve(n.below)
	}
	for name, marks := range m.names {
		child := marks.resolve(n.below)
		if child == n.rest {
			continue
		}
		if n.names == nil {
			n.names = map[string]*IndexNode{}
		}
		n.names[name] = child
		n.first[name[0]>>6] |= 1 << (name[0] & 63)
	}
	if n.names == nil && n.elements == n.rest && n.scalar == n.below {
		return n.rest
	}
	return n
}

// policyPath is a parsed index path.
type policyPath struct {
	steps  []indexStep
	scalar bool // ends with "/?"
}

// indexStep leads to a property, or to the elements of an array.
type indexStep struct {
	name     string
	elements bool
}

// parseIndexPath parses paths like /a/b/?, /"a b"/[]/* and /*. The error is errIndexPath.
func parseIndexPath(text string) (policyPath, error) {
	var p policyPath
	for rest := text; ; {
		segment, after := cutIndexSegment(rest)
		switch {
		case segment == "/?" && after == "":
			p.scalar = true
			return p, nil
		case segment == "/*" && after == "":
			return p, nil
		case len(p.steps) == value.MaxPathSegments:
			return policyPath{}, errIndexPath
		case segment == "/[]":
			p.steps = append(p.steps, indexStep{elements: true})
		default:
			name, err := value.ParsePath(segment)
			if err != nil || len(name) != 1 {
				return policyPath{}, errIndexPath
			}
			p.steps = append(p.steps, indexStep{name: name[0]})
		}
		if after == "" {
			return p, nil
		}
		rest = after
	}
}

// cutIndexSegment returns the first segment of a path with its slash, and the rest. A
// slash in a quoted segment is an ordinary character.
func cutIndexSegment(s string) (segment, after string) {
	end := 1
	if len(s) > 1 && (s[1] == '"' || s[1] == '\'') {
		for end = 2; end < len(s) && s[end] != s[1]; end++ {
			if s[end] == '\\' {
				end++
			}
		}
	}
	if end >= len(s) {
		return s, ""
	}
	if slash := strings.IndexByte(s[end:], '/'); slash >= 0 {
		return s[:end+slash], s[end+slash:]
	}
	return s, ""
}
