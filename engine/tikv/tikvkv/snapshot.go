// SPDX-License-Identifier: MIT

package tikvkv

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/txnkv/txnsnapshot"

	"github.com/mayflydb/mayfly/internal/kv"
)

// warmKeysMax is how many keys are read in one request.
const warmKeysMax = 1000

// snapshot is a timestamp. It holds nothing in the cluster, but this handle has PD keep the
// versions that it shows (safepoint.go).
type snapshot struct {
	db     *DB
	ts     uint64
	taken  time.Time
	reads  *txnsnapshot.KVSnapshot // it keeps what Warm has read
	closed atomic.Bool
	failed atomic.Pointer[error] // set once the snapshot cannot be read any more

	mu   sync.Mutex
	warm map[string]struct{} // guarded by mu
}

// Snapshot implements kv.DB.
func (db *DB) Snapshot() (kv.Snapshot, error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.life.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	taken := time.Now()
	ts, err := db.timestamp(ctx)
	if err != nil {
		return nil, readFailed(context.Background(), err)
	}
	s := &snapshot{db: db, ts: ts, taken: taken, reads: db.store.GetSnapshot(ts)}
	db.open.Lock()
	defer db.open.Unlock()
	db.open.snapshots[s] = struct{}{}
	return s, nil
}

// enter begins a read of the snapshot, until the caller calls s.db.life.RUnlock.
func (s *snapshot) enter() error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return s.db.enter()
}

// fail translates the error of a read, and keeps it if the snapshot is lost.
func (s *snapshot) fail(err error) error {
	err = readFailed(context.Background(), err)
	if errors.Is(err, kv.ErrUnavailable) {
		s.failed.CompareAndSwap(nil, &err)
	}
	return err
}

// Get implements kv.Snapshot.
func (s *snapshot) Get(key []byte) (value []byte, found bool, err error) {
	value, found, err = s.GetInto([]byte{}, key)
	if !found {
		value = nil
	}
	return value, found, err
}

// GetInto implements kv.Snapshot.
func (s *snapshot) GetInto(dst, key []byte) (value []byte, found bool, err error) {
	if err := s.enter(); err != nil {
		return dst, false, err
	}
	defer s.db.life.RUnlock()
	if len(key) == 0 || len(key) > kv.MaxKeyBytes {
		return dst, false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	value, err = s.reads.Get(ctx, s.db.rows.key(key))
	if tikverr.IsErrNotFound(err) {
		return dst, false, nil
	}
	if err == nil {
		value, err = plain(key, value)
	}
	if err != nil {
		return dst, false, s.fail(err)
	}
	return append(dst, value...), true, nil
}

// Warm implements kv.Snapshot.
func (s *snapshot) Warm(keys [][]byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.db.life.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	cold := s.cold(keys)
	for len(cold) > 0 {
		some := cold[:min(len(cold), warmKeysMax)]
		cold = cold[len(some):]
		if _, err := s.reads.BatchGet(ctx, some); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// cold returns the keys, in TiKV, that were not asked for before.
func (s *snapshot) cold(keys [][]byte) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warm == nil {
		s.warm = make(map[string]struct{}, len(keys))
	}
	all := make([][]byte, 0, len(keys))
	for _, key := range keys {
		if len(key) == 0 || len(key) > kv.MaxKeyBytes {
			continue
		}
		if _, asked := s.warm[string(key)]; !asked {
			s.warm[string(key)] = struct{}{}
			all = append(all, s.db.rows.key(key))
		}
	}
	return all
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.db.open.Lock()
	defer s.db.open.Unlock()
	delete(s.db.open.snapshots, s)
}
