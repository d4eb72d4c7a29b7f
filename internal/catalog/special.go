// SPDX-License-Identifier: MIT

// The paths of full-text, spatial and vector indexes.

package catalog

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

// SpecialIndexes are the indexes of a policy beside the range index and the composite
// ones. The zero value has none.
type SpecialIndexes struct {
	// FullText are the paths of texts, and Vectors those of vectors. Paths through
	// arrays are not indexed: there a function takes no element.
	FullText, Vectors []value.Path
	// Spatial are the places of geometries.
	Spatial []SpatialPath
}

// SpatialPath is where geometries are: at a path, or also at all places below it.
type SpatialPath struct {
	Path  value.Path
	Below bool
}

// Empty reports whether there is none.
func (s *SpecialIndexes) Empty() bool {
	return len(s.FullText) == 0 && len(s.Vectors) == 0 && len(s.Spatial) == 0
}

// Equal reports whether both index the same.
func (s *SpecialIndexes) Equal(t *SpecialIndexes) bool {
	return slices.EqualFunc(s.FullText, t.FullText, slices.Equal[value.Path]) &&
		slices.EqualFunc(s.Vectors, t.Vectors, slices.Equal[value.Path]) &&
		slices.EqualFunc(s.Spatial, t.Spatial, func(a, b SpatialPath) bool { return a.Below == b.Below && slices.Equal(a.Path, b.Path) })
}

// readSpecial takes the special indexes out of a policy that was checked.
func (d *Definition) readSpecial(policy *value.Object) error {
	if d.IndexingMode == IndexingNone {
		return nil
	}
	for _, kind := range []struct {
		name string
		into *[]value.Path
	}{{"fullTextIndexes", &d.Special.FullText}, {"vectorIndexes", &d.Special.Vectors}} {
		texts, err := pathList(policy, kind.name)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if p, ok := propertyPath(text); ok && len(p) > 0 {
				*kind.into = append(*kind.into, p)
			}
		}
		*kind.into = sortedPaths(*kind.into)
	}
	texts, err := pathList(policy, "spatialIndexes")
	if err != nil {
		return err
	}
	for _, text := range texts {
		p, ok := propertyPath(text)
		below := len(text) > 0 && text[len(text)-1] == '*'
		if ok && (below || len(p) > 0) {
			d.Special.Spatial = append(d.Special.Spatial, SpatialPath{p, below})
		}
	}
	return nil
}

// propertyPath reads an index path that leads through properties of the item only,
// and to none that the server adds.
func propertyPath(text string) (value.Path, bool) {
	parsed, err := parseIndexPath(text)
	if err != nil {
		return nil, false // pathList has refused it
	}
	var p value.Path
	for i, s := range parsed.steps {
		if s.elements || i == 0 && SystemProperty(s.name) {
			return nil, false
		}
		p = append(p, s.name)
	}
	return p, true
}

// sortedPaths returns each path once: their order in the policy does not matter.
func sortedPaths(paths []value.Path) []value.Path {
	slices.SortFunc(paths, slices.Compare[value.Path])
	return slices.CompactFunc(paths, slices.Equal[value.Path])
}
