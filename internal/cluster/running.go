// SPDX-License-Identifier: MIT

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// RunningNode is a node whose row changes.
type RunningNode struct {
	Name string
	// Format is the newest format of data that it understands.
	Format int
}

// Running watches the node rows, and returns the nodes that are running. One whose row stands
// still may have crashed, or be stopped: it is declared dead, so that it registers anew and
// sees the format of the data before it does anything else.
func Running(ctx context.Context, db kv.DB, watch time.Duration) (nodes []RunningNode, err error) {
	before, err := aliveRows(db)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	if err := sleep(ctx, watch); err != nil {
		return nil, err
	}
	after, err := aliveRows(db)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		raw := after[name]
		row, err := decodeNode(raw)
		if err != nil {
			return nil, fmt.Errorf("row of node %s: %w", name, err)
		}
		if bytes.Equal(before[name], raw) {
			dead := row
			dead.state = Dead
			var b kv.Batch
			b.Require(nodeKey(name), raw)
			b.Set(nodeKey(name), dead.encode())
			err := db.Commit(ctx, &b)
			if err == nil {
				continue
			}
			if !errors.Is(err, kv.ErrConflict) { // else it beats after all
				return nil, fmt.Errorf("declare node %s dead: %w", name, err)
			}
		}
		nodes = append(nodes, RunningNode{name, int(row.format)})
	}
	return nodes, nil
}

// aliveRows returns the rows of nodes that are alive by them.
func aliveRows(db kv.DB) (map[string][]byte, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("read the node rows: %w", err)
	}
	defer snap.Close()
	all := map[string][]byte{}
	lower, upper := nodeKey(""), nodeKey("\xff\xff")
	for e, err := range snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, fmt.Errorf("read the node rows: %w", err)
		}
		name := string(e.Key[len(lower):])
		row, err := decodeNode(e.Value)
		if err != nil {
			return nil, fmt.Errorf("row of node %s: %w", name, err)
		}
		if row.alive() {
			all[name] = bytes.Clone(e.Value)
		}
	}
	return all, nil
}
