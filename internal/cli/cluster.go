// SPDX-License-Identifier: MIT

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/engine"
)

type clusterCommand struct {
	running
	printed

	Status   clusterStatus   `cmd:"" default:"1" help:"Show the nodes, their beats and their partitions."`
	Finalize clusterFinalize `cmd:"" help:"Bring the data in a storage engine to the format of this version, when all nodes are of this version. Where rows have to be rewritten, no node may run: the command says so."`
	Drain    clusterDrain    `cmd:"" help:"Have a node give its partitions to the others, before it is stopped. It serves again when it is restarted."`
	Failover clusterFailover `cmd:"" help:"Make a region the one that takes writes, as in: mayfly cluster failover 'West US'. Clients follow by themselves, and partitions move to its nodes."`
	Split    clusterSplit    `cmd:"" help:"Split a partition into two, as in: mayfly cluster split shop carts 0. This is for a server with its own data, too. Clients notice nothing, and reads and writes go on."`
	Forget   clusterForget   `cmd:"" help:"Take a region without nodes out of what clients are told."`
}

type (
	clusterStatus struct{}
	clusterDrain  struct {
		Node string `arg:"" help:"The name of the node."`
	}
	clusterFailover struct {
		Region string `arg:"" help:"The name of the region."`
	}
	clusterForget struct {
		Region string `arg:"" help:"The name of the region."`
	}
)

type clusterFinalize struct {
	engineFlag
}

// Run migrates the data.
func (f clusterFinalize) Run() error {
	if f.Engine == "" {
		return errors.New("name the storage engine with --engine")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := f.tool()
	if err != nil {
		return err
	}
	defer db.Close()
	format, err := mayfly.FinalizeCluster(ctx, db, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return openFailed(err)
	}
	fmt.Printf("The data has format %d. Nodes of this version can start.\n", format)
	return nil
}

// clusterTimeout is longer than a node takes to hand over many partitions.
const clusterTimeout = time.Minute

func (clusterStatus) Run(c *commands) error { return c.Cluster.call(http.MethodGet, nil) }

func (d clusterDrain) Run(c *commands) error { return c.Cluster.change("drain", d.Node) }

func (f clusterFailover) Run(c *commands) error { return c.Cluster.change("failover", f.Region) }

func (f clusterForget) Run(c *commands) error { return c.Cluster.change("forget", f.Region) }

// change has the cluster do something with a node or a region, and prints what is then.
func (c *clusterCommand) change(what, name string) error {
	body, err := json.Marshal(map[string]string{what: name})
	if err != nil {
		return err
	}
	return c.call(http.MethodPost, body)
}

func (c *clusterCommand) call(method string, body []byte) error {
	res, err := c.send(method, "cluster", nil, body, clusterTimeout)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var s engine.ClusterStatus
	if err := json.NewDecoder(io.LimitReader(res.Body, maxResponseBytes)).Decode(&s); err != nil {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return c.show(func() error { return printCluster(os.Stdout, &s) }, &s)
}

func printCluster(w io.Writer, s *engine.ClusterStatus) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATE\tREGION\tADDRESS\tPARTITIONS\tQUIET\tCLAIMS\tLOST")
	for _, n := range s.Nodes {
		partitions, claims, losses := "-", "-", "-" // it does not answer
		if n.Answers {
			partitions, claims, losses = fmt.Sprint(n.Partitions), fmt.Sprint(n.Claims), fmt.Sprint(n.Losses)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1fs\t%s\t%s\n", n.Name, n.State, n.Region, n.Address, partitions, n.QuietSeconds, claims, losses)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, r := range s.Regions.List {
		takes := "is read"
		if i == 0 || s.MultiWrite {
			takes = "takes writes"
		}
		at := r.Endpoint
		if at == "" {
			at = "the address that clients use"
		}
		fmt.Fprintf(w, "%s %s, at %s\n", r.Name, takes, at)
	}
	_, err := fmt.Fprintf(w, "%d partitions, of which no node has %d; the time is %s, seen by node %s\n", s.Partitions, s.Unowned, s.Now, s.Node)
	if err == nil && s.TimeStepMs > 1 {
		_, err = fmt.Fprintf(w, "the storage engine's time moves in steps of %d ms: an item expires up to that much late, at one instant on all nodes\n", s.TimeStepMs)
	}
	return err
}
