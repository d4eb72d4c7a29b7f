// SPDX-License-Identifier: MIT

package mayflytest_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/mayflytest"
)

// This is how a test uses the package, without any SDK: an item with a TTL of an hour is
// there, then an hour passes, and it is gone.
func TestAnItemExpiresWhenTheClockIsAdvanced(t *testing.T) {
	s := mayflytest.Start(t)
	c := client{t: t, server: s, endpoint: s.Endpoint, http: httpClient(t, nil)}

	c.want(201, c.post("dbs", "", `{"id":"shop"}`))
	c.want(201, c.post("colls", "dbs/shop", `{"id":"carts","partitionKey":{"paths":["/id"]},"defaultTtl":3600}`))
	if err := s.Clock.Freeze(); err != nil {
		t.Fatal(err)
	}
	c.want(201, c.post("docs", "dbs/shop/colls/carts", `{"id":"7","books":2}`))

	if err := s.Clock.Advance(time.Hour - time.Millisecond); err != nil {
		t.Fatal(err)
	}
	c.want(200, c.get("docs", "dbs/shop/colls/carts/docs/7", `["7"]`))
	if err := s.Clock.Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	c.want(404, c.get("docs", "dbs/shop/colls/carts/docs/7", `["7"]`))
}

// The README has this function.
func TestCartsEnd(t *testing.T) {
	s := mayflytest.Start(t) // in memory, on a free port, stopped at the end of the test
	// … s.Endpoint and s.Key go to the SDK …
	if err := s.Clock.Advance(24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	// … and the cart is gone.
}

// This program does not call mayfly.RunScriptWorker: scripts are refused with a message
// that names it. Everything else works.
func TestScriptsNeedAWorker(t *testing.T) {
	s := mayflytest.Start(t)
	c := client{t: t, server: s, endpoint: s.Endpoint, http: httpClient(t, nil)}
	c.want(201, c.post("dbs", "", `{"id":"shop"}`))
	c.want(201, c.post("colls", "dbs/shop", `{"id":"carts","partitionKey":{"paths":["/id"]}}`))
	r := c.post("udfs", "dbs/shop/colls/carts", `{"id":"f","body":"x => x"}`)
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != 400 || !bytes.Contains(body, []byte("mayfly.RunScriptWorker")) {
		t.Errorf("create of a function: %s: %s", r.Status, body)
	}
}

func TestHTTPSWithTheServersCertificate(t *testing.T) {
	s := mayflytest.Start(t)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := client{t: t, server: s, endpoint: s.HTTPSEndpoint, http: httpClient(t, roots)}
	c.want(200, c.get("", "", ""))
}

func TestServersAreApart(t *testing.T) {
	a, b := mayflytest.Start(t), mayflytest.Start(t)
	if a.Endpoint == b.Endpoint {
		t.Fatalf("both are at %s", a.Endpoint)
	}
	for _, s := range []*mayflytest.Server{a, b} {
		c := client{t: t, server: s, endpoint: s.Endpoint, http: httpClient(t, nil)}
		c.want(201, c.post("dbs", "", `{"id":"shop"}`))
	}
	before := b.Clock.Now()
	if err := a.Clock.Advance(365 * 24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if passed := b.Clock.Now().Sub(before); passed > 24*time.Hour {
		t.Errorf("the clock of the other server moved by %v", passed)
	}
}

func TestOptions(t *testing.T) {
	var log bytes.Buffer
	s := mayflytest.Start(t, func(o *mayfly.Options) {
		o.Key = base64.StdEncoding.EncodeToString([]byte("a key of one's own"))
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	if want := "AccountEndpoint=" + s.Endpoint + ";AccountKey=" + s.Key + ";"; s.ConnectionString() != want {
		t.Errorf("got %s, want %s", s.ConnectionString(), want)
	}
	c := client{t: t, server: s, endpoint: s.Endpoint, http: httpClient(t, nil)}
	c.want(200, c.get("", "", ""))
	s.Key = mayfly.WellKnownKey
	c.want(401, c.get("", "", ""))
}

func TestEverythingEndsWithTheTest(t *testing.T) {
	defer goleak.VerifyNone(t)
	var endpoint string
	t.Run("server", func(t *testing.T) {
		s := mayflytest.Start(t)
		endpoint = s.Endpoint
		c := client{t: t, server: s, endpoint: s.Endpoint, http: httpClient(t, nil)}
		c.want(201, c.post("dbs", "", `{"id":"shop"}`))
		c.want(201, c.post("colls", "dbs/shop", `{"id":"carts","partitionKey":{"paths":["/id"]},"defaultTtl":60}`))
		c.want(201, c.post("docs", "dbs/shop/colls/carts", `{"id":"7"}`))
		s.Certificate()
	})
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if r, err := h.Get(endpoint); err == nil {
		r.Body.Close()
		t.Errorf("the server still answers: %s", r.Status)
	}
}

// httpClient returns a client whose connections are closed at the end of the test, before
// the server is stopped.
func httpClient(t *testing.T, roots *x509.CertPool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// client is a minimal client of the protocol.
type client struct {
	t        *testing.T
	server   *mayflytest.Server
	endpoint string
	http     *http.Client
}

// post creates a resource of the kind below parent.
func (c client) post(kind, parent, body string) *http.Response {
	return c.do(http.MethodPost, kind, parent, strings.TrimPrefix(parent+"/"+kind, "/"), "", body)
}

func (c client) get(kind, link, partitionKey string) *http.Response {
	return c.do(http.MethodGet, kind, link, link, partitionKey, "")
}

func (c client) do(method, kind, link, path, partitionKey, body string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequest(method, c.endpoint+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	key, err := base64.StdEncoding.DecodeString(c.server.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, strings.ToLower(method)+"\n"+kind+"\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	token := "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	r.Header.Set("Authorization", url.QueryEscape(token))
	r.Header.Set("x-ms-date", date)
	if partitionKey != "" {
		r.Header.Set("x-ms-documentdb-partitionkey", partitionKey)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

func (c client) want(status int, r *http.Response) {
	c.t.Helper()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if r.StatusCode != status {
		c.t.Fatalf("%s %s: got %s: %s, want %d", r.Request.Method, r.Request.URL.Path, r.Status, body, status)
	}
}
