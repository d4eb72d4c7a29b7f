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

// finds returns the keys of all items that can be in the result, if the filter names
// them.
func (pl *planner) finds() ([]store.Key, bool) {
	container := pl.container
	if pl.scope.oneKey() {
		if keys, ok := namedIn(pl.scope.Logical, pl.facts); ok {
			return keys, true
		}
	}
	if keys, ok := named(container, pl.facts); ok {
		return keys, true
	}
	for _, f := range pl.facts {
		if f.Op != sql.CondOr || len(f.Of) > maxSeeks {
			continue
		}
		if keys, ok := namedByOne(container, f.Of); ok {
			return keys, true
		}
	}
	return nil, false
}

// namedIn returns the keys of items with one of several ids in a logical partition.
func namedIn(l *store.LogicalPartition, facts []*sql.Condition) ([]store.Key, bool) {
	ids, ok := idsOf(facts)
	if !ok {
		return nil, false
	}
	var keys []store.Key
	for _, id := range ids {
		if text, ok := id.Text(); ok {
			keys = append(keys, store.Key{EPK: l.EPK, PartitionKey: l.PartitionKey, ID: text})
		}
	}
	return keys, true
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
	paths := container.PartitionKey.Paths
	partitionKeys := []value.PartitionKey{nil}
	byID := -1
	for i, path := range paths {
		if len(path) == 1 && path[0] == "id" {
			byID = i // it is what the id is
			for k := range partitionKeys {
				partitionKeys[k] = append(partitionKeys[k], value.Scalar{})
			}
			continue
		}
		if isComputed(container, path[0]) {
			return nil, false // what a query says of it is not what the partition key is
		}
		at := slices.IndexFunc(facts, func(f *sql.Condition) bool { return f.Path.Is(path) && valuesOf(f) != nil })
		if at < 0 {
			return nil, false
		}
		var longer []value.PartitionKey
		for _, k := range partitionKeys {
			for _, v := range valuesOf(facts[at]) {
				longer = append(longer, append(slices.Clone(k), v))
			}
		}
		if partitionKeys = longer; len(partitionKeys)*len(ids) > maxSeeks {
			return nil, false
		}
	}
	var keys []store.Key
	for _, id := range ids {
		text, ok := id.Text()
		if !ok {
			continue // no item has such an id
		}
		for _, k := range partitionKeys {
			k = slices.Clone(k)
			if byID >= 0 {
				k[byID] = id
			}
			keys = append(keys, store.Key{EPK: container.PartitionKey.AppendEPK(nil, k), PartitionKey: k, ID: text})
		}
	}
	return keys, true
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
