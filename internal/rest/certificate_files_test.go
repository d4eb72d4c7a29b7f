// SPDX-License-Identifier: MIT

package rest

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

const (
	certificateYear    = 365 * 24 * time.Hour
	certificateExpired = 3 * certificateYear
)

// loadCertificate is LoadOrMakeCertificate for tests in which it must work.
func loadCertificate(t *testing.T, dir string, now time.Time) tls.Certificate {
	t.Helper()
	pair, err := LoadOrMakeCertificate(dir, now, CertificateWish{})
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func sameCertificate(a, b tls.Certificate) bool { return a.Leaf.Equal(b.Leaf) }

// dirContents returns every file of dir.
func dirContents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// putCertificateFiles writes files into a fresh directory; nil leaves a file out.
func putCertificateFiles(t *testing.T, cert, key []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{certificateFile: cert, keyFile: key} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCertificateFilesFirstStart(t *testing.T) {
	dir := t.TempDir()
	if _, err := CertificatePEM(dir); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("CertificatePEM before the first start = %v, want %v", err, ErrNoCertificate)
	}
	first := loadCertificate(t, dir, certificateTime)
	trusted, err := CertificatePEM(dir)
	if err != nil {
		t.Fatal(err)
	}
	if chain, err := parseChain(trusted); err != nil || len(chain) != 1 || !chain[0].IsCA {
		t.Errorf("CertificatePEM holds %d certificates, %v, want the root alone", len(chain), err)
	}
	second := loadCertificate(t, dir, certificateTime.Add(certificateYear))
	if !sameCertificate(first, second) {
		t.Error("the second start made another certificate")
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if err := handshake(t, second, trusted, host, certificateTime); err != nil {
			t.Errorf("host %s: %v", host, err)
		}
	}
	if files := dirContents(t, dir); len(files) != 2 {
		t.Errorf("%d files, want 2", len(files))
	}
}

func TestCertificateFileModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := t.TempDir()
	// The mode of a file left by a crash must not become the key's.
	for _, name := range []string{keyFile, certificateFile} {
		if err := os.WriteFile(filepath.Join(dir, name+".tmp"), []byte("half a key"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	loadCertificate(t, dir, certificateTime)
	for name, want := range map[string]fs.FileMode{certificateFile: 0o600, keyFile: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	if files := dirContents(t, dir); len(files) != 2 {
		t.Errorf("%d files, want 2", len(files))
	}
}

// Whatever state of Mayfly's own files a crash or their age leaves, the next start ends
// with a pair that works, and the one after that keeps it.
func TestCertificateFilesOfOursAreReplaced(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	old := loadCertificate(t, before, certificateTime)
	loadCertificate(t, after, certificateTime)
	a, b := dirContents(t, before), dirContents(t, after)
	cert, key := []byte(a[certificateFile]), []byte(a[keyFile])
	for _, c := range []struct {
		name      string
		cert, key []byte
		after     time.Duration
		kept      bool
	}{
		{"as made", cert, key, 0, true},
		{"with weeks left", cert, key, 790 * 24 * time.Hour, true},
		{"clock set back", cert, key, -certificateYear, true},
		{"about to expire", cert, key, 800 * 24 * time.Hour, false},
		{"expired", cert, key, certificateExpired, false},
		{"crash at the first start: key, no certificate", nil, key, 0, false},
		{"crash at renewal: new key, old certificate", cert, []byte(b[keyFile]), 0, false},
		{"key removed", cert, nil, 0, false},
		{"key cut short", cert, key[:len(keyMark)+40], 0, false},
	} {
		dir := putCertificateFiles(t, c.cert, c.key)
		now := certificateTime.Add(c.after)
		got := loadCertificate(t, dir, now)
		if sameCertificate(got, old) != c.kept {
			t.Errorf("%s: kept = %t, want %t", c.name, !c.kept, c.kept)
		}
		if again := loadCertificate(t, dir, now); !sameCertificate(again, got) {
			t.Errorf("%s: the next start made another certificate", c.name)
		}
		trusted, err := CertificatePEM(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := handshake(t, got, trusted, "localhost", got.Leaf.NotBefore.Add(time.Hour)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A user's own files are used or refused, and never written to.
func TestCertificateFilesOfTheUserAreKept(t *testing.T) {
	from := t.TempDir()
	loadCertificate(t, from, certificateTime)
	made := dirContents(t, from)
	ourCert, ourKey := []byte(made[certificateFile]), []byte(made[keyFile])
	// Without Mayfly's mark and root, it counts as the user's.
	chain, err := parseChain(ourCert)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := encodeCertificate(chain[0]), bytes.TrimPrefix(ourKey, []byte(keyMark))
	otherCert, otherKey, err := MakeCertificate(certificateTime)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		cert, key []byte
		after     time.Duration
		works     bool
	}{
		{"valid", cert, key, 0, true},
		{"about to expire", cert, key, 824 * 24 * time.Hour, true},
		{"expired", cert, key, certificateExpired, false},
		{"our certificate with an unmarked key, expired", ourCert, key, certificateExpired, false},
		{"their certificate for our key, expired", cert, ourKey, certificateExpired, false},
		{"key of another", cert, otherKey, 0, false},
		{"key of another for our certificate", ourCert, otherKey, 0, false},
		{"no key", cert, nil, 0, false},
		{"no certificate", nil, key, 0, false},
		{"certificate is not PEM", []byte("hello"), key, 0, false},
		{"certificate is empty", []byte{}, ourKey, 0, false},
		{"certificate is damaged", bytes.Replace(ourCert, []byte("M"), []byte("!"), 1), ourKey, 0, false},
		{"key is not PEM", cert, []byte("hello"), 0, false},
		{"key is empty", otherCert, []byte{}, 0, false},
	} {
		dir := putCertificateFiles(t, c.cert, c.key)
		before := dirContents(t, dir)
		_, err := LoadOrMakeCertificate(dir, certificateTime.Add(c.after), CertificateWish{})
		if c.works != (err == nil) || (!c.works && !errors.Is(err, ErrBadCertificate)) {
			t.Errorf("%s: %v, want it to work = %t", c.name, err, c.works)
		}
		if after := dirContents(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: the files were changed", c.name)
		}
	}
}

func TestCertificateFilesUnreadable(t *testing.T) {
	for _, name := range []string{certificateFile, keyFile} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil { // reading it fails for root too
			t.Fatal(err)
		}
		var path *fs.PathError
		if _, err := LoadOrMakeCertificate(dir, certificateTime, CertificateWish{}); !errors.As(err, &path) {
			t.Errorf("%s unreadable: %v, want the error of reading it", name, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := LoadOrMakeCertificate(missing, certificateTime, CertificateWish{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := CertificatePEM(putCertificateFiles(t, []byte("hello"), nil)); !errors.Is(err, ErrBadCertificate) {
		t.Errorf("CertificatePEM of garbage: %v, want %v", err, ErrBadCertificate)
	}
}

// A certificate that lacks a name which the server was given is replaced. One that has it is
// kept.
func TestCertificateFilesHaveTheNames(t *testing.T) {
	dir := t.TempDir()
	first := loadCertificate(t, dir, certificateTime)
	wish := CertificateWish{Names: []string{"Cosmos.Test", "192.0.2.8"}}
	second, err := LoadOrMakeCertificate(dir, certificateTime, wish)
	if err != nil || sameCertificate(first, second) {
		t.Fatalf("the certificate without the names is kept: %v", err)
	}
	trusted, err := CertificatePEM(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"cosmos.test", "192.0.2.8", "localhost"} {
		if err := handshake(t, second, trusted, host, certificateTime); err != nil {
			t.Errorf("host %s: %v", host, err)
		}
	}
	for _, same := range []CertificateWish{wish, {}, {Names: []string{"cosmos.test"}, Before: time.Hour}} {
		if again, err := LoadOrMakeCertificate(dir, certificateTime, same); err != nil || !sameCertificate(second, again) {
			t.Errorf("with %v another certificate is made: %v", same, err)
		}
	}
	for name, ok := range map[string]bool{"a.example": true, "*.a.example": true, "10.0.0.1": true, "::1": true, "a_b": true, "": false, "a b": false, "a/b": false, "a:1": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("the name %q: %v, want ok = %t", name, err, ok)
		}
	}
}
