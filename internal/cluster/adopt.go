// SPDX-License-Identifier: MIT

package cluster

import (
	"bytes"
	"fmt"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Adopt adds to b what replaces a partition that this node owns, under the given fence, by
// its children: they belong to this node from that commit on, so that its floor covers what
// it has looked at in the partition (rule 5). adopted must be called with the outcome. The
// error says that the node does not own the partition so any more.
func (n *Node) Adopt(b *kv.Batch, key, fence []byte, children [][]byte) (adopted func(bool), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was, ok := n.mu.owned[string(key)]
	if !ok || !bytes.Equal(was.encode(), fence) || n.readyLocked() != nil {
		return nil, fmt.Errorf("%w: the partition %x is not owned as it was", ErrNotAlive, key)
	}
	b.Require(key, fence)
	b.Delete(key, len(fence))
	child := ownerRow{was.node, was.incarnation, 1, max(was.latestMs, n.mu.lastMs)}
	for _, key := range children {
		b.RequireAbsent(key)
		b.Set(key, child.encode())
		n.mu.owned[string(key)] = child
	}
	return func(done bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if done {
			delete(n.mu.owned, string(key))
			return
		}
		for _, key := range children {
			if now, ok := n.mu.owned[string(key)]; ok && now == child {
				delete(n.mu.owned, string(key))
			}
		}
	}, nil
}
