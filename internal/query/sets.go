// SPDX-License-Identifier: MIT

// Sets of items that an index names by their ordinals. A condition of the filter comes to
// a set: the items with certain values at a path, with a value in a range, with a word in
// a text, with a geometry in certain cells. What all conditions have in common is found
// before an item is read.

package query

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// fewRows is up to how many items it is best to read them at once, rather than
	// to find out which of them another set has too.
	fewRows = 32
	// probeGrowth is by how much more rows are counted of sets that are all larger.
	probeGrowth = 4
	// maxMembers is how many sets are intersected: what the others say is filtered.
	maxMembers = 4
	// gatheredRows is up to how many index rows a range has for its items to come in the
	// order of creation. Those of a larger one come in the order of the index. A query for
	// a few rows among more than fewHits items reads fewGathered at most: it is expected
	// to cost little.
	gatheredRows = 10_000
	fewGathered  = 128
	// maxHeldOrdinals is how many items are held that were found and not yet read.
	maxHeldOrdinals = maxHeldBytes / 4 / ordinalBytes
	ordinalBytes    = 8
	// gatheredPerValue is how many rows there may be for each value that is looked up, for
	// their ordinals to be gathered and sorted. To walk over the values at once takes a
	// walk of its own for each, which costs more than so many rows.
	gatheredPerValue = 8
)

// set is the items with one of the values in ranges at a path, or in a part of a composite
// index, or in any of several sets.
type set struct {
	fact      int // the condition that it is of; compositeFact if it is of several
	kind      index.Kind
	path      index.Path
	ranges    []index.ValueRange
	composite *compositePart
	any       []*set
	// spread says that the rows are in another order than that of ordinals, so that all
	// of them are gathered before one is of use: no more than most.
	spread bool
	most   int64
	found  *hits
	one    [1]index.ValueRange // room for ranges
}

// compositeFact stands for the conditions that a composite index answers.
const compositeFact = -1

// hits is all that an index has of a set, kept so that it need not be read again.
type hits struct {
	rows     int64
	ordinals []uint64 // of those in scope, in order
	few      [4]uint64
	held     int   // memory for them
	err      error // of the index, or of what is held
}

// seeks returns how many values are looked up.
func (s *set) seeks() int {
	n := len(s.ranges)
	for _, part := range s.any {
		n += part.seeks()
	}
	return n
}

// single reports whether the set is the rows of one value, which are in the order of
// ordinals.
func (s *set) single() bool { return len(s.ranges) == 1 && !s.spread }

// rowsAfter asks for the rows of one of the ranges, after an ordinal if they are in the
// order of ordinals.
func (s *set) rowsAfter(v index.ValueRange, ordinal uint64) store.IndexScan {
	scan := store.IndexScan{Kind: s.kind, Path: s.path, Values: v}
	if ordinal > 0 && !s.spread {
		scan.After = v.PlaceOf(ordinal)
	}
	return scan
}

// eachScan calls yield with the scans that the set is made of, after an ordinal.
func (s *set) eachScan(after uint64, yield func(store.IndexScan) bool) bool {
	if s.composite != nil && !yield(store.IndexScan{Composite: &s.composite.CompositeRange}) {
		return false
	}
	for _, v := range s.ranges {
		if !yield(s.rowsAfter(v, after)) {
			return false
		}
	}
	for _, part := range s.any {
		if !part.eachScan(after, yield) {
			return false
		}
	}
	return true
}

// setPath is the items that several sets have in common, in the order of creation.
type setPath struct {
	sets    []*set
	members []*set // of these, the ones that are looked up
	picked  bool   // by a page before
	room    [1]*set
}

func (p *setPath) order() order { return byOrdinal }

// name tells which sets are looked up.
func (p *setPath) name() string {
	names := make([]string, len(p.members))
	for i, s := range p.members {
		names[i] = strconv.Itoa(s.fact)
	}
	return "set:" + strings.Join(names, ",")
}

// pick makes those sets members that a token names. The page before has found that they
// are small enough to gather.
func (p *setPath) pick(names string) bool {
	list := strings.Split(names, ",")
	for _, s := range p.sets {
		if slices.Contains(list, strconv.Itoa(s.fact)) {
			s.most = maxHeldOrdinals
			p.members = append(p.members, s)
		}
	}
	p.picked = p.members != nil
	return p.picked
}

// without returns the path without the range of values at an index path, if that is one.
func (p *setPath) without(path index.Path) *setPath {
	if p == nil {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(p.sets), func(s *set) bool {
		return s.spread && s.kind == index.Scalars && slices.Equal(s.path, path)
	})
	if len(others) == 0 {
		return nil
	}
	return &setPath{sets: others}
}

// open chooses the members: the smallest set, and those that are not much larger. It
// reports whether the smallest has few enough rows.
func (p *setPath) open(x *execution, most int64) (bool, error) {
	if p.picked {
		return true, nil
	}
	if s := p.sets[0]; len(p.sets) == 1 {
		p.members = p.sets
		if s.spread {
			most = min(most, s.most)
		}
		if most == unlimited {
			return true, nil
		}
		rows, err := x.size(s, most)
		return rows <= most, err
	}
	sizes, err := p.measure(x)
	if err != nil {
		return false, err
	}
	least := slices.Index(sizes, slices.Min(sizes))
	if sizes[least] == unlimited {
		return p.openCells(x, most)
	}
	p.members = append(p.room[:0], p.sets[least])
	for i, s := range p.sets {
		// To walk over the rows of another set must cost less than to read the items
		// which it has not.
		pays := sizes[least] > fewRows && sizes[i] <= rowsPerItem*sizes[least]
		if i != least && pays && len(p.members) < maxMembers {
			p.members = append(p.members, s)
		}
	}
	return sizes[least] <= most, nil
}

// openCells is open where all sets have more rows than a range may have. Of cells there
// may be more, since all items would be read in their place.
func (p *setPath) openCells(x *execution, most int64) (bool, error) {
	for _, s := range p.sets {
		if s.kind == index.Cells && most == unlimited {
			p.members = append(p.room[:0], s)
			rows, err := x.size(s, s.most)
			return rows <= s.most, err
		}
	}
	return false, nil
}

// measure counts the rows of all sets, until the smallest is known or all have more than
// it is worth counting, and of the others as far as it matters. A set that has too many
// rows to gather is of unlimited size.
func (p *setPath) measure(x *execution) ([]int64, error) {
	sizes := make([]int64, len(p.sets))
	count := func(limit int64) (err error) {
		for i, s := range p.sets {
			if sizes[i], err = x.size(s, limit); err != nil {
				return err
			}
		}
		return nil
	}
	largest := int64(gatheredRows)
	if slices.ContainsFunc(p.sets, func(s *set) bool { return !s.spread }) {
		largest = fewHits
	}
	limit := int64(fewRows)
	if len(p.sets) == 1 { // there is no smaller one to find
		limit = largest
	}
	for {
		if err := count(limit); err != nil {
			return nil, err
		}
		if slices.Min(sizes) <= limit || limit >= largest {
			break
		}
		limit = min(limit*probeGrowth, largest)
	}
	if least := slices.Min(sizes); least > fewRows && least <= limit {
		if err := count(rowsPerItem * least); err != nil {
			return nil, err
		}
	}
	for i, s := range p.sets {
		if s.spread && s.found == nil {
			sizes[i] = unlimited
		}
	}
	return sizes, nil
}

// size counts the rows of a set up to a limit; beyond, it returns one more. What it reads
// of few rows, or of those that have to be gathered, it keeps.
func (x *execution) size(s *set, limit int64) (int64, error) {
	kept := int64(fewRows)
	if s.spread {
		limit = min(limit, s.most)
		kept = limit
	}
	if s.found != nil {
		return min(s.found.rows, limit+1), nil
	}
	found, err := x.gather(s, 0, limit, kept)
	if err != nil {
		return 0, err
	}
	if found.rows <= min(limit, kept) {
		s.found = found
	} else {
		x.release(found.held)
	}
	return min(found.rows, limit+1), nil
}

// heldStep is for how many ordinals memory is taken at once.
const heldStep = 1024

// hold takes memory for the last ordinals. If a query may not have as much, there are too
// many rows to gather.
func (h *hits) hold(x *execution, limit int64) error {
	err := x.hold(heldStep * ordinalBytes)
	switch {
	case err == nil:
		h.held += heldStep * ordinalBytes
	case errors.Is(err, ErrSortTooLarge):
		h.rows, err = limit+1, nil
	}
	return err
}

// gather reads the rows of a set, after an ordinal, up to a limit; beyond, there are more.
// It keeps so many ordinals.
func (x *execution) gather(s *set, after uint64, limit, kept int64) (*hits, error) {
	found := &hits{}
	found.ordinals = found.few[:0]
	// Called rather than ranged over: the variables of a loop are allocations of their
	// own, and most queries come by here.
	take := func(hit store.Hit, err error) bool {
		if found.err = err; err != nil {
			return false
		}
		if found.rows++; found.rows > limit {
			return false
		}
		if found.rows <= kept && hit.Ordinal > after && x.inScope(hit.EPK) {
			found.ordinals = append(found.ordinals, hit.Ordinal)
			if len(found.ordinals)%heldStep == 0 {
				found.err = found.hold(x, limit)
			}
		}
		return found.err == nil && found.rows <= limit
	}
	if s.single() {
		x.r.Index(s.rowsAfter(s.ranges[0], after))(take)
		return found, found.err
	}
	s.eachScan(after, func(scan store.IndexScan) bool {
		scan.Within = x.counting(&found.rows, limit)
		x.r.Index(scan)(take)
		return found.err == nil && found.rows <= limit
	})
	slices.Sort(found.ordinals)
	found.ordinals = slices.Compact(found.ordinals) // an item may have several of the values
	return found, found.err
}

func (p *setPath) find(x *execution, yield visitor) error {
	if s := p.members[0]; len(p.members) == 1 && s.single() && s.found == nil {
		return x.visitEach(x.only(s, x.from()), yield)
	}
	var parts []cursor
	for _, s := range p.members {
		found, err := x.collect(s, len(p.members) == 1)
		if err != nil {
			return err
		}
		switch {
		case found != nil && len(p.members) == 1:
			x.took(&x.page.Times.Index)
			return x.visitAll(found.ordinals, yield)
		case found != nil:
			parts = append(parts, &listCursor{ordinals: found.ordinals})
		case !s.spread:
			parts = append(parts, x.cursor(s))
		}
	}
	if parts == nil { // by now there are too many rows to gather
		return allItems{}.find(x, yield)
	}
	return x.visitEach(x.walked(&commonCursor{parts}, x.from()), yield)
}

// collect returns the ordinals of a set, if they have been gathered or should be: those of
// a spread set, and of a union, if it is alone and has few.
func (x *execution) collect(s *set, alone bool) (*hits, error) {
	found, after := s.found, x.from()
	if found == nil {
		limit := s.most
		switch {
		case !s.spread && alone:
			limit = int64(gatheredPerValue * s.seeks())
		case !s.spread:
			return nil, nil
		}
		var err error
		if found, err = x.gather(s, after, limit, limit); err != nil {
			return nil, err
		}
		if found.rows > limit {
			x.release(found.held)
			x.page.Work.IndexRows += limit
			return nil, nil
		}
	}
	x.page.Work.IndexRows += found.rows
	return found, nil
}

// sets returns what the conditions that all must hold come to, or nil.
func (pl *planner) sets() *setPath {
	p := &setPath{}
	p.sets = p.room[:0]
	composite := pl.compositeRange()
	if composite != nil {
		p.sets = append(p.sets, pl.gathered(&set{fact: compositeFact, composite: composite}))
	}
	for i, f := range pl.facts {
		if composite == nil || !composite.answers(f) {
			p.sets = pl.appendSets(p.sets, i, f)
		}
	}
	if len(p.sets) == 0 {
		return nil
	}
	return p
}

// answers reports whether a condition is about a path that the part says something of.
func (p *compositePart) answers(f *sql.Condition) bool {
	for _, path := range p.paths[:p.said] {
		if f.Path.Is(path.Path) {
			return true
		}
	}
	return false
}

// gathered makes a set one whose rows have to be gathered.
func (pl *planner) gathered(s *set) *set {
	s.spread, s.most = true, pl.gathers
	switch {
	case s.kind == index.Cells:
		s.most = maxHeldOrdinals
	case pl.endsEarly() && pl.within() > fewHits:
		s.most = min(s.most, fewGathered)
	}
	return s
}

// appendSets appends the sets that one of the conditions which all must hold comes to.
func (pl *planner) appendSets(list []*set, fact int, f *sql.Condition) []*set {
	switch f.Op {
	case sql.CondFullText, sql.CondFullTextAny:
		return pl.appendWordSets(list, fact, f)
	case sql.CondNear:
		if s := pl.near(f); s != nil {
			s.fact = fact
			return append(list, s)
		}
		return list
	}
	if s := pl.setOf(f); s != nil && s.seeks() <= maxSeeks {
		s.fact = fact
		return append(list, s)
	}
	if s := pl.rangeSet(fact); s != nil {
		return append(list, s)
	}
	return list
}

// rangeSet returns the items with a value in the range that a condition is the first to
// say something of, or nil. A value that is demanded at the same path says more.
func (pl *planner) rangeSet(fact int) *set {
	f := pl.facts[fact]
	if !bounds(f) || f.Op == sql.CondEq {
		return nil
	}
	for i, other := range pl.facts {
		if slices.Equal(other.Path, f.Path) && (other.Op == sql.CondEq || i < fact && bounds(other)) {
			return nil
		}
	}
	w := pl.walkRange(fact)
	if w == nil {
		return nil
	}
	s := pl.gathered(&set{fact: fact, path: w.path})
	s.ranges = append(s.one[:0], w.values)
	return s
}

// setOf returns a set that has all items for which a condition holds, or nil.
func (pl *planner) setOf(f *sql.Condition) *set {
	switch f.Op {
	case sql.CondEq, sql.CondArrayContains:
		return pl.leaf(f)
	case sql.CondOr:
		return pl.unionOf(f.Of)
	case sql.CondAnd:
		return pl.fewestOf(f.Of)
	}
	return nil
}

func (pl *planner) leaf(f *sql.Condition) *set {
	if len(f.Values) > maxSeeks {
		return nil
	}
	path, ok := pl.indexedAt(f.Path, f.Op == sql.CondArrayContains)
	if !ok {
		return nil
	}
	found := &set{path: path}
	if found.ranges, ok = exactly(found.one[:0], f.Values); !ok {
		return nil
	}
	return found
}

// unionOf returns the items for which one of several conditions holds. All of them
// must name a set.
func (pl *planner) unionOf(of []*sql.Condition) *set {
	union := &set{}
	seeks := 0
	for _, f := range of {
		part := pl.setOf(f)
		if part == nil {
			return nil
		}
		if seeks += part.seeks(); seeks > maxSeeks {
			return nil
		}
		union.any = append(union.any, part)
	}
	return union
}

// fewestOf returns, of conditions that all must hold, one that names a set: that of
// the id, of which few items have the same, or the one that looks up the fewest
// values. It is a part of a union, which may have very many of them, so that none is
// counted.
func (pl *planner) fewestOf(of []*sql.Condition) *set {
	var best *set
	for _, f := range of {
		part := pl.setOf(f)
		switch {
		case part == nil:
		case isID(f.Path) && f.Op == sql.CondEq:
			return part
		case best == nil || part.seeks() < best.seeks():
			best = part
		}
	}
	return best
}

func isID(p sql.Path) bool { return len(p) == 1 && !p[0].Element && p[0].Name == "id" }
