// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
)

// Large answers take memory like large bodies: without memory they are refused after a
// while, and made once there is some. Small ones never wait.
func TestAnswersWaitForMemory(t *testing.T) { synctest.Test(t, answersWaitForMemory) }

func answersWaitForMemory(t *testing.T) {
	h := newContainer(t)
	large := `{"id":"large","pk":"p","pad":"` + strings.Repeat("x", 100_000) + `"}`
	call(t, h, "POST", "/dbs/d/colls/c/docs", large, pk("p"), 201)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"small","pk":"p"}`, pk("p"), 201)
	changes := map[string]string{"A-IM": "Incremental feed"}
	for _, c := range []struct {
		name, path string
		headers    map[string]string
	}{
		{"an item", "/dbs/d/colls/c/docs/large", pk("p")},
		{"a list", "/dbs/d/colls/c/docs", nil},
		{"changes", "/dbs/d/colls/c/docs", changes},
	} {
		taken := takeAll(t, h)
		began := time.Now()
		a := serve(h, signedRequest(t, "GET", c.path, nil, c.headers))
		if text := a.failureText(t, 429, 0); !strings.Contains(text, "memory") || a.header.Get(headerRetryAfter) == "" {
			t.Errorf("%s: the client is told %q, and to come again after %q", c.name, text, a.header.Get(headerRetryAfter))
		}
		if waited := time.Since(began); waited != memory.MaxWait {
			t.Errorf("%s: refused after %v, want %v", c.name, waited, memory.MaxWait)
		}
		began = time.Now()
		call(t, h, "GET", "/dbs/d/colls/c/docs/small", "", pk("p"), 200)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("%s: a small one waited for %v", c.name, waited)
		}
		// Memory that becomes free meanwhile is enough.
		answered := make(chan answer, 1)
		go func() { answered <- serve(h, signedRequest(t, "GET", c.path, nil, c.headers)) }()
		synctest.Wait()
		if use := h.memory.Use(); use.Waiting != 1 {
			t.Errorf("%s: %d wait for memory, want 1", c.name, use.Waiting)
		}
		taken.Close()
		if a := <-answered; a.status != 200 || !strings.Contains(string(a.body), strings.Repeat("x", 100_000)) {
			t.Errorf("%s: status %d: %.300s", c.name, a.status, a.body)
		}
	}
}

// An answer that its client does not read holds its own memory, and not what the request
// took before.
func TestSlowReadersHoldTheirAnswer(t *testing.T) { synctest.Test(t, slowReadersHoldTheirAnswer) }

func slowReadersHoldTheirAnswer(t *testing.T) {
	const size = 2 << 20
	h := newContainer(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"large","pk":"p","pad":"`+strings.Repeat("x", size-1000)+`"}`, pk("p"), 201)
	conn := serveInMemory(t, h).dial("")
	defer conn.Close()
	const requests = 16
	go io.WriteString(conn, strings.Repeat(rawRequest(t, "GET", "/dbs/d/colls/c/docs/large", pk("p"))+"\r\n", requests))
	answers := bufio.NewReader(conn)
	for range requests {
		synctest.Wait()
		if held := h.memory.Use().Held; held < size || held > size+256<<10 {
			t.Errorf("an answer of %d bytes holds %d", size, held)
		}
		if a := readAnswer(t, answers); a.status != 200 {
			t.Fatalf("status %d", a.status)
		}
	}
	synctest.Wait()
	if held := h.memory.Use().Held; held != 0 {
		t.Errorf("%d bytes are held after the last answer", held)
	}
}

// The memory that a write of a large array takes besides its body is given back at its
// end. Without it the write is refused with a message.
func TestLargeArraysWithoutMemory(t *testing.T) {
	h := newContainer(t)
	h.memory.Wait = time.Millisecond
	item := `{"id":"i","pk":"p","a":[0` + manyNumbers(1500) + `]}`
	if len(item) > memory.FreeBytes {
		t.Fatalf("the item has %d bytes", len(item))
	}
	call(t, h, "POST", "/dbs/d/colls/c/docs", item, pk("p"), 201)
	taken := takeAll(t, h)
	a := serve(h, signedRequest(t, "PUT", "/dbs/d/colls/c/docs/i", []byte(item), pk("p")))
	if text := a.failureText(t, 429, 0); !strings.Contains(text, "memory") {
		t.Errorf("the client is told %q", text)
	}
	taken.Close()
	call(t, h, "PUT", "/dbs/d/colls/c/docs/i", item, pk("p"), 200)
}

func manyNumbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i*3)
	}
	return b.String()
}
