// SPDX-License-Identifier: MIT

// Moving containers from another account.
//
// A container is read as its change feed of latest versions, from the beginning on: that is
// all items, and then every write. So a copy and what follows it are one thing, with one
// position for each physical partition. Deletes are in the feed of all versions only, for
// containers that have one. Its position is taken before the copy begins, and from there on
// it is followed: what the copy has seen already is written again, in the same order, which
// ends in the same state.

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// changesPage is how many changes are read at once.
	changesPage = 1000
	// lookEvery is how often a feed without changes is read again.
	lookEvery = time.Second
	// containersAtOnce bounds how many containers are followed.
	containersAtOnce = 256
)

// MoveOptions are the parameters of Move.
type MoveOptions struct {
	ImportOptions
	From *client.Client
	// Follow goes on with what is written to the source, until ctx ends.
	Follow bool
	// Report is called with what is not moved.
	Report func(text string)
}

// Move copies databases and containers of another account with their definitions, scripts and
// items. If it follows, the end of ctx is its end and no error.
func Move(ctx context.Context, o MoveOptions) error {
	f, _, err := openState(o.State, state{Kind: "move", Source: o.From.Endpoint() + "/" + o.Name.String(), Target: o.To.Endpoint()})
	if err != nil {
		return err
	}
	m := &moving{MoveOptions: o, state: f, clock: &clockOf{c: o.From}}
	names, err := Containers(ctx, o.From, o.Name)
	if err != nil {
		return err
	}
	throughputs, err := o.From.Throughputs(ctx)
	if err != nil {
		return err
	}
	var all []*moved
	for _, n := range names {
		if n.Container == "" {
			d, err := readDatabase(ctx, o.From, n.Database, throughputs)
			if err != nil {
				return err
			}
			if err := makeDatabase(ctx, o.To, d); err != nil {
				return err
			}
			continue
		}
		c, err := m.prepare(ctx, n, throughputs)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := m.copy(ctx, c); err != nil {
			return err
		}
	}
	if !o.Follow {
		return f.remove()
	}
	if len(all) > containersAtOnce {
		return fmt.Errorf("%d containers are too many to follow at once, more than %d: follow a database at a time", len(all), containersAtOnce)
	}
	o.Progress.Followed.Store(true)
	if m.Report != nil {
		m.Report("the copy is complete; what is written follows, until this is interrupted")
	}
	return m.follow(ctx, all)
}

// moving is a move under way.
type moving struct {
	MoveOptions
	state *stateFile
	clock *clockOf
}

// moved is a container that is moved.
type moved struct {
	from, to *client.Container
	lives    *lives
	part     *part
	// versions says that the feed of all versions is followed.
	versions bool
}

// prepare makes a container at the target, and takes the positions that the feed of all
// versions is followed from.
func (m *moving) prepare(ctx context.Context, n client.Name, throughputs map[string]client.Throughput) (*moved, error) {
	of, err := m.From.Container(ctx, n)
	if err != nil {
		return nil, err
	}
	d, err := readDefinition(ctx, m.From, of, throughputs)
	if err != nil {
		return nil, err
	}
	c := &moved{from: of, part: m.state.part(n.String()), versions: of.AllVersions && m.Follow}
	if c.to, err = makeContainer(ctx, m.To, n, d); err != nil {
		return nil, err
	}
	if c.lives, err = newLives(m.TTL, of); err != nil {
		return nil, err
	}
	m.state.adopt(c.part, of.Ranges)
	m.Progress.All.Add(countItems(ctx, m.From, n))
	m.Progress.before(c.part.Rows)
	if m.Follow && !c.versions && m.Report != nil {
		m.Report(fmt.Sprintf("deletes in %s do not follow: the container has no change feed of all versions and deletes", n))
	}
	for _, r := range of.Ranges {
		at := c.place(m.state, r.ID)
		if !of.AllVersions || at.Versions != "" {
			continue
		}
		position, err := m.From.Now(ctx, n, client.AllVersions, r.ID)
		if err != nil {
			return nil, fmt.Errorf("begin to follow %s: %w", n, err)
		}
		m.state.change(func() { at.Versions = position })
	}
	return c, m.state.save(true, nil)
}

// place returns the position in a physical partition.
func (c *moved) place(f *stateFile, id string) *place {
	var at *place
	f.change(func() {
		if at = c.part.Ranges[id]; at == nil {
			at = &place{}
			c.part.Ranges[id] = at
		}
	})
	return at
}

// copy copies a container until its feed has no more.
func (m *moving) copy(ctx context.Context, c *moved) (err error) {
	m.Progress.setWhat(c.from.Name.String())
	r := &rejects{name: m.Rejected(c.from.Name), most: m.MaxRejected, part: c.part}
	defer func() { err = errors.Join(err, r.close()) }()
	s := newSink(ctx, m.To, c.to, m.Write, m.Connections, m.state, m.Progress, r)
	err = m.allRanges(s, c)
	if err == nil {
		err = s.idle()
	}
	if err == nil {
		m.state.change(func() {
			for _, at := range c.part.Ranges {
				at.Done = true
			}
		})
	}
	if failed := s.end(); failed != nil {
		return failed
	}
	return err
}

// lineage copies a physical partition. If it was split meanwhile, it goes on in those that it
// was split into, from the same position.
func (m *moving) lineage(s *sink, c *moved, r client.Range, deep int) error {
	at := c.place(m.state, r.ID)
	for more := !at.Done; more; {
		var err error
		if more, err = m.page(s, c, client.Latest, r, at); err == nil {
			continue
		}
		if !rangeGone(err) {
			return err
		}
		if deep == 0 {
			return ErrSplit
		}
		of, children, err := splitUp(s.ctx, m.From, c.from.Name, r.ID)
		if err != nil {
			return err
		}
		m.state.adopt(c.part, of.Ranges)
		for _, child := range children {
			if err := m.lineage(s, c, child, deep-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// allRanges copies the physical partitions of a container, some at once.
func (m *moving) allRanges(s *sink, c *moved) error {
	ranges := make(chan client.Range, len(c.from.Ranges))
	for _, r := range c.from.Ranges {
		ranges <- r
	}
	close(ranges)
	var wait sync.WaitGroup
	failed := make(chan error, 1)
	for range min(max(m.Connections, 1), len(c.from.Ranges)) {
		wait.Go(func() {
			for r := range ranges {
				if err := m.lineage(s, c, r, splitsDeep); err != nil {
					select {
					case failed <- err:
					default:
					}
					return
				}
				if s.ctx.Err() != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return context.Cause(s.ctx)
	}
}

// page reads a page of a feed and gives it to the sink. The position moves when the page is
// written.
func (m *moving) page(s *sink, c *moved, feed client.Feed, r client.Range, at *place) (more bool, err error) {
	from := ""
	m.state.change(func() { from = at.next(feed) })
	a, err := m.From.Changes(s.ctx, c.from.Name, feed, r.ID, from, changesPage)
	if err != nil {
		return false, err
	}
	next := a.Position()
	if a.Status == http.StatusNotModified {
		return false, nil
	}
	rows, err := a.Rows(client.Items)
	if err != nil {
		return false, err
	}
	now := int64(0)
	if c.lives.mode == Remaining && c.lives.byType != nil {
		if now, err = m.clock.now(s.ctx); err != nil {
			return false, err
		}
	}
	g := s.begin()
	for _, raw := range rows {
		if err := m.row(s, g, c, feed, raw, now); err != nil {
			return false, err
		}
	}
	g.done = int64(len(rows))
	g.mark = func() {
		*at.position(feed) = next
		c.part.Rows += int64(len(rows))
	}
	m.state.change(func() { at.ahead[feed] = next })
	return true, s.put(g)
}

// row adds a change to a group.
func (m *moving) row(s *sink, g *group, c *moved, feed client.Feed, raw []byte, now int64) error {
	o, err := value.ParseObject(raw)
	if err != nil {
		return fmt.Errorf("the source's answer cannot be read: %w", err)
	}
	if feed == client.AllVersions {
		var deleted bool
		var r row
		if o, r, deleted, err = change(c.from, o); err != nil {
			return err
		}
		if deleted {
			s.add(g, r)
			return nil
		}
	}
	left := c.lives.left(o, now)
	if left < 0 {
		m.Progress.Expired.Add(1)
		return nil
	}
	var r row
	prepare(&r, c.to, o, left, func() string { return "" })
	s.add(g, r)
	return nil
}

// change returns the item of a change in the feed of all versions, or the delete that it is.
func change(of *client.Container, o *value.Object) (item *value.Object, r row, deleted bool, err error) {
	bad := errors.New("the source's answer is no change feed of all versions")
	raw, ok := o.Lookup("metadata")
	if !ok {
		return nil, r, false, bad
	}
	var meta struct {
		OperationType string          `json:"operationType"`
		ID            string          `json:"id"`
		PartitionKey  json.RawMessage `json:"partitionKey"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, r, false, bad
	}
	if meta.OperationType != "delete" {
		current, ok := o.Lookup("current")
		if !ok {
			return nil, r, false, bad
		}
		item, err = value.ParseObject(current)
		return item, r, false, err
	}
	key, err := value.ParseObject(meta.PartitionKey)
	if err != nil || meta.ID == "" {
		return nil, r, false, fmt.Errorf("a delete in the change feed names no item: %s", raw)
	}
	r = row{id: meta.ID}
	r.key = of.NamedKey(key)
	return nil, r, true, nil
}

// follow writes what changes at the source, until ctx ends.
func (m *moving) follow(ctx context.Context, all []*moved) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for _, c := range all {
		wait.Go(func() {
			if err := m.followOne(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return m.state.save(true, nil)
}

func (m *moving) followOne(ctx context.Context, c *moved) (err error) {
	r := &rejects{name: m.Rejected(c.from.Name), most: m.MaxRejected, part: c.part}
	defer func() { err = errors.Join(err, r.close()) }()
	// What was read is written to its end, so the sink outlives ctx.
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s := newSink(writing, m.To, c.to, m.Write, m.Connections, m.state, m.Progress, r)
	err = m.watch(ctx, s, c)
	if failed := s.end(); failed != nil && !errors.Is(failed, context.Canceled) {
		return failed
	}
	return err
}

// watch reads the feeds of a container again and again.
func (m *moving) watch(ctx context.Context, s *sink, c *moved) error {
	feed := client.Latest
	if c.versions {
		feed = client.AllVersions
	}
	for deep := splitsDeep; ctx.Err() == nil; {
		quiet, split := true, false
		for _, r := range c.from.Ranges {
			at := c.place(m.state, r.ID)
			more, err := m.page(s, c, feed, r, at)
			if rangeGone(err) && deep > 0 {
				of, _, err := splitUp(ctx, m.From, c.from.Name, r.ID)
				if err != nil {
					return err
				}
				m.state.adopt(c.part, of.Ranges)
				c.from.Ranges, split = of.Ranges, true
				break
			}
			if err != nil {
				return err
			}
			quiet = quiet && !more
			if ctx.Err() != nil {
				break
			}
		}
		switch {
		case split:
			deep--
			continue
		case quiet:
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
		deep = splitsDeep
	}
	return nil
}
