// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

// CreateContainer makes a container out of a request's body.
func (e *Engine) CreateContainer(ctx context.Context, database string, body []byte, t catalog.Throughput) (*catalog.Container, error) {
	if err := e.writable(); err != nil {
		return nil, err
	}
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, err
	}
	def, err := parseDefinition(body)
	if err != nil {
		return nil, err
	}
	e.settings.Lock()
	defer e.settings.Unlock()
	c, err := e.catalog.CreateContainer(ctx, d.RID, def, t, e.clock.Now())
	return c, e.commitFailed(err)
}

// Container returns a container by names or rids.
func (e *Engine) Container(database, container string) (*catalog.Container, error) {
	return e.catalog.Container(database, container)
}

// Containers returns a database and its containers, the oldest first.
func (e *Engine) Containers(database string) (*catalog.Database, []*catalog.Container, error) {
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, nil, err
	}
	return d, d.Containers(), nil
}

// ReplaceContainer gives a container a new definition. It holds for every item
// from the moment that the call returns, without touching one.
func (e *Engine) ReplaceContainer(ctx context.Context, database, container string, body []byte, ifMatch string) (*catalog.Container, error) {
	if err := e.writable(); err != nil {
		return nil, err
	}
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return nil, err
	}
	def, err := parseDefinition(body)
	if err != nil {
		return nil, err
	}
	e.settings.Lock()
	defer e.settings.Unlock()
	c, err = e.catalog.ReplaceContainer(ctx, c.RID, def, ifMatch, e.clock.Now())
	if err != nil {
		return nil, e.commitFailed(err)
	}
	return c, e.reconfigure(context.WithoutCancel(ctx), c)
}

// reconfigure makes all partitions of a container follow its new settings, also
// those that were not open: what has expired by the old ones is known now, and not
// later. The change is durable, so it is carried through whatever the client does
// meanwhile.
func (e *Engine) reconfigure(ctx context.Context, c *catalog.Container) error {
	errs := make([]error, len(c.Ranges))
	var all sync.WaitGroup
	for i := range c.Ranges {
		all.Go(func() {
			p, err := e.partition(c, i)
			if err == nil {
				err = p.Reconfigure(ctx, c)
			}
			if !errors.Is(err, store.ErrClosed) {
				errs[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// DeleteContainer removes a container and its items.
func (e *Engine) DeleteContainer(ctx context.Context, database, container, ifMatch string) error {
	e.settings.Lock()
	defer e.settings.Unlock()
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return err
	}
	if !catalog.Matches(ifMatch, c.ETag) {
		return catalog.ErrPrecondition
	}
	e.closePartitions(c)
	defer e.dropped(c)
	var b kv.Batch
	store.DropContainer(&b, c.RID)
	defer e.meters.follow(c.RID.Database)
	if err := e.commitFailed(e.catalog.DeleteContainer(ctx, c.RID, ifMatch, &b)); err != nil {
		return err
	}
	e.removed()
	return e.commitFailed(e.purger.Forget(c.RID))
}
