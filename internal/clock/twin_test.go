// SPDX-License-Identifier: MIT

package clock

// twin is the clock as one would write it for a single caller on a machine whose
// clocks move together or step by more than agreement allows: no fast path, no
// views, no goroutines, no drift. The model test compares it with the real one.
type twin struct {
	hands *hands
	fault fault // what becomes of the next save
	kept  State // what a crash would leave

	state   State // as believed saved
	doubted bool  // the latest save failed
	retryAt int64 // monotonic
	lastMs  int64
	floorMs int64

	seenMs  int64 // wall minus monotonic at the latest look
	paceMs  int64
	heldMs  int64
	guarded bool
	trustAt int64 // monotonic
}

// fault is what happens to a save.
type fault int

const (
	faultNone fault = iota
	faultLost       // it fails, and nothing is kept
	faultKept       // it fails, and is kept all the same
)

func newTwin(h *hands, kept State, test bool) *twin {
	r := h.read()
	w := &twin{hands: h, kept: kept, state: kept, lastMs: kept.FloorMs, floorMs: kept.FloorMs, retryAt: r.MonoMs}
	if test {
		if !kept.Test {
			w.state.Test = true
			w.kept = w.state
		}
		return w
	}
	w.seenMs = r.WallMs - r.MonoMs
	w.paceMs = max(r.WallMs, w.lastMs) - r.MonoMs
	w.trustAt = r.MonoMs
	if w.lastMs == 0 {
		return w
	}
	w.trustAt = r.MonoMs + 60_000
	if r.WallMs-w.lastMs > 7*day {
		w.state.SuspectUntilMs = r.WallMs + 600_000
	}
	if left := w.state.SuspectUntilMs - max(r.WallMs, w.lastMs); left > 60_000 {
		w.trustAt = r.MonoMs + min(left, 600_000)
	}
	return w
}

// look returns the time that the machine's clocks ask for.
func (w *twin) look() int64 {
	r := w.hands.read()
	if w.state.Frozen {
		return w.lastMs
	}
	if w.state.Test {
		return min(r.WallMs+w.state.OffsetMs, MaxMs)
	}
	offset := r.WallMs - r.MonoMs
	if !w.guarded {
		w.heldMs = max(w.seenMs, w.lastMs-r.MonoMs)
	}
	if offset != w.seenMs {
		w.seenMs = offset
		w.trustAt = max(w.trustAt, r.MonoMs+60_000)
	}
	w.guarded = offset-w.paceMs > 7*day
	if w.guarded {
		return r.MonoMs + w.heldMs
	}
	if r.WallMs >= w.lastMs {
		w.paceMs = offset
	}
	return r.WallMs
}

func (w *twin) now() int64 {
	want := w.look()
	if want > w.floorMs-500 && w.floorMs < MaxMs && !w.state.Frozen && w.hands.read().MonoMs >= w.retryAt {
		next := w.state
		next.FloorMs = min(max(w.floorMs, want)+1000, MaxMs)
		w.save(next)
	}
	w.lastMs = max(w.lastMs, min(want, w.floorMs))
	return w.lastMs
}

func (w *twin) save(s State) (saved bool) {
	if w.fault != faultLost {
		w.kept = s
	}
	w.doubted = w.fault != faultNone
	if w.doubted {
		w.floorMs = min(w.floorMs, s.FloorMs)
		w.retryAt = w.hands.read().MonoMs + 100
		return false
	}
	w.state, w.floorMs = s, s.FloorMs
	return true
}

func (w *twin) trusted() bool {
	w.look()
	r := w.hands.read()
	return w.state.Test || !w.guarded && r.MonoMs >= w.trustAt && w.lastMs-r.WallMs <= AgreeWithinMs
}

// confirm reports whether there was something to accept.
func (w *twin) confirm() bool {
	w.look()
	if !w.guarded {
		return false
	}
	r := w.hands.read()
	w.guarded = false
	w.paceMs = r.WallMs - r.MonoMs
	w.trustAt = max(w.trustAt, r.MonoMs+60_000)
	return true
}

// here is where a move of a test clock begins.
func (w *twin) here() int64 { return max(w.look(), w.lastMs) }

// move reports whether the test clock stands at ms, frozen or not.
func (w *twin) move(to pose) (saved bool) {
	if w.state.Frozen && to.frozen && to.ms == w.lastMs {
		return true
	}
	next := w.state
	next.Frozen = to.frozen
	next.OffsetMs = to.ms - w.hands.read().WallMs
	next.FloorMs = to.ms
	if !to.frozen {
		next.FloorMs = min(to.ms+1000, MaxMs)
	}
	if !w.save(next) {
		return false
	}
	w.lastMs = to.ms
	return true
}

// close reports whether the last save succeeded or was not needed.
func (w *twin) close() (saved bool) {
	next := w.state
	next.FloorMs = w.here()
	if next == w.state && !w.doubted {
		return true
	}
	return w.save(next)
}
