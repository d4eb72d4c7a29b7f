// SPDX-License-Identifier: MIT

// Counts of items that are known without reading one.

package query

import (
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// countPath counts the rows of a part of an index, each of which is an item.
type countPath struct {
	indexPart
	all   bool // items, by the partition's counters
	ofKey bool // all that the scope's partition key has
}

func (p *countPath) name() string                   { return "count" } // of one row: no page follows
func (p *countPath) order() order                   { return byOrdinal }
func (p *countPath) find(*execution, visitor) error { return nil }

func (p *countPath) open(x *execution, most int64) (bool, error) { return p.fits(x, most) }

// answer gives a group the number of items.
func (p *countPath) answer(x *execution, g *sql.Group) (err error) {
	var n int64
	if p.all {
		n, err = x.r.Live()
	} else {
		n, err = p.count(x)
	}
	if err != nil {
		return err
	}
	x.took(&x.page.Times.Index)
	x.runner.CountRows(g, n)
	return nil
}

func (p *countPath) count(x *execution) (n int64, err error) {
	s := p.scan()
	s.Within = x.within()
	for hit, err := range x.r.Index(s) {
		if err != nil {
			return 0, err
		}
		x.page.Work.IndexRows++
		if x.inScope(hit.EPK) {
			n++
		}
	}
	return n, nil
}

// counts reports whether the query asks for nothing but how many items there are.
func (pl *planner) counts() bool {
	p := pl.program
	if !p.Plain() || !p.Grouped() || p.HasGroupKeys() {
		return false
	}
	for e := range p.Query().Selected {
		if !countsRows(e) {
			return false
		}
	}
	return !p.Query().Select.Star
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

// countOptions returns the ways to count without reading items.
func (pl *planner) countOptions() []option {
	pl.list = pl.room[:0]
	if !pl.indexed || !pl.counts() || !pl.scope.whole() && pl.scope.Logical == nil || !pl.program.Condition().Exact {
		return nil
	}
	if pl.small() && len(pl.facts) > 0 {
		return nil
	}
	pl.add(orNone(pl.count()), unlimited)
	if len(pl.list) == 0 {
		pl.add(orNone(pl.compositeCount()), unlimited)
	}
	return pl.list
}

// count finds a count of all items, or an index whose rows are just what the filter asks
// for.
func (pl *planner) count() *countPath {
	switch {
	case len(pl.facts) == 0 && pl.scope.Logical != nil:
		return pl.countLogical()
	case len(pl.facts) == 0:
		return &countPath{all: true}
	case hasElements(pl.facts[0].Path):
		return nil
	}
	path, ok := pl.indexedAt(pl.facts[0].Path, false)
	if !ok {
		return nil
	}
	v, said, all := pl.rangeOf(pl.facts[0].Path)
	if !said || !all || !v.Exact() {
		return nil
	}
	return &countPath{indexPart: indexPart{path: path, values: v}}
}

// countLogical finds the items of a partition key by the index of one of the
// properties that it is made of. Other keys may have the same last part.
func (pl *planner) countLogical() *countPath {
	key := pl.scope.Logical.PartitionKey
	last := len(key) - 1
	if last < 0 || !key[last].Defined() {
		return nil
	}
	var property sql.Path
	for _, name := range pl.container.PartitionKey.Paths[last] {
		property = append(property, syntax.Step{Name: name})
	}
	path, ok := pl.indexedAt(property, false)
	v := index.Exactly(key[last])
	if !ok || !v.Exact() {
		return nil
	}
	return &countPath{indexPart: indexPart{path: path, values: v}, ofKey: true}
}
