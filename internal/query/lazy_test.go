// SPDX-License-Identifier: MIT

package query

import (
	"slices"
	"testing"
	"time"
)

// In a container that is indexed lazily a query by an index sees what is indexed, as it
// is and only while it lives; one that reads all items sees all of them.
func TestLazyQueries(t *testing.T) {
	f := newFixture(t, `"defaultTtl":-1,"indexingPolicy":{"indexingMode":"lazy","compositeIndexes":[[{"path":"/same"},{"path":"/x"}]]}`)
	f.put("k", "a", `"same":1,"x":1`)
	f.put("k", "b", `"same":1,"x":2,"ttl":1`)
	f.put("k", "c", `"same":1,"x":3`)
	f.reindex(1)
	f.put("k", "c", `"same":1,"x":0`)
	f.put("k", "d", `"same":1,"x":4`)
	byIndex := []string{
		"SELECT VALUE c.id FROM c WHERE c.same = 1", "SELECT VALUE c.id FROM c WHERE c.x > 0 ORDER BY c.x", "SELECT VALUE c.id FROM c ORDER BY c.same, c.x",
	}
	see := func(when string, want ...string) {
		t.Helper()
		for _, text := range byIndex {
			if got := f.query(text); !slices.Equal(got, want) {
				t.Errorf("%s: %s: got %v, want %v", when, text, got, want)
			}
		}
	}
	see("before the index has followed", `"a"`, `"b"`)
	f.expect("SELECT VALUE c.id FROM c", `"a"`, `"b"`, `"c"`, `"d"`)
	f.expect("SELECT VALUE COUNT(1) FROM c", "4")
	f.expect("SELECT VALUE COUNT(1) FROM c WHERE c.same = 1", "2")
	f.advance(time.Second)
	see("when an item has expired", `"a"`)
	f.expect("SELECT VALUE COUNT(1) FROM c WHERE c.same = 1", "1")
	f.reopen()
	f.reindex(1)
	f.expect("SELECT VALUE c.id FROM c WHERE c.same = 1", `"a"`, `"c"`, `"d"`)
	f.expect("SELECT VALUE c.id FROM c ORDER BY c.same, c.x", `"c"`, `"a"`, `"d"`)
}
