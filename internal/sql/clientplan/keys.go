// SPDX-License-Identifier: MIT

// The partition keys that a filter leaves. A client asks only the ranges that have one of
// them, so a key too many costs a request, and a key too few loses rows: what is not
// understood leaves all keys.

package clientplan

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// maxScopedKeys is how many partition keys a filter may name before it is
// taken not to name any. A list of that many is served better by all ranges.
const maxScopedKeys = 4096

// KeyScope is which partition keys can hold what a query asks for.
type KeyScope struct {
	// All is set if the filter does not say.
	All bool
	// Keys are the only ones otherwise, none of them a prefix of another. Each
	// may be a prefix of a hierarchical key. If there is none, all ranges give
	// the same answer, and one of them is enough: the query asks for nothing
	// that is stored, or for nothing at all.
	Keys []value.PartitionKey
}

// prefixOf reports whether there is a key with fewer values than paths.
func (s KeyScope) prefixOf(paths []value.Path) bool {
	return slices.ContainsFunc(s.Keys, func(k value.PartitionKey) bool { return len(k) < len(paths) })
}

// ScopeKeys returns the partition keys that a query can find something under,
// as far as its condition says: WHERE c.key = 1, c.key IN (1, 2) and the like,
// with AND and OR between them.
func ScopeKeys(p *sql.Program, paths []value.Path) KeyScope {
	for p.Input() != nil {
		p = p.Input()
	}
	if !p.OverItems() {
		return KeyScope{}
	}
	if len(paths) > value.MaxPartitionKeyPaths {
		return KeyScope{All: true}
	}
	for _, path := range paths {
		if p.Computes(path[0]) {
			return KeyScope{All: true} // what the query says of it is not the partition key
		}
	}
	return scopeOf(pins(p.Condition(), paths))
}

// pin is a partition key of which some values are known.
type pin [value.MaxPartitionKeyPaths]struct {
	known bool
	value value.Scalar
}

// pinned is what a filter demands of the partition key: one of a list, or
// nothing that is understood.
type pinned struct {
	any  bool
	list []pin
}

var anyKey = pinned{any: true}

// scopeOf makes keys of pins: of each, the values before the first unknown one.
func scopeOf(p pinned) KeyScope {
	if p.any {
		return KeyScope{All: true}
	}
	seen := make(map[pin]bool, len(p.list))
	for i := range p.list {
		n := p.list[i].length()
		if n == 0 {
			return KeyScope{All: true}
		}
		p.list[i] = p.list[i].first(n)
		seen[p.list[i]] = true
	}
	var keys []value.PartitionKey
	for _, k := range p.list {
		if !seen[k] {
			continue
		}
		seen[k] = false
		n := k.length()
		covered := false
		for short := 1; short < n; short++ {
			_, has := seen[k.first(short)]
			covered = covered || has
		}
		if covered {
			continue
		}
		key := make(value.PartitionKey, n)
		for i := range key {
			key[i] = k[i].value
		}
		keys = append(keys, key)
	}
	return KeyScope{Keys: keys}
}

// length returns how many values are known from the first on. Only these name keys: a
// prefix of a hierarchical key is a range of keys, and a later value alone is not.
func (k pin) length() int {
	n := 0
	for n < len(k) && k[n].known {
		n++
	}
	return n
}

// first returns the first n values, as a key that others can be compared with.
func (k pin) first(n int) pin {
	var short pin
	copy(short[:n], k[:n])
	return short
}

// pins returns what a condition demands of the key.
func pins(c *sql.Condition, paths []value.Path) pinned {
	if c == nil {
		return anyKey
	}
	switch c.Op {
	case sql.CondNever:
		return pinned{}
	case sql.CondAnd:
		met := anyKey
		for _, part := range c.Of {
			met = both(met, pins(part, paths))
		}
		return met
	case sql.CondOr:
		joined := pinned{}
		for _, part := range c.Of {
			joined = either(joined, pins(part, paths))
		}
		return joined
	}
	for i, path := range paths {
		if c.Path.Is(path) {
			return pinAt(i, c)
		}
	}
	return anyKey
}

// pinAt returns what a condition on the path at a position demands.
func pinAt(position int, c *sql.Condition) pinned {
	var values []value.Scalar
	switch {
	case c.Op == sql.CondEq && len(c.Values) <= maxScopedKeys:
		for _, v := range c.Values {
			k, ok := keyValue(v)
			if !ok {
				return anyKey
			}
			values = append(values, k)
		}
	case c.Op == sql.CondUndefined:
		values = []value.Scalar{{}}
	case c.Op == sql.CondKind && c.Kind == datum.KindNull:
		values = []value.Scalar{value.Null()}
	case c.Op == sql.CondKind && c.Kind == datum.KindBool:
		values = []value.Scalar{value.Bool(false), value.Bool(true)}
	default:
		return anyKey
	}
	found := pinned{list: make([]pin, len(values))}
	for i, v := range values {
		found.list[i][position].known, found.list[i][position].value = true, v
	}
	return found
}

// keyValue returns a constant as a value of a partition key, of which none is an
// array or an object.
func keyValue(v datum.Value) (k value.Scalar, ok bool) {
	if !v.Finite() {
		return value.Scalar{}, false
	}
	return value.FromJSON(v.AppendJSON(nil))
}

// either is OR: the keys of both, unless they are too many.
func either(a, b pinned) pinned {
	if a.any || b.any || len(a.list)+len(b.list) > maxScopedKeys {
		return anyKey
	}
	return pinned{list: append(a.list, b.list...)}
}

// both combines every pin of a with every one of b that does not contradict it.
// Where that would be too many, what one of them demands has to do.
func both(a, b pinned) pinned {
	switch {
	case a.any:
		return b
	case b.any:
		return a
	case len(a.list)*len(b.list) > maxScopedKeys:
		if len(a.list) < len(b.list) {
			return a
		}
		return b
	}
	met := pinned{}
	for _, x := range a.list {
		for _, y := range b.list {
			if k, ok := x.and(y); ok {
				met.list = append(met.list, k)
			}
		}
	}
	return met
}

// and returns what two pins demand together, and false if they contradict each other.
func (k pin) and(other pin) (pin, bool) {
	for i := range k {
		if !other[i].known {
			continue
		}
		if k[i].known && k[i].value != other[i].value {
			return pin{}, false
		}
		k[i] = other[i]
	}
	return k, true
}
