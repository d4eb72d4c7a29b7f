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
	"strings"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
)

// errAlone: only a server alone has several regions without endpoints.
var errAlone = errors.New("the script is about a server alone")

// entryNode is the node that clients use.
const entryNode = "entry"

// overNodes is two nodes of a cluster. Clients use the one that owns nothing, so that each
// request for items is passed on to the other.
type overNodes struct {
	overHTTP
	// another opens one more handle on the storage engine that the nodes share.
	another func() (kv.DB, error)

	owner       *mayfly.Server
	ownerServed chan error
}

func (n *overNodes) start() (err error) {
	regions := n.setup.account().Regions
	if len(regions) > 1 && !strings.Contains(regions[0], "=") {
		return errAlone
	}
	if _, n.owner, n.ownerServed, err = n.node("owner", regions[0]); err != nil {
		return err
	}
	var l net.Addr
	if l, n.server, n.served, err = n.node(entryNode, regions[len(regions)-1]); err != nil {
		return err
	}
	db, err := n.another()
	if err != nil {
		return err
	}
	pem, err := mayfly.ClusterCertificate(db)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", pem)
	}
	n.base = "https://" + l.String()
	n.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: patience}
	header := http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}
	if a, err := n.send("POST", "/_mayfly/cluster", header, []byte(`{"drain":"`+entryNode+`"}`)); err != nil || a.status != http.StatusOK {
		return fmt.Errorf("drain the node that clients use: status %d, %w: %s", a.status, err, a.body)
	}
	return nil
}

// node starts a node.
func (n *overNodes) node(name, region string) (net.Addr, *mayfly.Server, chan error, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, nil, err
	}
	db, err := n.another()
	if err != nil {
		return nil, nil, nil, errors.Join(err, l.Close())
	}
	account := n.setup.account()
	o := mayfly.Options{
		Cluster: &mayfly.Cluster{DB: db, Node: name, Peer: "https://" + l.Addr().String()}, TestClock: true, PausePurge: !n.setup.purge, Logger: quiet(),
		ContainerQuota: n.setup.containerQuota, PartitionKeyQuota: n.setup.partitionKeyQuota, ChangeFeedRetention: n.setup.retention,
		ScriptTime: cmp.Or(n.setup.scriptTime, plenty), AllowHosts: []string{"*.example"},
		Regions: []string{region}, MultiWrite: account.MultiWrite, Consistency: account.Consistency,
	}
	if n.setup.enforce {
		o.Throughput = mayfly.ThroughputEnforce
	}
	s, err := mayfly.Open(o)
	if err != nil {
		return nil, nil, nil, errors.Join(err, l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return l.Addr(), s, served, nil
}

// bystander returns an error unless the node that clients use has claimed no partition since
// it started, so that all requests for items were passed on.
func (n *overNodes) bystander() error {
	if n.server == nil {
		return nil
	}
	header := http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}
	a, err := n.send("GET", "/_mayfly/cluster", header, nil)
	if err != nil {
		return err
	}
	var s engine.ClusterStatus
	if err := json.Unmarshal(a.body, &s); err != nil {
		return fmt.Errorf("%w: %s", err, a.body)
	}
	for _, node := range s.Nodes {
		if node.Name == entryNode && node.Answers && node.Partitions == 0 && node.Claims == 0 {
			return nil
		}
	}
	return fmt.Errorf("the node that clients use should have claimed nothing: %s", a.body)
}

func (n *overNodes) stop() error {
	if n.owner == nil {
		return nil
	}
	err := errors.Join(n.bystander(), n.overHTTP.stop())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = errors.Join(err, n.owner.Shutdown(ctx), <-n.ownerServed, n.owner.Close())
	n.owner = nil
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
	return problems, errors.Join(err, db.Close(), n.start())
}
