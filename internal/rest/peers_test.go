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
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/peer"
)

func TestNodesAskEachOther(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	a, b := w.nodes["a"], w.nodes["b"]
	b.asked = func(_ context.Context, question []byte) ([]byte, error) {
		switch {
		case len(question) == 0:
			return nil, nil
		case string(question) == "fail":
			return nil, errors.New("it cannot be done")
		case string(question) == "long":
			return make([]byte, MaxAskBytes+1), nil
		}
		return append([]byte("a asks "), question...), nil
	}
	large := strings.Repeat("x", 1<<20)
	for _, question := range []string{"", "why?", large, "\x00\r\n\r\n"} {
		want := "a asks " + question
		if question == "" {
			want = ""
		}
		if got, err := a.peers.Ask(t.Context(), "b", "http://"+b.address, []byte(question)); err != nil || string(got) != want {
			t.Errorf("%.20q: %.40q, %v", question, got, err)
		}
	}
	if _, err := a.peers.Ask(t.Context(), "b", b.address, []byte("fail")); err == nil || !strings.Contains(err.Error(), "it cannot be done") {
		t.Errorf("a question that fails: %v", err)
	}
	for _, question := range [][]byte{[]byte("long"), make([]byte, MaxAskBytes+1)} {
		if _, err := a.peers.Ask(t.Context(), "b", b.address, question); err == nil {
			t.Errorf("a question of %d bytes was answered", len(question))
		}
	}
	if _, err := a.peers.Ask(t.Context(), "c", b.address, []byte("why?")); err == nil || !strings.Contains(err.Error(), "the request is for node") {
		t.Errorf("a question that was meant for another node: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.asked = func(ctx context.Context, _ []byte) ([]byte, error) {
		cancel()
		<-ctx.Done() // the asker has gone
		return nil, ctx.Err()
	}
	if _, err := a.peers.Ask(ctx, "b", b.address, []byte("slow")); !errors.Is(err, context.Canceled) {
		t.Errorf("a question that was given up: %v", err)
	}
}

// TestManyQuestionsAtOnce: no more connections than permitted are open, and all are answered.
func TestManyQuestionsAtOnce(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.nodes["b"].asked = func(_ context.Context, q []byte) ([]byte, error) { return q, nil }
	var all sync.WaitGroup
	for i := range maxPeerConns / 4 {
		all.Go(func() {
			for j := range 4 {
				q := fmt.Sprintf("%d %d", i, j)
				if got, err := w.nodes["a"].peers.Ask(t.Context(), "b", w.nodes["b"].address, []byte(q)); err != nil || string(got) != q {
					t.Errorf("%s: %q, %v", q, got, err)
				}
			}
		})
	}
	all.Wait()
	if n := len(w.nodes["a"].peers.mu.pools[w.nodes["b"].address].idle); n == 0 || n > maxIdlePeerConns {
		t.Errorf("%d connections are idle", n)
	}
	w.nodes["a"].peers.Close()
	if _, err := w.nodes["a"].peers.Ask(t.Context(), "b", w.nodes["b"].address, nil); !errors.Is(err, errPeersClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestClientsAreNoNodes: without the secret nothing that only nodes may do is done, whatever
// a client sends.
func TestClientsAreNoNodes(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	a := w.nodes["a"]
	a.asked = func(context.Context, []byte) ([]byte, error) {
		t.Error("a client was answered as if it were a node")
		return nil, nil
	}
	for _, scheme := range []string{"http", "https"} {
		for _, header := range []string{"", "1 YQ YQ 1 0 http " + strings.Repeat("A", 43)} {
			r, err := http.NewRequest("POST", scheme+"://"+a.address+peerPath, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+testKey)
			r.Header.Set(headerPeer, header)
			got, err := newPeerClient(t, false).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = got.Body.Close()
			if got.StatusCode != 404 {
				t.Errorf("%s: status %d", scheme, got.StatusCode)
			}
		}
	}
	// A client's note does not keep its request from being passed on.
	w.own("b")
	a.call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, map[string]string{headerPartitionKey: `["p"]`, headerPeer: "1 YQ YQ 1 0 http x"}, 201)
	// Without the certificate there is no connection under the nodes' name, and with
	// another secret neither.
	stranger, err := peer.New([]byte("guess"))
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []*tls.Config{{ServerName: peer.ServerName, InsecureSkipVerify: true}, stranger.Client()} {
		config.InsecureSkipVerify, config.VerifyConnection = true, nil
		conn, err := tls.Dial("tcp", a.address, config)
		if err == nil {
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if err == nil {
			t.Error("a connection without the secret was answered")
		}
	}
}

// dialPeer opens a connection to a node as another one would.
func dialPeer(t *testing.T, n *peerNode) (*tls.Conn, *peer.Link, *bufio.Reader) {
	t.Helper()
	key, _ := api.ParseKey(testKey)
	trust, err := peer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", n.address, trust.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(splitWait))
	state := conn.ConnectionState()
	link, err := trust.Dialed(&state)
	if err != nil {
		t.Fatal(err)
	}
	return conn, link, bufio.NewReader(conn)
}

// TestRequestsOfNodesAreGoodOnce: bytes of another node's request have no effect when they
// are sent again, on the same connection or on another, nor with another path or at another
// node.
func TestRequestsOfNodesAreGoodOnce(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	b := w.nodes["b"]
	conn, link, in := dialPeer(t, b)
	request := func(note, path string) string {
		return strings.Replace(rawRequest(t, "DELETE", path, pk("p")), "Host:", headerPeer+": "+note+"\r\nHost:", 1) + "\r\n"
	}
	send := func(conn io.Writer, in *bufio.Reader, text string) int {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, got.Body)
		return got.StatusCode
	}
	const item, other = "/dbs/d/colls/c/docs/i", "/dbs/d/colls/c/docs/j"
	sign := func(link *peer.Link, receiver string) string {
		return link.Sign(peer.Note{Sender: "a", Receiver: receiver, AtMs: time.Now().UnixMilli()}, "DELETE", item)
	}
	for i := range 2 {
		b.call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
		text := request(sign(link, "b"), item)
		if status := send(conn, in, text); status != 204 {
			t.Fatalf("status %d", status)
		}
		b.call(t, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
		executed := b.executed.Load()
		second, link2, in2 := dialPeer(t, b)
		for what, status := range map[string]int{
			"again":                 send(conn, in, text),
			"on another connection": send(second, in2, text),
			"for another item":      send(conn, in, request(sign(link, "b"), other)),
			"for another node":      send(second, in2, request(sign(link2, "a"), item)),
			"without a note":        send(conn, in, request("", item)),
		} {
			if status != http.StatusMisdirectedRequest {
				t.Errorf("%d, %s: status %d", i, what, status)
			}
		}
		if n := b.executed.Load(); n != executed {
			t.Errorf("%d requests were executed", n-executed)
		}
		b.call(t, "DELETE", item, "", pk("p"), 204)
	}
}

// TestDatesAreJudgedWhereTheClientCame: the wall clock of the owner may be another.
func TestDatesAreJudgedWhereTheClientCame(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.container()
	then := time.Now().Add(-time.Hour)
	r := signedRequest(t, "GET", "/dbs/d/colls/c/docs", nil, nil)
	date := dateText(then)
	r.Header.Set("X-Ms-Date", date)
	r.Header.Set("Authorization", url.QueryEscape(masterToken(clientSignature(t, testKey, "GET", "docs", "dbs/d/colls/c", date, ""))))
	for at, want := range map[time.Time]int{then: 200, time.Now(): 403} {
		got, err := w.nodes["a"].peers.do(t.Context(), "b", w.nodes["b"].address, &peerRequest{
			method: "GET", target: "/dbs/d/colls/c/docs", host: "localhost", header: r.Header, at: at,
		})
		if err != nil || got.status != want {
			t.Errorf("%v: %+v, %v", at, got, err)
		}
	}
	// The owner verifies the signature itself.
	r.Header.Set("Authorization", url.QueryEscape(masterToken("AAAA")))
	got, err := w.nodes["a"].peers.do(t.Context(), "b", w.nodes["b"].address, &peerRequest{
		method: "GET", target: "/dbs/d/colls/c/docs", host: "localhost", header: r.Header, at: then,
	})
	if err != nil || got.status != 401 {
		t.Errorf("with a wrong signature: %+v, %v", got, err)
	}
}

// TestAddressesNameOwners: clients of direct mode come to the owners by themselves.
func TestAddressesNameOwners(t *testing.T) {
	w := newPeerWorld(t, "a", "b")
	w.nodes["a"].call(t, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	w.nodes["a"].call(t, "POST", "/dbs/d/colls", containerBody, map[string]string{"X-Ms-Offer-Throughput": "20000"}, 201)
	for _, n := range w.nodes {
		r, err := http.NewRequest("GET", "http://"+n.address+"/addresses/?$resolveFor=dbs/d/colls/c/docs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0,1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "outside:1234"
		signRequest(t, r, "docs", "dbs/d/colls/c")
		got, err := newPeerClient(t, false).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		for i, owner := range []string{"a", "b"} {
			host := w.addressOf(owner)
			if owner == n.name {
				host = "outside:1234" // as the client knows it
			}
			want := fmt.Sprintf(`"partitionKeyRangeId":"%s","partitionIndex":"%d@0","physcialUri":"rntbd://%s/`, catalog.RangeID(i), i, host)
			if got.StatusCode != 200 || !bytes.Contains(body, []byte(want)) {
				t.Errorf("at %s, partition %d: status %d, no %s in %s", n.name, i, got.StatusCode, want, body)
			}
		}
	}
}

func TestHostPort(t *testing.T) {
	for address, want := range map[string]string{
		"a:8081": "a:8081", "http://a:8081": "a:8081", "http://a:8081/": "a:8081", "https://a": "a:443", "http://a/": "a:80", "a": "a:80",
		"[::1]:8081": "[::1]:8081", "http://[::1]": "[::1]:80", "https://[::1]:1/": "[::1]:1",
	} {
		if got, err := hostPort(address); err != nil || got != want {
			t.Errorf("hostPort(%q) = %q, %v, want %q", address, got, err, want)
		}
	}
	if _, err := hostPort("http://"); err == nil {
		t.Error("an address without a host was accepted")
	}
}

func TestCheckPeer(t *testing.T) {
	for _, address := range []string{"a:8081", "http://a:8081", "https://a:8081/", "HTTPS://a", "a", "[::1]:8081", "http://[::1]:1"} {
		if err := CheckPeer(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"", "http://", "ftp://a:8081", "http://a:8081/path", "http://u@a:8081", "http://a:8081?x=1", "http://a:99999", "http://a:0", "a:b", ":8081", "a b:1", "https://:8081"} {
		if err := CheckPeer(address); err == nil || !strings.Contains(err.Error(), "--peer") {
			t.Errorf("%q: %v, want a refusal that names --peer", address, err)
		}
	}
}
