// SPDX-License-Identifier: MIT

package rest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// certificateTime is when the certificates of these tests are made.
var certificateTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// handshake connects to a server that has pair, at now, as a client that trusts only
// rootPEM and expects the server to be host.
func handshake(t *testing.T, pair tls.Certificate, rootPEM []byte, host string, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(rootPEM) {
		t.Fatal("no certificate in the PEM")
	}
	clientEnd, serverEnd := net.Pipe()
	defer func() { _ = clientEnd.Close() }()
	server := tls.Server(serverEnd, &tls.Config{Certificates: []tls.Certificate{pair}})
	go func() {
		_, _ = io.WriteString(server, "hello")
		_ = serverEnd.Close()
	}()
	client := tls.Client(clientEnd, &tls.Config{RootCAs: roots, ServerName: host, Time: func() time.Time { return now }})
	hello := make([]byte, 5)
	_, err := io.ReadFull(client, hello)
	return err
}

// lastCertificate returns the root of a chain in PEM.
func lastCertificate(t *testing.T, certPEM []byte) []byte {
	t.Helper()
	chain, err := parseChain(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	return encodeCertificate(chain[len(chain)-1])
}

func TestCertificateIsTrusted(t *testing.T) {
	certPEM, keyPEM, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range [][]byte{certPEM, lastCertificate(t, certPEM)} {
		for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
			if err := handshake(t, pair, trusted, host, certificateTime); err != nil {
				t.Errorf("host %s: %v", host, err)
			}
		}
	}
	var hostname x509.HostnameError
	if err := handshake(t, pair, certPEM, "elsewhere.example", certificateTime); !errors.As(err, &hostname) {
		t.Errorf("another host: %v, want a HostnameError", err)
	}
	other, _, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	if err := handshake(t, pair, other, "localhost", certificateTime); !errors.As(err, &unknown) {
		t.Errorf("a client that trusts another server's certificate: %v, want an UnknownAuthorityError", err)
	}
}

func TestCertificateNamesThisMachine(t *testing.T) {
	name, err := os.Hostname()
	if err != nil || !isHostName(strings.ToLower(name)) {
		t.Skipf("this machine has no name that a certificate can hold: %q, %v", name, err)
	}
	certPEM, _, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := parseChain(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	if err := chain[0].VerifyHostname(name); err != nil {
		t.Error(err)
	}
}

func TestCertificateLifetime(t *testing.T) {
	certPEM, keyPEM, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		after time.Duration
		valid bool
	}{
		{-61 * time.Minute, false}, {-59 * time.Minute, true}, {0, true}, {824 * day, true}, {825 * day, false},
	} {
		err := handshake(t, pair, certPEM, "localhost", certificateTime.Add(c.after))
		var invalid x509.CertificateInvalidError
		if c.valid != (err == nil) || (!c.valid && !errors.As(err, &invalid)) {
			t.Errorf("%v after it was made: %v, want valid = %t", c.after, err, c.valid)
		}
	}
	// Both ends count: a second more would be the 826th day.
	if life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) + time.Second; life > 825*day {
		t.Errorf("valid for %v, macOS accepts 825 days", life)
	}
}

// What clients other than Go's require of a root and of a server's certificate.
func TestCertificateRoles(t *testing.T) {
	certPEM, _, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := parseChain(certPEM)
	if err != nil || len(chain) != 2 {
		t.Fatalf("chain of %d, %v, want 2", len(chain), err)
	}
	leaf, root := chain[0], chain[1]
	if leaf.Subject.CommonName != "Mayfly" || leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("server's certificate: name %q, CA %t, usage %b", leaf.Subject.CommonName, leaf.IsCA, leaf.KeyUsage)
	}
	if len(leaf.AuthorityKeyId) == 0 || string(leaf.AuthorityKeyId) != string(root.SubjectKeyId) {
		t.Error("the server's certificate does not name the root's key, which Python 3.13 asks for")
	}
	if !root.IsCA || !root.MaxPathLenZero || root.KeyUsage != x509.KeyUsageCertSign {
		t.Errorf("root: CA %t, path length 0 %t, usage %b", root.IsCA, root.MaxPathLenZero, root.KeyUsage)
	}
	if string(leaf.RawSubjectPublicKeyInfo) == string(root.RawSubjectPublicKeyInfo) {
		t.Error("the key that is kept is the root's")
	}
}

func TestIsHostName(t *testing.T) {
	for _, host := range []string{"a", "db.example", "my_service", "a-b.c", "*.apps.example", strings.Repeat("a", 63), strings.Repeat("a.", 126) + "a"} {
		if !isHostName(host) {
			t.Errorf("%q may not stand in a certificate", host)
		}
	}
	for _, host := range []string{
		"", " ", "a b", "host:8081", "http://host", "a..b", ".a", "a.", "ü.example", "*", "a.*.b", "[::1]", "fe80::1%eth0",
		strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", "a\x00b",
	} {
		if isHostName(host) {
			t.Errorf("%q may stand in a certificate", host)
		}
	}
}

// A certificate file is read as certificates or refused, whatever it contains.
func FuzzParseChain(f *testing.F) {
	certPEM, keyPEM, err := MakeCertificate(certificateTime)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(certPEM)
	f.Add(append(keyPEM, certPEM...))
	f.Add(certPEM[:len(certPEM)/3])
	f.Add(keyPEM)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		chain, err := parseChain(data)
		if err != nil && (chain != nil || !errors.Is(err, ErrBadCertificate)) {
			t.Errorf("parseChain = %d certificates, %v, want %v", len(chain), err, ErrBadCertificate)
		}
		if err == nil && (len(chain) == 0 || len(chain) > maxChainLength) {
			t.Errorf("parseChain = %d certificates", len(chain))
		}
	})
}

func TestParseChainLimit(t *testing.T) {
	certPEM, _, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	one := string(lastCertificate(t, certPEM))
	if chain, err := parseChain([]byte(strings.Repeat(one, maxChainLength))); err != nil || len(chain) != maxChainLength {
		t.Errorf("at the limit: %d, %v", len(chain), err)
	}
	if _, err := parseChain([]byte(strings.Repeat(one, maxChainLength+1))); !errors.Is(err, ErrBadCertificate) {
		t.Errorf("beyond the limit: %v, want %v", err, ErrBadCertificate)
	}
}

func BenchmarkMakeCertificate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := MakeCertificate(certificateTime); err != nil {
			b.Fatal(err)
		}
	}
}
