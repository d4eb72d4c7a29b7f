// SPDX-License-Identifier: MIT

package cli

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/mayflydb/mayfly"
)

const (
	// gcPercent lets the heap grow to five times the bytes in use before it is collected.
	// The heap is small, and a request of a busy server leaves several KB of garbage: with
	// the default, the collector would run many times a second to free a few megabytes.
	gcPercent = 400

	// memoryTargetBytes is the memory near which the collector runs more often. Without
	// it, a hundred clients that each sent the largest item made a server with 200 MB in
	// use take 1.4 GB.
	memoryTargetBytes = 768 << 20

	// roomBytes is how much garbage there may be if the bytes in use are near the target
	// or above it: with data in memory, and in builds without cgo with data read from
	// disk. Without it, the collector would run all the time.
	roomBytes = 512 << 20

	// Where memory is small, the target is half of it and the room an eighth.
	targetShare = 2
	roomShare   = 8
	// The target is never above five eighths of the memory: the rest is for the storage
	// engine's memtables and blocks, which the collector does not see, and for the system.
	mostNumerator, mostDenominator = 5, 8

	// The target moves in steps, since every change stops the process for a moment.
	targetStepBytes = 16 << 20
)

// paceCollector sets how often the collector runs, given the memory in bytes or 0 for all
// that is available, and how soon C memory is returned to the system. Environment
// variables for the same settings take precedence.
func paceCollector(memory int64) {
	if os.Getenv("MALLOC_MMAP_THRESHOLD_") == "" {
		paceMalloc()
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		if memory <= 0 {
			memory = mayfly.AvailableMemory()
		}
		newPacer(memory).start()
	}
}

// newPacer returns the pacer for an amount of memory; 0, if it is not known, sets no upper
// bound.
func newPacer(memory int64) *pacer {
	p := &pacer{least: memoryTargetBytes, room: roomBytes, step: targetStepBytes, most: math.MaxInt64}
	if memory > 0 {
		p.least, p.room = min(p.least, memory/targetShare), min(p.room, memory/roomShare)
		p.most = memory / mostDenominator * mostNumerator
	}
	return p
}

// pacer adapts the target to the bytes in use, after each collection.
type pacer struct {
	least, most, room, step int64
	stopped                 atomic.Bool
}

func (p *pacer) start() {
	debug.SetMemoryLimit(p.least)
	p.watch(p.least)
}

// watch updates the target after the next collection.
func (p *pacer) watch(target int64) {
	// The sentinel is unreachable, so the next collection frees it.
	runtime.AddCleanup(new(sentinel), func(last int64) {
		if p.stopped.Load() {
			return
		}
		next := p.target(heapInUse())
		if next != last {
			debug.SetMemoryLimit(next)
		}
		p.watch(next)
	}, target)
}

// sentinel has a pointer, so that it is not allocated together with other small objects.
type sentinel struct{ _ *byte }

// target returns the target for a number of bytes in use.
func (p *pacer) target(inUse int64) int64 {
	steps := (inUse + p.room + p.step - 1) / p.step
	return min(max(p.least, steps*p.step), p.most)
}

// heapInUse returns the bytes that the last collection found in use.
func heapInUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64))
}
