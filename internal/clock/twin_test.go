// SPDX-License-Identifier: MIT

package clock

import "math"

// twin is a test clock for a single caller, without views and goroutines. The model test
// compares the real one with it.
type twin struct {
	hands *hands
	fault fault // of the next save
	kept  State // what a crash would leave

	state   State // as last saved without an error
	doubted bool  // the latest save failed
	retryAt int64 // monotonic
	lastMs  int64
	floorMs int64
}

// fault is what happens to a save.
type fault int

const (
	faultNone fault = iota
	faultLost       // it fails, and nothing is kept
	faultKept       // it fails, but is kept nevertheless
)

func newTwin(h *hands, kept State) *twin {
	r := h.read()
	w := &twin{hands: h, kept: kept, state: kept, lastMs: kept.FloorMs, floorMs: kept.FloorMs, retryAt: r.MonoMs}
	w.state.Test = true
	w.kept = w.state
	return w
}

// look returns the time that the machine's clocks give.
func (w *twin) look() int64 {
	if w.state.Frozen {
		return w.lastMs
	}
	return min(w.hands.read().WallMs+w.state.OffsetMs, MaxMs)
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
	w.state, w.floorMs, w.retryAt = s, s.FloorMs, math.MinInt64
	return true
}

// here returns the time from which a move of a test clock begins.
func (w *twin) here() int64 { return max(w.look(), w.lastMs) }

// move moves the test clock, and reports whether that was saved.
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
