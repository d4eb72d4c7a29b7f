// SPDX-License-Identifier: MIT

package kv

import "context"

// Get returns the value of one key as it is now.
func Get(db DB, key []byte) (value []byte, found bool, err error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, false, err
	}
	defer snap.Close()
	return snap.Get(key)
}

// Set writes the value of one key, durably.
func Set(ctx context.Context, db DB, key, value []byte) error {
	var b Batch
	b.Set(key, value)
	return db.Commit(ctx, &b)
}
