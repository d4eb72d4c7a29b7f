// SPDX-License-Identifier: MIT

// The certificate that the server makes for itself, so that HTTPS works from the first
// start.
//
// There are two: a root, which clients trust, and the server's own, signed by the root.
// One certificate that is both would do for OpenSSL, Java and Go, but rustls refuses it
// ("CaUsedAsEndEntity") and Firefox warns of it. A thief of its key could also sign for
// any site in the name of a trusted root. With two, the root's key is dropped as soon as
// it has signed, so it cannot be stolen.

package rest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

var (
	// ErrBadCertificate: a certificate or its key cannot be used, and the server may not
	// replace it.
	ErrBadCertificate = errors.New("the certificate cannot be used")
	// ErrNoCertificate: the server has not made its certificate yet.
	ErrNoCertificate = errors.New("there is no certificate yet: the server makes one when it first starts")
)

const (
	certificateName = "Mayfly"

	// certificateLifetime is the longest that macOS and iOS accept for a server, also
	// under a root that the user trusts: 825 days, both ends included.
	certificateLifetime = 825*24*time.Hour - time.Second
	// certificateSlack lets a client whose clock is behind accept a certificate that was
	// just made.
	certificateSlack = time.Hour

	maxHostBytes   = 253
	maxLabelBytes  = 63
	maxChainLength = 16
)

// MakeCertificate makes a certificate for localhost, this machine's host name, and the given
// names. certPEM holds the server's certificate, then the root that clients are to trust.
func MakeCertificate(now time.Time, names ...string) (certPEM, keyPEM []byte, err error) {
	rootKey, root, err := signCertificate(rootTemplate(), nil, nil, now)
	if err != nil {
		return nil, nil, err
	}
	key, leaf, err := signCertificate(leafTemplate(names), root, rootKey, now)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the certificate's key: %w", err)
	}
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return append(encodeCertificate(leaf), encodeCertificate(root)...), keyPEM, nil
}

// signCertificate makes a key and its certificate, signed by parent, or self-signed if
// there is none.
func signCertificate(c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	c.NotBefore = now.Add(-certificateSlack)
	c.NotAfter = c.NotBefore.Add(certificateLifetime)
	c.BasicConstraintsValid = true
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate's key: %w", err)
	}
	if parent == nil {
		parent, parentKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read back the certificate: %w", err)
	}
	return key, signed, nil
}

// certificateHosts returns the names and addresses that a certificate is for. The
// machine's name is left out if it is unknown or no DNS name: no client could use it.
func certificateHosts() (names []string, addresses []net.IP) {
	names, addresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	own, _ := os.Hostname()
	own = strings.ToLower(own)
	if ip := net.ParseIP(own); ip != nil {
		addresses = append(addresses, ip)
	} else if isHostName(own) && own != names[0] {
		names = append(names, own)
	}
	return names, addresses
}

// CheckName refuses what cannot be a name in a certificate.
func CheckName(name string) error {
	if net.ParseIP(name) == nil && !isHostName(strings.ToLower(name)) {
		return fmt.Errorf("%q is neither a host name nor an address, which a certificate could have", name)
	}
	return nil
}

// covers reports whether a certificate is for all of these names.
func covers(c *x509.Certificate, names []string) bool {
	for _, name := range names {
		name = strings.ToLower(name)
		if ip := net.ParseIP(name); ip != nil {
			if !slices.ContainsFunc(c.IPAddresses, ip.Equal) {
				return false
			}
		} else if !slices.Contains(c.DNSNames, name) {
			return false
		}
	}
	return true
}

// CertificateEnds returns when clients stop to trust a certificate: with the first of its
// chain that ends.
func CertificateEnds(pair tls.Certificate) time.Time {
	var ends time.Time
	for _, der := range pair.Certificate {
		if c, err := x509.ParseCertificate(der); err == nil && (ends.IsZero() || c.NotAfter.Before(ends)) {
			ends = c.NotAfter
		}
	}
	return ends
}

// LoadCertificate returns a certificate and its key that the operator has given in two files.
// The first may have the certificates that have signed it behind it.
func LoadCertificate(certFile, keyFile string, now time.Time) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%w: %s and %s: %w", ErrBadCertificate, certFile, keyFile, err)
	}
	if now.After(pair.Leaf.NotAfter) {
		return tls.Certificate{}, fmt.Errorf("%w: %s expired on %s", ErrBadCertificate, certFile, pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return pair, nil
}

// isHostName reports whether s, in lower case, may be in a certificate. Underscores are
// allowed since container networks use them, and the first label may be a wildcard.
func isHostName(s string) bool {
	if len(s) > maxHostBytes {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(s, "*."), ".") {
		if label == "" || len(label) > maxLabelBytes {
			return false
		}
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// parseChain returns the certificates in certPEM, at least one.
func parseChain(certPEM []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for block, rest := pem.Decode(certPEM); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if len(chain) == maxChainLength {
			return nil, fmt.Errorf("%w: more than %d certificates", ErrBadCertificate, maxChainLength)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadCertificate, err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("%w: no PEM block of a certificate", ErrBadCertificate)
	}
	return chain, nil
}

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
