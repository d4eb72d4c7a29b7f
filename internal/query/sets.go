// SPDX-License-Identifier: MIT

// Sets of items that an index names by their ordinals: those with certain values at a
// path, those that several such sets have in common, and those that are in one of
// several. They are what equalities, AND and OR come to.

package query

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
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
)

// set is one of: the items with one of the values in ranges at a path; those in any
// of several sets; those in all of them.
type set struct {
	kind     index.Kind
	path     index.Path
	ranges   []index.ValueRange
	values   []datum.Value // for people, or text
	text     string
	any, all []*set
	found    *hits
	one      [1]index.ValueRange // room for ranges
}

// hits is all that an index has of a set for one value, if that is not much: what
// was counted to choose a plan need not be read again.
type hits struct {
	rows     int64
	ordinals []uint64 // of those in scope, in order
	few      [4]uint64
	err      error // of the index
}

// seeks returns how many values are looked up.
func (s *set) seeks() int {
	n := len(s.ranges)
	for _, part := range s.any {
		n += part.seeks()
	}
	return n
}

// rowsAfter asks for the rows of one of the values, after an ordinal.
func (s *set) rowsAfter(v index.ValueRange, ordinal uint64) store.IndexScan {
	scan := store.IndexScan{Kind: s.kind, Path: s.path, Values: v}
	if ordinal > 0 {
		scan.After = v.PlaceOf(ordinal)
	}
	return scan
}

// leaves appends the sets for values that a union is made of. It reports false if there
// is an intersection among them.
func (s *set) leaves(dst []*set) ([]*set, bool) {
	if s.all != nil {
		return nil, false
	}
	if len(s.ranges) > 0 {
		dst = append(dst, s)
	}
	for _, part := range s.any {
		var ok bool
		if dst, ok = part.leaves(dst); !ok {
			return nil, false
		}
	}
	return dst, true
}

// String tells the set for people and tests.
func (s *set) String() string {
	join := func(kind string, parts []*set) string {
		texts := make([]string, 0, len(parts))
		for i, part := range parts {
			if i == 3 && len(parts) > 4 {
				texts = append(texts, "…")
				break
			}
			texts = append(texts, part.String())
		}
		return kind + " of " + strings.Join(texts, ", ")
	}
	switch {
	case s.any != nil:
		return join(string(indexUnion), s.any)
	case s.all != nil:
		return join(string(indexIntersection), s.all)
	}
	text := s.text
	if s.values != nil {
		text = texts(s.values)
	}
	return string(indexSeek) + " " + pathText(s.path) + " " + text
}

// setPlan returns how to find the items of a set.
func (c *chooser) setPlan(s *set) *plan {
	p := &plan{method: indexSeek, set: s}
	switch {
	case s.any != nil:
		p.method = indexUnion
	case s.all != nil:
		p.method = indexIntersection
	}
	return c.unsorted(p)
}

// sets appends what the conditions that all must hold name.
func (c *chooser) sets(found []*set) []*set {
	for _, f := range c.facts {
		if s := c.setOf(f); s != nil && s.seeks() <= maxSeeks {
			found = append(found, s)
		}
	}
	return found
}

// setOf returns a set that has all items for which a condition holds, or nil.
func (c *chooser) setOf(f *sql.Condition) *set {
	switch f.Op {
	case sql.CondEq, sql.CondArrayContains:
		return c.leaf(f)
	case sql.CondOr:
		return c.unionOf(f.Of)
	case sql.CondAnd:
		return c.fewestOf(f.Of)
	}
	return nil
}

func (c *chooser) leaf(f *sql.Condition) *set {
	if len(f.Values) > maxSeeks {
		return nil
	}
	path, ok := c.indexed(f.Path, f.Op == sql.CondArrayContains)
	if !ok {
		return nil
	}
	found := &set{path: path, values: f.Values}
	if found.ranges, ok = exactly(found.one[:0], f.Values); !ok {
		return nil
	}
	return found
}

// unionOf returns the items for which one of several conditions holds. All of them
// must name a set.
func (c *chooser) unionOf(of []*sql.Condition) *set {
	union := &set{}
	seeks := 0
	for _, f := range of {
		part := c.setOf(f)
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
func (c *chooser) fewestOf(of []*sql.Condition) *set {
	var best *set
	for _, f := range of {
		part := c.setOf(f)
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

// byValues finds items by the values that the filter demands, or returns nil if it
// demands none.
func (c *chooser) byValues() (*plan, error) {
	if found := c.compositeRange(); found != nil {
		return c.orSpecial(found)
	}
	found, err := c.bySets()
	if err != nil {
		return nil, err
	}
	return c.orSpecial(found)
}

// bySets finds items by what equalities name, or returns nil if there are none.
func (c *chooser) bySets() (*plan, error) {
	var few [maxMembers]*set
	found := c.sets(few[:0])
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return c.setPlan(found[0]), nil
	}
	sizes, err := c.sizes(found)
	if err != nil {
		return nil, err
	}
	least := slices.Index(sizes, slices.Min(sizes))
	members := []*set{found[least]}
	for i, s := range found {
		// To walk over the rows of another set must cost less than to read the items
		// which it has not.
		pays := sizes[least] > fewRows && sizes[i] <= rowsPerItem*sizes[least]
		if i != least && pays && len(members) < maxMembers {
			members = append(members, s)
		}
	}
	if len(members) == 1 {
		return c.setPlan(members[0]), nil
	}
	return c.setPlan(&set{all: members}), nil
}

// sizes counts the rows of sets, until the smallest is known or all have more than
// fewHits, and of the others as far as it matters.
func (c *chooser) sizes(sets []*set) ([]int64, error) {
	sizes := make([]int64, len(sets))
	limit := int64(fewRows)
	for limit < fewHits {
		for i, s := range sets {
			var err error
			if sizes[i], err = c.size(s, limit); err != nil {
				return nil, err
			}
		}
		if slices.Min(sizes) <= limit {
			break
		}
		limit *= probeGrowth
	}
	least := slices.Min(sizes)
	if least <= fewRows || least > limit {
		return sizes, nil
	}
	for i, s := range sets {
		if sizes[i] > limit {
			var err error
			if sizes[i], err = c.size(s, rowsPerItem*least); err != nil {
				return nil, err
			}
		}
	}
	return sizes, nil
}

// size counts the rows of a set up to a limit; beyond, it returns one more.
func (c *chooser) size(s *set, limit int64) (int64, error) {
	if len(s.ranges) == 1 {
		return c.probe(s, limit)
	}
	n, err := c.sizeOfValues(s, limit)
	if err != nil || n > limit {
		return n, err
	}
	for _, part := range s.any {
		more, err := c.size(part, limit-n)
		if n += more; err != nil || n > limit {
			return n, err
		}
	}
	if len(s.all) > 0 {
		return c.size(s.all[0], limit) // the smallest; the others have no more in common
	}
	return n, nil
}

// sizeOfValues counts the rows of a set for its values up to a limit; beyond, it returns
// one more.
func (c *chooser) sizeOfValues(s *set, limit int64) (n int64, err error) {
	for _, v := range s.ranges {
		scan := s.rowsAfter(v, 0)
		scan.Within = c.counting(&n, limit)
		for _, err := range c.r.Index(scan) {
			if err != nil {
				return 0, err
			}
			if n++; n > limit {
				break
			}
		}
		if n > limit {
			return limit + 1, nil
		}
	}
	return n, nil
}

// counting counts the rows of other partition keys that a scan passes over, up to a
// limit, if the query is about one key.
func (c *chooser) counting(n *int64, limit int64) *store.Within {
	if c.s.Logical == nil {
		return nil
	}
	return &store.Within{Logical: c.s.Logical, Passed: func(rows int64, _ index.Place) (bool, error) {
		*n += rows
		return *n <= limit, nil
	}}
}

// probe counts the rows of a set for one value, up to a limit, and keeps few of them.
func (c *chooser) probe(s *set, limit int64) (int64, error) {
	if s.found != nil {
		return min(s.found.rows, limit+1), nil
	}
	found, scope := &hits{}, c.s
	found.ordinals = found.few[:0]
	// Called rather than ranged over: the variables of a loop are allocations of their
	// own, and most queries come by here.
	c.r.Index(s.rowsAfter(s.ranges[0], 0))(func(hit store.Hit, err error) bool {
		if found.err = err; err != nil {
			return false
		}
		if found.rows++; found.rows > limit {
			return false
		}
		if found.rows <= fewRows && scope.holds(hit.EPK) {
			found.ordinals = append(found.ordinals, hit.Ordinal)
		}
		return true
	})
	if found.err != nil {
		return 0, found.err
	}
	if found.rows <= min(limit, fewRows) {
		s.found = found
	}
	return found.rows, nil
}
