// SPDX-License-Identifier: MIT

// Choosing an access path: by rule, from the query and from what the partition publishes
// about itself. Nothing is read here. Where a rule depends on how many rows an index has,
// the path says so itself when it is opened, and the next option follows.

package query

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxSeeks is how many values of a list are looked up one by one.
	maxSeeks = 1000
	// logicalItems is up to which size a logical partition is read whole, rather
	// than through an index of all of them.
	logicalItems = 200
	// fewHits is up to how many items it is better to find them and sort than to
	// walk an index in order and filter.
	fewHits = 1000
	// rowsPerItem is how many index rows are read in the time of one item.
	rowsPerItem = 4
	// probeShare is how many times fewer rows of an index there must be than items of a
	// large partition key, for the index to be better for sure. It bounds what it takes
	// to find that out.
	probeShare = 8
	// passedPerItem is how many index rows of other partition keys are passed over in
	// the time of one item.
	passedPerItem = 16
	// pageRows is about how many rows a page has, if the query does not say.
	pageRows = 100
)

// planner has all that a choice is made from.
type planner struct {
	program   *sql.Program
	scope     *Scope
	container *catalog.Container
	facts     []*sql.Condition // that all must hold
	indexed   bool             // queries may go by the index
	items     int64            // of the partition
	ofKey     int64            // of the scope's logical partition, if it is one
	gathers   int64            // rows of a range

	list []option
	room [4]option
}

// option is a path, to be taken if it costs no more than so many index rows.
type option struct {
	path path
	most int64
}

// read takes in what the request and the reader say.
func (pl *planner) read(x *execution) {
	pl.program, pl.scope, pl.container = x.q.Program, &x.q.Scope, x.r.Container()
	pl.facts = conjuncts(pl.program.Condition())
	pl.indexed, pl.items = x.r.Indexed(), x.r.Items()
	pl.gathers = cmp.Or(x.q.gathered, gatheredRows)
}

// conjuncts returns the conditions that all must hold.
func conjuncts(c *sql.Condition) []*sql.Condition {
	switch {
	case c == nil || c.Op == sql.CondAlways:
		return nil
	case c.Op == sql.CondAnd:
		return c.Of
	}
	return []*sql.Condition{c}
}

// choose opens the first option that is worth it.
func (x *execution) choose() (path, error) {
	pl := &x.pl
	if p := pl.named(); p != nil {
		return p, nil
	}
	if l := x.q.Scope.Logical; l != nil {
		var err error
		if pl.ofKey, err = x.r.LogicalItems(*l); err != nil {
			return nil, err
		}
	}
	p, err := x.first(pl.countOptions())
	if err == nil && p == nil {
		p, err = x.first(pl.options())
	}
	if err == nil && p == nil {
		p = allItems{}
	}
	return p, err
}

// first opens the first of several options that is worth it, or returns nil.
func (x *execution) first(options []option) (path, error) {
	for _, o := range options {
		ok, err := o.path.open(x, o.most)
		if err != nil || ok {
			return o.path, err
		}
	}
	return nil, nil
}

// named returns the path of a query that needs no index, or nil: one whose items the
// filter names, that has none, or that is about no items.
func (pl *planner) named() path {
	cond := pl.program.Condition()
	switch {
	case !pl.program.OverItems():
		return noSource{}
	case pl.program.Input() != nil:
		return allItems{} // of the inner query
	case cond != nil && cond.Op == sql.CondNever:
		return noItems{}
	}
	return orNone(pl.byKeys())
}

// orNone returns a path as an interface: nil if it is nil.
func orNone[T any, P interface {
	*T
	path
}](p P) path {
	if p == nil {
		return nil
	}
	return p
}

// add adds an option, if there is one, unless it is better to read all items of the
// scope's partition key.
func (pl *planner) add(p path, most int64) {
	if p == nil {
		return
	}
	if most = min(most, pl.worth(p)); most >= 0 {
		pl.list = append(pl.list, option{p, most})
	}
}

// within returns how many items there are in the scope's partition key, or else in the
// partition.
func (pl *planner) within() int64 {
	if pl.scope.Logical != nil {
		return pl.ofKey
	}
	return pl.items
}

// small reports whether the scope is a partition key that is read whole.
func (pl *planner) small() bool { return pl.scope.Logical != nil && pl.ofKey <= logicalItems }

// options returns the paths in the order in which to try them. After them there are all
// items.
func (pl *planner) options() []option {
	pl.list = pl.room[:0]
	if !pl.indexed || pl.small() {
		return nil
	}
	if p := pl.byText(); p != nil && !p.scores {
		pl.add(p, unlimited)
		return pl.list
	}
	sets := pl.sets()
	if len(pl.program.OrderBy()) > 0 {
		pl.addOrdered(sets)
	}
	if sets != nil {
		pl.addFiltered(sets)
	}
	return pl.list
}

// addOrdered adds the ways to find rows in the order that was asked for. Few items that
// the filter finds are better sorted.
func (pl *planner) addOrdered(sets *setPath) {
	composed, ordered := pl.compositeOrdered(), pl.ordered()
	if ordered != nil {
		sets = sets.without(ordered.path)
	}
	said := composed != nil && composed.composite.said > 0
	if said {
		pl.add(composed, fewHits)
	}
	pl.add(orNone(sets), fewHits)
	if said {
		pl.add(composed, unlimited)
	}
	pl.add(orNone(ordered), unlimited)
	pl.add(orNone(pl.byText()), unlimited)
	if !said {
		pl.add(orNone(composed), unlimited)
	}
	pl.add(orNone(pl.byVector()), unlimited)
}

// addFiltered adds the ways to find the items that the filter is about, in the order of
// creation if that can be seen.
func (pl *planner) addFiltered(sets *setPath) {
	walk := pl.walkOf(sets)
	if walk == nil || pl.streams() || len(sets.sets) > 1 {
		pl.add(sets, unlimited)
	}
	if walk != nil && (pl.scope.Logical == nil || !pl.streams() || pl.endsEarly() || walk.composite != nil && pl.startsWithScope(walk.composite)) {
		pl.add(walk, unlimited)
	}
}

// streams reports whether rows are shown as items are found, and in that order.
func (pl *planner) streams() bool {
	return len(pl.program.OrderBy()) == 0 && !pl.program.Grouped() && pl.program.Ranking() == nil
}

// worth returns how many index rows a path may read so that it is better than reading all
// items of the scope's partition key. An index has the items of all keys.
func (pl *planner) worth(p path) int64 {
	if pl.scope.Logical == nil {
		return unlimited
	}
	fraction := min(pl.ofKey, max(fewHits, pl.ofKey/probeShare))
	switch p := p.(type) {
	case *setPath:
		alone := len(p.sets) == 1
		switch {
		case alone && p.sets[0].composite != nil && pl.startsWithScope(p.sets[0].composite):
			return unlimited
		case alone && p.sets[0].spread:
		case pl.reach() <= fewHits:
			return unlimited
		}
		return fraction
	case *countPath:
		switch {
		case p.all || p.composite != nil && pl.startsWithScope(p.composite) || p.ofKey && len(pl.scope.Logical.PartitionKey) == 1:
			return unlimited
		}
		return rowsPerItem * pl.ofKey
	case *textPath, *nearestPath:
		if rowsPerItem*pl.ofKey < pl.items {
			return -1
		}
	case *walkPath:
		return pl.worthWalking(p, fraction)
	}
	return unlimited
}

// worthWalking is worth of a walk. In order, or for few rows, it leads until a page is
// full, and goes by how many of all items are of the key. They may yet lie far from where the walk begins,
// if the partition key and the value have to do with each other: when it has taken as
// long as reading all of them, it is given up for that.
func (pl *planner) worthWalking(w *walkPath, fraction int64) int64 {
	switch {
	case w.composite != nil && pl.startsWithScope(w.composite):
		return unlimited
	case w.composite != nil && w.composite.said > 0:
		return pl.ofKey
	case !w.keyed && !pl.endsEarly():
		return fraction
	}
	s := pl.program.Slice()
	rows := s.Offset + min(s.Limit, pageRows) // that a page has to look at
	if rows+rows*pl.items/pl.ofKey/passedPerItem > pl.ofKey {
		return -1
	}
	w.patience = pl.ofKey
	return unlimited
}

// endsEarly reports whether a few rows, in whatever order, are all that is wanted.
func (pl *planner) endsEarly() bool {
	s := pl.program.Slice()
	return s.Limit < fewHits && s.Offset < fewHits && pl.streams()
}

// reach returns about how many items of an index must be looked at for all rows that the
// query wants, of those that are of the scope's partition key.
func (pl *planner) reach() int64 {
	if !pl.endsEarly() {
		return math.MaxInt64
	}
	s := pl.program.Slice()
	return (s.Offset + s.Limit) * pl.items / pl.ofKey
}

// resume returns the path that a token names, or nil if the container's policy does not
// allow it any more.
func (pl *planner) resume(name string) (path, error) {
	kind, which, _ := strings.Cut(name, ":")
	switch kind {
	case "all":
		return allItems{}, nil
	case "none":
		return noItems{}, nil
	case "keys":
		return orNone(pl.byKeys()), nil
	case "set", "range", "composite", "ordered", "text", "nearest":
	default:
		return nil, ErrToken
	}
	switch p := pl.sets(); {
	case !pl.indexed:
		return nil, nil
	case kind == "set" && p != nil && p.pick(which):
		return p, nil
	case kind == "set":
		return nil, nil
	case kind == "text":
		return orNone(pl.byText()), nil
	case kind == "nearest":
		return orNone(pl.byVector()), nil
	}
	return orNone(pl.walkNamed(name)), nil
}

// walkNamed returns the walk with a name, or nil.
func (pl *planner) walkNamed(name string) *walkPath {
	walks := []*walkPath{pl.ordered(), pl.compositeOrdered()}
	for i := range pl.facts {
		walks = append(walks, pl.walkRange(i))
	}
	for number := range pl.container.IndexedComposites {
		walks = append(walks, &walkPath{indexPart: indexPart{composite: pl.part(number)}, demanded: true})
	}
	for _, w := range walks {
		if w != nil && w.name() == name {
			return w
		}
	}
	return nil
}

// exactly appends a range for each value. An index holds no arrays and objects.
func exactly(ranges []index.ValueRange, values []datum.Value) (_ []index.ValueRange, ok bool) {
	for _, v := range values {
		scalar, ok := scalarOf(v)
		if !ok {
			return nil, false
		}
		ranges = append(ranges, index.Exactly(scalar))
	}
	return ranges, true
}

// scalarOf returns a value as an index holds it.
func scalarOf(v datum.Value) (value.Scalar, bool) {
	switch v.Kind() {
	case datum.KindNull:
		return value.Null(), true
	case datum.KindBool:
		b, _ := v.AsBool()
		return value.Bool(b), true
	case datum.KindNumber:
		f, _ := v.AsFloat()
		if !v.Finite() {
			return value.Scalar{}, false
		}
		return value.Number(f), true
	case datum.KindString:
		s, _ := v.AsString()
		return value.String(s), true
	}
	return value.Scalar{}, false
}

// indexedAt returns a path as the index has it, if its scalars are indexed. With
// elements, it is that of the elements of an array there.
func (pl *planner) indexedAt(path sql.Path, elements bool) (index.Path, bool) {
	node := pl.container.Index.Root()
	var found index.Path
	for i, s := range path {
		if node == nil {
			return nil, false
		}
		if s.Element {
			found = append(found, index.Elements())
			node = node.Elements()
			continue
		}
		if i == 0 && (catalog.SystemProperty(s.Name) || isComputed(pl.container, s.Name)) {
			return nil, false
		}
		found = append(found, index.Property(s.Name))
		node = node.Property([]byte(s.Name))
	}
	if elements && node != nil {
		found = append(found, index.Elements())
		node = node.Elements()
	}
	return found, node != nil && node.Scalar() && len(found) > 0
}

// isComputed reports whether a property of the root is computed: no item has it.
func isComputed(c *catalog.Container, name string) bool {
	return slices.ContainsFunc(c.Computed, func(p catalog.ComputedProperty) bool { return p.Name == name })
}

// rangeOf returns the range of the values at a path, whether the filter says something of
// it, and whether that is all that the filter says. The path has no step to elements: of
// several elements, each condition may mean another.
func (pl *planner) rangeOf(path sql.Path) (v index.ValueRange, said, all bool) {
	v, all = index.AllValues(), true
	for _, f := range pl.facts {
		if !slices.Equal(f.Path, path) || hasElements(f.Path) || !bounds(f) {
			all = false
			continue
		}
		part, _ := rangeOfFact(f)
		v, said = v.And(part), true
		all = all && f.Exact
	}
	return v, said, all
}

// hasElements reports whether a path leads through an array, to one of many values.
func hasElements(path sql.Path) bool {
	return slices.ContainsFunc(path, func(s syntax.Step) bool { return s.Element })
}

// bounds reports whether a condition bounds the values at its path. It encodes none.
func bounds(f *sql.Condition) (ok bool) {
	switch f.Op {
	case sql.CondKind:
		_, ok = rangeOfKind(f.Kind)
	case sql.CondEq, sql.CondLt, sql.CondLe, sql.CondGt, sql.CondGe, sql.CondPrefix:
		if len(f.Values) == 1 {
			_, ok = scalarOf(f.Values[0])
		}
	}
	return ok
}

// rangeOfFact returns the range that a condition bounds.
func rangeOfFact(f *sql.Condition) (index.ValueRange, bool) {
	switch {
	case !bounds(f):
		return index.ValueRange{}, false
	case f.Op == sql.CondKind:
		return rangeOfKind(f.Kind)
	}
	v, _ := scalarOf(f.Values[0])
	switch f.Op {
	case sql.CondEq:
		return index.Exactly(v), true
	case sql.CondLt:
		return index.Below(v), true
	case sql.CondLe:
		return index.AtMost(v), true
	case sql.CondGt:
		return index.Above(v), true
	case sql.CondGe:
		return index.AtLeast(v), true
	default:
		s, _ := v.Text()
		return index.BeginningWith(s), true
	}
}

func rangeOfKind(k datum.Kind) (index.ValueRange, bool) {
	switch k {
	case datum.KindNull:
		return index.Exactly(value.Null()), true
	case datum.KindBool:
		return index.AtLeast(value.Bool(false)), true
	case datum.KindNumber:
		return index.Numbers(), true
	case datum.KindString:
		return index.Strings(), true
	}
	return index.ValueRange{}, false
}

// walkRange returns the walk along the range that a condition is a part of, or nil.
func (pl *planner) walkRange(fact int) *walkPath {
	f := pl.facts[fact]
	if !bounds(f) || hasElements(f.Path) {
		return nil
	}
	path, ok := pl.indexedAt(f.Path, false)
	if !ok {
		return nil
	}
	v, _, _ := pl.rangeOf(f.Path)
	return &walkPath{indexPart: indexPart{path: path, values: v}, demanded: true, fact: fact}
}

// walkOf returns a walk that finds the items of one of several sets, or nil.
func (pl *planner) walkOf(p *setPath) *walkPath {
	for _, s := range p.sets {
		switch {
		case s.composite != nil:
			return &walkPath{indexPart: indexPart{composite: s.composite}, demanded: true}
		case s.kind == index.Scalars && s.spread:
			return &walkPath{indexPart: indexPart{path: s.path, values: s.ranges[0]}, demanded: true, fact: s.fact}
		}
	}
	return nil
}

// ordered finds an index whose order is the one that was asked for, and that has
// all items which may be in the result.
func (pl *planner) ordered() *walkPath {
	keys := pl.program.OrderBy()
	if len(keys) != 1 || keys[0].Call != nil || hasElements(keys[0].Path) || !pl.program.Plain() {
		return nil
	}
	path, ok := pl.indexedAt(keys[0].Path, false)
	if !ok {
		return nil
	}
	v, said, _ := pl.rangeOf(keys[0].Path)
	w := &walkPath{indexPart: indexPart{path: path, values: v}, keyed: true, demanded: said}
	if keys[0].Desc {
		w.direction = kv.Reverse
	}
	return w
}
