// SPDX-License-Identifier: MIT

// The partition loop: collect, execute, commit, publish.

package store

import (
	"context"
	"fmt"
	"runtime"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// queueJobs is how many writes may wait; more wait outside, with their
	// context.
	queueJobs = 1024
	// groupJobs and groupBytes bound what is committed together.
	groupJobs  = 256
	groupBytes = 4 << 20
)

// job is one entry of the loop's queue: a write, or new settings.
type job struct {
	write       *write
	reconfigure *catalog.Container

	result Result
	err    error
	done   chan struct{}
}

// submit hands a job to the loop and waits until it is done. A job that was
// taken in is always waited for: its outcome is known, and durable.
func (p *Partition) submit(ctx context.Context, j *job) (Result, error) {
	select {
	case <-p.stop: // select picks at random, so this one is asked first
		return Result{}, ErrClosed
	default:
	}
	select {
	case p.queue <- j:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	case <-p.stop:
		return Result{}, ErrClosed
	}
	select {
	case <-j.done:
	case <-p.ended:
		// The loop drained the queue before it ended; a job put in after that
		// was not seen by anyone.
		select {
		case <-j.done:
		default:
			return Result{}, ErrClosed
		}
	}
	return j.result, j.err
}

// loop runs until the partition is closed.
func (p *Partition) loop() {
	defer close(p.ended)
	group := make([]*job, 0, groupJobs)
	for {
		select {
		case <-p.stop:
			p.refuse(ErrClosed)
			return
		case first := <-p.queue:
			p.linger()
			var last *job
			group, last = p.collect(group[:0], first)
			err := p.run(group)
			if err == nil && last != nil {
				err = p.reconfigure(last)
			}
			clear(group)
			if err != nil {
				p.fail(err)
				return
			}
		}
	}
}

// lingerYields bounds how often the loop steps aside for a group to grow.
const lingerYields = 4

// linger lets requests that are ready to run reach the queue, so that they share
// the group's sync: on busy processors that makes groups almost twice as large
// (DESIGN.md has figures), and on idle ones it takes no time.
func (p *Partition) linger() {
	for range lingerYields {
		before := len(p.queue)
		runtime.Gosched()
		if len(p.queue) == before {
			return
		}
	}
}

// collect takes what waits in the queue, up to a bound. New settings end the
// group: they come after it.
func (p *Partition) collect(group []*job, j *job) ([]*job, *job) {
	bytes := 0
	for {
		if j.reconfigure != nil {
			return group, j
		}
		group = append(group, j)
		bytes += len(j.write.row)
		if len(group) == groupJobs || bytes >= groupBytes {
			return group, nil
		}
		select {
		case j = <-p.queue:
		default:
			return group, nil
		}
	}
}

// run executes, commits and publishes a group, and answers it. An error means
// that the outcome of a commit is unknown.
func (p *Partition) run(group []*job) (err error) {
	if len(group) == 0 {
		return nil
	}
	v, err := p.beginGroup()
	if err != nil {
		return answer(group, err)
	}
	defer func() { p.endGroup(v, err) }()
	w := &p.writer
	w.begin(v, p.clock.Now())
	for _, j := range group {
		j.result, j.err = w.execute(j.write)
	}
	if w.batch.Len() > 0 {
		w.finish()
		if err := p.db.Commit(context.Background(), &w.batch); err != nil {
			return answer(group, fmt.Errorf("%w: %w", ErrFailed, err))
		}
		if err := p.publish(v.container); err != nil {
			return answer(group, fmt.Errorf("%w: %w", ErrFailed, err))
		}
	}
	return answer(group, nil)
}

// answer tells everyone in the group that their job is done, with err in place
// of their result if there is one.
func answer(group []*job, err error) error {
	for _, j := range group {
		if err != nil {
			j.result, j.err = Result{}, err
		}
		close(j.done)
	}
	return err
}

// publish shows the state after the last commit.
func (p *Partition) publish(c *catalog.Container) error {
	snap, err := p.db.Snapshot()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
	for identity := range p.writer.overlay {
		p.mu.cache.remove(p.mu.cache.slot([]byte(identity)))
	}
	p.mu.container, p.mu.lsn = c, p.writer.lsn
	p.mu.view = &view{snap: snap, container: c, lsn: p.writer.lsn, refs: 1}
	return nil
}

func (p *Partition) reconfigure(j *job) error {
	invariant.Check(j.reconfigure.RID == p.Container().RID, "settings of another container")
	if err := p.publish(j.reconfigure); err != nil {
		return answer([]*job{j}, err)
	}
	return answer([]*job{j}, nil)
}

// fail ends the partition after a commit whose outcome is unknown: nothing may
// be acknowledged that is not durable.
func (p *Partition) fail(err error) {
	p.closed.Do(func() { close(p.stop) })
	p.refuse(ErrFailed)
	if p.failed != nil {
		p.failed(err)
	}
}

// refuse answers what still waits.
func (p *Partition) refuse(err error) {
	for {
		select {
		case j := <-p.queue:
			_ = answer([]*job{j}, err)
		default:
			return
		}
	}
}

// writer is the state of the loop: what only it reads and changes.
type writer struct {
	p           *Partition
	lsn         uint64
	nextOrdinal uint64
	counters    counters

	// Of the group under way:
	batch   kv.Batch
	view    *view
	nowMs   int64
	overlay map[string]current // by identity: what the group has changed so far
	placed  map[uint64]string  // by ordinal: the identities of what it has written
	held    map[string]uint64  // by unique key: the holder's ordinal, 0 for none
	key     []byte             // reused for building keys
}

// begin starts a group at one moment.
func (w *writer) begin(v *view, nowMs int64) {
	invariant.Check(v.lsn == w.lsn, "the published lsn %d is not the last written %d", v.lsn, w.lsn)
	w.batch.Reset()
	w.view, w.nowMs = v, nowMs
	if w.overlay == nil {
		w.overlay, w.placed, w.held = map[string]current{}, map[uint64]string{}, map[string]uint64{}
	}
	clear(w.overlay)
	clear(w.placed)
	clear(w.held)
}

// finish adds to the batch what goes with every group.
func (w *writer) finish() {
	w.counters.flush(&w.batch, &w.p.prefix)
	w.batch.Set(w.p.prefix.metaKey(), meta{w.lsn, w.nextOrdinal}.encode())
}
