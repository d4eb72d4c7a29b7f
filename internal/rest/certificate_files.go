// SPDX-License-Identifier: MIT

// Where the certificate is kept: two files, which a user may replace by their own. The
// server replaces only files that it made itself:
//
//  1. The key is put in place before the certificate. After a crash in between, the two
//     do not match, both carry Mayfly's mark, and a fresh pair is made.
//  2. A file that Mayfly did not make is never written to. If it cannot be used, the
//     server reports that and does not start.

package rest

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	certificateFile = "tls-cert.pem"
	keyFile         = "tls-key.pem"

	// fileMode is that of all files in the data directory. Users get the certificate from
	// mayfly cert instead of the file.
	fileMode fs.FileMode = 0o600
	// temporarySuffix ends the name of a file before it is renamed into place.
	temporarySuffix = ".tmp"

	// keyMark begins a key file that Mayfly made; nothing else in the file would show
	// that. PEM readers skip what comes before the first block.
	keyMark = "Made by Mayfly. To use another, replace " + certificateFile + " as well.\n"

	// renewBefore makes it unlikely that the certificate expires while a server runs for
	// weeks.
	renewBefore = 30 * 24 * time.Hour
)

// CertificateWish says which certificate a server wants.
type CertificateWish struct {
	// Names are those that it must be for, beside localhost and the machine's own.
	Names []string
	// Before is how long before its end one that Mayfly made is replaced; 0 for 30 days.
	Before time.Duration
}

// LoadOrMakeCertificate returns the certificate in dir. It makes one if there is none,
// and replaces one that Mayfly made and that is about to expire, or that lacks a name.
// Clients must then trust the new root.
func LoadOrMakeCertificate(dir string, now time.Time, wish CertificateWish) (tls.Certificate, error) {
	f, err := readCertificateFiles(dir)
	if err != nil {
		return tls.Certificate{}, err
	}
	if f.cert == nil && f.key == nil {
		return makeCertificateFiles(dir, now, wish.Names)
	}
	pair, err := f.pair(now)
	if !f.ours() {
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("%w: %s and %s in %s, which Mayfly did not make: %w",
				ErrBadCertificate, certificateFile, keyFile, dir, err)
		}
		return pair, nil
	}
	if err != nil || !now.Add(cmp.Or(wish.Before, renewBefore)).Before(pair.Leaf.NotAfter) || !covers(pair.Leaf, wish.Names) {
		return makeCertificateFiles(dir, now, wish.Names)
	}
	return pair, nil
}

// CertificateFiles returns the names of all files that LoadOrMakeCertificate may create.
func CertificateFiles() []string {
	return []string{certificateFile, keyFile, certificateFile + temporarySuffix, keyFile + temporarySuffix}
}

// CertificatePEM returns the certificate that clients must trust: the last one in the
// file in dir, which is the root of a chain.
func CertificatePEM(dir string) ([]byte, error) {
	f, err := readCertificateFiles(dir)
	if err != nil {
		return nil, err
	}
	if f.cert == nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoCertificate)
	}
	chain, err := parseChain(f.cert)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, certificateFile), err)
	}
	return encodeCertificate(chain[len(chain)-1]), nil
}

// certificateFiles are the contents of both files; nil for a file that does not exist.
type certificateFiles struct {
	cert, key []byte
}

func readCertificateFiles(dir string) (f certificateFiles, err error) {
	if f.cert, err = readIfPresent(filepath.Join(dir, certificateFile)); err != nil {
		return f, fmt.Errorf("read the certificate: %w", err)
	}
	if f.key, err = readIfPresent(filepath.Join(dir, keyFile)); err != nil {
		return f, fmt.Errorf("read the certificate's key: %w", err)
	}
	return f, nil
}

// readIfPresent returns nil for a file that does not exist, and only then.
func readIfPresent(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// pair returns the certificate with its key if they are valid at now.
func (f certificateFiles) pair(now time.Time) (tls.Certificate, error) {
	if f.cert == nil {
		return tls.Certificate{}, fmt.Errorf("%s is missing", certificateFile)
	}
	if f.key == nil {
		return tls.Certificate{}, fmt.Errorf("%s is missing", keyFile)
	}
	pair, err := tls.X509KeyPair(f.cert, f.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if now.After(pair.Leaf.NotAfter) {
		return tls.Certificate{}, fmt.Errorf("it expired on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return pair, nil
}

// ours reports whether Mayfly made both files, so that the user loses nothing with them.
func (f certificateFiles) ours() bool {
	if f.key != nil && !bytes.HasPrefix(f.key, []byte(keyMark)) {
		return false
	}
	if f.cert == nil {
		return true
	}
	chain, err := parseChain(f.cert)
	if err != nil || len(chain) != 2 {
		return false
	}
	leaf, root := chain[0], chain[1]
	return leaf.Subject.CommonName == certificateName &&
		leaf.CheckSignatureFrom(root) == nil && root.CheckSignatureFrom(root) == nil
}

func makeCertificateFiles(dir string, now time.Time, names []string) (tls.Certificate, error) {
	certPEM, keyPEM, err := MakeCertificate(now, names...)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("use the certificate just made: %w", err)
	}
	err = replaceFile(filepath.Join(dir, keyFile), append([]byte(keyMark), keyPEM...))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("keep the certificate's key: %w", err)
	}
	if err := replaceFile(filepath.Join(dir, certificateFile), certPEM); err != nil {
		return tls.Certificate{}, fmt.Errorf("keep the certificate: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return tls.Certificate{}, fmt.Errorf("keep the certificate: %w", err)
	}
	return pair, nil
}

// replaceFile replaces the named file by data, durably and atomically.
func replaceFile(name string, data []byte) (err error) {
	temporary := name + temporarySuffix
	// A file left by a crash may have another mode.
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	_, err = f.Write(data)
	// The process's umask may have removed bits.
	err = errors.Join(err, f.Chmod(fileMode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

// syncDir makes renames in dir durable. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
