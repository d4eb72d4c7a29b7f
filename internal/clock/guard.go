// SPDX-License-Identifier: MIT

package clock

import "fmt"

// The guard decides whether to follow the wall clock. It compares the wall clock with
// the monotonic clock, which cannot be set: as long as their difference (the offset)
// stays the same, they agree. When it changes, the boot clock, which also counts while
// the machine sleeps, shows whether the wall clock stepped or the machine slept. The
// guard is arithmetic on readings only.
//
// The line is where time would be without the wall clock: it goes on at the boot clock's
// pace from where both last agreed. The wall clock is compared with it:
//
//	near the line                 followed
//	behind it                     time goes on along the line, ahead of the wall clock
//	up to a day past it           followed at once: a jump
//	further                       held back for ten minutes, along the line; then a jump
//
// A jump hides items at once. Items that expired only because of it are in doubt: the
// horizon, up to which expired items may be purged or reported, stays on the line from
// before the jump.

const (
	// AgreeWithinMs is how far the offset may move within AgreeForMs while the clocks
	// still agree. It allows for an inserted leap second (1000 ms), for the rounding of
	// two readings, and for drift, or slewing that leaves the monotonic clock alone, of
	// up to 2.5%.
	AgreeWithinMs = 1500

	// AgreeForMs is how often the offset is measured again, so that drift is followed.
	AgreeForMs = 60_000

	// MaxFollowedJumpMs is the largest jump of the wall clock that is followed at once
	// while the clock is open: the pause of a virtual machine looks the same.
	MaxFollowedJumpMs = dayMs

	// HoldMs is how long a larger jump is held back.
	HoldMs = 10 * 60 * 1000

	// DoubtMs is how long a jump is in doubt. Only time counts in which the clock is
	// open and follows the wall clock; the monotonic clock measures it. While the
	// machine sleeps or the server is stopped, no operator could notice a wrong time.
	DoubtMs = dayMs

	dayMs = 24 * 60 * 60 * 1000

	// lullMs is how far the wall clock may be behind while time waits for it. If it is
	// further behind, but not by a step, time goes at half its pace until the wall clock
	// has caught up.
	lullMs = 50
)

// mode says what drives the time of a guard.
type mode int

const (
	following mode = iota // the wall clock
	holding               // the line: the wall clock is too far past it
	ahead                 // the line: the wall clock is behind it
)

type guard struct {
	offsetMs  int64 // wall minus monotonic, as last measured
	sinceMono int64 // when that was
	awayMs    int64 // boot minus monotonic: the time the machine slept, plus a constant
	lineMs    int64 // time minus boot: the line

	mode          mode
	heldMs        int64 // holding: wall minus boot, of the jump that is held back
	heldUntilBoot int64 // holding: the boot clock's time when it is followed

	// easing: the wall clock is a little behind, and time goes at half its pace from
	// easeMs at easeBoot on.
	easing           bool
	easeMs, easeBoot int64

	jumps       [MaxJumps]Jump
	countedMono int64 // the monotonic time up to which doubts were counted
}

// agree reports whether two offsets are near enough for the clocks to agree.
func agree(a, b int64) bool {
	return a-b <= AgreeWithinMs && b-a <= AgreeWithinMs
}

// bootMs returns the boot clock's time at a reading, computed from the last time that
// the boot clock was read.
func (g *guard) bootMs(r Reading) int64 { return r.MonoMs + g.awayMs }

// observe applies a reading and returns the time that it gives. lastMs is the highest
// time returned so far. boot reads the boot clock: it is called only if the two other
// clocks disagree.
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
// was returned, if that is past the line.
func (g *guard) leave(to mode, lastLineMs int64) {
	if g.mode == following {
		g.lineMs = max(g.lineMs, lastLineMs)
	}
	g.mode = to
}

// hold holds a jump back for HoldMs, and then follows it. A further step of the wall
// clock starts the wait again.
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

// count shortens the doubts by the time that has passed. It does so only while the wall
// clock is followed: a jump that the wall clock has taken back stays in doubt.
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

// doubtMs returns how far the horizon is behind the time, and how long the longest doubt
// still lasts. The first is the sum of the jumps in doubt, since each of them moved the
// time away from the line before it.
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

// openGuardLocked starts the guard. If the state was saved in the present boot, its line
// still holds, as if the clock had been open all along. Otherwise the wall clock is
// followed however far it is past the floor, since the machine may have been off that
// long; items that expire only because of that are in doubt.
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
	c.mu.logged.doubtMs, _ = g.doubtMs()
	switch {
	case lastMs == 0: // fresh data: there are no items that could expire
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

// observeLocked passes a reading to the guard, logs what changed, and publishes it to
// the fast path.
func (c *Clock) observeLocked(r Reading, lastMs int64) (wantMs int64) {
	g := &c.mu.guard
	wantMs = g.observe(r, lastMs, func() int64 { return c.boot(r).Ms })
	c.logChangesLocked(r, lastMs)
	c.publishLocked()
	return wantMs
}

// logChangesLocked logs what has changed since the last line. It logs one line a minute
// at most, so that a wall clock that steps often cannot fill the log.
func (c *Clock) logChangesLocked(r Reading, lastMs int64) {
	g, logged := &c.mu.guard, &c.mu.logged
	now := loggedState{mode: g.mode}
	now.doubtMs, _ = g.doubtMs()
	if now == *logged || r.MonoMs < c.mu.quietUntilMono {
		return
	}
	was := *logged
	*logged, c.mu.quietUntilMono = now, r.MonoMs+AgreeForMs
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

// loggedState is the part of the guard's state that was last logged.
type loggedState struct {
	mode    mode
	doubtMs int64
}

// Confirm declares the wall clock right: a jump that is held back is followed, and all
// doubts end. It cannot be undone, and is durable when it returns. The error is
// ErrNothingToConfirm if there is no such jump, and ErrAhead if the wall clock is behind.
func (c *Clock) Confirm() error {
	if c.follow != nil {
		return c.follow.confirm(c)
	}
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
	c.mu.logged = loggedState{}
	next := c.nextLocked(min(max(c.mu.floorMs, wantMs)+ReserveMs, MaxMs))
	err := c.save(next)
	c.settleLocked(next, err)
	if err != nil {
		return fmt.Errorf("save the confirmed clock: %w", err)
	}
	c.logger.Warn("clock: the wall clock was confirmed", "wallMs", r.WallMs, "doubtMs", doubtMs)
	return nil
}

// Horizon returns the time up to which expired items may be purged and reported: the time
// itself or, while jumps of the wall clock are in doubt, the line from before them. It
// may go back when the clock is opened again.
func (c *Clock) Horizon() int64 {
	if c.follow != nil {
		return c.follow.horizon(c)
	}
	c.Now() // extends the floor if that is due
	c.mu.Lock()
	defer c.mu.Unlock()
	_, wantMs := c.lookLocked()
	return c.horizonLocked(c.timeLocked(wantMs))
}

func (c *Clock) horizonLocked(nowMs int64) int64 {
	doubtMs, _ := c.mu.guard.doubtMs() // a test clock has none
	return max(0, nowMs-doubtMs)
}
