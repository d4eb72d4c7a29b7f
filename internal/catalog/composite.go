// SPDX-License-Identifier: MIT

package catalog

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// CompositePath is one path of a composite index.
type CompositePath struct {
	Path       value.Path
	Descending bool
}

// readComposites parses the composite indexes of a policy.
func (d *Definition) readComposites(policy *value.Object) error {
	raw, ok := policy.Lookup("compositeIndexes")
	if absent(raw, ok) {
		return nil
	}
	list, err := asArray("indexingPolicy.compositeIndexes", raw)
	if err != nil {
		return err
	}
	if len(list) > maxCompositeIndexes {
		return invalid("The indexing policy has %d composite indexes, more than the %d that are allowed.", len(list), maxCompositeIndexes)
	}
	for _, raw := range list {
		paths, err := asArray("indexingPolicy.compositeIndexes[]", raw)
		if err != nil {
			return err
		}
		if len(paths) < minCompositePaths || len(paths) > maxCompositePaths {
			return invalid("A composite index must have %d to %d paths, and this one has %d.", minCompositePaths, maxCompositePaths, len(paths))
		}
		var composite []CompositePath
		for _, raw := range paths {
			p, err := compositePath(raw)
			if err != nil {
				return err
			}
			composite = append(composite, p)
		}
		d.Composites = append(d.Composites, composite)
	}
	return nil
}

func compositePath(raw []byte) (CompositePath, error) {
	o, err := asObject("indexingPolicy.compositeIndexes[][]", raw)
	if err != nil {
		return CompositePath{}, err
	}
	text, err := indexPath("compositeIndexes[]", o)
	if err != nil {
		return CompositePath{}, err
	}
	order, ok := o.Lookup("order")
	if text, err := asString("order", order); ok && (err != nil || text != "ascending" && text != "descending") {
		return CompositePath{}, invalid("The order of a composite index path must be 'ascending' or 'descending'.")
	}
	path, err := value.ParsePath(strings.TrimSuffix(strings.TrimSuffix(text, "/?"), "/*"))
	if err != nil {
		return CompositePath{}, invalid("The path '%s' of a composite index could not be accepted.", value.Clip(text))
	}
	return CompositePath{path, string(order) == `"descending"`}, nil
}

// indexComposites selects the composite indexes that have rows: those over properties of
// an item, or over _ts. Rows are made from the item, which has no computed and no other
// system properties. Rows can be read in both directions, so an index in the opposite
// order of another one needs none.
func (d *Definition) indexComposites() {
	if d.Index.Empty() {
		return
	}
	for _, paths := range d.Composites {
		if !slices.ContainsFunc(paths, d.notStored) && !slices.ContainsFunc(d.IndexedComposites, func(other []CompositePath) bool { return sameRows(paths, other) }) {
			d.IndexedComposites = append(d.IndexedComposites, paths)
		}
	}
}

// notStored reports whether a path leads to something that no stored item has.
func (d *Definition) notStored(p CompositePath) bool {
	if SystemProperty(p.Path[0]) {
		return p.Path[0] != "_ts" || len(p.Path) > 1
	}
	return slices.ContainsFunc(d.Computed, func(c ComputedProperty) bool { return c.Name == p.Path[0] })
}

// sameRows reports whether two composite indexes have the same order, or the opposite.
func sameRows(a, b []CompositePath) bool {
	if len(a) != len(b) {
		return false
	}
	opposite := a[0].Descending != b[0].Descending
	for i := range a {
		if !slices.Equal(a[i].Path, b[i].Path) || a[i].Descending != (b[i].Descending != opposite) {
			return false
		}
	}
	return true
}

// indexesLike reports whether the index rows of an item are the same under both
// definitions.
func (d *Definition) indexesLike(o *Definition) bool {
	return d.Index.Equal(&o.Index) && d.Special.Equal(&o.Special) && slices.EqualFunc(d.IndexedComposites, o.IndexedComposites, func(a, b []CompositePath) bool {
		return slices.EqualFunc(a, b, func(p, q CompositePath) bool {
			return slices.Equal(p.Path, q.Path) && p.Descending == q.Descending
		})
	})
}
