// SPDX-License-Identifier: MIT

// Clients of HTTP/2 that attack, stall or break the rules. Memory stays within bounds, and
// other clients are served.

package rest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// heapNow returns the bytes in use, after a collection.
func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// attacked serves a container over sockets, and counts requests.
type attacked struct {
	addr   string
	began  atomic.Int64
	before int64
}

func startAttacked(t *testing.T) *attacked {
	t.Helper()
	a, h := &attacked{}, newContainer(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	a.addr = startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.began.Add(1)
		h.ServeHTTP(w, r)
	}), func(*http.Server) {})
	a.before = heapNow()
	return a
}

func (a *attacked) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", a.addr, splitWait)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// survives fails unless other clients are served, and the heap has grown by no more than
// so many bytes.
func (a *attacked) survives(t *testing.T, most int64) {
	t.Helper()
	c := speak(t, a.dial(t))
	c.begin(t, 1, signedRequest(t, "GET", "/dbs/d/colls/c/docs/i", nil, pk("p")), false)
	if end := c.ends(t, 1)[1]; end == nil || end.status != 200 {
		t.Errorf("another client got %+v", end)
	}
	if grown := heapNow() - a.before; grown > most {
		t.Errorf("the heap has grown by %d bytes, more than %d", grown, most)
	}
}

// Streams that are reset at once (CVE-2023-44487) cost little: those that were reset
// before they began are not given to the handler, and a client that resets faster than
// requests are answered is sent away.
func TestRapidReset(t *testing.T) {
	a := startAttacked(t)
	r := signedRequest(t, "GET", "/dbs/d/colls/c/docs", nil, nil)
	cancel := binary.BigEndian.AppendUint32(nil, 8)
	const streams = 20_000
	c := speak(t, a.dial(t))
	sent := 0
	for ; sent < streams; sent++ {
		id := uint32(2*sent + 1)
		if _, err := c.Write(append(c.request(id, r, false), frameOf(frameReset, 0, id, cancel)...)); err != nil {
			break
		}
	}
	t.Logf("%d streams were sent, and %d requests begun", sent, a.began.Load())
	a.survives(t, 16<<20)
	_ = c.Close()
}

// Headers that never end (the continuation flood) end the connection at the limit of
// headers, whether they are valid or not.
func TestContinuationFlood(t *testing.T) {
	a := startAttacked(t)
	for name, fill := range map[string][]byte{
		"headers": fieldsOf("x-a", strings.Repeat("a", 8000)),
		"invalid": fieldsOf("X-A", strings.Repeat("a", 8000)),
	} {
		c := speak(t, a.dial(t))
		block := fieldsOf(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "localhost")
		err := c.send(frameHeaders, endStream, 1, block)
		sent := 0
		for ; err == nil && sent < 100<<20; sent += len(fill) {
			err = c.send(frameContinuation, 0, 1, fill)
		}
		if code := c.goodbye(); err == nil || code == 0 {
			t.Errorf("%s: the connection took %d bytes of headers, and ended with code %d", name, sent, code)
		}
	}
	if got := a.began.Load(); got != 0 {
		t.Errorf("%d requests were begun", got)
	}
	a.survives(t, 8<<20)
}

// Headers above the limit are refused with 431 if they end soon, and the connection goes
// on.
func TestHugeHeadersOfStream(t *testing.T) {
	a := startAttacked(t)
	c := speak(t, a.dial(t))
	r := signedRequest(t, "GET", "/dbs/d/colls/c/docs/i", nil, pk("p"))
	for i := range 63 {
		r.Header.Set("x-pad-"+string(rune('a'+i%26))+string(rune('a'+i/26)), strings.Repeat("a", 1000))
	}
	c.begin(t, 1, r, false)
	c.begin(t, 3, signedRequest(t, "GET", "/dbs/d/colls/c/docs/i", nil, pk("p")), false)
	ends := c.ends(t, 1, 3)
	if end := ends[1]; end == nil || end.status != 431 {
		t.Errorf("66 KB of headers: %+v", end)
	}
	if end := ends[3]; end == nil || end.status != 200 {
		t.Errorf("the request after it: %+v", end)
	}
}

// A client that makes the server send frames, and does not read them, is cut off. One
// that sends frames for nothing takes no memory.
func TestControlFloods(t *testing.T) {
	a := startAttacked(t)
	const cutOff = "pings"
	for name, frames := range map[string][]byte{
		cutOff:     bytes.Repeat(frameOf(framePing, 0, 0, make([]byte, 8)), 1000),
		"settings": bytes.Repeat(frameOf(frameSettings, 0, 0, []byte{0, settingFrame, 0, 0, 0x40, 0}), 1000),
		"unknown":  bytes.Repeat(frameOf(0x77, 0, 0, make([]byte, 8)), 1000),
		"empty":    bytes.Repeat(frameOf(frameData, 0, 1, nil), 1000),
	} {
		c := startStalled(t, a.dial(t))
		c.begin(t, 1, signedRequest(t, "POST", "/dbs/d/colls/c/docs", nil, pk("p")), true)
		sent, err := 0, error(nil)
		if name != cutOff {
			_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		}
		for ; err == nil && sent < 64<<20; sent += len(frames) {
			_, err = c.Write(frames)
		}
		if timeout := errors.Is(err, os.ErrDeadlineExceeded); name == cutOff && (err == nil || timeout) {
			t.Errorf("%s: %d bytes were sent until %v", name, sent, err)
		}
		a.survives(t, 8<<20)
		_ = c.Close()
	}
}

// Frames that the protocol forbids end their connection with an error.
func TestForbiddenFrames(t *testing.T) {
	a := startAttacked(t)
	conns := map[string]*frameConn{}
	for name, bad := range map[string][]byte{
		"a frame above the limit":     frameOf(frameData, 0, 1, make([]byte, maxFrameBytes+1)),
		"data of no stream":           frameOf(frameData, 0, 0, []byte("x")),
		"data of a stream not begun":  frameOf(frameData, 0, 9, []byte("x")),
		"an even stream":              frameOf(frameHeaders, endStream|endHeaders, 2, fieldsOf(":method", "GET")),
		"a window of nothing":         frameOf(frameWindow, 0, 0, make([]byte, 4)),
		"a window above all":          bytes.Repeat(frameOf(frameWindow, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff}), 2),
		"broken compression":          frameOf(frameHeaders, endStream|endHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}),
		"a continuation of nothing":   frameOf(frameContinuation, endHeaders, 1, nil),
		"settings of a wrong length":  frameOf(frameSettings, 0, 0, make([]byte, 5)),
		"a promise by a client":       frameOf(0x5, endHeaders, 1, make([]byte, 8)),
		"a reset of an unknown one":   frameOf(frameReset, 0, 5, make([]byte, 4)),
		"settings never sent":         bytes.Repeat(frameOf(frameSettings, 1, 0, nil), 2),
		"a window for all that is up": frameOf(frameSettings, 0, 0, []byte{0, settingWindow, 0xff, 0xff, 0xff, 0xff}),
	} {
		c := speak(t, a.dial(t))
		_, _ = c.Write(bad)
		conns[name] = c
	}
	for name, c := range conns {
		if code := c.goodbye(); code <= 0 {
			t.Errorf("%s: the connection ended with code %d", name, code)
		}
	}
	a.survives(t, 8<<20)
}

// A request that is refused before its body has come is answered, whatever its size, and
// the connection goes on.
func TestEarlyAnswersToStreams(t *testing.T) {
	a := startAttacked(t)
	const items = "/dbs/d/colls/c/docs"
	good := signedRequest(t, "POST", items, nil, pk("p"))
	good.Header.Set("Content-Length", "6000000")
	wrong := signedRequest(t, "POST", items, nil, map[string]string{"Authorization": "nonsense"})
	c := speak(t, a.dial(t))
	id := uint32(1)
	for name, want := range map[string]struct {
		r      *http.Request
		status int
	}{"announced": {good, 413}, "unsigned": {wrong, 401}} {
		c.begin(t, id, want.r, true)
		// As much as flow control permits, and more for streams that have ended.
		for range 4 {
			if err := c.send(frameData, 0, id, make([]byte, maxFrameBytes-1)); err != nil {
				t.Fatal(err)
			}
		}
		if end := c.ends(t, id)[id]; end == nil || end.status != want.status {
			t.Errorf("%s: %+v", name, end)
		}
		for range 400 { // 6.5 MB
			if err := c.send(frameData, 0, id, make([]byte, maxFrameBytes)); err != nil {
				t.Fatalf("%s: the client cannot send its request: %v", name, err)
			}
		}
		id += 2
	}
	c.begin(t, id, signedRequest(t, "GET", items+"/i", nil, pk("p")), false)
	if end := c.ends(t, id)[id]; end == nil || end.status != 200 {
		t.Errorf("the request after them: %+v", end)
	}
	a.survives(t, 8<<20)
}

// A client may leave no room for its answers. Without a valid credential it has a few
// seconds to accept one, and with one as long as over HTTP/1.1. An answer holds its own
// memory meanwhile.
func TestStreamsWithoutRoom(t *testing.T) { synctest.Test(t, streamsWithoutRoom) }

func streamsWithoutRoom(t *testing.T) {
	const size = 1 << 20
	h := newContainer(t)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"large","pk":"p","pad":"`+strings.Repeat("x", size-1000)+`"}`, pk("p"), 201)
	s, root := startStreams(t, h, func(*Server) {})
	began := time.Now()
	c := speak(t, root.dial(""), settingWindow, 0)
	strangers := []uint32{1, 3, 5}
	for _, id := range strangers {
		c.begin(t, id, signedRequest(t, "GET", "/dbs", nil, map[string]string{"Authorization": "nonsense"}), false)
	}
	friends := []uint32{7, 9, 11}
	for _, id := range friends {
		c.begin(t, id, signedRequest(t, "GET", "/dbs/d/colls/c/docs/large", nil, pk("p")), false)
	}
	synctest.Wait()
	if now := s.streams.now.Load(); now != 6 {
		t.Errorf("%d streams are under way", now)
	}
	if held := h.memory.Use().Held; held < 3*size || held > 3*(size+256<<10) {
		t.Errorf("three answers of %d bytes hold %d", size, held)
	}
	c.ends(t, strangers...)
	if took := time.Since(began); took != strangerTimeout {
		t.Errorf("answers to strangers were held for %v, want %v", took, strangerTimeout)
	}
	c.ends(t, friends...)
	if took := time.Since(began); took != writeTimeout {
		t.Errorf("answers to others were held for %v, want %v", took, writeTimeout)
	}
	synctest.Wait()
	if held, now := h.memory.Use().Held, s.streams.now.Load(); held != 0 || now != 0 {
		t.Errorf("%d bytes are held, and %d streams under way, after the last answer", held, now)
	}
}

// A client that reads nothing at all loses its connection, and its streams end.
func TestStalledStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newContainer(t)
		call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"large","pk":"p","pad":"`+strings.Repeat("x", 10_000)+`"}`, pk("p"), 201)
		s, root := startStreams(t, h, func(*Server) {})
		conn := root.dial("")
		c := startStalled(t, conn)
		began := time.Now()
		for id := uint32(1); id < 2*50; id += 2 {
			c.begin(t, id, signedRequest(t, "GET", "/dbs/d/colls/c/docs/large", nil, pk("p")), false)
		}
		synctest.Wait()
		if now := s.streams.now.Load(); now != 50 {
			t.Errorf("%d streams are under way", now)
		}
		for s.streams.now.Load() > 0 && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if took := time.Since(began); took > stalledTimeout+2*time.Second {
			t.Errorf("the streams ended after %v, want %v", took, stalledTimeout)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("the connection: %v", err)
		}
	})
}

// A body that does not come is answered with 408 after as long as over HTTP/1.1, and
// headers that do not come to their end close an otherwise idle connection.
func TestSlowStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newContainer(t)
		_, root := startStreams(t, h, func(*Server) {})
		began := time.Now()
		c := speak(t, root.dial(""))
		ids := []uint32{1, 3, 5}
		for _, id := range ids {
			c.begin(t, id, signedRequest(t, "POST", "/dbs/d/colls/c/docs", nil, pk("p")), true)
			if err := c.send(frameData, 0, id, []byte(`{"id":`)); err != nil {
				t.Fatal(err)
			}
		}
		for id, end := range c.ends(t, ids...) {
			if id != 0 && end.status != 408 {
				t.Errorf("stream %d: %+v", id, end)
			}
		}
		if took := time.Since(began); took != readTimeout {
			t.Errorf("answered after %v, want %v", took, readTimeout)
		}
		began = time.Now()
		half := c.request(7, signedRequest(t, "GET", "/dbs", nil, nil), false)
		if _, err := c.Write(half[:len(half)/2]); err != nil {
			t.Fatal(err)
		}
		c.goodbye()
		if took := time.Since(began); took > idleTimeout+2*time.Second {
			t.Errorf("half a request was held for %v", took)
		}
	})
}

// A client that tries many credentials is answered, and then has to connect again.
func TestStrangersHaveToConnectAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, root := startStreams(t, newContainer(t), func(*Server) {})
		began := time.Now()
		c := speak(t, root.dial(""))
		var ids []uint32
		for i := range uint32(40) {
			ids = append(ids, 2*i+1)
			c.begin(t, 2*i+1, signedRequest(t, "GET", "/dbs", nil, map[string]string{"Authorization": "nonsense"}), false)
		}
		for id, end := range c.ends(t, ids...) {
			if id != 0 && end.status != 401 {
				t.Errorf("stream %d: %+v", id, end)
			}
		}
		if code := c.goodbye(); code != 0 {
			t.Errorf("the connection ended with code %d", code)
		}
		if took := time.Since(began); took < maxStreamPause || took > maxStreamPause+2*time.Second {
			t.Errorf("the connection ended after %v", took)
		}
	})
}
