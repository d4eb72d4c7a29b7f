// SPDX-License-Identifier: MIT

// The indexes that serve a query, and those that would: what clients are told of them
// when they ask. It is about what the query says, as the service tells it, and not about
// the way that was chosen: where there are few items, they are read, whatever indexes
// there are.

package query

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/value"
)

// IndexUse is which indexes serve a query, and which would help it.
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

// indexUse works out what serves a query.
func indexUse(pl *planner, p path) *IndexUse {
	u := &IndexUse{}
	switch s := pl.scope; {
	case s.Logical != nil && !s.Logical.Prefix:
		for _, path := range pl.container.PartitionKey.Paths {
			u.Utilized.add(specOf(pathOf(path)), "")
		}
	case !s.whole():
		u.Utilized.add(keyRanges, "")
	}
	paths, composite := indexesOf(p)
	_, byKeys := p.(*keyPath)
	switch {
	case composite != nil:
		var specs []string
		for _, path := range composite.paths {
			specs = append(specs, compositeSpec(pathOf(path.Path), path.Descending))
		}
		u.Utilized.Composite = append(u.Utilized.Composite, specs)
	case !byKeys:
		u.Potential.Composite = pl.missedComposites()
	}
	for _, f := range pl.facts {
		pl.usedBy(f, composite, u)
	}
	for _, path := range pl.program.Tested() {
		if at, ok := pl.indexedAt(path, false); ok {
			pl.usedOther(at, u)
		}
	}
	for _, path := range paths {
		pl.usedOther(path, u)
	}
	return u
}

// indexesOf returns the indexes that a path reads: those of one path, and the composite
// one if there is one.
func indexesOf(p path) (paths []index.Path, composite *compositePart) {
	switch p := p.(type) {
	case *walkPath:
		return []index.Path{p.path}, p.composite
	case *countPath:
		return []index.Path{p.path}, p.composite
	case *textPath:
		return []index.Path{p.path}, nil
	case *nearestPath:
		return []index.Path{p.path}, nil
	case *setPath:
		for _, s := range p.members {
			paths = append(paths, s.path)
			for _, part := range s.any {
				paths = append(paths, part.path)
			}
			if s.composite != nil {
				composite = s.composite
			}
		}
	}
	return paths, composite
}

// usedOther adds an index that serves something else than what usedBy adds.
func (pl *planner) usedOther(path index.Path, u *IndexUse) {
	if len(path) > 0 && !slices.ContainsFunc(pl.facts, func(f *sql.Condition) bool { return names(f, path) }) {
		u.Utilized.add(specOf(path), "")
	}
}

// names reports whether a part of the filter is about a path, in words that usedBy knows.
func names(f *sql.Condition, path index.Path) bool {
	if _, ok := filterText(f); ok && slices.Equal(steps(f.Path, f.Op == sql.CondArrayContains), path) {
		return true
	}
	return slices.ContainsFunc(f.Of, func(part *sql.Condition) bool { return names(part, path) })
}

// usedBy adds what serves a part of the filter, or would.
func (pl *planner) usedBy(f *sql.Condition, used *compositePart, u *IndexUse) {
	for _, part := range f.Of {
		pl.usedBy(part, used, u)
	}
	text, ok := filterText(f)
	if !ok || len(f.Path) == 0 || used.has(f.Path) || pl.servedByOrder(f.Path, u) {
		return
	}
	elements := f.Op == sql.CondArrayContains
	if slices.Contains(pl.facts, f) {
		text = pl.said(steps(f.Path, elements))
	}
	if path, indexed := pl.indexedAt(f.Path, elements); indexed {
		u.Utilized.add(specOf(path), text)
	} else if name := f.Path[0].Name; !catalog.SystemProperty(name) && !isComputed(pl.container, name) {
		u.Potential.add(specOf(steps(f.Path, elements)), text)
	}
}

// has reports whether a path is one of the composite index.
func (p *compositePart) has(path sql.Path) bool {
	return p != nil && slices.ContainsFunc(p.paths, func(of catalog.CompositePath) bool { return path.Is(of.Path) })
}

// servedByOrder reports whether a path is the one that the query is ordered by, where the
// filter names others too: the service's metrics leave it out, unless a composite index
// would help. (IndexMetricsParserBaselineTest of the .NET SDK, OrderBy 2 and 4.)
func (pl *planner) servedByOrder(path sql.Path, u *IndexUse) bool {
	keys := pl.program.OrderBy()
	if len(keys) != 1 || keys[0].Call != nil || !slices.Equal(keys[0].Path, path) || len(u.Potential.Composite) > 0 {
		return false
	}
	return slices.ContainsFunc(pl.facts, func(f *sql.Condition) bool {
		_, ok := filterText(f)
		return ok && !slices.Equal(f.Path, path)
	})
}

// said returns what the filter says of an indexed path.
func (pl *planner) said(path index.Path) string {
	var all []string
	for _, f := range pl.facts {
		at := steps(f.Path, f.Op == sql.CondArrayContains)
		if text, ok := filterText(f); ok && slices.Equal(at, path) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " AND ")
}

// missedComposites suggests indexes of what is equal, followed by what is ordered by or,
// without an order, by a path of which there is a range; or of what is grouped by, where
// all of that is equal.
func (pl *planner) missedComposites() [][]string {
	var equal, ranges []sql.Path
	for _, f := range pl.facts {
		if len(f.Path) == 0 || hasElements(f.Path) || catalog.SystemProperty(f.Path[0].Name) {
			continue
		}
		switch f.Op {
		case sql.CondEq:
			equal = appendPath(equal, f.Path)
		case sql.CondLt, sql.CondLe, sql.CondGt, sql.CondGe, sql.CondPrefix:
			ranges = appendPath(ranges, f.Path)
		}
	}
	var first []string
	for _, p := range equal {
		first = append(first, compositeSpec(steps(p, false), false))
	}
	ordered, ok := pl.orderSpecs(equal)
	if !ok {
		return nil
	}
	if specs := slices.Concat(first, ordered); len(ordered) > 0 {
		if len(specs) < 2 {
			return nil
		}
		return [][]string{specs}
	}
	var found [][]string
	if len(equal) > 0 {
		for _, p := range ranges {
			found = append(found, append(slices.Clip(first), compositeSpec(steps(p, false), false)))
		}
	}
	if len(found) == 0 {
		return pl.missedForGroups(equal)
	}
	return found
}

// orderSpecs returns the keys of ORDER BY that are not equal anyway, if an index can have
// its order.
func (pl *planner) orderSpecs(equal []sql.Path) (specs []string, ok bool) {
	for _, k := range pl.program.OrderBy() {
		if k.Call != nil || hasElements(k.Path) || catalog.SystemProperty(k.Path[0].Name) {
			return nil, false
		}
		if !containsPath(equal, k.Path) {
			specs = append(specs, compositeSpec(steps(k.Path, false), k.Desc))
		}
	}
	return specs, true
}

// missedForGroups suggests the index of what is grouped by, if all of it is equal.
func (pl *planner) missedForGroups(equal []sql.Path) [][]string {
	var specs []string
	for _, p := range pl.program.GroupPaths() {
		if !containsPath(equal, p) {
			return nil
		}
		specs = append(specs, compositeSpec(steps(p, false), false))
	}
	if len(specs) < 2 {
		return nil
	}
	return [][]string{specs}
}

func containsPath(list []sql.Path, p sql.Path) bool {
	return slices.ContainsFunc(list, func(q sql.Path) bool { return slices.Equal(p, q) })
}

func appendPath(list []sql.Path, p sql.Path) []sql.Path {
	if containsPath(list, p) {
		return list
	}
	return append(list, p)
}

// filterTexts are how the service writes conditions that an index can serve, with the path
// and the value.
var filterTexts = map[sql.CondOp][2]string{
	sql.CondEq: {"(", " = %s)"}, sql.CondLt: {"(", " < %s)"}, sql.CondLe: {"(", " <= %s)"}, sql.CondGt: {"(", " > %s)"}, sql.CondGe: {"(", " >= %s)"},
	sql.CondPrefix: {"STARTSWITH(", ", %s)"}, sql.CondPrefixFold: {"STARTSWITH(", ", %s, true)"},
	sql.CondSuffix: {"ENDSWITH(", ", %s)"}, sql.CondSuffixFold: {"ENDSWITH(", ", %s, true)"},
	sql.CondContains: {"CONTAINS(", ", %s)"}, sql.CondContainsFold: {"CONTAINS(", ", %s, true)"},
	sql.CondEqualFold: {"STRINGEQUALS(", ", %s, true)"}, sql.CondDefined: {"IS_DEFINED(", ")"}, sql.CondArrayContains: {"ARRAY_CONTAINS(", ", …)"},
}

// filterText writes a condition as the service does, if an index can serve it.
func filterText(f *sql.Condition) (string, bool) {
	around, ok := filterTexts[f.Op]
	if !ok {
		return "", false
	}
	path := around[0] + "ROOT"
	for _, s := range f.Path {
		if s.Element {
			path += "[]"
		} else {
			path += "[" + strconv.Quote(s.Name) + "]"
		}
	}
	if f.Op == sql.CondEq && len(f.Values) > 1 {
		return path + " IN (…))", true
	}
	if before, after, found := strings.Cut(around[1], "%s"); found {
		return path + before + value.Clip(string(f.Values[0].AppendJSON(nil))) + after, true
	}
	return path + around[1], true
}

func pathOf(p value.Path) index.Path {
	var found index.Path
	for _, name := range p {
		found = append(found, index.Property(name))
	}
	return found
}

func steps(p sql.Path, elements bool) index.Path {
	var found index.Path
	for _, s := range p {
		if s.Element {
			found = append(found, index.Elements())
		} else {
			found = append(found, index.Property(s.Name))
		}
	}
	if elements {
		found = append(found, index.Elements())
	}
	return found
}

func specOf(p index.Path) string { return specText(p) + "/?" }

func compositeSpec(p index.Path, desc bool) string {
	if desc {
		return specText(p) + " DESC"
	}
	return specText(p) + " ASC"
}

// specText writes a path as the service's metrics do, with quotes around every name that
// is not of letters and digits alone.
func specText(p index.Path) string {
	var b []byte
	for _, s := range p {
		b = append(b, '/')
		if name := s.String(); s == index.Elements() || !strings.ContainsFunc(name, needsQuotes) {
			b = append(b, name...)
		} else {
			b = value.AppendString(b, name)
		}
	}
	return string(b)
}

func needsQuotes(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
