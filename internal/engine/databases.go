// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// CreateDatabase makes a database out of a request's body. Its containers share t,
// if it is any.
func (e *Engine) CreateDatabase(ctx context.Context, body []byte, t catalog.Throughput) (*catalog.Database, error) {
	if err := e.writable(); err != nil {
		return nil, err
	}
	d, err := e.catalog.CreateDatabase(ctx, body, t, e.clock.Now())
	return d, e.commitFailed(err)
}

// Database returns a database by its name or rid.
func (e *Engine) Database(nameOrRID string) (*catalog.Database, error) {
	return e.catalog.Database(nameOrRID)
}

// Databases returns all databases, the oldest first.
func (e *Engine) Databases() []*catalog.Database { return e.catalog.Databases() }

// DeleteDatabase removes a database, its containers and their items.
func (e *Engine) DeleteDatabase(ctx context.Context, nameOrRID, ifMatch string) error {
	e.settings.Lock()
	defer e.settings.Unlock()
	d, err := e.catalog.Database(nameOrRID)
	if err != nil {
		return err
	}
	if !catalog.Matches(ifMatch, d.ETag) {
		return catalog.ErrPrecondition
	}
	for _, c := range d.Containers() {
		e.closePartitions(c)
		defer e.dropped(c)
	}
	var b kv.Batch
	store.DropDatabase(&b, d.RID)
	defer e.meters.follow(d.RID)
	if err := e.commitFailed(e.catalog.DeleteDatabase(ctx, d.RID, ifMatch, &b)); err != nil {
		return err
	}
	e.removed()
	for _, c := range d.Containers() {
		if err := e.commitFailed(e.purger.Forget(c.RID)); err != nil {
			return err
		}
	}
	return nil
}

// closePartitions makes way for the removal of a container: until dropped is
// called, nobody can open its partitions again. settings is held.
func (e *Engine) closePartitions(c *catalog.Container) {
	var ps []*store.Partition
	e.mu.Lock()
	e.mu.dropping[c.RID] = make(chan struct{})
	for i := range c.Ranges {
		id := partitionID{c.RID, i}
		if p := e.mu.open[id]; p != nil {
			ps = append(ps, p)
			delete(e.mu.open, id)
		}
	}
	e.mu.Unlock()
	for _, p := range ps {
		p.Close()
	}
}

func (e *Engine) dropped(c *catalog.Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.mu.dropping[c.RID])
	delete(e.mu.dropping, c.RID)
}

// ownerMissing turns a missing database into a missing owner.
func ownerMissing(err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return ErrOwnerNotFound
	}
	return err
}
