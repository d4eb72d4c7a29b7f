// SPDX-License-Identifier: MIT

// Walking along an index within one logical partition, past the rows of the others.

package store

import (
	"bytes"
	"iter"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv"
)

// Within limits a scan to the rows of one logical partition.
type Within struct {
	Logical *LogicalPartition
	// Passed receives how many rows of other logical partitions' live items were passed
	// over since the last call. It is called before each row that is returned, at the end,
	// and in between after a number of rows, then also with the place of the walk. It
	// returns whether to go on.
	Passed func(rows int64, at index.Place) (more bool, err error)
	// Gathered is how many hits were found and not returned yet when Passed is called.
	Gathered int64
}

const (
	// reportRows is how many rows of others a walk passes over before it calls Passed.
	reportRows = 64
	// minOtherRows is how many of the rows read must belong to others for them to be kept,
	// unless the walk has met a span.
	minOtherRows = 32
	// scarce is by which factor a partition key must have fewer items than the partition
	// for the rows between its own to be worth keeping.
	scarce = 4
)

// withinWalk walks along an index within one logical partition.
type withinWalk struct {
	r         *Reader
	of        *Within
	order     kv.Order
	start     []byte // that all keys of the path share
	keepSpans bool   // whether it keeps the rows that it reads
	passed    int64  // rows of others since the last call of Passed
	yield     func(Hit, error) bool

	lower, upper []byte       // of the rest of the walk
	ahead        []*indexSpan // adjacent spans that come next
	aheadRoom    [4]*indexSpan
	key          []byte       // reused
	built        *spanBuilder // nil if keepSpans is false
	others       int          // rows of others in built
	nearSpan     bool         // the walk has met a span
}

// within returns the index rows of a logical partition's live items in a range.
func (r *Reader) within(lower, upper []byte, order kv.Order, first int, of *Within) iter.Seq2[Hit, error] {
	room := append(append(make([]byte, 0, len(lower)+len(upper)), lower...), upper...)
	w := &withinWalk{r: r, of: of, order: order, lower: room[:len(lower):len(lower)], upper: room[len(lower):], start: room[:first:first]}
	return func(yield func(Hit, error) bool) {
		w.yield = yield
		if err := w.run(); err != nil {
			yield(Hit{}, err)
		}
	}
}

func (w *withinWalk) run() (err error) {
	if w.keepSpans, err = w.r.worthKeeping(w.of.Logical, w.start); err != nil {
		return err
	}
	if w.keepSpans {
		w.built = &spanBuilder{}
	}
	for more := true; more && bytes.Compare(w.lower, w.upper) < 0; {
		s, lower, upper := w.next()
		if s != nil {
			more, err = w.along(s)
		} else {
			more, err = w.read(lower, upper)
		}
		if err == nil && more {
			more, err = w.report(index.Place{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// worthKeeping reports whether to keep the rows between those of a logical partition.
func (r *Reader) worthKeeping(l *LogicalPartition, start []byte) (bool, error) {
	if l.Prefix || index.Carries(start[prefixBytes+1+generationBytes:]) {
		return false, nil
	}
	items, err := r.LogicalItems(*l)
	return items*scarce <= r.Items(), err
}

// next returns the span that comes next, or nil and the bounds of the gap before it.
func (w *withinWalk) next() (s *indexSpan, lower, upper []byte) {
	if len(w.ahead) == 0 {
		if lower, upper = w.lookAhead(); len(w.ahead) == 0 {
			return nil, lower, upper
		}
	}
	s, w.ahead = w.ahead[0], w.ahead[1:]
	return s, nil, nil
}

// lookAhead fetches the spans that come next, or returns the bounds of the gap before them.
func (w *withinWalk) lookAhead() (lower, upper []byte) {
	if !w.keepSpans {
		return w.lower, w.upper
	}
	p := w.r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.view != w.r.v {
		w.keepSpans = false
		return w.lower, w.upper
	}
	w.ahead, lower, upper = p.mu.spans.next(w.aheadRoom[:], w.start, w.lower, w.upper, w.order)
	w.nearSpan = w.nearSpan || len(w.ahead) > 0 || !bytes.Equal(lower, w.lower) || !bytes.Equal(upper, w.upper)
	return lower, upper
}

// report calls Passed, with the place if it is given.
func (w *withinWalk) report(at index.Place) (more bool, err error) {
	if w.passed == 0 && at.Ordinal == 0 {
		return true, nil
	}
	passed := w.passed
	w.passed = 0
	return w.of.Passed(passed, at)
}

// show returns a row to the caller, after reporting the rows passed over before it.
func (w *withinWalk) show(h Hit) (more bool, err error) {
	if more, err := w.report(index.Place{}); err != nil || !more {
		return false, err
	}
	return w.yield(h, nil), nil
}

// along walks over a span, within the bounds of the walk.
func (w *withinWalk) along(s *indexSpan) (more bool, err error) {
	if invariant.Enabled {
		w.verify(s)
	}
	first, last := 0, len(s.rows)
	if bytes.Compare(s.lower, w.lower) < 0 {
		first = s.from(w.rest(w.lower))
	}
	if bytes.Compare(s.upper, w.upper) > 0 {
		last = s.from(w.rest(w.upper))
	}
	if err := w.r.stepBy(last - first); err != nil {
		return false, err
	}
	checkedStop := w.r.checkedStop()
	if more, err := w.rows(s, first, last); err != nil || !more {
		return false, err
	}
	if checkedStop && first < last {
		if more, err := w.reportEnd(s, first, last); err != nil || !more {
			return false, err
		}
	}
	w.passTo(s.lower, s.upper)
	return true, nil
}

// passTo records that the rows between two keys are done. It returns the bound at which the
// walk continues.
func (w *withinWalk) passTo(lower, upper []byte) []byte {
	if w.order == kv.Reverse {
		w.upper = lower
		return lower
	}
	w.lower = upper
	return upper
}

// reportEnd reports the place of the last row of a span that was passed over.
func (w *withinWalk) reportEnd(s *indexSpan, first, last int) (more bool, err error) {
	i := last - 1
	if w.order == kv.Reverse {
		i = first
	}
	return w.report(w.place(s, i))
}

// place returns the place of a row of a span. It is valid until the next call.
func (w *withinWalk) place(s *indexSpan, i int) index.Place {
	w.key = append(append(w.key[:0], w.start...), s.key(i)...)
	return index.Place{Value: index.ValueOf(w.key[len(w.start) : len(w.key)-ordinalBytes]), Ordinal: indexOrdinal(w.key)}
}

// rows walks over the rows of a span from first to last, exclusive.
func (w *withinWalk) rows(s *indexSpan, first, last int) (more bool, err error) {
	noneExpired := w.r.cut.noneExpired(s.earliest)
	owner, found := s.owner(w.of.Logical.EPK)
	if noneExpired && !found {
		w.passed += int64(last - first)
		return true, nil
	}
	for first < last {
		if noneExpired {
			// Most rows belong to others. While none has expired, they need not be looked
			// at.
			passed := w.othersBefore(s.owners[first:last], owner)
			w.passed += int64(passed)
			if passed == last-first {
				break
			}
			if w.order == kv.Forward {
				first += passed
			} else {
				last -= passed
			}
		}
		i := first
		if w.order == kv.Forward {
			first++
		} else {
			last--
			i = last
		}
		if row := &s.rows[i]; w.r.cut.expired(row.life()) {
			w.r.expired = w.r.expired.Plus(Amount{1, int64(len(w.start) + len(s.key(i)) + indexRowBytes + len(s.epk(s.owners[i])))})
			continue
		}
		if !found || s.owners[i] != owner {
			w.passed++
			continue
		}
		if more, err := w.show(Hit{Place: w.place(s, i), EPK: w.of.Logical.EPK}); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// othersBefore returns how many rows come before the first row of an owner, in the
// direction of the walk.
func (w *withinWalk) othersBefore(owners []uint16, owner uint16) (n int) {
	if w.order == kv.Forward {
		for n < len(owners) && owners[n] != owner {
			n++
		}
		return n
	}
	for n < len(owners) && owners[len(owners)-1-n] != owner {
		n++
	}
	return n
}

// rest returns a key of the path without its start. A bound after the last key of the path
// becomes pastKeys.
func (w *withinWalk) rest(key []byte) []byte {
	if bytes.HasPrefix(key, w.start) {
		return key[len(w.start):]
	}
	return pastKeys
}

// pastKeys is above all keys of a path without their start.
var pastKeys = bytes.Repeat([]byte{0xff}, index.MaxEntryBytes)

// verify checks that a span has the same rows as the engine.
func (w *withinWalk) verify(s *indexSpan) {
	i := 0
	for e, err := range w.r.v.snap.Scan(s.lower, s.upper, kv.Forward) {
		if err != nil {
			return // as if it had not been checked
		}
		invariant.Check(i < len(s.rows), "a span lacks %x", e.Key)
		row := &s.rows[i]
		invariant.Check(bytes.Equal(s.key(i), e.Key[len(w.start):]) && bytes.Equal(s.epk(s.owners[i]), e.Value[indexRowBytes:]) &&
			row.life() == decodeLife(e.Value),
			"a span has %x in place of %x", s.key(i), e.Key)
		i++
	}
	invariant.Check(i == len(s.rows), "a span has %d rows, of which there are %d", len(s.rows), i)
}

// read walks over rows that are in no span, and keeps them.
func (w *withinWalk) read(lower, upper []byte) (more bool, err error) {
	from := lower // the bound where built begins: its upper one if the order is reversed
	if w.order == kv.Reverse {
		from = upper
	}
	more = true
	for e, err := range w.r.v.snap.Scan(lower, upper, w.order) {
		if err == nil {
			err = w.r.step()
		}
		var hit Hit
		live := false
		if err == nil {
			hit, live, err = w.r.hit(e, len(w.start))
		}
		if err != nil {
			return false, err
		}
		if w.keepSpans {
			from = w.build(from, e)
		}
		at := index.Place{}
		if w.r.checkedStop() {
			at = hit.Place
		}
		switch {
		case live && w.of.Logical.Holds(hit.EPK):
			more, err = w.show(hit)
		case live:
			w.others++
			if w.passed++; w.passed >= reportRows || at.Ordinal != 0 {
				more, err = w.report(at)
			}
		case at.Ordinal != 0:
			more, err = w.report(at)
		}
		if err != nil || !more {
			w.keep(from, w.beyond(e.Key))
			return false, err
		}
	}
	w.keep(from, w.passTo(lower, upper))
	return true, nil
}

// build adds a row to the span being built. If that is full, it is kept first and another
// one begins. It returns the bound where the span being built begins.
func (w *withinWalk) build(from []byte, e kv.Entry) []byte {
	if len(w.built.s.rows) == spanRows {
		to := bytes.Clone(e.Key)
		if w.order == kv.Reverse {
			to = append(to, 0)
		}
		w.keep(from, to)
		from = to
	}
	w.built.add(e.Key[len(w.start):], e.Value[indexRowBytes:], decodeLife(e.Value))
	return from
}

// beyond returns the bound right after a row, in the direction of the walk.
func (w *withinWalk) beyond(key []byte) []byte {
	if w.order == kv.Reverse {
		return key
	}
	return append(bytes.Clone(key), 0)
}

// keep keeps the span being built, between two bounds.
func (w *withinWalk) keep(from, to []byte) {
	if !w.keepSpans {
		return
	}
	lower, upper := from, to
	if w.order == kv.Reverse {
		lower, upper = to, from
	}
	few := w.others < minOtherRows && !w.nearSpan
	w.others = 0
	if few {
		w.built.reset()
		return
	}
	s, p := w.built.finish(lower, upper, w.order == kv.Reverse), w.r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.view == w.r.v {
		p.mu.spans.put(w.start, s)
	}
}
