// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"sync"
	"time"
)

// tick is how often the limits of a call are checked.
const tick = 10 * time.Millisecond

// watch kills the worker of a call that takes too long, or whose client has gone. It
// belongs to one sandbox.
type watch struct {
	mu struct {
		sync.Mutex
		timer *time.Timer
		call  *watchedCall // nil between calls
	}
}

// watchedCall is a call under way.
type watchedCall struct {
	ctx    context.Context
	worker *process
	began  time.Time
	limit  time.Duration
	total  time.Duration // of all calls in its sandbox
	ticks  int
	spent  int   // by the calls before
	err    error // why it was stopped
}

// start begins to watch a call.
func (w *watch) start(c watchedCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.call = &c
	if w.mu.timer == nil {
		w.mu.timer = time.AfterFunc(tick, w.look)
		return
	}
	w.mu.timer.Reset(tick)
}

// end returns how many ticks the call took, and why it was stopped, nil if it was not. The
// watch does not kill the worker after that.
func (w *watch) end() (ticks int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mu.call
	w.mu.call = nil
	w.mu.timer.Stop()
	return c.ticks, c.err
}

// look checks the limits at every tick.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mu.call
	if c == nil || c.err != nil {
		return // the call has ended, or is stopped already
	}
	c.ticks++
	switch {
	case c.ctx.Err() != nil:
		c.err = c.ctx.Err()
	case time.Since(c.began) >= c.limit || time.Duration(c.spent+c.ticks)*tick >= c.total:
		c.err = ErrTime
	default:
		w.mu.timer.Reset(tick)
		return
	}
	c.worker.kill(c.err)
}
