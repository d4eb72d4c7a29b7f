// SPDX-License-Identifier: MIT

// The format of the data: which formats can be opened, and how older ones are migrated.
// DESIGN.md says what is promised.

package engine

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
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
	noMigration, // to 6: items that name their deadline have a longer header
	noMigration, // to 7: items that were touched have a longer header, and two feed rows
}

// noMigration is the step to a format that keeps all rows of the one before. Its number
// makes versions that cannot read the format refuse the data.
func noMigration(kv.DB, *slog.Logger) error { return nil }

// openFormat marks new data with the current format, migrates older data with the steps
// from oldestFormat on, and refuses any other.
func openFormat(db kv.DB, steps []migration, logger *slog.Logger) error {
	newest := oldestFormat + len(steps)
	format, err := readFormat(db, newest)
	if err != nil {
		return err
	}
	if format == 0 {
		return writeFormat(db, newest)
	}
	for ; format < newest; format++ {
		logger.Info("migrating the data to a newer format", "from", format, "to", format+1)
		if err := steps[format-oldestFormat](db, logger); err != nil {
			return fmt.Errorf("migrate the data from format %d to %d: %w", format, format+1, err)
		}
		if err := writeFormat(db, format+1); err != nil {
			return err
		}
		logger.Info("migrated the data", "format", format+1)
	}
	return nil
}

// readFormat returns the format of the data, 0 if there is none, and refuses those that
// are not from oldestFormat to newest.
func readFormat(db kv.DB, newest int) (int, error) {
	raw, found, err := kv.Get(db, catalog.FormatKey)
	switch {
	case err != nil || !found:
		return 0, err
	case len(raw) == 0:
		return 0, fmt.Errorf("%w: the format row is empty", kv.ErrCorrupt)
	case raw[0] == copyFormat && len(raw) == copyMarkBytes:
		return 0, ErrHalfCopied
	case len(raw) != 1 || raw[0] == 0:
		return 0, fmt.Errorf("%w: format row %x", kv.ErrCorrupt, raw)
	case raw[0] < oldestFormat:
		return 0, fmt.Errorf("the data has format %d, from before the first release: this version reads %d to %d", raw[0], oldestFormat, newest)
	case int(raw[0]) > newest:
		return 0, fmt.Errorf("%w: it is %d, and this version understands up to %d", kv.ErrNewerFormat, raw[0], newest)
	}
	return int(raw[0]), nil
}

func writeFormat(db kv.DB, format int) error {
	return kv.Set(context.Background(), db, catalog.FormatKey, []byte{byte(format)})
}
