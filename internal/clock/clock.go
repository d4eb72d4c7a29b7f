// SPDX-License-Identifier: MIT

// Package clock is the database's time, in milliseconds since the Unix epoch. Items
// expire by it, and their write times come from it. It does not measure durations, and
// it does not check the date of a request's signature: the wall clock serves for that.
// No other package reads the machine's clocks for database time.
//
// The one invariant: time never goes backwards, for any caller, across restarts
// and crashes too. It rests on four smaller ones, cited where the code relies on
// them:
//
//  1. Every time that is returned was first written to last, which only grows.
//  2. No time above the saved floor is returned: a floor is durable before use.
//  3. Saves are in order: each is made under saver, with the latest state.
//  4. A save that failed may still have happened: the lower of the old floor and the
//     floor of that save holds.
//
// A moment has two times. Now rounds down: it decides whether an item is live.
// NowAndWrite also rounds up: that is the write time of items (DESIGN.md, "No item dies
// early").
//
// Lock order: saver, then mu. DESIGN.md gives the reasons for this design.
package clock

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxMs is the largest time: the last millisecond of the largest _ts of ten digits.
	MaxMs = 9_999_999_999_999

	// closedMark in last says that the clock is closed. Readers on the fast path find
	// it where they would publish a time, so none can pass the time that Close saves.
	closedMark = math.MaxInt64
)

var (
	// ErrTestData: the data was written under a test clock and is opened without one.
	ErrTestData = errors.New("clock: this data was written under a test clock, so its times may be ahead of the real time: open it with the test clock again (--test-clock), or start with new data")
	// ErrNotTestClock: only a test clock can be moved.
	ErrNotTestClock = errors.New("clock: time can be moved only under a test clock (--test-clock)")
	// ErrBackwards: Set or Advance would move a test clock back.
	ErrBackwards = errors.New("clock: time cannot go backwards")
	// ErrTooShort: a test clock was advanced by less than a millisecond.
	ErrTooShort = errors.New("clock: the smallest step is a millisecond")
	// ErrTooFar: Set or Advance would move a test clock past MaxMs.
	ErrTooFar = errors.New("clock: beyond the largest time")
	// ErrNothingToConfirm: Confirm was called while no jump was held back or in doubt.
	ErrNothingToConfirm = errors.New("clock: no jump of the wall clock waits for confirmation")
	// ErrAhead: Confirm was called while the wall clock was behind.
	ErrAhead = errors.New("clock: " + adviceAhead)
	// ErrRewinding: a rewind of the data has begun and has not ended.
	ErrRewinding = errors.New("clock: a rewind of this data was interrupted: run mayfly clock rewind again, which ends it")
	// ErrNotAhead: BeginRewind was called for a clock that is not ahead.
	ErrNotAhead = errors.New("clock: database time is not ahead of the wall clock: there is nothing to rewind")
	// ErrClosed: the clock is closed.
	ErrClosed = errors.New("clock: closed")
	// ErrBadState: the saved bytes or values are not a clock's state.
	ErrBadState = errors.New("clock: corrupt state")
	// ErrNewerState: the state was saved by a later version of this program.
	ErrNewerState = errors.New("clock: state of a newer format")
	// ErrEngineBehind: Confirm was called while the shared engine's clock was behind.
	ErrEngineBehind = errors.New("clock: " + adviceEngineBehind)
	// ErrNotFrozen: the nodes of a shared engine were too slow to be stopped at one time.
	ErrNotFrozen = errors.New("clock: the nodes could not be stopped at one time: the engine answers too slowly")
	// ErrSharedRewind: a rewind was asked of data in a shared engine.
	ErrSharedRewind = errors.New("clock: the time of a shared engine cannot be rewound: it goes at half its pace until the engine's clock has caught up")
	// ErrNoSave: Options has no Save, so time could go back after a restart.
	ErrNoSave = errors.New("clock: options without Save")
)

// Reading is one reading of the machine's wall clock and monotonic clock.
type Reading struct {
	WallMs int64 // since the Unix epoch; may step either way
	MonoMs int64 // since some fixed moment; never decreases while the clock is open
	// Floored says that the clocks are finer than a millisecond and were rounded down.
	// It is the same in all readings of a source.
	Floored bool
}

// Options are the parameters of Open.
type Options struct {
	// State is the state that was last saved; the zero State for fresh data.
	State State
	// Save keeps a state with the data; the state is durable once Save returns nil.
	// Calls never overlap. Save must not call the clock.
	Save func(State) error
	// Test opens a test clock, which can be moved, and marks the data as test data.
	Test bool
	// Source reads the machine's clocks; nil means the real ones. It must not call
	// the clock.
	Source func() Reading
	// Boot reads the machine's boot clock. If it is nil, the real one is read, or, with
	// a Source, the monotonic clock, for a boot without an ID. It must not call the clock.
	Boot func() Boot
	// Logger gets a line when the clock's trouble begins or ends; nil logs nothing. Its
	// handler must not call the clock.
	Logger *slog.Logger
}

// Clock is the database's time. Its methods may be called from any goroutine.
type Clock struct {
	source func() Reading
	boot   func(Reading) Boot
	bootID BootKey
	save   func(State) error
	logger *slog.Logger
	test   bool
	follow *follower // nil for a clock with a source

	last        atomic.Int64         // the highest time returned, or closedMark
	view        atomic.Pointer[view] // nil under a test clock
	saving      atomic.Bool          // a background save is under way
	retryAtMono atomic.Int64         // no save before this monotonic time
	background  sync.WaitGroup

	closeOnce sync.Once
	closeErr  error

	saver sync.Mutex // held around every call of save

	mu struct {
		sync.Mutex
		state   State // as last saved
		floorMs int64 // invariant 2's floor
		guard   guard // unused under a test clock
		saveErr error // of the latest save

		logged         loggedState
		quietUntilMono int64 // no change is logged before this monotonic time

		closing bool // no more background saves
		closed  bool
		finalMs int64 // the time after Close
	}
}

// view is what the fast path needs; it is immutable and replaced as a whole. Unless it
// is paced, the time is the wall clock's.
type view struct {
	offsetMs    int64 // wall minus monotonic, as agreed
	recheckMono int64 // from this monotonic time on the guard must look again
	floorMs     int64
	extendMs    int64 // above this the floor should be extended

	// While paced, time is baseMs plus the monotonic time since baseMono, or plus half
	// of it while easing.
	paced, easing    bool
	baseMs, baseMono int64
}

// at returns the time of a reading. ok is false if the guard should look.
func (v *view) at(r Reading) (wantMs int64, ok bool) {
	if !agree(v.offsetMs, r.WallMs-r.MonoMs) || r.MonoMs >= v.recheckMono {
		return 0, false
	}
	switch passedMs := r.MonoMs - v.baseMono; {
	case !v.paced:
		wantMs = r.WallMs
	case v.easing:
		wantMs = v.baseMs + passedMs/2
		if r.WallMs >= wantMs-lullMs {
			return 0, false
		}
	default:
		wantMs = v.baseMs + passedMs
	}
	return wantMs, wantMs <= v.floorMs
}

// Open starts a clock from the state that was last saved.
func Open(o Options) (*Clock, error) {
	if o.Save == nil {
		return nil, ErrNoSave
	}
	if err := o.State.validate(); err != nil {
		return nil, err
	}
	if o.State.Test && !o.Test {
		return nil, ErrTestData
	}
	if o.State.RewindToMs != 0 {
		return nil, ErrRewinding
	}
	c := &Clock{save: o.Save, logger: o.Logger, test: o.Test}
	c.source, c.boot = o.clocks()
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.retryAtMono.Store(math.MinInt64)
	c.last.Store(o.State.FloorMs)
	c.mu.state, c.mu.floorMs = o.State, o.State.FloorMs
	if c.test {
		if err := c.markTestData(); err != nil {
			return nil, err
		}
		return c, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openGuardLocked()
	return c, nil
}

// markTestData saves the mark before the first time is returned: every write after that
// may carry a moved time.
func (c *Clock) markTestData() error {
	if c.mu.state.Test {
		return nil
	}
	c.mu.state.Test = true
	if err := c.save(c.mu.state); err != nil {
		return fmt.Errorf("mark data as written under a test clock: %w", err)
	}
	return nil
}

// clocks returns the functions that read the machine's clocks.
func (o *Options) clocks() (source func() Reading, boot func(Reading) Boot) {
	source = o.Source
	switch {
	case o.Boot != nil:
		boot = func(Reading) Boot { return o.Boot() }
	case source != nil:
		boot = func(r Reading) Boot { return Boot{Ms: r.MonoMs} }
	default:
		boot = machineBoot()
	}
	if source == nil {
		source = machine()
	}
	return source, boot
}

// machine reads the real clocks.
func machine() func() Reading {
	start := time.Now()
	return func() Reading {
		t := time.Now()
		return Reading{WallMs: t.UnixMilli(), MonoMs: t.Sub(start).Milliseconds(), Floored: true}
	}
}

// Now returns the time: at or above every time that any call returned before this
// one began. It takes no lock as long as the machine's clocks agree and the floor
// is ahead; otherwise it may wait for a save.
func (c *Clock) Now() int64 {
	t, _ := c.now()
	return t
}

// NowAndWrite returns the time, as Now does, and the time for items that are written
// now: the next millisecond, in which this one ends. An item with that write time lives
// at least for its TTL, counted from this call and judged by Now. The times for writes
// never go back, since they are Now's times plus one. On a clock that is exact to the
// millisecond, such as a frozen one, both are the same.
func (c *Clock) NowAndWrite() (nowMs, writeMs int64) {
	t, r := c.now()
	return t, min(t+r.stepMs(), MaxMs)
}

// stepMs returns by how much a write time is above the time of reads.
func (r Reading) stepMs() int64 {
	if r.Floored {
		return 1
	}
	return 0
}

// now returns the time and the reading that it was taken from.
func (c *Clock) now() (int64, Reading) {
	v := c.view.Load()
	if v == nil {
		if c.follow != nil {
			return c.follow.now(c)
		}
		return c.slowNow()
	}
	r := c.source()
	wantMs, ok := v.at(r)
	if !ok {
		return c.slowNow()
	}
	if wantMs > v.extendMs {
		c.extendSoon(r.MonoMs)
	}
	t := c.raise(wantMs)
	if t-wantMs > lullMs { // the wall clock is behind, or the clock was closed
		return c.slowNow()
	}
	return t, r
}

// raise lifts last to at least ms and returns it: invariant 1. Each failed swap
// means that another caller lifted it, so the loop ends when last reaches ms.
func (c *Clock) raise(ms int64) int64 {
	for {
		last := c.last.Load()
		if ms <= last {
			return last
		}
		if c.last.CompareAndSwap(last, ms) {
			return ms
		}
	}
}

// slowNow reads the clocks under mu, and extends the floor when time reaches it.
func (c *Clock) slowNow() (int64, Reading) {
	c.mu.Lock()
	r, wantMs := c.lookLocked()
	t := c.timeLocked(wantMs)
	due, reached := c.dueLocked(wantMs), wantMs > c.mu.floorMs
	c.mu.Unlock()

	if !due || r.MonoMs < c.retryAtMono.Load() {
		return t, r
	}
	if !reached {
		c.extendSoon(r.MonoMs)
		return t, r
	}
	return c.extend(), r
}

// lookLocked reads the machine's clocks and returns the time that they give, not yet
// bounded by the floor. It loads last before it reads them: otherwise a concurrent
// reader could publish a later millisecond in between, and this reading would look like
// a step back.
func (c *Clock) lookLocked() (r Reading, wantMs int64) {
	lastMs := c.last.Load()
	r = c.source()
	r.WallMs = min(max(r.WallMs, 0), MaxMs)
	switch {
	case c.mu.closed:
		return r, c.mu.finalMs
	case c.mu.state.Frozen:
		r.Floored = false // a frozen time is exact
		return r, lastMs
	case c.test:
		return r, min(r.WallMs+c.mu.state.OffsetMs, MaxMs)
	}
	return r, min(c.observeLocked(r, lastMs), MaxMs)
}

func (c *Clock) timeLocked(wantMs int64) int64 {
	if c.mu.closed {
		return c.mu.finalMs
	}
	return c.raise(min(wantMs, c.mu.floorMs))
}

// Close saves the exact time, so that a clean restart goes on without standing
// still, and waits for the background save. Time stands still from then on. A
// second Close waits for the first and returns its result.
func (c *Clock) Close() error {
	c.closeOnce.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Clock) close() error {
	if c.follow != nil {
		return nil // its floor is in the node's row
	}
	c.mu.Lock()
	c.mu.closing = true
	c.mu.Unlock()
	c.background.Wait()

	c.saver.Lock()
	defer c.saver.Unlock()
	c.mu.Lock()
	_, wantMs := c.lookLocked()
	lastMs := c.last.Swap(closedMark)
	c.mu.closed, c.mu.finalMs = true, lastMs
	next := c.nextLocked(max(lastMs, wantMs))
	// After a failed save the saved state is unknown, so it is written again.
	if next == c.mu.state && c.mu.saveErr == nil {
		c.mu.finalMs = next.FloorMs
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()

	err := c.save(next)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(next, err)
	if err != nil {
		return fmt.Errorf("save the clock at its end: %w", err)
	}
	c.mu.finalMs = next.FloorMs
	return nil
}
