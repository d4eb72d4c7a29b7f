// SPDX-License-Identifier: MIT

// The paths of full-text, spatial and vector indexes.

package catalog

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

// SpecialIndexes are the indexes of a policy other than the range index and the composite
// ones. The zero value has none.
type SpecialIndexes struct {
	// FullText are the paths of texts, and Vectors those of vectors. Paths through arrays
	// are not indexed, since the functions take no array elements.
	FullText, Vectors []value.Path
	// Spatial are the paths of geometries.
	Spatial []SpatialPath
}

// SpatialPath is the path of geometries: at it, or also at all paths below it.
type SpatialPath struct {
	Path  value.Path
	Below bool
}

// Empty reports whether there are no such indexes.
func (s *SpecialIndexes) Empty() bool {
	return len(s.FullText) == 0 && len(s.Vectors) == 0 && len(s.Spatial) == 0
}

// Equal reports whether both have the same indexes.
func (s *SpecialIndexes) Equal(t *SpecialIndexes) bool {
	return slices.EqualFunc(s.FullText, t.FullText, slices.Equal[value.Path]) &&
		slices.EqualFunc(s.Vectors, t.Vectors, slices.Equal[value.Path]) &&
		slices.EqualFunc(s.Spatial, t.Spatial, func(a, b SpatialPath) bool { return a.Below == b.Below && slices.Equal(a.Path, b.Path) })
}

// readSpecial takes the special indexes from a checked policy.
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

// propertyPath parses an index path that leads only through properties, and not to a
// system property.
func propertyPath(text string) (value.Path, bool) {
	parsed, err := parseIndexPath(text)
	if err != nil {
		return nil, false // pathList already refused it
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

// sortedPaths returns each path once, sorted: their order in the policy has no meaning.
func sortedPaths(paths []value.Path) []value.Path {
	slices.SortFunc(paths, slices.Compare[value.Path])
	return slices.CompactFunc(paths, slices.Equal[value.Path])
}
