// SPDX-License-Identifier: MIT

package tikvkv

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/tikv/client-go/v2/oracle"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Look implements kv.DB. It is two round trips: a timestamp of PD, whose physical part is the
// time, and the values as of it.
func (db *DB) Look(ctx context.Context, keys ...[]byte) (values [][]byte, ms int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := db.enter(); err != nil {
		return nil, 0, err
	}
	defer db.life.RUnlock()
	return db.look(ctx, db.rows, keys)
}

func (db *DB) look(ctx context.Context, p prefix, keys [][]byte) (values [][]byte, ms int64, err error) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	ts, err := db.timestamp(limited)
	if err != nil {
		return nil, 0, readFailed(ctx, err)
	}
	inTiKV := make([][]byte, 0, len(keys))
	for _, key := range keys {
		inTiKV = append(inTiKV, p.key(key))
	}
	var got map[string][]byte
	if len(keys) > 0 {
		if got, err = db.store.GetSnapshot(ts).BatchGet(limited, inTiKV); err != nil {
			return nil, 0, readFailed(ctx, err)
		}
	}
	values = make([][]byte, len(keys))
	for i, key := range inTiKV {
		value, found := got[string(key)]
		if !found {
			continue
		}
		if value, err = plain(key, value); err != nil {
			return nil, 0, err
		}
		values[i] = append([]byte{}, value...)
	}
	return values, oracle.ExtractPhysical(ts), nil
}

// sweepRows is how many rows a sweep removes in one transaction.
const sweepRows = 4000

// Sweep implements kv.DB.
//
// It removes the rows in small transactions, which needs nobody's consent. A range of more than
// a million rows is destroyed instead, files and all, by each server of the cluster. That is
// safe once the safe point has passed: then no transaction whose fate hangs on a row of the
// range is undecided any more, and no server is so far behind that it brings rows back.
func (db *DB) Sweep(ctx context.Context, lower, upper []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.enter(); err != nil {
		return err
	}
	defer db.life.RUnlock()
	if upper != nil && bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	from, to := db.rows.bounds(lower, upper)
	for destroyed := false; ; destroyed = true {
		next, err := db.sweepPieces(ctx, from, to)
		if err != nil || next == nil {
			return err
		}
		from = next
		if destroyed {
			continue // some rows were left, as a server may that was out of reach
		}
		if err := db.destroy(ctx, from, to); err != nil {
			return err
		}
	}
}

// sweepPieces removes so many rows of the range as are worth it one by one. It returns where to
// go on, or nil if the range is empty.
func (db *DB) sweepPieces(ctx context.Context, from, to []byte) (next []byte, err error) {
	for range db.collect.sweepPieces {
		n, last, err := db.sweepPiece(ctx, from, to)
		if err != nil || n < sweepRows {
			return nil, err
		}
		from = append(last, 0)
	}
	return from, nil
}

func (db *DB) sweepPiece(ctx context.Context, from, to []byte) (n int, last []byte, err error) {
	for range commitTries {
		var again bool
		if n, last, err, again = db.sweepOnce(ctx, from, to); !again {
			return n, last, err
		}
	}
	return n, last, err
}

func (db *DB) sweepOnce(ctx context.Context, from, to []byte) (n int, last []byte, err error, again bool) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	txn, err := db.store.Begin()
	if err != nil {
		return 0, nil, readFailed(ctx, err), false
	}
	reads := db.store.GetSnapshot(txn.StartTS())
	reads.SetKeyOnly(true)
	reads.SetNotFillCache(true)
	reads.SetScanBatchSize(sweepRows)
	walk, err := reads.Iter(from, to)
	if err != nil {
		_ = txn.Rollback()
		return 0, nil, readFailed(ctx, err), false
	}
	defer walk.Close()
	for walk.Valid() && n < sweepRows {
		last = bytes.Clone(walk.Key())
		if err = txn.Delete(last); err != nil {
			break
		}
		if n++; n == sweepRows {
			break
		}
		if err = walk.Next(); err != nil {
			break
		}
	}
	if err == nil {
		err = limited.Err()
	}
	if err != nil || n == 0 {
		_ = txn.Rollback()
		return 0, nil, readFailed(ctx, err), false
	}
	err, again = commitFailed(txn.Commit(limited))
	return n, last, err, again
}

// destroy has all servers of the cluster destroy the range, once the safe point has passed this
// moment.
func (db *DB) destroy(ctx context.Context, from, to []byte) error {
	now, err := db.timestamp(ctx)
	if err != nil {
		return readFailed(ctx, err)
	}
	db.log.Info("a long range of rows will be destroyed when the cluster's safe point has passed", "wait", db.collect.wait().String())
	for ticker := time.NewTicker(db.collect.every / 4); ; {
		point, err := db.store.GetPDClient().UpdateGCSafePoint(ctx, 0) // it never goes back, so this only tells it
		if err != nil {
			ticker.Stop()
			return readFailed(ctx, err)
		}
		if point > now {
			ticker.Stop()
			break
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			return ctx.Err()
		case <-db.stop:
			ticker.Stop()
			return kv.ErrClosed
		case <-ticker.C:
		}
	}
	if err := db.store.UnsafeDestroyRange(ctx, from, to); err != nil {
		return readFailed(ctx, fmt.Errorf("destroy a range: %w", err))
	}
	return nil
}
