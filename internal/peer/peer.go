// SPDX-License-Identifier: MIT

// Package peer is the trust between the nodes of a cluster. It has no connection of its own:
// it gives the settings of TLS, and makes and checks the note that goes with each request.
//
//  1. All nodes know one secret, the account's key. From it each derives the same Ed25519
//     key and a certificate with it. Both ends of a connection present the certificate, and
//     each accepts no other. So a client without the secret does not get beyond the
//     handshake, and a node never sends anything to a server without it.
//  2. Each request has a note: which node sends it, which it is for, its number within the
//     connection, and when and how the client's request came. It is signed under a key that
//     TLS derives for this one connection (RFC 8446, section 7.5).
//
// DESIGN.md gives the reasons.
package peer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// ServerName is the name that a node asks for when it connects to another, on the port that
// clients use. By it the server knows which certificate to present.
const ServerName = "peer.mayfly.internal"

// protocol is what the nodes speak over TLS.
const protocol = "http/1.1"

// What is derived from the secret, and from a connection. A change of what the nodes say to
// each other that old ones do not understand needs other labels.
const (
	labelIdentity   = "mayfly peer 1 identity"
	labelNotes      = "mayfly peer 1 notes"
	labelConnection = "EXPORTER-mayfly-peer-1"
)

// ErrStranger: the other end of a connection does not know the cluster's secret.
var ErrStranger = errors.New("peer: the other end of the connection does not have the key of this cluster")

// identity is what is derived from a secret.
type identity struct {
	public      ed25519.PublicKey
	notes       []byte
	certificate tls.Certificate
}

// Trust knows the secrets of a cluster.
type Trust struct {
	known []*identity
}

// New returns the trust among all that know the first secret. The others are accepted too:
// an account has two keys, so that they can be changed one after the other.
func New(secrets ...[]byte) (*Trust, error) {
	t := &Trust{}
	for _, secret := range secrets {
		id, err := derive(secret)
		if err != nil {
			return nil, err
		}
		t.known = append(t.known, id)
	}
	if len(t.known) == 0 {
		return nil, errors.New("peer: there is no secret")
	}
	return t, nil
}

func derive(secret []byte) (*identity, error) {
	if len(secret) == 0 {
		return nil, errors.New("peer: the secret is empty")
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, labelIdentity, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("peer: derive the identity: %w", err)
	}
	notes, err := hkdf.Key(sha256.New, secret, nil, labelNotes, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("peer: derive the key of notes: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	// Nothing of it is looked at but the key: so it is valid at all times, whatever the
	// clocks of the nodes say.
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{ServerName},
		NotBefore: time.Unix(0, 0).UTC(), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(nil, form, form, public, private)
	if err != nil {
		return nil, fmt.Errorf("peer: make the certificate: %w", err)
	}
	return &identity{public, notes, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// Server returns the settings for connections whose client asks for ServerName.
func (t *Trust) Server() *tls.Config {
	c := t.config()
	c.ClientAuth = tls.RequireAnyClientCert
	return c
}

// Client returns the settings for connections to other nodes.
func (t *Trust) Client() *tls.Config {
	c := t.config()
	c.ServerName = ServerName
	c.InsecureSkipVerify = true // the key is compared instead, by VerifyConnection
	return c
}

func (t *Trust) config() *tls.Config {
	return &tls.Config{
		Certificates:           []tls.Certificate{t.known[0].certificate},
		MinVersion:             tls.VersionTLS13, // older versions may resume, and have weaker exporters
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true, // each connection proves the secret anew
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := t.identify(&s)
			return err
		},
		DynamicRecordSizingDisabled: true,
	}
}

// identify returns the identity that the other end has proved.
func (t *Trust) identify(s *tls.ConnectionState) (*identity, error) {
	if s.Version < tls.VersionTLS13 || len(s.PeerCertificates) != 1 {
		return nil, ErrStranger
	}
	public, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	for _, id := range t.known {
		if ok && bytes.Equal(public, id.public) {
			return id, nil
		}
	}
	return nil, ErrStranger
}
