// SPDX-License-Identifier: MIT

package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/store"
)

var (
	// ErrToken: the continuation is none that was given out for this query.
	ErrToken = errors.New("invalid continuation token")
	// ErrSortTooLarge: sorting, grouping or telling rows apart takes more memory
	// than a query may have.
	ErrSortTooLarge = errors.New("the query needs too much memory to sort, group or compare its rows")
	// ErrQueryTime: the query has worked for as long as one may, and has nothing that a
	// page could end with.
	ErrQueryTime = errors.New("the query has taken longer than a query may")
)

const (
	// maxHeldBytes bounds what a query holds in memory beside its page, where requests
	// have twice as much.
	maxHeldBytes = 64 << 20
	// rowOverhead is about what a row that is held takes beside its text.
	rowOverhead = 160
	// PageTime is after how much work a page ends with what it has, as in the service.
	PageTime = 5 * time.Second
	// checkRows is how many items and rows pass between two looks whether the page
	// should end.
	checkRows = 256
	// A query with a LIMIT, or of items that are known, of up to maxExpectedRows is
	// expected to find them all, and all to be as large as the first, but no more than
	// maxExpectedBytes.
	maxExpectedRows  = 1000
	maxExpectedBytes = 64 << 10
)

// Request asks for a page.
type Request struct {
	Program   *sql.Program
	Partition *store.Partition
	Scope     Scope
	NowMs     int64
	// MaxRows and MaxBytes bound the page.
	MaxRows, MaxBytes int
	// Token is where to go on; empty is the beginning.
	Token string
	// Resume, if it is set, is where to go on too: at what is further.
	Resume *Resume
	// Room is memory for the rows of the page, or nil. They may need more, and have then
	// memory of their own.
	Room []byte
	// Memory is what the request may take; nil for no bounds. What the page takes is not
	// given back.
	Memory *memory.Share
	// Elapsed is real time, for the limits of work and for what is measured. Began is
	// when the work for the request began.
	Elapsed func() time.Duration
	Began   time.Duration
	// PageTime is after how much work a page ends with what it has, and QueryTime after
	// how much one that cannot end is given up; 0 is never.
	PageTime, QueryTime time.Duration
	// every is how many steps pass between two looks at the time, in tests, and gathered
	// how many rows of a range are gathered.
	every    int
	gathered int64
	// Measure asks for Times and Indexes, which cost something.
	Measure bool
	Random  func() float64
	UDF     func(name string, args []datum.Value) (datum.Value, error)
}

// Page is a part of a result.
type Page struct {
	// Rows holds the rows as JSON, with commas between them.
	Rows  []byte
	Count int
	// Token asks for the next page; empty after the last.
	Token string
	LSN   uint64
	Work  Work
	// Times and Indexes are told if they were asked for.
	Times   Times
	Indexes *IndexUse

	path    path // for tests
	program *sql.Program
}

// Work is what a page took.
type Work struct {
	IndexRows int64 // that were read
	Items     int64 // that were read
	Bytes     int64 // of those
	Matched   int64 // of those, that have a row or more
	Rows      int64 // that came out
	RowBytes  int64
}

// Add adds the work for another page.
func (w *Work) Add(other Work) {
	w.IndexRows += other.IndexRows
	w.Items += other.Items
	w.Bytes += other.Bytes
	w.Matched += other.Matched
	w.Rows += other.Rows
	w.RowBytes += other.RowBytes
}

// Run returns a page of a query's result.
func Run(ctx context.Context, q Request) (Page, error) {
	r, err := q.Partition.NewReader(q.NowMs)
	if err != nil {
		return Page{}, err
	}
	defer r.Close()
	return RunOn(ctx, q, r)
}

// RunOn is Run with a reader that the caller has, of the request's partition and
// moment.
func RunOn(ctx context.Context, q Request, r *store.Reader) (Page, error) {
	x, err := newExecution(ctx, q, r)
	if err != nil {
		return Page{}, err
	}
	defer x.letGo()
	if err := x.answer(); err != nil {
		return Page{}, err
	}
	x.took(&x.page.Times.Run)
	x.page.LSN, x.page.path, x.page.program = r.LSN(), x.path, q.Program
	x.page.Work.Rows, x.page.Work.RowBytes = int64(x.page.Count), int64(len(x.page.Rows))
	return x.page, nil
}

// execution is a page in the making.
type execution struct {
	ctx    context.Context
	q      Request
	r      *store.Reader
	runner *sql.Runner
	pl     planner
	path   path
	at     token
	page   Page

	// When it ends, in deadline.go:
	begins       *begins       // nil at the first page
	began        time.Duration // the work that PageTime bounds
	endsAnywhere bool          // also at a position where no row is
	behind       bool          // it meets again what was met before
	run          *run          // of rows that a walk puts in order, or nil
	sorting      *rowHeap      // the rows that are sorted, or nil
	ticks        int

	expected    int64 // how many items will pass the filter, if that is known
	met, passed int64 // index rows of the partition key, and of others

	measured time.Duration // up to when time is accounted for
	matched  bool          // the item that is looked at has a row

	seen      map[string]struct{} // rows that DISTINCT has met, or their hashes
	shown     map[uint64]int      // the marks of those that it let pass on the pages before
	canonical []byte              // reused for them

	held    int  // in memory, beside the page
	roomy   int  // what the page takes
	largest int  // item that was looked at
	crowded bool // there was no memory for a larger page
}

func newExecution(ctx context.Context, q Request, r *store.Reader) (*execution, error) {
	x := &execution{ctx: ctx, q: q, r: r, began: q.Began, expected: sql.NoLimit}
	x.page.Rows, x.q.Room = q.Room[:0], nil // it is for the rows of one execution
	if q.Measure {
		x.measured = q.Elapsed()
	}
	if err := x.at.parse(&x.q); err != nil {
		return nil, err
	}
	look := x.look
	r.StopWith(store.Stop{Look: look, Done: ctx.Done(), Every: q.every})
	x.runner = q.Program.NewRunner(&function.Context{NowMs: q.NowMs, Random: q.Random, UDF: q.UDF, Interrupted: look, Every: q.every})
	x.pl.read(x)
	if err := x.openPath(); err != nil {
		return nil, err
	}
	if q.Program.Distinct() {
		x.seen, x.shown = map[string]struct{}{}, marksIn(x.at.Met)
	}
	if q.Measure {
		x.page.Indexes = indexUse(&x.pl, x.path)
	}
	if x.at.position.started() {
		x.begins = &begins{x.resume(), x.at.Rows}
	}
	x.took(&x.page.Times.Plan)
	return x, nil
}

// openPath opens the path that the token names, or chooses one, and finds where on it the
// page begins.
func (x *execution) openPath() (err error) {
	if err = x.readPosition(); err != nil {
		return err
	}
	resumed := false
	if x.at.started() && !x.at.refiltered {
		if x.path, err = x.pl.resume(x.at.Path); err == nil && x.path != nil {
			resumed, err = x.path.open(x, unlimited)
		}
	}
	if err == nil && !resumed {
		x.path, err = x.choose()
	}
	if err != nil || !x.at.position.started() {
		return err
	}
	w, walks := x.path.(*walkPath)
	switch {
	case walks && w.keyed:
		w.patience = 0 // the walk is where the items are, and goes on from there
		var ok bool
		if x.at.Value, ok = w.rowValue(x.at.keys, x.at.Ordinal); !ok {
			x.path = allItems{} // to be sorted
		}
	case len(x.q.Program.OrderBy()) > 0: // rows are sorted, however they are found
	case !x.at.Value.IsZero() && !(walks && resumed):
		return ErrToken // of an index that is not there any more
	case walks && x.at.Value.IsZero():
		x.path = allItems{}
	}
	return nil
}

// answer makes the page.
func (x *execution) answer() error {
	err := x.attempt()
	if errors.Is(err, errLost) {
		x.startOver()
		err = x.attempt()
	}
	return err
}

// attempt makes the page by the plan that there is.
func (x *execution) attempt() error {
	switch p := x.q.Program; {
	case p.Input() != nil:
		return x.nested()
	case p.Ranking() != nil:
		return x.rank()
	case p.Grouped():
		return x.group()
	case len(p.OrderBy()) > 0 && x.path.order() != byKeys:
		return x.sort()
	}
	return x.stream()
}

// full reports whether the page has all that it may.
func (x *execution) full() bool {
	return x.page.Count >= x.q.MaxRows || len(x.page.Rows) >= x.q.MaxBytes
}

// hold takes memory for something that outlives a row.
func (x *execution) hold(bytes int) error {
	if int64(x.held+bytes) > min(maxHeldBytes, x.q.Memory.Most()) {
		return ErrSortTooLarge
	}
	if err := x.q.Memory.Take(x.ctx, int64(bytes)); err != nil {
		return err
	}
	x.held += bytes
	return nil
}

// release gives back memory that was held.
func (x *execution) release(bytes int) {
	x.held -= bytes
	x.q.Memory.Give(int64(bytes))
}

// letGo gives back all memory but the page's.
func (x *execution) letGo() {
	x.release(x.held)
	x.q.Memory.Give(int64(x.largest))
	x.largest = 0
}

// emit adds a row to the page.
func (x *execution) emit(row []byte) { x.endRow(append(x.beginRow(), row...)) }

// beginRow returns the rows of the page, for another to be written behind them.
func (x *execution) beginRow() []byte {
	if x.page.Count == 0 {
		return x.page.Rows
	}
	return append(x.page.Rows, ',')
}

// endRow makes what was written behind the rows one of them.
func (x *execution) endRow(written []byte) {
	x.took(&x.page.Times.Run)
	if rows := min(x.expected, x.q.Program.Slice().Limit); x.page.Count == 0 && rows > 1 && rows <= maxExpectedRows {
		// One more, for what comes after them in an answer.
		room := min((min(int(rows), x.q.MaxRows)+1)*(len(written)+1), maxExpectedBytes)
		if room > cap(written) {
			written = append(make([]byte, 0, room), written...)
		}
	}
	if n := cap(written); n > x.roomy {
		if !x.q.Memory.TryTake(int64(n - x.roomy)) {
			x.q.Memory.MustTake(int64(n - x.roomy)) // the row is there
			x.crowded, x.q.MaxBytes = true, 0       // and the page ends with it
		}
		x.roomy = n
	}
	x.page.Rows = written
	x.page.Count++
	x.took(&x.page.Times.Write)
}

// known reports whether DISTINCT has seen a row before, and remembers it.
func (x *execution) known(row []byte) (bool, error) {
	if x.seen == nil {
		return false, nil
	}
	x.canonical = datum.Raw(row).AppendCanonical(x.canonical[:0])
	if len(x.canonical) > sha256.Size {
		sum := sha256.Sum256(x.canonical) // takes no more memory than a short row
		x.canonical = append(x.canonical[:0], sum[:]...)
	}
	_, again := x.seen[string(x.canonical)]
	if len(x.shown) > 0 && !again {
		_, again = x.shown[markText(x.canonical)]
	}
	if again {
		return true, nil
	}
	x.seen[string(x.canonical)] = struct{}{}
	return false, x.hold(len(x.canonical) + rowOverhead)
}

// window applies TOP, OFFSET and LIMIT to a row that DISTINCT let pass: whether it is
// passed over, and whether it and all after it are cut off.
//
// The next page is told which row that was, for the item that it is from may be gone by
// then.
func (x *execution) window() (skip, end bool) {
	if x.seen != nil {
		x.at.meet(markText(x.canonical), x.q.Program)
	}
	s := x.q.Program.Slice()
	if x.at.Taken >= s.Limit {
		return false, true
	}
	if x.at.Skipped < s.Offset {
		x.at.Skipped++
		return true, false
	}
	x.at.Taken++
	return false, false
}

func (x *execution) emitGroup(g *sql.Group) error {
	v, err := x.runner.ProjectGroup(g)
	if err != nil || v.IsUndefined() {
		return err
	}
	if skip, end := x.window(); !skip && !end {
		x.emit(v.AppendJSON(nil))
	}
	return nil
}

// group answers a query with aggregates or GROUP BY. Groups come in the order of
// their keys' texts, so that a page can go on after the last one.
func (x *execution) group() error {
	groups := map[string]*sql.Group{}
	if !x.q.Program.HasGroupKeys() {
		if x.at.started() {
			return nil
		}
		g, err := x.runner.NewGroup()
		if err != nil {
			return err
		}
		groups[""] = g
		if known, ok := x.path.(answerer); ok {
			if err := known.answer(x, g); err != nil {
				return err
			}
			return x.emitGroup(g)
		}
	}
	var key []byte
	err := x.path.find(x, func(c candidate) (bool, error) {
		var failed error
		err := x.runner.Rows(datum.Raw(c.Body), func() bool {
			x.matched = true
			if key, failed = x.runner.AppendGroupKey(key[:0]); failed != nil {
				return false
			}
			g := groups[string(key)]
			if g == nil {
				if g, failed = x.runner.NewGroup(); failed == nil {
					groups[string(key)] = g
					failed = x.hold(len(key) + rowOverhead)
				}
			}
			if failed == nil {
				failed = x.runner.AddToGroup(g)
			}
			if n := x.runner.Kept(); n != 0 && failed == nil {
				failed = x.hold(n)
			}
			return failed == nil
		})
		return true, errors.Join(err, failed)
	})
	if err != nil {
		return err
	}
	if x.q.Program.OrdersGroups() {
		return x.emitOrdered(groups)
	}
	return x.emitGroups(groups)
}

// emitOrdered emits groups in the order that was asked for, and equal ones in that of
// their keys' texts.
func (x *execution) emitOrdered(groups map[string]*sql.Group) error {
	p := x.q.Program
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(p.CompareGroups(groups[a], groups[b]), strings.Compare(a, b))
	})
	rows := make([]heldRow, 0, len(keys))
	for _, key := range keys {
		row, ok, err := x.groupRow(groups[key])
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := x.hold(len(row) + rowOverhead); err != nil {
			return err
		}
		rows = append(rows, heldRow{mark: markText([]byte(key)), json: row})
	}
	return x.emitFrom(rows, p.Slice().Offset)
}

// groupRow returns the row of a group, or false if it has none, or one that DISTINCT
// has met.
func (x *execution) groupRow(g *sql.Group) (row []byte, ok bool, err error) {
	v, err := x.runner.ProjectGroup(g)
	if err != nil || v.IsUndefined() {
		return nil, false, err
	}
	row = v.AppendJSON(nil)
	again, err := x.known(row)
	return row, !again, err
}

// emitGroups emits the groups after the token's.
func (x *execution) emitGroups(groups map[string]*sql.Group) error {
	type mark struct{ text, key string }
	var order []mark
	resume, started := string(x.at.Group), x.at.started()
	for k := range groups {
		// DISTINCT has to meet again what it met before.
		if text := groupMark(k); !started || text > resume || x.seen != nil {
			order = append(order, mark{text, k})
		}
	}
	slices.SortFunc(order, func(a, b mark) int { return strings.Compare(a.text, b.text) })
	full := false
	for _, k := range order {
		row, ok, err := x.groupRow(groups[k.key])
		if err != nil {
			return err
		}
		if !ok || started && k.text <= resume {
			continue
		}
		if full && x.at.Taken < x.q.Program.Slice().Limit {
			x.end()
			return nil
		}
		x.at.Group = []byte(k.text)
		skip, end := x.window()
		if end {
			return nil
		}
		if skip {
			continue
		}
		x.emit(row)
		full = x.full()
	}
	return nil
}

// answerer is a path that answers a query for a count or for statistics without reading
// an item.
type answerer interface {
	path
	answer(x *execution, g *sql.Group) error
}
