// SPDX-License-Identifier: MIT

// Writing rows to a container, over several connections and in bulk.
//
// The reader gathers rows in groups. Each row of a group goes to the worker of its partition
// key, so that two writes of one item stay in order. A group whose rows are all written, and
// so are those of all groups before it, is settled: its mark goes into the state.

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// groupRows and groupBytes bound a group, but for one large row, for each connection.
	groupRows  = 200
	groupBytes = 1 << 20
	// groupsAhead is how many groups are read before the first of them is settled.
	groupsAhead = 4
	// opTries is how often one item of a bulk request is repeated that the server was too
	// busy for.
	opTries = 100
	// busyPause is the time before that, if the server names none, and longestPause the
	// longest.
	busyPause    = 20 * time.Millisecond
	longestPause = 5 * time.Second
)

// row is something to write.
type row struct {
	body []byte // nil for a delete
	id   string
	key  value.PartitionKey
	// raw and line are what a refusal is reported with; line is 0 for none.
	raw  []byte
	line int64
	// fault is why the row cannot be written at all.
	fault string
}

// refusal is a row that was not written, as it goes to the file with rejected rows.
type refusal struct {
	Error string          `json:"error"`
	Line  int64           `json:"line,omitempty"`
	Item  json.RawMessage `json:"item,omitempty"`
	Text  string          `json:"text,omitempty"`
}

// group is rows that are settled together.
type group struct {
	byWorker [][]row
	rows     int
	bytes    int
	left     atomic.Int32 // workers that are not done
	refused  []refusal    // under the sink's lock
	// mark changes the state when the group and all before it are written. It is called
	// under the lock of the state.
	mark func()
	// done is how much the group adds to the progress.
	done int64
}

// sink writes to one container.
type sink struct {
	c        *client.Client
	of       *client.Container
	way      client.Write
	workers  int
	state    *stateFile
	progress *Progress
	rejected *rejects
	seed     maphash.Seed
	noBulk   atomic.Bool
	// divided is the container with the partitions that it has now. of keeps those of the
	// start, by which keys have their workers: two writes of one item stay in order.
	divided atomic.Pointer[client.Container]

	ctx    context.Context
	cancel context.CancelCauseFunc
	queues []chan *group
	room   chan struct{}
	wait   sync.WaitGroup

	mu    sync.Mutex
	order []*group
}

// newSink starts the workers.
func newSink(ctx context.Context, c *client.Client, of *client.Container, way client.Write, workers int, f *stateFile, p *Progress, r *rejects) *sink {
	s := &sink{c: c, of: of, way: way, workers: max(workers, 1), state: f, progress: p, rejected: r, seed: maphash.MakeSeed()}
	s.divided.Store(of)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.room = make(chan struct{}, groupsAhead)
	for i := range s.workers {
		q := make(chan *group, groupsAhead)
		s.queues = append(s.queues, q)
		s.wait.Go(func() {
			for g := range q {
				if s.ctx.Err() == nil {
					if err := s.write(g, g.byWorker[i], splitsDeep); err != nil {
						s.cancel(err)
					}
				}
				s.written(g)
			}
		})
	}
	return s
}

// begin returns an empty group.
func (s *sink) begin() *group { return &group{byWorker: make([][]row, s.workers)} }

// full reports whether a group has enough rows.
func (s *sink) full(g *group) bool {
	return g.rows >= groupRows*s.workers || g.bytes >= groupBytes*s.workers
}

// add adds a row to a group.
func (s *sink) add(g *group, r row) {
	w := 0
	if r.fault == "" {
		w = s.workerOf(r.key)
	}
	g.byWorker[w] = append(g.byWorker[w], r)
	g.rows, g.bytes = g.rows+1, g.bytes+len(r.body)+len(r.raw)
}

// workerOf returns the worker of a partition key: the ranges are divided among the workers,
// so that their requests are full.
func (s *sink) workerOf(key value.PartitionKey) int {
	if s.workers == 1 {
		return 0
	}
	at := s.of.RangeOf(key)
	share := max(1, s.workers/len(s.of.Ranges))
	within := 0
	if share > 1 {
		within = int(maphash.String(s.seed, key.String()) % uint64(share))
	}
	return (at*share + within) % s.workers
}

// put gives a group to the workers. It waits while too many groups are not settled.
func (s *sink) put(g *group) error {
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	used := 0
	for _, rows := range g.byWorker {
		if len(rows) > 0 {
			used++
		}
	}
	g.left.Store(int32(max(used, 1)))
	s.mu.Lock()
	s.order = append(s.order, g)
	s.mu.Unlock()
	for i, rows := range g.byWorker {
		if len(rows) > 0 {
			s.queues[i] <- g // there is room for all groups ahead
		}
	}
	if used == 0 {
		s.written(g)
	}
	return nil
}

// written notes that a worker is done with a group, and settles what can be.
func (s *sink) written(g *group) {
	if g.left.Add(-1) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 && s.order[0].left.Load() == 0 {
		first := s.order[0]
		s.order = s.order[1:]
		if s.ctx.Err() == nil { // a group that was given up is not settled, nor one after it
			s.settle(first)
		}
		<-s.room
	}
}

// settle writes the refusals of a group to their file, and then changes the state.
func (s *sink) settle(g *group) {
	if err := s.rejected.add(g.refused); err != nil {
		s.cancel(err)
		return
	}
	s.state.change(func() {
		if g.mark != nil {
			g.mark()
		}
	})
	s.progress.Done.Add(g.done)
	if err := s.state.save(false, s.rejected.settle); err != nil {
		s.cancel(err)
	}
}

// end waits until all groups are written and saves the state. It returns why the writing
// ended early, if it did.
func (s *sink) end() error {
	for _, q := range s.queues {
		close(q)
	}
	s.wait.Wait()
	err := context.Cause(s.ctx)
	s.cancel(nil)
	return errors.Join(err, s.state.save(true, s.rejected.settle))
}

// idle waits until all groups that were put are settled.
func (s *sink) idle() error {
	for range groupsAhead {
		select {
		case s.room <- struct{}{}:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	for range groupsAhead {
		<-s.room
	}
	return nil
}

// write writes a worker's rows of a group, in requests of one physical partition each. deep is
// how often such a partition may be found to be split.
func (s *sink) write(g *group, rows []row, deep int) error {
	of := s.divided.Load()
	type batch struct {
		rows  []row
		bytes int
		ids   map[string]bool
	}
	open := map[int]*batch{}
	flush := func(at int) error {
		b := open[at]
		delete(open, at)
		return s.send(g, of.Ranges[at].ID, b.rows, deep)
	}
	for i := range rows {
		r := &rows[i]
		if r.fault != "" {
			s.refuse(g, r, r.fault)
			continue
		}
		at := of.RangeOf(r.key)
		name := r.id + "\x00" + r.key.String()
		if b := open[at]; b != nil && (len(b.rows) == client.MaxBulk || b.bytes+len(r.body) > client.MaxBulkBytes || b.ids[name]) {
			if err := flush(at); err != nil {
				return err
			}
		}
		b := open[at]
		if b == nil {
			b = &batch{ids: map[string]bool{}}
			open[at] = b
		}
		b.rows, b.bytes, b.ids[name] = append(b.rows, *r), b.bytes+len(r.body), true
	}
	for at := range open {
		if err := flush(at); err != nil {
			return err
		}
	}
	return nil
}

// send writes rows of one physical partition, until each is written or refused. If it was split
// meanwhile, they are written to those that it was split into.
func (s *sink) send(g *group, partition string, rows []row, deep int) error {
	if s.noBulk.Load() || len(rows) == 1 {
		return s.sendEach(g, rows)
	}
	for try := 1; len(rows) > 0; try++ {
		items := make([]client.BulkItem, len(rows))
		for i := range rows {
			items[i] = client.BulkItem{Body: rows[i].body, ID: rows[i].id, Key: rows[i].key}
		}
		outcomes, err := s.c.Bulk(s.ctx, s.of.Name, partition, items, s.way)
		if rangeGone(err) && deep > 0 {
			now, _, err := splitUp(s.ctx, s.c, s.of.Name, partition)
			if err != nil {
				return err
			}
			s.divided.Store(now)
			return s.write(g, rows, deep-1)
		}
		if errors.Is(err, client.ErrNoBulk) {
			refused := s.progress.Rejected.Load()
			if err := s.sendEach(g, rows); err != nil {
				return err
			}
			if s.progress.Rejected.Load() == refused { // no row was to blame
				s.noBulk.Store(true)
			}
			return nil
		}
		if err != nil {
			return err
		}
		var again, alone []row
		pause := busyPause
		for i, o := range outcomes {
			switch {
			case o.Status < http.StatusBadRequest:
				s.count(&rows[i])
			case o.Status == http.StatusNotFound && rows[i].body == nil:
				s.count(&rows[i])
			case busy(o.Status) && try < opTries:
				again = append(again, rows[i])
				pause = max(pause, min(time.Duration(o.RetryAfter)*time.Millisecond, longestPause))
			default:
				alone = append(alone, rows[i]) // to learn the reason
			}
		}
		if err := s.sendEach(g, alone); err != nil {
			return err
		}
		if rows = again; len(rows) > 0 {
			select {
			case <-s.ctx.Done():
				return context.Cause(s.ctx)
			case <-time.After(pause):
			}
		}
	}
	return nil
}

// busy reports whether an operation of a bulk request is to be sent again.
func busy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusFailedDependency, 449:
		return true
	}
	return false
}

// sendEach writes rows one by one.
func (s *sink) sendEach(g *group, rows []row) error {
	for i := range rows {
		r := &rows[i]
		var err error
		if r.body == nil {
			if _, err = s.c.DeleteItem(s.ctx, s.of.Name, r.id, r.key); client.Is(err, http.StatusNotFound) {
				err = nil
			}
		} else {
			_, err = s.c.WriteItem(s.ctx, s.of.Name, r.body, r.key, s.way)
			if s.way == client.Create && client.Is(err, http.StatusConflict) {
				err = s.unlessSame(r, err)
			}
		}
		var refused *client.Error
		switch {
		case err == nil:
			s.count(r)
		case errors.As(err, &refused) && ofRow(refused):
			s.refuse(g, r, refused.Error())
		default:
			return err
		}
	}
	return nil
}

// subStatusKeyFull is the refusal of a write to a partition key that has reached its limit.
const subStatusKeyFull = 1014

// ofRow reports whether a refusal is about the row and not about the server or the key.
func ofRow(e *client.Error) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusPreconditionFailed:
		return true
	case http.StatusForbidden:
		return e.SubStatus == subStatusKeyFull
	}
	return false
}

// unlessSame returns the conflict that a create met, unless the item on the server is what the
// row would write: then it was written before, and the answer was lost or not noted.
func (s *sink) unlessSame(r *row, conflict error) error {
	a, err := s.c.ReadItem(s.ctx, s.of.Name, r.id, r.key)
	if client.Is(err, http.StatusNotFound) {
		return conflict // of another kind, such as a unique key
	}
	if err != nil {
		return err
	}
	o, err := value.ParseObject(a.Body)
	if err != nil {
		return err
	}
	var there, ours any
	if json.Unmarshal(appendItem(nil, o, 0, "", nil), &there) != nil || json.Unmarshal(r.body, &ours) != nil || !reflect.DeepEqual(there, ours) {
		return conflict
	}
	return nil
}

func (s *sink) count(r *row) {
	if r.body == nil {
		s.progress.Deleted.Add(1)
	} else {
		s.progress.Items.Add(1)
	}
}

func (s *sink) refuse(g *group, r *row, reason string) {
	s.progress.Rejected.Add(1)
	f := refusal{Error: reason, Line: r.line}
	switch {
	case r.raw == nil:
		f.Item = r.body
	case json.Valid(r.raw):
		f.Item = r.raw
	default:
		f.Text = string(r.raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.refused = append(g.refused, f)
}

// ErrManyRejected: so many rows were refused that the rest probably would be, too.
var ErrManyRejected = errors.New("too many rows were rejected")

// rejects is the file with rejected rows. It is made when there is one.
type rejects struct {
	name string
	most int64
	part *part // which has its length
	file appender
}

// add appends rows that were refused.
func (r *rejects) add(rows []refusal) error {
	if len(rows) == 0 {
		return nil
	}
	var b []byte
	for i := range rows {
		line, err := json.Marshal(&rows[i])
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
	}
	if err := r.file.open(r.name, r.part.Rejected); err != nil {
		return err
	}
	if err := r.file.write(b); err != nil {
		return err
	}
	r.part.Rejected += int64(len(b))
	if r.most -= int64(len(rows)); r.most < 0 {
		return fmt.Errorf("%w: see %s", ErrManyRejected, r.name)
	}
	return nil
}

func (r *rejects) settle() error { return r.file.sync() }

func (r *rejects) close() error { return r.file.close() }
