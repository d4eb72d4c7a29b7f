// SPDX-License-Identifier: MIT

// Clients that break HTTP itself, over a real connection. After each, the server answers
// the next client, and its memory stays within bounds.

package mayfly

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
)

// serving fails if the server no longer answers a write and a read.
func (s *testServer) serving(t *testing.T, after string) {
	t.Helper()
	upsert := pk("p")
	upsert["x-ms-documentdb-is-upsert"] = "true"
	if a := s.send(t, "POST", items, `{"id":"alive","pk":"p"}`, upsert); a.status != 200 && a.status != 201 {
		t.Fatalf("after %s: a write got status %d: %s", after, a.status, a.body)
	}
	if a := s.send(t, "GET", items+"/alive", "", pk("p")); a.status != 200 {
		t.Fatalf("after %s: a read got status %d: %s", after, a.status, a.body)
	}
}

const megabyte = 1 << 20

// A body whose announced length is too large is refused before any of it is read.
func TestHugeContentLength(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	for _, length := range []string{"2097153", "3000000000", "9223372036854775807"} {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, s.head(t, "POST", items, pk("p"))+"Content-Length: "+length+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		a := readReply(t, bufio.NewReader(conn))
		if a.status != 413 || !strings.Contains(a.message(t), "Request size is too large") {
			t.Errorf("%s bytes: status %d: %s", length, a.status, a.body)
		}
		ended(t, conn)
	}
	for _, length := range []string{"9223372036854775808", "-1", "x", "1,2", "0x10", "1 1"} {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, s.head(t, "POST", items, pk("p"))+"Content-Length: "+length+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if a := readReply(t, bufio.NewReader(conn)); a.status != 400 {
			t.Errorf("a length of %q: status %d", length, a.status)
		}
		ended(t, conn)
	}
	// Without a signature nothing is read at all.
	conn := s.dial(t)
	if _, err := io.WriteString(conn, "POST "+items+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if a := readReply(t, bufio.NewReader(conn)); a.status != 401 {
		t.Errorf("unsigned: status %d", a.status)
	}
	s.serving(t, "huge lengths")
}

// TestLargestItem checks that an item of two megabytes is accepted and that one byte more
// is refused, with a length and in chunks.
func TestLargestItem(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	for _, size := range []int{2*megabyte - 1, 2 * megabyte, 2*megabyte + 1, 3 * megabyte} {
		want := 201
		if size > 2*megabyte {
			want = 413
		}
		for _, chunked := range []bool{false, true} {
			id := fmt.Sprintf("i%d-%v", size, chunked)
			var body io.Reader = strings.NewReader(largeItem(id, size))
			if chunked {
				body = struct{ io.Reader }{body} // hides its length
			}
			a, err := s.do(s.request(t, "POST", items, body, pk("p")))
			if err != nil || a.status != want {
				t.Errorf("%d bytes, chunked %v: status %d, %v, want %d: %.200s", size, chunked, a.status, err, want, a.body)
			}
		}
	}
}

// largeItem is an item of exactly so many bytes.
func largeItem(id string, size int) string {
	head := `{"id":"` + id + `","pk":"p","pad":"`
	return head + strings.Repeat("x", size-len(head)-2) + `"}`
}

// A body without end is refused at the limit. The server discards what follows for a
// while, and then closes the connection.
func TestEndlessBody(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	conn := s.dial(t)
	if _, err := io.WriteString(conn, s.head(t, "POST", items, pk("p"))+"Transfer-Encoding: chunked\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	sent := make(chan int, 1)
	go func() {
		chunk := "10000\r\n" + strings.Repeat("x", 65536) + "\r\n"
		n := 0
		for {
			m, err := io.WriteString(conn, chunk)
			n += m
			if err != nil {
				sent <- n
				return
			}
		}
	}()
	a := readReply(t, bufio.NewReader(conn))
	if a.status != 413 || !strings.Contains(a.message(t), "too large") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	s.serving(t, "an endless body, still open")
	// The client notices the end of the connection after the bytes that the server
	// discards and those that the sockets can hold.
	if n := <-sent; n > 96*megabyte {
		t.Errorf("the client could send %d bytes", n)
	}
}

// heapPeak samples the heap in use until stop is called, and returns the maximum. It does
// not count garbage that waits to be collected, which depends on the load of the machine.
func heapPeak() (stop func() uint64) {
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		peak := uint64(0)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(live)
			peak = max(peak, live[0].Value.Uint64())
			select {
			case <-done:
				result <- peak
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(done)
		return <-result
	}
}

// maxHeapBytes bounds the heap of the process, clients included, while hundreds of the
// largest requests are under way.
const maxHeapBytes = 450 * megabyte

// admittedAtOnce is how many of the largest bodies the server reads at once at least; the
// others wait in the sockets and in the clients.
const admittedAtOnce = 20

// TestManyLargeBodies sends hundreds of the largest bodies at the same time, all but their
// last byte, and then the last bytes. All are answered. Most of those in chunks are a byte
// too long, and refused.
func TestManyLargeBodies(t *testing.T) {
	for _, c := range []struct {
		name    string
		clients int
		chunked bool
		http2   bool
	}{{"with lengths", 100, false, false}, {"chunked", 100, true, false}, {"streams", 100, false, true}} {
		t.Run(c.name, func(t *testing.T) {
			s := serveTest(t, Options{Dir: t.TempDir(), NoSync: true, MemoryBytes: 768 * megabyte})
			s.makeContainer(t)
			runtime.GC()
			peak := heapPeak()
			gate, waiting := make(chan struct{}), make(chan struct{}, c.clients)
			var all sync.WaitGroup
			client := largeBodyClient(c.http2)
			defer client.CloseIdleConnections()
			fits, tooLong := largeItem("large", 2*megabyte), largeItem("large", 2*megabyte+1)
			for i := range c.clients {
				body := fits
				if c.chunked && i%8 != 0 {
					body = tooLong
				}
				all.Go(func() {
					s.sendInTwo(t, client, body, c.chunked, func() {
						waiting <- struct{}{}
						<-gate
					})
				})
			}
			for range admittedAtOnce {
				<-waiting
			}
			close(gate)
			s.serving(t, "large bodies began")
			all.Wait()
			most := peak()
			t.Logf("at most %d MB of heap", most/megabyte)
			if most > maxHeapBytes {
				t.Errorf("%d MB of heap, more than %d", most/megabyte, maxHeapBytes/megabyte)
			}
		})
	}
}

// largeBodyClient returns a client with a connection for each request, or with one of
// HTTP/2 for all of them.
func largeBodyClient(http2 bool) *http.Client {
	transport := &http.Transport{DisableKeepAlives: !http2, Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	return &http.Client{Transport: transport, Timeout: 3 * time.Minute}
}

// sendInTwo upserts an item and pauses before the last byte of its body.
func (s *testServer) sendInTwo(t *testing.T, client *http.Client, body string, chunked bool, pause func()) {
	r := &pausingReader{text: body, pause: pause}
	headers := pk("p")
	headers["x-ms-documentdb-is-upsert"] = "true"
	headers["Prefer"] = "return=minimal"
	request := s.request(t, "POST", items, r, headers)
	if !chunked {
		request.ContentLength = int64(len(body))
	}
	res, err := client.Do(request)
	if err != nil {
		t.Errorf("a large body: %v", err)
		return
	}
	defer res.Body.Close()
	tooLong := len(body) > 2*megabyte
	answer, _ := io.ReadAll(res.Body)
	if res.StatusCode == 429 { // on a machine that is busy with other work
		return
	}
	if refused := res.StatusCode == 413; refused != tooLong || !refused && res.StatusCode > 201 {
		t.Errorf("a body of %d bytes: status %d: %s", len(body), res.StatusCode, answer)
	}
}

// pausingReader reads a text and pauses before its last byte.
type pausingReader struct {
	text  string
	at    int
	pause func()
}

func (r *pausingReader) Read(p []byte) (int, error) {
	last := len(r.text) - 1
	switch {
	case r.at > last:
		return 0, io.EOF
	case r.at == last:
		r.pause()
		p[0] = r.text[last]
		r.at++
		return 1, nil
	}
	n := copy(p, r.text[r.at:last])
	r.at += n
	return n, nil
}

// TestBrokenHTTP writes bytes that are no request, or a strange one.
func TestBrokenHTTP(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	noise := make([]byte, 64<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	noise[0] = 0 // not TLS
	get := func(headers string) string { return "GET / HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" }
	for _, c := range []struct {
		name, send string
		status     int // 0 if there need be no answer
	}{
		{"noise", string(noise), 0},
		{"zeros", strings.Repeat("\x00", 100_000), 0},
		{"lines", strings.Repeat("\r\n", 100_000), 0},
		{"a word", "hello\r\n\r\n", 400},
		{"SSH", "SSH-2.0-OpenSSH_9.6\r\n", 400},
		{"SMTP", "EHLO example.com\r\n\r\n", 400},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
		{"HTTP/9.9", "GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505},
		{"HTTP/0.9", "GET /\r\n\r\n", 400},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"two hosts", get("Host: y\r\n"), 400},
		{"a bad host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
		{"a bad method", "G\x00T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a bad escape", "GET /dbs/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a control character in the path", "GET /dbs/\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a space in the path", "GET /dbs/a b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a bad header name", get("a b: c\r\n"), 400},
		{"a header without a colon", get("abc\r\n"), 400},
		{"a control character in a header", get("a: \x01\r\n"), 400},
		{"a bare line feed", "GET / HTTP/1.1\nHost: x\n\n", 401},
		{"lengths that differ", get("Content-Length: 1\r\nContent-Length: 2\r\n"), 400},
		{"an unknown encoding", get("Transfer-Encoding: gzip\r\n"), 501},
		{"an unknown expectation", get("Expect: wonders\r\n"), 417},
		{"an upgrade", get("Connection: Upgrade\r\nUpgrade: h2c\r\n"), 401},
		{"a proxy's request", "GET http://other.example/dbs HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"CONNECT", "CONNECT other.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		{"a long method", strings.Repeat("A", 10_000) + " / HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		{"a long path", "GET /dbs/" + strings.Repeat("a", 40_000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"a longer path", "GET /dbs/" + strings.Repeat("a", 100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		{"a large header", get("a: " + strings.Repeat("b", 100_000) + "\r\n"), 431},
		{"a partition key of 2 MB", get(`x-ms-documentdb-partitionkey: ["` + strings.Repeat("p", 2*megabyte) + "\"]\r\n"), 431},
		{"thousands of headers", get(strings.Repeat("a: b\r\n", 5_000)), 401},
		{"tens of thousands of headers", get(strings.Repeat("a: b\r\n", 50_000)), 431},
		{"thousands of names", get(manyHeaders(3_000)), 401},
		{"thousands of cookies", get("Cookie: " + strings.Repeat("a=b; ", 10_000) + "\r\n"), 401},
	} {
		conn := s.dial(t)
		go func() {
			_, _ = io.WriteString(conn, c.send)
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		switch {
		case err == nil && c.status != 0 && res.StatusCode != c.status:
			t.Errorf("%s: status %d, want %d", c.name, res.StatusCode, c.status)
		case err != nil && c.status != 0:
			t.Errorf("%s: %v, want status %d", c.name, err, c.status)
		}
		_ = conn.Close()
		s.serving(t, c.name)
	}
}

func manyHeaders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x-%d: y\r\n", i)
	}
	return b.String()
}

// TestBrokenTLS sends the start of a TLS handshake and then something else.
func TestBrokenTLS(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	noise := make([]byte, 32<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for name, send := range map[string]string{
		"one byte": "\x16", "a header": "\x16\x03\x01\x02\x00", "noise": "\x16" + string(noise),
		"a record of noise": "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc" + string(noise),
		"HTTP":              "\x16GET / HTTP/1.1\r\n\r\n", "zeros": "\x16" + strings.Repeat("\x00", 50_000),
	} {
		conn := s.dial(t)
		go func() {
			_, _ = io.WriteString(conn, send)
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		ended(t, conn)
		s.serving(t, name)
	}
	// A version that is too old is refused, and the others are served.
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn := tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version})
		if err := conn.HandshakeContext(t.Context()); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	// A good handshake with garbage behind it.
	conn := tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true})
	if _, err := conn.Write([]byte("hello\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if a := readReply(t, bufio.NewReader(conn)); a.status != 400 {
		t.Errorf("garbage over TLS: status %d", a.status)
	}
	s.serving(t, "garbage over TLS")
}

func TestOldAndPipelinedRequests(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	// HTTP/1.0, with and without a host: one answer, then the connection is closed.
	for _, host := range []string{"", "Host: " + s.addr + "\r\n"} {
		conn := s.dial(t)
		head := s.head(t, "GET", "/", nil)
		_, rest, _ := strings.Cut(head, "\r\n")
		_, rest, _ = strings.Cut(rest, "\r\n")
		if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n"+host+rest+"\r\n"); err != nil {
			t.Fatal(err)
		}
		a := readReply(t, bufio.NewReader(conn))
		if a.status != 200 || !bytes.Contains(a.body, []byte(`"databaseAccountEndpoint":"http://`+s.addr+`/"`)) {
			t.Errorf("HTTP/1.0 with %q: status %d: %s", host, a.status, a.body)
		}
		ended(t, conn)
	}
	// Fifty requests in one write: fifty answers, in order.
	var all bytes.Buffer
	for i := range 50 {
		body := fmt.Sprintf(`{"id":"p%d","pk":"p"}`, i)
		fmt.Fprintf(&all, "%sContent-Length: %d\r\n\r\n%s", s.head(t, "POST", items, pk("p")), len(body), body)
	}
	conn := s.dial(t)
	go func() { _, _ = conn.Write(all.Bytes()) }()
	answers := bufio.NewReader(conn)
	for i := range 50 {
		a := readReply(t, answers)
		if want := fmt.Sprintf(`{"id":"p%d",`, i); a.status != 201 || !bytes.HasPrefix(a.body, []byte(want)) {
			t.Fatalf("answer %d: status %d: %s", i, a.status, a.body)
		}
	}
	// A refused body does not become the next request.
	smuggled := s.head(t, "DELETE", "/dbs/d", nil) + "\r\n"
	conn = s.dial(t)
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", items, len(smuggled), smuggled); err != nil {
		t.Fatal(err)
	}
	answers = bufio.NewReader(conn)
	if a := readReply(t, answers); a.status != 401 {
		t.Errorf("unsigned: status %d", a.status)
	}
	if _, err := io.WriteString(conn, s.head(t, "GET", "/dbs/d", nil)+"Connection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if a := readReply(t, answers); a.status != 200 {
		t.Errorf("the request after it: status %d: %s", a.status, a.body)
	}
}

func TestExpectContinue(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	const body = `{"id":"i","pk":"p"}`
	for _, c := range []struct {
		name, head string
		want       []int // statuses, in order
	}{
		{"a good request", s.head(t, "POST", items, pk("p")) + fmt.Sprintf("Content-Length: %d\r\n", len(body)), []int{100, 201}},
		{"chunked", s.head(t, "POST", items, pk("p")) + "Transfer-Encoding: chunked\r\n", []int{100, 409}},
		{"unsigned", "POST " + items + " HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n", []int{401}},
		{"too large", s.head(t, "POST", items, pk("p")) + "Content-Length: 3000000000\r\n", []int{413}},
	} {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, c.head+"Expect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(conn)
		for _, want := range c.want {
			a := readReply(t, answers)
			if a.status != want {
				t.Errorf("%s: status %d, want %d: %s", c.name, a.status, want, a.body)
			}
			if a.status == 100 {
				send := body
				if c.name == "chunked" {
					send = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
				}
				if _, err := io.WriteString(conn, send); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A client that disconnects in the middle of a body has written nothing.
func TestDisconnectInTheBody(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	for _, c := range []string{
		"Content-Length: 100\r\n\r\n",
		"Content-Length: 100\r\n\r\n{\"id\":\"cut\",\"pk\":\"p\"}",
		"Content-Length: 1000000\r\n\r\n{\"id\":\"cut\",\"pk\":\"p\"}",
		"Transfer-Encoding: chunked\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n15\r\n{\"id\":\"cut\",\"pk\":\"p\"}\r\n",
		"Transfer-Encoding: chunked\r\n\r\n15\r\n{\"id\":\"cut\",\"pk\"",
		"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
		"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}",
	} {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, s.head(t, "POST", items, pk("p"))+c); err != nil {
			t.Fatal(err)
		}
		// Half closed: the answer, if there is one, says what happened.
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if a := readReply(t, bufio.NewReader(conn)); a.status != 400 || !strings.Contains(a.message(t), "could not be read to its end") {
			t.Errorf("%q: status %d: %s", c, a.status, a.body)
		}
		conn = s.dial(t)
		if _, err := io.WriteString(conn, s.head(t, "POST", items, pk("p"))+c); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		s.serving(t, "a client that left")
	}
	if a := s.send(t, "GET", items+"/cut", "", pk("p")); a.status != 404 {
		t.Errorf("half an item was written: status %d: %s", a.status, a.body)
	}
}

// Clients that disconnect instead of reading their answers do not hold up a shutdown.
func TestClientsThatDoNotRead(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	for i := range 3 {
		s.must(t, 201, "POST", items, largeItem(fmt.Sprintf("i%d", i), megabyte), pk("p"))
	}
	for range 20 {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, s.head(t, "GET", items, nil)+"\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	s.serving(t, "clients that do not read")
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}
