// SPDX-License-Identifier: MIT

// What a definition says that queries go by: composite indexes and vectors.

package catalog

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// CompositePath is one path of a composite index.
type CompositePath struct {
	Path       value.Path
	Descending bool
}

// VectorPath says how the vectors at a path are compared.
type VectorPath struct {
	Path             value.Path
	DistanceFunction string
	DataType         string

	embedding *value.Object // as it was sent
}

// parseVectors reads the vector policy.
func (d *Definition) parseVectors(o *value.Object) error {
	raw, ok := o.Lookup("vectorEmbeddingPolicy")
	if absent(raw, ok) {
		return nil
	}
	policy, err := asObject("vectorEmbeddingPolicy", raw)
	if err != nil {
		return err
	}
	list, ok := policy.Lookup("vectorEmbeddings")
	if absent(list, ok) {
		return nil
	}
	elements, err := asArray("vectorEmbeddingPolicy.vectorEmbeddings", list)
	if err != nil {
		return err
	}
	for _, raw := range elements {
		e, err := asObject("vectorEmbeddingPolicy.vectorEmbeddings[]", raw)
		if err != nil {
			return err
		}
		text := func(name string) string {
			raw, _ := e.Lookup(name)
			v, _ := value.FromJSON(raw)
			s, _ := v.Text()
			return s
		}
		path, err := value.ParsePath(text("path"))
		if err != nil {
			return invalid("The path '%s' of the vector embedding policy could not be accepted.", value.Clip(text("path")))
		}
		d.Vectors = append(d.Vectors, VectorPath{path, text("distanceFunction"), text("dataType"), e})
	}
	return nil
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
