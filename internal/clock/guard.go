// SPDX-License-Identifier: MIT

package clock

// The guard decides how far to believe the wall clock. It compares the wall clock
// with the monotonic one, which nobody can set: as long as their difference (the
// offset) stays what it was, they agree. It is arithmetic on readings only.

const (
	// AgreeWithinMs is how far the offset may move within AgreeForMs and still
	// count as agreement. It covers what is no error: an inserted leap second
	// (1000 ms), the rounding of two readings, and drift or slewing where the
	// monotonic clock is not slewed along, up to 2.5% of the time.
	AgreeWithinMs = 1500

	// AgreeForMs is how long the clocks must agree before purge trusts time again.
	AgreeForMs = 60_000

	// MaxFollowedJumpMs is the largest forward jump of the wall clock that is
	// followed while running: a laptop that slept for a week.
	MaxFollowedJumpMs = 7 * 24 * 60 * 60 * 1000

	// RestartJumpWaitMs is how long purge waits after a restart that found the wall
	// clock more than MaxFollowedJumpMs past the saved floor.
	RestartJumpWaitMs = 10 * 60 * 1000
)

// Why purge does not trust the clock.
const (
	doubtStart    = "the database was started less than a minute ago"
	doubtRestart  = "at the start the wall clock was more than seven days past the saved time"
	doubtStep     = "the wall clock stepped, and has not agreed with the monotonic clock for a minute since"
	doubtConfirm  = "a jump of the wall clock was confirmed less than a minute ago"
	doubtGuarded  = "the wall clock jumped by more than seven days and is not followed until it returns or the jump is confirmed"
	doubtAhead    = "database time is ahead of the wall clock and stands still"
	doubtIsClosed = "the clock is closed"
)

type guard struct {
	offsetMs  int64 // wall minus monotonic, as the clocks last agreed
	sinceMono int64 // when that offset was taken

	// paceMs is the offset of the last reading that moved time: where the monotonic
	// clock says that time should be. Time that stands still falls behind it, and a
	// wall clock that is put right, however late, comes back to it.
	paceMs int64

	guarded bool  // the wall clock is not followed
	heldMs  int64 // while guarded, time is this plus the monotonic clock

	behind bool // the wall clock is behind the time

	trustMono int64  // purge may trust time from here on
	doubt     string // why not before
}

// agree reports whether two offsets are near enough for the clocks to agree.
func agree(a, b int64) bool {
	return a-b <= AgreeWithinMs && b-a <= AgreeWithinMs
}

// observe takes in a reading and returns the time that it asks for. lastMs is the
// highest time returned so far.
func (g *guard) observe(r Reading, lastMs int64) (wantMs int64) {
	offsetMs := r.WallMs - r.MonoMs
	if !g.guarded {
		g.heldMs = max(g.offsetMs, lastMs-r.MonoMs)
	}
	stepped := !agree(g.offsetMs, offsetMs)
	if stepped {
		g.distrust(r.MonoMs, AgreeForMs, doubtStep)
	}
	if stepped || r.MonoMs-g.sinceMono >= AgreeForMs {
		g.offsetMs, g.sinceMono = offsetMs, r.MonoMs
	}
	g.guarded = offsetMs > g.paceMs+MaxFollowedJumpMs
	if g.guarded {
		g.behind = false
		return r.MonoMs + g.heldMs
	}
	g.behind = r.WallMs < lastMs
	if !g.behind {
		g.paceMs = offsetMs
	}
	return r.WallMs
}

// distrust makes purge wait. It never shortens a wait.
func (g *guard) distrust(monoMs, waitMs int64, why string) {
	if until := monoMs + waitMs; until > g.trustMono {
		g.trustMono, g.doubt = until, why
	}
}

// openGuardLocked starts the guard. Any jump over the floor is followed, for the
// database may have been off for as long.
func (c *Clock) openGuardLocked() {
	lastMs := c.last.Load()
	r := c.source()
	r.WallMs = min(max(r.WallMs, 0), MaxMs)
	g := &c.mu.guard
	g.offsetMs, g.sinceMono = r.WallMs-r.MonoMs, r.MonoMs
	g.paceMs = max(r.WallMs, lastMs) - r.MonoMs
	g.trustMono = r.MonoMs
	c.mu.quietUntilMono = r.MonoMs
	if lastMs > 0 { // fresh data has nothing that purge could take away
		g.distrust(r.MonoMs, AgreeForMs, doubtStart)
		if jumpMs := r.WallMs - lastMs; jumpMs > MaxFollowedJumpMs {
			c.logger.Warn("clock: wall clock is far past the saved time: followed, but purge waits", "jumpMs", jumpMs, "waitMs", RestartJumpWaitMs)
			c.mu.state.SuspectUntilMs = min(r.WallMs+RestartJumpWaitMs, MaxMs)
		}
		if leftMs := c.mu.state.SuspectUntilMs - max(r.WallMs, lastMs); leftMs > AgreeForMs {
			g.distrust(r.MonoMs, min(leftMs, RestartJumpWaitMs), doubtRestart)
		}
	}
	c.observeLocked(r, lastMs)
}

// observeLocked passes a reading to the guard, and its changes to the log and to
// the fast readers.
func (c *Clock) observeLocked(r Reading, lastMs int64) (wantMs int64) {
	g := &c.mu.guard
	before := *g
	wantMs = g.observe(r, lastMs)
	c.logChangesLocked(&before, r, lastMs)
	c.publishLocked()
	return wantMs
}

// logChangesLocked says what changed, once. At most one step a minute is told, so
// that a wall clock that flutters cannot fill the log.
func (c *Clock) logChangesLocked(before *guard, r Reading, lastMs int64) {
	g := &c.mu.guard
	switch {
	case g.guarded && !before.guarded:
		c.logger.Error("clock: wall clock jumped too far and is not followed: time goes on from before the jump, purge is off until the wall clock returns or the jump is confirmed",
			"wallMs", r.WallMs, "nowMs", r.MonoMs+g.heldMs)
	case before.guarded && !g.guarded:
		c.logger.Info("clock: wall clock is back and followed again", "wallMs", r.WallMs, "lastMs", lastMs)
	case !agree(before.offsetMs, g.offsetMs) && r.MonoMs >= c.mu.quietUntilMono:
		c.mu.quietUntilMono = r.MonoMs + AgreeForMs
		c.logger.Warn("clock: wall clock stepped, purge waits until it has agreed with the monotonic clock",
			"stepMs", g.offsetMs-before.offsetMs, "waitMs", g.trustMono-r.MonoMs)
	}
	behindMs := lastMs - r.WallMs
	switch {
	case g.behind && behindMs > maxLeadMs && !c.mu.behindLogged:
		c.mu.behindLogged = true
		c.logger.Warn("clock: wall clock is behind, database time stands still", "wallMs", r.WallMs, "lastMs", lastMs, "behindMs", behindMs)
	case c.mu.behindLogged && !g.behind:
		c.mu.behindLogged = false
		c.logger.Info("clock: wall clock caught up, database time moves on", "wallMs", r.WallMs)
	}
}

// Confirm accepts a forward jump that is not followed: time goes to the wall clock,
// and purge resumes once the clocks have agreed for AgreeForMs. It cannot be taken
// back. Without such a jump it is ErrNothingToConfirm.
func (c *Clock) Confirm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := c.lookLocked()
	g := &c.mu.guard
	if c.mu.closed {
		return ErrClosed
	}
	if !g.guarded {
		return ErrNothingToConfirm
	}
	g.guarded = false
	g.paceMs = r.WallMs - r.MonoMs
	g.distrust(r.MonoMs, AgreeForMs, doubtConfirm)
	c.publishLocked()
	c.logger.Warn("clock: jump of the wall clock confirmed", "wallMs", r.WallMs, "skewMs", r.WallMs-c.last.Load())
	return nil
}

// PurgeTrusted reports whether items that are expired by this clock may be deleted,
// and if not, why. Take the time with Now first and ask then: a jump between the
// two is found by the second call, never missed by it.
func (c *Clock) PurgeTrusted() (ok bool, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := c.lookLocked()
	reason, _ = c.doubtLocked(r)
	return reason == "", reason
}

// doubtLocked returns why purge must not trust the clock, or "", and the least
// number of milliseconds until it may; 0 when that is not a matter of time.
func (c *Clock) doubtLocked(r Reading) (reason string, waitMs int64) {
	g := &c.mu.guard
	switch {
	case c.mu.closed:
		return doubtIsClosed, 0
	case c.test:
		return "", 0
	case g.guarded:
		return doubtGuarded, 0
	}
	waitMs = g.trustMono - r.MonoMs
	// What the wall clock says has not yet come may be hidden, but not deleted,
	// however long the clocks have agreed since.
	if aheadMs := c.last.Load() - r.WallMs; aheadMs > AgreeWithinMs {
		return doubtAhead, max(waitMs, aheadMs-AgreeWithinMs)
	}
	if waitMs > 0 {
		return g.doubt, waitMs
	}
	return "", 0
}
