// SPDX-License-Identifier: MIT

package rest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Root signs the certificates of the nodes of a cluster, so that clients trust all of them
// by one certificate. Each node makes its own anew whenever it starts. The root's key is
// kept, sealed, since nodes may join at any time.
type Root struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// MakeRoot makes a root.
func MakeRoot(now time.Time) (*Root, error) {
	key, certificate, err := signCertificate(rootTemplate(), nil, nil, now)
	if err != nil {
		return nil, err
	}
	return &Root{certificate, key}, nil
}

// rootTemplate is a root without its times. Each has a name of its own, for clients look
// roots up by name and may still trust an older one.
func rootTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:        pkix.Name{CommonName: certificateName + " root " + rand.Text()[:8]},
		IsCA:           true,
		MaxPathLenZero: true,
		KeyUsage:       x509.KeyUsageCertSign,
	}
}

// ParseRoot returns the root that PEM has written.
func ParseRoot(certPEM, keyPEM []byte) (*Root, error) {
	chain, err := parseChain(certPEM)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, fmt.Errorf("%w: no PEM block of a key", ErrBadCertificate)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCertificate, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(chain[0].PublicKey) {
		return nil, fmt.Errorf("%w: the key of the root is another", ErrBadCertificate)
	}
	return &Root{chain[0], key}, nil
}

// PEM returns the root's certificate and key.
func (r *Root) PEM() (certPEM, keyPEM []byte) {
	der, err := x509.MarshalPKCS8PrivateKey(r.key)
	if err != nil {
		panic("rest: a key cannot be encoded: " + err.Error())
	}
	return encodeCertificate(r.certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Expires reports whether the root is about to expire.
func (r *Root) Expires(now time.Time) bool {
	return !now.Add(renewBefore).Before(r.certificate.NotAfter)
}

// Sign returns a certificate for this machine and the given hosts, with the root behind it.
func (r *Root) Sign(hosts []string, now time.Time) (tls.Certificate, error) {
	key, leaf, err := signCertificate(leafTemplate(hosts), r.certificate, r.key, now)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, r.certificate.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// leafTemplate is the certificate of a server on this machine, also for the given hosts,
// without its times.
func leafTemplate(hosts []string) *x509.Certificate {
	names, addresses := certificateHosts()
	for _, host := range hosts {
		host = strings.ToLower(host)
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else if isHostName(host) && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: certificateName},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names,
		IPAddresses: addresses,
	}
}
