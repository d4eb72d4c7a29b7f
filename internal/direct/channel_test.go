// SPDX-License-Identifier: MIT

package direct_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// newContainer serves a database d with a container c.
func newContainer(t testing.TB, o mayfly.Options) *testServer {
	t.Helper()
	s := serveTest(t, o)
	s.database("d")
	s.container("d", "c", "/pk")
	return s
}

func TestManyRequestsOnOneChannel(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.dial()
	const requests = 300 // more than a channel takes at a time
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			id := fmt.Sprint("i", i)
			s.do(c, s.item(rntbd.Create, "", "p", `{"id":"`+id+`","pk":"p"}`), 201)
			if a := s.do(c, s.item(rntbd.Read, id, "p", ""), 200); !bytes.Contains(a.Body, []byte(`"id":"`+id+`"`)) {
				t.Errorf("the answer to the read of %s is %s", id, a.Body)
			}
		})
	}
	wg.Wait()
	a := s.do(c, s.item(rntbd.ReadFeed, "", "p", ""), 200)
	if n := a.Number(rntbd.ResponseItemCount); n != 100 {
		t.Errorf("a page of %d items", n)
	}
}

// trustingDial opens a channel over TLS, as SDKs do: without ALPN.
func trustingDial(t *testing.T, conn net.Conn, config *tls.Config) *directclient.Channel {
	t.Helper()
	config.InsecureSkipVerify = true
	c, err := directclient.Open(tls.Client(conn, config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAllProtocolsOnOnePort(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	c := trustingDial(t, conn, &tls.Config{})
	s.do(c, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	for _, alpn := range [][]string{nil, {"http/1.1"}} {
		client := http.Client{Timeout: waitLimit, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: alpn},
		}}
		res, err := client.Get("https://" + s.addr + "/_mayfly/health")
		if err != nil {
			t.Fatalf("with ALPN %v: %v", alpn, err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("with ALPN %v: %s", alpn, res.Status)
		}
		account, err := http.NewRequest("GET", "https://"+s.addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.sign(account, "", "")
		if res, err = client.Do(account); err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Contains(body, []byte(`"https://`+s.addr+`/"`)) { // the handler knows of TLS
			t.Errorf("with ALPN %v: %s, %v", alpn, body, err)
		}
	}
	s.http("GET", "/dbs/d", "dbs", "dbs/d", "", nil, 200)
	s.do(c, s.item(rntbd.Read, "a", "p", ""), 200)
}

// tapped keeps what is read from a connection.
type tapped struct {
	net.Conn
	mu   sync.Mutex
	read []byte
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, p[:n]...)
	return n, err
}

// TestNoRecordHasPartsOfTwoFrames looks at the TLS records: the Java SDK mixes up frames
// that share one.
func TestNoRecordHasPartsOfTwoFrames(t *testing.T) {
	const record, overhead = 23, 8 + 16 // of TLS 1.2 with AES-GCM
	s := newContainer(t, mayfly.Options{})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	tap := &tapped{Conn: conn}
	c := trustingDial(t, tap, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
	large := strings.Repeat("x", 40_000)
	s.do(c, s.item(rntbd.Create, "", "p", `{"id":"small","pk":"p"}`), 201)
	s.do(c, s.item(rntbd.Create, "", "p", `{"id":"large","pk":"p","x":"`+large+`"}`), 201)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() { s.do(c, s.item(rntbd.Read, []string{"small", "large"}[i%2], "p", ""), 200) })
	}
	wg.Wait()
	tap.mu.Lock()
	defer tap.mu.Unlock()
	var records []int
	for b := tap.read; len(b) >= 5; {
		n := int(binary.BigEndian.Uint16(b[3:]))
		if b[0] == record {
			records = append(records, n-overhead)
		}
		b = b[min(5+n, len(b)):]
	}
	small, first, rest := 0, 0, 0
	for _, n := range records {
		switch {
		case n < 2000:
			small++
		case n == 16<<10:
			first++
		default:
			rest++
		}
	}
	// A small item is one record. A large one is its head, two full records of payload and
	// the end of it. Frames that share records would make fewer small ones.
	if small < 60 || first != 2*31 || rest != 31 {
		t.Errorf("%d records: %d small ones, %d full ones, %d ends", len(records), small, first, rest)
	}
}

// slowProcedure creates a stored procedure that runs for half a second.
func (s *testServer) slowProcedure() {
	s.t.Helper()
	s.http("POST", "/dbs/d/colls/c/sprocs", "sprocs", "dbs/d/colls/c",
		`{"id":"slow","body":"function(){var t=Date.now();while(Date.now()-t<500);getContext().getResponse().setBody(1)}"}`, nil, 201)
}

func (s *testServer) procedure(name string) *directclient.Request {
	b := directclient.AppendSignature(nil, s.key(), "POST", "sprocs", "dbs/d/colls/c/sprocs/"+name)
	b = rntbd.AppendText(b, rntbd.RequestDatabaseName, "d")
	b = rntbd.AppendText(b, rntbd.RequestCollectionName, "c")
	b = rntbd.AppendText(b, rntbd.RequestStoredProcedureName, name)
	b = rntbd.AppendText(b, rntbd.RequestPartitionKey, `["p"]`)
	return &directclient.Request{Resource: rntbd.StoredProcedure, Operation: rntbd.ExecuteJavaScript, Tokens: b, Body: []byte("[]")}
}

// A server that stops answers what is under way, and refuses with 410 what arrives on the
// same channels until then.
func TestDrain(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	s.slowProcedure()
	c, idle := s.dial(), s.dial()
	s.do(idle, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	slow, err := c.Start(s.procedure("slow"))
	if err != nil {
		t.Fatal(err)
	}
	s.do(c, s.item(rntbd.Read, "a", "p", ""), 200) // the procedure has been read
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		stopped <- s.Shutdown(ctx)
	}()
	refused := 0
	for range 1000 {
		a, err := c.Do(s.item(rntbd.Create, "", "p", `{"id":"b","pk":"p"}`))
		if err != nil {
			t.Fatalf("while a request is under way: %v", err)
		}
		if a.Status == 410 {
			refused++
			checkAnswer(t, "refused", &a)
			break
		}
	}
	if refused == 0 {
		t.Error("nothing was refused with 410")
	}
	if a, ok := <-slow; !ok || a.Status != 200 {
		t.Errorf("the request under way: %v %d %s", ok, a.Status, a.Body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	for _, closed := range []*directclient.Channel{c, idle} {
		if _, err := closed.Do(s.item(rntbd.Read, "a", "p", "")); err == nil {
			t.Error("a channel is open after the server has stopped")
		}
	}
}

// A request that is executing when its client leaves is cancelled, and the server can
// stop.
func TestClientLeaves(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	s.slowProcedure()
	c := s.dial()
	for range 20 {
		if _, err := c.Start(s.procedure("slow")); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	begun := time.Now()
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("another client waited %v", took)
	}
}

// Reads that arrive together are answered, whatever follows them: nothing, a part of a
// frame, a request that takes longer, more reads than may be under way, or bytes that are
// no frame.
func TestReadsThatArriveTogether(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"1","pk":"p"}`), 201)
	reads := func(n int) (b []byte) {
		for i := range n {
			b = append(b, s.item(rntbd.Read, "1", "p", "").Frame(uint32(i))...)
		}
		return b
	}
	noFrame := rntbd.BeginRequest(nil, rntbd.Document, rntbd.Read, rntbd.GUID{})
	binary.LittleEndian.PutUint32(noFrame, 1)
	create := s.item(rntbd.Create, "", "p", `{"id":"2","pk":"p"}`).Frame(99)
	for _, c := range []struct {
		name    string
		n       int
		follows []byte
		rest    []byte // is sent after the answers
		more    int    // answers after that
		ends    bool
	}{
		{"nothing", 3, nil, nil, 0, false},
		{"a part of a head", 3, reads(1)[:5], reads(1)[5:], 1, false},
		{"a part of a frame", 3, reads(1)[:40], reads(1)[40:], 1, false},
		{"a part of a payload", 3, create[:len(create)-4], create[len(create)-4:], 1, false},
		{"many", 3000, nil, nil, 0, false},
		{"no frame", 3, noFrame, nil, 0, true},
	} {
		ch := s.rawChannel()
		go func() { _, _ = ch.Write(append(reads(c.n), c.follows...)) }()
		for range c.n {
			ch.answer(200)
		}
		if c.rest != nil {
			ch.send(c.rest)
		}
		for range c.more {
			if a, _, err := directclient.ReadResponse(ch.in); err != nil || a.Status >= 400 {
				t.Errorf("%s: %d, %v", c.name, a.Status, err)
			}
		}
		if c.ends {
			ch.ended(c.name)
		}
	}
}

// held is a connection that keeps back what is written.
type held struct {
	net.Conn
	kept []byte
	on   bool
}

func (c *held) Write(p []byte) (int, error) {
	if !c.on {
		return c.Conn.Write(p)
	}
	c.kept = append(c.kept, p...)
	return len(p), nil
}

// Over TLS, reads whose records arrive together are answered, and leave before the
// server waits for the rest of a record of which a part has arrived.
func TestRecordsThatArriveTogether(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"1","pk":"p"}`), 201)
	const reads = 5
	for _, late := range []int{0, 1, 30, 200} { // bytes of the last record that come later
		plain := s.connect()
		under := &held{Conn: plain.Conn}
		conn := tls.Client(under, &tls.Config{InsecureSkipVerify: true})
		ch := &raw{conn, bufio.NewReader(conn), t}
		ch.send(opening(1))
		if status := ch.head(); status != 200 {
			t.Fatalf("opened with %d", status)
		}
		for range 2 {
			under.on = true
			for i := range reads {
				ch.send(s.item(rntbd.Read, "1", "p", "").Frame(uint32(i)))
			}
			ends := len(under.kept) - late
			plain.send(under.kept[:ends])
			for range reads - min(late, 1) {
				ch.answer(200)
			}
			if late > 0 {
				plain.send(under.kept[ends:])
				ch.answer(200)
			}
			under.on, under.kept = false, nil
		}
	}
}
