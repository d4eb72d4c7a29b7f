// SPDX-License-Identifier: MIT

// The certificate that the server makes for itself, so that HTTPS works from the
// first start, and the files that keep it.
//
// Two are made: a root, which clients are told to trust, and the server's own,
// signed by it. One certificate that is both would do for OpenSSL, Java and Go,
// but rustls refuses it ("CaUsedAsEndEntity"), Firefox warns of it, and whoever
// stole its key could sign for any site in the name of a trusted root. Here the
// root's key is forgotten as soon as it has signed, so nobody can.

package rest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
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
	// ErrCertificateHost: a certificate was asked for something that is neither a
	// host name nor an IP address.
	ErrCertificateHost = errors.New("neither a host name nor an IP address")
	// ErrBadCertificate: a certificate, or its key, cannot be used as it is, and
	// is not the server's to replace.
	ErrBadCertificate = errors.New("the certificate cannot be used")
	// ErrNoCertificate: the server has not made its certificate yet.
	ErrNoCertificate = errors.New("there is no certificate yet: the server makes one when it first starts")
)

const (
	certificateName = "Mayfly"

	// certificateLifetime is the longest that macOS and iOS accept of a server,
	// also under a root that the user trusts: 825 days, both ends included.
	certificateLifetime = 825*24*time.Hour - time.Second
	// certificateSlack lets a client whose clock is behind accept a certificate
	// that was made this minute.
	certificateSlack = time.Hour

	maxCertificateHosts = 100
	maxHostBytes        = 253
	maxLabelBytes       = 63
	maxChainLength      = 16
)

// MakeCertificate makes a certificate for localhost, this machine's host name and
// the given hosts, each a DNS name or an IP address. certPEM holds the server's
// certificate, then the root that clients are to trust.
func MakeCertificate(hosts []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	names, err := certificateHosts(hosts)
	if err != nil {
		return nil, nil, err
	}
	// Each root has a name of its own, for clients look roots up by name and may
	// still trust an older one.
	root := &x509.Certificate{
		Subject:               pkix.Name{CommonName: certificateName + " root " + rand.Text()[:8]},
		NotBefore:             now.Add(-certificateSlack),
		NotAfter:              now.Add(-certificateSlack + certificateLifetime),
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	rootKey, root, err := signCertificate(root, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{
		Subject:               pkix.Name{CommonName: certificateName},
		NotBefore:             root.NotBefore,
		NotAfter:              root.NotAfter,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              names.dns,
		IPAddresses:           names.ips,
	}
	key, leaf, err := signCertificate(leaf, root, rootKey)
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

// signCertificate makes a key and its certificate, signed by parent, or by itself
// where there is none.
func signCertificate(c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate, error) {
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

// hostNames are what a certificate speaks for.
type hostNames struct {
	dns []string
	ips []net.IP
}

// certificateHosts returns the given hosts and those that every certificate has.
func certificateHosts(hosts []string) (hostNames, error) {
	if len(hosts) > maxCertificateHosts {
		return hostNames{}, fmt.Errorf("%d hosts for one certificate, the limit is %d", len(hosts), maxCertificateHosts)
	}
	all := []string{"localhost", "127.0.0.1", "::1"}
	// A machine's name that cannot be had, or is no DNS name, is left out: nobody
	// can reach the server by it.
	if name, err := os.Hostname(); err == nil && isHostName(strings.ToLower(name)) {
		all = append(all, name)
	}
	return parseHosts(append(all, hosts...))
}

// parseHosts sorts hosts into names and addresses and leaves out repetitions.
func parseHosts(hosts []string) (hostNames, error) {
	var names hostNames
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			if !slices.ContainsFunc(names.ips, ip.Equal) {
				names.ips = append(names.ips, ip)
			}
			continue
		}
		name := strings.ToLower(host)
		if !isHostName(name) {
			return hostNames{}, fmt.Errorf("%q: %w", host, ErrCertificateHost)
		}
		if !slices.Contains(names.dns, name) {
			names.dns = append(names.dns, name)
		}
	}
	return names, nil
}

// isHostName reports whether s, in lower case, may stand in a certificate. The
// underscore is allowed for the sake of container networks, and the first label
// may be a wildcard.
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

// speaksFor reports whether c names all of hosts.
func speaksFor(c *x509.Certificate, hosts []string) bool {
	names, err := parseHosts(hosts)
	if err != nil {
		return false
	}
	for _, name := range names.dns {
		if !slices.Contains(c.DNSNames, name) {
			return false
		}
	}
	for _, ip := range names.ips {
		if !slices.ContainsFunc(c.IPAddresses, ip.Equal) {
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
