// SPDX-License-Identifier: MIT

// What is refused of a new definition, and not of one that is kept already: a
// container made before there was such a rule must still open.

package catalog

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mayflydb/mayfly/internal/value"
)

// Check looks at the partition key paths, the spatial indexes and the vectors of a
// definition that a client sent.
func (d *Definition) Check() error {
	for _, check := range []func() error{d.checkKeyPaths, d.checkBoundingBoxes, d.checkEmbeddings} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkKeyPaths refuses white space, which the service does in any path without
// quotes.
func (d *Definition) checkKeyPaths() error {
	for _, p := range d.PartitionKey.Paths {
		if slices.ContainsFunc(p, func(name string) bool { return strings.ContainsFunc(name, unicode.IsSpace) }) &&
			!strings.Contains(string(d.raw("partitionKey")), `\"`) {
			return invalid("The partition key component definition path '/%s' could not be accepted. Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character.", strings.Join(p, "/"))
		}
	}
	return nil
}

// maxDimensions is how long a vector may be.
const maxDimensions = 4096

var (
	vectorDataTypes         = []string{"float16", "float32", "int8", "uint8"}
	vectorDistanceFunctions = []string{"cosine", "dotproduct", "euclidean"}
	vectorIndexTypes        = []string{"flat", "quantizedFlat", "diskANN"}
)

func (d *Definition) checkEmbeddings() error {
	for i, v := range d.Vectors {
		if err := checkEmbedding(v.embedding); err != nil {
			return err
		}
		if slices.ContainsFunc(d.Vectors[:i], func(other VectorPath) bool { return slices.Equal(other.Path, v.Path) }) {
			return invalid("Duplicate Path :/%s found in Vector Embedding Policy.", value.Clip(strings.Join(v.Path, "/")))
		}
	}
	return nil
}

// checkEmbedding looks at one element of the vector embedding policy. What it
// leaves out is not missed here.
func checkEmbedding(e *value.Object) error {
	text := func(name string) (string, bool) {
		raw, ok := e.Lookup(name)
		if absent(raw, ok) {
			return "", false
		}
		v, _ := value.FromJSON(raw)
		s, ok := v.Text()
		if !ok {
			s = string(raw)
		}
		return s, true
	}
	if s, ok := text("dataType"); ok && !containsFold(vectorDataTypes, s) {
		return invalid("The Vector Embedding Policy has an invalid DataType:%s. Valid data types are %s.", value.Clip(s), strings.Join(vectorDataTypes, ", "))
	}
	if s, ok := text("distanceFunction"); ok && !containsFold(vectorDistanceFunctions, s) {
		return invalid("The Vector Embedding Policy has an invalid DistanceFunction:%s. Valid distance functions are %s.", value.Clip(s), strings.Join(vectorDistanceFunctions, ", "))
	}
	raw, ok := e.Lookup("dimensions")
	if absent(raw, ok) {
		return nil
	}
	v, _ := value.FromJSON(raw)
	switch n, ok := v.Number(); {
	case ok && n > maxDimensions:
		return invalid("The Vector Embedding Policy has Dimensions:%s which is more than the maximum supported value:%d.", value.Clip(string(raw)), maxDimensions)
	case !ok || n < 1 || n != float64(int(n)):
		return invalid("The Vector Embedding Policy has Dimensions:%s which is no positive integer.", value.Clip(string(raw)))
	}
	return nil
}

// checkVectorIndexes looks whether every vector index has vectors to index, which
// only the whole definition tells.
func (d *Definition) checkVectorIndexes() error {
	policy, err := asObject("indexingPolicy", d.raw("indexingPolicy"))
	if err != nil {
		return err
	}
	raw, ok := policy.Lookup("vectorIndexes")
	if absent(raw, ok) {
		return nil
	}
	list, err := asArray("indexingPolicy.vectorIndexes", raw)
	if err != nil {
		return err
	}
	var seen []string
	for _, raw := range list {
		text, err := indexPath("vectorIndexes", raw)
		if err != nil {
			return err
		}
		path, err := value.ParsePath(strings.TrimSuffix(strings.TrimSuffix(text, "/?"), "/*"))
		if err != nil || !slices.ContainsFunc(d.Vectors, func(v VectorPath) bool { return slices.Equal(v.Path, path) }) {
			return invalid("The Vector Indexing Policy's path::%s not matching in Embedding's path.", value.Clip(text))
		}
		if slices.Contains(seen, text) {
			return invalid("Duplicate Path :%s found in Vector Indexing Policy.", value.Clip(text))
		}
		seen = append(seen, text)
		o, err := asObject("indexingPolicy.vectorIndexes[]", raw)
		if err != nil {
			return err
		}
		kind, _ := o.Lookup("type")
		if s, err := asString("indexingPolicy.vectorIndexes[].type", kind); err != nil || !containsFold(vectorIndexTypes, s) {
			return invalid("The Vector Indexing Policy's Index Type::%s is invalid. Valid index types are 'flat', 'quantizedFlat' or 'diskANN'.", value.Clip(s))
		}
	}
	return nil
}

// checkBoundingBoxes: a plane has no bounds of its own, so its spatial indexes
// need them; the globe has, and takes no others.
func (d *Definition) checkBoundingBoxes() error {
	policy, err := asObject("indexingPolicy", d.raw("indexingPolicy"))
	if err != nil {
		return err
	}
	raw, ok := policy.Lookup("spatialIndexes")
	if absent(raw, ok) {
		return nil
	}
	config, err := asObject("geospatialConfig", d.raw("geospatialConfig"))
	if err != nil {
		return err
	}
	kind, _ := config.Lookup("type")
	plane := string(kind) == `"Geometry"`
	list, err := asArray("indexingPolicy.spatialIndexes", raw)
	if err != nil {
		return err
	}
	for _, raw := range list {
		index, err := asObject("indexingPolicy.spatialIndexes[]", raw)
		if err != nil {
			return err
		}
		box, ok := index.Lookup("boundingBox")
		switch bounded := !absent(box, ok); {
		case plane && !bounded:
			return invalid("A spatial index must have a boundingBox when the type of the geospatialConfig is Geometry.")
		case !plane && bounded:
			return invalid("A spatial index must not have a boundingBox when the type of the geospatialConfig is Geography.")
		}
	}
	return nil
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(t string) bool { return strings.EqualFold(s, t) })
}
