// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// keepBalance moves partitions to their preferred nodes, one at a time, while the
// membership is stable; and all of them, one after another, while this node drains.
func (n *Node) keepBalance() {
	for sleep(n.ctx, n.o.MoveEvery) == nil {
		if n.o.Surrender == nil {
			continue
		}
		switch state, settled := n.standing(); {
		case state == Draining:
			n.surrenderAll(n.ctx)
		case state == Serving && settled:
			if key := n.misplaced(); key != nil {
				n.o.Surrender(n.ctx, key)
			}
		}
	}
}

// standing returns the node's state, zero if it is not up, and whether the membership has
// been stable for long enough.
func (n *Node) standing() (State, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.readyLocked() != nil {
		return 0, false
	}
	return n.mu.row.state, time.Since(n.mu.settledAt) >= n.o.Settled
}

// Owned returns the keys of the owner rows that this node holds, in order.
func (n *Node) Owned() [][]byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	keys := make([][]byte, 0, len(n.mu.owned))
	for key := range n.mu.owned {
		keys = append(keys, []byte(key))
	}
	slices.SortFunc(keys, slices.Compare)
	return keys
}

// misplaced returns the first partition of this node that another is preferred for.
func (n *Node) misplaced() []byte {
	for _, key := range n.Owned() {
		if name, _, err := n.Preferred(key); err == nil && name != n.o.Name {
			return key
		}
	}
	return nil
}

func (n *Node) surrenderAll(ctx context.Context) {
	if n.o.Surrender == nil {
		return
	}
	for _, key := range n.Owned() {
		if ctx.Err() != nil {
			return
		}
		n.o.Surrender(ctx, key)
	}
}

// Drain says in the node row that the node claims nothing any more, and gives its
// partitions up.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.change(ctx, func(next *nodeRow) { next.state = Draining }); err != nil {
		return err
	}
	n.surrenderAll(ctx)
	return nil
}

// DrainNode says in the row of a node that it drains. The node finds that with its next
// beat. The error is ErrUnknownNode if no live node has the name, and ErrLastNode if no other
// node is serving: nobody would claim its partitions.
func (n *Node) DrainNode(ctx context.Context, name string) error {
	for range rowTries {
		values, _, err := n.lookAt(ctx, nodeKey(name))
		if err != nil {
			return err
		}
		if values[0] == nil {
			return ErrUnknownNode
		}
		row, err := decodeNode(values[0])
		if err != nil {
			return fmt.Errorf("row of node %s: %w", name, err)
		}
		if !row.alive() {
			return ErrUnknownNode
		}
		if row.state == Draining {
			return nil
		}
		if err := n.scan(); err != nil {
			return err
		}
		if !slices.ContainsFunc(n.Members(), func(m Member) bool { return m.Name != name && m.Preferable }) {
			return ErrLastNode
		}
		if name == n.o.Name {
			return n.Drain(ctx)
		}
		row.state = Draining
		raw := row.encode()
		err = n.replace(ctx, nodeKey(name), values[0], raw)
		if err == nil {
			n.mu.Lock()
			n.sawLocked(name, row, raw, time.Now())
			n.mu.Unlock()
		}
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknown) {
			return err
		}
	}
	return ErrContended
}

// Draining reports whether the node gives its partitions up.
func (n *Node) Draining() bool {
	state, _ := n.standing()
	return state == Draining
}

// Leave gives all partitions up, ends the beats and writes that the node has left. The
// caller answers no request any more. A node that is not alive just ends.
func (n *Node) Leave(ctx context.Context) error {
	drained := n.Drain(ctx)
	n.cancel() // no beat may find that it has left and register anew
	n.work.Wait()
	left := n.change(ctx, func(next *nodeRow) {
		next.state = Left
		next.floorMs = max(n.mu.lastMs, n.mu.leastMs) // the exact time: a successor waits for nothing
	})
	n.mu.Lock()
	n.mu.left = true
	n.mu.Unlock()
	for _, err := range []error{drained, left} {
		if err != nil && !errors.Is(err, ErrNotAlive) && !errors.Is(err, ErrReplaced) && !errors.Is(err, ErrNewerData) && !errors.Is(err, ErrLeft) {
			return fmt.Errorf("leave the cluster: %w", err)
		}
	}
	return nil
}
