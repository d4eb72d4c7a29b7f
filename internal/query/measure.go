// SPDX-License-Identifier: MIT

// What a page took, for clients that ask: times, which cost a look at the clock for
// every step, and the indexes that were used or were missed.

package query

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// Times is how long the parts of a page took.
type Times struct {
	Plan  time.Duration // choosing how to find the items
	Index time.Duration // reading indexes
	Load  time.Duration // reading items
	Run   time.Duration // filters and expressions
	Write time.Duration // writing rows
}

// took adds the time since the last call to a part.
func (x *execution) took(part *time.Duration) {
	if !x.q.Measure {
		return
	}
	now := x.q.Elapsed()
	*part += now - x.measured
	x.measured = now
}

// IndexUse is which indexes a query used, and which would have helped it.
type IndexUse struct {
	Utilized, Potential Indexes
}

// Indexes are indexes of one path and of several.
type Indexes struct {
	Single    []SingleIndex
	Composite [][]string // of each, its paths with their directions
}

// SingleIndex is an index of one path, with the part of the filter that it serves.
type SingleIndex struct {
	Filter, Spec string
}

func (i *Indexes) add(spec, filter string) {
	found := SingleIndex{filter, spec}
	if !slices.Contains(i.Single, found) {
		i.Single = append(i.Single, found)
	}
}

// keyRanges is how the index is called that has the partition keys' hashes.
const keyRanges = "/_epk/?"

// indexUse works out what a plan uses.
func indexUse(c *chooser, p *plan) *IndexUse {
	u := &IndexUse{}
	switch s := c.s; {
	case s.Logical != nil && !s.Logical.Prefix:
		for _, path := range c.r.Container().PartitionKey.Paths {
			u.Utilized.add(specOf(pathOf(path)), "")
		}
	case !s.whole():
		u.Utilized.add(keyRanges, "")
	}
	if p.set != nil {
		c.usedSets(p.set, u)
	} else if len(p.path) > 0 {
		u.Utilized.add(specOf(p.path), c.said(p.path))
	}
	if p.composite != nil {
		var specs []string
		for _, path := range p.composite.paths {
			specs = append(specs, compositeSpec(pathOf(path.Path), path.Descending))
		}
		u.Utilized.Composite = append(u.Utilized.Composite, specs)
	}
	c.missed(p, u)
	return u
}

func (c *chooser) usedSets(s *set, u *IndexUse) {
	if len(s.path) > 0 {
		u.Utilized.add(specOf(s.path), c.said(s.path))
	}
	for _, part := range s.any {
		c.usedSets(part, u)
	}
	for _, part := range s.all {
		c.usedSets(part, u)
	}
}

// said returns what the filter says of an indexed path.
func (c *chooser) said(path store.IndexPath) string {
	var all []string
	for _, f := range c.facts {
		at := steps(f.Path, f.Op == sql.CondArrayContains)
		if text, ok := filterText(f); ok && slices.Equal(at, path) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " AND ")
}

// missed works out which indexes would have helped.
func (c *chooser) missed(p *plan, u *IndexUse) {
	var equal, others []sql.Path
	for _, f := range c.facts {
		text, ok := filterText(f)
		if !ok || len(f.Path) == 0 {
			continue
		}
		elements := f.Op == sql.CondArrayContains
		if _, indexed := c.indexed(f.Path, elements); !indexed && !systemProperty(f.Path[0].Name) && !isComputed(c.r.Container(), f.Path[0].Name) {
			u.Potential.add(specOf(steps(f.Path, elements)), text)
		}
		switch {
		case elements || hasElements(f.Path) || systemProperty(f.Path[0].Name):
		case f.Op == sql.CondEq:
			equal = appendPath(equal, f.Path)
		default:
			others = appendPath(others, f.Path)
		}
	}
	if p.composite == nil && p.method != manyFinds && p.method != pointFind {
		c.missedComposite(equal, others, u)
	}
}

func appendPath(list []sql.Path, p sql.Path) []sql.Path {
	if slices.ContainsFunc(list, func(q sql.Path) bool { return slices.Equal(p, q) }) {
		return list
	}
	return append(list, p)
}

// missedComposite suggests an index of what is equal, followed by what is ordered by
// or, without an order, by the one path of which there is a range.
func (c *chooser) missedComposite(equal, others []sql.Path, u *IndexUse) {
	var specs []string
	for _, p := range equal {
		specs = append(specs, compositeSpec(steps(p, false), false))
	}
	keys := c.p.OrderBy()
	for _, k := range keys {
		if k.Call != nil || hasElements(k.Path) || systemProperty(k.Path[0].Name) {
			return
		}
		if !slices.ContainsFunc(equal, func(p sql.Path) bool { return slices.Equal(p, k.Path) }) {
			specs = append(specs, compositeSpec(steps(k.Path, false), k.Desc))
		}
	}
	if len(keys) == 0 && len(others) == 1 && len(equal) > 0 {
		specs = append(specs, compositeSpec(steps(others[0], false), false))
	}
	if len(specs) > 1 {
		u.Potential.Composite = append(u.Potential.Composite, specs)
	}
}

// filterText writes a condition as the service does, if an index can serve it.
func filterText(f *sql.Condition) (string, bool) {
	path := "ROOT"
	for _, s := range f.Path {
		if s.Element {
			path += "[]"
		} else {
			path += "[" + strconv.Quote(s.Name) + "]"
		}
	}
	switch f.Op {
	case sql.CondEq:
		if len(f.Values) > 1 {
			return "(" + path + " IN (…))", true
		}
	case sql.CondLt, sql.CondLe, sql.CondGt, sql.CondGe:
	case sql.CondPrefix:
		return "STARTSWITH(" + path + ", " + value.Clip(string(f.Values[0].AppendJSON(nil))) + ")", true
	case sql.CondArrayContains:
		return "ARRAY_CONTAINS(" + path + ", …)", true
	default:
		return "", false
	}
	return "(" + path + " " + condText(f) + ")", true
}

func pathOf(p value.Path) store.IndexPath {
	var found store.IndexPath
	for _, name := range p {
		found = append(found, store.Property(name))
	}
	return found
}

func steps(p sql.Path, elements bool) store.IndexPath {
	var found store.IndexPath
	for _, s := range p {
		if s.Element {
			found = append(found, store.Elements())
		} else {
			found = append(found, store.Property(s.Name))
		}
	}
	if elements {
		found = append(found, store.Elements())
	}
	return found
}

func specOf(p store.IndexPath) string { return pathText(p) + "/?" }

func compositeSpec(p store.IndexPath, desc bool) string {
	if desc {
		return pathText(p) + " DESC"
	}
	return pathText(p) + " ASC"
}
