// SPDX-License-Identifier: MIT

package scripttest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
)

// entryNode is the node that clients use.
const entryNode = "entry"

// overNodes is nodes of a cluster. Clients use one that owns nothing, so that each request
// for items is passed on to another.
type overNodes struct {
	overHTTP
	// another opens one more handle on the storage engine that the nodes share.
	another func() (kv.DB, error)
	// owners are the names of the nodes that may own partitions.
	owners []string
	// launch starts a node.
	launch func(s *setup, name, region string) (node, error)

	running map[string]node // by name
}

// node is a node that runs.
type node interface {
	// address is where it listens.
	address() string
	// stop ends it cleanly.
	stop() error
}

func (n *overNodes) start() (err error) {
	if n.running != nil {
		return nil
	}
	regions := n.setup.account().Regions
	n.running = map[string]node{}
	if err := n.startAll(regions[0], n.owners...); err != nil {
		return err
	}
	if err := n.startAll(regions[len(regions)-1], entryNode); err != nil {
		return err
	}
	if n.client, err = n.dial(); err != nil {
		return err
	}
	n.base = "https://" + n.running[entryNode].address()
	idle := []string{entryNode}
	if n.setup.oneOwner {
		idle = append(idle, n.owners[1:]...)
	}
	for _, name := range idle {
		if err := n.ask("POST", "/_mayfly/cluster", []byte(`{"drain":"`+name+`"}`), nil); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts nodes in a region.
func (n *overNodes) startAll(region string, names ...string) error {
	started, failed := make([]node, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { started[i], failed[i] = n.launch(&n.setup, name, region) })
	}
	all.Wait()
	for i, name := range names {
		if failed[i] == nil {
			n.running[name] = started[i]
		}
	}
	return errors.Join(failed...)
}

// dial returns a client that trusts the nodes.
func (n *overNodes) dial() (*http.Client, error) {
	db, err := n.another()
	if err != nil {
		return nil, err
	}
	pem, err := mayfly.ClusterCertificate(db)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", pem)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: patience}, nil
}

// ask asks the node that clients use for one of its pages, and decodes the answer.
func (n *overNodes) ask(method, page string, body []byte, into any) error {
	a, err := n.send(method, page, http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}, body)
	switch {
	case err != nil:
		return err
	case a.status != http.StatusOK:
		return fmt.Errorf("%s %s %s: status %d: %s", method, page, body, a.status, a.body)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("%w: %s", err, a.body)
	}
	return nil
}

// status is the cluster as the node sees it that clients use.
func (n *overNodes) status() (s engine.ClusterStatus, err error) {
	return s, n.ask("GET", "/_mayfly/cluster", nil, &s)
}

// bystander returns an error unless the node that clients use has claimed no partition since
// it started, so that all requests for items were passed on.
func (n *overNodes) bystander() error {
	s, err := n.status()
	if err != nil {
		return err
	}
	for _, node := range s.Nodes {
		if node.Name == entryNode && node.Answers && node.Partitions == 0 && node.Claims == 0 {
			return nil
		}
	}
	return fmt.Errorf("the node that clients use should have claimed nothing: %+v", s)
}

func (n *overNodes) stop() (err error) {
	if n.client != nil {
		err = n.bystander()
		n.client.CloseIdleConnections()
		n.client = nil
	}
	// The nodes end together, so that none takes over from another.
	var all sync.WaitGroup
	failed := make(chan error, len(n.running))
	for name, node := range n.running {
		all.Go(func() {
			if err := node.stop(); err != nil {
				failed <- fmt.Errorf("node %s: %w", name, err)
			}
		})
	}
	all.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	n.running = nil
	return err
}

func (n *overNodes) check() (problems []string, err error) {
	if err := n.stop(); err != nil {
		return nil, err
	}
	db, err := n.another()
	if err != nil {
		return nil, err
	}
	problems, err = checkRows(db)
	return problems, errors.Join(err, db.Close())
}

// inside is a node in this process.
type inside struct {
	server *mayfly.Server
	at     string
	served chan error
}

// launchInside starts a node in this process on a storage engine.
func launchInside(another func() (kv.DB, error)) func(*setup, string, string) (node, error) {
	return func(s *setup, name, region string) (node, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		db, err := another()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		account := s.account()
		o := mayfly.Options{
			Cluster: &mayfly.Cluster{DB: db, Node: name, Peer: "https://" + l.Addr().String()}, TestClock: true, PausePurge: !s.purge, Logger: quiet(),
			ContainerQuota: s.containerQuota, PartitionKeyQuota: s.partitionKeyQuota, ChangeFeedRetention: s.retention,
			ScriptTime: cmp.Or(s.scriptTime, plenty), AllowHosts: []string{allowedHosts},
			Regions: []string{region}, MultiWrite: account.MultiWrite, Consistency: account.Consistency,
		}
		if s.enforce {
			o.Throughput = mayfly.ThroughputEnforce
		}
		n := &inside{at: l.Addr().String(), served: make(chan error, 1)}
		if n.server, err = mayfly.Open(o); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		go func() { n.served <- n.server.Serve(l) }()
		return n, nil
	}
}

// allowedHosts are the hosts of the endpoints in scripts. A node has its own region alone in
// its options.
const allowedHosts = "*.example"

func (n *inside) address() string { return n.at }

func (n *inside) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(n.server.Shutdown(ctx), <-n.served, n.server.Close())
}
