// SPDX-License-Identifier: MIT

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Running returns the names of the nodes whose rows change while it watches: those that are
// running. A node that has crashed may still be alive by its row.
func Running(ctx context.Context, db kv.DB, watch time.Duration) (names []string, err error) {
	before, err := aliveRows(db)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	if err := sleep(ctx, watch); err != nil {
		return nil, err
	}
	after, err := aliveRows(db)
	for name, raw := range after {
		if !bytes.Equal(before[name], raw) {
			names = append(names, name)
		}
	}
	return names, err
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
