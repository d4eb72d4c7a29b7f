// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Look implements kv.DB. The engine's time is the machine's.
func (db *DB) Look(ctx context.Context, keys ...[]byte) (values [][]byte, ms int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	snap, err := db.Snapshot()
	if err != nil {
		return nil, 0, err
	}
	defer snap.Close()
	values = make([][]byte, len(keys))
	for i, key := range keys {
		if values[i], _, err = snap.Get(key); err != nil {
			return nil, 0, err
		}
	}
	return values, time.Now().UnixMilli(), nil
}

// Sweep implements kv.DB: a range of any length is one delete.
func (db *DB) Sweep(ctx context.Context, lower, upper []byte) error {
	var b kv.Batch
	b.DeleteRange(lower, upper)
	b.Lazy()
	return db.Commit(ctx, &b)
}

// Far implements kv.DB.
func (db *DB) Far() bool { return false }
