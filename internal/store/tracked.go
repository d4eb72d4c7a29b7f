// SPDX-License-Identifier: MIT

// How many items have a scalar at a path. An ascending order begins with the items
// that have none, which are in no index: whoever wants to walk an index in that
// order has to know that there are none. Counting takes a walk over the path's
// rows, so it is done once, for paths that are asked for, and kept up to date from
// then on.

package store

import (
	"bytes"
	"sort"

	"github.com/mayflydb/mayfly/internal/kv"
)

// maxTracked bounds the paths of a partition that are kept count of.
const maxTracked = 64

// trackedPath is the count of one path.
type trackedPath struct {
	path    []byte // encoded
	items   int64
	counted bool // until then items has what was written since counting began
}

// change is what a group did to the entries of one item.
type change struct {
	ordinal   uint64
	old, next entries
}

// from returns the number of the first entry that is not below one.
func (t *entries) from(entry []byte) int {
	return sort.Search(t.Len(), func(i int) bool { return bytes.Compare(t.At(i), entry) >= 0 })
}

// hasTerm reports whether there is a term that begins so, its path being complete,
// and that is a scalar.
func (t *entries) hasTerm(path []byte) bool {
	i := t.from(path)
	if i == t.Len() {
		return false
	}
	term := t.At(i)
	return bytes.HasPrefix(term, path) && len(term) > len(path) && term[len(path)] < tagEmptyArray
}

// follow brings the counts up to date with a group; p.mu is held.
func (p *Partition) follow(changes []change) {
	for _, tracked := range p.mu.tracked {
		for i := range changes {
			if changes[i].old.hasTerm(tracked.path) {
				tracked.items--
			}
			if changes[i].next.hasTerm(tracked.path) {
				tracked.items++
			}
		}
	}
}

// AllHave reports whether every item has a scalar at the path, which has no step to
// elements, as far as it is known: if there is doubt, it says no.
func (r *Reader) AllHave(path IndexPath) (bool, error) {
	encoded := appendTermStart(nil, path)
	p := r.p
	p.mu.Lock()
	t := p.mu.tracked[string(encoded)]
	switch {
	case t != nil && t.counted:
		all := p.mu.lsn == r.v.lsn && t.items == r.meta.Items
		p.mu.Unlock()
		return all, nil
	case t != nil || len(p.mu.tracked) >= maxTracked || p.mu.view != r.v || !r.Indexed():
		p.mu.Unlock()
		return false, nil
	}
	t = &trackedPath{path: encoded}
	if p.mu.tracked == nil {
		p.mu.tracked = map[string]*trackedPath{}
	}
	p.mu.tracked[string(encoded)] = t
	p.mu.Unlock()

	items, err := r.countRows(path)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		delete(p.mu.tracked, string(encoded))
		return false, err
	}
	t.items += items
	t.counted = true
	return items == r.meta.Items, nil
}

// countRows counts the rows of a path's scalars, of expired items too.
func (r *Reader) countRows(path IndexPath) (int64, error) {
	lower, upper := AllValues().bounds(r.appendIndexStart(nil, RangeIndex, path))
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
