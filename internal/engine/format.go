// SPDX-License-Identifier: MIT

// The format of the data: which formats can be opened, and how older ones are migrated.
// DESIGN.md says what is promised.

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// oldestFormat is the first format that will always open.
const oldestFormat = 5

// formatVersion is the format of all rows together that this version writes.
const formatVersion = oldestFormat + len(migrations)

// migration rewrites the rows of one format as those of the next. If it ends early, by a
// crash or an error, it runs again from its beginning when the data is next opened. It
// logs its progress if it takes long.
type migration func(db kv.DB, logger *slog.Logger) error

// migrations has the steps in order: the first one begins at oldestFormat.
var migrations = [...]migration{
	noMigration,     // to 6: items that name their deadline have a longer header
	noMigration,     // to 7: items that were touched have a longer header, and two feed rows
	store.PlaceLong, // to 8: long partition keys are hashed in keys
}

// gradual has the formats that need no migration, and whose version can go on writing the
// format before: until the format is raised, its nodes run beside nodes of the version before.
// The catalog says which of the two to write (Catalog.Format).
var gradual = map[int]bool{}

// noMigration is the step to a format that keeps all rows of the one before. Its number
// makes versions that cannot read the format refuse the data.
func noMigration(kv.DB, *slog.Logger) error { return nil }

// openFormat marks new data with the current format, migrates older data with the steps
// from oldestFormat on, and refuses any other.
func openFormat(db kv.DB, steps []migration, logger *slog.Logger) error {
	newest := oldestFormat + len(steps)
	f, err := readFormat(db, newest)
	if err != nil {
		return err
	}
	if f.number == 0 {
		return markFormat(db, newest)
	}
	for f.number < newest {
		logger.Info("migrating the data to a newer format", "from", f.number, "to", f.number+1)
		if f, err = migrate(db, f, steps[f.number-oldestFormat], logger); err != nil {
			return err
		}
		logger.Info("migrated the data", "format", f.number)
	}
	return nil
}

// formats are the formats that a version knows.
type formats struct {
	steps   []migration
	gradual map[int]bool
	watch   time.Duration // for how long nodes are watched
}

func (f formats) newest() int { return oldestFormat + len(f.steps) }

// current are those of this version.
func current() formats { return formats{migrations[:], gradual, finalizeWatch} }

// openShared is openFormat for a shared storage engine. It migrates nothing, since other nodes
// may be running: finalize does that. A gradual format may be that of nodes of the version
// before, which are still running.
func (known formats) openShared(db kv.DB) error {
	newest := known.newest()
	f, err := readFormat(db, newest)
	switch {
	case err != nil:
		return err
	case f.number == 0:
		return markFormat(db, newest)
	case f.number == newest-1 && known.gradual[newest] && f.migration == nil:
		return nil
	case f.number < newest:
		return fmt.Errorf("the data in the storage engine has format %d, and this version writes %d: stop all nodes, and run mayfly cluster finalize --engine", f.number, newest)
	}
	return nil
}

// finalizeWatch is how long Finalize watches for nodes that are running: a node beats twice a
// second.
const finalizeWatch = 2 * time.Second

// Finalize brings the data in a shared storage engine to the format of this version, and
// returns that. To a gradual format it goes while nodes run, if all of them are of this
// version. For others no node may run. The error names the nodes that stand in the way.
func Finalize(ctx context.Context, db kv.DB, logger *slog.Logger) (number int, err error) {
	return current().finalize(ctx, db, logger)
}

func (known formats) finalize(ctx context.Context, db kv.DB, logger *slog.Logger) (int, error) {
	newest := known.newest()
	f, err := readFormat(db, newest)
	if err != nil {
		return 0, err
	}
	raise := f.number == newest-1 && known.gradual[newest] && f.migration == nil
	if raise && len(f.row) == 1 {
		// From here on no node of the version before registers. So those that are to be seen
		// are all.
		if err := changeFormat(ctx, db, f.row, []byte{byte(newest - 1), byte(newest)}); err != nil {
			return 0, err
		}
		f.row = []byte{byte(newest - 1), byte(newest)}
	}
	running, err := cluster.Running(ctx, db, known.watch)
	if err != nil {
		return 0, err
	}
	var inTheWay []string
	for _, n := range running {
		if f.number < newest && (!raise || n.Format < newest) {
			inTheWay = append(inTheWay, n.Name)
		}
	}
	switch {
	case len(inTheWay) == 0 && raise:
		c, err := catalog.Open(db, catalog.Options{})
		if err != nil {
			return 0, err
		}
		return newest, c.RaiseFormat(ctx, f.row, newest)
	case len(inTheWay) == 0:
		return newest, openFormat(db, known.steps, logger)
	case raise:
		err := fmt.Errorf("nodes of an earlier version are running: %s: upgrade them first", strings.Join(inTheWay, ", "))
		return 0, errors.Join(err, changeFormat(ctx, db, f.row, f.row[:1]))
	}
	return 0, fmt.Errorf("nodes are running, which would write the old format: %s: stop them first", strings.Join(inTheWay, ", "))
}

// changeFormat replaces the format row.
func changeFormat(ctx context.Context, db kv.DB, was, next []byte) error {
	var b kv.Batch
	b.Require(catalog.FormatKey, was)
	b.Set(catalog.FormatKey, next)
	err := db.Commit(ctx, &b)
	if errors.Is(err, kv.ErrConflict) {
		return errMigrating
	}
	return err
}

// markFormat marks new data.
func markFormat(db kv.DB, number int) error {
	var b kv.Batch
	b.RequireAbsent(catalog.FormatKey)
	b.Set(catalog.FormatKey, []byte{byte(number)})
	err := db.Commit(context.Background(), &b)
	if errors.Is(err, kv.ErrConflict) { // another node was first
		f, err := readFormat(db, number)
		if err == nil && f.number != number {
			err = errMigrating
		}
		return err
	}
	return err
}

// errMigrating: another process has begun a migration, or has gone on with this one's.
var errMigrating = errors.New("another node migrates the data: start this one again when that is done")

// migrate does one step. Its beginning marks the data with the next format, so that no
// earlier version opens what is rewritten in part, and a row says which step is under way.
// All commits of the step require that row: a process that is replaced in the middle cannot
// go on beside its successor.
func migrate(db kv.DB, f format, step migration, logger *slog.Logger) (format, error) {
	next := format{number: f.number + 1, row: []byte{byte(f.number + 1)}}
	under := fenced{db, binary.BigEndian.AppendUint64([]byte{byte(f.number)}, rand.Uint64())}
	var b kv.Batch
	b.Require(catalog.FormatKey, f.row)
	if f.migration == nil {
		b.RequireAbsent(catalog.MigrationKey)
	} else {
		b.Require(catalog.MigrationKey, f.migration)
	}
	b.Set(catalog.FormatKey, next.row)
	b.Set(catalog.MigrationKey, under.row)
	err := db.Commit(context.Background(), &b)
	if err == nil {
		err = step(under, logger)
	}
	if err == nil {
		b.Reset()
		b.Delete(catalog.MigrationKey, len(under.row))
		err = under.Commit(context.Background(), &b)
	}
	if errors.Is(err, kv.ErrConflict) {
		err = errMigrating
	}
	if err != nil {
		return format{}, fmt.Errorf("migrate the data from format %d to %d: %w", f.number, next.number, err)
	}
	return next, nil
}

// fenced is a store whose commits require the row of a migration.
type fenced struct {
	kv.DB
	row []byte
}

// Commit implements kv.DB.
func (f fenced) Commit(ctx context.Context, b *kv.Batch) error {
	b.Require(catalog.MigrationKey, f.row)
	return f.DB.Commit(ctx, b)
}

// format is what the data says of its format.
type format struct {
	number         int    // the format of all rows; 0 if there is no data
	row, migration []byte // nil if they do not exist
}

// migrationRowBytes is the length of the row of a migration: the format before, and a
// number that no other migration has.
const migrationRowBytes = 9

// readFormat returns the format of the data, that before the step if a migration is under
// way, and refuses those that are not from oldestFormat to newest.
func readFormat(db kv.DB, newest int) (format, error) {
	values, _, err := db.Look(context.Background(), catalog.FormatKey, catalog.MigrationKey)
	if err != nil {
		return format{}, err
	}
	f := format{row: values[0], migration: values[1]}
	switch {
	case f.row == nil && f.migration == nil:
		return f, nil
	case len(f.row) == copyMarkBytes && f.row[0] == copyFormat:
		return f, ErrHalfCopied
	case len(f.row) == 2 && f.row[1] == f.row[0]+1 && f.migration == nil:
		// It is about to be raised, and is the one before until it is.
		if int(f.row[1]) > newest {
			return f, fmt.Errorf("%w: it is about to be %d, and this version understands up to %d", kv.ErrNewerFormat, f.row[1], newest)
		}
	case len(f.row) != 1 || f.row[0] == 0:
		return f, fmt.Errorf("%w: format row %x", kv.ErrCorrupt, f.row)
	case f.row[0] < oldestFormat:
		return f, fmt.Errorf("the data has format %d, from before the first release: this version reads %d to %d", f.row[0], oldestFormat, newest)
	case int(f.row[0]) > newest:
		return f, fmt.Errorf("%w: it is %d, and this version understands up to %d", kv.ErrNewerFormat, f.row[0], newest)
	case f.migration != nil && (len(f.migration) != migrationRowBytes || f.migration[0] != f.row[0]-1 || f.migration[0] < oldestFormat):
		return f, fmt.Errorf("%w: row %x of a migration to format %d", kv.ErrCorrupt, f.migration, f.row[0])
	}
	if f.number = int(f.row[0]); f.migration != nil {
		f.number--
	}
	return f, nil
}
