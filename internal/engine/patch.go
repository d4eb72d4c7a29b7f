// SPDX-License-Identifier: MIT

// Patches: the changes that a client may make to an item, and their condition.

package engine

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxPatchOps is how many operations a patch may have.
	maxPatchOps = 10
	// maxConditionChecks bounds the work for a patch's condition, which delays the
	// partition's other writes. It counts the evaluation's interrupt checks, each after a
	// few hundred steps.
	maxConditionChecks = 1000
	// maxConditionBytes bounds a condition's text, and so its number of function calls,
	// each of which may produce a long string.
	maxConditionBytes = 4 << 10
)

// ErrPatchCondition: the condition of a patch does not hold for the item.
var ErrPatchCondition = errors.New("the condition of the patch is not met")

// errConditionTooLong stops a condition that takes too much work.
var errConditionTooLong = invalid("The condition of the patch takes too much work. Compare fewer values in it.")

// The service's words.
const (
	patchSyntax  = "Invalid patch request: check syntax of patch specification."
	patchTooMany = "The number of patch operations can't exceed 10."
)

// patchKind is the kind of a patch operation.
type patchKind string

const (
	patchAdd     patchKind = "add"
	patchSet     patchKind = "set"
	patchReplace patchKind = "replace"
	patchRemove  patchKind = "remove"
	patchIncr    patchKind = "incr"
	patchMove    patchKind = "move"
)

// patchOp is an operation of a patch.
type patchOp struct {
	kind       patchKind
	path, from value.Path // from is for move
	value      []byte     // compact JSON; nil for remove and move
}

// patch is a request to change parts of an item.
type patch struct {
	ops       []patchOp
	condition string // from … where …, or empty
}

// parsePatch parses {"condition": …, "operations": […]}, or only the operations.
func parsePatch(body []byte) (*patch, error) {
	if len(body) > MaxItemBytes {
		return nil, ErrTooLarge
	}
	if b := bytes.TrimLeft(body, " \t\r\n"); len(b) > 0 && b[0] == '[' {
		body = slices.Concat([]byte(`{"operations":`), b, []byte("}"))
	}
	o, err := value.ParseObject(body)
	if err != nil {
		return nil, invalid("%s It is not a well-formed JSON object: %v.", patchSyntax, err)
	}
	p := &patch{}
	if raw, found := o.Lookup("condition"); found && string(raw) != "null" {
		v, _ := value.FromJSON(raw)
		text, ok := v.Text()
		if !ok {
			return nil, invalid("%s The condition must be a string.", patchSyntax)
		}
		p.condition = text
	}
	list, _ := o.Lookup("operations")
	elements, ok := value.Elements(list)
	switch {
	case !ok || len(elements) == 0:
		return nil, invalid("%s There must be a list of operations, with at least one of them.", patchSyntax)
	case len(elements) > maxPatchOps:
		return nil, invalid(patchTooMany)
	}
	for i, raw := range elements {
		op, fault := parsePatchOp(raw)
		if fault != "" {
			return nil, invalid("%s For Operation(%d): %s.", patchSyntax, i+1, fault)
		}
		p.ops = append(p.ops, op)
	}
	return p, nil
}

// parsePatchOp parses one operation. The fault is empty if the operation is valid.
func parsePatchOp(raw []byte) (op patchOp, fault string) {
	members, ok := value.Members(raw)
	if !ok {
		return op, "an operation must be an object"
	}
	texts := map[string]string{}
	for _, m := range members {
		switch m.Name {
		case "value":
			op.value = m.Raw
		case "op", "path", "from":
			v, _ := value.FromJSON(m.Raw)
			if texts[m.Name], ok = v.Text(); !ok {
				return op, "'" + m.Name + "' must be a string"
			}
		}
	}
	op.kind = patchKind(texts["op"])
	switch op.kind {
	case patchAdd, patchSet, patchReplace, patchIncr:
		if op.value == nil {
			return op, "'value' is missing"
		}
	case patchRemove, patchMove:
		op.value = nil
	default:
		return op, "'op' must be add, set, replace, remove, incr or move"
	}
	if op.kind == patchIncr {
		if v, ok := value.FromJSON(op.value); !ok || v.Kind() != value.KindNumber {
			return op, "the value of incr must be a number"
		}
	}
	if op.path, ok = parsePointer(texts["path"]); !ok {
		return op, "'path' must be like /a/b"
	}
	if op.kind != patchMove {
		return op, ""
	}
	if op.from, ok = parsePointer(texts["from"]); !ok {
		return op, "'from' must be like /a/b"
	}
	if len(op.path) > len(op.from) && slices.Equal(op.path[:len(op.from)], op.from) {
		return op, "'path' must not lie within 'from'"
	}
	return op, ""
}

// parsePointer parses a JSON pointer (RFC 6901) to something inside the item.
func parsePointer(text string) (value.Path, bool) {
	if !strings.HasPrefix(text, "/") || strings.Count(text, "/") > value.MaxPathSegments {
		return nil, false
	}
	path := value.Path(strings.Split(text[1:], "/"))
	for i, segment := range path {
		for at := 0; at < len(segment); at++ {
			if segment[at] == '~' && (at+1 == len(segment) || segment[at+1] != '0' && segment[at+1] != '1') {
				return nil, false
			}
		}
		path[i] = strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
	}
	return path, true
}

// pointer returns the text of a path as a JSON pointer.
func pointer(p value.Path) string {
	var b strings.Builder
	for _, segment := range p {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(segment, "~", "~0"), "/", "~1"))
	}
	return value.Clip(b.String())
}

// check refuses paths that a patch may not change in the container.
func (p *patch) check(c *catalog.Container) error {
	for i := range p.ops {
		for _, path := range []value.Path{p.ops[i].path, p.ops[i].from} {
			if len(path) == 0 {
				continue
			}
			if name := path[0]; len(path) == 1 && name == "id" || catalog.SystemProperty(name) {
				return invalid("Invalid patch request: Cannot patch system property '%s'.", name)
			}
			for _, key := range c.PartitionKey.Paths {
				if n := min(len(key), len(path)); slices.Equal(key[:n], path[:n]) {
					return invalid("Invalid patch request: Cannot patch partition key '%s'.", key)
				}
			}
		}
	}
	return nil
}

// change returns the function that makes the new item from the present one.
func (e *Engine) change(c *catalog.Container, p *patch) (func([]byte) (*value.Object, error), error) {
	if err := p.check(c); err != nil {
		return nil, err
	}
	holds, err := e.patchCondition(c, p.condition)
	if err != nil {
		return nil, err
	}
	return func(body []byte) (*value.Object, error) {
		if ok, err := holds(body); err != nil {
			return nil, err
		} else if !ok {
			return nil, ErrPatchCondition
		}
		return p.apply(body)
	}, nil
}

// patchCondition compiles the condition of a patch.
func (e *Engine) patchCondition(c *catalog.Container, text string) (func(body []byte) (bool, error), error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return func([]byte) (bool, error) { return true, nil }, nil
	}
	const from = "from"
	if len(text) <= len(from) || !strings.EqualFold(text[:len(from)], from) {
		return nil, invalid("%s The condition must be like: from c where c.a = 1.", patchSyntax)
	}
	if len(text) > maxConditionBytes {
		return nil, invalid("%s The condition can have at most %d characters.", patchSyntax, maxConditionBytes)
	}
	program, err := e.compile(context.Background(), c, &Query{Text: "SELECT * " + text}) // the text is short, so ctx is not needed
	if err != nil {
		return nil, err
	}
	if len(program.UDFs()) > 0 {
		return nil, invalid("%s The condition must not call user-defined functions.", patchSyntax)
	}
	nowMs := e.clock.Now()
	return func(body []byte) (bool, error) {
		checks := 0
		cx := &function.Context{NowMs: nowMs, Random: rand.Float64, Interrupted: func() error {
			if checks++; checks > maxConditionChecks {
				return errConditionTooLong
			}
			return nil
		}}
		return program.NewRunner(cx).Filter(datum.Raw(body))
	}, nil
}
