// SPDX-License-Identifier: MIT

package tikvkv

import (
	"bytes"
	"iter"

	"github.com/tikv/client-go/v2/txnkv/txnsnapshot"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// A scan reads pages, each with more rows than the one before, so that short scans read
	// little too much and long ones need few round trips.
	pageRowsFirst  = 16
	pageRowsGrowth = 4
	pageRowsMax    = 512
	// pageBytesMax is about how much a page may hold.
	pageBytesMax = 4 << 20
	// prefetchFrom is the first page that is read while the caller walks the one before. A
	// scan that gets so far is a long one.
	prefetchFrom = 3
)

// walker is the client's iterator.
type walker interface {
	Valid() bool
	Key() []byte
	Value() []byte
	Next() error
	Close()
}

// page is a part of a scan.
type page struct {
	lower, upper []byte // in TiKV, of what is left of the scan
	order        kv.Order
	number       int
	rows         int // asked for

	entries []kv.Entry
	bytes   int
	last    []byte // the key of the last entry, in TiKV
	full    bool   // there may be more
	err     error
}

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(lower, upper []byte, order kv.Order) iter.Seq2[kv.Entry, error] {
	nothing := upper != nil && bytes.Compare(lower, upper) >= 0
	from, to := s.db.rows.bounds(lower, upper)
	return func(yield func(kv.Entry, error) bool) {
		if err := s.enter(); err != nil {
			yield(kv.Entry{}, err)
			return
		}
		s.db.life.RUnlock()
		if nothing {
			return
		}
		// The scan has a handle of its own: settings of pages are settings of the handle.
		reads := s.db.store.GetSnapshot(s.ts)
		p := &page{lower: from, upper: to, order: order, number: 1, rows: pageRowsFirst}
		p.read(s, reads)
		for {
			next := p.next()
			var fetched chan struct{}
			if next != nil && next.number >= prefetchFrom && p.err == nil {
				fetched = make(chan struct{})
				go func() {
					defer close(fetched)
					next.read(s, reads)
				}()
			}
			if !p.walk(yield) {
				if fetched != nil {
					<-fetched // the snapshot may be closed as soon as the loop has ended
				}
				return
			}
			if next == nil {
				return
			}
			if fetched != nil {
				<-fetched
			} else {
				next.read(s, reads)
			}
			p = next
		}
	}
}

// walk passes the page to the caller. It reports whether the scan goes on.
func (p *page) walk(yield func(kv.Entry, error) bool) bool {
	for _, e := range p.entries {
		if !yield(e, nil) {
			return false
		}
	}
	if p.err != nil {
		yield(kv.Entry{}, p.err)
		return false
	}
	return true
}

// next returns the page after this one, or nil if there is none.
func (p *page) next() *page {
	if !p.full || p.err != nil {
		return nil
	}
	n := &page{lower: p.lower, upper: p.upper, order: p.order, number: p.number + 1}
	if p.order == kv.Reverse {
		n.upper = p.last
	} else {
		n.lower = append(bytes.Clone(p.last), 0)
	}
	// Not more rows than fit, if they are as long as those of this page. The client takes no
	// page of one row.
	fit := pageBytesMax / (p.bytes/len(p.entries) + 1)
	n.rows = max(2, min(p.rows*pageRowsGrowth, pageRowsMax, fit))
	return n
}

// read reads the rows of the page.
func (p *page) read(s *snapshot, reads *txnsnapshot.KVSnapshot) {
	if p.err = s.enter(); p.err != nil {
		return
	}
	defer s.db.life.RUnlock()
	reads.SetScanBatchSize(p.rows)
	var walk walker
	var err error
	if p.order == kv.Reverse {
		walk, err = reads.IterReverse(p.upper)
	} else {
		walk, err = reads.Iter(p.lower, p.upper)
	}
	if err != nil {
		p.err = s.fail(err)
		return
	}
	defer walk.Close()
	skip := len(s.db.rows)
	p.entries = make([]kv.Entry, 0, p.rows)
	for walk.Valid() {
		key := walk.Key()
		if p.order == kv.Reverse && bytes.Compare(key, p.lower) < 0 {
			return
		}
		value, err := plain(key, walk.Value())
		if err != nil {
			p.err = err
			return
		}
		p.entries = append(p.entries, kv.Entry{Key: key[skip:len(key):len(key)], Value: value})
		p.last = key
		p.bytes += len(key) + len(value)
		if len(p.entries) == p.rows {
			p.full = true // one step more would read the page after this one
			return
		}
		if err := walk.Next(); err != nil {
			p.err = s.fail(err)
			return
		}
	}
}
