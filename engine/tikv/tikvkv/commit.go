// SPDX-License-Identifier: MIT

package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	tkv "github.com/tikv/client-go/v2/kv"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/txnkv/transaction"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// commitTries is how often a commit is tried while commits of others come between. Most
	// need one try, and one that meets a conflict two.
	commitTries = 100
	// A commit that met a conflict waits for a random time before the next try, longer each
	// time, up to longestPause.
	firstPause   = 500 * time.Microsecond
	longestPause = 20 * time.Millisecond
	// entryBytes is what TiKV takes by default, and transactionBytes bounds the memory of a
	// transaction. The largest batch fits, with the keys of ranges that are not long.
	entryBytes       = 6 << 20
	transactionBytes = 256 << 20
)

// Commit implements kv.DB.
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
	if b.Len() == 0 {
		return nil
	}
	return db.commit(ctx, db.rows, b)
}

// commit commits a batch whose keys are below p.
func (db *DB) commit(ctx context.Context, p prefix, b *kv.Batch) error {
	var err error
	for try := range commitTries {
		if try > 1 {
			time.Sleep(rand.N(min(firstPause<<min(try, 10), longestPause)))
		}
		var again bool
		if err, again = db.commitOnce(ctx, p, b); !again {
			return err
		}
	}
	return fmt.Errorf("a commit that was tried %d times: %w", commitTries, err)
}

// commitOnce runs one transaction: read what is required, as of its start, and lock that
// together with what it writes.
func (db *DB) commitOnce(ctx context.Context, p prefix, b *kv.Batch) (err error, again bool) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	ts, err := db.timestamp(limited)
	if err != nil {
		return readFailed(ctx, err), false
	}
	txn, err := db.store.Begin(tikv.WithStartTS(ts))
	if err != nil {
		return readFailed(ctx, err), false
	}
	txn.GetUnionStore().SetEntrySizeLimit(entryBytes, transactionBytes)
	txn.SetEnable1PC(db.onePhase)
	txn.SetEnableAsyncCommit(db.asyncCommit)
	writes, err := prepare(limited, txn, p, b)
	if err != nil || !writes {
		_ = txn.Rollback() // nothing was sent
		if err == nil || errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrLimit) {
			return err, false
		}
		return readFailed(ctx, err), false
	}
	// From here on only the time ends it: that of the caller, if it has one, but not a caller
	// that goes away.
	handed := context.WithoutCancel(ctx)
	deadline, _ := limited.Deadline()
	handed, stop := context.WithDeadline(handed, deadline)
	defer stop()
	var second secondPhase
	err, again = commitFailed(txn.Commit(context.WithValue(handed, secondPhaseKey{}, &second)))
	if err != nil && second.unanswered.Load() {
		return fmt.Errorf("%w: a message of the second phase had no answer: %v", kv.ErrUnknown, err), false
	}
	return err, again
}

// secondPhase is what is known of the second phase of a commit. It is in the commit's context.
type (
	secondPhase    struct{ unanswered atomic.Bool }
	secondPhaseKey struct{}
)

// witness notes messages of the second phase that had no answer. The client sends such a message
// again, and takes a refusal of the repetition for the outcome. But the first one may have
// committed the transaction: a store that keeps nothing of a committed key that was only
// locked says that there is no such lock.
type witness struct{ tikv.Client }

func (w witness) SendRequest(ctx context.Context, addr string, r *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	answer, err := w.Client.SendRequest(ctx, addr, r, timeout)
	if err != nil && r.Type == tikvrpc.CmdCommit {
		if second, ok := ctx.Value(secondPhaseKey{}).(*secondPhase); ok {
			second.unanswered.Store(true)
		}
	}
	return answer, err
}

// prepare checks what the batch requires and puts its writes into the transaction. It reports
// whether there are any.
func prepare(ctx context.Context, txn *transaction.KVTxn, p prefix, b *kv.Batch) (writes bool, err error) {
	if err := require(ctx, txn, p, b); err != nil {
		return false, err
	}
	var value []byte
	for op := range b.Ops {
		switch op.Kind {
		case kv.OpSet:
			writes = true
			value = append(append(value[:0], op.Value...), 0)
			err = txn.Set(p.key(op.Key), value)
		case kv.OpDelete:
			writes = true
			err = txn.Delete(p.key(op.Key))
		case kv.OpDeleteRange:
			if bytes.Compare(op.Key, op.Value) < 0 {
				writes = true
				err = deleteRange(ctx, txn, p, op.Key, op.Value)
			}
		}
		if err != nil {
			if translated, _ := commitFailed(err); errors.Is(translated, kv.ErrLimit) {
				err = translated
			}
			return false, err
		}
	}
	return writes, nil
}

// require reads the keys of the batch's Requires together, compares them, and locks them.
func require(ctx context.Context, txn *transaction.KVTxn, p prefix, b *kv.Batch) error {
	var keys [][]byte
	for op := range b.Ops {
		if op.Kind == kv.OpRequire || op.Kind == kv.OpRequireAbsent {
			keys = append(keys, p.key(op.Key))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	got, err := txn.GetSnapshot().BatchGet(ctx, keys)
	if err != nil {
		return err
	}
	next := 0
	for op := range b.Ops {
		if op.Kind != kv.OpRequire && op.Kind != kv.OpRequireAbsent {
			continue
		}
		value, found := got[string(keys[next])]
		next++
		if found != (op.Kind == kv.OpRequire) {
			return kv.ErrConflict
		}
		if found {
			if value, err = plain(op.Key, value); err != nil {
				return err
			}
			if !bytes.Equal(value, op.Value) {
				return kv.ErrConflict
			}
		}
	}
	return txn.LockKeys(ctx, &tkv.LockCtx{}, keys...)
}

// deleteRange deletes the rows of a range that are there as of the start of the transaction,
// and those that the batch has set before.
func deleteRange(ctx context.Context, txn *transaction.KVTxn, p prefix, lower, upper []byte) error {
	from, to := p.bounds(lower, upper)
	walk, err := txn.Iter(from, to)
	if err != nil {
		return err
	}
	defer walk.Close()
	var doomed [][]byte
	for walk.Valid() {
		if err := ctx.Err(); err != nil {
			return err
		}
		doomed = append(doomed, bytes.Clone(walk.Key()))
		if err := walk.Next(); err != nil {
			return err
		}
	}
	for _, key := range doomed {
		if err := txn.Delete(key); err != nil {
			return err
		}
	}
	return nil
}
