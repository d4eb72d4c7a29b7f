// SPDX-License-Identifier: MIT

package pgkv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// commitTries is how often a commit is sent while the server refuses it because of
	// commits of others. Most need one, and one that meets a conflict two.
	commitTries = 100
	// A commit that was refused waits for a random time before it is sent again, longer each
	// time, up to longestPause.
	firstPause   = 500 * time.Microsecond
	longestPause = 20 * time.Millisecond
)

// Commit implements kv.DB.
//
// It is one message, which the server executes as one serializable transaction: check the
// Requires, delete, set. With a weaker isolation a commit could slip past a fence: deleting a
// key that does not exist locks nothing.
func (db *DB) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	if err := db.enter(); err != nil {
		return err
	}
	defer db.life.RUnlock()
	text := message(b)
	if text == "" {
		return nil
	}
	var err error
	for try := range commitTries {
		if try > 1 {
			time.Sleep(rand.N(min(firstPause<<min(try, 10), longestPause)))
		}
		var again bool
		if err, again = db.commitOnce(ctx, text); !again {
			return err
		}
		ctx = context.WithoutCancel(ctx) // the batch was handed to the engine
	}
	return fmt.Errorf("a commit that was sent %d times: %w", commitTries, err)
}

func (db *DB) commitOnce(ctx context.Context, text string) (err error, again bool) {
	c, err := db.pool.acquire(ctx)
	if err != nil {
		return err, false
	}
	defer db.pool.release(c)
	if err := c.send(text); err != nil {
		return commitFailed(err, c.wire)
	}
	return nil, false
}

// send sends a message of the simple protocol whose rows do not matter.
func (c *conn) send(text string) error {
	c.limit()
	return c.pg.Exec(context.Background(), text).Close()
}
