// SPDX-License-Identifier: MIT

package clock

import "fmt"

// The guard decides how far to believe the wall clock. It compares the wall clock
// with the monotonic one, which nobody can set: as long as their difference (the
// offset) stays what it was, they agree. When it does not, the boot clock, which goes
// on while the machine sleeps, tells whether the wall clock stepped or the machine
// slept. It is arithmetic on readings only.
//
// The line is where time would be if the wall clock were not asked: it goes on at the
// boot clock's pace from where both last agreed. What the wall clock says is measured
// from it:
//
//	near the line                 followed
//	behind it                     time goes on along the line, ahead of the wall clock
//	up to a day before it         followed at once: a jump
//	further                       held back for ten minutes, along the line; then a jump
//
// A jump hides items at once, and puts what only it has expired in doubt: the horizon,
// up to which things may be taken away or told for good, stays on the line from before.

const (
	// AgreeWithinMs is how far the offset may move within AgreeForMs and still
	// count as agreement. It covers what is no error: an inserted leap second
	// (1000 ms), the rounding of two readings, and drift or slewing where the
	// monotonic clock is not slewed along, up to 2.5% of the time.
	AgreeWithinMs = 1500

	// AgreeForMs is how often the offset is taken anew, so that drift is followed.
	AgreeForMs = 60_000

	// MaxFollowedJumpMs is the largest jump of the wall clock that is followed at
	// once while running: a virtual machine that was paused looks the same.
	MaxFollowedJumpMs = dayMs

	// HoldMs is how long a larger one is held back.
	HoldMs = 10 * 60 * 1000

	// DoubtMs is how long a jump is in doubt, in time that a clock was open and the
	// wall clock stood by it. The monotonic clock measures it: while the machine
	// sleeps or the server is stopped nobody could notice.
	DoubtMs = dayMs

	dayMs = 24 * 60 * 60 * 1000

	// lullMs is by how little the wall clock may be behind for time to wait for it.
	// If it is more, and no step, time goes at half its pace until it has.
	lullMs = 50
)

// mode says what drives the time of a guard.
type mode int

const (
	following mode = iota // the wall clock
	holding               // the line: the wall clock is too far before it
	ahead                 // the line: the wall clock is behind it
)

type guard struct {
	offsetMs  int64 // wall minus monotonic, as last looked at closely
	sinceMono int64 // when that was taken
	awayMs    int64 // boot minus monotonic: how long the machine slept, and a constant
	lineMs    int64 // time minus boot: the line

	mode          mode
	heldMs        int64 // holding: wall minus boot, of the jump that is held back
	heldUntilBoot int64 // and until when it is

	// easing: the wall clock is a little behind, and time goes at half its pace from
	// easeMs at easeBoot on.
	easing           bool
	easeMs, easeBoot int64

	jumps       [MaxJumps]Jump
	countedMono int64 // up to here the days of the jumps were counted
}

// agree reports whether two offsets are near enough for the clocks to agree.
func agree(a, b int64) bool {
	return a-b <= AgreeWithinMs && b-a <= AgreeWithinMs
}

// bootMs is the boot clock at a reading, as far as it is known without reading it.
func (g *guard) bootMs(r Reading) int64 { return r.MonoMs + g.awayMs }

// observe takes in a reading and returns the time that it asks for. lastMs is the
// highest time returned so far. boot reads the boot clock: it is called only if the
// two others disagree.
func (g *guard) observe(r Reading, lastMs int64, boot func() int64) (wantMs int64) {
	g.count(r.MonoMs)
	offsetMs := r.WallMs - r.MonoMs
	stepped := !agree(g.offsetMs, offsetMs)
	if stepped {
		g.awayMs = boot() - r.MonoMs
	}
	retake := stepped || r.MonoMs-g.sinceMono >= AgreeForMs
	if retake {
		g.offsetMs, g.sinceMono = offsetMs, r.MonoMs
	}
	bootMs := g.bootMs(r)
	if g.easing {
		lastMs = max(lastMs, g.easedMs(bootMs))
	}
	switch jumpMs := r.WallMs - bootMs - g.lineMs; {
	case jumpMs < -AgreeWithinMs:
		g.leave(ahead, lastMs-bootMs)
	case jumpMs <= AgreeWithinMs:
		if g.mode != following || retake {
			g.lineMs += jumpMs
		}
		g.mode = following
	case min(jumpMs, r.WallMs-lastMs) <= MaxFollowedJumpMs:
		g.leap(r, lastMs)
	default:
		g.hold(r, lastMs)
	}
	if g.mode != following {
		g.easing = false
		return bootMs + g.lineMs
	}
	return g.ease(r, lastMs)
}

// leave stops following the wall clock: the line goes on from the highest time that
// was returned, if that is before it.
func (g *guard) leave(to mode, lastLineMs int64) {
	if g.mode == following {
		g.lineMs = max(g.lineMs, lastLineMs)
	}
	g.mode = to
}

// hold holds a jump back, until its time is over. One that steps again begins anew.
func (g *guard) hold(r Reading, lastMs int64) {
	bootMs := g.bootMs(r)
	heldMs := r.WallMs - bootMs
	if g.mode != holding || !agree(g.heldMs, heldMs) {
		g.heldMs, g.heldUntilBoot = heldMs, bootMs+HoldMs
	}
	g.leave(holding, lastMs-bootMs)
	if bootMs >= g.heldUntilBoot {
		g.leap(r, lastMs)
	}
}

// leap follows a jump of the wall clock, which is in doubt from then on.
func (g *guard) leap(r Reading, lastMs int64) {
	bootMs := g.bootMs(r)
	lineMs := bootMs + g.lineMs
	g.mode, g.lineMs = following, r.WallMs-bootMs
	if fromMs := max(lineMs, lastMs); fromMs < r.WallMs {
		g.jumps = addJump(g.jumps, Jump{FromMs: fromMs, ToMs: r.WallMs, GapMs: r.WallMs - lineMs, LeftMs: DoubtMs})
	}
}

// ease returns the time of a wall clock that is followed. Time never stands still for
// longer than lullMs: it goes at half its pace while the wall clock is a little behind.
func (g *guard) ease(r Reading, lastMs int64) int64 {
	bootMs := g.bootMs(r)
	if !g.easing {
		g.easeMs, g.easeBoot = lastMs, bootMs
	}
	wantMs := g.easedMs(bootMs)
	g.easing = r.WallMs < wantMs-lullMs
	if g.easing {
		return wantMs
	}
	return r.WallMs
}

func (g *guard) easedMs(bootMs int64) int64 { return g.easeMs + (bootMs-g.easeBoot)/2 }

// count lets the days of the jumps pass. They pass only while the wall clock stands by
// them: one that went back does not become true by waiting.
func (g *guard) count(monoMs int64) {
	passedMs := monoMs - g.countedMono
	g.countedMono = monoMs
	if g.mode != following {
		return
	}
	for i := range g.jumps {
		g.jumps[i].LeftMs = max(0, g.jumps[i].LeftMs-passedMs)
	}
}

// doubtMs is how far the horizon is behind the time: the sum of the jumps in doubt, for
// each of them moved the time away from the line before it.
func (g *guard) doubtMs() (sumMs, leftMs int64) {
	for _, j := range g.jumps {
		if j.LeftMs > 0 {
			sumMs += j.GapMs
			leftMs = max(leftMs, j.LeftMs)
		}
	}
	return sumMs, leftMs
}

// settle ends all doubts.
func (g *guard) settle() {
	for i := range g.jumps {
		g.jumps[i].LeftMs = 0
	}
}

// openGuardLocked starts the guard. If the machine was not booted since the state was
// saved, its line is known, and all is as if the clock had been open all along.
// Otherwise the wall clock is followed wherever it is past the floor, for the machine
// may have been off for as long; what only that expires is in doubt.
func (c *Clock) openGuardLocked() {
	lastMs := c.last.Load()
	r := c.source()
	r.WallMs = min(max(r.WallMs, 0), MaxMs)
	boot := c.boot(r)
	c.bootID = boot.key()
	g := &c.mu.guard
	g.jumps, g.countedMono, c.mu.quietUntilMono = c.mu.state.Jumps, r.MonoMs, r.MonoMs
	g.offsetMs, g.sinceMono = r.WallMs-r.MonoMs, r.MonoMs
	g.awayMs = boot.Ms - r.MonoMs
	c.mu.told.doubtMs, _ = g.doubtMs()
	switch {
	case lastMs == 0: // fresh data has nothing that could expire
		g.lineMs = r.WallMs - boot.Ms
	case c.bootID != BootKey{} && c.bootID == c.mu.state.Boot:
		g.lineMs = c.mu.state.LineMs
	default:
		g.lineMs = lastMs - boot.Ms
		if r.WallMs-lastMs > AgreeWithinMs {
			g.leap(r, lastMs)
		}
	}
	g.observe(r, lastMs, func() int64 { return boot.Ms })
	c.logChangesLocked(r, lastMs)
	c.publishLocked()
}

// observeLocked passes a reading to the guard, and its changes to the log and to
// the fast readers.
func (c *Clock) observeLocked(r Reading, lastMs int64) (wantMs int64) {
	g := &c.mu.guard
	wantMs = g.observe(r, lastMs, func() int64 { return c.boot(r).Ms })
	c.logChangesLocked(r, lastMs)
	c.publishLocked()
	return wantMs
}

// logChangesLocked says what has changed since it was last told. It tells one thing a
// minute, so that a wall clock that flutters cannot fill the log.
func (c *Clock) logChangesLocked(r Reading, lastMs int64) {
	g, told := &c.mu.guard, &c.mu.told
	now := telling{mode: g.mode}
	now.doubtMs, _ = g.doubtMs()
	if now == *told || r.MonoMs < c.mu.quietUntilMono {
		return
	}
	was := *told
	*told, c.mu.quietUntilMono = now, r.MonoMs+AgreeForMs
	nowMs := g.bootMs(r) + g.lineMs
	switch {
	case now.mode == holding && was.mode != holding:
		c.logger.Error("clock: "+adviceHeld, "wallMs", r.WallMs, "nowMs", nowMs)
	case now.mode == ahead && was.mode != ahead:
		c.logger.Warn("clock: "+adviceAhead, "wallMs", r.WallMs, "nowMs", nowMs, "aheadMs", nowMs-r.WallMs)
	case now.doubtMs > was.doubtMs:
		c.logger.Warn("clock: "+adviceDoubt, "wallMs", r.WallMs, "jumpMs", now.doubtMs-was.doubtMs)
	case now.mode != was.mode:
		c.logger.Info("clock: the wall clock is followed again", "wallMs", r.WallMs, "lastMs", lastMs)
	default:
		c.logger.Info("clock: a jump of the wall clock is no longer in doubt", "wallMs", r.WallMs, "horizonMs", lastMs-now.doubtMs)
	}
}

// telling is what the log has heard.
type telling struct {
	mode    mode
	doubtMs int64
}

// Confirm says that the wall clock is right: a jump that is held back is followed, and
// none is in doubt any more. It cannot be taken back, and is durable when it returns.
// Without a jump it is ErrNothingToConfirm, and ErrAhead if the wall clock is behind.
func (c *Clock) Confirm() error {
	c.saver.Lock()
	defer c.saver.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	r, wantMs := c.lookLocked()
	g := &c.mu.guard
	doubtMs, _ := g.doubtMs()
	switch {
	case c.mu.closed:
		return ErrClosed
	case g.mode == ahead:
		return ErrAhead
	case g.mode == holding:
		g.leap(r, c.last.Load())
		wantMs = r.WallMs
	case doubtMs == 0:
		return ErrNothingToConfirm
	}
	g.settle()
	c.mu.told = telling{}
	next := c.nextLocked(min(max(c.mu.floorMs, wantMs)+ReserveMs, MaxMs))
	err := c.save(next)
	c.settleLocked(next, err)
	if err != nil {
		return fmt.Errorf("save the confirmed clock: %w", err)
	}
	c.logger.Warn("clock: the wall clock was confirmed", "wallMs", r.WallMs, "doubtMs", doubtMs)
	return nil
}

// Horizon is the time up to which what has expired may be taken away, or told, for good:
// the time itself, or, while jumps of the wall clock are in doubt, the line from before
// them. It may go back when a clock is opened anew.
func (c *Clock) Horizon() int64 {
	c.Now() // for the floor's sake
	c.mu.Lock()
	defer c.mu.Unlock()
	_, wantMs := c.lookLocked()
	return c.horizonLocked(c.timeLocked(wantMs))
}

func (c *Clock) horizonLocked(nowMs int64) int64 {
	doubtMs, _ := c.mu.guard.doubtMs() // a test clock has none
	return max(0, nowMs-doubtMs)
}
