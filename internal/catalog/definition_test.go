// SPDX-License-Identifier: MIT

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/value"
)

// What the server fills in, in the order of its answers.
const (
	filledIndexing = `"indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`
	filledKey      = `"partitionKey":{"paths":["/pk"],"kind":"Hash"}`
	filledUnique   = `"uniqueKeyPolicy":{"uniqueKeys":[]}`
	filledConflict = `"conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`
	filledGeo      = `"geospatialConfig":{"type":"Geography"}`
	filled         = filledUnique + "," + filledConflict + "," + filledGeo
)

// with returns a valid definition with more properties.
func with(properties string) string {
	text := `{"id":"c","partitionKey":{"paths":["/pk"]}`
	if properties != "" {
		text += "," + properties
	}
	return text + "}"
}

// withKey returns a definition with this partition key.
func withKey(key string) string { return `{"id":"c","partitionKey":` + key + `}` }

// withIndexing returns a valid definition with this indexing policy.
func withIndexing(policy string) string { return with(`"indexingPolicy":` + policy) }

func render(d *Definition) string { return string(append(d.appendDefinition([]byte("{")), '}')) }

func parse(t testing.TB, body string) *Definition {
	t.Helper()
	d, err := ParseDefinition([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return d
}

var validDefinitions = []struct {
	name, body string
	want       string
}{
	{"the least", with(""), `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"nulls are absent", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":null,"systemKey":null},"indexingPolicy":null,"uniqueKeyPolicy":null,` +
		`"conflictResolutionPolicy":null,"geospatialConfig":null,"defaultTtl":null}`,
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/pk"],"systemKey":null,"kind":"Hash"},` + filled + "}"},
	{"what the server owns", with(`"_rid":1,"_ts":2,"_self":3,"_etag":4,"_docs":5,"_sprocs":6,"_triggers":7,"_udfs":8,"_conflicts":9`),
		`{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"space", " {\n\"partitionKey\" : { \"paths\" : [ \"/pk\" ] } ,\t\"id\" : \"c\" } ", `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"unknown properties", with(`"materializedViewDefinition":{"a":[1.50,"<&>"]},"x":null`),
		`{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + `,"materializedViewDefinition":{"a":[1.50,"<&>"]},"x":null}`},

	{"key version 2", withKey(`{"version":2,"kind":"Hash","paths":["/a/b"]}`),
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/a/b"],"kind":"Hash","version":2},` + filled + "}"},
	{"key version 1", withKey(`{"paths":["/pk"],"version":1.0}`),
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":1},` + filled + "}"},
	{"key version by name", withKey(`{"paths":["/pk"],"version":"V2"}`),
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},` + filled + "}"},
	{"hierarchical key", withKey(`{"paths":["/a","/b","/c"],"kind":"MultiHash"}`),
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/a","/b","/c"],"kind":"MultiHash","version":2},` + filled + "}"},
	{"system key", withKey(`{"paths":["/_partitionKey"],"systemKey":true}`),
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/_partitionKey"],"systemKey":true,"kind":"Hash"},` + filled + "}"},
	{"indexes of a container as old as they are", `{"id":"c","partitionKey":{"paths":["/_partitionKey"],"systemKey":true},` + `"indexingPolicy":{"includedPaths":[{"path":"/*","indexes":[{"kind":"Range","dataType":"Number","precision":-1}]}]}}`,
		`{"id":"c",` + strings.Replace(filledIndexing, `{"path":"/*"}`, `{"path":"/*","indexes":[{"kind":"Range","dataType":"Number","precision":-1}]}`, 1) +
			`,"partitionKey":{"paths":["/_partitionKey"],"systemKey":true,"kind":"Hash"},` + filled + "}"},
	{"the root as old clients write it", withIndexing(`{"includedPaths":[{"path":"/"}]}`), `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"quoted key path", withKey(`{"paths":["/\"a/b\""]}`),
		`{"id":"c",` + filledIndexing + `,"partitionKey":{"paths":["/\"a/b\""],"kind":"Hash"},` + filled + "}"},

	{"indexing mode in capitals", withIndexing(`{"indexingMode":"Consistent"}`), `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"lazy", withIndexing(`{"indexingMode":"LAZY"}`), `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"not automatic", withIndexing(`{"automatic":false}`), `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + "}"},
	{"etag without quotes", withIndexing(`{"excludedPaths":[{"path":"/_etag/?"}]}`),
		`{"id":"c",` + strings.Replace(filledIndexing, `/\"_etag\"/?`, `/_etag/?`, 1) + "," + filledKey + "," + filled + "}"},
	{"no indexing", withIndexing(`{"indexingMode":"none"}`),
		`{"id":"c","indexingPolicy":{"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]},` + filledKey + "," + filled + "}"},
	{"no indexing, as it is echoed elsewhere", withIndexing(`{"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`),
		`{"id":"c","indexingPolicy":{"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]},` + filledKey + "," + filled + "}"},
	{"paths", withIndexing(`{"automatic":false,"includedPaths":[{"path":"/a/?","indexes":[{"kind":"Range","dataType":"Number"}]},{"path":"/b/[]/c/*"}],"excludedPaths":[{"path":"/*"}]}`),
		`{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/a/?"},{"path":"/b/[]/c/*"}],` +
			`"excludedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]},` + filledKey + "," + filled + "}"},
	{"excluded alone", withIndexing(`{"excludedPaths":[{"path":"/a/*"}]}`),
		`{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],` +
			`"excludedPaths":[{"path":"/a/*"},{"path":"/\"_etag\"/?"}]},` + filledKey + "," + filled + "}"},
	{"etag included", withIndexing(`{"includedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]}`),
		`{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}],"excludedPaths":[]},` +
			filledKey + "," + filled + "}"},
	{"special indexes", with(`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v"}]},"indexingPolicy":{"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b"}]],` +
		`"spatialIndexes":[{"path":"/p/*","types":["Point"]}],"vectorIndexes":[{"path":"/v","type":"flat"}],"fullTextIndexes":[{"path":"/t"}]}`),
		`{"id":"c",` + strings.TrimSuffix(filledIndexing, "}") + `,"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b"}]],` +
			`"spatialIndexes":[{"path":"/p/*","types":["Point"]}],"vectorIndexes":[{"path":"/v","type":"flat"}],"fullTextIndexes":[{"path":"/t"}]},` +
			filledKey + "," + filled + `,"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v"}]}}`},

	{"unique keys", with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]},{"paths":["/d"]}]}`),
		`{"id":"c",` + filledIndexing + "," + filledKey + `,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]},{"paths":["/d"]}]},` + filledConflict + "," + filledGeo + "}"},
	{"custom conflicts", with(`"conflictResolutionPolicy":{"mode":"Custom","conflictResolutionProcedure":"dbs/d/colls/c/sprocs/s"}`),
		`{"id":"c",` + filledIndexing + "," + filledKey + "," + filledUnique +
			`,"conflictResolutionPolicy":{"mode":"Custom","conflictResolutionPath":"","conflictResolutionProcedure":"dbs/d/colls/c/sprocs/s"},` + filledGeo + "}"},
	{"geometry", with(`"geospatialConfig":{"type":"Geometry"}`),
		`{"id":"c",` + filledIndexing + "," + filledKey + "," + filledUnique + "," + filledConflict + `,"geospatialConfig":{"type":"Geometry"}}`},
	{"ttl", with(`"x":1,"defaultTtl":3600`), `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + `,"defaultTtl":3600,"x":1}`},
	{"ttl with a path", with(`"ttlPropertyPath":"/created","defaultTtl":5.0`),
		`{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + `,"defaultTtl":5.0,"ttlPropertyPath":"/created"}`},
	{"policies that are kept", with(`"computedProperties":[],"changeFeedPolicy":{"retentionDuration":10},"vectorEmbeddingPolicy":{},"fullTextPolicy":{},` +
		`"clientEncryptionPolicy":{},"analyticalStorageTtl":-1`),
		`{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + `,"computedProperties":[],"changeFeedPolicy":{"retentionDuration":10},` +
			`"vectorEmbeddingPolicy":{},"fullTextPolicy":{},"clientEncryptionPolicy":{},"analyticalStorageTtl":-1}`},
}

func TestParseDefinition(t *testing.T) {
	for _, c := range validDefinitions {
		if got := render(parse(t, c.body)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The parsed values of a definition, beside its echo.
func TestDefinitionMeaning(t *testing.T) {
	d := parse(t, `{"id":"ü","partitionKey":{"paths":["/a/b","/c"],"kind":"MultiHash"},"defaultTtl":60,"indexingPolicy":{"indexingMode":"Lazy"},
		"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/x","/y/z"]}]}}`)
	samePaths := func(a, b []value.Path) bool {
		return slices.EqualFunc(a, b, func(a, b value.Path) bool { return slices.Equal(a, b) })
	}
	if d.id != "ü" || d.DefaultTTL != 60 || d.IndexingMode != IndexingConsistent || d.PartitionKey.Kind != "MultiHash" ||
		d.PartitionKey.Version != 2 || !d.PartitionKey.Hierarchical() || d.PartitionKey.SystemKey {
		t.Errorf("got %+v", d)
	}
	if !samePaths(d.PartitionKey.Paths, []value.Path{{"a", "b"}, {"c"}}) {
		t.Errorf("partition key paths: got %v", d.PartitionKey.Paths)
	}
	if len(d.UniqueKeys) != 1 || !samePaths(d.UniqueKeys[0], []value.Path{{"x"}, {"y", "z"}}) {
		t.Errorf("unique keys: got %v", d.UniqueKeys)
	}
	if d := parse(t, with("")); d.PartitionKey.Version != 1 || d.PartitionKey.Kind != "Hash" || d.DefaultTTL != TTLAbsent || d.IndexingMode != IndexingConsistent {
		t.Errorf("defaults: got %+v", d)
	}
}

func TestDefinitionNames(t *testing.T) {
	const required = "The input content is invalid because the required properties - 'id; ' - are missing"
	const rule = "Ensure to provide a unique non-empty string less than '255' characters."
	for _, c := range []struct{ id, refused string }{
		{`"a"`, ""},
		{`" a.b-c_d e"`, ""},
		{`"` + strings.Repeat("x", 255) + `"`, ""},
		{`"` + strings.Repeat("é", 255) + `"`, ""},
		{`"` + strings.Repeat("x", 256) + `"`, rule},
		{`""`, rule},
		{`"a/b"`, rule},
		{`"a\\b"`, rule},
		{`"a?b"`, rule},
		{`"a#b"`, rule},
		{`"a "`, rule},
		{`null`, required},
		{`5`, "One of the specified inputs is invalid: 'id' must be a string."},
		{`{}`, "One of the specified inputs is invalid: 'id' must be a string."},
	} {
		_, err := ParseDefinition([]byte(`{"id":` + c.id + `,"partitionKey":{"paths":["/pk"]}}`))
		if c.refused == "" && err != nil || c.refused != "" && !refusedWith(err, c.refused) {
			t.Errorf("id %s: got %v, want %q", c.id, err, c.refused)
		}
	}
	if _, err := ParseDefinition([]byte(`{"partitionKey":{"paths":["/pk"]}}`)); !refusedWith(err, required) {
		t.Errorf("no id: got %v", err)
	}
}

// refusedWith reports whether err is a refusal whose message contains text.
func refusedWith(err error, text string) bool {
	var bad *InvalidError
	return errors.As(err, &bad) && strings.Contains(bad.Message, text)
}

func TestDefinitionRefusals(t *testing.T) {
	const (
		pathText = "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character."
		special  = `The special mandatory indexing path "/*" is `
		lww      = `"conflictResolutionPolicy":{"mode":"LastWriterWins",`
	)
	mustBe := func(what, kind string) string {
		return fmt.Sprintf("One of the specified inputs is invalid: '%s' must be %s.", what, kind)
	}
	paths := func(n int) string { return strings.Repeat(`{"path":"/a/?"},`, n-1) + `{"path":"/*"}` }
	for _, c := range []struct{ body, want string }{
		{``, "The input content is invalid because it is not a well-formed JSON object"},
		{`[]`, "The input content is invalid because it is not a well-formed JSON object"},
		{`{"id":"c"`, "The input content is invalid because it is not a well-formed JSON object"},
		{`{"id":"c","id":"c"}`, "The input content is invalid because it is not a well-formed JSON object"},

		{`{"id":"c"}`, "The input content is invalid because the required properties - 'partitionKey; ' - are missing"},
		{withKey(`null`), "The input content is invalid because the required properties - 'partitionKey; ' - are missing"},
		{withKey(`"/pk"`), mustBe("partitionKey", "an object")},
		{withKey(`["/pk"]`), mustBe("partitionKey", "an object")},
		{withKey(`{}`), mustBe("partitionKey.paths", "an array")},
		{withKey(`{"paths":"/pk"}`), mustBe("partitionKey.paths", "an array")},
		{withKey(`{"paths":[]}`), "must have at least one path"},
		{withKey(`{"paths":[1]}`), mustBe("partitionKey.paths[]", "a string")},
		{withKey(`{"paths":["/a","/b"]}`), "Too many partition key paths"},
		{withKey(`{"paths":["/a","/b","/c","/d"],"kind":"MultiHash"}`), "Too many partition key paths"},
		{withKey(`{"paths":["/a","/a"],"kind":"MultiHash"}`), "The partition key path '/a' is given twice."},
		{withKey(`{"paths":["id"]}`), "The partition key component definition path 'id' could not be accepted, failed near position '0'. " + pathText},
		{withKey(`{"paths":[""]}`), pathText},
		{withKey(`{"paths":["/"]}`), pathText},
		{withKey(`{"paths":["/a/"]}`), pathText},
		{withKey(`{"paths":["/a/*"]}`), pathText},
		{withKey(`{"paths":["/a/?"]}`), pathText},
		{withKey(`{"paths":["/pk"],"kind":1}`), mustBe("partitionKey.kind", "a string")},
		{withKey(`{"paths":["/pk"],"kind":"Range"}`), "The partition key kind 'Range' is invalid."},
		{withKey(`{"paths":["/pk"],"version":"2"}`), mustBe("partitionKey.version", "an integer from 1 to 2")},
		{withKey(`{"paths":["/pk"],"version":3}`), mustBe("partitionKey.version", "an integer from 1 to 2")},
		{withKey(`{"paths":["/pk"],"version":0}`), mustBe("partitionKey.version", "an integer from 1 to 2")},
		{withKey(`{"paths":["/pk"],"version":1.5}`), mustBe("partitionKey.version", "an integer from 1 to 2")},
		{withKey(`{"paths":["/pk"],"version":"V3"}`), mustBe("partitionKey.version", "an integer from 1 to 2")},
		{withKey(`{"paths":["/pk"],"kind":"MultiHash","version":"V1"}`), "A partition key of kind 'MultiHash' must have version 2."},
		{withKey(`{"paths":["/pk"],"kind":"MultiHash","version":1}`), "A partition key of kind 'MultiHash' must have version 2."},
		{withKey(`{"paths":["/pk"],"systemKey":"yes"}`), mustBe("partitionKey.systemKey", "true or false")},

		{withIndexing(`"consistent"`), mustBe("indexingPolicy", "an object")},
		{withIndexing(`{"indexingMode":1}`), mustBe("indexingPolicy.indexingMode", "a string")},
		{withIndexing(`{"indexingMode":"eager"}`), "The indexing mode 'eager' is invalid."},
		{withIndexing(`{"automatic":"true"}`), mustBe("indexingPolicy.automatic", "true or false")},
		{withIndexing(`{"indexingMode":"none","automatic":true}`), "with indexing mode 'none', 'automatic' must be false"},
		{withIndexing(`{"indexingMode":"none","includedPaths":[{"path":"/*"}]}`), "with indexing mode 'none' there can be no included or excluded paths"},
		{withIndexing(`{"indexingMode":"none","excludedPaths":[{"path":"/*"}]}`), "with indexing mode 'none' there can be no included or excluded paths"},
		{withIndexing(`{"includedPaths":{}}`), mustBe("indexingPolicy.includedPaths", "an array")},
		{withIndexing(`{"excludedPaths":"/*"}`), mustBe("indexingPolicy.excludedPaths", "an array")},
		{withIndexing(`{"includedPaths":["/*"]}`), mustBe("indexingPolicy.includedPaths[]", "an object")},
		{withIndexing(`{"includedPaths":[{}]}`), mustBe("indexingPolicy.includedPaths[].path", "a string")},
		{withIndexing(`{"includedPaths":[{"path":1}]}`), mustBe("indexingPolicy.includedPaths[].path", "a string")},
		{withIndexing(`{"includedPaths":[{"path":"a"}]}`), "The indexing path 'a' could not be accepted."},
		{withIndexing(`{"includedPaths":[{"path":""}]}`), "The indexing path '' could not be accepted."},
		{withIndexing(`{"includedPaths":[{"path":"/a/*/b"}]}`), "The indexing path '/a/*/b' could not be accepted."},
		{withIndexing(`{"includedPaths":[{"path":"/a/?"}]}`), special + "not provided in any of the path type sets. Please provide this path in one of the sets."},
		{withIndexing(`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/*"}]}`), special + "given more than once"},
		{withIndexing(`{"includedPaths":[` + paths(1001) + `]}`), "more than the 1000 that are allowed"},
		{withIndexing(`{"compositeIndexes":{}}`), mustBe("indexingPolicy.compositeIndexes", "an array")},
		{withIndexing(`{"compositeIndexes":[{}]}`), mustBe("indexingPolicy.compositeIndexes[]", "an array")},
		{withIndexing(`{"compositeIndexes":[[{"path":"/a"}]]}`), "A composite index must have 2 to 8 paths, and this one has 1."},
		{withIndexing(`{"compositeIndexes":[[` + paths(9) + `]]}`), "A composite index must have 2 to 8 paths, and this one has 9."},
		{withIndexing(`{"compositeIndexes":[["/a","/b"]]}`), "must be an object"},
		{withIndexing(`{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"up"}]]}`), "must be 'ascending' or 'descending'"},
		{withIndexing(`{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":1}]]}`), "must be 'ascending' or 'descending'"},
		{withIndexing(`{"compositeIndexes":[` + strings.Repeat(`[],`, 100) + `[]]}`), "more than the 100 that are allowed"},
		{withIndexing(`{"spatialIndexes":{}}`), mustBe("indexingPolicy.spatialIndexes", "an array")},
		{withIndexing(`{"spatialIndexes":[{"path":"/p/*"}]}`), "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path"},
		{withIndexing(`{"spatialIndexes":[{"path":"/p/*","types":[]}]}`), "The spatial data types array cannot be empty."},
		{withIndexing(`{"spatialIndexes":[{"path":"/p/*","types":"Point"}]}`), mustBe("indexingPolicy.spatialIndexes[].types", "an array")},
		{withIndexing(`{"vectorIndexes":"/v"}`), mustBe("indexingPolicy.vectorIndexes", "an array")},
		{withIndexing(`{"fullTextIndexes":[{"path":1}]}`), mustBe("indexingPolicy.fullTextIndexes[].path", "a string")},

		{with(`"uniqueKeyPolicy":[]`), mustBe("uniqueKeyPolicy", "an object")},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":{}}`), mustBe("uniqueKeyPolicy.uniqueKeys", "an array")},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":["/a"]}`), mustBe("uniqueKeyPolicy.uniqueKeys[]", "an object")},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":[{}]}`), mustBe("uniqueKeyPolicy.uniqueKeys[].paths", "an array")},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":[]}]}`), "A unique key must have 1 to 16 paths, and this one has 0."},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":[` + strings.Repeat(`"/a",`, 16) + `"/b"]}]}`), "A unique key must have 1 to 16 paths, and this one has 17."},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":[1]}]}`), mustBe("uniqueKeyPolicy.uniqueKeys[].paths[]", "a string")},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["a"]}]}`), "The unique key path 'a' is invalid."},
		{with(`"uniqueKeyPolicy":{"uniqueKeys":[` + strings.Repeat(`{"paths":["/a"]},`, 10) + `{"paths":["/b"]}]}`), "The unique key policy has 11 keys, more than the 10 that are allowed."},

		{with(`"conflictResolutionPolicy":"Custom"`), mustBe("conflictResolutionPolicy", "an object")},
		{with(`"conflictResolutionPolicy":{"mode":1}`), mustBe("conflictResolutionPolicy.mode", "a string")},
		{with(lww + `"conflictResolutionPath":1}`), mustBe("conflictResolutionPolicy.conflictResolutionPath", "a string")},
		{with(lww + `"conflictResolutionProcedure":1}`), mustBe("conflictResolutionPolicy.conflictResolutionProcedure", "a string")},
		{with(`"conflictResolutionPolicy":{"mode":"FirstWriterWins"}`), "The conflict resolution mode 'FirstWriterWins' is invalid."},
		{with(lww + `"conflictResolutionProcedure":"s"}`), "LastWriterWins conflict resolution mode should not have conflict resolution procedure set."},
		{with(`"conflictResolutionPolicy":{"mode":"Custom","conflictResolutionPath":"/a"}`), "Custom conflict resolution mode should not have conflict resolution path set."},
		{with(lww + `"conflictResolutionPath":"/a/b"}`), "Invalid path '/a/b' for last writer wins conflict resolution"},
		{with(lww + `"conflictResolutionPath":"a"}`), "Invalid path 'a' for last writer wins conflict resolution"},

		{with(`"geospatialConfig":"Geography"`), mustBe("geospatialConfig", "an object")},
		{with(`"geospatialConfig":{}`), "Ensure to provide 'Geography' or 'Geometry'."},
		{with(`"geospatialConfig":{"type":"Flat"}`), "Ensure to provide 'Geography' or 'Geometry'."},
		{with(`"geospatialConfig":{"type":1}`), "Ensure to provide 'Geography' or 'Geometry'."},

		{with(`"computedProperties":{}`), mustBe("computedProperties", "an array")},
		{with(`"changeFeedPolicy":[]`), mustBe("changeFeedPolicy", "an object")},
		{with(`"vectorEmbeddingPolicy":1`), mustBe("vectorEmbeddingPolicy", "an object")},
		{with(`"fullTextPolicy":""`), mustBe("fullTextPolicy", "an object")},
		{with(`"clientEncryptionPolicy":true`), mustBe("clientEncryptionPolicy", "an object")},
		{with(`"analyticalStorageTtl":"x"`), mustBe("analyticalStorageTtl", "an integer from -1 to 2147483647")},
		{with(`"analyticalStorageTtl":1.5`), mustBe("analyticalStorageTtl", "an integer from -1 to 2147483647")},
		{with(`"analyticalStorageTtl":-2`), mustBe("analyticalStorageTtl", "an integer from -1 to 2147483647")},
		{with(`"analyticalStorageTtl":2147483648`), mustBe("analyticalStorageTtl", "an integer from -1 to 2147483647")},

		{with(`"ttlPropertyPath":"/a"`), "can only be set together with 'defaultTtl'"},
		{with(`"expireAtPath":"/a"`), "can only be set together with 'defaultTtl'"},
		{with(`"eraseWithin":"1h"`), "The input eraseWithin '\"1h\"' is invalid."},
		{with(`"eraseWithin":9`), "from 10 to 2147483647, or -1 for any time"},
		{with(`"eraseWithin":-2`), "The input eraseWithin '-2' is invalid."},
		{with(`"eraseWithin":10.5`), "The input eraseWithin '10.5' is invalid."},
		{with(`"defaultTtl":1,"expireAtPath":1`), mustBe("expireAtPath", "a string")},
		{with(`"defaultTtl":1,"expireAtPath":"a"`), "The input expireAtPath 'a' is invalid."},
		{with(`"defaultTtl":1,"expireAtPath":"/"`), "The input expireAtPath '/' is invalid."},
		{with(`"defaultTtl":1,"expireAtPath":"/_etag"`), "the property '_etag' has another meaning"},
		{with(`"defaultTtl":1,"expireAtPath":"/ttl/a"`), "the property 'ttl' has another meaning"},
		{with(`"defaultTtl":1,"expireAtPast":"accept"`), "can only be set together with 'expireAtPath'"},
		{with(`"defaultTtl":1,"expireAtPath":"/a","expireAtPast":"x"`), "The input expireAtPast 'x' is invalid."},
		{with(`"defaultTtl":1,"expireAtPath":"/a","expireAtPast":1`), mustBe("expireAtPast", "a string")},
		{with(`"defaultTtl":1,"ttlPropertyPath":1`), mustBe("ttlPropertyPath", "a string")},
		{with(`"defaultTtl":1,"ttlPropertyPath":"a"`), "The input ttlPropertyPath 'a' is invalid."},
		{with(`"defaultTtl":1,"indexingPolicy":{"indexingMode":"none"}`), "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection"},
		{with(`"indexingPolicy":{"indexingMode":"None"},"defaultTtl":-1`), "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection"},
	} {
		if _, err := ParseDefinition([]byte(c.body)); !refusedWith(err, c.want) {
			t.Errorf("%.200s: got %v, want %q", c.body, err, c.want)
		}
	}
}

func TestDefaultTTL(t *testing.T) {
	for text, want := range map[string]TTL{
		"null": TTLAbsent, "-1": TTLForever, "1": 1, "2147483647": 2147483647, "5.0": 5, "5e0": 5, "-1.0": -1,
	} {
		if d := parse(t, with(`"defaultTtl":`+text)); d.DefaultTTL != want {
			t.Errorf("defaultTtl %s: got %d, want %d", text, d.DefaultTTL, want)
		}
	}
	for _, text := range []string{"0", "-0", "-2", "-10", "2147483648", "1e10", "1.5", `"60"`, "true", "false", "{}", "[1]"} {
		want := "The input defaultTtl '" + text + "' is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire."
		if _, err := ParseDefinition([]byte(with(`"defaultTtl":` + text))); !refusedWith(err, want) {
			t.Errorf("defaultTtl %s: got %v, want %q", text, err, want)
		}
	}
}

// checkIdempotent checks that a definition's rendering parses to the same definition.
func checkIdempotent(t *testing.T, d *Definition) {
	t.Helper()
	text := render(d)
	again, err := ParseDefinition([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got := render(again); got != text {
		t.Errorf("rendered again:\ngot  %s\nwant %s", got, text)
	}
	samePaths := func(a, b []value.Path) bool {
		return slices.EqualFunc(a, b, func(a, b value.Path) bool { return slices.Equal(a, b) })
	}
	if again.id != d.id || again.DefaultTTL != d.DefaultTTL || again.IndexingMode != d.IndexingMode ||
		!again.PartitionKey.equal(&d.PartitionKey) || !slices.EqualFunc(again.UniqueKeys, d.UniqueKeys, samePaths) {
		t.Errorf("%s is read back as %+v, want %+v", text, again, d)
	}
	if err := again.replaces(d); err != nil {
		t.Errorf("%s cannot replace itself: %v", text, err)
	}
}

func TestDefinitionIsIdempotent(t *testing.T) {
	for _, c := range validDefinitions {
		checkIdempotent(t, parse(t, c.body))
	}
}

func FuzzParseDefinition(f *testing.F) {
	for _, c := range validDefinitions {
		f.Add([]byte(c.body))
	}
	for _, body := range []string{``, `{}`, with(`"defaultTtl":0`), withKey(`{"paths":["/a/"]}`), withIndexing(`{"includedPaths":[{"path":"/\"a\\\"b\"/?"}]}`)} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := ParseDefinition(body)
		var bad *InvalidError
		switch {
		case err == nil:
			checkIdempotent(t, d)
		case !errors.As(err, &bad) || bad.Message == "":
			t.Errorf("%q: got %v, want a refusal that says why", body, err)
		}
	})
}
