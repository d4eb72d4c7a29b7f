// SPDX-License-Identifier: MIT

package tikvkv

import (
	"context"
	"errors"
	"fmt"

	tikverr "github.com/tikv/client-go/v2/error"

	"github.com/mayflydb/mayfly/internal/kv"
)

func isConflict(err error) bool { return errors.Is(err, kv.ErrConflict) }

// readFailed translates the error of a read. The client has repeated the read for as long as
// the cluster did not answer, so what is left is that it cannot be reached. A caller whose own
// context has ended gets that context's error.
func readFailed(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, kv.ErrCorrupt) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// commitFailed translates the error of a transaction's commit. again says that it is worth
// repeating.
//
// A transaction is committed when its primary key is. The client says so if it has sent that
// and got no answer; with any other error the key was not committed, and never will be: the
// locks of the transaction are rolled back.
func commitFailed(err error) (translated error, again bool) {
	var (
		large     *tikverr.ErrTxnTooLarge
		entry     *tikverr.ErrEntryTooLarge
		retryable *tikverr.ErrRetryable
		latch     *tikverr.ErrWriteConflictInLatch
		deadlock  *tikverr.ErrDeadlock
	)
	switch {
	case err == nil:
		return nil, false
	case tikverr.IsErrorUndetermined(err):
		return fmt.Errorf("%w: %w", kv.ErrUnknown, err), false
	case tikverr.IsErrWriteConflict(err), errors.As(err, &retryable), errors.As(err, &latch), errors.As(err, &deadlock):
		return fmt.Errorf("%w: other commits came between: %w", kv.ErrUnavailable, err), true
	case errors.As(err, &large), errors.As(err, &entry):
		return fmt.Errorf("%w: %w", kv.ErrLimit, err), false
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err), false
}

// plain returns a value without the byte that every value has in TiKV, which refuses empty
// ones.
func plain(key, value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, fmt.Errorf("%w: the value of the key %x in TiKV has no bytes", kv.ErrCorrupt, key)
	}
	return value[: len(value)-1 : len(value)-1], nil
}
