// SPDX-License-Identifier: MIT

// The change feed in its latest version mode: every live item at its last write, in write
// order. A position is an lsn, up to which all changes were returned, and the incarnation
// of the partition that returned them. A position never becomes invalid, since one history
// of the data never uses an lsn twice. Data restored from a copy has another history from
// there on.

package store

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

// Changes asks for a page of the change feed.
type Changes struct {
	// Within, if set, asks for the items of one logical partition. MinEPK and MaxEPK bound
	// the effective partition keys, inclusive and exclusive; nil is no bound.
	Within         *LogicalPartition
	MinEPK, MaxEPK []byte
	// Start says where to begin.
	Start ChangeStart
	// AllVersions asks for all versions and deletes, in their own form.
	AllVersions bool
	// Wrapped asks for each item in an object, as current, together with the metadata of
	// the change.
	Wrapped bool
	// MaxItems is the length of a page; 0 only determines where it would begin.
	MaxItems int
	MaxBytes int
}

// ChangeStart is where to begin in the change feed: after the lsn After, unless one of the
// other fields is set.
type ChangeStart struct {
	After uint64
	// Incarnation is that of the partition which returned After; 0 if it is not known.
	Incarnation uint8
	// Beginning is before the first change.
	Beginning bool
	// Now is after the last change.
	Now bool
	// SinceMs is before the first change at that moment or later; 0 is not set.
	SinceMs int64
}

// Known reports whether the start is an lsn.
func (s ChangeStart) Known() bool { return !s.Beginning && !s.Now && s.SinceMs == 0 }

// ChangePage is a page of the change feed.
type ChangePage struct {
	// Items holds the items, with commas between them.
	Items []byte
	Count int
	// Position is the lsn up to which all changes were returned. More reports that there
	// may be changes after it now.
	Position uint64
	More     bool
	LSN      uint64
	// Incarnation is the partition's.
	Incarnation uint8
}

// Changes returns a page of the change feed, as of nowMs. A page never ends between changes
// of one lsn, which were made together, so it may be longer than MaxItems.
func (p *Partition) Changes(ctx context.Context, q Changes, nowMs int64) (ChangePage, error) {
	nowMs = p.notBefore(nowMs)
	var w changeWalk
	if err := w.open(p, nowMs); err != nil {
		return ChangePage{}, err
	}
	defer w.Close()
	w.stop.Look = ctx.Err
	if q.AllVersions {
		err := w.allVersions(q, nowMs)
		return w.page, err
	}
	if err := w.begin(q); err != nil || q.MaxItems == 0 {
		w.page.More = true
		return w.page, err
	}
	err := w.feed()
	return w.page, err
}

// changeWalk fills a page.
type changeWalk struct {
	Reader
	q       Changes
	logical []byte // the start of the identities that are asked for; nil for all
	page    ChangePage
	rows    int
	passed  int64 // bytes of items that were read and not returned
}

// begin sets the position at which the page begins.
func (w *changeWalk) begin(q Changes) error {
	w.q, w.page.LSN, w.page.Incarnation = q, w.v.meta.LSN, w.p.incarnation
	w.page.Position = w.p.resumeLSN(q.Start, w.v.meta.LSN)
	if q.Within != nil {
		w.logical = q.Within.appendKey(nil)
	}
	var err error
	switch {
	case q.Start.Now:
		w.page.Position = w.v.meta.LSN
	case q.Start.SinceMs > 0:
		w.page.Position, err = w.p.feedBefore(w.v, q.Start.SinceMs)
	}
	return err
}

// MaxIncarnation is the highest incarnation; the lowest is 1.
const MaxIncarnation = 63

// newIncarnation returns a random incarnation for a partition that is being opened. It is
// not a counter in the data, since that would be copied with the data.
func newIncarnation() uint8 { return 1 + uint8(rand.N(MaxIncarnation)) }

// resumeLSN returns the lsn up to which a reader knows all changes, in a partition that is
// at the given lsn. Changes from before the partition was opened are in every history that
// the reader's position can be from; later ones are in this history only. So a position of
// another incarnation holds up to the lsn at the opening. A position of this incarnation
// that is ahead of the partition counts as the last lsn.
func (p *Partition) resumeLSN(s ChangeStart, lsn uint64) uint64 {
	if s.Incarnation != 0 && s.Incarnation != p.incarnation {
		return min(s.After, p.openedAt)
	}
	return min(s.After, lsn)
}

// feedBefore returns the last lsn before the first write at sinceMs or later.
func (p *Partition) feedBefore(v *view, sinceMs int64) (uint64, error) {
	return lastBefore(v.meta.LSN, sinceMs, func(lsn uint64) (uint64, int64, bool, error) {
		for e, err := range v.order(kindInherits, mark{At: position{LSN: lsn}}) {
			row, err := kindInherits.parseRow(e, err)
			return row.At.LSN, row.ms, err == nil, err
		}
		return 0, 0, false, nil
	})
}

// lastBefore returns the last lsn, of those up to the given one, before the first row at
// sinceMs or later. first returns the lsn and the time of the first row from an lsn on.
// Neither ever decreases, so lastBefore is a binary search.
func lastBefore(lsn uint64, sinceMs int64, first func(lsn uint64) (uint64, int64, bool, error)) (uint64, error) {
	from, to := uint64(0), lsn+1
	middle := from // the first step skips all purged rows at the start, so that the others need not
	for ; from < to; middle = from + (to-from)/2 {
		row, ms, found, err := first(middle)
		if err != nil {
			return 0, err
		}
		if !found || ms >= sinceMs {
			to = middle
		} else {
			from = row + 1
		}
	}
	return max(from, 1) - 1, nil
}

// feed walks along the feed from the page's position on.
func (w *changeWalk) feed() error {
	rows := func(yield func(orderRow, error) bool) {
		for e, err := range w.v.order(kindInherits, mark{At: position{LSN: w.page.Position + 1}}) {
			if row, err := kindInherits.parseRow(e, err); !yield(row, err) || err != nil {
				return
			}
		}
	}
	for row, err := range ahead(w.p, w.v, rows, func(r *orderRow) uint64 { return r.ordinal }) {
		if err == nil {
			err = w.step()
		}
		if err == nil && row.hidden && w.rows < pageRows {
			w.page.Position = row.At.LSN
			w.rows++
			continue
		}
		if err != nil || w.ends(row.At.LSN, row.size) {
			return err
		}
		if err := w.show(&row); err != nil {
			return err
		}
		w.page.Position = row.At.LSN
	}
	w.page.Position = max(w.page.Position, w.v.meta.LSN)
	return nil
}

// ends reports whether the page ends before a change of so many bytes: the page is full, or
// has passed over too much, and the change has another lsn than the one before.
func (w *changeWalk) ends(lsn uint64, bytes int64) bool {
	full := w.page.Count > 0 && (w.page.Count >= w.q.MaxItems || int64(len(w.page.Items))+bytes > int64(w.q.MaxBytes))
	w.page.More = lsn != w.page.Position && (full || w.rows >= pageRows || w.passed >= passedBytes)
	w.rows++
	return w.page.More
}

// show adds the item of a row to the page, if it is live and asked for.
func (w *changeWalk) show(row *orderRow) error {
	if row.kind == kindInherits && row.ms <= w.cut[kindInherits] {
		w.expired = w.expired.Plus(Amount{1, row.size})
		return nil
	}
	h, body, err := w.p.item(w.v, row.ordinal)
	if err != nil {
		return err
	}
	if w.cut.expired(h.life()) {
		w.expired = w.expired.Plus(Amount{1, row.size})
		w.passed += row.size
		return nil
	}
	wanted, err := w.wants(h.identity)
	if err != nil {
		return err
	}
	if !wanted {
		w.passed += row.size
		return nil
	}
	if w.page.Count > 0 {
		w.page.Items = append(w.page.Items, ',')
	}
	w.page.Items = w.render(w.page.Items, &h, body)
	w.page.Count++
	return nil
}

// wants reports whether an item is asked for.
func (w *changeWalk) wants(identity []byte) (bool, error) {
	if w.logical != nil {
		return bytes.HasPrefix(identity, w.logical), nil
	}
	return epkBetween(identity, w.q.MinEPK, w.q.MaxEPK)
}

// render appends an item as the feed returns it.
func (w *changeWalk) render(dst []byte, h *header, body []byte) []byte {
	at, ms := h.shownAt()
	if !w.q.Wrapped {
		return appendWithLSN(dst, body, at.LSN)
	}
	dst = appendWithLSN(append(dst, `{"current":`...), body, at.LSN)
	dst = appendMetadata(append(dst, `,"metadata":{`...), at.LSN, ms)
	return append(dst, "}}"...)
}

// appendMetadata appends the metadata of all kinds of changes, without the braces.
func appendMetadata(dst []byte, lsn uint64, atMs int64) []byte {
	dst = strconv.AppendUint(append(dst, `"lsn":`...), lsn, 10)
	return strconv.AppendInt(append(dst, `,"crts":`...), atMs/1000, 10)
}

// lsnProperty is the property that the feed adds to items.
const lsnProperty = "_lsn"

// appendWithLSN appends an item with its lsn as the last property. It replaces an _lsn in
// the item: a client that copies items from a feed may store theirs.
func appendWithLSN(dst, body []byte, lsn uint64) []byte {
	members := body[:len(body)-1]
	if bytes.Contains(body, []byte(`"`+lsnProperty+`"`)) {
		if o, err := value.ParseObject(body); err == nil {
			members = o.AppendMembers([]byte("{"), func(name string) bool { return name == lsnProperty })
		}
	}
	dst = append(append(dst, members...), `,"`+lsnProperty+`":`...)
	return append(strconv.AppendUint(dst, lsn, 10), '}')
}
