// SPDX-License-Identifier: MIT

// How many items have a scalar at a path. An ascending order begins with the items that
// have none. They are in no index, so a query can use the index for that order only if it
// knows that there are none. Counting takes a walk over the path's rows. It is done once,
// for paths that queries need, and updated from then on.

package store

import (
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
)

// maxTracked bounds the paths of a partition that are counted.
const maxTracked = 64

// trackedPath is the count of one path.
type trackedPath struct {
	path []byte // encoded
	// items is how many items have a scalar at the path. Until the count is done, it is as
	// if all had had one when counting began.
	items   int64
	counted bool
	done    chan struct{} // closed when counting has ended, even if it failed
	// since is the publication since which all items have a scalar at the path, 0 if some
	// have none.
	since uint64
}

// settle sets since. items is how many there are at a publication.
func (t *trackedPath) settle(items int64, publication uint64) {
	switch {
	case t.items != items:
		t.since = 0
	case t.since == 0:
		t.since = publication
	}
}

// change is how a group changed the entries of one item.
type change struct {
	ordinal   uint64
	old, next index.Entries
}

// track updates the counts with a group that is being published; p.mu is held.
func (p *Partition) track(changes []change) {
	for _, tracked := range p.mu.tracked {
		for i := range changes {
			if changes[i].old.HasScalar(tracked.path) {
				tracked.items--
			}
			if changes[i].next.HasScalar(tracked.path) {
				tracked.items++
			}
		}
		tracked.settle(p.mu.now.meta.Items, p.mu.now.number)
	}
}

// AllHave reports whether every item has a scalar at the path, which has no step to
// elements. If that is not known, it returns false. The first caller counts, and later ones
// wait for it: what they would do otherwise takes longer.
func (r *Reader) AllHave(path index.Path) (bool, error) {
	encoded := index.AppendStart(nil, index.Scalars, path)
	p := r.p
	p.mu.Lock()
	t := p.mu.tracked[string(encoded)]
	if t == nil {
		if len(p.mu.tracked) >= maxTracked || p.mu.view != r.v || !r.Indexed() {
			p.mu.Unlock()
			return false, nil
		}
		t = &trackedPath{path: encoded, items: r.v.meta.Items, since: r.v.number, done: make(chan struct{})}
		if p.mu.tracked == nil {
			p.mu.tracked = map[string]*trackedPath{}
		}
		p.mu.tracked[string(encoded)] = t
		p.mu.Unlock()
		return r.countPath(t, path)
	}
	known, all := t.counted, r.knowsAll(t)
	p.mu.Unlock()
	if known {
		return all, nil
	}
	select {
	case <-t.done:
	case <-r.stop.Done:
		return false, r.stop.Look()
	}
	return r.AllHave(path) // the count is done, or the reader that counted was stopped
}

// knowsAll reports whether all items of the reader's view have a scalar at the path; p.mu
// is held.
func (r *Reader) knowsAll(t *trackedPath) bool {
	return t.counted && t.since != 0 && r.v.number >= t.since
}

// countPath counts the items that have a scalar at a path, for the first time.
func (r *Reader) countPath(t *trackedPath, path index.Path) (all bool, err error) {
	p := r.p
	items, err := r.countRows(path)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(t.done)
	current := p.mu.tracked[string(t.path)] == t // false if the indexing policy has changed
	switch {
	case err == nil && current:
		if t.counted = true; items != r.v.meta.Items {
			t.items, t.since = t.items+items-r.v.meta.Items, 0
			t.settle(p.mu.now.meta.Items, p.mu.now.number)
		}
	case current:
		delete(p.mu.tracked, string(t.path))
	}
	return items == r.v.meta.Items && err == nil, err
}

// countRows counts the rows of a path's scalars, expired items included.
func (r *Reader) countRows(path index.Path) (int64, error) {
	lower, upper := index.AllValues().Bounds(index.AppendStart(r.p.prefix.appendIndexStart(nil, r.v.meta.Generation), index.Scalars, path))
	var n int64
	for _, err := range r.v.snap.Scan(lower, upper, kv.Forward) {
		if err == nil {
			err = r.step()
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
