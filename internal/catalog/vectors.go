// SPDX-License-Identifier: MIT

// Vector policies: which paths have vectors of which kind, and how they are indexed.
// Every kind of index has the same rows here, so an index's parameters are checked and
// returned, and have no other effect.

package catalog

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxDimensions is the greatest length of a vector.
	maxDimensions = 4096
	// maxQuantizedBytes is the greatest length of a vector's quantized form, which also
	// has at most as many bytes as the vector has dimensions.
	maxQuantizedBytes = 512
	// minSearchList and maxSearchList bound the size of the search list when a vector is
	// added to a graph.
	minSearchList = 25
	maxSearchList = 500
	// maxShardPaths is how many paths an index may be sharded by.
	maxShardPaths = 1
)

var (
	vectorDataTypes         = []string{"float16", "float32", "int8", "uint8"}
	vectorDistanceFunctions = []string{"cosine", "dotproduct", "euclidean"}
	vectorIndexTypes        = []string{"flat", "quantizedFlat", "diskANN"}
	// vectorIndexParameters are the parameters of an index beside its type.
	vectorIndexParameters = []string{"quantizerType", "quantizationByteSize", "indexingSearchListSize", "vectorIndexShardKey"}
)

// VectorPath says how the vectors at a path are compared.
type VectorPath struct {
	Path             value.Path
	DistanceFunction string
	DataType         string

	embedding *value.Object // as it was sent
}

// vectorAt returns the vectors at a path; nil if there are none.
func vectorAt(all []VectorPath, path value.Path) *VectorPath {
	for i := range all {
		if slices.Equal(all[i].Path, path) {
			return &all[i]
		}
	}
	return nil
}

// parseVectors parses the vector policy.
func (d *Definition) parseVectors(o *value.Object) error {
	policy, err := objectMember(o, "vectorEmbeddingPolicy")
	if err != nil {
		return err
	}
	for e, err := range objects(policy, "vectorEmbeddingPolicy", "vectorEmbeddings") {
		if err != nil {
			return err
		}
		path, _ := textMember(e, "path")
		p, err := value.ParsePath(path)
		if err != nil {
			return invalid("The Vector Embedding Policy has an invalid Path:%s.", value.Clip(path))
		}
		metric, _ := textMember(e, "distanceFunction")
		dataType, _ := textMember(e, "dataType")
		d.Vectors = append(d.Vectors, VectorPath{p, metric, dataType, e})
	}
	return nil
}

// textMember returns a member of an object as text, and whether it is there. A value that
// is no string is returned as JSON.
func textMember(o *value.Object, name string) (string, bool) {
	raw, ok := o.Lookup(name)
	if absent(raw, ok) {
		return "", false
	}
	v, _ := value.FromJSON(raw)
	if s, ok := v.Text(); ok {
		return s, true
	}
	return string(raw), true
}

func (d *Definition) checkEmbeddings() error {
	for i, v := range d.Vectors {
		if err := checkEmbedding(v.embedding); err != nil {
			return err
		}
		if vectorAt(d.Vectors[:i], v.Path) != nil {
			return invalid("Duplicate Path :/%s found in Vector Embedding Policy.", value.Clip(strings.Join(v.Path, "/")))
		}
	}
	return nil
}

// checkEmbedding checks one element of the vector embedding policy. Members may be
// missing.
func checkEmbedding(e *value.Object) error {
	if s, ok := textMember(e, "dataType"); ok && !containsFold(vectorDataTypes, s) {
		return invalid("The Vector Embedding Policy has an invalid DataType:%s. Valid data types are %s.", value.Clip(s), strings.Join(vectorDataTypes, ", "))
	}
	if s, ok := textMember(e, "distanceFunction"); ok && !containsFold(vectorDistanceFunctions, s) {
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

// dimensions returns the length of the vectors; maxDimensions if it is not given.
func (v *VectorPath) dimensions() int {
	raw, _ := v.embedding.Lookup("dimensions")
	if n, err := asInt("dimensions", raw, 1, maxDimensions); err == nil {
		return n
	}
	return maxDimensions
}

// vectorIndex is an index of the policy, as it was sent.
type vectorIndex struct {
	text string
	path value.Path // nil if it cannot be that of a vector
	spec *value.Object
}

// vectorIndexes returns the vector indexes of a parsed policy.
func (d *Definition) vectorIndexes() ([]vectorIndex, error) {
	policy, err := d.object("indexingPolicy")
	if err != nil {
		return nil, err
	}
	var all []vectorIndex
	for spec, err := range objects(policy, "indexingPolicy", "vectorIndexes") {
		if err != nil {
			return nil, err
		}
		x := vectorIndex{spec: spec}
		if x.text, err = indexPath("vectorIndexes", spec); err != nil {
			return nil, err
		}
		x.path, _ = value.ParsePath(strings.TrimSuffix(strings.TrimSuffix(x.text, "/?"), "/*"))
		all = append(all, x)
	}
	return all, nil
}

// checkVectorIndexes checks that every vector index has vectors to index, which needs the
// whole definition.
func (d *Definition) checkVectorIndexes() error {
	all, err := d.vectorIndexes()
	if err != nil {
		return err
	}
	for i := range all {
		x := &all[i]
		v := vectorAt(d.Vectors, x.path)
		if v == nil {
			return invalid("The Vector Indexing Policy's path::%s not matching in Embedding's path.", value.Clip(x.text))
		}
		if slices.ContainsFunc(all[:i], func(other vectorIndex) bool { return other.text == x.text }) {
			return invalid("Duplicate Path :%s found in Vector Indexing Policy.", value.Clip(x.text))
		}
		if s, _ := textMember(x.spec, "type"); !containsFold(vectorIndexTypes, s) {
			return invalid("The Vector Indexing Policy's Index Type::%s is invalid. Valid index types are 'flat', 'quantizedFlat' or 'diskANN'.", value.Clip(s))
		}
		if err := x.checkRange("quantizationByteSize", 1, min(v.dimensions(), maxQuantizedBytes)); err != nil {
			return err
		}
		if err := x.checkRange("indexingSearchListSize", minSearchList, maxSearchList); err != nil {
			return err
		}
		if err := x.checkShardKey(); err != nil {
			return err
		}
	}
	return nil
}

func (x *vectorIndex) checkRange(name string, lowest, highest int) error {
	raw, ok := x.spec.Lookup(name)
	if absent(raw, ok) {
		return nil
	}
	if _, err := asInt(name, raw, lowest, highest); err != nil {
		return invalid("The Vector Indexing Policy parameter %s value :: %s is out of range. The allowed range is between %d and %d.",
			strings.ToUpper(name[:1])+name[1:], value.Clip(string(raw)), lowest, highest)
	}
	return nil
}

func (x *vectorIndex) checkShardKey() error {
	raw, ok := x.spec.Lookup("vectorIndexShardKey")
	if absent(raw, ok) {
		return nil
	}
	paths, err := asArray("vectorIndexShardKey", raw)
	if err != nil {
		return err
	}
	if len(paths) > maxShardPaths {
		return invalid("The number of shard paths defined in the Vector Indexing Policy: %d exceeds the maximum: %d.", len(paths), maxShardPaths)
	}
	for _, raw := range paths {
		v, _ := value.FromJSON(raw)
		text, ok := v.Text()
		if !ok {
			text = string(raw)
		}
		if _, err := value.ParsePath(text); err != nil {
			return invalid("The Vector Indexing Policy has an invalid Shard Path: %s.", value.Clip(text))
		}
	}
	return nil
}

// replacesVectors checks that d's vectors may replace old's: paths may be added or
// removed, but those that stay must not change.
func (d *Definition) replacesVectors(old *Definition) error {
	for _, v := range d.Vectors {
		if was := vectorAt(old.Vectors, v.Path); was != nil && !sameJSON(was.embedding.Bytes(), v.embedding.Bytes()) {
			return invalid("Paths in existing embedding policy cannot be modified in Collection Replace")
		}
	}
	before, err := old.vectorIndexes()
	if err != nil {
		return err
	}
	after, err := d.vectorIndexes()
	if err != nil {
		return err
	}
	for i := range after {
		for j := range before {
			if after[i].text == before[j].text && !after[i].like(&before[j]) {
				return invalid("Paths in existing vector indexing policy cannot be modified in Collection Replace")
			}
		}
	}
	return nil
}

// like reports whether two indexes have the same type, and the same values of the
// parameters that both give.
func (x *vectorIndex) like(y *vectorIndex) bool {
	a, _ := textMember(x.spec, "type")
	b, _ := textMember(y.spec, "type")
	if !strings.EqualFold(a, b) {
		return false
	}
	for _, name := range vectorIndexParameters {
		a, _ := x.spec.Lookup(name)
		b, _ := y.spec.Lookup(name)
		if notNull(a) != nil && notNull(b) != nil && !sameJSON(a, b) {
			return false
		}
	}
	return true
}
