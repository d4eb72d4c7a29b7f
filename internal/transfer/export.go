// SPDX-License-Identifier: MIT

package transfer

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// ExportOptions are the parameters of Export.
type ExportOptions struct {
	From *client.Client
	// Name is the container, or the database with all its containers; the zero value is
	// everything.
	Name client.Name
	// Place is the file for the items of a container, or - for standard output, or the
	// directory for items and definitions.
	Place     string
	Directory bool
	Format    Format // empty for what the name of the file says, or JSONL
	// TTL is Remaining if the ttl of items is to be what is left of it at the export.
	TTL TTL
	// System keeps the server's properties, such as _etag.
	System bool
	// Columns are those of CSV; empty for the properties of the first page.
	Columns     []string
	Connections int
	State       string
	Progress    *Progress
}

const (
	// exportPage is how many items are read at once.
	exportPage = 1000
	// dirMode is the mode of directories that are made.
	dirMode = 0o700
)

// ErrExists: the file to write is there, and no interrupted export is known of.
var ErrExists = errors.New("the file exists")

// Export writes the items of a container to a file, or containers with their definitions and
// scripts to a directory.
func Export(ctx context.Context, o ExportOptions) error {
	place := o.Place
	if place != standard {
		var err error
		if place, err = filepath.Abs(place); err != nil {
			return err
		}
	}
	f, resumed, err := openState(o.State, state{Kind: "export", Source: o.From.Endpoint() + "/" + o.Name.String(), Target: place})
	if err != nil {
		return err
	}
	e := &exporting{ExportOptions: o, state: f, clock: &clockOf{c: o.From}}
	if !o.Directory {
		if !resumed && place != standard {
			if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
				return fmt.Errorf("%w: %s: remove it, or choose another name", ErrExists, place)
			}
		}
		err = e.container(ctx, o.Name, place)
	} else {
		err = e.directory(ctx, place)
	}
	if err != nil {
		return err
	}
	return f.remove()
}

// exporting is an export under way.
type exporting struct {
	ExportOptions
	state   *stateFile
	clock   *clockOf
	counted sync.Map // names of containers whose items are in the progress
}

// directory exports containers with their definitions.
func (e *exporting) directory(ctx context.Context, dir string) error {
	throughputs, err := e.From.Throughputs(ctx)
	if err != nil {
		return err
	}
	names, err := Containers(ctx, e.From, e.Name)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n.Container != "" {
			e.count(ctx, n)
		}
	}
	for _, n := range names {
		at := filepath.Join(dir, fileName(n.Database))
		if n.Container == "" {
			d, err := readDatabase(ctx, e.From, n.Database, throughputs)
			if err != nil {
				return err
			}
			if err := writeJSON(filepath.Join(at, databaseFile), d); err != nil {
				return err
			}
			continue
		}
		at = filepath.Join(at, fileName(n.Container))
		of, err := e.From.Container(ctx, n)
		if err != nil {
			return err
		}
		d, err := readDefinition(ctx, e.From, of, throughputs)
		if err != nil {
			return err
		}
		if err := writeJSON(filepath.Join(at, containerFile), d); err != nil {
			return err
		}
		if err := e.container(ctx, n, filepath.Join(at, itemsFile)); err != nil {
			return err
		}
	}
	return nil
}

// Containers returns the databases, each followed by its containers, that a name stands for.
func Containers(ctx context.Context, c *client.Client, n client.Name) ([]client.Name, error) {
	databases := []string{n.Database}
	if n.Database == "" {
		var err error
		if databases, err = c.Names(ctx, client.Name{}, client.Databases); err != nil {
			return nil, err
		}
	}
	var all []client.Name
	for _, db := range databases {
		all = append(all, client.Name{Database: db})
		containers := []string{n.Container}
		if n.Container == "" {
			var err error
			if containers, err = c.Names(ctx, client.Name{Database: db}, client.Containers); err != nil {
				return nil, err
			}
		}
		for _, name := range containers {
			all = append(all, client.Name{Database: db, Container: name})
		}
	}
	return all, nil
}

// writeJSON writes a definition.
func writeJSON(name string, v any) error {
	if err := os.MkdirAll(filepath.Dir(name), dirMode); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(name, append(raw, '\n'))
}

var documentsCount = regexp.MustCompile(`documentsCount=(\d+)`)

// count adds the items of a container to what there is to do, if the server says how many
// there are.
func (e *exporting) count(ctx context.Context, n client.Name) {
	if _, before := e.counted.LoadOrStore(n, true); before {
		return
	}
	e.Progress.All.Add(countItems(ctx, e.From, n))
}

// countItems returns how many items a container has; 0 if the server does not say.
func countItems(ctx context.Context, c *client.Client, n client.Name) int64 {
	a, err := c.Usage(ctx, n)
	if err != nil {
		return 0
	}
	m := documentsCount.FindStringSubmatch(a)
	if m == nil {
		return 0
	}
	count, _ := strconv.ParseInt(m[1], 10, 64)
	return count
}

// container exports the items of a container to a file.
func (e *exporting) container(ctx context.Context, n client.Name, name string) (err error) {
	p := e.state.part(n.String())
	e.Progress.setWhat(n.String())
	e.count(ctx, n)
	e.Progress.before(p.Rows)
	if p.Done {
		return nil
	}
	of, err := e.From.Container(ctx, n)
	if err != nil {
		return err
	}
	l, err := newLives(e.TTL, of)
	if err != nil {
		return err
	}
	form := e.Format
	if form == "" {
		form = FormatOf(name)
	}
	w := &writer{e: e, p: p, form: form, lives: l, name: name}
	if err := w.file.open(name, p.Bytes); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.file.close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.state.adopt(p, of.Ranges)
	ranges := make(chan client.Range, len(of.Ranges))
	for _, r := range of.Ranges {
		ranges <- r
	}
	close(ranges)
	var wait sync.WaitGroup
	for range min(max(e.Connections, 1), len(of.Ranges)) {
		wait.Go(func() {
			for r := range ranges {
				if err := w.lineage(ctx, n, r, splitsDeep); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return errors.Join(err, e.state.save(true, w.file.sync))
	}
	return w.end()
}

// writer writes the items of a container. Its lock is that of the state.
type writer struct {
	e     *exporting
	p     *part
	form  Format
	lives *lives
	name  string
	file  appender
}

// lineage writes the items of a physical partition. If it was split meanwhile, it goes on in
// those that it was split into, from the same position.
func (w *writer) lineage(ctx context.Context, n client.Name, r client.Range, deep int) error {
	err := w.partition(ctx, n, r)
	if !rangeGone(err) {
		return err
	}
	if deep == 0 {
		return ErrSplit
	}
	of, children, err := splitUp(ctx, w.e.From, n, r.ID)
	if err != nil {
		return err
	}
	w.e.state.adopt(w.p, of.Ranges)
	for _, child := range children {
		if err := w.lineage(ctx, n, child, deep-1); err != nil {
			return err
		}
	}
	return nil
}

// partition writes the items of a physical partition, a page at a time.
func (w *writer) partition(ctx context.Context, n client.Name, r client.Range) error {
	var at *place
	w.e.state.change(func() {
		if at = w.p.Ranges[r.ID]; at == nil {
			at = &place{}
			w.p.Ranges[r.ID] = at
		}
	})
	for done, next := at.Done, at.At; !done; {
		a, err := w.e.From.ReadItems(ctx, n, client.Page{Range: r.ID, Continuation: next, MaxItems: exportPage})
		if err != nil {
			return err
		}
		rows, err := a.Rows(client.Items)
		if err != nil {
			return err
		}
		items, err := w.convert(ctx, rows)
		if err != nil {
			return err
		}
		next = a.Continuation()
		done = next == ""
		w.e.state.change(func() {
			if err = w.write(items); err == nil {
				at.At, at.Done = next, done
				w.p.Rows += int64(len(items))
			}
		})
		if err != nil {
			return err
		}
		w.e.Progress.Done.Add(int64(len(items)))
		w.e.Progress.Items.Add(int64(len(items)))
		if err := w.e.state.save(false, w.file.sync); err != nil {
			return err
		}
	}
	return nil
}

// convert returns the items of a page as they are written.
func (w *writer) convert(ctx context.Context, rows []json.RawMessage) ([]*value.Object, error) {
	var now int64
	if w.lives.mode == Remaining {
		var err error
		if now, err = w.e.clock.now(ctx); err != nil {
			return nil, err
		}
	}
	items := make([]*value.Object, 0, len(rows))
	for _, raw := range rows {
		o, err := value.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
		}
		left := w.lives.left(o, now)
		if left < 0 { // it has expired since the server sent it
			w.e.Progress.Expired.Add(1)
			continue
		}
		text := appendItem(make([]byte, 0, len(raw)), o, left, "", func(name string) bool {
			// The time of the last write says how much of an item's time is left.
			return w.e.System || name == "_ts" && w.lives.mode != Remaining
		})
		if o, err = value.ParseObject(text); err != nil {
			return nil, err
		}
		items = append(items, o)
	}
	return items, nil
}

// write appends items to the file. The caller holds the lock.
func (w *writer) write(items []*value.Object) error {
	if len(items) == 0 {
		return nil
	}
	var b bytes.Buffer
	switch w.form {
	case CSV:
		if err := w.table(&b, items); err != nil {
			return err
		}
	case JSON:
		for _, o := range items {
			if b.WriteString(",\n"); w.p.Bytes == 0 && b.Len() == 2 {
				b.Reset()
				b.WriteString("[\n")
			}
			b.Write(o.Bytes())
		}
	default:
		for _, o := range items {
			b.Write(o.Bytes())
			b.WriteByte('\n')
		}
	}
	if err := w.file.write(b.Bytes()); err != nil {
		return err
	}
	w.p.Bytes += int64(b.Len())
	return nil
}

// ErrColumns: an item has a property that is no column.
var ErrColumns = errors.New("a property is no column")

// table appends items as lines of CSV.
func (w *writer) table(b *bytes.Buffer, items []*value.Object) error {
	out := csv.NewWriter(b)
	if w.p.Columns == nil {
		w.p.Columns = w.e.Columns
		if len(w.p.Columns) == 0 {
			w.p.Columns = columnsOf(items)
		}
		if err := out.Write(w.p.Columns); err != nil {
			return err
		}
	}
	cells := make([]string, len(w.p.Columns))
	for _, o := range items {
		for _, m := range o.Members() {
			if len(w.e.Columns) == 0 && !slices.Contains(w.p.Columns, m.Name) {
				return fmt.Errorf("%w: %q, which none of the first items has: name the columns that you want with --columns", ErrColumns, m.Name)
			}
		}
		for i, name := range w.p.Columns {
			cells[i] = ""
			if raw, ok := o.Lookup(name); ok {
				cells[i] = cellOf(name, raw)
			}
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func columnsOf(items []*value.Object) []string {
	columns := []string{}
	for _, o := range items {
		for _, m := range o.Members() {
			if !slices.Contains(columns, m.Name) {
				columns = append(columns, m.Name)
			}
		}
	}
	return columns
}

// end completes the file.
func (w *writer) end() error {
	var err error
	w.e.state.change(func() {
		if w.form == JSON {
			text := "\n]\n"
			if w.p.Bytes == 0 {
				text = "[]\n"
			}
			err = w.file.write([]byte(text))
		}
		if err == nil {
			err = w.file.sync()
		}
		w.p.Done = err == nil
	})
	if err != nil {
		return err
	}
	return w.e.state.save(true, nil)
}
