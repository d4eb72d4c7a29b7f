// SPDX-License-Identifier: MIT

// Entries: what an item is found by, of all kinds of index. An index row is an entry
// and the item's ordinal, and an entry begins with its kind, so that each kind has its
// rows apart from the others, and all of them come and go together:
//
//	{kind}{what the kind makes of the item}
//
// Whoever adds a kind makes its entries in Append, and nothing else has to know:
// writing, rewriting, removing, charging, rebuilding and checking go by the list.

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
	// entryWord and entryText: the words of texts, and how many there are
	// (fulltext.go).
	entryWord entryKind = 0x03
	entryText entryKind = 0x04
	// entryCell: {path}{cell}, for each cell of a geometry (spatial.go).
	entryCell entryKind = 0x05
	// entryVector: {path} 01, one for each vector index (vector.go).
	entryVector entryKind = 0x06
)

// carries reports whether the rows of a kind say something beside whose they are.
func (k entryKind) carries() bool { return k == entryWord || k == entryText || k == entryVector }

// ErrTooManyTerms is returned for an item whose entries take more than
// maxEntriesBytes.
var ErrTooManyTerms = errors.New("the item has too much to index: exclude paths in the indexing policy")

const (
	// maxEntriesBytes bounds the entries of one item.
	maxEntriesBytes = 16 << 20
	// maxRawEntriesBytes bounds them while there may be duplicates among them. The
	// room above the other bound keeps the duplicates of a large array from being
	// looked for again and again.
	maxRawEntriesBytes = maxEntriesBytes + maxEntriesBytes/2
	// MaxEntryBytes is more than the longest entry has.
	MaxEntryBytes = 1 + maxTermPathBytes + maxTermValueBytes + 64

	// Up to largeEntriesBytes memory grows as append has it, above it doubles: for
	// large slices append takes many small steps.
	largeEntriesBytes = 64 << 10
	firstSpans        = 16
	entrySpanBytes    = 24
)

// Entries are the entries of an item, in ascending order and each once.
type Entries struct {
	buf    []byte // all of them, in the order in which they were made
	spans  []entrySpan
	stamps []stampPlace
}

// entrySpan is where an entry lies, and up to after what it carries, with its first
// bytes as a number: most entries of an item differ within them.
type entrySpan struct {
	first             uint64
	start, end, after uint32
}

// Len returns how many entries there are.
func (t *Entries) Len() int { return len(t.spans) }

// At returns an entry. It is valid until the entries are used again.
func (t *Entries) At(i int) []byte {
	s := &t.spans[i]
	return t.buf[s.start:s.end:s.end]
}

// Carried returns what an entry carries.
func (t *Entries) Carried(i int) []byte {
	s := &t.spans[i]
	return t.buf[s.end:s.after:s.after]
}

// Size is how many bytes the entries have.
func (t *Entries) Size() int { return len(t.buf) }

// From returns the number of the first entry that is not below one.
func (t *Entries) From(entry []byte) int {
	return sort.Search(t.Len(), func(i int) bool { return bytes.Compare(t.At(i), entry) >= 0 })
}

// HasScalar reports whether there is a scalar at a path, given what the entries of its
// terms begin with.
func (t *Entries) HasScalar(start []byte) bool {
	i := t.From(start)
	if i == t.Len() {
		return false
	}
	term := t.At(i)
	return bytes.HasPrefix(term, start) && len(term) > len(start) && term[len(start)] < tagEmptyArray
}

// Carries reports whether the row of an entry says something beside whose it is.
func Carries(entry []byte) bool { return entryKind(entry[0]).carries() }

// AppendStart appends what the entries of an index begin with.
func AppendStart(dst []byte, k Kind, p Path) []byte {
	return appendTermPath(append(dst, byte(k.entry())), p...)
}

// Append returns the entries of o under a container's policy. They are made in
// dst's memory, and what dst held is lost. The error is ErrTooManyTerms, and the memory
// comes back with it; or that there is no room. Entries that have the time of the write
// are to be stamped.
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
	bytes   int    // of the entries, since they were sorted
	spare   []byte // memory for compacting
	room    memory.Room
	full    error // why there is no room for more
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

// end takes in the entry that was written from start on.
func (w *entryWriter) end(start int) error { return w.endCarrying(start, len(w.buf)) }

// endCarrying takes in the entry that was written from start to end, and that carries
// what was written from there on.
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

// sort puts the entries in order and leaves each of them once.
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

// compact appends the entries without what sorting left out, and returns what then
// is the memory they lie in.
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
