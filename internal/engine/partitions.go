// SPDX-License-Identifier: MIT

// The partitions that are open: opening them when they are first used, and closing them.

package engine

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/store"
)

type partitionID struct {
	container catalog.ContainerRID
	index     int
}

// opening is a partition that is being opened. The first request for it opens it, without
// the engine's lock, and the others wait. So they do while it is given up.
type opening struct {
	done chan struct{} // closed at the end, when the result is there
	p    *store.Partition
	err  error
	// lost says that the partition has closed itself, life in which of this node's lives it
	// was claimed, and fence is its owner row. The engine's lock guards them.
	lost  bool
	life  int
	fence []byte
}

// partition returns a partition of a container, and opens it if necessary. While the
// container is being deleted it waits for the outcome.
func (e *Engine) partition(c *catalog.Container, index int) (*store.Partition, error) {
	id := partitionID{c.RID, index}
	e.mu.RLock()
	p, over := e.mu.open[id], e.mu.dropping[c.RID]
	e.mu.RUnlock()
	if p != nil && (e.node == nil || !p.Closed()) {
		return p, nil
	}
	if over != nil {
		<-over
	}
	e.mu.Lock()
	if err := e.openableLocked(id); err != nil {
		e.mu.Unlock()
		return nil, err
	}
	if p := e.mu.open[id]; p != nil && (e.node == nil || !p.Closed()) {
		e.mu.Unlock()
		return p, nil
	}
	delete(e.mu.open, id) // it was lost, and is still ending
	o, wait := e.mu.opening[id]
	if !wait {
		o = &opening{done: make(chan struct{}), life: e.mu.lives}
		e.mu.opening[id] = o
	}
	e.mu.Unlock()
	if wait {
		<-o.done
	} else {
		e.open(id, o)
	}
	return o.p, o.err
}

// openableLocked returns why a partition cannot be opened; nil if it can.
func (e *Engine) openableLocked(id partitionID) error {
	switch {
	case e.mu.closed:
		return ErrStopping
	case e.mu.dropping[id.container] != nil: // the caller tries again
		return store.ErrClosed
	}
	return nil
}

// open opens a partition and enters it into the table, unless its container is being
// deleted by then, or the partition was lost.
func (e *Engine) open(id partitionID, o *opening) {
	p, err := e.openStore(id, o)
	e.mu.Lock()
	if err == nil {
		err = e.openableLocked(id)
	}
	if err == nil && (o.lost || o.life != e.mu.lives) {
		err = store.ErrClosed
	}
	if err == nil {
		o.p, e.mu.open[id] = p, p
	}
	e.mu.Unlock()
	if err != nil && p != nil {
		p.Close()
	}
	o.err = err
	e.mu.Lock()
	delete(e.mu.opening, id)
	e.mu.Unlock()
	close(o.done)
}

// openStore opens a partition with the present definition of its container. A replace of
// the container that comes later waits for the opening, and passes its definition on then.
func (e *Engine) openStore(id partitionID, under *opening) (*store.Partition, error) {
	o := store.Options{Failed: e.fail}
	if e.node != nil {
		if _, err := e.catalog.Current(id.container); err != nil {
			return nil, store.ErrClosed
		}
		var err error
		if o, err = e.own(id, under); err != nil {
			return nil, err
		}
	}
	now, err := e.catalog.Current(id.container)
	if err != nil || now.PositionOf(id.index) < 0 {
		e.abandon(id)
		return nil, store.ErrClosed
	}
	if now.Split != nil && now.Split.Range == id.index {
		// Nobody is at it any more: whoever splits a partition has it open.
		if err := e.abandonSplit(e.running, now); err != nil {
			return nil, err
		}
	}
	o.DB, o.Clock, o.Container, o.Index = e.db, e.clock, now, id.index
	o.Cache, o.Quotas, o.Ledger = e.cache, e.options.Quotas.of(now), &e.ledger
	return store.Open(o)
}

// closePartitions closes the partitions of a container that is being deleted. Until
// dropped is called, they cannot be opened again. The caller holds settings.
func (e *Engine) closePartitions(c *catalog.Container) {
	e.mu.Lock()
	e.mu.dropping[c.RID] = make(chan struct{})
	ps, under := e.takeLocked(func(id partitionID) bool { return id.container == c.RID })
	split := e.mu.splits[c.RID]
	delete(e.mu.splits, c.RID)
	e.mu.Unlock()
	closeThem(ps, under)
	if split != nil {
		<-split.done // what it copies is removed with the container
	}
}

func (e *Engine) dropped(c *catalog.Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.mu.dropping[c.RID])
	delete(e.mu.dropping, c.RID)
}

// closeAll closes all partitions.
func (e *Engine) closeAll() {
	e.mu.Lock()
	ps, under := e.takeLocked(func(partitionID) bool { return true })
	e.mu.Unlock()
	closeThem(ps, under)
}

// takeLocked removes partitions from the table, and returns them, with those that are being
// opened.
func (e *Engine) takeLocked(which func(partitionID) bool) (ps []*store.Partition, under []*opening) {
	for id, p := range e.mu.open {
		if which(id) {
			ps = append(ps, p)
			delete(e.mu.open, id)
		}
	}
	for id, o := range e.mu.opening {
		if which(id) {
			under = append(under, o)
		}
	}
	return ps, under
}

// closeThem closes partitions, and waits for the end of openings, which find that they came
// too late.
func closeThem(ps []*store.Partition, under []*opening) {
	for _, p := range ps {
		p.Close()
	}
	for _, o := range under {
		<-o.done
	}
}
