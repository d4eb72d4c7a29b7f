// SPDX-License-Identifier: MIT

// Package cluster lets several nodes serve one database on a shared engine. Each partition
// has one owner, which alone reads and writes it. No safety rests on a node's clock: the
// engine fences writes, and one look at it per request fences reads and tells the time.
//
// Six rules make it so. The code cites them by number where it keeps them:
//
//  1. Every commit of a partition requires its owner row (Lease.Fence). A stale owner
//     cannot write.
//  2. Before it answers, a node takes a moment, begun after the request came: one look at
//     its node row, the clock row and the catalog's sequence, with the engine's time. If
//     its incarnation is not alive there, it answers nothing, drops its partitions and
//     registers anew. A stale owner cannot answer.
//  3. No node takes a partition from a live incarnation: first the node row is killed, then
//     the owner row is claimed under a higher epoch.
//  4. A node that gives a partition up stops serving it before it writes the owner row, and
//     leaves its latest moment there.
//  5. No moment exceeds the node's saved floor. A claimer waits until the time has passed
//     the killed node's floor, two seconds at most. A partition never looks at its items
//     before its opening moment, which is at or above that floor.
//  6. After an unknown commit the owner writes a new epoch before it opens the partition
//     again: the late commit cannot land any more.
//
// DESIGN.md gives the reasons; model_test.go shows what each rule prevents.
//
// Lock order: saver, then mu. The clock's own locks come last.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
)

var (
	// ErrNotAlive: this node's incarnation was killed, and it has not registered anew yet.
	ErrNotAlive = errors.New("cluster: another node has declared this one dead; it is registering anew")
	// ErrReplaced: another process has registered under this node's name.
	ErrReplaced = errors.New("cluster: another process has registered under the name of this node: every node needs a name of its own")
	// ErrLeft: the node has left.
	ErrLeft = errors.New("cluster: this node has left")
	// ErrUnknownNode: no live node has the name.
	ErrUnknownNode = errors.New("cluster: there is no live node of this name")
	// ErrLastNode: no other node is serving, so this one cannot give its partitions up.
	ErrLastNode = errors.New("cluster: no other node is serving")
	// ErrNoNode: no node is serving that could claim the partition.
	ErrNoNode = errors.New("cluster: no node is serving")
	// ErrContended: a row was changed by others each time that this node tried to.
	ErrContended = errors.New("cluster: a row of the cluster changes too often")
	// ErrName: a name, address or region that cannot be stored.
	ErrName = errors.New("cluster: a node's name must have 1 to 255 bytes, its address and region at most 255")
	// ErrNewerData: the data has a format, or is about to have one, that this node does not
	// understand.
	ErrNewerData = errors.New("cluster: the data has a newer format than this version understands: use a newer version of mayfly")
	// ErrTestMix: nodes with and without a test clock on one engine.
	ErrTestMix = errors.New("cluster: other nodes of this engine run without a test clock")
)

// NotOwnerError says that another node owns the partition, or is the one to claim it.
type NotOwnerError struct {
	Node, Address string
}

func (e *NotOwnerError) Error() string {
	return fmt.Sprintf("cluster: the partition belongs to node %s at %s", e.Node, e.Address)
}

// Options are the parameters of Join. Durations that are zero have their defaults.
type Options struct {
	DB kv.DB
	// Name is the node's name, of which every node has one of its own. A node that starts
	// under a name takes the place of the one that had it.
	Name string
	// Address is where the other nodes reach this one, and Region where it is.
	Address, Region string
	// Format is the newest format of data that this version understands; 0 if the caller has
	// none.
	Format int
	// WriteRegion returns the region whose nodes are preferred as owners; nil or an empty
	// name: none. It must not call the node.
	WriteRegion func() string
	// TestClock allows moves of the time, and marks the data.
	TestClock bool
	Logger    *slog.Logger

	// Dropped is called when the incarnation was lost, before the node registers anew: the
	// callee closes all partitions, without any write. It is called again if the node cannot
	// register any more, with ErrReplaced or ErrNewerData from Ready.
	Dropped func()
	// Surrender is called when a partition should go to another node: the callee closes it,
	// then calls Release. Without it the node keeps its partitions until it leaves.
	Surrender func(ctx context.Context, key []byte)

	// Beat is the time between two beats: 500 ms.
	Beat time.Duration
	// Reserve is how far ahead of the time a floor is saved: two seconds.
	Reserve time.Duration
	// Death is how long the beat of a node stands still before it is killed, and
	// RefusedDeath the same if its address refuses connections: 3 s and 1 s.
	Death, RefusedDeath time.Duration
	// ClaimWait is how long a claimer waits for a killed node's floor: two seconds.
	ClaimWait time.Duration
	// Settled is how long the membership must be stable before partitions move, and
	// MoveEvery the time between two moves: 30 s and 1 s.
	Settled, MoveEvery time.Duration
	// LookTimeout bounds every call of the engine: 5 s.
	LookTimeout time.Duration

	// Refuses reports whether an address refuses connections; nil: a TCP connection is
	// tried.
	Refuses func(ctx context.Context, address string) bool
	// Watch counts milliseconds, by which the engine's time is judged; nil: clock.Watch.
	Watch func() int64
}

func (o *Options) defaults() {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.Beat, 500*time.Millisecond)
	set(&o.Reserve, 2*time.Second)
	set(&o.Death, 3*time.Second)
	set(&o.RefusedDeath, time.Second)
	set(&o.ClaimWait, 2*time.Second)
	set(&o.Settled, 30*time.Second)
	set(&o.MoveEvery, time.Second)
	set(&o.LookTimeout, 5*time.Second)
	if o.Refuses == nil {
		o.Refuses = refuses
	}
	if o.Watch == nil {
		o.Watch = clock.Watch()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Dropped == nil {
		o.Dropped = func() {}
	}
	if o.WriteRegion == nil {
		o.WriteRegion = func() string { return "" }
	}
}

// Node is this process's part in the cluster. Its methods may be called from any goroutine.
type Node struct {
	o     Options
	key   []byte
	clock *clock.Clock

	ctx    context.Context // ends with the node
	cancel context.CancelFunc
	work   sync.WaitGroup

	saver sync.Mutex // held around every change of the node row

	mu struct {
		sync.Mutex
		up   bool  // the incarnation may be alive
		why  error // if it is not up
		left bool

		row     nodeRow // as last saved
		raw     []byte
		floorMs int64 // rule 5's floor: at most what is saved, whatever became of a save
		leastMs int64 // the floor of earlier incarnations: no floor below it is saved
		lastMs  int64 // the highest moment
		trail   clock.Trail

		members   map[string]*member
		scannedAt time.Time
		settledAt time.Time // of the last change of membership
		owned     map[string]ownerRow

		flight, next *flight
	}
}

// member is what this node knows of a node, itself included.
type member struct {
	row nodeRow
	raw []byte
	at  time.Time // when its row was first seen so, by this node's watch
}

// Member describes a node.
type Member struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Region  string `json:"region,omitempty"`
	State   string `json:"state"`
	// Self says that it is this node, and Preferable that it may be preferred as an owner.
	Self       bool `json:"self,omitempty"`
	Preferable bool `json:"-"`
	// Quiet is for how long its beat has stood still, by this node's watch.
	Quiet   time.Duration `json:"-"`
	FloorMs int64         `json:"floorMs"`
}

// Join registers the node. When it returns, moments can be taken, and the clock has the
// time.
func Join(ctx context.Context, o Options) (*Node, error) {
	o.defaults()
	if o.Name == "" || max(len(o.Name), len(o.Address), len(o.Region)) > MaxNameBytes {
		return nil, ErrName
	}
	n := &Node{o: o, key: nodeKey(o.Name)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.clock = clock.Follow(clock.FollowOptions{Test: o.TestClock, Change: n.changeClock, Logger: o.Logger})
	n.mu.owned, n.mu.members = map[string]ownerRow{}, map[string]*member{}
	if err := n.register(ctx); err != nil {
		n.cancel()
		return nil, err
	}
	if _, err := n.Moment(ctx); err != nil {
		n.cancel()
		return nil, err
	}
	n.work.Go(n.keepBeating)
	n.work.Go(n.keepBalance)
	return n, nil
}

func nodeKey(name string) []byte { return append(slices.Clone(catalog.NodePrefix), name...) }

// Clock returns the database's time: that of the latest moment.
func (n *Node) Clock() *clock.Clock { return n.clock }

// Name returns the node's name.
func (n *Node) Name() string { return n.o.Name }

// Members returns all nodes that have a row, as of the last beat, by name.
func (n *Node) Members() []Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]Member, 0, len(n.mu.members))
	for name, m := range n.mu.members {
		all = append(all, Member{
			Name: name, Address: m.row.address, Region: m.row.region, State: m.row.state.String(),
			Self: name == n.o.Name, Preferable: m.row.state == Serving, Quiet: time.Since(m.at), FloorMs: m.row.floorMs,
		})
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Incarnation returns the incarnation of a node as of the last beat, 0 if it is not alive.
func (n *Node) Incarnation(name string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.mu.members[name]; m != nil && m.row.alive() {
		return m.row.incarnation
	}
	return 0
}

// Where returns the node that owns the partition whose owner row has the key, or that should
// claim it if no live node owns it.
func (n *Node) Where(ctx context.Context, key []byte) (name, address string, err error) {
	owners, err := n.Owners(ctx, [][]byte{key})
	if err != nil {
		return "", "", err
	}
	n.mu.Lock()
	m := n.mu.members[owners[0].Node]
	if m != nil && m.row.alive() {
		name, address = owners[0].Node, m.row.address
	}
	n.mu.Unlock()
	if name != "" {
		return name, address, nil
	}
	return n.Preferred(key)
}

// Ready returns why the node cannot serve; nil if it can.
func (n *Node) Ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.readyLocked()
}

func (n *Node) readyLocked() error {
	switch {
	case n.mu.left:
		return ErrLeft
	case !n.mu.up:
		return n.mu.why
	}
	return nil
}

// Owner is what an owner row says.
type Owner struct {
	Node        string // empty: none
	Incarnation uint64
	Epoch       uint64
	LatestMs    int64
}

// Owners returns what the owner rows of keys say now; an absent row is a zero Owner.
func (n *Node) Owners(ctx context.Context, keys [][]byte) ([]Owner, error) {
	all := make([]Owner, 0, len(keys))
	for part := range slices.Chunk(keys, ownersPerLook) {
		values, _, err := n.lookAt(ctx, part...)
		if err != nil {
			return nil, err
		}
		for i, raw := range values {
			if raw == nil {
				all = append(all, Owner{})
				continue
			}
			row, err := decodeOwner(raw)
			if err != nil {
				return nil, fmt.Errorf("owner row %x: %w", part[i], err)
			}
			all = append(all, Owner{row.node, row.incarnation, row.epoch, row.latestMs})
		}
	}
	return all, nil
}

// ownersPerLook bounds the keys of one look.
const ownersPerLook = 256

// lookAt is one bounded look at the engine.
func (n *Node) lookAt(ctx context.Context, keys ...[]byte) ([][]byte, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, n.o.LookTimeout)
	defer cancel()
	values, ms, err := n.o.DB.Look(ctx, keys...)
	if err != nil {
		return nil, 0, fmt.Errorf("look at the engine: %w", err)
	}
	return values, min(max(ms, 0), clock.MaxMs), nil
}

// replace is one bounded commit that changes a row on condition that it is was, or that it
// is absent if was is nil.
func (n *Node) replace(ctx context.Context, key, was, next []byte) error {
	var b kv.Batch
	require(&b, key, was)
	b.Set(key, next)
	return n.commit(ctx, &b)
}

func (n *Node) commit(ctx context.Context, b *kv.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, n.o.LookTimeout)
	defer cancel()
	return n.o.DB.Commit(ctx, b)
}

func require(b *kv.Batch, key, was []byte) {
	if was == nil {
		b.RequireAbsent(key)
		return
	}
	b.Require(key, was)
}

// aliveRow reports whether a node row shows a live incarnation.
func (n *Node) isAlive(raw []byte, incarnation uint64) (row nodeRow, alive bool, err error) {
	if raw == nil {
		return nodeRow{}, false, nil
	}
	row, err = decodeNode(raw)
	return row, err == nil && row.alive() && row.incarnation == incarnation, err
}

// changeClock replaces the clock row, for package clock.
func (n *Node) changeClock(edit func(clock.Shared, int64) (clock.Shared, error)) error {
	for range rowTries {
		values, ms, err := n.lookAt(n.ctx, catalog.TimeKey)
		if err != nil {
			return err
		}
		row, err := clock.DecodeShared(values[0])
		if err != nil {
			return err
		}
		next, err := edit(row, ms)
		if err != nil {
			return err
		}
		if raw := next.Encode(); next != row && !bytes.Equal(raw, values[0]) {
			err = n.replace(n.ctx, catalog.TimeKey, values[0], raw)
		}
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("change the clock row: %w", err)
		}
		_, err = n.Moment(n.ctx)
		return err
	}
	return ErrContended
}

// rowTries is how often a change of a row is repeated while others change it.
const rowTries = 8
