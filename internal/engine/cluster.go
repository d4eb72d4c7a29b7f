// SPDX-License-Identifier: MIT

// The cluster as operators see it.

package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// ErrNoCluster: the server has its data for itself.
var ErrNoCluster = errors.New("this server is not a node of a cluster")

// ErrDraining: the node gives its partitions to others.
var ErrDraining = errors.New("this node is draining: it gives its partitions to other nodes")

// ClusterStatus is the state of a cluster at one moment, as one node sees it.
type ClusterStatus struct {
	// Node is the name of the node that reports.
	Node string `json:"node"`
	clock.Moment
	Nodes []NodeStatus `json:"nodes"`
	// Regions are in the order in which clients fall back on them: the first takes writes, or
	// all do.
	catalog.Regions
	// Partitions is how many there are in all containers, and Unowned how many of them no
	// node that answers has: they are claimed when they are next used.
	Partitions int `json:"partitions"`
	Unowned    int `json:"unowned"`
	// TimeStepMs is how far the storage engine's time moves at once, if it says so: an item
	// leaves at most that much after its deadline, at one instant on all nodes.
	TimeStepMs int64 `json:"timeStepMs,omitempty"`
}

// NodeStatus is the state of a node.
type NodeStatus struct {
	cluster.Member
	// QuietSeconds is for how long its beat has stood still.
	QuietSeconds float64 `json:"quietSeconds"`
	// Answers says that the node answered the one that reports. Without it the work is 0.
	Answers bool `json:"answers"`
	NodeWork
}

// NodeWork is what a node has, and has done since it started.
type NodeWork struct {
	Partitions int `json:"partitions"`
	// Moments counts looks at the storage engine for requests, Claims the partitions that it
	// claimed, and Losses those that it lost to other nodes, or whose state was unknown.
	Moments int64 `json:"moments"`
	Claims  int64 `json:"claims"`
	Losses  int64 `json:"losses"`
}

// nodeWork is NodeWork with the node's name.
type nodeWork struct {
	Name string
	Work NodeWork
}

var opWork = newOperation(operation[int, nodeWork]{"work", func(_ context.Context, e *Engine, _ *catalog.Container, _ int, _ *store.Partition, _ int) (nodeWork, error) {
	return nodeWork{e.node.Name(), e.Work()}, nil
}, false})

// Work returns what this node has, and has done.
func (e *Engine) Work() NodeWork {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return NodeWork{len(e.mu.open), e.moments.Load(), e.claims.Load(), e.losses.Load()}
}

// ClusterStatus reports on all nodes.
func (e *Engine) ClusterStatus(ctx context.Context) (ClusterStatus, error) {
	if e.node == nil {
		return ClusterStatus{}, ErrNoCluster
	}
	works, _, err := askNodes(ctx, e, nil, opWork, 0)
	if err != nil {
		return ClusterStatus{}, err
	}
	by := map[string]NodeWork{}
	for _, w := range works {
		by[w.Name] = w.Work
	}
	s := ClusterStatus{Node: e.node.Name(), Moment: clock.At(e.clock.Now()), Nodes: []NodeStatus{}}
	if r := e.Regions(); r != nil {
		s.Regions = *r
	}
	if stepper, ok := e.db.(kv.Stepper); ok {
		s.TimeStepMs = stepper.Step().Milliseconds()
	}
	for _, c := range e.AllContainers() {
		s.Partitions += len(c.Ranges)
	}
	s.Unowned = s.Partitions
	for _, m := range e.node.Members() {
		work, answers := by[m.Name]
		s.Nodes = append(s.Nodes, NodeStatus{m, m.Quiet.Seconds(), answers, work})
		s.Unowned -= work.Partitions
	}
	s.Unowned = max(0, s.Unowned)
	return s, nil
}

const (
	// drainLimit is how long DrainNode waits until a node has given its partitions up, and
	// drainPause the time between two looks.
	drainLimit = 30 * time.Second
	drainPause = 100 * time.Millisecond
)

// DrainNode has a node, this one or another, give its partitions to others, and waits until
// it has. It serves again when it is restarted.
func (e *Engine) DrainNode(ctx context.Context, name string) error {
	if e.node == nil {
		return ErrNoCluster
	}
	err := e.node.DrainNode(ctx, name)
	if err == nil && name != e.node.Name() {
		err = e.waitForDrain(ctx, name)
	}
	switch {
	case errors.Is(err, cluster.ErrUnknownNode):
		return invalid("There is no live node '%s'.", name)
	case errors.Is(err, cluster.ErrLastNode):
		return invalid("No other node serves that could take the partitions of '%s'.", name)
	}
	return unavailable(err)
}

// waitForDrain waits until a node that drains owns nothing, is dead, or has had long enough.
func (e *Engine) waitForDrain(ctx context.Context, name string) error {
	incarnation := e.node.Incarnation(name)
	for began := time.Now(); time.Since(began) < drainLimit && incarnation != 0 && e.node.Incarnation(name) == incarnation; {
		var keys [][]byte
		for _, c := range e.AllContainers() {
			for i := range c.Ranges {
				keys = append(keys, store.OwnerKey(c.RID, c.Ranges[i].ID))
			}
		}
		owners, err := e.node.Owners(ctx, keys)
		if err != nil || !slices.ContainsFunc(owners, func(o cluster.Owner) bool { return o.Node == name && o.Incarnation == incarnation }) {
			return err
		}
		if err := pause(ctx, drainPause); err != nil {
			return err
		}
	}
	return nil
}
