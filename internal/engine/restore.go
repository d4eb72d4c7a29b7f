// SPDX-License-Identifier: MIT

// Making a database of the files of a backup.

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// RestoreOptions are the parameters of Restore.
type RestoreOptions struct {
	DB kv.DB
	// AtMs is the database's time of the backup.
	AtMs int64
	// WithoutTTL removes the default TTL of every container, so that no item expires, also
	// not those that would be dead by now. Items that were dead at the time of the backup are
	// purged.
	WithoutTTL bool
	Logger     *slog.Logger
}

// Restore begins a new history in a database that was put together from a backup. If it is
// interrupted, the files have to be put together again.
func Restore(ctx context.Context, o RestoreOptions) error {
	if err := openFormat(o.DB, migrations[:], o.Logger); err != nil {
		return err
	}
	if o.WithoutTTL {
		if err := o.removeTTLs(ctx); err != nil {
			return err
		}
	}
	cat, err := catalog.Open(o.DB, catalog.Options{})
	if err != nil {
		return err
	}
	snap, err := o.DB.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for _, c := range inOrder(cat) {
		var b kv.Batch
		var ids []int
		for i := range c.Ranges {
			ids = append(ids, c.Ranges[i].ID)
		}
		if c.Split != nil { // what is copied so far stays as far behind as it is
			ids = append(ids, c.Split.Children[:]...)
		}
		for _, id := range ids {
			if err := store.JumpLSN(&b, snap, c, id); err != nil {
				return err
			}
		}
		if b.Len() == 0 {
			continue
		}
		if err := o.DB.Commit(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// removeTTLs opens the database at the time of the backup, purges what was dead then, and
// removes the default TTLs.
func (o *RestoreOptions) removeTTLs(ctx context.Context) (err error) {
	state, err := loadClock(o.DB)
	if err != nil {
		return err
	}
	// A test clock adds its offset to the time of the machine; without one it is 0.
	at := clock.Reading{WallMs: max(o.AtMs, state.FloorMs) - state.OffsetMs, MonoMs: 1}
	e, err := Open(Options{
		DB: o.DB, TestClock: state.Test, PurgePaused: true, Logger: o.Logger,
		ClockSource: func() clock.Reading { return at }, ClockBoot: func() clock.Boot { return clock.Boot{} },
		Explain: func(err error) (int, string) { return 0, err.Error() }, // no script runs
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, c := range inOrder(e.catalog) {
		if c.DefaultTTL == catalog.TTLAbsent {
			continue
		}
		if _, err := e.PurgeNow(ctx, c); err != nil {
			return fmt.Errorf("purge container %q: %w", c.ID, err)
		}
		if err := e.removeTTL(ctx, c); err != nil {
			return fmt.Errorf("remove the TTL of container %q: %w", c.ID, err)
		}
	}
	return nil
}

// ofTTL are the properties of a definition that need a default TTL.
var ofTTL = []string{"defaultTtl", "ttlPropertyPath", "expireAtPath", "expireAtPast", "slidingTtlPercent", "slidingTtlInChangeFeed", "undeleteGraceSeconds", "ttlFinality"}

func (e *Engine) removeTTL(ctx context.Context, c *catalog.Container) error {
	var definition map[string]json.RawMessage
	if err := json.Unmarshal(c.Body, &definition); err != nil {
		return err
	}
	for _, name := range ofTTL {
		delete(definition, name)
	}
	body, err := json.Marshal(definition)
	if err != nil {
		return err
	}
	_, _, err = e.Write(ctx, catalog.Write{Address: catalog.Address{Kind: catalog.Containers, Database: c.DatabaseID, ID: c.ID}, Mode: catalog.Replace, Body: body})
	return err
}
