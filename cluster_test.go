// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// serveNode starts a node on a storage engine that others share.
func serveNode(t *testing.T, db *kvtest.Model, name string) *testServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Cluster: &Cluster{DB: db.Another(), Node: name, Peer: "http://" + l.Addr().String()}, MemoryBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ts := &testServer{
		Server: s, addr: l.Addr().String(), served: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{}, Timeout: waitLimit},
	}
	go func() { ts.served <- s.Serve(l) }()
	t.Cleanup(func() {
		if ts.engine.Node().Ready() == nil { // it has not left
			ts.stop(t)
		}
	})
	return ts
}

// TestEveryNodeServesEveryItem: three nodes share the partitions. Clients write, read and query
// through each of them, whichever owns the item's partition, and go on when a node leaves.
func TestEveryNodeServesEveryItem(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	db := kvtest.NewModel()
	nodes := []*testServer{serveNode(t, db, "a"), serveNode(t, db, "b"), serveNode(t, db, "c")}
	nodes[0].must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	nodes[1].must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`,
		map[string]string{"x-ms-offer-throughput": "60000"})
	const count = 30
	read := func(wrote int) {
		t.Helper()
		for n, node := range nodes {
			for i := range wrote {
				id := fmt.Sprint(i)
				a := node.must(t, 200, "GET", items+"/"+id, "", pk(id))
				var got struct{ Wrote int }
				if err := json.Unmarshal(a.body, &got); err != nil {
					t.Fatalf("node %d: %v: %s", n, err, a.body)
				}
			}
		}
	}
	for i := range count {
		id := fmt.Sprint(i)
		nodes[i%len(nodes)].must(t, 201, "POST", items, fmt.Sprintf(`{"id":%q,"pk":%q,"wrote":%d}`, id, id, i%len(nodes)), pk(id))
	}
	read(count)
	owned := map[int]int{}
	for n, node := range nodes {
		owned[n] = len(node.engine.Node().Owned())
	}
	for n, node := range nodes {
		if owned[n] == 0 {
			t.Errorf("node %d owns nothing: %v", n, owned)
		}
		// Clients query partition by partition, and each at the node that they know.
		for i := range 10 {
			node.must(t, 200, "POST", items, `{"query":"SELECT * FROM c WHERE c.wrote = 1"}`, map[string]string{
				"x-ms-documentdb-isquery": "true", "content-type": "application/query+json",
				"x-ms-documentdb-query-enablecrosspartition": "true", "x-ms-documentdb-partitionkeyrangeid": fmt.Sprint(i),
			})
		}
	}
	// What concerns all partitions is asked of their owners: here how many items there are.
	for n, node := range nodes {
		r, err := http.NewRequest("GET", "http://"+node.addr+"/_mayfly/ttl/status?database=d&container=c", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+node.Key())
		a, err := node.do(r)
		if err != nil || a.status != 200 || !bytes.Contains(a.body, []byte(fmt.Sprintf(`"items":%d`, count))) {
			t.Errorf("node %d: status %d, %v: %s", n, a.status, err, a.body)
		}
	}
	nodes[2].stop(t)
	nodes = nodes[:2]
	read(count)
	for i := range count {
		id := fmt.Sprint(i)
		nodes[i%len(nodes)].must(t, 200, "PUT", items+"/"+id, fmt.Sprintf(`{"id":%q,"pk":%q,"wrote":9}`, id, id), pk(id))
	}
	read(count)
}
