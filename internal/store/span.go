// SPDX-License-Identifier: MIT

// Spans of an index, cached in memory. An index has the rows of all partition keys, so a
// walk within one key passes over those of the others: over a thousand to find ten, if
// there are a hundred keys. The rows that such a walk has read are kept, so that the next
// one, of any key, passes over them without the engine.
//
// A span has all rows between two keys. The partition's lock guards the spans, which follow
// the rule of all caches (Partition.follow): a reader uses them only while its view is the
// published one. Spans do not check expiry: the walks do, with expiry.go.

package store

import (
	"bytes"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// spanRows is the most rows in a span. A write to one of them removes the whole span.
	spanRows = 512
	// spanPaths bounds the paths of a partition that have spans.
	spanPaths = 64
	// spanBytes is about what a span takes besides its rows.
	spanBytes = 256
)

// indexSpan is all rows of an index between two keys. It never changes.
type indexSpan struct {
	lower, upper []byte // of the keys: inclusive and exclusive
	rows         []spanRow
	owners       []uint16 // of each row: the number of its effective partition key in epks
	keys         []byte   // of all rows, without the start that all keys of the path share
	epks         []byte   // the effective partition keys, each once
	epkEnds      []uint32
	slots        []uint16 // a hash table of owners: their number plus 1, or 0 for an empty slot
	earliest     earliest // of the rows' items
}

type spanRow struct {
	ms  int64 // ms and ttl are the life of its item, here without padding
	ttl catalog.TTL
	end uint32 // of its key in keys
}

func (r *spanRow) life() life { return life{r.ms, r.ttl} }

// bytes is what the span takes of the budget: 16 and 2 bytes for each row and its owner,
// and 4 and 4 for the end of an owner's key and its slots.
func (s *indexSpan) bytes() int {
	return spanBytes + len(s.lower) + len(s.upper) + (16+2)*len(s.rows) + len(s.keys) + len(s.epks) + (4+4)*len(s.epkEnds)
}

// key returns the key of a row, without the start that all keys of the path share.
func (s *indexSpan) key(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = s.rows[i-1].end
	}
	return s.keys[start:s.rows[i].end]
}

func (s *indexSpan) epk(owner uint16) []byte {
	start := uint32(0)
	if owner > 0 {
		start = s.epkEnds[owner-1]
	}
	return s.epks[start:s.epkEnds[owner]]
}

// ownerSeed is the seed of the hashes of effective partition keys.
var ownerSeed = maphash.MakeSeed()

// owner returns the number of an effective partition key, if it has rows in the span.
func (s *indexSpan) owner(epk []byte) (owner uint16, found bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	for at := maphash.Bytes(ownerSeed, epk); ; at++ {
		owner := s.slots[at%uint64(len(s.slots))]
		if owner == 0 || bytes.Equal(s.epk(owner-1), epk) {
			return owner - 1, owner > 0
		}
	}
}

// makeSlots fills the hash table of owners. Half of the slots stay empty.
func (s *indexSpan) makeSlots() {
	s.slots = make([]uint16, 2*len(s.epkEnds))
	for owner := range s.epkEnds {
		at := maphash.Bytes(ownerSeed, s.epk(uint16(owner)))
		for s.slots[at%uint64(len(s.slots))] != 0 {
			at++
		}
		s.slots[at%uint64(len(s.slots))] = uint16(owner) + 1
	}
}

// from returns the first row whose key is not below the given one, which is without the
// start of the path.
func (s *indexSpan) from(key []byte) int {
	return sort.Search(len(s.rows), func(i int) bool { return bytes.Compare(s.key(i), key) >= 0 })
}

// spanPath has the spans of one path: at least one, in order, none overlapping.
type spanPath struct {
	start []byte // that all keys of the path share
	spans []*indexSpan
}

// spanCache has the spans of a partition's indexes; the partition's lock guards it.
type spanCache struct {
	budget *CacheBudget
	paths  map[string]*spanPath // by their start
	used   bool                 // since the last ReleaseIdle
}

// above returns the index of the first span that ends after a key.
func (p *spanPath) above(key []byte) int {
	return sort.Search(len(p.spans), func(i int) bool { return bytes.Compare(p.spans[i].upper, key) > 0 })
}

// next fills dst with adjacent spans, beginning with the one where a walk from lower to
// upper begins. If there is none, it returns the bounds of the gap before the next span.
func (k *spanCache) next(dst []*indexSpan, start, lower, upper []byte, order kv.Order) (s []*indexSpan, gapLower, gapUpper []byte) {
	p := k.paths[string(start)]
	if p == nil {
		return nil, lower, upper
	}
	k.used = true
	i, step := p.above(lower), 1
	if order == kv.Reverse { // the last span that begins before upper
		i, step = sort.Search(len(p.spans), func(i int) bool { return bytes.Compare(p.spans[i].lower, upper) >= 0 })-1, -1
	}
	if i < 0 || i == len(p.spans) || bytes.Compare(p.spans[i].lower, upper) >= 0 || bytes.Compare(p.spans[i].upper, lower) <= 0 {
		return nil, lower, upper
	}
	switch first := p.spans[i]; {
	case order == kv.Forward && bytes.Compare(first.lower, lower) > 0:
		return nil, lower, first.lower
	case order == kv.Reverse && bytes.Compare(first.upper, upper) < 0:
		return nil, first.upper, upper
	}
	for s = dst[:0]; i >= 0 && i < len(p.spans) && len(s) < cap(s) && (len(s) == 0 || p.meets(min(i, i-step))); i += step {
		s = append(s, p.spans[i])
	}
	return s, nil, nil
}

// meets reports whether a span is adjacent to the next one.
func (p *spanPath) meets(i int) bool {
	return bytes.Equal(p.spans[i].upper, p.spans[i+1].lower)
}

// put adds a span. It joins small spans that are adjacent. A span that overlaps another,
// which another reader added first, is not added.
func (k *spanCache) put(start []byte, s *indexSpan) {
	if k.budget == nil {
		return
	}
	p := k.paths[string(start)]
	if p == nil {
		p = &spanPath{start: bytes.Clone(start)}
	}
	i := p.above(s.lower)
	if i < len(p.spans) && bytes.Compare(p.spans[i].lower, s.upper) < 0 {
		return
	}
	before := i > 0 && bytes.Equal(p.spans[i-1].upper, s.lower)
	after := i < len(p.spans) && bytes.Equal(p.spans[i].lower, s.upper)
	if before && len(p.spans[i-1].rows)+len(s.rows) <= spanRows {
		i--
		s = p.spans[i].joinedWith(s)
		k.remove(p, i)
	}
	if after && len(p.spans[i].rows)+len(s.rows) <= spanRows {
		s = s.joinedWith(p.spans[i])
		k.remove(p, i)
	}
	for !k.budget.rows.take(s.bytes()) {
		if !k.evict() {
			return
		}
	}
	if k.paths == nil {
		k.paths = map[string]*spanPath{}
	}
	k.paths[string(start)] = p
	p.spans = slices.Insert(p.spans, p.above(s.lower), s)
	for _, other := range k.paths { // map order is random
		if len(k.paths) <= spanPaths {
			break
		}
		k.drop(other)
	}
}

// evict removes a random span, and reports whether there was one.
func (k *spanCache) evict() bool {
	for _, p := range k.paths { // map order is random
		k.remove(p, rand.IntN(len(p.spans)))
		return true
	}
	return false
}

// joinedWith returns the span of s and t, where t is adjacent and after s.
func (s *indexSpan) joinedWith(t *indexSpan) *indexSpan {
	b := spanBuilder{}
	for _, of := range []*indexSpan{s, t} {
		for i, row := range of.rows {
			b.add(of.key(i), of.epk(of.owners[i]), row.life())
		}
	}
	return b.finish(s.lower, t.upper, false)
}

func (k *spanCache) remove(p *spanPath, i int) {
	k.budget.rows.give(p.spans[i].bytes())
	if p.spans = slices.Delete(p.spans, i, i+1); len(p.spans) == 0 {
		delete(k.paths, string(p.start))
	}
}

// empty removes all spans.
func (k *spanCache) empty() {
	for _, p := range k.paths {
		k.drop(p)
	}
}

func (k *spanCache) drop(p *spanPath) {
	for _, s := range p.spans {
		k.budget.rows.give(s.bytes())
	}
	delete(k.paths, string(p.start))
}

// forget removes the spans that contain rows which a group has changed.
func (k *spanCache) forget(x *prefix, generation uint32, changes []change) {
	var room [128]byte
	for _, p := range k.paths {
		beginning := p.start[prefixBytes+1+generationBytes:] // of the path's entries
		for c := range changes {
			for _, t := range []*index.Entries{&changes[c].old, &changes[c].next} {
				for i := t.From(beginning); i < t.Len() && bytes.HasPrefix(t.At(i), beginning); i++ {
					key := x.appendIndexKey(room[:0], generation, t.At(i), changes[c].ordinal)
					if at := p.above(key); at < len(p.spans) && bytes.Compare(p.spans[at].lower, key) <= 0 {
						k.remove(p, at)
					}
				}
			}
		}
	}
}

// spanBuilder collects the rows of a span.
type spanBuilder struct {
	s      indexSpan
	owners map[string]uint16 // the numbers of effective partition keys
}

func (b *spanBuilder) add(key, epk []byte, l life) {
	owner, known := b.owners[string(epk)]
	if !known {
		if b.owners == nil {
			b.owners = map[string]uint16{}
		}
		owner = uint16(len(b.s.epkEnds))
		b.owners[string(epk)] = owner
		b.s.epks = append(b.s.epks, epk...)
		b.s.epkEnds = append(b.s.epkEnds, uint32(len(b.s.epks)))
	}
	b.s.keys = append(b.s.keys, key...)
	b.s.owners = append(b.s.owners, owner)
	b.s.rows = append(b.s.rows, spanRow{l.ms, l.ttl, uint32(len(b.s.keys))})
	if len(b.s.rows) == 1 {
		b.s.earliest = earliestOfNone
	}
	b.s.earliest = b.s.earliest.with(l)
}

// finish returns the span of the collected rows between two keys, and resets the builder.
// reversed says that the rows were added in descending order.
func (b *spanBuilder) finish(lower, upper []byte, reversed bool) *indexSpan {
	s := &indexSpan{
		lower: bytes.Clone(lower), upper: bytes.Clone(upper),
		rows: slices.Clone(b.s.rows), owners: slices.Clone(b.s.owners),
		epks: bytes.Clone(b.s.epks), epkEnds: slices.Clone(b.s.epkEnds), earliest: b.s.earliest,
	}
	if reversed {
		s.keys = make([]byte, 0, len(b.s.keys))
		for i := range s.rows {
			from := len(s.rows) - 1 - i
			s.keys = append(s.keys, b.s.key(from)...)
			s.rows[i], s.owners[i] = b.s.rows[from], b.s.owners[from]
			s.rows[i].end = uint32(len(s.keys))
		}
	} else {
		s.keys = bytes.Clone(b.s.keys)
	}
	s.makeSlots()
	b.reset()
	return s
}

func (b *spanBuilder) reset() {
	b.s.rows, b.s.owners, b.s.keys = b.s.rows[:0], b.s.owners[:0], b.s.keys[:0]
	b.s.epks, b.s.epkEnds = b.s.epks[:0], b.s.epkEnds[:0]
	clear(b.owners)
}

// budget limits memory.
type budget struct {
	most int64
	used atomic.Int64
}

// take reserves n bytes, and reports whether there were so many.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.most {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

func (b *budget) give(n int) { b.used.Add(int64(-n)) }
