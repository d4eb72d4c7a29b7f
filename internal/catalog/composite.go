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

// readComposites takes the composite indexes out of a policy that was checked.
func (d *Definition) readComposites(policy *value.Object) error {
	raw, ok := policy.Lookup("compositeIndexes")
	if absent(raw, ok) {
		return nil
	}
	lists, err := asArray("indexingPolicy.compositeIndexes", raw)
	if err != nil {
		return err
	}
	for _, raw := range lists {
		paths, err := asArray("indexingPolicy.compositeIndexes[]", raw)
		if err != nil {
			return err
		}
		var composite []CompositePath
		for _, raw := range paths {
			o, err := asObject("indexingPolicy.compositeIndexes[][]", raw)
			if err != nil {
				return err
			}
			text, err := indexPath("compositeIndexes[]", raw)
			if err != nil {
				return err
			}
			path, err := value.ParsePath(strings.TrimSuffix(strings.TrimSuffix(text, "/?"), "/*"))
			if err != nil {
				return invalid("The path '%s' of a composite index could not be accepted.", value.Clip(text))
			}
			order, _ := o.Lookup("order")
			composite = append(composite, CompositePath{path, string(order) == `"descending"`})
		}
		d.Composites = append(d.Composites, composite)
	}
	return nil
}

// indexComposites chooses the composite indexes that have rows: those over properties
// that an item has, or _ts. What is computed, and what else the server adds, is not in
// the item that a row is made of. Rows are walked both ways, so that an index in the
// opposite order of another needs none.
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

// notStored reports whether no item has what a path leads to.
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
