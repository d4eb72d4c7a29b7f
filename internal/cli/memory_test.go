// SPDX-License-Identifier: MIT

package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestTargetMovesWithWhatIsInUse(t *testing.T) {
	p := pacer{least: 100, most: 2000, room: 50, step: 10}
	for _, c := range []struct{ inUse, want int64 }{{0, 100}, {50, 100}, {51, 110}, {60, 110}, {1000, 1050}, {1951, 2000}, {5000, 2000}} {
		if got := p.target(c.inUse); got != c.want {
			t.Errorf("%d in use: got %d, want %d", c.inUse, got, c.want)
		}
	}
}

func TestTargetFollowsMemory(t *testing.T) {
	for _, c := range []struct{ memory, least, room, most int64 }{
		{0, 768 << 20, 512 << 20, math.MaxInt64},
		{64 << 30, 768 << 20, 512 << 20, 40 << 30},
		{2 << 30, 768 << 20, 256 << 20, 1280 << 20},
		{512 << 20, 256 << 20, 64 << 20, 320 << 20},
	} {
		if p := newPacer(c.memory); p.least != c.least || p.room != c.room || p.most != c.most {
			t.Errorf("%d bytes: got %d, %d and %d, want %d, %d and %d", c.memory, p.least, p.room, p.most, c.least, c.room, c.most)
		}
	}
}

// A heap larger than the target is collected when there is as much garbage as the pacer
// has room for, not all the time.
func TestLargeHeapsAreCollectedNowAndThen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const (
		piece = 1 << 20
		held  = 64 // pieces
	)
	p := pacer{least: 16 * piece, most: math.MaxInt64, room: 32 * piece, step: piece}
	p.start()
	defer p.stopped.Store(true)
	data := make([][]byte, held)
	for i := range data {
		data[i] = make([]byte, piece)
	}
	runtime.GC()
	before := collections()
	for range 10 * held {
		garbage = make([]byte, piece)
	}
	// One collection for about 32 pieces, and some while the target moves: 25 to 29. A
	// fixed target needs 90.
	if n := collections() - before; n > 60 {
		t.Errorf("collected %d times for %d MiB of garbage beside %d in use", n, 10*held, held)
	}
	runtime.KeepAlive(data)
}

var garbage []byte

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}
