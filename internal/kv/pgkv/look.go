// SPDX-License-Identifier: MIT

package pgkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/mayflydb/mayfly/internal/kv"
)

// sweepRows is how many rows a sweep removes at a time: a longer transaction would hold back
// vacuum.
const sweepRows = 10_000

// Look implements kv.DB.
func (db *DB) Look(ctx context.Context, keys ...[]byte) (values [][]byte, ms int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := db.enter(); err != nil {
		return nil, 0, err
	}
	defer db.life.RUnlock()
	param := byteaArray(keys)
	err = db.read(ctx, func(c *conn) error {
		values, ms = make([][]byte, len(keys)), 0
		return c.query(lookRows, func(row [][]byte) error {
			if row[1] == nil {
				ms = int64(binary.BigEndian.Uint64(row[0]))
				return nil
			}
			for i, key := range keys {
				if bytes.Equal(key, row[1]) {
					values[i] = bytes.Clone(nonNil(row[2]))
				}
			}
			return nil
		}, param)
	})
	if err != nil {
		return nil, 0, err
	}
	return values, ms, nil
}

// read runs a read on any connection, and once more if the connection turns out to be broken.
func (db *DB) read(ctx context.Context, run func(c *conn) error) error {
	for try := 0; ; try++ {
		c, err := db.pool.acquire(ctx)
		if err != nil {
			return err
		}
		err = run(c)
		broken := c.pg.IsClosed()
		db.pool.release(c)
		if err == nil {
			return nil
		}
		if err = readFailed(err); try > 0 || !broken || !errors.Is(err, kv.ErrUnavailable) {
			return err
		}
	}
}

// Sweep implements kv.DB. A later durable commit makes it durable: the log of the server has
// one order.
func (db *DB) Sweep(ctx context.Context, lower, upper []byte) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.life.RUnlock()
	for bytes.Compare(lower, upper) < 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := upper
		err := db.read(ctx, func(c *conn) error {
			err := c.query(sweepBound, func(row [][]byte) error {
				next = bytes.Clone(row[0])
				return nil
			}, nonNil(lower), upper)
			if err != nil {
				return err
			}
			var m strings.Builder
			m.WriteString("SET LOCAL synchronous_commit=off;")
			deleteRange(&m, lower, next)
			return c.send(m.String())
		})
		if err != nil {
			return err
		}
		lower = next
	}
	return ctx.Err()
}
