// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
)

const (
	// tick is how often a call is looked at.
	tick      = 10 * time.Millisecond
	heapInUse = "/memory/classes/heap/objects:bytes"
)

// watch stops calls that take too much. It belongs to one runtime.
type watch struct {
	runtime  *goja.Runtime
	maxTicks int
	growth   uint64
	// stopped is set together with the runtime's interrupt, for builtins, which the
	// interrupt does not reach.
	stopped atomic.Bool

	mu struct {
		sync.Mutex
		timer *time.Timer
		call  *watchedCall // nil between calls
	}
}

// watchedCall is a call under way.
type watchedCall struct {
	ctx   context.Context
	ticks int
	spent int // by the calls before
	heap  uint64
	err   error // why it was stopped
}

func newWatch(r *goja.Runtime, callTime time.Duration, growth uint64) *watch {
	return &watch{runtime: r, maxTicks: max(1, int(callTime/tick)), growth: growth}
}

// start begins to watch a call.
func (w *watch) start(ctx context.Context, spent int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.call = &watchedCall{ctx: ctx, spent: spent}
	if w.mu.timer == nil {
		w.mu.timer = time.AfterFunc(tick, w.look)
		return
	}
	w.mu.timer.Reset(tick)
}

// end returns how long the call took, and why it was stopped, if it was. Nothing is
// interrupted after it.
func (w *watch) end() (ticks int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mu.call
	w.mu.call = nil
	w.mu.timer.Stop()
	return c.ticks, c.err
}

// look is called at every tick.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mu.call
	if c == nil || c.err != nil {
		return // it came too late to be stopped
	}
	c.ticks++
	heap := heapBytes()
	if c.ticks == 1 {
		c.heap = heap
	}
	switch {
	case c.ctx.Err() != nil:
		c.err = c.ctx.Err()
	case c.ticks >= w.maxTicks || time.Duration(c.spent+c.ticks)*tick >= maxTotalTime:
		c.err = ErrTime
	case heap > c.heap+w.growth:
		c.err = ErrMemory
	default:
		w.mu.timer.Reset(tick)
		return
	}
	w.stopped.Store(true)
	w.runtime.Interrupt(c.err)
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: heapInUse}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
