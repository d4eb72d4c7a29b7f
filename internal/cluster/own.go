// SPDX-License-Identifier: MIT

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Lease is the right to serve a partition, until its owner row changes.
type Lease struct {
	// Fence is the value of the owner row, which every commit of the partition must require
	// (rule 1).
	Fence []byte
	// Epoch grows with every claim.
	Epoch uint64
	// OpenedMs is the opening moment: the partition must never look at its items at an
	// earlier time (rule 5).
	OpenedMs int64
}

// Own claims the partition whose owner row has the key: always under a new epoch, so that
// nothing sent under an older one can land (rule 6). The caller has no such partition open.
// The error is a *NotOwnerError if another live node owns it, or should claim it.
func (n *Node) Own(ctx context.Context, key []byte) (Lease, error) { return n.own(ctx, key, false) }

// Take is Own of a partition without a live owner, whichever node is preferred: for a caller
// that cannot reach that node.
func (n *Node) Take(ctx context.Context, key []byte) (Lease, error) { return n.own(ctx, key, true) }

func (n *Node) own(ctx context.Context, key []byte, anyway bool) (Lease, error) {
	for range rowTries {
		lease, err := n.claim(ctx, key, anyway)
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknown) {
			return lease, err
		}
	}
	return Lease{}, ErrContended
}

// Renew is Own after a commit of the partition whose outcome is unknown (rule 6). The
// partition is closed.
func (n *Node) Renew(ctx context.Context, key []byte) (Lease, error) { return n.Own(ctx, key) }

func (n *Node) claim(ctx context.Context, key []byte, anyway bool) (Lease, error) {
	n.mu.Lock()
	incarnation, err := n.mu.row.incarnation, n.readyLocked()
	delete(n.mu.owned, string(key))
	n.mu.Unlock()
	if err != nil {
		return Lease{}, err
	}
	values, _, err := n.lookAt(ctx, key)
	if err != nil {
		return Lease{}, err
	}
	var was ownerRow
	if values[0] != nil {
		if was, err = decodeOwner(values[0]); err != nil {
			return Lease{}, fmt.Errorf("owner row %x: %w", key, err)
		}
	}
	openMs, err := n.mayClaim(ctx, key, was, incarnation, anyway)
	if err != nil {
		return Lease{}, err
	}
	nowMs, err := n.passed(ctx, openMs, n.o.ClaimWait) // rule 5
	if err != nil {
		return Lease{}, err
	}
	next := ownerRow{n.o.Name, incarnation, was.epoch + 1, max(openMs, nowMs)}
	raw := next.encode()
	if err := n.replace(ctx, key, values[0], raw); err != nil {
		return Lease{}, fmt.Errorf("claim the partition %x: %w", key, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.readyLocked(); err != nil {
		return Lease{}, err
	}
	if n.mu.row.incarnation != incarnation { // the claim is that of a dead incarnation
		return Lease{}, ErrNotAlive
	}
	n.mu.owned[string(key)] = next
	return Lease{raw, next.epoch, next.latestMs}, nil
}

// mayClaim decides whether this node claims a partition with the owner row was, and returns
// the time before which it must not look at its items.
func (n *Node) mayClaim(ctx context.Context, key []byte, was ownerRow, incarnation uint64, anyway bool) (openMs int64, err error) {
	if was.node == n.o.Name && was.incarnation == incarnation {
		n.mu.Lock()
		defer n.mu.Unlock()
		return max(was.latestMs, n.mu.lastMs), nil
	}
	openMs = was.latestMs
	if was.node != "" {
		values, _, err := n.lookAt(ctx, nodeKey(was.node))
		if err != nil {
			return 0, err
		}
		owner, alive, err := n.isAlive(values[0], was.incarnation)
		switch {
		case err != nil:
			return 0, fmt.Errorf("row of node %s: %w", was.node, err)
		case alive: // rule 3
			return 0, &NotOwnerError{was.node, owner.address}
		}
		if values[0] != nil { // the last beat may have seen it alive
			n.mu.Lock()
			n.sawLocked(was.node, owner, values[0], time.Now())
			n.mu.Unlock()
		}
		// Rule 5: the floor of the row is at or above that of the dead incarnation, whichever
		// incarnation the row shows.
		openMs = max(openMs, owner.floorMs)
	}
	if anyway {
		return openMs, nil
	}
	name, address, err := n.Preferred(key)
	if err != nil {
		return 0, err
	}
	if name != n.o.Name {
		return 0, &NotOwnerError{name, address}
	}
	return openMs, nil
}

// Release gives a partition up (rule 4). The caller has stopped serving it; latestMs is the
// latest time at which it looked at the partition's items, or later.
func (n *Node) Release(ctx context.Context, key []byte, latestMs int64) error {
	n.mu.Lock()
	was, ok := n.mu.owned[string(key)]
	delete(n.mu.owned, string(key))
	next := ownerRow{"", 0, was.epoch + 1, max(was.latestMs, latestMs, n.mu.lastMs)}
	n.mu.Unlock()
	if !ok {
		return nil
	}
	err := kv.ErrUnknown
	for i := 0; i < rowTries && errors.Is(err, kv.ErrUnknown); i++ {
		err = n.replace(ctx, key, was.encode(), next.encode())
	}
	if errors.Is(err, kv.ErrConflict) {
		return nil // it was released, another has it, or it is gone
	}
	if err != nil { // the row still names this node, which claims it anew if it is asked
		return fmt.Errorf("release the partition %x: %w", key, err)
	}
	return nil
}

// Remove removes the owner row of a partition that this node has claimed and whose
// container was deleted before the claim.
func (n *Node) Remove(ctx context.Context, key []byte) error {
	n.mu.Lock()
	was, ok := n.mu.owned[string(key)]
	delete(n.mu.owned, string(key))
	n.mu.Unlock()
	if !ok {
		return nil
	}
	var b kv.Batch
	b.Require(key, was.encode())
	b.Delete(key, len(was.encode()))
	if err := n.commit(ctx, &b); err != nil && !errors.Is(err, kv.ErrConflict) {
		return fmt.Errorf("remove the owner row %x: %w", key, err)
	}
	return nil
}

// Disown forgets a partition that is closed, or gone with its container, if its owner row
// is still that of the lease; nil is for any. Nothing is written.
func (n *Node) Disown(key, fence []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if was, ok := n.mu.owned[string(key)]; ok && (fence == nil || bytes.Equal(was.encode(), fence)) {
		delete(n.mu.owned, string(key))
	}
}

// Preferred returns the node that should own a partition, if there is a choice: the highest
// by rendezvous hash of the serving nodes, those of the write region first. The error is
// ErrNoNode if there is none.
func (n *Node) Preferred(key []byte) (name, address string, err error) {
	region := n.o.WriteRegion()
	n.mu.Lock()
	defer n.mu.Unlock()
	var best struct {
		in     bool
		weight uint64
	}
	for other, m := range n.mu.members {
		if m.row.state != Serving {
			continue
		}
		in, weight := region != "" && m.row.region == region, rendezvous(other, key)
		if name == "" || in && !best.in || in == best.in && weight > best.weight {
			name, address, best.in, best.weight = other, m.row.address, in, weight
		}
	}
	if name == "" {
		return "", "", ErrNoNode
	}
	return name, address, nil
}

// rendezvous returns the weight of a node for a key. All nodes must compute the same.
func rendezvous(name string, key []byte) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write(key)
	x := h.Sum64() // its high bits depend little on the last bytes: mixed as in SplitMix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
