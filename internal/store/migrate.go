// SPDX-License-Identifier: MIT

// The step to format 8. Before it, keys of rows had partition keys of any length. Rows with
// one of more than maxPlacedPK bytes get the key that they have today (keys.go).

package store

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// placedRows and placedBytes bound a batch of the migration.
	placedRows  = 1000
	placedBytes = 1 << 20
	// placedLog is after how many rows the migration logs how far it is.
	placedLog = 5_000_000
)

// PlaceLong rewrites all rows whose keys have a long partition key. It may be repeated, also
// if it ended early: rows are copied in batches, and the old ones of a beginning of
// partition keys are removed when all of them have a copy.
func PlaceLong(db kv.DB, logger *slog.Logger) error { return placeLong(db, logger, placedRows) }

// placeLong is PlaceLong with batches of at most so many rows.
func placeLong(db kv.DB, logger *slog.Logger, most int) error {
	snap, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	m := placing{db: db, snap: snap, logger: logger, most: most}
	for lower := []byte{partitionTag}; ; {
		key, err := firstKey(snap, lower, []byte{partitionTag + 1})
		if err != nil || key == nil {
			return err
		}
		if len(key) <= prefixBytes { // of no partition, which the check reports
			lower = append(key, 0)
			continue
		}
		x := prefix(key[:prefixBytes])
		for _, space := range []byte{idSpace, partSpace, uniqueSpace, removalSpace} {
			if err := m.space(&x, space); err != nil {
				return err
			}
		}
		lower = kv.After(x[:])
	}
}

// placing is a migration under way.
type placing struct {
	db     kv.DB
	snap   kv.Snapshot
	logger *slog.Logger
	batch  kv.Batch
	rows   int // in the batch
	most   int
	// beginning is what the old keys begin with that are being copied. All keys that begin
	// so have long partition keys: none that is not long has a beginning of this length in
	// common with a longer one.
	beginning []byte
	seen      int64
}

// space rewrites the rows of a space of a partition.
func (m *placing) space(x *prefix, space byte) error {
	lower, upper := x.space(space)
	for e, err := range m.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return err
		}
		if m.seen++; m.seen%placedLog == 0 {
			m.logger.Info("shortening keys of rows", "seen", m.seen)
		}
		at, end, long := longPK(space, e.Key[prefixBytes+1:])
		if !long {
			continue
		}
		if err := m.place(e, prefixBytes+1+at, prefixBytes+1+end); err != nil {
			return err
		}
	}
	m.endBeginning()
	return m.flush(1)
}

// longPK returns where the partition key is in a key, after the byte of the space, and
// whether it is long. A key that cannot be read stays: the check reports it.
func longPK(space byte, key []byte) (at, end int, long bool) {
	if len(key) <= maxPlacedPK {
		return 0, 0, false
	}
	at = 1
	if space != uniqueSpace {
		_, rest, err := value.DecodeBytesKey(key)
		if err != nil {
			return 0, 0, false
		}
		at = len(key) - len(rest)
	}
	after, err := value.SkipPartitionKey(key[at:])
	end = len(key) - len(after)
	return at, end, err == nil && end-at > maxPlacedPK
}

// place copies a row whose key has a long partition key from at to end.
func (m *placing) place(e kv.Entry, at, end int) error {
	if beginning := e.Key[:at+maxPlacedPK]; !bytes.Equal(beginning, m.beginning) {
		m.endBeginning()
		m.beginning = bytes.Clone(beginning)
	}
	key := appendPlacedPK(bytes.Clone(e.Key[:at]), e.Key[at:end])
	m.batch.Set(append(key, e.Key[end:]...), e.Value)
	m.rows++
	return m.flush(m.most)
}

// endBeginning removes the old rows of the beginning, which have all been copied.
func (m *placing) endBeginning() {
	if m.beginning != nil {
		m.batch.DeleteRange(m.beginning, kv.After(m.beginning))
		m.rows++
	}
	m.beginning = nil
}

// flush commits what was gathered, if it is of so many rows or of many bytes.
func (m *placing) flush(rows int) error {
	if m.rows < rows && m.batch.Bytes() < placedBytes {
		return nil
	}
	err := m.db.Commit(context.Background(), &m.batch)
	m.batch.Reset()
	m.rows = 0
	return err
}
