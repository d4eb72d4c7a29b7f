// SPDX-License-Identifier: MIT

package mayfly

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/rest"
)

// Cluster says how a server joins the nodes of a shared storage engine.
type Cluster struct {
	// DB is the storage engine. Server.Close closes it.
	DB kv.DB
	// Node is the name of this node. A node that starts under a name takes the place of the
	// one that had it.
	Node string
	// Peer is the URL at which the other nodes reach this one.
	Peer string
}

var (
	// ErrOtherKey means that the server's key is not that of its cluster.
	ErrOtherKey = errors.New("the key is not that of the cluster: start all nodes with the same key, or with the old one as the secondary key while keys are changed")
	// ErrNoErasure means that deleted data cannot be erased in time, as it was asked for.
	ErrNoErasure = errors.New("deleted data cannot be erased in time on a shared storage engine: that is another server, which keeps old rows in its files, logs and backups for as long as it likes. Leave --erase-within out, or give off")
)

// joins adds to the engine's options what a node needs.
func (o Options) joins(of *engine.Options) error {
	c := o.Cluster
	if c.Node == "" {
		return errors.New("a node of a cluster needs a name of its own: give it with --node")
	}
	if len(o.Regions) != 1 {
		return errors.New("a node of a cluster is in one region: give --region once. The regions of the cluster are those of its nodes")
	}
	if err := rest.CheckPeer(c.Peer); err != nil {
		return err
	}
	region, err := catalog.ParseRegion(o.Regions[0])
	if err != nil {
		return err
	}
	of.Cluster = &cluster.Options{Name: c.Node, Address: c.Peer}
	of.Region, of.MultiWrite = region, o.MultiWrite
	return nil
}

// nodeCertificate returns a certificate of this node, signed by the cluster's root.
func (o Options) nodeCertificate(root *rest.Root, now time.Time) (tls.Certificate, error) {
	hosts := o.TLSNames
	if u, err := url.Parse(o.Cluster.Peer); err == nil && u.Hostname() != "" {
		hosts = append([]string{u.Hostname()}, hosts...)
	}
	return root.Sign(hosts, now)
}

// peers returns the connections to the other nodes.
func (o Options) peers() (*rest.Peers, error) {
	var secrets [][]byte
	for _, text := range given(o.Key, o.SecondaryKey) {
		secret, err := api.ParseKey(text)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return rest.NewPeers(o.Cluster.Node, secrets, o.Logger)
}

// sealedRoot is the row of the root of the cluster's certificates. Its key is sealed under
// the master key, so the row also tells whether a node has that.
type sealedRoot struct {
	Certificate []byte `json:"certificate"` // in PEM
	Sealed      []byte `json:"sealed"`      // the key in PEM, by AES-GCM, after its nonce
}

const (
	sealLabel = "mayfly cluster root 1"
	// rootTries is how often nodes that start at the same time make a root.
	rootTries = 8
	// rootLimit bounds a commit of the root.
	rootLimit = 10 * time.Second
)

// root returns the root of the cluster's certificates, and makes it if there is none, or if
// it is about to expire. The error is ErrOtherKey if it was sealed under another key.
func (o Options) root(now time.Time) (*rest.Root, error) {
	db := o.Cluster.DB
	for range rootTries {
		raw, found, err := kv.Get(db, catalog.RootKey)
		if err != nil {
			return nil, err
		}
		if found {
			root, first, err := o.unseal(raw)
			if err != nil || first && !root.Expires(now) {
				return root, err
			}
			if !root.Expires(now) { // it was sealed under the secondary key
				if err := o.putRoot(root, raw); err == nil || !errors.Is(err, kv.ErrConflict) {
					return root, err
				}
				continue
			}
		}
		root, err := rest.MakeRoot(now)
		if err != nil {
			return nil, err
		}
		if err := o.putRoot(root, raw); err == nil || !errors.Is(err, kv.ErrConflict) {
			return root, err
		}
	}
	return nil, fmt.Errorf("make the certificate of the cluster: %w", kv.ErrConflict)
}

// unseal returns the root, and whether it was sealed under the first key.
func (o Options) unseal(raw []byte) (root *rest.Root, first bool, err error) {
	var row sealedRoot
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, false, fmt.Errorf("%w: the certificate of the cluster: %w", kv.ErrCorrupt, err)
	}
	for i, text := range given(o.Key, o.SecondaryKey) {
		seal, err := sealer(text)
		if err != nil {
			return nil, false, err
		}
		n := seal.NonceSize()
		if len(row.Sealed) < n {
			break
		}
		if key, err := seal.Open(nil, row.Sealed[:n], row.Sealed[n:], row.Certificate); err == nil {
			root, err := rest.ParseRoot(row.Certificate, key)
			return root, i == 0, err
		}
	}
	return nil, false, ErrOtherKey
}

// putRoot stores the root, if the row is still as it was.
func (o Options) putRoot(root *rest.Root, was []byte) error {
	seal, err := sealer(o.Key)
	if err != nil {
		return err
	}
	certificate, key := root.PEM()
	nonce := make([]byte, seal.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	row, err := json.Marshal(sealedRoot{certificate, seal.Seal(nonce, nonce, key, certificate)})
	if err != nil {
		return err
	}
	var b kv.Batch
	if was == nil {
		b.RequireAbsent(catalog.RootKey)
	} else {
		b.Require(catalog.RootKey, was)
	}
	b.Set(catalog.RootKey, row)
	ctx, cancel := context.WithTimeout(context.Background(), rootLimit)
	defer cancel()
	return o.Cluster.DB.Commit(ctx, &b)
}

// sealer returns what seals under a master key.
func sealer(text string) (cipher.AEAD, error) {
	secret, err := api.ParseKey(text)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, sealLabel, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// ClusterCertificate returns, in PEM, the certificate by which clients trust all nodes of the
// cluster with its data in db.
func ClusterCertificate(db kv.DB) ([]byte, error) {
	raw, found, err := kv.Get(db, catalog.RootKey)
	if err == nil && !found {
		err = rest.ErrNoCertificate
	}
	if err != nil {
		return nil, err
	}
	var row sealedRoot
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, fmt.Errorf("%w: the certificate of the cluster: %w", kv.ErrCorrupt, err)
	}
	return row.Certificate, nil
}

// FinalizeCluster migrates the data in a shared storage engine to the format of this version,
// and returns that. It may have to wait until no node runs, or none of an earlier version:
// the error says so.
func FinalizeCluster(ctx context.Context, db kv.DB, logger *slog.Logger) (format int, err error) {
	if err := hasData(db); err != nil {
		return 0, err
	}
	return engine.Finalize(ctx, db, logger)
}

// hasData returns why a tool finds nothing in a shared storage engine; nil if there is data. An
// engine without any is most likely another one than was meant.
func hasData(db kv.DB) error {
	_, found, err := kv.Get(db, catalog.FormatKey)
	if err == nil && !found {
		err = errors.New("there is no data in the storage engine: does its URL name another database than that of the nodes?")
	}
	return err
}
