// SPDX-License-Identifier: MIT

// Clients that do not keep to the protocol, or take more than their part.

package direct_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// raw is a channel on which anything can be sent.
type raw struct {
	net.Conn
	in *bufio.Reader
	t  testing.TB
}

// opening is the frame that opens a channel.
func opening(version uint32) []byte {
	b := rntbd.BeginRequest(nil, rntbd.Connection, rntbd.Connect, rntbd.GUID{})
	b = rntbd.AppendULong(b, rntbd.ContextProtocolVersion, version)
	b = rntbd.AppendSmall(b, rntbd.ContextClientVersion, "2020-07-15")
	b = rntbd.AppendSmall(b, rntbd.ContextUserAgent, "hostile")
	rntbd.End(b, 0)
	return b
}

func (s *testServer) connect() *raw {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &raw{conn, bufio.NewReader(conn), s.t}
}

// rawChannel opens a channel.
func (s *testServer) rawChannel() *raw {
	s.t.Helper()
	c := s.connect()
	c.send(opening(1))
	if status := c.head(); status != 200 {
		s.t.Fatalf("opened with %d", status)
	}
	return c
}

func (c *raw) send(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// head reads an answer without a payload, and returns its status.
func (c *raw) head() int {
	c.t.Helper()
	var head [rntbd.HeadBytes]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		c.t.Fatal(err)
	}
	h, err := rntbd.ParseResponseHead(head[:])
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c.in, int64(h.Length-rntbd.HeadBytes)); err != nil {
		c.t.Fatal(err)
	}
	return h.Status
}

// answer reads an answer, and wants a status.
func (c *raw) answer(want int) directclient.Response {
	c.t.Helper()
	a, _, err := directclient.ReadResponse(c.in)
	if err != nil {
		c.t.Fatal(err)
	}
	if a.Status != want {
		c.t.Fatalf("%d %s, want %d", a.Status, a.Body, want)
	}
	return a
}

// ended wants the server to have closed the channel.
func (c *raw) ended(why string) {
	c.t.Helper()
	if n, err := c.in.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("%s: the channel goes on: %d, %v", why, n, err)
	}
}

func TestFramesThatAreNone(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	other := s.dial()
	head := func(length uint32) []byte {
		b := rntbd.BeginRequest(nil, rntbd.Document, rntbd.Read, rntbd.GUID{})
		binary.LittleEndian.PutUint32(b, length)
		return b
	}
	for name, b := range map[string][]byte{
		"length 0": head(0), "length of half a head": head(12), "length of 128 KiB and a byte": head(rntbd.MaxHeadBytes + 1),
		"length of 4 GB": head(0xffffffff), "HTTP": []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "noise": bytes.Repeat([]byte{0xff}, 100),
	} {
		c := s.rawChannel()
		c.send(b)
		c.ended(name)
	}
	for name, tokens := range map[string]string{
		"a token that is cut": "\x05\x00\x08\xff\xff", "a token of an unknown type": "\xf0\x00\x7f", "a token of another type": "\x04\x00\x00\x01",
	} {
		b := rntbd.BeginRequest(nil, rntbd.Document, rntbd.Read, rntbd.GUID{})
		b = append(rntbd.AppendULong(b, rntbd.RequestTransportRequestID, 9), tokens...)
		rntbd.End(b, 0)
		c := s.rawChannel()
		c.send(b)
		if a := c.answer(400); !bytes.Contains(a.Body, []byte("frame of direct mode")) || a.Number(rntbd.ResponseTransportRequestID) != 9 {
			t.Errorf("%s: %s", name, a.Body)
		}
		c.ended(name)
	}
	s.do(other, s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
}

func TestChannelsThatDoNotOpen(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.connect()
	c.send(opening(2))
	if status := c.head(); status != 400 {
		t.Errorf("version 2 is opened with %d", status)
	}
	payload, err := io.ReadAll(c.in)
	if err != nil || !strings.Contains(string(payload), "version") {
		t.Errorf("%q, %v", payload, err)
	}
	c = s.connect()
	b := rntbd.BeginRequest(nil, rntbd.Connection, rntbd.Connect, rntbd.GUID{})
	b = append(b, "\x00\x00\x02"...) // a number that is cut
	rntbd.End(b, 0)
	c.send(b)
	c.ended("a malformed opening")
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
}

func TestPayloadsThatAreRefused(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	c := s.rawChannel()
	announced := func(r *directclient.Request, length uint32) []byte {
		r.Body = []byte{}
		b := r.Frame(1)
		binary.LittleEndian.PutUint32(b[len(b)-rntbd.LengthBytes:], length)
		return b
	}
	// A payload that is too long is dropped, and the next request is answered.
	c.send(announced(s.item(rntbd.Create, "", "p", "x"), 3<<20))
	c.send(bytes.Repeat([]byte("x"), 3<<20))
	c.answer(413)
	c.send(s.item(rntbd.Read, "a", "p", "").Frame(2))
	c.answer(404)
	// So is one whose request has no credential, and one that its request does not have.
	r := s.item(rntbd.Create, "", "p", "x")
	r.Operation = rntbd.Upsert
	r.Resource = rntbd.StoredProcedure
	c.send(append(announced(r, 1<<20), bytes.Repeat([]byte("x"), 1<<20)...))
	c.answer(401)
	c.send(append(announced(s.item(rntbd.Read, "a", "p", ""), 7), "payload"...))
	c.answer(413)
	// One that would take for ever ends the channel at once.
	c.send(announced(s.item(rntbd.Create, "", "p", "x"), 0xffffffff))
	c.answer(413)
	c.ended("a payload of 4 GB")
	// One that ends early is not executed.
	c = s.rawChannel()
	c.send(append(announced(s.item(rntbd.Create, "", "p", "x"), 100), `{"id":"half","pk":"p"}`...))
	_ = c.Close()
	s.do(s.dial(), s.item(rntbd.Read, "half", "p", ""), 404)
}

// heapBytes is the memory in use.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// Payloads without a credential take no memory, however many there are.
func TestPayloadsOfStrangersTakeNoMemory(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	const channels, length = 40, 2 << 20
	b := rntbd.AppendText(rntbd.AppendText(nil, rntbd.RequestDatabaseName, "d"), rntbd.RequestCollectionName, "c")
	r := &directclient.Request{Resource: rntbd.Document, Operation: rntbd.Create, Tokens: b, Body: make([]byte, length)}
	frame := r.Frame(1)
	before := heapBytes()
	for range channels {
		s.rawChannel().send(frame[:len(frame)-1]) // the last byte never comes
	}
	if grown := int64(heapBytes()) - int64(before); grown > channels*length/8 {
		t.Errorf("%d MB of payloads take %d MB", channels*length>>20, grown>>20)
	}
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
}

// A client that sends thousands of requests before it reads gets all answers.
func TestThousandsInFlight(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
	const requests = 5000
	c := s.rawChannel()
	sent := make(chan error, 1)
	go func() {
		r := s.item(rntbd.Read, "a", "p", "")
		for i := range uint32(requests) {
			if _, err := c.Write(r.Frame(i)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	seen := make([]bool, requests)
	for range requests {
		a, id, err := directclient.ReadResponse(c.in)
		if err != nil || a.Status != 200 || seen[id] {
			t.Fatalf("answer %d: %d %s, %v", id, a.Status, a.Body, err)
		}
		seen[id] = true
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// Clients that do not read their answers hold what the limits say, and no more. Others are
// served meanwhile.
func TestSlowReaders(t *testing.T) {
	const memory, channels, requests, itemBytes = 256 << 20, 10, 200, 1 << 20
	s := newContainer(t, mayfly.Options{MemoryBytes: memory})
	other := s.dial()
	s.do(other, s.item(rntbd.Create, "", "p", `{"id":"large","pk":"p","x":"`+strings.Repeat("x", itemBytes)+`"}`), 201)
	s.do(other, s.item(rntbd.Create, "", "p", `{"id":"small","pk":"p"}`), 201)
	before := heapBytes()
	frame := s.item(rntbd.Read, "large", "p", "").Frame(1)
	for range channels {
		c := s.rawChannel()
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		for range requests {
			if _, err := c.Write(frame); err != nil {
				break // the server does not read on
			}
		}
	}
	for i := range 50 {
		s.do(other, s.item(rntbd.Read, "small", "p", ""), 200)
		s.do(other, s.item(rntbd.Create, "", "p", fmt.Sprintf(`{"id":"%d","pk":"p"}`, i)), 201)
	}
	// Requests share a quarter of the memory. As much again is for what they do not count,
	// such as answers that were made before there was memory for them, and dropped.
	grown := int64(0)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if grown = int64(heapBytes()) - int64(before); grown <= memory/2 {
			return
		}
	}
	t.Errorf("%d answers of 1 MB that are not read take %d MB", channels*requests, grown>>20)
}

// Many idle channels cost others nothing.
func TestManyChannels(t *testing.T) {
	s := newContainer(t, mayfly.Options{})
	const channels = 300
	before := heapBytes()
	for range channels {
		s.rawChannel()
	}
	if grown := int64(heapBytes()) - int64(before); grown > channels*64<<10 {
		t.Errorf("%d channels take %d KB each", channels, grown/channels>>10)
	}
	s.do(s.dial(), s.item(rntbd.Create, "", "p", `{"id":"a","pk":"p"}`), 201)
}
