// SPDX-License-Identifier: MIT

package clock

import "math"

// The floor is saved ahead of use: no time above it is returned, so a restart that
// begins at the floor cannot go back. An idle clock, whose time is not read, saves
// nothing.

const (
	// ReserveMs is how far a save puts the floor ahead. It bounds how often a busy clock
	// saves, once a second, and how far ahead time begins after a crash.
	ReserveMs = 1000

	// extendWithinMs is how near to the floor time comes before a save extends it
	// in the background: enough for a slow disk, so that no caller waits.
	extendWithinMs = ReserveMs / 2

	// retrySaveMs is the least monotonic time between a failed save and the next.
	retrySaveMs = 100
)

// dueLocked reports whether the floor should be extended. A frozen clock stands on
// its floor and needs none ahead.
func (c *Clock) dueLocked(wantMs int64) bool {
	return !c.mu.closed && !c.mu.state.Frozen && c.mu.floorMs < MaxMs && wantMs > c.mu.floorMs-extendWithinMs
}

// extendSoon starts a background save unless one is under way.
func (c *Clock) extendSoon(monoMs int64) {
	if c.saving.Load() || monoMs < c.retryAtMono.Load() || !c.saving.CompareAndSwap(false, true) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closing {
		return
	}
	c.background.Go(func() {
		c.extend()
		c.saving.Store(false)
	})
}

// extend saves a floor further ahead, and returns the time. It checks again under saver
// whether that is due, so a caller that waited for another's save does not save again.
func (c *Clock) extend() int64 {
	c.saver.Lock()
	defer c.saver.Unlock()

	c.mu.Lock()
	r, wantMs := c.lookLocked()
	if !c.dueLocked(wantMs) || r.MonoMs < c.retryAtMono.Load() {
		defer c.mu.Unlock()
		return c.timeLocked(wantMs)
	}
	next := c.nextLocked(min(max(c.mu.floorMs, wantMs)+ReserveMs, MaxMs))
	c.mu.Unlock()

	err := c.save(next)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(next, err)
	return c.timeLocked(wantMs)
}

// nextLocked returns the state to save with a floor.
func (c *Clock) nextLocked(floorMs int64) State {
	next := c.mu.state
	next.FloorMs = floorMs
	if !c.test {
		g := &c.mu.guard
		next.Boot, next.LineMs, next.Jumps = c.bootID, g.lineMs, g.jumps
	}
	return next
}

// settleLocked applies the outcome of a save, by invariant 4.
func (c *Clock) settleLocked(tried State, err error) {
	if err != nil {
		c.mu.floorMs = min(c.mu.floorMs, tried.FloorMs)
		// Counted from the end of the attempt: otherwise each caller that waited for a
		// slow failure would begin another attempt.
		c.retryAtMono.Store(c.source().MonoMs + retrySaveMs)
		if c.mu.saveErr == nil {
			c.logger.Error("clock: floor not saved, database time stands still when it is reached", "floorMs", c.mu.floorMs, "error", err)
		}
	} else {
		c.mu.state, c.mu.floorMs = tried, tried.FloorMs
		c.retryAtMono.Store(math.MinInt64)
		if c.mu.saveErr != nil {
			c.logger.Info("clock: floor saved again", "floorMs", c.mu.floorMs)
		}
	}
	c.mu.saveErr = err
	c.publishLocked()
}

// publishLocked publishes the state of the guard and the floor to the fast path.
func (c *Clock) publishLocked() {
	if c.test {
		return
	}
	g := &c.mu.guard
	next := view{
		offsetMs:    g.offsetMs,
		recheckMono: g.sinceMono + AgreeForMs,
		floorMs:     c.mu.floorMs,
		extendMs:    c.mu.floorMs - extendWithinMs,
		paced:       g.mode != following || g.easing,
		easing:      g.easing,
	}
	switch {
	case g.easing:
		next.baseMs, next.baseMono = g.easeMs, g.easeBoot-g.awayMs
	case next.paced:
		next.baseMs = g.awayMs + g.lineMs
	}
	if g.mode == holding {
		next.recheckMono = min(next.recheckMono, g.heldUntilBoot-g.awayMs)
	}
	if next.floorMs == MaxMs {
		next.extendMs = MaxMs
	}
	if v := c.view.Load(); v == nil || *v != next {
		fresh := next // so that next itself stays on the stack
		c.view.Store(&fresh)
	}
}
