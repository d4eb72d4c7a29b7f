// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/rest"
)

// lockedLog is a log that a test reads while a server writes it.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// presents connects to a server as a client that trusts what the server offers, and returns
// the server's certificate. The client's clock shows the given time.
func presents(t *testing.T, s *testServer, name string, at time.Time) *x509.Certificate {
	t.Helper()
	res, err := s.client.Get("http://" + s.addr + "/_explorer/emulator.pem")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	offered, err := io.ReadAll(res.Body)
	roots := x509.NewCertPool()
	if err != nil || res.StatusCode != http.StatusOK || !roots.AppendCertsFromPEM(offered) {
		t.Fatalf("the offered certificate: %s, %v: %s", res.Status, err, offered)
	}
	conn, err := tls.Dial("tcp", s.addr, &tls.Config{RootCAs: roots, ServerName: name, Time: func() time.Time { return at }})
	if err != nil {
		t.Fatalf("a client that trusts the offered certificate: %v", err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// giveCertificate writes a certificate for a name into two files, as an operator gives one.
func giveCertificate(t *testing.T, dir, name string, at time.Time) (cert, key string) {
	t.Helper()
	certPEM, keyPEM, err := rest.MakeCertificate(at, name)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, text := range map[string][]byte{cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// later has a file look as if it was written later: the clock of a file system may be coarse.
func later(t *testing.T, files ...string) {
	t.Helper()
	at := time.Now().Add(time.Hour)
	for _, file := range files {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// A server presents the certificate that it was given, offers what clients must trust, and
// takes another from the files without a restart; but not one that cannot be used.
func TestGivenCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := giveCertificate(t, dir, "db.example", time.Now())
	var log lockedLog
	o := Options{Memory: true, TLSCert: cert, TLSKey: key, NoExplorer: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := serveTest(t, o)
	first := presents(t, s, "db.example", time.Now())
	k := &keeper{server: s.Server, ends: first.NotAfter, changed: s.options.certificateChanged()}
	k.look(time.Now())
	if log.String() != "" {
		t.Errorf("without a change the log has %s", log.String())
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	later(t, cert)
	k.look(time.Now())
	if !strings.Contains(log.String(), "cannot be replaced") || !presents(t, s, "db.example", time.Now()).Equal(first) {
		t.Errorf("a file that is no certificate: the log has %s", log.String())
	}
	giveCertificate(t, dir, "other.example", time.Now())
	k.look(time.Now())
	if second := presents(t, s, "other.example", time.Now()); second.Equal(first) {
		t.Error("the certificate in the files was not taken")
	}
	k.look(k.ends.Add(-time.Hour))
	if !strings.Contains(log.String(), "about to end") {
		t.Errorf("near its end the log has %s", log.String())
	}
}

// The certificate that a server makes is replaced while it runs, a day before its end, and
// the log tells of that a month before.
func TestMadeCertificateIsRenewed(t *testing.T) {
	var log lockedLog
	for _, o := range []Options{{Memory: true}, {Dir: t.TempDir()}} {
		o.TLSNames, o.Logger = []string{"db.example"}, slog.New(slog.NewTextHandler(&log, nil))
		s := serveTest(t, o)
		first := presents(t, s, "db.example", time.Now())
		k := &keeper{server: s.Server, ends: first.NotAfter}
		k.look(first.NotAfter.Add(-20 * 24 * time.Hour))
		if !strings.Contains(log.String(), "about to end") || !presents(t, s, "db.example", time.Now()).Equal(first) {
			t.Errorf("20 days before its end: the log has %s", log.String())
		}
		almost := first.NotAfter.Add(-23 * time.Hour)
		k.look(almost)
		second := presents(t, s, "db.example", almost)
		if second.Equal(first) || second.NotAfter.Before(almost.Add(800*24*time.Hour)) || !strings.Contains(log.String(), "which clients must trust") {
			t.Errorf("a day before its end: the certificate ends at %v, the log has %s", second.NotAfter, log.String())
		}
		s.stop(t)
	}
}

func TestBadCertificateSettings(t *testing.T) {
	dir := t.TempDir()
	cert, key := giveCertificate(t, dir, "db.example", time.Now())
	old := t.TempDir()
	oldCert, oldKey := giveCertificate(t, old, "db.example", time.Now().Add(-900*24*time.Hour))
	for text, o := range map[string]Options{
		"give both":     {TLSCert: cert},
		"leave it out":  {TLSCert: cert, TLSKey: key, TLSNames: []string{"a.example"}},
		"neither":       {TLSNames: []string{"not a name"}},
		"expired on":    {TLSCert: oldCert, TLSKey: oldKey},
		"no such file":  {TLSCert: filepath.Join(dir, "none.pem"), TLSKey: key},
		"cannot be use": {TLSCert: key, TLSKey: key},
	} {
		o.Memory = true
		s, err := Open(o)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q in it", o.TLSCert, err, text)
		}
	}
}
