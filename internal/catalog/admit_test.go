// SPDX-License-Identifier: MIT

package catalog

import "testing"

func TestNewDefinitionRefusals(t *testing.T) {
	const pathText = "Partition key paths must contain only valid characters"
	vectors := func(embeddings, indexes string) string {
		return with(`"vectorEmbeddingPolicy":{"vectorEmbeddings":[` + embeddings + `]},"indexingPolicy":{"vectorIndexes":[` + indexes + `]}`)
	}
	spatial := func(kind, rest string) string {
		return with(`"geospatialConfig":{"type":"` + kind + `"},"indexingPolicy":{"spatialIndexes":[{"path":"/p/?","types":["Point"]` + rest + `}]}`)
	}
	const (
		v     = `{"path":"/v","dataType":"float32","dimensions":4,"distanceFunction":"cosine"}`
		flat  = `{"path":"/v","type":"flat"}`
		box   = `,"boundingBox":{"xmin":0,"ymin":0,"xmax":1,"ymax":1}`
		taken = ""
	)
	for _, c := range []struct{ body, want string }{
		{withKey(`{"paths":["/id ds"]}`), pathText},
		{withKey(`{"paths":["/a","/b\u00a0c"],"kind":"MultiHash"}`), pathText},
		{withKey(`{"paths":["/\"id ds\""]}`), taken},

		{spatial("Geography", ""), taken},
		{spatial("Geometry", box), taken},
		{spatial("Geometry", ""), "boundingBox when the type of the geospatialConfig is Geometry"},
		{spatial("Geography", box), "boundingBox when the type of the geospatialConfig is Geography"},

		{vectors(v, flat), taken},
		{vectors(v, `{"path":"/v","type":"diskANN"}`), taken},
		{vectors("", flat), "path::/v not matching in Embedding's path"},
		{vectors(v, `{"path":"/w","type":"flat"}`), "path::/w not matching in Embedding's path"},
		{vectors(v, `{"path":"/v","type":"notFlat"}`), "Index Type::notFlat is invalid"},
		{vectors(v, `{"path":"/v"}`), "Index Type:: is invalid"},
		{vectors(v, flat+","+flat), "Duplicate Path :/v found in Vector Indexing Policy."},
		{vectors(v+","+v, ""), "Duplicate Path :/v found in Vector Embedding Policy."},
		{vectors(`{"path":"/v","dataType":"float1"}`, ""), "invalid DataType:float1"},
		{vectors(`{"path":"/v","dataType":1}`, ""), "invalid DataType:1"},
		{vectors(`{"path":"/v","distanceFunction":"handMeasured"}`, ""), "invalid DistanceFunction:handMeasured"},
		{vectors(`{"path":"/v","dimensions":8000}`, ""), "Dimensions:8000 which is more than the maximum supported value"},
		{vectors(`{"path":"/v","dimensions":-1}`, ""), "Dimensions:-1"},
		{vectors(`{"path":"/v","dimensions":1.5}`, ""), "Dimensions:1.5"},
		{vectors(`{"path":"/v","dimensions":"4"}`, ""), `Dimensions:"4"`},
	} {
		d, err := ParseDefinition([]byte(c.body))
		if err != nil {
			t.Errorf("%s is to be parsed: %v", c.body, err)
			continue
		}
		if err = d.check(); err == nil {
			err = d.checkVectorIndexes()
		}
		if c.want == taken && err != nil || c.want != taken && !refusedWith(err, c.want) {
			t.Errorf("%s: got %v, want %q", c.body, err, c.want)
		}
	}
}
