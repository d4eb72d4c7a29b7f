// SPDX-License-Identifier: MIT

// Splitting a partition in two, by a key. The items, their derived rows, events and log are
// copied to two partitions that nobody reads yet, while this one serves requests. A journal
// in memory has what changes meanwhile, and what it has is copied again. At the end the
// partition is sealed: its loop stands still, the last changes are copied, and one commit of
// the caller replaces it by the two. DESIGN.md says why this is so.

package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// splitRows is the most rows in a group that is copied, and splitBytes about the most
	// bytes of their values.
	splitRows  = 512
	splitBytes = 1 << 20
	// journalFew is how many changes may be left for the seal, while requests wait, and
	// journalMany after how many the copying stops to catch up. journalMost bounds the memory.
	journalFew  = 256
	journalMany = 1 << 14
	journalMost = 1 << 22
	// splitRounds is how often a split tries to catch up with the writes before it gives up.
	splitRounds = 64
)

var (
	// ErrSplitStale: the container's settings have changed since the split began. It must
	// begin again.
	ErrSplitStale = errors.New("the container's settings have changed since the split began")
	// ErrSplitSlow: more is written than the split can copy.
	ErrSplitSlow = errors.New("more is written to the partition than a split can copy: try again when there is less load")
)

// journal is what has changed in a partition since it was last drained; Partition.mu is held.
type journal struct {
	ordinals map[uint64]struct{} // of items
	events   []EventKey
	overfull bool
}

// note adds the changes of a transaction that is being published.
func (j *journal) note(t *tx) {
	if j == nil || j.overfull {
		return
	}
	if len(j.ordinals)+len(j.events)+len(t.changes)+len(t.events) > journalMost {
		*j = journal{overfull: true}
		return
	}
	for i := range t.changes {
		j.ordinals[t.changes[i].ordinal] = struct{}{}
	}
	j.events = append(j.events, t.events...)
}

func newJournal() *journal { return &journal{ordinals: map[uint64]struct{}{}} }

// Split is a split under way. Its methods are for one goroutine, except Progress.
type Split struct {
	p        *Partition
	under    *catalog.Container
	cut      []byte
	children [2]*Partition
	failed   atomic.Pointer[error] // why a child has closed itself
	most     int                   // rows of a group

	// All items up to the ordinal, all events up to the key and the log up to the lsn were
	// copied, but for what the journal has.
	items  uint64
	events EventKey
	log    uint64
	logged bool // the log was begun

	all, copied atomic.Int64
}

// SplitKey returns a key that divides a partition's range of keys into halves of about the same
// size; nil if it holds less than two different keys. It does not divide the keys that begin
// with one value of a hierarchical key: a query for that value has one answer, without a plan.
func (p *Partition) SplitKey(r *catalog.Range) ([]byte, error) {
	v, err := p.acquire()
	if err != nil {
		return nil, err
	}
	defer p.release(v)
	lower, upper := p.prefix.space(partSpace)
	var key, first []byte
	var sum int64
	level := math.MaxInt
	if v.container.PartitionKey.Hierarchical() {
		level = value.EPKLevelBytes
	}
	for e, err := range v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, err
		}
		row, err := decodePart(e)
		if err != nil {
			return nil, err
		}
		epk, _, err := value.DecodeBytesKey(e.Key[prefixBytes+1:])
		if err != nil {
			return nil, corrupt(e.Key, err.Error())
		}
		if epk = epk[:min(level, len(epk))]; first == nil {
			first = bytes.Clone(epk)
		}
		if !bytes.Equal(epk, first) && r.Within(epk) {
			if key = bytes.Clone(epk); 2*sum >= v.meta.Bytes {
				break
			}
		}
		sum += row.Bytes
	}
	return key, nil
}

// BeginSplit begins a split: the keys before the cut go to the first of two partitions, and
// the others to the second. No row of these may exist. The caller ends it with Finish or
// Abandon.
func (p *Partition) BeginSplit(children [2]int, cut []byte) (*Split, error) {
	s := &Split{p: p, cut: cut, most: splitRows}
	p.mu.Lock()
	s.under = p.mu.now.container
	s.all.Store(p.mu.now.meta.Items)
	busy := p.mu.journal != nil
	if !busy {
		p.mu.journal = newJournal()
	}
	p.mu.Unlock()
	if busy {
		return nil, catalog.ErrSplitting
	}
	for i, index := range children {
		// On a shared engine each commit of a child requires the owner row of this partition.
		child, _, err := open(Options{
			DB: p.db, Clock: p.clock, Container: s.under, Index: index, Lease: p.held.Load(),
			Renew:  func(context.Context) (*Lease, error) { return nil, ErrClosed },
			Failed: s.fail, Lost: s.fail,
		})
		if err != nil {
			s.Abandon()
			return nil, fmt.Errorf("open partition %d for a split: %w", index, err)
		}
		s.children[i] = child
	}
	return s, nil
}

func (s *Split) fail(err error) { s.failed.CompareAndSwap(nil, &err) }

// Epoch returns that of the settings under which the children were made.
func (s *Split) Epoch() uint64 { return s.under.Epoch }

// Progress returns how many items were copied, of about how many.
func (s *Split) Progress() (copied, all int64) {
	return min(s.copied.Load(), s.all.Load()), s.all.Load()
}

// Abandon ends a split that is not finished. What was copied stays, for the caller to remove.
func (s *Split) Abandon() {
	s.close()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.mu.journal = nil
}

func (s *Split) close() {
	for _, child := range s.children {
		if child != nil {
			child.Close()
		}
	}
}

// Copy copies everything, and then what has changed meanwhile, until little is left. look is
// called before every group, and ends the copying with its error.
func (s *Split) Copy(look func() error) error {
	for _, phase := range []func() (more bool, err error){s.copyItems, s.copyEvents, s.copyLog} {
		for more := true; more; {
			err := look()
			if err == nil && s.journaled() > journalMany {
				err = s.catchUp(look)
			}
			if err == nil {
				more, err = phase()
			}
			if err != nil {
				return s.explain(err)
			}
		}
	}
	for range splitRounds {
		if s.journaled() <= journalFew {
			return nil
		}
		if err := s.catchUp(look); err != nil {
			return s.explain(err)
		}
	}
	if s.journaled() > journalMany {
		return ErrSplitSlow
	}
	return nil
}

// explain returns the reason why a child has closed itself, if that is why err came.
func (s *Split) explain(err error) error {
	if why := s.failed.Load(); why != nil && errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %w", err, *why)
	}
	return err
}

// journaled returns how many changes have not been copied yet.
func (s *Split) journaled() int {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	j := s.p.mu.journal
	return len(j.ordinals) + len(j.events)
}

// side returns the child of an effective partition key.
func (s *Split) side(epk []byte) int {
	if bytes.Compare(epk, s.cut) < 0 {
		return 0
	}
	return 1
}

// sideOf returns the child of an identity, or of what begins like one. An event whose identity
// was erased can be in either: it goes to the first.
func (s *Split) sideOf(identity []byte) (int, error) {
	if len(identity) == 0 {
		return 0, nil
	}
	epk, _, err := value.DecodeBytesKey(identity)
	return s.side(epk), err
}

// acquire returns the published view, if it still has the settings that the split began under.
func (s *Split) acquire() (*view, error) {
	v, err := s.p.acquire()
	if err == nil && v.container.Epoch != s.under.Epoch {
		s.p.release(v)
		return nil, ErrSplitStale
	}
	return v, err
}

// splitGroup is what is written to one child together.
type splitGroup struct {
	items  []current
	bodies [][]byte // the rows of the items
	gone   []uint64 // ordinals of items that are removed first, if they are there
	rows   []kv.Entry
	drop   [][]byte // keys of other rows
	// last ends the child.
	last func(w *writer)
}

func (g *splitGroup) empty() bool {
	return len(g.items) == 0 && len(g.gone) == 0 && len(g.rows) == 0 && len(g.drop) == 0 && g.last == nil
}

// put writes groups to the children.
func (s *Split) put(groups *[2]splitGroup) error {
	for i := range groups {
		g := &groups[i]
		if g.empty() {
			continue
		}
		if _, err := s.children[i].submit(context.Background(), &job{task: &task{do: g.write, awaited: g.last != nil}}); err != nil {
			return err
		}
		*g = splitGroup{}
	}
	return nil
}

// write writes the group, in the loop of the child.
func (g *splitGroup) write(w *writer) error {
	w.warmSplit(g)
	for _, ordinal := range g.gone {
		c, err := w.view.itemAt(ordinal)
		if err != nil {
			return err
		}
		if !c.exists {
			continue
		}
		if err := w.prepareRemoval(&c, memory.Room{}); err != nil {
			return err
		}
		w.removeRows(&c)
	}
	for i := range g.items {
		if err := w.loadCounts(&g.items[i]); err != nil {
			return err
		}
	}
	for i := range g.items {
		c := &g.items[i]
		w.putID(c)
		w.putUnique(c)
		w.putIndex(c)
		if c.overfull {
			w.meta.Overfull++
		}
		w.putVersion(c, g.bodies[i])
	}
	for _, key := range g.drop {
		w.batch.Delete(key, 0)
	}
	for _, row := range g.rows {
		w.batch.Set(row.Key, row.Value)
	}
	if g.last != nil {
		g.last(w)
		w.indexed = true // so that it is committed
	}
	return nil
}

// warmSplit reads the counters that the group changes, and the items that it removes.
func (w *writer) warmSplit(g *splitGroup) {
	if !w.p.far {
		return
	}
	warm := gathering{p: w.p, v: w.view}
	for i := range g.items {
		c := &g.items[i]
		keys, n := bucketsOf(&c.header)
		for _, k := range keys[:n] {
			if _, known := w.bucket(k); !known {
				warm.add(w.p.prefix.appendStatKey(nil, k))
			}
		}
		if logical, err := logicalOf(c.header.identity); err == nil {
			if _, known := w.part(logical); !known {
				warm.add(w.p.prefix.appendKey(nil, partSpace, logical))
			}
		}
	}
	for _, ordinal := range g.gone {
		warm.add(w.p.prefix.appendItemKey(nil, ordinal))
	}
	warm.warm()
}

// addItem adds an item of the parent, by its row, to the group of its child.
func (s *Split) addItem(groups *[2]splitGroup, e kv.Entry) (ordinal uint64, err error) {
	row := bytes.Clone(e.Value)
	c, err := itemOf(kv.Entry{Key: e.Key, Value: row})
	if err != nil {
		return 0, err
	}
	if err := c.derive(s.under, memory.Room{}); err != nil {
		return 0, err
	}
	side, err := s.sideOf(c.header.identity)
	if err != nil {
		return 0, corrupt(e.Key, err.Error())
	}
	g := &groups[side]
	g.items, g.bodies = append(g.items, c), append(g.bodies, row)
	return c.ordinal, nil
}

// copyItems copies the next items, in the order of their ordinals.
func (s *Split) copyItems() (more bool, err error) {
	if s.items == math.MaxUint64 {
		return false, nil
	}
	v, err := s.acquire()
	if err != nil {
		return false, err
	}
	defer s.p.release(v)
	_, upper := s.p.prefix.space(itemSpace)
	var groups [2]splitGroup
	rows, size, last := 0, 0, s.items
	for e, err := range v.snap.Scan(s.p.prefix.appendItemKey(nil, s.items+1), upper, kv.Forward) {
		if err != nil {
			return false, err
		}
		if more = rows == s.most || size >= splitBytes; more {
			break
		}
		if last, err = s.addItem(&groups, e); err != nil {
			return false, err
		}
		rows, size = rows+1, size+len(e.Value)
	}
	if err := s.put(&groups); err != nil {
		return false, err
	}
	s.items = last
	if !more { // items that are created from here on are in the journal
		s.items = math.MaxUint64
	}
	s.copied.Add(int64(rows))
	return more, nil
}

// moved returns a row of the parent as one of a child.
func (s *Split) moved(side int, e kv.Entry) kv.Entry {
	key := bytes.Clone(e.Key)
	copy(key, s.children[side].prefix[:])
	return kv.Entry{Key: key, Value: bytes.Clone(e.Value)}
}

// copyRows copies the next rows from lower on, as they are. place returns the identity that a
// row is of. A group does not end between rows whose keys begin with the same bytes, so many.
// It returns the last key.
func (s *Split) copyRows(v *view, lower, upper []byte, same int, place func(kv.Entry) ([]byte, error)) (last []byte, more bool, err error) {
	var groups [2]splitGroup
	rows, size := 0, 0
	for e, err := range v.snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return nil, false, err
		}
		full := rows >= s.most || size >= splitBytes
		if more = full && !bytes.Equal(e.Key[:same], last[:same]); more {
			break
		}
		identity, err := place(e)
		if err != nil {
			return nil, false, err
		}
		side, err := s.sideOf(identity)
		if err != nil {
			return nil, false, corrupt(e.Key, err.Error())
		}
		groups[side].rows = append(groups[side].rows, s.moved(side, e))
		last, rows, size = bytes.Clone(e.Key), rows+1, size+len(e.Value)
	}
	return last, more, s.put(&groups)
}

func eventIdentity(e kv.Entry) ([]byte, error) {
	if len(e.Value) < eventRowBytes {
		return nil, corrupt(e.Key, "not an event")
	}
	return e.Value[eventRowBytes:], nil
}

// copyEvents copies the next events, in their order.
func (s *Split) copyEvents() (more bool, err error) {
	v, err := s.acquire()
	if err != nil {
		return false, err
	}
	defer s.p.release(v)
	_, upper := s.p.prefix.space(eventSpace)
	last, more, err := s.copyRows(v, append(s.p.prefix.appendEventKey(nil, s.events), 0), upper, eventKeyBytes, eventIdentity)
	if err != nil {
		return false, err
	}
	if s.events = (EventKey{GoneMs: never}); more {
		s.events, err = parseEventKey(last)
	}
	return more, err
}

// copyLog copies the next rows of the log.
func (s *Split) copyLog() (more bool, err error) {
	v, err := s.acquire()
	if err != nil {
		return false, err
	}
	defer s.p.release(v)
	s.logged = true
	return s.copyLogTo(v)
}

// copyLogTo copies the next rows of the log of a view.
func (s *Split) copyLogTo(v *view) (more bool, err error) {
	_, upper := s.p.prefix.space(logSpace)
	last, more, err := s.copyRows(v, s.p.prefix.appendLogKey(nil, s.log+1, 0), upper, logKeyBytes-4, func(e kv.Entry) ([]byte, error) {
		r, err := parseLogRow(e)
		return r.identity, err
	})
	if err != nil {
		return false, err
	}
	if s.log = v.meta.LSN; more {
		s.log = binary.BigEndian.Uint64(last[prefixBytes+1:])
	}
	return more, nil
}

// catchUp copies again what has changed since the journal was last drained.
func (s *Split) catchUp(look func() error) error {
	s.p.mu.Lock()
	j := s.p.mu.journal
	s.p.mu.journal = newJournal()
	s.p.mu.Unlock()
	if j.overfull {
		return ErrSplitSlow
	}
	v, err := s.acquire() // it has all that the journal has
	if err != nil {
		return err
	}
	defer s.p.release(v)
	// First all items of the journal are removed, and then those that exist are written: one
	// of them may have an id or a unique key now that another had before.
	var ordinals []uint64
	for ordinal := range j.ordinals {
		if ordinal <= s.items { // else it will be copied, or was already removed again
			ordinals = append(ordinals, ordinal)
		}
	}
	for from := 0; from < len(ordinals); from += s.most {
		gone := ordinals[from:min(from+s.most, len(ordinals))]
		if err := look(); err != nil {
			return err
		}
		if err := s.put(&[2]splitGroup{{gone: gone}, {gone: gone}}); err != nil {
			return err
		}
	}
	if err := s.putAgain(v, ordinals, look); err != nil {
		return err
	}
	if err := s.putEvents(v, j.events); err != nil {
		return err
	}
	for more := s.logged; more; {
		if more, err = s.copyLogTo(v); err != nil {
			return err
		}
	}
	return nil
}

// putAgain copies items as they are in a view.
func (s *Split) putAgain(v *view, ordinals []uint64, look func() error) error {
	var groups [2]splitGroup
	size := 0
	for i, ordinal := range ordinals {
		if i%gatherItems == 0 {
			s.p.warmItems(v, ordinals[i:min(i+gatherItems, len(ordinals))])
		}
		key := s.p.prefix.appendItemKey(nil, ordinal)
		row, found, err := v.snap.Get(key)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if _, err := s.addItem(&groups, kv.Entry{Key: key, Value: row}); err != nil {
			return err
		}
		if size += len(row); size >= splitBytes || len(groups[0].items)+len(groups[1].items) == s.most {
			if err := look(); err != nil {
				return err
			}
			if err := s.put(&groups); err != nil {
				return err
			}
			size = 0
		}
	}
	return s.put(&groups)
}

// putEvents copies events as they are in a view. The identity of one may have been erased
// since it was copied, and it goes to another child then.
func (s *Split) putEvents(v *view, events []EventKey) error {
	var groups [2]splitGroup
	for _, at := range events {
		if s.events.compare(at) < 0 {
			continue // it will be copied
		}
		key := s.p.prefix.appendEventKey(nil, at)
		row, found, err := v.snap.Get(key)
		if err != nil {
			return err
		}
		e := kv.Entry{Key: key, Value: row}
		for side := range groups {
			groups[side].drop = append(groups[side].drop, s.moved(side, e).Key)
		}
		if found {
			identity, err := eventIdentity(e)
			if err != nil {
				return err
			}
			side, err := s.sideOf(identity)
			if err != nil {
				return corrupt(key, err.Error())
			}
			groups[side].rows = append(groups[side].rows, s.moved(side, e))
		}
		if len(groups[0].drop) == s.most {
			if err := s.put(&groups); err != nil {
				return err
			}
		}
	}
	return s.put(&groups)
}

// Finish seals the partition, copies the rest, and then has commit replace the partition by
// its children: it must remove the partition's rows in one commit with the new ranges. Then
// the partition is closed. If commit fails it is closed too, since that may still happen,
// unless the error is ErrSplitStale. After any other error the partition goes on.
func (s *Split) Finish(ctx context.Context, commit func() error) error {
	_, err := s.p.submit(ctx, &job{seal: func() error {
		if err := s.catchUp(func() error { return nil }); err != nil {
			return err
		}
		if err := s.end(); err != nil {
			return err
		}
		s.close()
		err := commit()
		if err != nil && !errors.Is(err, ErrSplitStale) {
			err = &sealError{err}
		}
		return err
	}})
	return s.explain(err)
}

// end gives the children the state of the partition, in a commit that makes all of them
// durable.
func (s *Split) end() error {
	w := &s.p.writer
	v, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.p.release(v)
	under, err := s.p.removals(v.snap)
	if err != nil {
		return err
	}
	var groups [2]splitGroup
	for _, r := range under {
		side, err := s.sideOf(r.logical)
		if err != nil {
			return err
		}
		groups[side].rows = append(groups[side].rows, kv.Entry{
			Key:   s.children[side].prefix.appendKey(nil, removalSpace, r.logical),
			Value: binary.BigEndian.AppendUint64(nil, r.lsn),
		})
	}
	for i := range groups {
		groups[i].last = func(c *writer) { c.inherit(&w.meta, &w.log) }
	}
	return s.put(&groups)
}

// inherit takes over the state of the partition that was split.
func (w *writer) inherit(from *meta, log *changeLog) {
	m := &w.meta
	m.LSN, m.Marks, m.PrunedMs = from.LSN, from.Marks, from.PrunedMs
	m.ContainerDefault, m.Final, m.ChangedMs = from.ContainerDefault, from.Final, from.ChangedMs
	if w.log.on = log.on; log.on {
		w.log.state, w.log.dirty = log.state, true
		removeRange(w.batch, w.p.far, w.p.prefix.appendLogKey(nil, 0, 0), w.p.prefix.appendLogKey(nil, log.state.From+1, 0))
	}
}

// sealError is the failure of the commit that ends a split.
type sealError struct{ cause error }

func (e *sealError) Error() string { return "the end of the split failed: " + e.cause.Error() }

func (e *sealError) Unwrap() error { return e.cause }

// sealed runs the seal of a split, in the loop, and reports whether the partition has ended.
func (p *Partition) sealed(j *job) bool {
	err := j.seal()
	var failed *sealError
	switch {
	case err == nil:
		p.shut()
		p.refuse(ErrClosed)
	case errors.As(err, &failed):
		p.fail(err)
	}
	_ = answer([]*job{j}, err)
	return err == nil || failed != nil
}

// Fence returns the bytes of the owner row that the partition's commits require, on a shared
// engine.
func (p *Partition) Fence() []byte { return p.held.Load().Fence }

// RemovePartition adds to b the removal of all rows of a partition. If the engine is far, they
// are swept later.
func RemovePartition(b *kv.Batch, far bool, c catalog.ContainerRID, index int) {
	x := partitionPrefix(c, index)
	removeRange(b, far, x[:], kv.After(x[:]))
}
