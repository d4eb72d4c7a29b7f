// SPDX-License-Identifier: MIT

package kvtest

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Model is a simple engine: a map that every commit copies. It keeps every promise of
// package kv but durability, slowly and evidently. It is stricter with the slices of an
// Entry than an engine has to be: it overwrites them at the next step of the scan.
//
// A Model is one handle on its rows. There may be more.
type Model struct {
	*modelRows
	closed bool // guarded by mu
}

// modelRows is what all handles on one store share.
type modelRows struct {
	mu struct {
		sync.Mutex
		rows map[string]string // never changed: a commit replaces the map
		// commits counts those that were applied.
		commits uint64
		time    func() int64
	}
}

// NewModel returns an empty Model.
func NewModel() *Model {
	m := &Model{modelRows: &modelRows{}}
	m.mu.time = func() int64 { return time.Now().UnixMilli() }
	return m
}

// Another returns one more handle on the same rows, as another process would open one.
func (m *Model) Another() *Model { return &Model{modelRows: m.modelRows} }

// SetTime makes the result of ms the engine's time, for all handles.
func (m *Model) SetTime(ms func() int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.time = ms
}

var _ kv.DB = (*Model)(nil)

// Snapshot implements kv.DB.
func (m *Model) Snapshot() (kv.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, kv.ErrClosed
	}
	return &modelSnapshot{model: m, rows: m.mu.rows}, nil
}

// Commit implements kv.DB.
func (m *Model) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return kv.ErrClosed
	}
	for op := range b.Ops {
		value, found := m.mu.rows[string(op.Key)]
		if op.Kind == kv.OpRequire && (!found || value != string(op.Value)) ||
			op.Kind == kv.OpRequireAbsent && found {
			return kv.ErrConflict
		}
	}
	rows := maps.Clone(m.mu.rows)
	if rows == nil {
		rows = map[string]string{}
	}
	for op := range b.Ops {
		applyToMap(rows, op)
	}
	m.mu.rows = rows
	m.mu.commits++
	return nil
}

// Look implements kv.DB.
func (m *Model) Look(ctx context.Context, keys ...[]byte) (values [][]byte, ms int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, 0, kv.ErrClosed
	}
	values = make([][]byte, len(keys))
	for i, key := range keys {
		if value, found := m.mu.rows[string(key)]; found {
			values[i] = []byte(value)
		}
	}
	return values, m.mu.time(), nil
}

// Sweep implements kv.DB.
func (m *Model) Sweep(ctx context.Context, lower, upper []byte) error {
	var b kv.Batch
	b.DeleteRange(lower, upper)
	return m.Commit(ctx, &b)
}

// Far implements kv.DB.
func (m *Model) Far() bool { return false }

// Remains implements kv.DB. There are no files.
func (m *Model) Remains(ranges []kv.Range) (position uint64, left []kv.Remains, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, nil, kv.ErrClosed
	}
	return m.mu.commits, make([]kv.Remains, len(ranges)), nil
}

// Erase implements kv.DB.
func (m *Model) Erase(ctx context.Context, _ []kv.Range, step func(kv.Remains) error) error {
	if m.isClosed() {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return step(kv.Remains{})
}

// Close implements kv.DB.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return kv.ErrClosed
	}
	m.closed = true
	return nil
}

func (m *Model) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func applyToMap(rows map[string]string, op kv.Op) {
	switch op.Kind {
	case kv.OpSet:
		rows[string(op.Key)] = string(op.Value)
	case kv.OpDelete:
		delete(rows, string(op.Key))
	case kv.OpDeleteRange:
		maps.DeleteFunc(rows, func(key, _ string) bool {
			return key >= string(op.Key) && key < string(op.Value)
		})
	}
}

type modelSnapshot struct {
	model *Model
	rows  map[string]string
	mu    struct {
		sync.Mutex
		closed bool
	}
}

func (s *modelSnapshot) Get(key []byte) ([]byte, bool, error) {
	if s.isClosed() {
		return nil, false, kv.ErrClosed
	}
	value, found := s.rows[string(key)]
	if !found {
		return nil, false, nil
	}
	return []byte(value), true, nil
}

func (s *modelSnapshot) GetInto(dst, key []byte) ([]byte, bool, error) {
	value, found, err := s.Get(key)
	return append(dst, value...), found, err
}

func (s *modelSnapshot) Warm([][]byte) error {
	if s.isClosed() {
		return kv.ErrClosed
	}
	return nil
}

func (s *modelSnapshot) Scan(lower, upper []byte, order kv.Order) iter.Seq2[kv.Entry, error] {
	lower, upper = bytes.Clone(lower), bytes.Clone(upper)
	return func(yield func(kv.Entry, error) bool) {
		if s.isClosed() {
			yield(kv.Entry{}, kv.ErrClosed)
			return
		}
		var keys []string
		for key := range s.rows {
			if key >= string(lower) && (upper == nil || key < string(upper)) {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if order == kv.Reverse {
			slices.Reverse(keys)
		}
		for _, key := range keys {
			e := kv.Entry{Key: []byte(key), Value: []byte(s.rows[key])}
			more := yield(e, nil)
			spoil(e.Key)
			spoil(e.Value)
			if !more {
				return
			}
		}
	}
}

func (s *modelSnapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
}

func (s *modelSnapshot) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.closed || s.model.isClosed()
}

// spoil overwrites bytes that are no longer valid, so that a caller that kept them notices.
func spoil(b []byte) {
	for i := range b {
		b[i] ^= 0xff
	}
}
