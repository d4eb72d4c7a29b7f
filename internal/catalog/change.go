// SPDX-License-Identifier: MIT

// Changes of the catalog, of this process and of others on the same engine.

package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/kv"
)

// maxRepeats bounds how often a change is repeated because others came first. Changes of
// the catalog are rare, and of several that meet one succeeds, so that even the changes of
// many nodes at once get their turn.
const maxRepeats = 32

// errOvertaken: another process has changed the catalog since this one loaded it. Nothing
// was written.
var errOvertaken = errors.New("another process has changed the catalog")

// change runs do, which decides on the current state and commits. If another process has
// changed the catalog, it loads that, and runs do again.
func (c *Catalog) change(do func() error) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	for range maxRepeats {
		err := do()
		if !errors.Is(err, errOvertaken) {
			return err
		}
		if err := c.reload(); err != nil {
			return err
		}
	}
	return ErrContended
}

// reload replaces the state by what the engine holds. The caller holds changes, so that no
// older state replaces a newer one.
func (c *Catalog) reload() error {
	s, err := load(c.db, c.options)
	if err != nil {
		return fmt.Errorf("load the catalog: %w", err)
	}
	c.state.Store(s)
	return nil
}

// Refresh loads the catalog again if the sequence row, which the caller has read, is newer
// than the state. It reports whether it has done so. A row that is absent is nil.
func (c *Catalog) Refresh(sequence []byte) (reloaded bool, err error) {
	seen, err := decodeSequence(sequence, sequence != nil)
	if err != nil || seen.changes <= c.state.Load().last.changes {
		return false, err
	}
	c.changes.Lock()
	defer c.changes.Unlock()
	if seen.changes <= c.state.Load().last.changes {
		return false, nil // another caller was first
	}
	return true, c.reload()
}

// commit makes a change durable and then publishes it. The sequence row guards against a
// second writer: every change requires the row to be as it was read, and advances it.
func (c *Catalog) commit(ctx context.Context, b *kv.Batch, old, next *state) error {
	next.last.changes++
	if old.last == (sequence{}) {
		b.RequireAbsent(SequenceKey)
	} else {
		b.Require(SequenceKey, old.last.encode())
	}
	b.Set(SequenceKey, next.last.encode())
	err := c.db.Commit(ctx, b)
	switch {
	case err == nil:
		c.state.Store(next)
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, kv.ErrUnavailable), errors.Is(err, kv.ErrUnknown):
		// A commit whose outcome is unknown may come late or not at all: the sequence row
		// keeps it from undoing another change, and shows it when it has come.
		return err
	case errors.Is(err, kv.ErrConflict):
		return errOvertaken
	case errors.Is(err, kv.ErrLimit): // nothing was written
		return invalid("The resource is too large to be stored: it takes more than %d MiB.", kv.MaxValueBytes>>20)
	}
	return fmt.Errorf("%w: %w", ErrCommit, err)
}

// PurgeSettings returns what operators want of purge; nil if they have said nothing.
func (c *Catalog) PurgeSettings() []byte { return c.state.Load().purge }

// ChangePurge changes what operators want of purge. change gets the present settings, and
// may be called again if another process changes the catalog meanwhile.
func (c *Catalog) ChangePurge(ctx context.Context, change func(was []byte) ([]byte, error)) error {
	return c.change(func() error {
		old := c.state.Load()
		settings, err := change(old.purge)
		if err != nil {
			return err
		}
		next, b := *old, kv.Batch{}
		next.purge = settings
		b.Set(PurgeKey, settings)
		return c.commit(ctx, &b, old, &next)
	})
}

// Format returns the format of the data as of the last change of the catalog: the one that
// rows are written in. It is 0 if there was no data yet.
func (c *Catalog) Format() int { return c.state.Load().format }

// RaiseFormat replaces the format row, which is was. Every node knows that with its next
// moment.
func (c *Catalog) RaiseFormat(ctx context.Context, was []byte, number int) error {
	return c.change(func() error {
		old := c.state.Load()
		next, b := *old, kv.Batch{}
		next.format = number
		b.Require(FormatKey, was)
		b.Set(FormatKey, []byte{byte(number)})
		return c.commit(ctx, &b, old, &next)
	})
}
