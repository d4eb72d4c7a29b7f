// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/peer"
)

// peerWorld has nodes that serve one database, on real ports. Which of them owns all
// partitions is up to the test.
type peerWorld struct {
	t      *testing.T
	engine *engine.Engine
	nodes  map[string]*peerNode

	mu     sync.Mutex
	owners map[string]string // what each node takes for the owner
	lives  map[string]uint64
}

type peerNode struct {
	world         *peerWorld
	name, address string
	handler       *Handler
	peers         *Peers
	executed      atomic.Int64 // requests that it has answered as the owner
	asked         func(ctx context.Context, question []byte) ([]byte, error)
}

func newPeerWorld(t *testing.T, names ...string) *peerWorld {
	t.Helper()
	db, err := pebblekv.OpenMemory(pebblekv.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{DB: db, TestClock: true, ScriptTime: time.Minute, Explain: api.Explain})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	w := &peerWorld{t: t, engine: e, nodes: map[string]*peerNode{}, owners: map[string]string{}, lives: map[string]uint64{}}
	for _, name := range names {
		w.nodes[name] = w.start(name)
	}
	return w
}

// start starts a node. It owns everything until the test says otherwise.
func (w *peerWorld) start(name string) *peerNode {
	w.t.Helper()
	key, err := api.ParseKey(testKey)
	if err != nil {
		w.t.Fatal(err)
	}
	n := &peerNode{world: w, name: name}
	if n.peers, err = NewPeers(name, [][]byte{key}, nil); err != nil {
		w.t.Fatal(err)
	}
	n.peers.Watch(func(node string) uint64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.lives[node]
	})
	n.handler, err = New(Options{
		Engine: w.engine, Keys: []string{testKey}, Account: api.Account{Regions: []string{"Here"}, Consistency: "Session"},
		Memory: testMemory(w.t), PublicKey: true, Peers: n.peers, Cluster: n, Asked: n.Asked,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	n.handler.handle = func(c *api.Call) error {
		w.mu.Lock()
		owner, known := w.owners[name]
		w.mu.Unlock()
		if known && owner != name {
			return &cluster.NotOwnerError{Node: owner, Address: w.addressOf(owner)}
		}
		n.executed.Add(1)
		return c.Handle()
	}
	pair, err := tls.X509KeyPair(testCertificate(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	s, l := NewServer(n.handler, pair, func(c *Channel) { _ = c.Close() }, slog.New(slog.DiscardHandler)), listenLoopback(w.t)
	s.AcceptPeers(n.peers)
	n.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	w.t.Cleanup(func() {
		n.peers.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			w.t.Errorf("Serve = %v", err)
		}
	})
	w.lives[name] = 1
	return n
}

func (w *peerWorld) addressOf(name string) string {
	if n := w.nodes[name]; n != nil {
		return n.address
	}
	return name // a test's own server
}

// own says which node is the owner, as all nodes see it.
func (w *peerWorld) own(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.nodes {
		w.owners[name] = owner
	}
}

// believe says which node one of them takes for the owner.
func (w *peerWorld) believe(name, owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[name] = owner
}

// Owner implements Cluster: even partitions are a's, odd ones b's.
func (n *peerNode) Owner(_ context.Context, _ *catalog.Container, index int) (node, address string, err error) {
	if node = []string{"a", "b"}[index%2]; node == n.name {
		return node, "", nil
	}
	return node, "http://" + n.world.addressOf(node), nil
}

// Asked answers another node.
func (n *peerNode) Asked(ctx context.Context, question []byte) ([]byte, error) {
	return n.asked(ctx, question)
}

// send sends a signed request to a node, over one of its protocols.
func (n *peerNode) send(t testing.TB, client *http.Client, scheme, method, path, body string, headers map[string]string) answer {
	t.Helper()
	r := signedRequest(t, method, path, []byte(body), headers)
	r.URL.Scheme, r.URL.Host, r.Host = scheme, n.address, "localhost"
	if headers["chunked"] != "" {
		r.Header.Del("chunked")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
	}
	got, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{got.StatusCode, got.Header, text}
}

// call is send over plain HTTP with a check of the status.
func (n *peerNode) call(t testing.TB, method, path, body string, headers map[string]string, want int) answer {
	t.Helper()
	a := n.send(t, newPeerClient(t, false), "http", method, path, body, headers)
	if a.status != want {
		t.Fatalf("%s %s at %s: status %d, want %d: %s", method, path, n.name, a.status, want, a.body)
	}
	return a
}

// newPeerClient returns a client of HTTP/1.1, or of HTTP/2.
func newPeerClient(t testing.TB, two bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetHTTP1(!two)
	tr.Protocols.SetHTTP2(two)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

func (w *peerWorld) container() {
	w.t.Helper()
	w.nodes["a"].call(w.t, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	w.nodes["a"].call(w.t, "POST", "/dbs/d/colls", containerBody, nil, 201)
}

// unlike are the headers in which two answers to the same request differ.
var unlike = []string{"Date", "X-Ms-Activity-Id", "X-Ms-Request-Duration-Ms", "X-Ms-Session-Token", "Lsn", "X-Ms-Item-Lsn", "Etag"}

// TestRequestsAreAnsweredAlikeAtEveryNode: through a node that owns nothing, over each
// protocol, requests have the answers that they have at the owner.
func TestRequestsAreAnsweredAlikeAtEveryNode(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	w.own("b")
	query := map[string]string{"X-Ms-Documentdb-Isquery": "true", headerContentType: "application/query+json", headerCrossPartition: "true"}
	large := strings.Repeat("ä", 900_000)
	steps := []struct {
		method, path, body string
		headers            map[string]string
		want               int
	}{
		{"POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p","n":1}`, pk("p"), 201},
		{"POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 409},
		{"GET", "/dbs/d/colls/c/docs/i", ``, pk("p"), 200},
		{"HEAD", "/dbs/d/colls/c/docs/i", ``, pk("p"), 405},
		{"PUT", "/dbs/d/colls/c/docs/i", `{"id":"i","pk":"p","n":2}`, pk("p"), 200},
		{"PATCH", "/dbs/d/colls/c/docs/i", `{"operations":[{"op":"incr","path":"/n","value":1}]}`, pk("p"), 200},
		{"POST", "/dbs/d/colls/c/docs", `{"id":"chunked","pk":"p","text":"` + large + `"}`, map[string]string{headerPartitionKey: `["p"]`, "chunked": "1"}, 201},
		{"POST", "/dbs/d/colls/c/docs", `{"id":"%C3%A4 + x","pk":"p","text":"` + large + `"}`, pk("p"), 201},
		{"GET", "/dbs/d/colls/c/docs/%25C3%25A4%20+%20x", ``, pk("p"), 200},
		{"POST", "/dbs/d/colls/c/docs", `{"query":"SELECT c.id, c.n, c.text FROM c"}`, query, 200},
		{"POST", "/dbs/d/colls/c/docs", `{"query":"SELECT * FORM c"}`, query, 400},
		{"GET", "/dbs/d/colls/c/docs", ``, map[string]string{"A-Im": "Incremental feed"}, 200},
		{"GET", "/dbs/d/colls/c/docs", ``, map[string]string{"A-Im": "Incremental feed", "If-None-Match": `"9999"`}, 304},
		{"POST", "/dbs/d/colls/c/docs", `[{"operationType":"Create","resourceBody":{"id":"j","pk":"p"}}]`,
			map[string]string{headerPartitionKey: `["p"]`, "X-Ms-Cosmos-Is-Batch-Request": "true", "X-Ms-Cosmos-Batch-Atomic": "true"}, 200},
		{"GET", "/dbs/d/colls/c/docs/none", ``, pk("p"), 404},
		{"DELETE", "/dbs/d/colls/c/docs/i", ``, pk("p"), 204},
		{"DELETE", "/dbs/d/colls/c/docs/j", ``, pk("p"), 204},
		{"DELETE", "/dbs/d/colls/c/docs/chunked", ``, pk("p"), 204},
		{"DELETE", "/dbs/d/colls/c/docs/%25C3%25A4%20+%20x", ``, pk("p"), 204},
		{"GET", "/dbs/d/colls/c/pkranges", ``, nil, 200},
		{"GET", "/dbs", ``, nil, 200},
		{"GET", "/", ``, nil, 200},
	}
	run := func(at *peerNode, client *http.Client, scheme string) (all []answer) {
		for _, s := range steps {
			a := at.send(t, client, scheme, s.method, s.path, s.body, s.headers)
			if a.status != s.want {
				t.Errorf("%s %s %s at %s: status %d, want %d: %.300s", scheme, s.method, s.path, at.name, a.status, s.want, a.body)
			}
			all = append(all, a)
		}
		return all
	}
	for _, p := range []struct {
		name, scheme string
		two          bool
	}{{"HTTP/1.1", "http", false}, {"HTTP/1.1 with TLS", "https", false}, {"HTTP/2", "https", true}} {
		want := run(w.nodes["b"], newPeerClient(t, p.two), p.scheme)
		before := w.nodes["b"].executed.Load()
		got := run(w.nodes["a"], newPeerClient(t, p.two), p.scheme)
		if passed := w.nodes["b"].executed.Load() - before; passed < int64(len(steps)-2) || w.nodes["a"].executed.Load() > 2 {
			t.Errorf("%s: the owner has answered %d of %d requests, the other node %d", p.name, passed, len(steps), w.nodes["a"].executed.Load())
		}
		for i, s := range steps {
			if s.headers["A-Im"] != "" {
				continue // it has LSNs in it, which have grown
			}
			compareAnswers(t, fmt.Sprintf("%s: %s %s", p.name, s.method, s.path), got[i], want[i])
		}
	}
}

func compareAnswers(t *testing.T, what string, got, want answer) {
	t.Helper()
	names := func(h http.Header) (all []string) {
		for name := range h {
			all = append(all, name)
		}
		slices.Sort(all)
		return all
	}
	if g, w := names(got.header), names(want.header); !slices.Equal(g, w) {
		t.Errorf("%s: the headers are %v, at the owner %v", what, g, w)
	}
	for name, values := range want.header {
		if !slices.Contains(unlike, name) && !slices.Equal(values, got.header[name]) && name != headerCharge {
			t.Errorf("%s: the header %s is %v, at the owner %v", what, name, got.header[name], values)
		}
	}
	if len(got.body) != len(want.body) && want.status < 400 {
		t.Errorf("%s: the body has %d bytes, at the owner %d", what, len(got.body), len(want.body))
	}
}

func TestAnswersKeepTheSpellingOfHeaders(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	w.own("b")
	w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	conn, err := net.Dial("tcp", w.nodes["a"].address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, rawRequest(t, "GET", "/dbs/d/colls/c/docs/i", pk("p"))+"\r\n")
	head := make([]byte, 2048)
	n, err := conn.Read(head)
	if err != nil || !bytes.Contains(head[:n], []byte("\r\nx-ms-session-token: ")) || !bytes.HasPrefix(head, []byte("HTTP/1.1 200 OK\r\n")) {
		t.Errorf("%v: %s", err, head[:n])
	}
}

// TestWaitsForAnOwner: the first owner knows of no partition, and then another node has it.
func TestWaitsForAnOwner(t *testing.T) {
	w := newPeerWorld(t, "a", "b", "c")
	w.container()
	w.own("b")
	w.believe("b", "c") // and c has not claimed it yet
	w.believe("c", "b")
	done := make(chan answer)
	go func() {
		done <- w.nodes["a"].send(t, newPeerClient(t, false), "http", "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"))
	}()
	time.Sleep(3 * minOwnerPause)
	w.own("c")
	if a := <-done; a.status != 201 {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if n := w.nodes["c"].executed.Load(); n != 1 {
		t.Errorf("the owner has executed it %d times", n)
	}
	// This node itself may become the owner.
	w.own("b")
	w.believe("b", "a")
	go func() {
		done <- w.nodes["a"].send(t, newPeerClient(t, false), "http", "GET", "/dbs/d/colls/c/docs/i", "", pk("p"))
	}()
	time.Sleep(3 * minOwnerPause)
	w.own("a")
	if a := <-done; a.status != 200 {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

// TestLoopsEnd: each node takes another for the owner. A request is passed on once at a time,
// and refused in the end.
func TestLoopsEnd(t *testing.T) {
	w := newPeerWorld(t, "a", "b", "c")
	w.container()
	w.believe("a", "b")
	w.believe("b", "c")
	w.believe("c", "a")
	w.nodes["a"].peers.wait = 100 * time.Millisecond
	began := time.Now()
	a := w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 503)
	if text := a.failureText(t, 503, 21008); !strings.Contains(text, "Nothing was changed") {
		t.Error(text)
	}
	if took := time.Since(began); took < 100*time.Millisecond || took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := w.nodes["c"].handler.peers; len(n.mu.pools) != 0 {
		t.Error("a request that was passed on was passed on again")
	}
}

// fakeNode is a node whose answers the test writes itself.
func fakeNode(t *testing.T, name string, serve func(conn net.Conn, r *http.Request)) (address string) {
	t.Helper()
	key, _ := api.ParseKey(testKey)
	trust, err := peer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	l := listenLoopback(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer raw.Close()
				conn := tls.Server(raw, trust.Server())
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					serve(conn, r)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestWritesAreSentOnce: an owner that breaks off, or says nonsense, may have executed the
// request. A read is sent again, a write is not.
func TestWritesAreSentOnce(t *testing.T) {
	for name, reply := range map[string]string{
		"nothing":               "",
		"half a head":           "HTTP/1.1 200 OK\r\nContent-",
		"half a body":           "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
		"no length":             "HTTP/1.1 200 OK\r\n\r\n{}",
		"chunks":                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"another status":        "HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n",
		"a length too large":    "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n{}",
		"a head without an end": "HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", 2*maxHeaderBytes) + "\r\n\r\n",
	} {
		w := newPeerWorld(t, "a", "b")
		w.container()
		var sent atomic.Int64
		broken := fakeNode(t, "broken", func(conn net.Conn, r *http.Request) {
			sent.Add(1)
			w.own("b") // the next node has it, before the client is answered
			_, _ = io.WriteString(conn, reply)
			_ = conn.Close()
		})
		w.own(broken)
		a := w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 408)
		if text := a.failureText(t, 408, 0); !strings.Contains(text, "is not known") || sent.Load() != 1 || w.nodes["b"].executed.Load() != 0 {
			t.Errorf("%s: a write was sent %d times, and executed %d times: %s", name, sent.Load(), w.nodes["b"].executed.Load(), text)
		}
		w.own(broken)
		w.nodes["a"].call(t, "GET", "/dbs/d/colls/c/docs", ``, nil, 200)
		if sent.Load() != 2 || w.nodes["b"].executed.Load() != 1 {
			t.Errorf("%s: a read was sent %d times, and executed %d times", name, sent.Load()-1, w.nodes["b"].executed.Load())
		}
	}
}

// TestUnsentWritesWait: a write that could not be sent goes to the next owner.
func TestUnsentWritesWait(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	gone := listenLoopback(t)
	address := gone.Addr().String()
	_ = gone.Close()
	w.own(address)
	time.AfterFunc(50*time.Millisecond, func() { w.own("b") })
	w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	// A node with another secret is not sent anything.
	stranger := newPeerStranger(t)
	w.own(stranger)
	time.AfterFunc(50*time.Millisecond, func() { w.own("b") })
	w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"j","pk":"p"}`, pk("p"), 201)
	if n := w.nodes["b"].executed.Load(); n != 2 {
		t.Errorf("the owner has executed %d requests", n)
	}
}

// newPeerStranger returns the address of a server that has another secret.
func newPeerStranger(t *testing.T) string {
	t.Helper()
	trust, err := peer.New([]byte("another secret"))
	if err != nil {
		t.Fatal(err)
	}
	l := listenLoopback(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer raw.Close()
				conn := tls.Server(raw, trust.Server())
				if n, _ := conn.Read(make([]byte, 1)); n > 0 {
					t.Error("a node has sent something to a server without the secret")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestOwnersThatStandStillAreGivenUp: an owner reads the request and does not answer. When
// the cluster has declared it dead, a read goes to the next owner, and a write has an
// unknown outcome.
func TestOwnersThatStandStillAreGivenUp(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	still := make(chan struct{})
	defer close(still)
	arrived := make(chan struct{}, 2)
	frozen := fakeNode(t, "frozen", func(net.Conn, *http.Request) { arrived <- struct{}{}; <-still })
	for _, c := range []struct {
		method, body string
		want         int
	}{{"GET", "", 200}, {"POST", `{"id":"i","pk":"p"}`, 408}} {
		w.mu.Lock()
		w.lives[frozen] = 7
		w.mu.Unlock()
		w.own(frozen)
		done := make(chan answer)
		go func() {
			done <- w.nodes["a"].send(t, newPeerClient(t, false), "http", c.method, "/dbs/d/colls/c/docs", c.body, pk("p"))
		}()
		<-arrived
		w.own("b")
		w.mu.Lock()
		w.lives[frozen] = 8 // it has restarted
		w.mu.Unlock()
		if a := <-done; a.status != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.method, a.status, c.want, a.body)
		}
	}
}

// TestClientsThatLeaveEndTheirRequest: the slot of a request whose client has gone is free
// again.
func TestClientsThatLeaveEndTheirRequest(t *testing.T) {
	w := newPeerWorld(t, "a")
	w.container()
	still := make(chan struct{})
	defer close(still)
	arrived := make(chan struct{}, 1)
	w.own(fakeNode(t, "slow", func(net.Conn, *http.Request) { arrived <- struct{}{}; <-still }))
	conn, err := net.Dial("tcp", w.nodes["a"].address)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, rawRequest(t, "GET", "/dbs/d/colls/c/docs/i", pk("p"))+"\r\n")
	<-arrived
	_ = conn.Close()
	for end := time.Now().Add(10 * time.Second); len(w.nodes["a"].peers.flights) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the request is still under way")
		}
	}
}

// TestConnectionsAreKept: requests one after another use one connection. An idle one that
// the other end has closed is not used: a write on it would have an unknown outcome.
func TestConnectionsAreKept(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	w.own("b")
	pool := func() *peerPool { return w.nodes["a"].peers.mu.pools[w.nodes["b"].address] }
	for i := range 5 {
		w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"%d","pk":"p"}`, i), pk("p"), 201)
		if n := len(pool().idle); n != 1 {
			t.Fatalf("%d connections are idle after request %d", n, i)
		}
	}
	first := pool().idle[0]
	if first.file == nil {
		t.Skip("this system does not tell that a connection was closed")
	}
	_ = first.raw.(*net.TCPConn).CloseRead()
	w.nodes["a"].call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"x","pk":"p"}`, pk("p"), 201)
	if now := pool().idle; len(now) != 1 || now[0] == first {
		t.Error("a connection that was closed is kept")
	}
}
