// SPDX-License-Identifier: MIT

package mayfly

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// An earlier version indexed containers lazily, and their indexes lagged when it was
// killed. testdata/lazy has two such containers of 200 items each; the items written last
// have no index rows. Now they open like other containers: no query misses an item, and
// all items get their index rows.
func TestLazyContainersAreReindexed(t *testing.T) {
	const atMs = 1794844800_000 // after the last write
	began := time.Now()
	o := Options{Dir: t.TempDir(), clockSource: func() clock.Reading {
		passed := time.Since(began).Milliseconds()
		return clock.Reading{WallMs: atMs + passed, MonoMs: passed}
	}}
	unpack(t, "testdata/lazy/db.tar.gz", o.Dir)
	for range 2 {
		s := serveTest(t, o)
		for _, c := range []string{"lagging", "paths"} {
			if got := string(s.must(t, 200, "GET", "/dbs/shop/colls/"+c, "", nil).body); !strings.Contains(got, `"indexingMode":"consistent","automatic":true`) {
				t.Errorf("container %s is %s", c, got)
			}
			s.seeAll(t, c)
			s.awaitIndex(t, c)
			s.seeAll(t, c)
		}
		s.stop(t)
		checkClean(t, o.Dir)
	}
}

// seeAll queries the items by an index.
func (s *testServer) seeAll(t *testing.T, container string) {
	t.Helper()
	for key, want := range map[string]int{"a": 190, "b": 10} {
		x := s.ask(t, query(container, fmt.Sprintf(`[%q]`, key), "SELECT VALUE c.n FROM c WHERE c.n >= 0"))
		var page struct{ Documents []int }
		if err := json.Unmarshal([]byte(x.Answer), &page); err != nil || len(page.Documents) != want {
			t.Errorf("items of %s with the key %s: got %d, want %d: %v, %s", container, key, len(page.Documents), want, err, x.Answer)
		}
	}
}

// awaitIndex waits until all items have their index rows.
func (s *testServer) awaitIndex(t *testing.T, container string) {
	t.Helper()
	for end := time.Now().Add(waitLimit); ; time.Sleep(10 * time.Millisecond) {
		a := s.must(t, 200, "GET", "/dbs/shop/colls/"+container, "", map[string]string{"x-ms-documentdb-populatequotainfo": "true"})
		percent := a.header.Get("x-ms-documentdb-collection-index-transformation-progress")
		if percent == "100" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the index of %s is at %s percent", container, percent)
		}
	}
}
