// SPDX-License-Identifier: MIT

package rest

import (
	"strings"
	"testing"
	"time"
)

// An expired item counts nowhere: not in its container's statistics from its deadline on,
// and not in the usage of another item's answer within a second, which is how often that
// is counted.
func TestUsageOfTheLiving(t *testing.T) {
	h := newCarts(t)
	f := func(when, statistics, usage string) {
		t.Helper()
		a := call(t, h, "GET", "/dbs/d/colls/c", "", map[string]string{"x-ms-documentdb-populatepartitionstatistics": "true"}, 200)
		if want := `"documentCount":` + statistics + `,`; !strings.Contains(string(a.body), want) {
			t.Errorf("%s: the container is %s, want %s in it", when, a.body, want)
		}
		a = call(t, h, "GET", "/dbs/d/colls/c/docs/never", "", pk("ada"), 200)
		if got := a.header.Get("x-ms-resource-usage"); !strings.Contains(got, ";documentsCount="+usage+";") {
			t.Errorf("%s: the usage is %s, want %s items", when, got, usage)
		}
	}
	advance(t, h, 9999*time.Millisecond)
	f("before the deadline", "3", "3")
	advance(t, h, time.Millisecond)
	f("at the deadline", "2", "3")
	advance(t, h, time.Second)
	f("a second later", "2", "2")
	admin(t, h, "POST", "ttl/purge"+inContainer, 200)
	f("purged", "2", "2")
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"new","customer":"ada","pk":"ada"}`, pk("ada"), 201)
	f("and another written", "3", "3")
}
