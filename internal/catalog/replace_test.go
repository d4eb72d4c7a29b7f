// SPDX-License-Identifier: MIT

package catalog

import (
	"strings"
	"testing"
)

// What a replace may change, what it may leave out, and what it must keep.
func TestReplaces(t *testing.T) {
	const (
		uniqueA    = `"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}`
		uniqueB    = `"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/b"]}]}`
		custom     = `"conflictResolutionPolicy":{"mode":"Custom"}`
		customFull = `"conflictResolutionPolicy":{"mode":"Custom","conflictResolutionPath":"","conflictResolutionProcedure":""}`
		encryption = `"clientEncryptionPolicy":{"includedPaths":[],"policyFormatVersion":1}`
		vectors    = `"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v"}]}`

		uniqueText   = "'uniqueKeyPolicy' cannot be changed as part of collection replace operation."
		conflictText = "Updating conflict resolution policy is currently not supported"
		keyText      = "Partition key definition cannot be changed as part of collection replace operation"
	)
	for _, c := range []struct {
		name, old, fresh string
		refused          string
		kept             string // part of the answer
	}{
		{"the same", with(""), with(""), "", ""},
		{"another id", with(""), `{"id":"C","partitionKey":{"paths":["/pk"]}}`, "The id of a container cannot be changed: it is 'c', not 'C'.", ""},
		{"ttl on", with(""), with(`"defaultTtl":5`), "", `"defaultTtl":5`},
		{"another ttl", with(`"defaultTtl":120`), with(`"defaultTtl":240`), "", `"defaultTtl":240`},
		{"another indexing policy", with(""), withIndexing(`{"indexingMode":"none"}`), "", `"indexingMode":"none"`},
		{"geometry", with(""), with(`"geospatialConfig":{"type":"Geometry"}`), "", `"Geometry"`},
		{"new unknown property", with(""), with(`"x":1`), "", `"x":1`},

		{"key spelled out", with(""), withKey(`{"kind":"Hash","paths":["/pk"],"version":1}`), "", `"partitionKey":{"paths":["/pk"],"kind":"Hash","version":1}`},
		{"key path in quotes", with(""), withKey(`{"paths":["/\"pk\""]}`), "", ""},
		{"another key path", with(""), withKey(`{"paths":["/id"]}`), keyText + `: it is {"paths":["/pk"],"kind":"Hash"}.`, ""},
		{"another key version", with(""), withKey(`{"paths":["/pk"],"version":2}`), keyText, ""},
		{"another key kind", withKey(`{"paths":["/pk"],"version":2}`), withKey(`{"paths":["/pk"],"kind":"MultiHash"}`), keyText, ""},
		{"another level", withKey(`{"paths":["/a"],"kind":"MultiHash"}`), withKey(`{"paths":["/a","/b"],"kind":"MultiHash"}`), keyText, ""},
		{"a system key", with(""), withKey(`{"paths":["/pk"],"systemKey":true}`), keyText, ""},

		{"unique keys left out", with(uniqueA), with(""), "", uniqueA},
		{"unique keys null", with(uniqueA), with(`"uniqueKeyPolicy":null`), "", uniqueA},
		{"unique keys echoed", with(uniqueA), with(uniqueA), "", uniqueA},
		{"unique keys changed", with(uniqueA), with(uniqueB), uniqueText, ""},
		{"unique keys added", with(""), with(uniqueB), uniqueText, ""},

		{"conflicts left out", with(custom), with(""), "", customFull},
		{"conflicts echoed", with(custom), with(custom), "", customFull},
		{"conflicts echoed without what is empty", with(""), with(`"conflictResolutionPolicy":{"conflictResolutionPath":"/_ts","mode":"LastWriterWins"}`), "", ""},
		{"unique keys in another order", with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}],"x":1}`), with(`"uniqueKeyPolicy":{"x":1,"uniqueKeys":[{"paths":["/a"]}]}`), "", ""},
		{"conflicts changed", with(""), with(custom), conflictText, ""},

		{"encryption left out", with(encryption), with(""), "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.", ""},
		{"encryption null", with(encryption), with(`"clientEncryptionPolicy":null`), "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.", ""},
		{"encryption as it was", with(encryption), with(encryption), "", encryption},
		{"encryption added", with(""), with(encryption), "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.", ""},
		{"encryption null where there was none", with(""), with(`"clientEncryptionPolicy":null`), "", ""},
		{"encryption left out where it was null", with(`"clientEncryptionPolicy":null`), with(""), "", ""},
		{"vectors replaced by others", with(vectors), with(`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/w"}]}`), "", `"path":"/w"`},
		{"vectors changed", with(vectors), with(`"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dimensions":4}]}`), "Paths in existing embedding policy cannot be modified in Collection Replace", ""},
		{"vectors null where there were none", with(""), with(`"vectorEmbeddingPolicy":null`), "", ""},
	} {
		old, fresh := parse(t, c.old), parse(t, c.fresh)
		err := fresh.replaces(old)
		switch {
		case c.refused != "":
			if !refusedWith(err, c.refused) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.refused)
			}
		case err != nil || !strings.Contains(render(fresh), c.kept):
			t.Errorf("%s: got %s, %v, want it to contain %s", c.name, render(fresh), err, c.kept)
		default:
			checkIdempotent(t, fresh)
		}
	}
}

// A changeable property that is left out gets its default: that is how TTL is switched
// off.
func TestReplaceSwitchesOff(t *testing.T) {
	old := parse(t, with(`"defaultTtl":5,"ttlPropertyPath":"/t","geospatialConfig":{"type":"Geometry"},"indexingPolicy":{"excludedPaths":[{"path":"/*"}]},"x":1`))
	fresh := parse(t, with(""))
	if err := fresh.replaces(old); err != nil {
		t.Fatal(err)
	}
	if got, want := render(fresh), render(parse(t, with(""))); got != want || fresh.DefaultTTL != TTLAbsent {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Unique keys that a replace leaves out still apply.
func TestReplaceKeepsUniqueKeys(t *testing.T) {
	old := parse(t, with(`"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}`))
	fresh := parse(t, with(""))
	if err := fresh.replaces(old); err != nil {
		t.Fatal(err)
	}
	if len(fresh.UniqueKeys) != 1 || len(fresh.UniqueKeys[0]) != 1 || fresh.UniqueKeys[0][0].String() != "/a" {
		t.Errorf("got %v, want /a", fresh.UniqueKeys)
	}
}
