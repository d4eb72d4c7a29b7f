// SPDX-License-Identifier: MIT

package mayfly

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
)

// ownKey is a key other than WellKnownKey.
const ownKey = "YSBrZXkgb2Ygb3VyIG93biwgMzIgYnl0ZXMgbG9uZyEhISE="

func TestDataSurvivesReopening(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := serveTest(t, o)
	s.makeContainer(t)
	want := s.must(t, 201, "POST", items, `{"id":"i","pk":"p"}`, pk("p"))
	s.stop(t)

	s = serveTest(t, o)
	got := s.must(t, 200, "GET", items+"/i", "", pk("p"))
	if !bytes.Equal(got.body, want.body) || got.header.Get("etag") != want.header.Get("etag") {
		t.Errorf("after reopening: %s, want %s", got.body, want.body)
	}
}

func TestMemoryKeepsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	s := serveTest(t, Options{Memory: true})
	s.makeContainer(t)
	s.must(t, 201, "POST", items, `{"id":"i","pk":"p"}`, pk("p"))
	s.stop(t)
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
	s = serveTest(t, Options{Memory: true})
	if a := s.must(t, 200, "GET", "/dbs", "", nil); !bytes.Contains(a.body, []byte(`"_count":0`)) {
		t.Errorf("a new database in memory holds %s", a.body)
	}
}

// TestShutdownLosesNothing stops the server under writers. Every write that was
// acknowledged is there afterwards, and every other one got an error.
func TestShutdownLosesNothing(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := serveTest(t, o)
	s.makeContainer(t)
	const writers = 8
	var (
		wg       sync.WaitGroup
		enough   = make(chan struct{})
		finished atomic.Int64
		acked    [writers][]string
	)
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("w%d-%d", w, i)
				a, err := s.do(s.request(t, "POST", items, strings.NewReader(`{"id":"`+id+`","pk":"p"}`), pk("p")))
				if err != nil || a.status != 201 {
					if err == nil && a.status != 503 {
						t.Errorf("%s: status %d: %s", id, a.status, a.body)
					}
					return
				}
				acked[w] = append(acked[w], id)
				if finished.Add(1) == 200 {
					close(enough)
				}
			}
		})
	}
	<-enough
	s.stop(t)
	wg.Wait()

	s = serveTest(t, o)
	n := 0
	for _, ids := range acked {
		for _, id := range ids {
			s.must(t, 200, "GET", items+"/"+id, "", pk("p"))
			n++
		}
	}
	if n < 200 {
		t.Errorf("%d writes were acknowledged, want 200 at least", n)
	}
	s.stop(t)
	checkClean(t, o.Dir)
}

// checkClean fails if a check of the data finds anything.
func checkClean(t *testing.T, dir string) CheckReport {
	t.Helper()
	report, err := Check(dir, nil)
	if err != nil || report.Found > 0 {
		t.Errorf("Check = %v, %d problems: %q", err, report.Found, report.Problems)
	}
	return report
}

// TestCloseUnderLoad closes without Shutdown while clients read and write: each gets an
// answer or the end of its connection, and Close returns no error.
func TestCloseUnderLoad(t *testing.T) {
	for range 3 {
		s := serveTest(t, Options{Memory: true})
		s.makeContainer(t)
		pad := strings.Repeat("x", 50_000)
		for i := range 20 {
			s.must(t, 201, "POST", items, fmt.Sprintf(`{"id":"i%d","pk":"p","pad":"%s"}`, i, pad), pk("p"))
		}
		underWay := make(chan struct{}, 1)
		load := func(method, path, body string) {
			for {
				a, err := s.do(s.request(t, method, path, strings.NewReader(body), pk("p")))
				if err != nil {
					return
				}
				if a.status >= 400 && a.status != 503 && a.status != 409 {
					t.Errorf("%s %s: status %d: %s", method, path, a.status, a.body)
				}
				select {
				case underWay <- struct{}{}:
				default:
				}
			}
		}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { load("GET", items, "") })
			wg.Go(func() { load("GET", items+"/i3", "") })
			wg.Go(func() { load("PUT", items+"/i3", fmt.Sprintf(`{"id":"i3","pk":"p","n":%d}`, i)) })
		}
		<-underWay
		<-underWay
		if err := s.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
		wg.Wait()
		s.stop(t)
	}
}

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	s := serveTest(t, Options{Dir: dir})
	_, err := Open(Options{Dir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second Open = %v, want ErrInUse and the directory", err)
	}
	if _, err := Check(dir, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("Check of data in use = %v, want ErrInUse", err)
	}
	s.must(t, 200, "GET", "/dbs", "", nil) // the first server goes on
	s.stop(t)
	serveTest(t, Options{Dir: dir})
}

func TestTestClockData(t *testing.T) {
	dir := t.TempDir()
	s := serveTest(t, Options{Dir: dir, TestClock: true})
	if err := s.Clock().Advance(1000 * time.Hour); err != nil {
		t.Fatal(err)
	}
	ahead := s.Clock().Now()
	s.stop(t)

	_, err := Open(Options{Dir: dir})
	if !errors.Is(err, clock.ErrTestData) || !strings.Contains(err.Error(), "--test-clock") {
		t.Errorf("Open without the test clock = %v, want a refusal that names it", err)
	}
	s = serveTest(t, Options{Dir: dir, TestClock: true}) // the failed Open holds no lock
	if now := s.Clock().Now(); now.Before(ahead) {
		t.Errorf("the time is %v, and was %v", now, ahead)
	}
}

func TestListenBeyondLoopback(t *testing.T) {
	padded := WellKnownKey[:len(WellKnownKey)-3] + "x==" // other spare bits, same bytes
	for _, key := range []string{"", WellKnownKey, WellKnownKey + "\n", WellKnownKey[:40] + "\r\n" + WellKnownKey[40:], padded} {
		for _, address := range []string{"0.0.0.0:0", "[::]:0"} {
			s, err := Open(Options{Memory: true, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Skipf("cannot listen on %s: %v", address, err)
			}
			if err := s.Serve(l); !errors.Is(err, ErrNeedsKey) {
				t.Errorf("Serve on %s with the key %q = %v, want ErrNeedsKey", address, key, err)
			}
			if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
				t.Errorf("the port of %s is still open", address)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s, err := Open(Options{Memory: true, Key: ownKey})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ts := &testServer{Server: s, addr: "127.0.0.1:" + port, client: &http.Client{Timeout: waitLimit}, served: served}
	ts.must(t, 200, "GET", "/dbs", "", nil)
	ts.stop(t)
}

// changeRow writes one row of a stopped server's data.
func changeRow(t *testing.T, dir string, change func(*kv.Batch)) {
	t.Helper()
	db, err := pebblekv.Open(pebblekv.Options{Dir: Options{Dir: dir}.dataDir()})
	if err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	change(&b)
	if err := errors.Join(db.Commit(t.Context(), &b), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// rowOf reads one row of a stopped server's data.
func rowOf(t *testing.T, dir string, key []byte) []byte {
	t.Helper()
	db, err := pebblekv.Open(pebblekv.Options{Dir: Options{Dir: dir}.dataDir()})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	row, found, err := snap.Get(key)
	snap.Close()
	if err := errors.Join(err, db.Close()); err != nil || !found {
		t.Fatalf("row %s: found %v, %v", key, found, err)
	}
	return row
}

func TestNewerFormat(t *testing.T) {
	const newer = 99
	dir := t.TempDir()
	serveTest(t, Options{Dir: dir}).stop(t)
	ours := rowOf(t, dir, catalog.FormatKey)
	changeRow(t, dir, func(b *kv.Batch) { b.Set(catalog.FormatKey, []byte{newer}) })
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), "it is 99") {
		t.Errorf("Open = %v, want ErrNewerFormat", err)
	}
	if _, err := Check(dir, nil); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("Check = %v, want ErrNewerFormat", err)
	}
	changeRow(t, dir, func(b *kv.Batch) { b.Set(catalog.FormatKey, ours) })
	serveTest(t, Options{Dir: dir})
}

func TestDamagedSystemRows(t *testing.T) {
	dir := t.TempDir()
	s := serveTest(t, Options{Dir: dir})
	s.makeContainer(t)
	s.stop(t)
	for _, key := range []string{string(catalog.FormatKey), string(catalog.ClockKey), "cd\x00\x00\x00\x01", "cc\x00\x00\x00\x01\x00\x00\x00\x01", "cs"} {
		for _, garbage := range []string{"", "garbage", "\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("{", 100)} {
			old := readRow(t, dir, key)
			changeRow(t, dir, func(b *kv.Batch) { b.Set([]byte(key), []byte(garbage)) })
			if s, err := Open(Options{Dir: dir}); err == nil {
				t.Errorf("data whose row %q is %q can be opened", key, garbage)
				_ = s.Close()
			} else if len(err.Error()) < 20 {
				t.Errorf("row %q: the error of Open is only %q", key, err)
			}
			changeRow(t, dir, func(b *kv.Batch) { b.Set([]byte(key), old) })
		}
	}
	s = serveTest(t, Options{Dir: dir})
	s.must(t, 200, "GET", "/dbs/d/colls/c", "", nil)
}

func readRow(t *testing.T, dir, key string) []byte {
	t.Helper()
	db, err := pebblekv.Open(pebblekv.Options{Dir: Options{Dir: dir}.dataDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	raw, found, err := snap.Get([]byte(key))
	if err != nil || !found {
		t.Fatalf("row %q: found %v, %v", key, found, err)
	}
	return raw
}

func TestOpenRefusesOptions(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	dir := t.TempDir()
	for _, o := range []Options{
		{Dir: dir, Key: "not base64!"},
		{Dir: dir, Consistency: "Often"},
		{Dir: dir, Throughput: "some"},
		{Dir: dir, ContainerQuota: -1},
		{Dir: dir, PartitionKeyQuota: -1},
		{Dir: dir, CacheBytes: -1},
		{Dir: dir, ScriptTime: -1},
		{Dir: dir, MemoryBytes: -1},
		{Dir: filepath.Join(dir, "file", "below")},
	} {
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(o); err == nil {
			t.Errorf("Open(%+v) succeeds", o)
			_ = s.Close()
		}
	}
	serveTest(t, Options{Dir: dir}).stop(t) // the failed Opens hold no lock
	goleak.VerifyNone(t, leaks)
}

func TestCheck(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nothing")
	if _, err := Check(missing, nil); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("Check of nothing = %v, want an error that names it", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("Check has created the directory that it checks")
	}

	dir := t.TempDir()
	s := serveTest(t, Options{Dir: dir})
	s.makeContainer(t)
	for i := range 10 {
		s.must(t, 201, "POST", items, fmt.Sprintf(`{"id":"i%d","pk":"p%d","ttl":100}`, i, i), pk(fmt.Sprintf("p%d", i)))
	}
	s.stop(t)
	var progress []CheckProgress
	report, err := Check(dir, func(p CheckProgress) { progress = append(progress, p) })
	if err != nil || report.Found != 0 || report.Items != 10 || report.Bytes == 0 {
		t.Errorf("Check = %+v, %v, want 10 items and no problem", report, err)
	}
	if len(progress) < 2 || progress[0] != (CheckProgress{AllItems: 10}) || progress[len(progress)-1] != (CheckProgress{Items: 10, AllItems: 10}) {
		t.Errorf("the progress is %+v", progress)
	}
	// Remove one row of each kind of the partition.
	for _, space := range []string{"d", "k", "f"} {
		key := firstKey(t, dir, "p\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00"+space)
		row := readRow(t, dir, key)
		changeRow(t, dir, func(b *kv.Batch) { b.Delete([]byte(key), 0) })
		report, err := Check(dir, nil)
		if err != nil || report.Found == 0 || len(report.Problems) == 0 || len(report.Problems[0]) < 20 {
			t.Errorf("without the row %q: Check = %+v, %v, want a problem in a sentence", key, report, err)
		}
		changeRow(t, dir, func(b *kv.Batch) { b.Set([]byte(key), row) })
	}
	checkClean(t, dir)
}

// firstKey returns the first key that begins with prefix.
func firstKey(t *testing.T, dir, prefix string) string {
	t.Helper()
	db, err := pebblekv.Open(pebblekv.Options{Dir: Options{Dir: dir}.dataDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for e, err := range snap.Scan([]byte(prefix), nil, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(e.Key, []byte(prefix)) {
			return string(e.Key)
		}
		break
	}
	t.Fatalf("no row begins with %q", prefix)
	return ""
}

// HTTPS works from the first start, for a client that trusts the certificate.
func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	if _, err := Certificate(dir); err == nil {
		t.Error("there is a certificate before the first start")
	}
	s := serveTest(t, Options{Dir: dir})
	pem, err := Certificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	r := s.request(t, "GET", "/", nil, nil)
	r.URL.Scheme = "https"
	res, err := (&http.Client{Transport: transport, Timeout: waitLimit}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte(`"databaseAccountEndpoint":"https://`+s.addr+`/"`)) {
		t.Errorf("the account over HTTPS: %v: %s", err, body)
	}
	if res.Proto != "HTTP/1.1" {
		t.Errorf("the server speaks %s", res.Proto)
	}
}

func TestServeAfterShutdown(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err != nil {
		t.Errorf("Serve after Shutdown = %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is still open")
	}
}

// Connected clients without a request under way do not hold up Shutdown: one that has
// sent nothing, one that has sent the start of a request, one that has its answer, and
// the same over TLS.
func TestShutdownWithIdleClients(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	var conns []net.Conn
	for _, begin := range []string{"", "GET / HT", s.head(t, "GET", "/dbs", nil) + "\r\n"} {
		plain, secure := s.dial(t), tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true})
		if err := secure.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, conn := range []net.Conn{plain, secure} {
			if _, err := io.WriteString(conn, begin); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(begin, "\r\n\r\n") {
				readReply(t, bufio.NewReader(conn))
			}
			conns = append(conns, conn)
		}
	}
	s.stop(t)
	for _, conn := range conns {
		ended(t, conn)
	}
}

func TestConnectionString(t *testing.T) {
	s, err := Open(Options{Memory: true, Key: " " + ownKey[:20] + "\n" + ownKey[20:] + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, want := s.ConnectionString("http://x/"), "AccountEndpoint=http://x/;AccountKey="+ownKey+";"; got != want {
		t.Errorf("the connection string is %q, want %q", got, want)
	}
}
