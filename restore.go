// SPDX-License-Identifier: MIT

package mayfly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/rest"
	"github.com/mayflydb/mayfly/internal/store"
)

// Backup is what a backup of a server begins with: the moment, and its files.
type Backup = rest.Backup

// Sums are the checksums of files, CRC-32C.
type Sums = rest.Sums

// The names of the first and the last entry of a backup as a server sends it.
const (
	BackupList = rest.BackupList
	BackupSums = rest.BackupSums
)

// StoreDir returns the directory of the storage engine's files in a directory of data.
func StoreDir(dir string) string { return Options{Dir: dir}.dataDir() }

// LeastFreeBytes is how much space must be free on the disk for writes that add data.
const LeastFreeBytes = engine.LeastFreeBytes

// FreeBytes returns how much space is left on the disk of a directory, if the system says so.
func FreeBytes(dir string) (free uint64, known bool) { return pebblekv.FreeBytes(dir) }

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	// Store is a directory with the files of a backup, and nothing else.
	Store string
	// At is the time of the backup.
	At time.Time
	// WithoutTTL removes the default TTL of all containers, so that items come back which
	// would be dead by now. Those that were dead at the time of the backup stay dead.
	WithoutTTL bool
}

// Restore makes the files of a backup a database of its own: with a new history, so that
// positions in change feeds and session tokens of before are known to be of before. If it is
// interrupted, the files must be copied again.
func Restore(ctx context.Context, o RestoreOptions) error {
	logger := slog.New(slog.DiscardHandler)
	db, err := pebblekv.Open(pebblekv.Options{Dir: o.Store, IsIndexKey: store.IsIndexKey, Logger: logger})
	if err != nil {
		return fmt.Errorf("open the files in %s: %w", filepath.Clean(o.Store), err)
	}
	err = engine.Restore(ctx, engine.RestoreOptions{DB: db, AtMs: o.At.UnixMilli(), WithoutTTL: o.WithoutTTL, Logger: logger})
	return errors.Join(err, db.Close())
}
