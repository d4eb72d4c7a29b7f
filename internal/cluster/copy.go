// SPDX-License-Identifier: MIT

// What becomes of a cluster's own rows when the data is copied to another engine: only the
// time that they stand for.

package cluster

import (
	"bytes"
	"fmt"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// IsNodeKey reports whether a key is that of a node row.
func IsNodeKey(key []byte) bool { return bytes.HasPrefix(key, catalog.NodePrefix) }

// NodeFloor returns the floor of a node row: no time that the node has used is above it. It
// also returns whether the node is alive, as far as the row tells.
func NodeFloor(raw []byte) (ms int64, alive bool, err error) {
	row, err := decodeNode(raw)
	return row.floorMs, row.alive(), err
}

// OwnerLatest returns the latest time at which a partition was looked at, before the epoch of
// its owner row.
func OwnerLatest(raw []byte) (ms int64, err error) {
	row, err := decodeOwner(raw)
	return row.latestMs, err
}

// FormerNode returns the row of a node that has left, which stands for all that have used
// the time of the data up to ms, on another engine. Nodes that join do not go below it.
func FormerNode(name string, ms int64) (key, row []byte, err error) {
	if name == "" || len(name) > MaxNameBytes || ms < 0 {
		return nil, nil, fmt.Errorf("%w: %q", ErrName, name)
	}
	r := nodeRow{state: Left, floorMs: ms}
	return nodeKey(name), r.encode(), nil
}
