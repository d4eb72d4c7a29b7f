// SPDX-License-Identifier: MIT

package rest

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// Clients make requests of every kind for items while their container is dropped and
// created again. Each is answered as by a server with no container or with a new one, and
// never as if the server were stopping. Between two drops every client gets an answer, so
// no request meets more drops than it has attempts.
func TestRequestsWhileTheirContainerIsDropped(t *testing.T) {
	const rounds, clients = 30, 6
	h := newContainer(t)
	const procedure = `{"id":"p","body":"function (key) { var c = getContext().getCollection();` +
		` c.upsertDocument(c.getSelfLink(), {id:'s',pk:key}, function (e) { if (e) throw e; }); }"}`
	call(t, h, "POST", "/dbs/d/colls/c/sprocs", procedure, nil, 201)
	type kind struct {
		name, method, path, body string
		headers                  map[string]string
	}
	kindsOf := func(client int) []kind {
		key := fmt.Sprint("s", client) // scripts with one key would conflict
		return []kind{
			{"upsert", "POST", testDocs, `{"id":"i","pk":"a"}`, map[string]string{headerPartitionKey: `["a"]`, "X-Ms-Documentdb-Is-Upsert": "true"}},
			{"read", "GET", testDocs + "/i", "", pk("a")},
			{"batch", "POST", testDocs, `[{"operationType":"Upsert","resourceBody":{"id":"b","pk":"a"}},{"operationType":"Read","id":"b"}]`, batchHeaders()},
			{"bulk", "POST", testDocs, `[{"operationType":"Upsert","resourceBody":{"id":"b","pk":"a"}}]`, batchHeaders("x-ms-cosmos-batch-atomic", "False")},
			{"list", "GET", testDocs, "", nil},
			{"query", "POST", testDocs, `{"query":"SELECT * FROM c"}`, asQuery(pk("a"))},
			{"changes", "GET", testDocs, "", map[string]string{"A-IM": "Incremental feed"}},
			{"procedure", "POST", "/dbs/d/colls/c/sprocs/p", `["` + key + `"]`, pk(key)},
			{"usage", "GET", "/dbs/d/colls/c", "", map[string]string{"X-Ms-Documentdb-Populatequotainfo": "true"}},
		}
	}
	done := make([]atomic.Int64, len(kindsOf(0)))
	var answered [clients]atomic.Int64
	var stop atomic.Bool
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			kinds := kindsOf(client)
			for i := client; !stop.Load(); i++ {
				k := kinds[i%len(kinds)]
				a := serve(h, signedRequest(t, k.method, k.path, []byte(k.body), k.headers))
				switch {
				case a.status < 300 || a.status == http.StatusNotModified:
					done[i%len(kinds)].Add(1)
				case a.status != http.StatusNotFound:
					t.Errorf("%s: status %d: %.300s", k.name, a.status, a.body)
				}
				answered[client].Add(1)
			}
		})
	}
	for range rounds {
		for client := range clients {
			for before := answered[client].Load(); answered[client].Load() == before; {
				call(t, h, "GET", "/dbs/d", "", nil, 200)
			}
		}
		call(t, h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
		call(t, h, "POST", "/dbs/d/colls", containerBody, nil, 201)
		call(t, h, "POST", "/dbs/d/colls/c/sprocs", procedure, nil, 201)
	}
	stop.Store(true)
	running.Wait()
	for i, k := range kindsOf(0) {
		if done[i].Load() == 0 {
			t.Errorf("%s: no request was done", k.name)
		}
	}
}
