// SPDX-License-Identifier: MIT

// Items that a filter names by partition key and id, as clients do that read many at
// once: each is looked up, and no index is needed.

package query

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// keyPath is items that the filter names by partition key and id.
type keyPath struct {
	asCreated
	keys []store.Key
	one  [1]store.Key // room for keys
}

func (p *keyPath) name() string { return "keys" }

func (p *keyPath) find(x *execution, yield visitor) error {
	var ordinals []uint64
	for _, k := range p.keys {
		if !x.inScope(k.EPK) {
			continue
		}
		f, live, err := x.r.Find(k)
		if err != nil {
			return err
		}
		if live && len(p.keys) == 1 && f.Ordinal > x.from() {
			_, err := x.found(candidate{Found: f}, yield)
			return err
		}
		if live {
			ordinals = append(ordinals, f.Ordinal)
		}
	}
	slices.Sort(ordinals)
	return x.visitAll(slices.Compact(ordinals), yield)
}

// byKeys returns the path to all items that can be in the result, if the filter names
// them, or nil.
func (pl *planner) byKeys() *keyPath {
	if pl.scope.oneKey() {
		for _, f := range pl.facts {
			if isID(f.Path) && f.Op == sql.CondEq && len(f.Values) <= maxSeeks {
				return namedIn(pl.scope.Logical, f.Values)
			}
		}
	}
	if keys, ok := named(pl.container, pl.facts); ok {
		return &keyPath{keys: keys}
	}
	for _, f := range pl.facts {
		if f.Op != sql.CondOr || len(f.Of) > maxSeeks {
			continue
		}
		if keys, ok := namedByOne(pl.container, f.Of); ok {
			return &keyPath{keys: keys}
		}
	}
	return nil
}

// namedIn returns the items with one of several ids in a logical partition.
func namedIn(l *store.LogicalPartition, ids []datum.Value) *keyPath {
	p := &keyPath{}
	p.keys = p.one[:0]
	for _, id := range ids {
		if text, ok := id.AsString(); ok {
			p.keys = append(p.keys, store.Key{EPK: l.EPK, PartitionKey: l.PartitionKey, ID: text})
		}
	}
	return p
}

// idsOf returns the ids that conditions which all must hold leave.
func idsOf(facts []*sql.Condition) ([]value.Scalar, bool) {
	for _, f := range facts {
		if !isID(f.Path) || f.Op != sql.CondEq {
			continue
		}
		if ids := valuesOf(f); len(ids) > 0 && len(ids) <= maxSeeks {
			return ids, true
		}
	}
	return nil, false
}

// namedByOne returns the keys that are named by conditions of which one must hold.
func namedByOne(container *catalog.Container, of []*sql.Condition) ([]store.Key, bool) {
	var all []store.Key
	for _, part := range of {
		keys, ok := named(container, conjuncts(part))
		if all = append(all, keys...); !ok || len(all) > maxSeeks {
			return nil, false
		}
	}
	return all, true
}

// named returns the keys that are named by conditions which all must hold: they say
// what the id is, and each part of the partition key.
func named(container *catalog.Container, facts []*sql.Condition) ([]store.Key, bool) {
	ids, ok := idsOf(facts)
	if !ok {
		return nil, false
	}
	parts := make([][]value.Scalar, len(container.PartitionKey.Paths)) // nil is the id
	n := len(ids)
	for i, path := range container.PartitionKey.Paths {
		if len(path) == 1 && path[0] == "id" {
			continue
		}
		if isComputed(container, path[0]) {
			return nil, false // what a query says of it is not what the partition key is
		}
		at := slices.IndexFunc(facts, func(f *sql.Condition) bool { return f.Path.Is(path) && valuesOf(f) != nil })
		if at < 0 {
			return nil, false
		}
		parts[i] = valuesOf(facts[at])
		if n *= len(parts[i]); n > maxSeeks {
			return nil, false
		}
	}
	var keys []store.Key
	for _, id := range ids {
		text, ok := id.Text()
		if !ok {
			continue // no item has such an id
		}
		partitionKeys := []value.PartitionKey{nil}
		for _, values := range parts {
			if values == nil {
				values = []value.Scalar{id}
			}
			partitionKeys = longer(partitionKeys, values)
		}
		for _, k := range partitionKeys {
			keys = append(keys, store.Key{EPK: container.PartitionKey.AppendEPK(nil, k), PartitionKey: k, ID: text})
		}
	}
	return keys, true
}

// longer returns partition keys with each of several values for their next part.
func longer(keys []value.PartitionKey, values []value.Scalar) (list []value.PartitionKey) {
	for _, k := range keys {
		for _, v := range values {
			list = append(list, append(slices.Clone(k), v))
		}
	}
	return list
}

// valuesOf returns the values of which a path must have one, or nil if there are more
// than can be told. Of a partition key, no value is one too.
func valuesOf(f *sql.Condition) []value.Scalar {
	switch {
	case f.Op == sql.CondUndefined:
		return []value.Scalar{value.Scalar{}}
	case f.Op == sql.CondKind && f.Kind == datum.KindNull:
		return []value.Scalar{value.Null()}
	case f.Op != sql.CondEq:
		return nil
	}
	values := make([]value.Scalar, 0, len(f.Values))
	for _, v := range f.Values {
		scalar, ok := scalarOf(v)
		if !ok {
			return nil
		}
		values = append(values, scalar)
	}
	return values
}
