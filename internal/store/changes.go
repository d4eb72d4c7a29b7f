// SPDX-License-Identifier: MIT

// The change feed in its latest version mode: every live item at its last write,
// in write order. A position in it is an lsn, up to which everything was told, and the
// incarnation of the partition that has told it. It stays good for ever, since lsns are
// never given twice within one history of the data. Data that is restored from a copy
// has another history from there on.

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
	// Within, if it is set, asks for the items of one logical partition, and MinEPK
	// and MaxEPK for those from one effective partition key to before another. Nil
	// is no bound.
	Within         *LogicalPartition
	MinEPK, MaxEPK []byte
	// Start says where to begin.
	Start ChangeStart
	// AllVersions asks for all versions and deletes, in a form of their own.
	AllVersions bool
	// Wrapped asks for each item as the current part of an object, beside what is
	// known of the change.
	Wrapped bool
	// MaxItems is the length of a page; 0 only finds out where it would begin.
	MaxItems int
	MaxBytes int
}

// ChangeStart is a place in the change feed: after the lsn After, or one of the
// others if they are set.
type ChangeStart struct {
	After uint64
	// Incarnation is whose position After is; 0 if that is not known.
	Incarnation uint8
	// Beginning is before everything, wherever that is.
	Beginning bool
	// Now is after everything that there is.
	Now bool
	// SinceMs is before whatever was written at that moment or later; 0 is for none.
	SinceMs int64
}

// Known reports whether the place is an lsn.
func (s ChangeStart) Known() bool { return !s.Beginning && !s.Now && s.SinceMs == 0 }

// ChangePage is a page of the change feed.
type ChangePage struct {
	// Items holds the items, with commas between them.
	Items []byte
	Count int
	// Position is the lsn up to which everything was told, and More says that there
	// may be something after it now.
	Position uint64
	More     bool
	LSN      uint64
	// Incarnation is the partition's.
	Incarnation uint8
}

// Changes returns a page of the change feed, as of nowMs. A page never ends within
// the changes of one lsn, which were made together: it may be longer than was asked
// for.
func (p *Partition) Changes(ctx context.Context, q Changes, nowMs int64) (ChangePage, error) {
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

// changeWalk is a page that is being put together.
type changeWalk struct {
	Reader
	q       Changes
	logical []byte // the start of the identities that are asked for, nil for all
	page    ChangePage
	rows    int
	passed  int64 // bytes of items that were read and not shown
}

// begin finds the place where the page begins.
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

// MaxIncarnation is the last one that a partition may have; the first is 1.
const MaxIncarnation = 63

// newIncarnation returns that of a partition which is being opened: any but none, for
// whatever could be counted would be copied with the data.
func newIncarnation() uint8 { return 1 + uint8(rand.N(MaxIncarnation)) }

// resumeLSN returns the lsn up to which a reader knows everything, in a partition that is
// at the given one. What was written before the partition was opened is part of every
// history that it can have a position of, and what was written since only of its own.
// So a position of another incarnation is good up to there. One that is ahead without
// being another's is as good as the last.
func (p *Partition) resumeLSN(s ChangeStart, lsn uint64) uint64 {
	if s.Incarnation != 0 && s.Incarnation != p.incarnation {
		return min(s.After, p.openedAt)
	}
	return min(s.After, lsn)
}

// feedBefore returns the last lsn before whatever was written at sinceMs or later.
func (p *Partition) feedBefore(v *view, sinceMs int64) (uint64, error) {
	return lastBefore(v.meta.LSN, sinceMs, func(lsn uint64) (uint64, int64, bool, error) {
		for e, err := range v.order(kindInherits, mark{At: position{LSN: lsn}}) {
			row, err := kindInherits.parseRow(e, err)
			return row.At.LSN, row.ms, err == nil, err
		}
		return 0, 0, false, nil
	})
}

// lastBefore returns the last lsn, of all up to the given one, before whatever came at
// sinceMs or later. first returns the lsn and the time of the first row from an lsn
// on: neither ever decreases, so that they can be searched.
func lastBefore(lsn uint64, sinceMs int64, first func(lsn uint64) (uint64, int64, bool, error)) (uint64, error) {
	from, to := uint64(0), lsn+1
	middle := from // rows that were taken away are passed by once, not in every step
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

// feed walks the feed from the page's position on.
func (w *changeWalk) feed() error {
	for e, err := range w.v.order(kindInherits, mark{At: position{LSN: w.page.Position + 1}}) {
		row, err := kindInherits.parseRow(e, err)
		if err == nil {
			err = w.step()
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

// ends reports whether the page ends before a change of so many bytes: it has had its
// share, and the change is of another lsn than the one before it.
func (w *changeWalk) ends(lsn uint64, bytes int64) bool {
	full := w.page.Count > 0 && (w.page.Count >= w.q.MaxItems || int64(len(w.page.Items))+bytes > int64(w.q.MaxBytes))
	w.page.More = lsn != w.page.Position && (full || w.rows >= pageRows || w.passed >= passedBytes)
	w.rows++
	return w.page.More
}

// show puts the item of a row into the page, if it is live and asked for.
func (w *changeWalk) show(row *orderRow) error {
	if row.kind == kindInherits && row.ms <= w.cut[kindInherits] {
		w.expired = w.expired.Plus(Amount{1, row.size})
		return nil
	}
	h, body, err := w.p.item(w.v, row.ordinal)
	if err != nil {
		return err
	}
	if w.cut.expired(h.writtenMs, h.ttl) {
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

// wants reports whether an item is among those that are asked for.
func (w *changeWalk) wants(identity []byte) (bool, error) {
	if w.logical != nil {
		return bytes.HasPrefix(identity, w.logical), nil
	}
	return epkBetween(identity, w.q.MinEPK, w.q.MaxEPK)
}

// render writes an item as the feed shows it.
func (w *changeWalk) render(dst []byte, h *header, body []byte) []byte {
	if !w.q.Wrapped {
		return appendWithLSN(dst, body, h.lsn)
	}
	dst = appendWithLSN(append(dst, `{"current":`...), body, h.lsn)
	dst = appendMetadata(append(dst, `,"metadata":{`...), h.lsn, h.writtenMs)
	return append(dst, "}}"...)
}

// appendMetadata writes what is told of every change, without the braces.
func appendMetadata(dst []byte, lsn uint64, atMs int64) []byte {
	dst = strconv.AppendUint(append(dst, `"lsn":`...), lsn, 10)
	return strconv.AppendInt(append(dst, `,"crts":`...), atMs/1000, 10)
}

// lsnProperty is the one that the feed adds to items.
const lsnProperty = "_lsn"

// appendWithLSN writes an item with its lsn as its last property, in place of one
// that it has: who copies items from one feed to a container keeps theirs.
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
