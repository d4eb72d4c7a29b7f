// SPDX-License-Identifier: MIT

package pgkv

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/kv"
)

// format is the number of the layout of the tables.
const format = 1

const (
	createTables = `CREATE TABLE IF NOT EXISTS kv (k bytea PRIMARY KEY, v bytea NOT NULL);
CREATE TABLE IF NOT EXISTS kv_format (one boolean PRIMARY KEY, format bigint NOT NULL);
INSERT INTO kv_format VALUES (true, %d) ON CONFLICT (one) DO NOTHING;`
	readFormat = `SELECT format FROM kv_format`
	// Rows that change often, as counters do, find room in their page, and need no new index
	// entry. Dead rows are removed when they are a fiftieth of the table: each walk of expired
	// items passes them.
	tuneTables = `ALTER TABLE kv SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
autovacuum_analyze_scale_factor = 0.2, toast.autovacuum_vacuum_scale_factor = 0.02)`
)

// createTries is how often the tables are made: two processes that make them at once meet an
// error.
const createTries = 5

// createTables makes the tables if there are none, and checks their format.
func (db *DB) createTables(ctx context.Context) error {
	c, err := db.pool.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.pool.release(c)
	rows, err := c.simple(readFormat)
	for range createTries {
		if err == nil && len(rows) > 0 {
			break
		}
		if pe := answered(err); err != nil && pe == nil {
			return readFailed(err)
		}
		_, err = c.simple(fmt.Sprintf(createTables, format))
		if pe := answered(err); err == nil {
			if c.pg.ParameterStatus("crdb_version") == "" { // CockroachDB has no such settings
				_, err = c.simple(tuneTables)
			}
		} else if pe != nil && slices.Contains([]string{codeUniqueViolation, codeDuplicateObject, codeDuplicateTable, codeSerialization}, pe.Code) {
			err = nil // another process made them
		}
		if err != nil {
			return fmt.Errorf("make the tables of the store: %w", readFailed(err))
		}
		rows, err = c.simple(readFormat)
	}
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("the tables of the store could not be made: %v", err)
	}
	found, err := strconv.Atoi(string(rows[0][0]))
	if err != nil {
		return fmt.Errorf("%w: the format is %q", kv.ErrCorrupt, rows[0][0])
	}
	if found > format {
		return fmt.Errorf("%w: the tables have format %d, and this version knows %d", kv.ErrNewerFormat, found, format)
	}
	return nil
}
