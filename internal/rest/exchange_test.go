// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// TestBodySizes reads bodies of every critical size, announced and in chunks, in large
// and small pieces. Their memory is given back.
func TestBodySizes(t *testing.T) {
	h, _ := logged(t)
	for _, size := range []int{
		0, 1, memory.FreeBytes - 1, memory.FreeBytes, memory.FreeBytes + 1, 4 * memory.FreeBytes, 4*memory.FreeBytes + 1, 1 << 20,
		maxBodyBytes - 1, maxBodyBytes, maxBodyBytes + 1, maxBodyBytes + memory.FreeBytes,
	} {
		text := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for name, pieces := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "half reads": iotest.HalfReader, "late end": iotest.DataErrReader,
		} {
			for _, length := range []int64{int64(size), -1} {
				r := &http.Request{URL: &url.URL{}, Body: io.NopCloser(pieces(bytes.NewReader(text))), ContentLength: length}
				x := h.exchange(nil, r)
				body, err := x.body()
				switch {
				case size > maxBodyBytes && !errors.Is(err, errBodyTooBig):
					t.Errorf("%d bytes, length %d, %s: %v, want errBodyTooBig", size, length, name, err)
				case size <= maxBodyBytes && (err != nil || !bytes.Equal(body, text)):
					t.Errorf("%d bytes, length %d, %s: %d bytes, %v", size, length, name, len(body), err)
				}
				if err == nil && size > memory.FreeBytes && x.Share.Used() != int64(api.BodyCopies*size) && length > 0 {
					t.Errorf("%d bytes, length %d, %s: %d bytes of memory", size, length, name, x.Share.Used())
				}
				x.Share.Close()
			}
		}
	}
}

// A body that ends too early is not taken for a shorter one.
func TestCutBodies(t *testing.T) {
	h, _ := logged(t)
	broken := errors.New("the line broke")
	for _, size := range []int{0, 1, memory.FreeBytes, memory.FreeBytes + 1, 1 << 20} {
		text := strings.Repeat("x", size)
		for name, c := range map[string]struct {
			body   io.Reader
			length int64
		}{
			"announced, ends":  {strings.NewReader(text), int64(size) + 1},
			"announced, fails": {io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), int64(size) + 1},
			"chunks, fails":    {io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), -1},
			"chunks, cut":      {io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)), -1},
		} {
			x := h.exchange(nil, &http.Request{URL: &url.URL{}, Body: io.NopCloser(c.body), ContentLength: c.length})
			body, err := x.body()
			if !errors.Is(err, errBodyCut) || body != nil {
				t.Errorf("%s after %d bytes: %d bytes, %v, want errBodyCut", name, size, len(body), err)
			}
			x.Share.Close()
		}
	}
}

// A body for which there is no memory is refused after a while, and the client is told to
// try again.
func TestBodiesDoNotWaitForEver(t *testing.T) {
	h, _ := logged(t)
	synctest.Test(t, func(t *testing.T) {
		defer takeAll(t, h).Close()
		x := h.exchange(nil, &http.Request{URL: &url.URL{}, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<20))), ContentLength: 1 << 20})
		began := time.Now()
		if _, err := x.body(); !errors.Is(err, memory.ErrFull) || time.Since(began) != memory.MaxWait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		a := serve(failWith{h, memory.ErrFull}, errorRequest(t))
		if wait := a.header.Get(headerRetryAfter); a.status != 429 || wait == "" {
			t.Errorf("status %d, to be tried again after %q", a.status, wait)
		}
	})
}

// More headers can be set than an exchange has room for. The last value of each counts.
func TestManyResponseHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	x := &exchange{w: w, r: httptest.NewRequest("GET", "/", nil)}
	const n = 3 * fieldsAtOnce
	for i := range n {
		x.set(fmt.Sprintf("X-%d", i), "before")
		x.set(fmt.Sprintf("X-%d", i), fmt.Sprint(i))
	}
	x.placeFields()
	for i := range n {
		if got := w.Header()[fmt.Sprintf("x-%d", i)]; len(got) != 1 || got[0] != fmt.Sprint(i) {
			t.Errorf("header %d is %q", i, got)
		}
	}
}

// The Java SDK finds headers in lower case only.
func TestHeadersAreSentInLowerCase(t *testing.T) {
	h := newEngineHandler(t)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, signedRequest(t, http.MethodPost, "/dbs", []byte(`{"id":"e"}`), nil))
	sent := map[string]bool{}
	for name := range w.Header() {
		sent[name] = true
		if name != strings.ToLower(name) && name != "Content-Type" && name != "Content-Length" {
			t.Errorf("the header %s is sent", name)
		}
	}
	if w.Code != http.StatusCreated || !sent["x-ms-request-charge"] || !sent["etag"] {
		t.Errorf("status %d, headers %v", w.Code, w.Header())
	}
}

// A server whose engine cannot serve is alive, but not ready.
func TestNotReady(t *testing.T) {
	db, err := pebblekv.OpenMemory(pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	e, err := engine.Open(engine.Options{DB: db, Explain: api.Explain})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Engine: e, Keys: []string{testKey}, Account: api.Account{Regions: []string{"Here"}, Consistency: "Session"}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(page string) answer {
		r, err := http.NewRequest("GET", "http://localhost/_mayfly/"+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		return serve(h, r)
	}
	if a := ask("ready"); a.status != 200 {
		t.Errorf("ready: status %d: %s", a.status, a.body)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	a := ask("ready")
	if a.status != 503 || a.json(t)["reason"] != "the server is stopping" {
		t.Errorf("ready after the engine was closed: status %d: %s", a.status, a.body)
	}
	if a := ask("health"); a.status != 200 {
		t.Errorf("health: status %d: %s", a.status, a.body)
	}
}
