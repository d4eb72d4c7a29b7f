// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// serveNode starts a node on a storage engine that others share.
func serveNode(t *testing.T, db *kvtest.Model, name string) *testServer {
	return serveNodeIn(t, db, name, "")
}

// serveNodeIn starts a node in a region, whose endpoint it is.
func serveNodeIn(t *testing.T, db *kvtest.Model, name, region string, options ...func(*Options)) *testServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Cluster: &Cluster{DB: db.Another(), Node: name, Peer: "http://" + l.Addr().String()}, MemoryBytes: 256 << 20}
	if region != "" {
		o.Regions = []string{region + "=http://" + l.Addr().String() + "/"}
	}
	for _, set := range options {
		set(&o)
	}
	s, err := Open(o)
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

// TestFailoverOfTheWriteRegion: clients are told the regions of the nodes. The endpoint of one
// takes writes, and that of another refuses them with 403/3, until the regions change places:
// from then on all nodes say so, without a restart.
func TestFailoverOfTheWriteRegion(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	db := kvtest.NewModel()
	west, east := serveNodeIn(t, db, "a", "West US"), serveNodeIn(t, db, "b", "East US")
	west.makeContainer(t)
	admin := func(want int, method, body string) string {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+east.addr+"/_mayfly/cluster", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+east.Key())
		a, err := east.do(r)
		if err != nil || a.status != want {
			t.Fatalf("%s: status %d, want %d, %v: %s", body, a.status, want, err, a.body)
		}
		return string(a.body)
	}
	count := 0
	holds := func(first, second *testServer, firstName, secondName string) {
		t.Helper()
		for _, s := range []*testServer{first, second} {
			account := string(s.must(t, 200, "GET", "/", "", nil).body)
			entry := func(s *testServer, name string) string {
				return fmt.Sprintf(`{"name":"%s","databaseAccountEndpoint":"http://%s/"}`, name, s.addr)
			}
			want := fmt.Sprintf(`"writableLocations":[%s],"readableLocations":[%[1]s,%s],"enableMultipleWriteLocations":false`, entry(first, firstName), entry(second, secondName))
			if !strings.Contains(account, want) {
				t.Errorf("the account is\n%s, want\n%s", account, want)
			}
		}
		id := fmt.Sprint(count)
		count++
		first.must(t, 201, "POST", items, fmt.Sprintf(`{"id":%q,"pk":"p"}`, id), pk("p"))
		for _, s := range []*testServer{first, second} { // every region reads what was just written
			s.must(t, 200, "GET", items+"/"+id, "", pk("p"))
		}
		refused := second.must(t, 403, "PUT", items+"/"+id, fmt.Sprintf(`{"id":%q,"pk":"p"}`, id), pk("p"))
		if got := refused.header.Get("x-ms-substatus"); got != "3" {
			t.Errorf("a write at the second region has the sub-status %q, want 3: %s", got, refused.body)
		}
		second.must(t, 403, "POST", "/dbs", `{"id":"other"}`, nil)
		// A balancer over all nodes is no region's endpoint.
		r := second.request(t, "PUT", items+"/"+id, strings.NewReader(fmt.Sprintf(`{"id":%q,"pk":"p","n":1}`, id)), pk("p"))
		r.Host = "localhost:1"
		if a, err := second.do(r); err != nil || a.status != 200 {
			t.Errorf("a write by another name: status %d, %v: %s", a.status, err, a.body)
		}
	}
	holds(west, east, "West US", "East US")
	admin(200, "POST", `{"failover":"East US"}`)
	holds(east, west, "East US", "West US")
	admin(200, "POST", `{"failover":"East US"}`) // it is the first already
	holds(east, west, "East US", "West US")
	admin(400, "POST", `{"failover":"Mars"}`)
	admin(400, "POST", `{"failover":"West US","forget":"East US"}`)
	admin(400, "POST", `{"forget":"West US"}`)
	admin(400, "POST", `{}`)
	admin(200, "POST", `{"failover":"West US"}`)
	holds(west, east, "West US", "East US")
	if status := admin(200, "GET", ""); !strings.Contains(status, `"regions":[{"name":"West US"`) {
		t.Errorf("the status has no regions: %s", status)
	}
}

// TestSeveralWriteRegionsOfACluster: each region takes writes, and each item has one history.
func TestSeveralWriteRegionsOfACluster(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	db := kvtest.NewModel()
	multi := func(o *Options) { o.MultiWrite = true }
	west, east := serveNodeIn(t, db, "a", "West US", multi), serveNodeIn(t, db, "b", "East US", multi)
	west.makeContainer(t)
	west.must(t, 201, "POST", items, `{"id":"i","pk":"p","n":0}`, pk("p"))
	const writes = 20
	var clients sync.WaitGroup
	for _, s := range []*testServer{west, east} {
		if account := string(s.must(t, 200, "GET", "/", "", nil).body); strings.Count(account, `"name":"East US"`) != 2 || !strings.Contains(account, `"enableMultipleWriteLocations":true`) {
			t.Errorf("the account is %s", account)
		}
		clients.Go(func() {
			for range writes {
				if a := s.send(t, "PATCH", items+"/i", `{"operations":[{"op":"incr","path":"/n","value":1}]}`, pk("p")); a.status != 200 {
					t.Errorf("status %d: %s", a.status, a.body)
				}
			}
		})
	}
	clients.Wait()
	for _, s := range []*testServer{west, east} {
		if item := string(s.must(t, 200, "GET", items+"/i", "", pk("p")).body); !strings.Contains(item, fmt.Sprintf(`"n":%d`, 2*writes)) {
			t.Errorf("the item is %s, want n %d", item, 2*writes)
		}
	}
	_, err := Open(Options{Cluster: &Cluster{DB: db.Another(), Node: "c", Peer: "http://127.0.0.1:1"}, Regions: []string{"A=http://a/", "B=http://b/"}})
	if err == nil || !strings.Contains(err.Error(), "is in one region") {
		t.Errorf("a node in two regions: %v", err)
	}
}

// TestTakenName: a node whose name another process takes stops, and says that, not that the
// disk has failed.
func TestTakenName(t *testing.T) {
	db := kvtest.NewModel()
	first := serveNode(t, db, "a")
	serveNode(t, db, "a")
	select {
	case err := <-first.served:
		if err == nil || !strings.HasPrefix(err.Error(), "stopped: ") || !strings.Contains(err.Error(), "under the name of this node") {
			t.Errorf("the first node stopped with: %v", err)
		}
	case <-time.After(waitLimit):
		t.Fatal("the first node does not stop")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

// TestPeerIsChecked: a node does not start with an address at which no other can reach it.
func TestPeerIsChecked(t *testing.T) {
	s, err := Open(Options{Cluster: &Cluster{DB: kvtest.NewModel().Another(), Node: "a", Peer: "ftp://a:1"}})
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "--peer") {
		t.Errorf("%v, want a refusal that names --peer", err)
	}
}

// TestToolsFindNoData: tools for the data of a cluster do not take another database for it, and
// write nothing there.
func TestToolsFindNoData(t *testing.T) {
	db := kvtest.NewModel()
	tools := map[string]func() error{
		"check":    func() error { _, err := CheckCluster(db, nil); return err },
		"finalize": func() error { _, err := FinalizeCluster(t.Context(), db, slog.New(slog.DiscardHandler)); return err },
	}
	for name, tool := range tools {
		if err := tool(); err == nil || !strings.Contains(err.Error(), "there is no data in the storage engine") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, found, err := kv.Get(db, catalog.FormatKey); found || err != nil {
		t.Errorf("the tools have marked the database as theirs: %v", err)
	}
	serveNode(t, db, "a").stop(t)
	for name, tool := range tools {
		if err := tool(); err != nil {
			t.Errorf("%s, with data: %v", name, err)
		}
	}
}

// TestAnswersHaveTheirMoment: under a test clock an answer says between which times it was made,
// and without one it does not.
func TestAnswersHaveTheirMoment(t *testing.T) {
	s := serveTest(t, Options{Memory: true, TestClock: true})
	s.makeContainer(t)
	s.move(t, `{"freeze":true}`)
	first := s.Clock().Now().UnixMilli()
	made := s.must(t, 201, "POST", items, `{"id":"i","pk":"p"}`, pk("p"))
	s.move(t, `{"advance":"1h"}`)
	second := s.Clock().Now().UnixMilli()
	missing := s.must(t, 404, "GET", items+"/j", "", pk("p"))
	for a, ms := range map[*reply]int64{&made: first, &missing: second} {
		if got, want := a.header.Get("x-mayfly-moment"), fmt.Sprintf("%d-%d", ms, ms); got != want {
			t.Errorf("status %d at %q, want %s", a.status, got, want)
		}
	}
	s = serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	if got := s.must(t, 201, "POST", items, `{"id":"i","pk":"p"}`, pk("p")).header.Get("x-mayfly-moment"); got != "" {
		t.Errorf("without a test clock the answer has the moment %s", got)
	}
}
