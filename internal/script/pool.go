// SPDX-License-Identifier: MIT

// The pool of workers, and the requests that use them.

package script

import (
	"context"
	"sync"
	"time"
)

// defaultIdle is how long a worker waits for another script.
const defaultIdle = 30 * time.Second

// PoolOptions are the parameters of a pool.
type PoolOptions struct {
	Gate GateOptions
	// Memory is what each worker may take, in bytes; 0 is DefaultMemory.
	Memory int64
	// Time is how long a stored procedure or a trigger may take; 0 is DefaultTime. Calls
	// of functions have shares of it.
	Time time.Duration
	// Reserve takes a worker's memory from the budget of all requests, and returns a function
	// that gives it back. It may wait. Nil reserves nothing.
	Reserve func(ctx context.Context, bytes int64) (release func(), err error)
	// Idle is how long a worker without work is kept; 0 is half a minute.
	Idle time.Duration
}

// Pool starts and keeps the workers. The first is started for the first script.
type Pool struct {
	o    PoolOptions
	gate *gate

	mu struct {
		sync.Mutex
		idle   []idleProcess // the last one was used most recently
		busy   map[*process]struct{}
		sweep  *time.Timer // nil while none is idle
		closed bool
	}
}

type idleProcess struct {
	*process
	since time.Time
}

// NewPool returns a pool without workers.
func NewPool(o PoolOptions) *Pool {
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Time == 0 {
		o.Time = DefaultTime
	}
	if o.Idle == 0 {
		o.Idle = defaultIdle
	}
	p := &Pool{o: o, gate: newGate(o.Gate)}
	p.mu.busy = map[*process]struct{}{}
	return p
}

// Time returns how long a stored procedure or a trigger may take.
func (p *Pool) Time() time.Duration { return p.o.Time }

// share returns a part of that time.
func (p *Pool) share(part float64) time.Duration { return time.Duration(part * float64(p.o.Time)) }

// Load returns how many scripts are running, and how many requests wait to run one.
func (p *Pool) Load() (running, waiting int) { return p.gate.load() }

// Enter waits for a slot to run scripts; the caller calls Leave. The error is [ErrBusy], the
// context's, or that of the reservation. Not reentrant: callers that hold a slot and wait for
// a second one may deadlock.
func (p *Pool) Enter(ctx context.Context) (*Seat, error) {
	if err := p.gate.enter(ctx); err != nil {
		return nil, err
	}
	s := &Seat{pool: p, release: func() {}}
	if p.o.Reserve != nil {
		release, err := p.o.Reserve(ctx, p.o.Memory)
		if err != nil {
			p.gate.leave()
			return nil, err
		}
		s.release = release
	}
	return s, nil
}

// Close ends all workers. Scripts that run in them fail with [ErrClosed].
func (p *Pool) Close() {
	p.mu.Lock()
	p.mu.closed = true
	idle := p.mu.idle
	p.mu.idle = nil
	for busy := range p.mu.busy {
		busy.kill(ErrClosed)
	}
	if p.mu.sweep != nil {
		p.mu.sweep.Stop()
	}
	p.mu.Unlock()
	for _, worker := range idle {
		_ = worker.end() // of no interest: it had nothing to do
	}
}

// take returns a worker: one that is idle, or else a new one.
func (p *Pool) take() (*process, error) {
	if worker := p.takeIdle(); worker != nil {
		return worker, nil
	}
	worker, err := startProcess(p.o.Memory)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	closed := p.mu.closed
	p.mu.busy[worker] = struct{}{}
	p.mu.Unlock()
	if closed {
		worker.kill(ErrClosed)
		return nil, p.drop(worker)
	}
	return worker, nil
}

// takeIdle returns an idle worker, nil if there is none.
func (p *Pool) takeIdle() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.mu.idle)
	if n == 0 {
		return nil
	}
	worker := p.mu.idle[n-1].process
	p.mu.idle = p.mu.idle[:n-1]
	p.mu.busy[worker] = struct{}{}
	return worker
}

// put takes a worker back.
func (p *Pool) put(worker *process) {
	fit := worker.rest()
	p.mu.Lock()
	delete(p.mu.busy, worker)
	fit = fit && !p.mu.closed
	if fit {
		p.mu.idle = append(p.mu.idle, idleProcess{worker, time.Now()})
		if p.mu.sweep == nil {
			p.mu.sweep = time.AfterFunc(p.o.Idle, p.endIdle)
		}
	}
	p.mu.Unlock()
	if !fit {
		_ = worker.end() // it will be replaced, so the reason does not matter
	}
}

// drop ends a worker that failed, and returns why it did.
func (p *Pool) drop(worker *process) error {
	err := worker.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.busy, worker)
	return err
}

// endIdle ends the workers that have been idle for long enough.
func (p *Pool) endIdle() {
	p.mu.Lock()
	var over []idleProcess
	for len(p.mu.idle) > 0 && time.Since(p.mu.idle[0].since) >= p.o.Idle {
		over = append(over, p.mu.idle[0])
		p.mu.idle = p.mu.idle[1:]
	}
	p.mu.sweep = nil
	if len(p.mu.idle) > 0 && !p.mu.closed {
		p.mu.sweep = time.AfterFunc(p.o.Idle-time.Since(p.mu.idle[0].since), p.endIdle)
	}
	p.mu.Unlock()
	for _, worker := range over {
		_ = worker.end() // of no interest: it had nothing to do
	}
}

// Seat is a slot to run scripts in, with one worker. It is for one goroutine.
type Seat struct {
	pool    *Pool
	worker  *process // nil before the first script, and after a worker has ended
	release func()
}

// Leave gives the slot back.
func (s *Seat) Leave() {
	if s.worker != nil {
		s.pool.put(s.worker)
		s.worker = nil
	}
	s.release()
	s.pool.gate.leave()
}

func (s *Seat) process() (*process, error) {
	if s.worker == nil {
		worker, err := s.pool.take()
		if err != nil {
			return nil, err
		}
		s.worker = worker
	}
	return s.worker, nil
}

// lost ends a worker that can no longer be used, and returns why it ended. The next script
// gets another one.
func (s *Seat) lost(worker *process) error {
	if s.worker == worker {
		s.worker = nil
	}
	return s.pool.drop(worker)
}
