// SPDX-License-Identifier: MIT

// Entries of all kinds of index. An index row is an entry and the item's ordinal. An entry
// begins with its kind, so that the rows of each kind lie together:
//
//	{kind}{bytes that the kind makes of the item}
//
// A new kind of index makes its entries in Append. Nothing else changes: writing,
// rewriting, removing, charging, rebuilding and checking use the list of entries.

package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

// entryKind is the first byte of an entry.
type entryKind byte

// The kinds of entries. They are on disk.
const (
	// entryTerm: {path}{value}, one for each scalar (terms.go, termkey.go).
	entryTerm entryKind = 0x01
	// entryComposite: {number}{component}…{end}, one for each composite index
	// (composite.go).
	entryComposite entryKind = 0x02
	// entryWord and entryText: the words of texts, and the number of words in each text
	// (fulltext.go).
	entryWord entryKind = 0x03
	entryText entryKind = 0x04
	// entryCell: {path}{cell}, for each cell of a geometry (spatial.go).
	entryCell entryKind = 0x05
	// entryVector: {path} 01, one for each vector index (vector.go).
	entryVector entryKind = 0x06
)

// carries reports whether the rows of a kind have data in addition to the entry and the
// ordinal.
func (k entryKind) carries() bool { return k == entryWord || k == entryText || k == entryVector }

// ErrTooManyTerms is returned for an item whose entries take more than
// maxEntriesBytes.
var ErrTooManyTerms = errors.New("the item has too much to index: exclude paths in the indexing policy")

const (
	// maxEntriesBytes bounds the entries of one item.
	maxEntriesBytes = 16 << 20
	// maxRawEntriesBytes bounds the entries before duplicates are removed. It is well
	// above maxEntriesBytes, so that a large array with duplicates is not sorted too
	// often.
	maxRawEntriesBytes = maxEntriesBytes + maxEntriesBytes/2
	// MaxEntryBytes is above the length of the longest entry.
	MaxEntryBytes = 1 + maxTermPathBytes + maxTermValueBytes + 64

	// Up to largeEntriesBytes memory grows as append grows it, above that it doubles:
	// append grows large slices in many small steps.
	largeEntriesBytes = 64 << 10
	firstSpans        = 16
	entrySpanBytes    = 24
)

// Entries are the entries of an item, in ascending order and without duplicates.
type Entries struct {
	buf    []byte // all of them, in the order in which they were made
	spans  []entrySpan
	stamps []stampOffset
}

// entrySpan is where an entry is in Entries.buf: the entry from start to end, and the data
// that it carries up to after. first has the first bytes of the entry as a number, in
// which most entries of an item differ.
type entrySpan struct {
	first             uint64
	start, end, after uint32
}

// Len returns the number of entries.
func (t *Entries) Len() int { return len(t.spans) }

// At returns an entry. It is valid until the entries are used again.
func (t *Entries) At(i int) []byte {
	s := &t.spans[i]
	return t.buf[s.start:s.end:s.end]
}

// Carried returns the data that an entry carries.
func (t *Entries) Carried(i int) []byte {
	s := &t.spans[i]
	return t.buf[s.end:s.after:s.after]
}

// Clone returns a copy that takes no more memory than it needs.
func (t *Entries) Clone() Entries {
	return Entries{buf: slices.Clone(t.buf), spans: slices.Clone(t.spans), stamps: slices.Clone(t.stamps)}
}

// Size returns the number of bytes of all entries.
func (t *Entries) Size() int { return len(t.buf) }

// From returns the position of the first entry that is not below the given one.
func (t *Entries) From(entry []byte) int {
	return sort.Search(t.Len(), func(i int) bool { return bytes.Compare(t.At(i), entry) >= 0 })
}

// HasScalar reports whether the item has an indexed scalar at a path. start is what the
// terms of the path begin with.
func (t *Entries) HasScalar(start []byte) bool {
	i := t.From(start)
	if i == t.Len() {
		return false
	}
	term := t.At(i)
	return bytes.HasPrefix(term, start) && len(term) > len(start) && term[len(start)] < tagEmptyArray
}

// Carries reports whether the row of an entry has data in addition to the entry and the
// ordinal.
func Carries(entry []byte) bool { return entryKind(entry[0]).carries() }

// IsTerm reports whether an entry is a term. Terms are self-delimiting: the rows of a term
// lie together, in the order of the items' ordinals, and no other row is among them.
func IsTerm(entry []byte) bool { return entryKind(entry[0]) == entryTerm }

// AppendStart appends the bytes that the entries of an index begin with.
func AppendStart(dst []byte, k Kind, p Path) []byte {
	return appendTermPath(append(dst, byte(k.entry())), p...)
}

// Append returns the entries of o under a container's policy. It uses the memory of dst
// and overwrites its entries. The error is ErrTooManyTerms, with which the memory is
// returned for use again, or the error of m. The caller stamps the entries when it knows
// the time of the write.
func Append(dst Entries, d *catalog.Definition, o *value.Object, m memory.Room) (Entries, error) {
	if d.Index.Empty() {
		return Entries{buf: dst.buf[:0], spans: dst.spans[:0]}, nil
	}
	size := len(o.Bytes())
	w := entryWriter{room: m}
	w.buf = slices.Grow(dst.buf[:0], min(size+size/2, largeEntriesBytes))
	w.spans = slices.Grow(dst.spans[:0], firstSpans)
	err := w.terms(&d.Index, o)
	if err == nil && len(d.IndexedComposites) > 0 {
		err = w.composites(d.IndexedComposites, o)
	}
	if err == nil {
		err = w.texts(d.Special.FullText, o)
	}
	if err == nil {
		err = w.vectors(d.Special.Vectors, o)
	}
	if err == nil && len(d.Special.Spatial) > 0 {
		err = w.geometries(d.Special.Spatial, o)
	}
	if err == nil {
		err = w.sort()
	}
	if err != nil {
		return Entries{buf: w.buf[:0], spans: w.spans[:0]}, err
	}
	if w.bytes < len(w.buf) {
		if err := w.room.Take(w.bytes); err != nil {
			return Entries{}, err
		}
		large := cap(w.buf)
		w.buf = w.compact(make([]byte, 0, w.bytes))
		w.room.Give(large)
	}
	return w.Entries, nil
}

// entryWriter collects entries.
type entryWriter struct {
	Entries        // in the order in which they are made, duplicates among them, until sorted
	bytes   int    // size of the entries when they were last sorted
	spare   []byte // memory for compacting
	room    memory.Room
	full    error // the error of room, once it has refused
}

// begin writes the kind of an entry and returns where the entry starts.
func (w *entryWriter) begin(kind entryKind) (start int) {
	if len(w.buf) > largeEntriesBytes && cap(w.buf)-len(w.buf) < MaxEntryBytes {
		before := cap(w.buf)
		if w.full = w.room.Take(2 * before); w.full == nil {
			w.buf = slices.Grow(w.buf, before)
			w.room.Give(before)
		}
	}
	start = len(w.buf)
	w.buf = append(w.buf, byte(kind))
	return start
}

// end adds the entry that was written from start on.
func (w *entryWriter) end(start int) error { return w.endCarrying(start, len(w.buf)) }

// endCarrying adds the entry that was written from start to end. It carries the bytes
// written from end on.
func (w *entryWriter) endCarrying(start, end int) error {
	if w.full != nil {
		return w.full
	}
	if before := cap(w.spans); len(w.spans) == before {
		if err := w.room.Take(2 * before * entrySpanBytes); err != nil {
			return err
		}
		w.spans = slices.Grow(w.spans, before)
		w.room.Give(before * entrySpanBytes)
	}
	var first [8]byte
	copy(first[:], w.buf[start:end])
	w.spans = append(w.spans, entrySpan{binary.BigEndian.Uint64(first[:]), uint32(start), uint32(end), uint32(len(w.buf))})
	if len(w.buf) <= maxRawEntriesBytes {
		return nil
	}
	if err := w.sort(); err != nil {
		return err
	}
	if w.spare == nil {
		if err := w.room.Take(maxRawEntriesBytes); err != nil {
			return err
		}
	}
	w.spare = w.compact(w.spare[:0])
	w.buf = append(w.buf[:0], w.spare...)
	return nil
}

// sort sorts the entries and removes duplicates.
func (w *entryWriter) sort() error {
	buf := w.buf
	slices.SortFunc(w.spans, func(a, b entrySpan) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return bytes.Compare(buf[a.start:a.end], buf[b.start:b.end])
	})
	kept := w.spans[:0]
	var last []byte
	w.bytes = 0
	for _, s := range w.spans {
		entry := buf[s.start:s.end]
		if bytes.Equal(entry, last) {
			continue
		}
		kept = append(kept, s)
		w.bytes += int(s.after - s.start)
		last = entry
	}
	w.spans = kept
	if w.bytes > maxEntriesBytes {
		return ErrTooManyTerms
	}
	return nil
}

// compact appends the entries to dst, without the duplicates that sort has removed, and
// makes the spans point into dst.
func (w *entryWriter) compact(dst []byte) []byte {
	dst = slices.Grow(dst, w.bytes)
	for i := range w.spans {
		s := &w.spans[i]
		start := len(dst)
		dst = append(dst, w.buf[s.start:s.after]...)
		s.start, s.end, s.after = uint32(start), uint32(start)+s.end-s.start, uint32(len(dst))
	}
	return dst
}
