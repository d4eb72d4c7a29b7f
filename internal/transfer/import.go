// SPDX-License-Identifier: MIT

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// ImportOptions are the parameters of Import and Move.
type ImportOptions struct {
	To *client.Client
	// Name is the container for the rows of a file. Of a directory or an account, only what
	// it names is taken; the zero value is everything.
	Name client.Name
	// Place is the file or directory, or - for standard input. Move does not use it.
	Place  string
	Format Format // empty for what the file looks like
	TTL    TTL
	// Write is what happens to an item that is there.
	Write       client.Write
	Connections int
	// State is the name of the state file; empty for none.
	State string
	// Rejected names the file for rows of a container that are refused, and MaxRejected is
	// how many there may be.
	Rejected    func(client.Name) string
	MaxRejected int64
	Progress    *Progress
}

// The names of what an export to a directory has, in a directory for each database and, in
// that, one for each container.
const (
	databaseFile  = "database.json"
	containerFile = "container.json"
	itemsFile     = "items.jsonl"
)

// maxDefinitionBytes bounds a file with a definition and its scripts.
const maxDefinitionBytes = 64 << 20

// Import writes the rows of a file to a container, or all that an export to a directory has.
func Import(ctx context.Context, o ImportOptions) (err error) {
	source := o.Place
	if source != standard {
		if source, err = filepath.Abs(source); err != nil {
			return err
		}
	}
	state, _, err := openState(o.State, state{Kind: "import", Source: source, Target: o.To.Endpoint() + "/" + o.Name.String()})
	if err != nil {
		return err
	}
	i := &importing{ImportOptions: o, state: state, clock: &clockOf{c: o.To}, source: source}
	info, err := os.Stat(source)
	switch {
	case source == standard:
		err = i.rows(ctx, o.Name, standard)
	case err != nil:
		return err
	case info.IsDir():
		err = i.directory(ctx)
	case o.Name.Container == "":
		return errors.New("name the database and the container that the rows go to")
	default:
		err = i.rows(ctx, o.Name, source)
	}
	if err != nil {
		return err
	}
	return state.remove()
}

// importing is an import under way.
type importing struct {
	ImportOptions
	state  *stateFile
	clock  *clockOf
	source string
}

// directory imports what is in a directory.
func (i *importing) directory(ctx context.Context) error {
	i.Progress.Bytes.Store(true)
	var all []entry
	err := eachContainer(i.source, func(e entry) error {
		if i.Name.Database != "" && i.Name.Database != e.name.Database || i.Name.Container != "" && i.Name.Container != e.name.Container {
			return nil
		}
		if e.items != "" {
			info, err := os.Stat(e.items)
			if err != nil {
				return err
			}
			i.Progress.All.Add(info.Size())
		}
		all = append(all, e)
		return nil
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no export of %q in %s: mayfly export --to DIR makes one", i.Name, i.source)
	}
	for _, e := range all {
		if err := makeDatabase(ctx, i.To, e.database); err != nil {
			return err
		}
		if e.definition == nil {
			continue
		}
		if _, err := makeContainer(ctx, i.To, e.name, e.definition); err != nil {
			return err
		}
		if err := i.rows(ctx, e.name, e.items); err != nil {
			return err
		}
	}
	return nil
}

// entry is a container in the directory of an export, or a database without containers.
type entry struct {
	name       client.Name
	database   *Database
	definition *Definition // nil for a database alone
	items      string
}

// eachContainer calls do for each container in the directory of an export.
func eachContainer(dir string, do func(entry) error) error {
	databases, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range databases {
		at := filepath.Join(dir, d.Name())
		var db Database
		found, err := readJSON(filepath.Join(at, databaseFile), &db)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := do(entry{name: client.Name{Database: db.ID}, database: &db}); err != nil {
			return err
		}
		containers, err := os.ReadDir(at)
		if err != nil {
			return err
		}
		for _, c := range containers {
			var of Definition
			found, err := readJSON(filepath.Join(at, c.Name(), containerFile), &of)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			n := client.Name{Database: db.ID, Container: client.ID(of.Container)}
			if err := do(entry{n, &db, &of, filepath.Join(at, c.Name(), itemsFile)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readJSON reads a file with a definition.
func readJSON(name string, into any) (found bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return false, nil // no such file, or not in a directory
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxDefinitionBytes)).Decode(into); err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// fileName returns a name of a database or container as a name of a file.
func fileName(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(name), ".", "%2E"), ":", "%3A")
}

// rows imports the rows of a file.
func (i *importing) rows(ctx context.Context, n client.Name, name string) (err error) {
	p := i.state.part(n.String())
	i.Progress.setWhat(n.String())
	f, size, err := openInput(name)
	if err != nil {
		return err
	}
	defer f.Close()
	i.Progress.Bytes.Store(true)
	if i.Progress.All.Load() < size { // a file alone
		i.Progress.All.Store(size)
	}
	i.Progress.before(p.Bytes)
	if p.Done {
		return nil
	}
	of, err := i.To.Container(ctx, n)
	if err != nil {
		if client.Is(err, 404) {
			return fmt.Errorf("%v To make the container: mayfly put %s %s --key-path /PATH", err, n.Database, n.Container)
		}
		return err
	}
	l, err := newLives(i.TTL, of)
	if err != nil {
		return err
	}
	form := i.Format
	if form == "" {
		form = FormatOf(name)
	}
	from, err := openRows(f, form, position{p.Bytes, p.Rows})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	r := &rejects{name: i.Rejected(n), most: i.MaxRejected, part: p}
	defer func() { err = errors.Join(err, r.close()) }()
	s := newSink(ctx, i.To, of, i.Write, i.Connections, i.state, i.Progress, r)
	err = i.feed(s, from, l, p, name)
	if failed := s.end(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	i.state.change(func() { p.Done = true })
	return i.state.save(true, r.settle)
}

// feed gives the rows of a file to a sink.
func (i *importing) feed(s *sink, from rows, l *lives, p *part, name string) error {
	at, begun := position{p.Bytes, p.Rows}, p.Bytes
	for {
		g := s.begin()
		var err error
		for !s.full(g) {
			var read fileRow
			if read, err = from.next(); err != nil {
				break
			}
			if err := i.row(s, g, l, read, at.bytes); err != nil {
				return err
			}
			at = read.end
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", name, err)
		}
		upTo := at
		g.done, begun = upTo.bytes-begun, upTo.bytes
		g.mark = func() { p.Bytes, p.Rows = upTo.bytes, upTo.lines }
		if failed := s.put(g); failed != nil {
			return failed
		}
		if err != nil {
			return nil
		}
	}
}

// row adds a row of a file, which begins behind so many bytes, to a group.
func (i *importing) row(s *sink, g *group, l *lives, read fileRow, at int64) error {
	raw := read.raw
	r := row{line: read.line, fault: read.fault}
	if read.fault != "" {
		r.raw = slices.Clone(raw)
		s.add(g, r)
		return nil
	}
	o, err := value.ParseObject(raw)
	if err != nil {
		r.fault, r.raw = "the row is no JSON object: "+err.Error(), slices.Clone(raw)
		s.add(g, r)
		return nil
	}
	now, err := i.nowFor(s.ctx, l)
	if err != nil {
		return err
	}
	left := l.left(o, now)
	if left < 0 {
		i.Progress.Expired.Add(1)
		return nil
	}
	prepare(&r, s.of, o, left, func() string { return madeID(i.source, at, raw) })
	s.add(g, r)
	return nil
}

// nowFor returns the time, if it matters.
func (i *importing) nowFor(ctx context.Context, l *lives) (int64, error) {
	if l.mode != Remaining || l.byType == nil {
		return 0, nil
	}
	return i.clock.now(ctx)
}

// prepare fills a row from an item. makeID makes an id for an item without one.
func prepare(r *row, of *client.Container, o *value.Object, ttl int64, makeID func() string) {
	id := ""
	if raw, ok := o.Lookup("id"); ok {
		v, _ := value.FromJSON(raw)
		r.id, _ = v.Text() // the server refuses an id that is no string
	} else if id = makeID(); id != "" {
		r.id = id
	}
	r.body = appendItem(make([]byte, 0, len(o.Bytes())+64), o, ttl, id, nil)
	key, err := of.KeyOf(o)
	if err != nil {
		r.fault = err.Error()
		return
	}
	if id != "" { // the id may be the partition key
		if whole, err := value.ParseObject(r.body); err == nil {
			key, _ = of.KeyOf(whole)
		}
	}
	r.key = key
}

// openInput opens a file, or standard input, whose size is 0.
func openInput(name string) (f io.ReadSeekCloser, size int64, err error) {
	if name == standard {
		return &pipe{r: os.Stdin}, 0, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	if !info.Mode().IsRegular() {
		return &pipe{r: file}, 0, nil
	}
	return file, info.Size(), nil
}

// pipe is an input that can only go back to its beginning, and only as long as no more than
// its head was read.
type pipe struct {
	r    io.ReadCloser
	head []byte
	at   int
	over bool // more than the head was read
}

// headBytes is how much of a pipe is kept.
const headBytes = 4 << 10

func (p *pipe) Read(b []byte) (int, error) {
	if p.at < len(p.head) {
		n := copy(b, p.head[p.at:])
		p.at += n
		return n, nil
	}
	n, err := p.r.Read(b)
	if !p.over && len(p.head)+n <= headBytes {
		p.head = append(p.head, b[:n]...)
		p.at = len(p.head)
	} else if n > 0 {
		p.over = true
	}
	return n, err
}

func (p *pipe) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekStart || p.over {
		return 0, errors.New("this input can be read once only: an import of it cannot go on where another one ended")
	}
	p.at = 0
	return 0, nil
}

func (p *pipe) Close() error { return p.r.Close() }
