// SPDX-License-Identifier: MIT

// The partition loop: collect, execute, commit, publish.

package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
)

const (
	// queueJobs is how many jobs may wait in the queue. The callers of further ones wait
	// for room, or until their context ends.
	queueJobs = 1024
	// groupJobs and groupBytes bound the jobs that are committed together.
	groupJobs  = 256
	groupBytes = 4 << 20
	// fullBytes ends a group early: how much an Update writes is not known before it
	// executes.
	fullBytes = 16 << 20
	// keptGroupBytes is the largest group whose memory the loop keeps for the next one.
	keptGroupBytes = 1 << 20
)

// job is one entry of the loop's queues: a write, a bundle, new settings, a background task,
// or the seal of a split, after which the partition takes nothing any more.
type job struct {
	write       *write
	bundle      *bundle
	reconfigure *catalog.Container
	task        *task
	seal        func() error

	result Result
	err    error
	done   chan struct{}
}

// bytes is about what the job adds to a group.
func (j *job) bytes() int {
	if j.bundle != nil {
		return j.bundle.bytes()
	}
	return j.write.bytes()
}

// failing returns the logical partition of the write that failed with err.
func (j *job) failing(err error) []byte {
	w := j.write
	var failed *WriteError
	if errors.As(err, &failed) {
		w = j.bundle.writes[failed.Index]
	}
	return w.place()
}

// task is background work of one group, planned outside of the loop. No request waits for
// it in the queue.
type task struct {
	do func(*writer) error
	// under has the settings that the task was planned under: it is void under others. Nil
	// is for any.
	under *catalog.Container
	// awaited: a caller waits for the result, which must be durable.
	awaited bool
}

// submit passes a job to the loop and waits until it is done. Once the job is in the queue,
// submit always waits for it: its outcome is then known, and durable.
func (p *Partition) submit(ctx context.Context, j *job) (Result, error) {
	select {
	case <-p.stop: // checked first, since the next select chooses at random
		return Result{}, ErrClosed
	default:
	}
	j.done = make(chan struct{})
	queue := p.queue
	if j.task != nil {
		queue = p.background
	}
	select {
	case queue <- j:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	case <-p.stop:
		return Result{}, ErrClosed
	}
	p.returning.queued(len(p.queue))
	return p.await(j)
}

// await waits for a job that is in a queue.
func (p *Partition) await(j *job) (Result, error) {
	select {
	case <-j.done:
	case <-p.ended:
		// The loop drained the queue before it ended. It may not have seen a job that came
		// after that.
		select {
		case <-j.done:
		default:
			return Result{}, ErrClosed
		}
	}
	return j.result, j.err
}

// loop runs until the partition is closed. Requests come first: a task runs when none
// waits, or at the end of a group of requests, whose sync it shares. Only a partition that
// is in debt lets requests wait for a purge (debt.go).
func (p *Partition) loop() {
	defer close(p.ended)
	group := make([]*job, 0, groupJobs)
	for {
		var first, task, last *job
		select {
		case <-p.stop:
			p.refuse(ErrClosed)
			return
		case first = <-p.queue:
			p.awaitReturning()
			p.linger()
			task = p.carried()
		case task = <-p.background:
			select {
			case first = <-p.queue:
			default:
			}
		}
		group, last = p.collect(group[:0], first)
		if task != nil {
			group = append(group, task)
		}
		var err error
		for rest := group; len(rest) > 0 && err == nil; {
			rest, err = p.commit(rest)
		}
		switch {
		case err != nil || last == nil:
		case last.seal != nil:
			if p.sealed(last) {
				return
			}
		default:
			err = p.reconfigure(last)
		}
		clear(group)
		if err != nil {
			p.fail(err)
			return
		}
	}
}

// lingerYields bounds how often the loop yields so that a group can grow.
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

// collect takes the jobs that wait in the queue, up to a bound. New settings end the group,
// and are applied after it. So does the seal of a split.
func (p *Partition) collect(group []*job, j *job) ([]*job, *job) {
	bytes := 0
	for j != nil {
		if j.reconfigure != nil || j.seal != nil {
			return group, j
		}
		group = append(group, j)
		bytes += j.bytes()
		if len(group) == groupJobs || bytes >= groupBytes {
			return group, nil
		}
		select {
		case j = <-p.queue:
		default:
			return group, nil
		}
	}
	return group, nil
}

// commit executes, commits, publishes and answers the first jobs of a group: all, unless
// they write too much for one commit. It returns the others. An error means that the
// outcome of a commit is unknown. All jobs are answered with it.
func (p *Partition) commit(group []*job) (rest []*job, err error) {
	p.returning.began = time.Now()
	v, at, err := p.beginGroup()
	if err != nil {
		err = answer(group, err)
		if p.shared() {
			return nil, nil // the engine cannot be reached, or the partition is closed
		}
		return nil, err
	}
	w := &p.writer
	w.begin(v, at)
	was := w.before()
	w.warm(group)
	done, last := 0, (*job)(nil)
	for done < len(group) && w.batch.Bytes() < fullBytes {
		j := group[done]
		switch {
		case j.write != nil:
			j.result, j.err = w.execute(j.write)
		case j.bundle != nil:
			j.err = w.executeAll(j.bundle)
		default:
			last = j
		}
		done++
	}
	written, requests := len(w.items), done
	if last != nil {
		requests--
		if w.batch.Len() == 0 && !last.task.awaited && !w.log.on {
			// Clients cannot see what the task changes, so it need not be durable: a crash
			// may undo it.
			w.batch.Lazy()
		}
		if t := last.task; t.under != nil && t.under.Epoch != v.container.Epoch {
			last.err = errStale
		} else {
			last.err = t.do(w)
		}
	}
	switch {
	case w.batch.Len() > 0 || w.indexed:
		if err = w.finish(); err == nil {
			err = p.publish(v.container)
		}
	case last != nil:
		p.advance()
	}
	// The group ends before its answers: a client that has its answer finds nothing of the
	// group under way, so that events need not wait for it.
	if err != nil && p.shared() {
		return p.refused(v, group[:done], group[done:], was, err)
	}
	p.endGroup(v, err)
	if requests > 0 {
		p.returning.answers(requests, len(p.queue), time.Now())
	}
	if err != nil {
		return nil, answer(group, fmt.Errorf("%w: %w", ErrFailed, err))
	}
	p.debt.settle(written, w.purged.Items)
	if a := &w.assisted; a.Items > 0 {
		p.ledger.Add(ru.Assisted, a.units, a.Items, a.Bytes)
	}
	if w.batch.Bytes() > keptGroupBytes {
		w.reset() // frees memory: the next group may come much later
	}
	return group[done:], answer(group[:done], nil)
}

// answer marks all jobs of the group as done. If err is not nil, it replaces their results.
func answer(group []*job, err error) error {
	for _, j := range group {
		if err != nil {
			j.result, j.err = Result{}, err
		}
		close(j.done)
	}
	return err
}

// publish publishes the state after the last commit, under the settings of c. New settings
// hold from here on. Their moment is taken under the lock: a reader that used the old ones
// did so at this moment or before.
//
// On a shared engine the next reader, or the next group, takes the snapshot: the group still
// has its own, and if groups held one while they waited for another, those of several
// partitions would wait for each other.
func (p *Partition) publish(c *catalog.Container) error {
	var snap kv.Snapshot
	if !p.shared() {
		var err error
		if snap, err = p.snapshot(); err != nil {
			return err
		}
	}
	w := &p.writer
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.meta.Epoch != c.Epoch {
		w.meta.adopt(c, p.time())
		w.log.adopt(c, &w.meta)
		p.mu.soonestMs = 0 // it was of the old settings
	}
	was := p.mu.now
	p.mu.now = &published{
		container: c, meta: w.meta, rules: w.meta.rules(), number: was.number + 1, purged: was.purged.Plus(w.purged),
	}
	p.mu.sending = false // what was sent is published: a snapshot shows it
	p.drop()
	if snap != nil {
		p.mu.view = p.newView(snap)
	}
	p.follow(w.tx, w.dropOld || was.container.IndexGeneration != c.IndexGeneration)
	return nil
}

// follow updates what is derived from the state with a transaction that is being published;
// p.mu is held. All caches follow one rule: their content is right for the published state.
// So what a transaction has changed is removed here, in the step that publishes the change,
// and a reader adds what it has read only while its view is the published one.
func (p *Partition) follow(t *tx, reindexed bool) {
	p.mu.soonestMs = min(p.mu.soonestMs, t.soonestMs)
	p.rows.forget(t.changes)
	if reindexed {
		clear(p.mu.tracked)
		p.mu.spans.empty()
	}
	p.mu.spans.forget(&p.prefix, t.meta.Generation, t.changes)
	p.track(t.changes)
	p.mu.journal.note(t)
	p.mu.kept.add(t.gone)
	p.subtractPurged(t.purgedItems)
}

// advance publishes marks that purge moved without finding an item. The next commit makes
// them durable.
func (p *Partition) advance() {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := *p.mu.now
	next.meta.Marks = p.writer.meta.Marks
	p.mu.now = &next
}

// reconfigure applies new settings. They are durable in the catalog, and are so here before
// the answer. They are published before they are committed: see "Settings change in order"
// in DESIGN.md.
func (p *Partition) reconfigure(j *job) error {
	invariant.Check(j.reconfigure.RID == p.Container().RID, "settings of another container")
	w := &p.writer
	w.reset()
	generation := w.meta.Generation
	if err := p.publish(j.reconfigure); err != nil {
		return answer([]*job{j}, err)
	}
	if p.shared() {
		// While a commit is under way, readers need a view that was taken before.
		if v, _, err := p.beginGroup(); err == nil {
			defer p.endGroup(v, nil)
		}
	}
	w.dropOld = w.dropOld || generation != w.meta.Generation
	err := w.finish()
	switch {
	case err == nil:
		p.mu.Lock()
		p.mu.sending = false
		p.mu.Unlock()
	case p.shared():
		// Readers may have used the settings already, so they cannot be taken back. The next
		// open adopts them, if this commit did not happen.
		p.shut()
		_ = answer([]*job{j}, fmt.Errorf("%w: new settings could not be stored: %w", ErrClosed, err))
		return err
	default:
		err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return answer([]*job{j}, err)
}

// fail ends the partition after a commit whose outcome is unknown, or that its lease did not
// allow: no later write may be acknowledged.
func (p *Partition) fail(err error) {
	p.stopLoop()
	if p.shared() {
		p.refuse(ErrClosed)
		p.lose(err)
		return
	}
	p.refuse(ErrFailed)
	if p.failed != nil {
		p.failed(err)
	}
}

// refuse answers the jobs that still wait with an error.
func (p *Partition) refuse(err error) {
	for {
		select {
		case j := <-p.queue:
			_ = answer([]*job{j}, err)
		case j := <-p.background:
			_ = answer([]*job{j}, err)
		default:
			return
		}
	}
}

// writer executes transactions. The loop has one, and so has each draft.
type writer struct {
	p        *Partition
	quotas   Quotas
	counters counters
	totals   logicalTotals
	dropOld  bool  // index rows of earlier generations have to be removed
	indexed  bool  // the group has moved IndexedTo
	marked   marks // as last committed

	*tx      // the present one: &group or &child
	group tx // the transaction of the group or the draft
	child tx // the transaction of a bundle
	out   kv.Batch
	key   []byte // reused for building keys
}

// init initialises a writer, with no group. It must not be copied from then on.
func (w *writer) init() {
	w.tx = &w.group
	w.batch = &w.out
}

// moment is when a group happens. Expiry is decided at nowMs, as reads do. writeMs is the
// time of the writes, up to a millisecond later: an item lives from after its write to the
// end of its last millisecond.
type moment struct{ nowMs, writeMs int64 }

// begin starts a group at one moment.
func (w *writer) begin(v *view, at moment) {
	invariant.Check(v.meta.LSN == w.meta.LSN, "the published lsn %d is not the last written %d", v.meta.LSN, w.meta.LSN)
	w.reset()
	w.view, w.moment = v, at
}

// reset forgets the last group.
func (w *writer) reset() {
	w.batch.Reset()
	w.tx.reset()
	w.soonestMs, w.purged, w.assisted, w.gone, w.indexed = never, Amount{}, assisted{}, eventStep{}, false
}

// finish adds the rows that every group writes, and commits the batch.
func (w *writer) finish() error {
	x := &w.p.prefix
	w.counters.flush(w.buckets, w.batch, x)
	w.totals.flush(w.parts, w.batch, x, w.meta.LSN)
	if w.dropOld {
		w.dropGenerations()
		w.dropOld = false
	}
	w.log.flush(w.batch, w.p.far, x, w.meta.LSN)
	w.meta.Commits++
	w.batch.Set(x.metaKey(), w.meta.encode())
	w.marked = w.meta.Marks
	if held := w.p.held.Load(); held != nil {
		return w.fenced(held)
	}
	return w.p.db.Commit(context.Background(), w.batch)
}
