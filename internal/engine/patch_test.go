// SPDX-License-Identifier: MIT

package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// naivePatch applies a patch to fully parsed values. It returns nil if an operation
// fails.
func naivePatch(item any, ops []naiveOp) any {
	for _, op := range ops {
		var ok bool
		added := op.Value
		if op.Op == "move" {
			if added, ok = naiveAt(item, op.From); !ok {
				return nil
			}
			if item, ok = naiveEdit(item, op.From, "remove", nil); !ok {
				return nil
			}
		}
		if item, ok = naiveEdit(item, op.Path, op.Op, added); !ok {
			return nil
		}
	}
	return item
}

type naiveOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value"`
}

func naiveAt(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path[1:], "/") {
		switch c := v.(type) {
		case map[string]any:
			child, ok := c[name]
			if !ok {
				return nil, false
			}
			v = child
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// naiveEdit returns a copy of v with the value at the path edited.
func naiveEdit(v any, path, op string, added any) (any, bool) {
	name, rest, deeper := strings.Cut(path[1:], "/")
	switch c := v.(type) {
	case map[string]any:
		next := map[string]any{}
		for k, child := range c {
			next[k] = child
		}
		old, exists := c[name]
		if deeper {
			child, ok := naiveEdit(old, "/"+rest, op, added)
			next[name] = child
			return next, ok && exists
		}
		switch op {
		case "remove":
			delete(next, name)
			return next, exists
		case "incr":
			sum, ok := naiveSum(old, added, exists)
			next[name] = sum
			return next, ok
		}
		next[name] = added
		return next, exists || op != "replace"
	case []any:
		i, err := strconv.Atoi(name)
		inside := err == nil && i < len(c)
		next := slices.Clone(c)
		switch {
		case deeper && inside:
			child, ok := naiveEdit(c[i], "/"+rest, op, added)
			next[i] = child
			return next, ok
		case deeper:
			return nil, false
		case name == "-" && (op == "add" || op == "set" || op == "move"), !inside && err == nil && i == len(c) && (op == "add" || op == "set" || op == "move"):
			return append(next, added), true
		case !inside:
			return nil, false
		case op == "remove":
			return slices.Delete(next, i, i+1), true
		case op == "incr":
			sum, ok := naiveSum(c[i], added, true)
			next[i] = sum
			return next, ok
		case op == "set" || op == "replace":
			next[i] = added
			return next, true
		}
		return slices.Insert(next, i, added), true
	}
	return nil, false
}

func naiveSum(old, added any, exists bool) (any, bool) {
	if !exists {
		return added, true
	}
	n, ok := old.(float64)
	return n + added.(float64), ok
}

// Random patches of random items give the same result as naivePatch, or are refused where
// it fails.
func TestPatchAgainstTwin(t *testing.T) {
	scalar := rapid.SampledFrom([]any{nil, true, "x", "é\"\\", 1.0, -2.5, 7.0})
	var tree func(depth int) *rapid.Generator[any]
	tree = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				if depth > 0 {
					return rapid.SliceOfN(tree(depth-1), 0, 3).Draw(t, "list")
				}
			case 1:
				if depth > 0 {
					names := rapid.SampledFrom([]string{"a", "b", "0", "-"})
					m := map[string]any{}
					for k, v := range rapid.MapOfN(names, tree(depth-1), 0, 3).Draw(t, "object") {
						m[k] = v
					}
					return m
				}
			}
			return scalar.Draw(t, "scalar")
		})
	}
	path := rapid.Custom(func(t *rapid.T) string {
		segments := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "0", "1", "2", "-"}), 1, 3).Draw(t, "segments")
		return "/" + strings.Join(segments, "/")
	})
	refusals, done := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		item := map[string]any{"id": "i"}
		for k, v := range rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "0"}), tree(3), 0, 3).Draw(t, "item") {
			item[k] = v
		}
		ops := make([]naiveOp, rapid.IntRange(1, 4).Draw(t, "ops"))
		for i := range ops {
			ops[i] = naiveOp{Op: rapid.SampledFrom([]string{"add", "set", "replace", "remove", "incr", "move"}).Draw(t, "op"), Path: path.Draw(t, "path")}
			switch ops[i].Op {
			case "move":
				ops[i].From = path.Draw(t, "from")
			case "incr":
				ops[i].Value = float64(rapid.IntRange(-3, 3).Draw(t, "by"))
			case "add", "set", "replace":
				ops[i].Value = tree(2).Draw(t, "value")
			}
		}
		if slices.ContainsFunc(ops, func(o naiveOp) bool { return o.Op == "move" && strings.HasPrefix(o.Path, o.From+"/") }) {
			return
		}
		spec, _ := json.Marshal(ops)
		body, _ := json.Marshal(item)
		p, err := parsePatch(spec)
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		compact, err := value.ParseObject(body)
		if err != nil {
			t.Fatal(err)
		}
		want := naivePatch(any(item), ops)
		got, err := p.apply(compact.Bytes())
		if want == nil {
			if err == nil {
				t.Fatalf("%s of %s: got %s, want it refused", spec, body, got.Bytes())
			}
			refusals++
			return
		}
		if err != nil {
			t.Fatalf("%s of %s: %v, want %v", spec, body, err, want)
		}
		done++
		var now any
		if err := json.Unmarshal(got.Bytes(), &now); err != nil || !reflect.DeepEqual(now, want) {
			t.Fatalf("%s of %s: got %s, %v, want %v", spec, body, got.Bytes(), err, want)
		}
	})
	if refusals == 0 || done == 0 {
		t.Errorf("%d patches were refused and %d done", refusals, done)
	}
}

// FuzzPatch parses arbitrary bytes as a patch, and applies it to an item: no panic, and
// the result is an item.
func FuzzPatch(f *testing.F) {
	for _, op := range []string{"add", "set", "replace", "remove", "incr", "move"} {
		f.Add(fmt.Appendf(nil, `[{"op":%q,"path":"/a/0","from":"/b","value":1}]`, op))
	}
	f.Add([]byte(`{"condition":"from c where c.a = 1","operations":[{"op":"set","path":"/~0~1/-","value":{"x":[]}}]}`))
	f.Add([]byte(`[{"op":"add","path":"/` + strings.Repeat("a/", 200) + `","value":null}]`))
	body := []byte(`{"id":"1","pk":"p","a":[1,{"b":2.5}],"b":{"c":[],"":null},"n":9223372036854775807,"_rid":"x","_ts":1}`)
	f.Fuzz(func(t *testing.T, spec []byte) {
		p, err := parsePatch(spec)
		if err != nil {
			return
		}
		o, err := p.apply(body)
		if err != nil {
			return
		}
		if _, err := value.ParseObject(o.Bytes()); err != nil {
			t.Errorf("%s: the item becomes %s: %v", spec, o.Bytes(), err)
		}
		if _, found := o.Lookup("_rid"); found {
			t.Errorf("%s: the item keeps what is the server's: %s", spec, o.Bytes())
		}
	})
}
