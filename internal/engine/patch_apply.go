// SPDX-License-Identifier: MIT

// Applying a patch. The item is parsed only along the paths of the patch. Everything else
// is copied unchanged, except numbers: a patched item has them in the shortest form, as
// in the service.

package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// patchNode is a value of the item: its text or, once a path has led into it, its
// children.
type patchNode struct {
	raw      []byte
	opened   bool
	isArray  bool
	names    []string // of the properties of an object
	children []*patchNode
}

// container parses the node's children, and reports whether it is an object or an array.
func (n *patchNode) container() bool {
	if n.opened {
		return true
	}
	if members, ok := value.Members(n.raw); ok {
		for _, m := range members {
			n.names = append(n.names, m.Name)
			n.children = append(n.children, &patchNode{raw: m.Raw})
		}
		n.opened = true
	}
	if elements, ok := value.Elements(n.raw); ok {
		for _, e := range elements {
			n.children = append(n.children, &patchNode{raw: e})
		}
		n.opened, n.isArray = true, true
	}
	return n.opened
}

// find returns the index of a child of an opened node; -1 if there is none.
func (n *patchNode) find(name string) int {
	if !n.isArray {
		return slices.Index(n.names, name)
	}
	if i, ok := arrayIndex(name); ok && i < len(n.children) {
		return i
	}
	return -1
}

// arrayIndex parses the index of an element, as in RFC 6901.
func arrayIndex(name string) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == name
}

func (n *patchNode) remove(i int) {
	if !n.isArray {
		n.names = slices.Delete(n.names, i, i+1)
	}
	n.children = slices.Delete(n.children, i, i+1)
}

// put sets a property of an object.
func (n *patchNode) put(name string, child *patchNode) {
	if i := n.find(name); i >= 0 {
		n.children[i] = child
		return
	}
	n.names = append(n.names, name)
	n.children = append(n.children, child)
}

// append writes the node as JSON, without the properties that skip selects.
func (n *patchNode) append(dst []byte, skip func(string) bool) []byte {
	if !n.opened {
		return value.AppendShortest(dst, string(n.raw))
	}
	opening, closing := byte('{'), byte('}')
	if n.isArray {
		opening, closing = '[', ']'
	}
	dst = append(dst, opening)
	for i, child := range n.children {
		if !n.isArray && skip(n.names[i]) {
			continue
		}
		if dst[len(dst)-1] != opening { // no value ends with it
			dst = append(dst, ',')
		}
		if !n.isArray {
			dst = append(value.AppendString(dst, n.names[i]), ':')
		}
		dst = child.append(dst, nothing)
	}
	return append(dst, closing)
}

func nothing(string) bool { return false }

// apply makes the new item from the present one, whose text is valid.
func (p *patch) apply(body []byte) (*value.Object, error) {
	root := &patchNode{raw: body}
	for i := range p.ops {
		if fault := root.do(&p.ops[i]); fault != "" {
			return nil, invalid("For Operation(%d): %s. Learn more: https://aka.ms/cosmosdbpatchdocs", i+1, fault)
		}
	}
	text := root.append(make([]byte, 0, len(body)), catalog.SystemProperty)
	if len(text) > MaxItemBytes {
		return nil, ErrTooLarge
	}
	o, err := value.ParseObject(text)
	if err != nil { // it is nested too deeply
		return nil, invalid("The patched item is invalid: %v.", err)
	}
	return o, nil
}

// do applies one operation. The fault is empty if it succeeded.
func (n *patchNode) do(op *patchOp) (fault string) {
	child := &patchNode{raw: op.value}
	if op.kind == patchMove {
		parent, i, fault := n.existing(op, op.from, "moved")
		if fault != "" {
			return fault
		}
		child = parent.children[i]
		parent.remove(i)
	}
	switch op.kind {
	case patchRemove:
		parent, i, fault := n.existing(op, op.path, "removed")
		if fault == "" {
			parent.remove(i)
		}
		return fault
	case patchReplace:
		parent, i, fault := n.existing(op, op.path, "replaced")
		if fault == "" {
			parent.children[i] = child
		}
		return fault
	case patchIncr:
		return n.increment(op)
	}
	parent, fault := n.parent(op, op.path)
	if fault != "" {
		return fault
	}
	name := op.path[len(op.path)-1]
	if !parent.isArray {
		parent.put(name, child)
		return ""
	}
	i, ok := arrayIndex(name)
	switch {
	case name == "-":
		i = len(parent.children)
	case !ok || i > len(parent.children):
		return outOfBounds(name)
	}
	if op.kind == patchSet && i < len(parent.children) {
		parent.children[i] = child
		return ""
	}
	parent.children = slices.Insert(parent.children, i, child)
	return ""
}

// parent returns the node that contains the last segment of a path.
func (n *patchNode) parent(op *patchOp, path value.Path) (_ *patchNode, fault string) {
	n.container()
	for _, name := range path[:len(path)-1] {
		i := n.find(name)
		if i < 0 || !n.children[i].container() {
			return nil, noParent(op.kind, name)
		}
		n = n.children[i]
	}
	return n, ""
}

func noParent(kind patchKind, name string) string {
	operation := "Given"
	if kind == patchAdd {
		operation = "Add"
	}
	return fmt.Sprintf("%s Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: '%s'", operation, value.Clip(name))
}

func outOfBounds(index string) string {
	return fmt.Sprintf("Index(%s) to operate on is out of array bounds", value.Clip(index))
}

// existing returns the node at the end of a path, as its parent and its index there.
func (n *patchNode) existing(op *patchOp, path value.Path, done string) (parent *patchNode, i int, fault string) {
	parent, fault = n.parent(op, path)
	if fault != "" {
		return nil, 0, fault
	}
	name := path[len(path)-1]
	i = parent.find(name)
	switch {
	case i < 0 && parent.isArray:
		return nil, 0, outOfBounds(name)
	case i < 0:
		fault = fmt.Sprintf("Node(%s) to be %s is absent", pointer(path), done)
		if done == "removed" {
			fault += ". Note: it might also have been removed earlier in the transaction"
		}
	}
	return parent, i, fault
}

// increment adds to a number. A missing property counts as zero.
func (n *patchNode) increment(op *patchOp) (fault string) {
	parent, fault := n.parent(op, op.path)
	if fault != "" {
		return fault
	}
	name := op.path[len(op.path)-1]
	i := parent.find(name)
	switch {
	case i < 0 && parent.isArray:
		return outOfBounds(name)
	case i < 0:
		parent.put(name, &patchNode{raw: op.value})
		return ""
	}
	child := parent.children[i]
	if v, ok := value.FromJSON(child.raw); child.opened || !ok || v.Kind() != value.KindNumber {
		return fmt.Sprintf("Node(%s) is not a number", pointer(op.path))
	}
	sum, ok := addNumbers(child.raw, op.value)
	if !ok {
		return fmt.Sprintf("Node(%s) would become too large a number", pointer(op.path))
	}
	parent.children[i] = &patchNode{raw: sum}
	return ""
}

// addNumbers adds two numbers; integers exactly, unless they overflow.
func addNumbers(a, b []byte) (sum []byte, ok bool) {
	x, errX := strconv.ParseInt(string(a), 10, 64)
	y, errY := strconv.ParseInt(string(b), 10, 64)
	if s := x + y; errX == nil && errY == nil && (s > x) == (y > 0) {
		return strconv.AppendInt(nil, s, 10), true
	}
	f, _ := value.FromJSON(a)
	g, _ := value.FromJSON(b)
	u, _ := f.Number()
	v, _ := g.Number()
	if math.IsInf(u+v, 0) {
		return nil, false
	}
	return value.Number(u + v).AppendJSON(nil), true
}
