// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"testing"
	"time"
)

// TestExpiredForEverybody: scenarios 37 and 48 hold for every key and token that may
// read. An item is there until a millisecond before its deadline, and gone from then on.
func TestExpiredForEverybody(t *testing.T) {
	w := newAccessWorld(t)
	if err := w.h.engine.Clock().Freeze(); err != nil {
		t.Fatal(err)
	}
	admin(t, w.h, "POST", "ttl/pause", 200)
	call(t, w.h, "PUT", "/dbs/d/colls/c", `{"id":"c","defaultTtl":10,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, nil, 200)
	call(t, w.h, "PUT", "/dbs/d/colls/c/docs/i", `{"id":"i","pk":"p"}`, pk("p"), 200)

	const items, item = "/dbs/d/colls/c/docs", "/dbs/d/colls/c/docs/i"
	credentials := []string{"key", "key2", "ro", "aad", "aad-ro", "read", "all", "key-read", "key-all", "item-read", "item-all"}
	seen := func(credential string) (reads, lists, queries bool) {
		lists = bytes.Contains(w.try(t, "GET", items, credential).body, []byte(`"id":"i"`))
		queries = bytes.Contains(w.try(t, "QUERY", items, credential).body, []byte(`"id":"i"`))
		return w.try(t, "GET", item, credential).status == 200, lists, queries
	}
	advance(t, w.h, 9999*time.Millisecond)
	for _, credential := range credentials {
		wide := credential != "item-read" && credential != "item-all"
		if reads, lists, queries := seen(credential); !reads || lists != wide || queries != wide {
			t.Errorf("%s, before its deadline: the item is read %t, listed %t, queried %t", credential, reads, lists, queries)
		}
	}
	advance(t, w.h, time.Millisecond)
	for _, credential := range credentials {
		if reads, lists, queries := seen(credential); reads || lists || queries {
			t.Errorf("%s, at its deadline: the item is read %t, listed %t, queried %t", credential, reads, lists, queries)
		}
		w.try(t, "GET", item, credential).failureText(t, 404, 0)
	}

	// A credential that may not write gets 403 for an expired item as for any other. One
	// that may write gets 404.
	for credential, status := range map[string]int{"ro": 403, "aad-ro": 403, "read": 403, "key-read": 403, "item-read": 403, "key": 404, "all": 404, "key-all": 404, "item-all": 404} {
		for _, method := range []string{"PUT", "DELETE"} {
			if a := w.try(t, method, item, credential); a.status != status {
				t.Errorf("%s by %s: got %d %s, want %d", method, credential, a.status, a.body, status)
			}
		}
	}
	if a := w.try(t, "POST", items, "all"); a.status != 201 {
		t.Errorf("a create in its place: got %d %s", a.status, a.body)
	}
}
