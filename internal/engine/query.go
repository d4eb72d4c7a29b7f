// SPDX-License-Identifier: MIT

// Queries: which partitions a query reads, its charge, and the plan that clients ask for
// before they send a query to many partitions.

package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/clientplan"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxQueryBytes is the longest text of a query.
	maxQueryBytes = 512 << 10
	// maxContinuationBytes bounds the length of a continuation from a client.
	maxContinuationBytes = 32 << 10
)

// Query is a query as a client sends it.
type Query struct {
	Text   string
	Params map[string]datum.Value
	// Resume, if set, is where an ordered query resumes, beside its continuation.
	Resume *ResumeFilter
}

// ResumeFilter is the position at which a client resumes an ordered query.
type ResumeFilter struct {
	Values  []datum.Value // of the last row, one for each key of the order
	RID     string        // of the item of that row, or empty
	Exclude bool          // skips all rows with the same values
}

// resume returns the filter's position.
func (f *ResumeFilter) resume(c *catalog.Container) (*query.Resume, error) {
	if f == nil {
		return nil, nil
	}
	r := &query.Resume{Keys: f.Values, Exclude: f.Exclude}
	if f.RID == "" {
		return r, nil
	}
	var ok bool
	if r.Ordinal, ok = c.RID.Ordinal(f.RID); !ok {
		return nil, invalid("The 'rid' of the resume filter, '%s', is not that of an item of the container.", value.Clip(f.RID))
	}
	return r, nil
}

var (
	// ErrCrossPartition: the query covers several partition keys, and the request does
	// not allow that.
	ErrCrossPartition = errors.New("cross partition query is required but disabled")
	// ErrContinuationLimit: the page's continuation is longer than the client allows.
	ErrContinuationLimit = errors.New("the continuation is longer than the limit")
)

// NoIndexError refuses a query whose order needs a composite index that does not exist. Index
// is that index, as an indexing policy has it.
type NoIndexError struct{ Index string }

func (e *NoIndexError) Error() string { return "no corresponding composite index" }

// NeedsPlanError refuses a query whose result the client has to merge. Plan is what it
// needs for that.
type NeedsPlanError struct {
	Plan []byte
}

func (e *NeedsPlanError) Error() string { return "the query cannot be served without a plan" }

// DefaultQueryTime is how long a query may run that cannot end early.
const DefaultQueryTime = time.Minute

// Watch starts a query's time. The function that it returns returns an error once the
// query must end.
func (e *Engine) Watch(ctx context.Context) (look func() error) {
	began := e.meters.elapsed()
	return func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.meters.elapsed()-began > e.options.QueryTime {
			return query.ErrQueryTime
		}
		return nil
	}
}

func (e *Engine) compile(ctx context.Context, c *catalog.Container, q *Query) (*sql.Program, error) {
	if len(q.Text) > maxQueryBytes {
		return nil, invalid("The SQL query text exceeded the maximum limit of %d characters.", maxQueryBytes)
	}
	kept, err := e.queries.parse(q.Text)
	if err != nil {
		return nil, err
	}
	if p, ok := kept.bind(c, q.Params); ok {
		return p, nil
	}
	computed, err := e.computedProperties(c)
	if err != nil {
		return nil, err
	}
	p, err := sql.Compile(kept.tree, sql.CompileOptions{Params: q.Params, Computed: computed, Vectors: vectors(c), Planar: c.Planar, Interrupted: e.Watch(ctx)})
	if err != nil {
		return nil, err
	}
	kept.keep(c, p)
	return p, nil
}

// prepare compiles a query, and finds the functions that it calls.
func (e *Engine) prepare(ctx context.Context, c *catalog.Container, q *Query) (*sql.Program, *udfCalls, error) {
	program, err := e.compile(ctx, c, q)
	if err != nil {
		return nil, nil, err
	}
	if err := checkOrder(c, program); err != nil {
		return nil, nil, err
	}
	return program, e.udfCalls(c, program), nil
}

// vectors returns how the container compares vectors.
func vectors(c *catalog.Container) []sql.Vector {
	var all []sql.Vector
	for _, v := range c.Vectors {
		if metric, ok := function.ParseMetric(v.DistanceFunction); ok {
			all = append(all, sql.Vector{Path: v.Path, Metric: metric, DataType: v.DataType})
		}
	}
	return all
}

// checkOrder refuses an order by several properties without a composite index for it, as
// the service does.
func checkOrder(c *catalog.Container, p *sql.Program) error {
	keys := p.OrderBy()
	if len(keys) < 2 || slices.ContainsFunc(keys, func(k sql.SortKey) bool { return k.Call != nil }) {
		return nil
	}
	for _, composite := range c.Composites {
		if len(composite) == len(keys) && (serves(composite, keys, false) || serves(composite, keys, true)) {
			return nil
		}
	}
	return &NoIndexError{compositeOf(keys)}
}

// compositeOf returns the composite index for an order; empty if there can be none, since it
// orders by an element of an array.
func compositeOf(keys []sql.SortKey) string {
	type path struct {
		Path  string `json:"path"`
		Order string `json:"order"`
	}
	all := make([]path, len(keys))
	for i, k := range keys {
		var names value.Path
		for _, step := range k.Path {
			if step.Element {
				return ""
			}
			names = append(names, step.Name)
		}
		if all[i] = (path{names.String(), "ascending"}); k.Desc {
			all[i].Order = "descending"
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return ""
	}
	return string(text)
}

// serves reports whether a composite index has the order of the keys or, if reversed, the
// opposite.
func serves(composite []catalog.CompositePath, keys []sql.SortKey, reversed bool) bool {
	for i, k := range keys {
		if composite[i].Descending != (k.Desc != reversed) || len(composite[i].Path) != len(k.Path) {
			return false
		}
		for n, step := range k.Path {
			if step.Element || step.Name != composite[i].Path[n] {
				return false
			}
		}
	}
	return true
}

// QueryItems returns a page of a query's result.
func (e *Engine) QueryItems(ctx context.Context, r *Request) (Answer, error) {
	if isPartContinuation(r.Continuation) {
		return e.queryPart(ctx, r)
	}
	page, err := e.queryItems(ctx, r)
	if errors.Is(err, ErrRangeGone) {
		return e.queryPart(ctx, r)
	}
	return page, err
}

// pageRows returns how many rows a page of a query may have.
func pageRows(p *sql.Program, r *Request) int {
	if p.OfOneScore() {
		return maxPageItems // the SDKs of Java and Python read one page, and rank by what is on it
	}
	return pageItems(r.MaxItems)
}

// queryItems is QueryItems for ranges that there are.
func (e *Engine) queryItems(ctx context.Context, r *Request) (page Answer, err error) {
	nowMs := e.clock.Now()
	defer e.observe(e.begin())
	seen, err := e.lookUp(r, &page, ru.Refused)
	if err != nil {
		return page, err
	}
	c, began := page.Container, e.meters.elapsed()
	program, calls, err := e.prepare(ctx, c, &r.Query)
	if err != nil {
		return page, err
	}
	var seat *script.Seat
	if calls != nil {
		if seat, err = e.scripts.Enter(ctx); err != nil {
			page.Charge = 0
			return page, err
		}
		defer seat.Leave()
		nowMs = e.clock.Now() // items may have expired while the request waited
	}
	page.Compiled, page.LatestFirst = e.meters.elapsed()-began, program.LatestFirst()
	page.Merged = program.Distinct() || program.HasGroupKeys()
	s, err := e.scope(c, r, program)
	if err != nil {
		return page, err
	}
	// The ranges that the container began with: a split does not change what was asked for.
	s.Name = c.RIDText + "/" + strconv.Itoa(c.Ranges[s.first].First()) + "-" + strconv.Itoa(c.Ranges[s.last].First())
	request := query.Request{Program: program, Scope: s.Scope, NowMs: nowMs, MaxRows: pageRows(program, r), MaxBytes: cmp.Or(r.maxBytes, maxPageBytes),
		UDF: calls.bind(ctx, seat, nowMs), Measure: r.Measure, Room: r.Room, Memory: r.Memory,
		Elapsed: e.meters.elapsed, Began: e.meters.elapsed(), PageTime: query.PageTime, QueryTime: e.options.QueryTime}
	if request.Resume, err = r.Query.Resume.resume(c); err != nil {
		return page, err
	}
	if r.Continuation != "" {
		if s.begun, err = parseQueryContinuation(c, r.Continuation, s.first, s.last); err != nil {
			return page, err
		}
		s.first, request.Token = s.begun[0].at, s.begun[0].token
	}
	if err := e.queryPage(ctx, request, s, seen, &page); err != nil {
		return page, err
	}
	if r.MaxContinuationKB > 0 && len(page.Continuation) > r.MaxContinuationKB<<10 {
		return page, ErrContinuationLimit
	}
	return page, nil
}

// queryPage makes a page with rows of one partition. It ends with its partition, and is
// empty if that has no rows. The service's pages are like that, and clients count them.
func (e *Engine) queryPage(ctx context.Context, q query.Request, s queryScope, seen session, page *Answer) (err error) {
	r := &page.Container.Ranges[s.first]
	p, err := e.admit(page, r.ID)
	if err != nil {
		return err
	}
	defer e.settle(page, &err)
	q.Partition, q.Random = p, rand.Float64
	part, err := query.Run(ctx, q)
	if err != nil {
		return err
	}
	page.LSN = part.LSN
	if err := seen.check(r, part.LSN); err != nil {
		page.Charge = 0
		return err
	}
	page.Charge = ru.QueryWork{IndexRows: part.Work.IndexRows, Items: part.Work.Items, Bytes: part.Work.Bytes, RowBytes: part.Work.RowBytes}.Charge()
	page.Rows, page.Room, page.Count, page.Work = part.Rows, part.Rows, part.Count, part.Work
	page.Times, page.Indexes = part.Times, part.Indexes
	switch {
	case part.Token != "":
		page.Continuation = queryContinuation(r.ID, part.Token)
	case s.first == s.last:
		return nil
	case len(s.begun) < 2:
		page.Continuation = queryContinuation(page.Container.Ranges[s.first+1].ID, query.Begin(q))
	}
	for _, next := range s.begun[min(1, len(s.begun)):] { // made from the same range
		text := queryContinuation(page.Container.Ranges[next.at].ID, next.token)
		page.Continuation = strings.TrimPrefix(page.Continuation+"."+text, ".")
	}
	return nil
}

// A continuation of a query is the id of a range and the token of its page there:
//
//	{id}.{token}
//
// If the range was split since, the page goes on in the first that was made from it, and the
// continuation also has where to begin in the others.
func queryContinuation(id int, token string) string {
	return strconv.Itoa(id) + "." + token
}

// queryPlace is a partition, by its position, and the token with which a query goes on there.
type queryPlace struct {
	at    int
	token string
}

func parseQueryContinuation(c *catalog.Container, text string, first, last int) (places []queryPlace, err error) {
	if len(text) > maxContinuationBytes {
		return nil, ErrContinuation
	}
	for more := true; more; {
		var number, token string
		number, text, _ = strings.Cut(text, ".")
		token, text, more = strings.Cut(text, ".")
		id, err := strconv.ParseUint(number, 10, 16)
		if err != nil || token == "" {
			return nil, ErrContinuation
		}
		of := descendants(c, int(id), first, last)
		if len(of) == 0 || len(places) > 0 && of[0] <= places[len(places)-1].at {
			return nil, ErrContinuation
		}
		for _, i := range of {
			places = append(places, queryPlace{i, token})
		}
	}
	return places, nil
}

// QueryPlan returns the plan of a query for clients that query several ranges and merge
// the results.
func (e *Engine) QueryPlan(ctx context.Context, t Target, q Query, features clientplan.FeatureSet) (*catalog.Container, []byte, error) {
	c, err := e.target(t)
	if err != nil {
		return nil, nil, err
	}
	program, err := e.compile(ctx, c, &q)
	if err != nil {
		return c, nil, err
	}
	plan, err := e.plan(c, program, features)
	return c, plan, err
}

func (e *Engine) plan(c *catalog.Container, program *sql.Program, features clientplan.FeatureSet) ([]byte, error) {
	info, err := clientplan.New(program, clientplan.Options{Features: features, PartitionKey: c.PartitionKey.Paths})
	if err != nil {
		return nil, err
	}
	return info.AppendJSON(nil, planRanges(c, info.Keys)), nil
}

// planRanges returns the ranges of effective partition keys that a query covers.
func planRanges(c *catalog.Container, keys clientplan.KeyScope) []clientplan.Range {
	if keys.All {
		return []clientplan.Range{{Min: "", Max: "FF", MinInclusive: true}}
	}
	ranges := []clientplan.Range{}
	for _, k := range keys.Keys {
		epk := value.EPKText(c.PartitionKey.AppendEPK(nil, k))
		if len(k) < len(c.PartitionKey.Paths) {
			ranges = append(ranges, clientplan.Range{Min: epk, Max: epk + "FF", MinInclusive: true})
			continue
		}
		ranges = append(ranges, clientplan.Range{Min: epk, Max: epk, MinInclusive: true, MaxInclusive: true})
	}
	if len(ranges) == 0 { // any single range gives the result
		first := "FF"
		if len(c.Ranges) > 1 {
			first = value.EPKText(c.Ranges[0].Max)
		}
		return []clientplan.Range{{Min: "", Max: first, MinInclusive: true}}
	}
	slices.SortFunc(ranges, func(a, b clientplan.Range) int { return strings.Compare(a.Min, b.Min) })
	return slices.CompactFunc(ranges, func(a, b clientplan.Range) bool { return a == b })
}
