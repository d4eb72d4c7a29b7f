// SPDX-License-Identifier: MIT

// Package query runs compiled queries over one partition: it chooses how to find
// the items, by rule and a few counts, and makes pages of the rows, each resumable
// from its token. It knows nothing of HTTP, of how rows are laid out, and of what
// expressions mean. It never sees an expired item: the reader below it shows none.
package query

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// method is how items are found.
type method string

const (
	fullScan     method = "scan"    // all items, in the order of their creation
	logicalScan  method = "logical" // all items with one partition key
	pointFind    method = "find"    // one item, by partition key and id
	manyFinds    method = "finds"   // several, each by partition key and id
	indexSeek    method = "seek"    // the items with certain values at a path
	indexRange   method = "range"   // the items with values in a range at a path
	cellSeek     method = "cells"   // the items with a geometry in certain cells
	orderedScan  method = "ordered" // as range, in the order that was asked for
	nothing      method = "nothing" // none: the filter cannot hold
	countIndexed method = "count"   // as range, without reading an item
	countAll     method = "total"   // the partition's counters
	textTotals   method = "texts"   // the counts of words and texts, without reading an item
	textRank     method = "rank"    // all items, ranked by the words of their texts
	textScores   method = "scores"  // all items, of which those are read whose score is among the best
	nearest      method = "nearest" // all items, of which those are read whose vector is among the nearest

	indexUnion        method = "union"        // the items in one of several sets
	indexIntersection method = "intersection" // the items in all of several sets
)

// plan is how a query is answered.
type plan struct {
	method method
	path   index.Path
	ranges []index.ValueRange // the one that is walked
	set    *set               // of seek, union and intersection
	keys   []store.Key        // of finds
	order  kv.Order
	id     string // of the one item
	// composite is the part of a composite index.
	composite *compositePlan
	// sorted says that rows come in the order of ORDER BY, or that there is none.
	sorted bool
	// patience is how many items the partition key has along which a walk leads. When it
	// has taken as long as reading these, it is given up for that; 0 is never.
	patience int64
	// questions are what texts, rank and scores ask of every text.
	questions []sql.TextQuestion
	// said and text are for people: what the filter says of the path, and the rest.
	said []*sql.Condition
	text []string
}

// String tells the plan for people and tests.
func (p *plan) String() string {
	s := string(p.method)
	if p.set != nil {
		s = p.set.String()
	}
	if p.method == manyFinds {
		s += fmt.Sprintf(" %d items", len(p.keys))
	}
	if len(p.path) > 0 {
		s += " " + pathText(p.path)
	}
	switch {
	case p.composite != nil && p.order == kv.Reverse:
		s += " " + p.composite.String() + ", backwards"
	case p.composite != nil:
		s += " " + p.composite.String()
	case p.order == kv.Reverse:
		s += " descending"
	}
	for _, f := range p.said {
		s += " " + condText(f)
	}
	for _, t := range p.text {
		s += " " + t
	}
	if !p.sorted {
		s += ", sort"
	}
	return s
}

func pathText(path index.Path) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteString("/" + s.String())
	}
	return b.String()
}

// Scope is the part of a partition that a query is about.
type Scope struct {
	// Name tells the scope apart from those of other containers and requests: tokens
	// of one are refused in another.
	Name string
	// Logical, if it is set, is the one logical partition, or those with one prefix.
	Logical *store.LogicalPartition
	// MinEPK and MaxEPK bound the effective partition keys: from MinEPK, inclusive,
	// to MaxEPK, exclusive; nil is no bound.
	MinEPK, MaxEPK []byte
}

func (s *Scope) whole() bool { return s.Logical == nil && s.MinEPK == nil && s.MaxEPK == nil }

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

// choose decides how to find the items of a query.
func choose(r *store.Reader, p *sql.Program, s *Scope) (*plan, error) {
	if !p.OverItems() || p.Input() != nil {
		return &plan{method: fullScan, sorted: true}, nil
	}
	cond := p.Condition()
	if cond != nil && cond.Op == sql.CondNever {
		return &plan{method: nothing, sorted: true}, nil
	}
	c := chooser{r: r, p: p, s: s, facts: conjuncts(cond)}
	if s.Logical != nil && !s.Logical.Prefix {
		if found, ok := c.point(); ok {
			return found, nil
		}
	}
	if keys, ok := c.finds(); ok {
		return c.unsorted(&plan{method: manyFinds, keys: keys}), nil
	}
	if s.Logical != nil {
		items, err := r.LogicalItems(*s.Logical)
		if err != nil {
			return nil, err
		}
		if found, err := c.countKey(items); err != nil || found != nil {
			return found, err
		}
		if items <= logicalItems || !r.Indexed() {
			return c.unsorted(&plan{method: logicalScan}), nil
		}
		return c.orLogical(items)
	}
	if !r.Indexed() {
		return c.unsorted(&plan{method: fullScan}), nil
	}
	return c.byIndex()
}

// chooser holds what a choice is made from.
type chooser struct {
	r     *store.Reader
	p     *sql.Program
	s     *Scope
	facts []*sql.Condition
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

// unsorted completes a plan whose rows come in the order of creation.
func (c *chooser) unsorted(p *plan) *plan {
	p.sorted = len(c.p.OrderBy()) == 0
	return p
}

// point finds the one item that a query about a logical partition can mean.
func (c *chooser) point() (*plan, bool) {
	for _, f := range c.facts {
		if f.Op != sql.CondEq || len(f.Path) != 1 || f.Path[0].Name != "id" || len(f.Values) != 1 {
			continue
		}
		if id, ok := f.Values[0].AsString(); ok {
			return c.unsorted(&plan{method: pointFind, id: id}), true
		}
	}
	return nil, false
}

// byIndex chooses among the indexes.
func (c *chooser) byIndex() (*plan, error) {
	if c.counts() {
		if found := c.count(); found != nil {
			return found, nil
		}
		if found := c.compositeCount(); found != nil {
			return found, nil
		}
	}
	byText := c.byText()
	if byText != nil && byText.sorted {
		return byText, nil
	}
	seek, err := c.byValues()
	if err != nil || seek != nil && len(c.p.OrderBy()) == 0 {
		return seek, err
	}
	composed, said := c.compositeOrdered()
	if said > 0 {
		return c.orSeek(composed, seek)
	}
	ordered, err := c.ordered()
	if err != nil {
		return nil, err
	}
	if ordered == nil {
		if ordered = byText; ordered == nil {
			ordered = composed
		}
	}
	if ordered == nil {
		ordered = c.byVector()
	}
	if seek != nil {
		few, err := c.few(seek)
		if err != nil || few || ordered == nil {
			return seek, err
		}
	}
	found := c.inRange()
	if ordered != nil {
		if found == nil || slices.Equal(found.path, ordered.path) {
			return ordered, nil
		}
		few, err := c.few(found)
		if err != nil || few {
			return found, err
		}
		return ordered, nil
	}
	if found != nil {
		return found, nil
	}
	if c.s.Logical != nil {
		return c.unsorted(&plan{method: logicalScan}), nil
	}
	return c.unsorted(&plan{method: fullScan}), nil
}

// orLogical chooses between an index, which has the items of all partition keys, and
// reading all of one, which has so many items.
func (c *chooser) orLogical(items int64) (*plan, error) {
	found, err := c.byIndex()
	if err != nil {
		return nil, err
	}
	better := true
	switch found.method {
	case indexSeek, indexUnion, indexIntersection, indexRange, cellSeek:
		if found.method == indexRange && c.endsEarly() && c.worthWalking(found, items) {
			break
		}
		if better = c.reach(items) <= fewHits; !better {
			better, err = c.atMost(found, min(items, max(fewHits, items/probeShare)))
		}
	case countIndexed:
		better, err = c.atMost(found, rowsPerItem*items)
	case compositeRange, compositeOrdered, compositeCount:
		better, err = c.compositeBetter(found, items)
	case orderedScan:
		better = c.worthWalking(found, items)
	case textTotals, textRank, textScores, nearest:
		better = rowsPerItem*items >= c.r.Items()
	}
	if err != nil || better {
		return found, err
	}
	return c.unsorted(&plan{method: logicalScan}), nil
}

// worthWalking reports whether to walk along an index, which has the items of all
// partition keys, until a page is full, or to read all of one, which has so many
// items. It goes by how many of all items these are. They may yet lie far from where
// the walk begins, if the partition key and the value have to do with each other: when
// it has taken as long as reading all of them, it is given up for that.
func (c *chooser) worthWalking(p *plan, items int64) bool {
	rows := c.wanted()
	if rows+rows*c.r.Items()/items/passedPerItem > items {
		return false
	}
	p.patience = items
	return true
}

// wanted is about how many rows a page has to look at.
func (c *chooser) wanted() int64 {
	s := c.p.Slice()
	return s.Offset + min(s.Limit, pageRows)
}

// endsEarly reports whether a few rows, in whatever order, are all that is wanted.
func (c *chooser) endsEarly() bool {
	s := c.p.Slice()
	return s.Limit < fewHits && s.Offset < fewHits && len(c.p.OrderBy()) == 0 && !c.p.Grouped() && c.p.Ranking() == nil
}

// reach returns about how many items of an index must be looked at for all rows
// that the query wants, if its partition key has so many.
func (c *chooser) reach(items int64) int64 {
	if !c.endsEarly() {
		return math.MaxInt64
	}
	s := c.p.Slice()
	return (s.Offset + s.Limit) * c.r.Items() / items
}

// few reports whether a plan finds so few items that sorting them is best.
func (c *chooser) few(p *plan) (bool, error) { return c.atMost(p, fewHits) }

// atMost reports whether a plan reads no more than so many index rows.
func (c *chooser) atMost(p *plan, rows int64) (bool, error) {
	n, err := c.rows(p, rows)
	return n <= rows, err
}

// rows returns how many index rows a plan reads; one more than most, if there are more.
func (c *chooser) rows(p *plan, most int64) (int64, error) {
	switch {
	case p.composite != nil:
		return c.compositeRows(p, most)
	case p.set != nil:
		return c.size(p.set, most)
	case p.method == cellSeek:
		return c.size(&set{kind: index.Cells, path: p.path, ranges: p.ranges}, most)
	}
	return c.sizeOfValues(&set{path: p.path, ranges: p.ranges}, most)
}

func texts(values []datum.Value) string {
	var b strings.Builder
	b.WriteString("=")
	for i, v := range values {
		if i == 3 {
			fmt.Fprintf(&b, " … %d values", len(values))
			break
		}
		b.WriteString(" " + value.Clip(string(v.AppendJSON(nil))))
	}
	return b.String()
}

// exactly appends a range for each value. An index holds no arrays and objects.
func exactly(ranges []index.ValueRange, values []datum.Value) (_ []index.ValueRange, ok bool) {
	var seen map[string]bool // of several
	if len(values) > 1 {
		seen = make(map[string]bool, len(values))
	}
	for _, v := range values {
		scalar, ok := scalarOf(v)
		if !ok {
			return nil, false
		}
		found := index.Exactly(scalar)
		if seen != nil {
			place := string(found.PlaceOf(0).Value.Bytes())
			if seen[place] {
				continue
			}
			seen[place] = true
		}
		ranges = append(ranges, found)
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

// indexed returns a path as the index has it, if its scalars are indexed. With
// elements, it is that of the elements of an array there.
func (c *chooser) indexed(path sql.Path, elements bool) (index.Path, bool) {
	return indexPath(c.r.Container(), path, elements)
}

func indexPath(c *catalog.Container, path sql.Path, elements bool) (index.Path, bool) {
	node := c.Index.Root()
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
		if i == 0 && (catalog.SystemProperty(s.Name) || isComputed(c, s.Name)) {
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

// rangeOf returns the range of the values at a path, the conditions that say so, and
// whether they are all that the filter says. The path has no step to elements: of
// several elements, each condition may mean another.
func (c *chooser) rangeOf(path sql.Path) (v index.ValueRange, said []*sql.Condition, all bool) {
	v, all = index.AllValues(), true
	for _, f := range c.facts {
		part, ok := rangeOfFact(f)
		if !ok || !slices.Equal(f.Path, path) || hasElements(f.Path) {
			all = false
			continue
		}
		v, said = v.And(part), append(said, f)
		all = all && f.Exact
	}
	return v, said, all
}

// hasElements reports whether a path leads through an array, to one of many values.
func hasElements(path sql.Path) bool {
	return slices.ContainsFunc(path, func(s syntax.Step) bool { return s.Element })
}

func rangeOfFact(f *sql.Condition) (index.ValueRange, bool) {
	switch f.Op {
	case sql.CondKind:
		return rangeOfKind(f.Kind)
	case sql.CondEq, sql.CondLt, sql.CondLe, sql.CondGt, sql.CondGe, sql.CondPrefix:
	default:
		return index.ValueRange{}, false
	}
	if len(f.Values) != 1 {
		return index.ValueRange{}, false
	}
	v, ok := scalarOf(f.Values[0])
	if !ok {
		return index.ValueRange{}, false
	}
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

func condText(f *sql.Condition) string {
	op := map[sql.CondOp]string{
		sql.CondEq: "=", sql.CondLt: "<", sql.CondLe: "<=", sql.CondGt: ">", sql.CondGe: ">=", sql.CondPrefix: "begins",
	}[f.Op]
	if f.Op == sql.CondKind {
		return "is " + f.Kind.String()
	}
	return op + " " + value.Clip(string(f.Values[0].AppendJSON(nil)))
}

// inRange finds a range to walk.
func (c *chooser) inRange() *plan {
	for _, f := range c.facts {
		if _, ok := rangeOfFact(f); !ok || hasElements(f.Path) {
			continue
		}
		path, ok := c.indexed(f.Path, false)
		if !ok {
			continue
		}
		v, said, _ := c.rangeOf(f.Path)
		return c.unsorted(&plan{method: indexRange, path: path, ranges: []index.ValueRange{v}, said: said})
	}
	return nil
}

// ordered finds an index whose order is the one that was asked for, and that has
// all items which may be in the result.
func (c *chooser) ordered() (*plan, error) {
	keys := c.p.OrderBy()
	if len(keys) != 1 || keys[0].Call != nil || hasElements(keys[0].Path) || !c.p.Plain() {
		return nil, nil
	}
	path, ok := c.indexed(keys[0].Path, false)
	if !ok {
		return nil, nil
	}
	v, said, _ := c.rangeOf(keys[0].Path)
	if said == nil {
		all, err := c.r.AllHave(path)
		if err != nil || !all {
			return nil, err
		}
	}
	p := &plan{method: orderedScan, path: path, ranges: []index.ValueRange{v}, said: said, sorted: true}
	if keys[0].Desc {
		p.order = kv.Reverse
	}
	return p, nil
}

// counts reports whether the query asks for nothing but how many items there are.
func (c *chooser) counts() bool {
	q := c.p.Query()
	if !c.p.Plain() || !c.p.Grouped() || c.p.HasGroupKeys() {
		return false
	}
	for e := range q.Selected {
		if !countsRows(e) {
			return false
		}
	}
	return !q.Select.Star
}

// countsRows reports whether an expression is a number of rows, in an array or an
// object if need be, as rewritten queries have it.
func countsRows(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Call:
		if e.UDF || e.Name != "COUNT" || len(e.Args) != 1 {
			return false
		}
		constant, ok := e.Args[0].(*syntax.Literal)
		return ok && constant.Kind != syntax.LitUndefined
	case *syntax.ArrayLit:
		return len(e.Items) == 1 && countsRows(e.Items[0])
	case *syntax.ObjectLit:
		return len(e.Props) == 1 && countsRows(e.Props[0].Value)
	}
	return false
}

// count finds a way to count without reading items.
func (c *chooser) count() *plan {
	if !c.s.whole() && c.s.Logical == nil {
		return nil
	}
	if len(c.facts) == 0 {
		switch {
		case !c.p.Condition().Exact:
			return nil
		case c.s.Logical != nil:
			return c.countLogical()
		}
		return &plan{method: countAll, sorted: true}
	}
	if !c.p.Condition().Exact || hasElements(c.facts[0].Path) {
		return nil
	}
	path, ok := c.indexed(c.facts[0].Path, false)
	if !ok {
		return nil
	}
	v, said, all := c.rangeOf(c.facts[0].Path)
	if said == nil || !all || !v.Exact() {
		return nil
	}
	return &plan{method: countIndexed, path: path, ranges: []index.ValueRange{v}, said: said, sorted: true}
}

// countKey finds a way to count the so many items of a partition key, if that is all
// that is asked for.
func (c *chooser) countKey(items int64) (*plan, error) {
	if !c.r.Indexed() || !c.counts() || len(c.facts) > 0 || !c.p.Condition().Exact {
		return nil, nil
	}
	found := c.countLogical()
	if found == nil || len(c.s.Logical.PartitionKey) == 1 {
		return found, nil
	}
	// Other keys may have the same last part.
	few, err := c.atMost(found, rowsPerItem*items)
	if err != nil || !few {
		return nil, err
	}
	return found, nil
}

// countLogical finds the items of a partition key by the index of one of the
// properties that it is made of.
func (c *chooser) countLogical() *plan {
	key := c.s.Logical.PartitionKey
	last := len(key) - 1
	if last < 0 || !key[last].Defined() {
		return nil
	}
	var property sql.Path
	for _, name := range c.r.Container().PartitionKey.Paths[last] {
		property = append(property, syntax.Step{Name: name})
	}
	path, ok := c.indexed(property, false)
	v := index.Exactly(key[last])
	if !ok || !v.Exact() {
		return nil
	}
	text := "= " + value.Clip(string(key[last].AppendJSON(nil)))
	return &plan{method: countIndexed, path: path, ranges: []index.ValueRange{v}, text: []string{text}, sorted: true}
}
