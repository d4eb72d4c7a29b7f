// SPDX-License-Identifier: MIT

// Changes of the catalog. The catalog makes them durable. What has to happen around a
// change is here: scripts are compiled before they are stored, partitions follow their
// container's settings and close with it, and meters follow the throughput.

package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
)

// Catalog returns the catalog, for reading. Use Write and Delete to change it.
func (e *Engine) Catalog() *catalog.Catalog { return e.catalog }

// Write creates, upserts or replaces a resource of the catalog. When it returns, the
// change applies to every request and every item.
func (e *Engine) Write(ctx context.Context, w catalog.Write) (r catalog.Any, created bool, err error) {
	if err := e.writable(); err != nil {
		return nil, false, err
	}
	if w.Kind == catalog.Containers {
		e.settings.Lock()
		defer e.settings.Unlock()
	}
	w.NowMs = e.clock.Now()
	w.Check = func(r catalog.Any) error { return e.checkWrite(ctx, w.Kind, r) }
	if r, created, err = e.catalog.Write(ctx, w); err != nil {
		return nil, false, e.changed(err)
	}
	switch r := r.(type) {
	case *catalog.Container:
		if !created {
			err = e.reconfigure(context.WithoutCancel(ctx), r)
		}
	case *catalog.Offer:
		e.meters.follow(r.Database)
		e.wakeGrowing()
	}
	return r, created, err
}

// checkWrite refuses invalid queries of computed properties, and scripts that do not
// compile, except stored procedures, which fail when they run.
func (e *Engine) checkWrite(ctx context.Context, kind catalog.Kind, r catalog.Any) error {
	switch r := r.(type) {
	case *catalog.Container:
		if e.node != nil && r.EraseWithin > 0 {
			return errNoErasure
		}
		return checkComputed(r.Computed)
	case *catalog.Script:
		if kind != catalog.Procedures {
			return e.checkFunction(ctx, &script.Function{Name: r.ID, Text: r.Text})
		}
	}
	return nil
}

// checkFunction refuses a text that does not compile.
func (e *Engine) checkFunction(ctx context.Context, f *script.Function) error {
	seat, err := e.scripts.Enter(ctx)
	if err != nil {
		return err
	}
	defer seat.Leave()
	return scriptFailure(seat.Compile(ctx, f))
}

// reconfigure makes all partitions of a container follow its new settings, also those
// that are not open: what has expired under the old settings must be determined now. The
// change is already durable, so it is completed whatever the client does.
func (e *Engine) reconfigure(ctx context.Context, c *catalog.Container) error {
	if e.node != nil {
		_, err := gather(ctx, e, c, opReconfigure, 0)
		if errors.Is(err, store.ErrClosed) {
			now, gone := e.catalog.Current(c.RID)
			if gone != nil || len(now.Ranges) == len(c.Ranges) {
				return nil // it was dropped meanwhile
			}
			return e.reconfigure(ctx, now) // a partition was split
		}
		return err
	}
	errs := make([]error, len(c.Ranges))
	var all sync.WaitGroup
	for i := range c.Ranges {
		all.Go(func() {
			p, err := e.partition(c, c.Ranges[i].ID)
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

// opReconfigure has a partition follow the definition of its container that its owner's
// catalog has now: the one that was just written, or a later one.
var opReconfigure = newOperation(operation[int, bool]{"reconfigure", func(ctx context.Context, e *Engine, c *catalog.Container, _ int, p *store.Partition, _ int) (bool, error) {
	e.following.Lock()
	defer e.following.Unlock()
	now, err := e.catalog.Current(c.RID)
	if err != nil {
		return false, store.ErrClosed
	}
	if p.Container().Epoch >= now.Epoch {
		return true, nil
	}
	return true, p.Reconfigure(ctx, now)
}, true})

// Delete removes a resource of the catalog and everything in it, items included.
func (e *Engine) Delete(ctx context.Context, a catalog.Address, ifMatch string) error {
	if a.Kind == catalog.Databases || a.Kind == catalog.Containers {
		e.settings.Lock()
		defer e.settings.Unlock()
	}
	r, err := e.catalog.Find(a)
	if err != nil {
		return err
	}
	if !catalog.Matches(ifMatch, r.Common().ETag) {
		return catalog.ErrPrecondition
	}
	var (
		database   catalog.DatabaseRID
		containers []*catalog.Container
	)
	switch r := r.(type) {
	case *catalog.Database:
		database, containers = r.RID, r.Containers()
	case *catalog.Container:
		database, containers = r.RID.Database, []*catalog.Container{r}
	}
	drop := func(b *kv.Batch, now catalog.Any) {
		switch now := now.(type) {
		case *catalog.Database:
			store.DropDatabase(b, e.db.Far(), now)
		case *catalog.Container:
			store.DropContainer(b, e.db.Far(), now)
		}
	}
	for _, c := range containers {
		e.closePartitions(c)
		defer e.dropped(c)
	}
	if database != 0 {
		defer e.meters.follow(database)
	}
	if err := e.changed(e.catalog.Delete(ctx, r, ifMatch, drop)); err != nil {
		return err
	}
	if len(containers) > 0 {
		e.removed()
		e.disown(containers)
	}
	for _, c := range containers {
		if err := e.changed(e.purger.Forget(c.RID)); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the error of a change of the catalog, and records a failed commit.
func (e *Engine) changed(err error) error {
	if e.node != nil {
		return unavailable(err) // nothing is broken here
	}
	if errors.Is(err, catalog.ErrCommit) {
		e.fail(err)
	}
	return err
}
