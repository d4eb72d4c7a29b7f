// SPDX-License-Identifier: MIT

// The computed properties of a definition.

package catalog

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxComputed      = 20
	maxComputedQuery = 4 << 10
)

// ComputedProperty is a property at the root of every item, and the query that computes
// it.
type ComputedProperty struct {
	Name, Query string
}

// parseComputed parses the computed properties. The engine checks their queries.
func (d *Definition) parseComputed(o *value.Object) error {
	raw, ok := o.Lookup("computedProperties")
	if absent(raw, ok) {
		return nil
	}
	list, err := asArray("computedProperties", raw)
	if err != nil {
		return err
	}
	if len(list) > maxComputed {
		return invalid("The container has %d computed properties, more than the %d that are allowed.", len(list), maxComputed)
	}
	spatial, err := spatialRoots(o)
	if err != nil {
		return err
	}
	for i, raw := range list {
		p, err := parseComputedProperty(raw)
		if err != nil {
			return err
		}
		switch {
		case p.Name == "id" || SystemProperty(p.Name):
			return invalid("The system property name '%s' cannot be used as a computed property name.", p.Name)
		case slices.ContainsFunc(d.Computed, func(other ComputedProperty) bool { return other.Name == p.Name }):
			return invalid("Computed property name '%s' cannot be used in multiple definitions.", value.Clip(p.Name))
		case slices.Contains(spatial, p.Name):
			return invalid("Computed property '%s' at index (%d) has a spatial index. Remove the spatial index on this path.", value.Clip(p.Name), i)
		}
		d.Computed = append(d.Computed, p)
	}
	return nil
}

func parseComputedProperty(raw []byte) (ComputedProperty, error) {
	o, err := asObject("computedProperties[]", raw)
	if err != nil {
		return ComputedProperty{}, err
	}
	var p ComputedProperty
	for _, part := range []struct {
		name string
		to   *string
	}{{"name", &p.Name}, {"query", &p.Query}} {
		if raw, ok := o.Lookup(part.name); !absent(raw, ok) {
			if *part.to, err = asString("computedProperties[]."+part.name, raw); err != nil {
				return ComputedProperty{}, err
			}
		}
		if *part.to == "" {
			return ComputedProperty{}, invalid("Computed property '%s' is either empty or unspecified.", part.name)
		}
	}
	if len(p.Query) > maxComputedQuery {
		return ComputedProperty{}, invalid("The query of computed property '%s' has more than the %d characters that are allowed.", value.Clip(p.Name), maxComputedQuery)
	}
	return p, nil
}

// spatialRoots returns the root properties that are spatially indexed.
func spatialRoots(o *value.Object) ([]string, error) {
	policy, err := objectMember(o, "indexingPolicy")
	if policy == nil {
		return nil, err
	}
	list, err := pathList(policy, "spatialIndexes")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, text := range list {
		if path, err := parseIndexPath(text); err == nil && len(path.steps) == 1 {
			names = append(names, path.steps[0].name)
		}
	}
	return names, nil
}
