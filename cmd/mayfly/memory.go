// SPDX-License-Identifier: MIT

package main

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
	// gcPercent lets the heap, which is small, grow to five times what is in use
	// before it is collected. A busy server makes several KB of garbage a request, and
	// would collect a few megabytes many times a second.
	gcPercent = 400

	// memoryTargetBytes is where that generosity ends: near it the collector runs as
	// often as it must. Without it, a hundred clients that each send the largest item
	// made a server of 200 MB in use take 1.4 GB.
	memoryTargetBytes = 768 << 20

	// roomBytes is how much garbage there may be beside what is in use when that alone
	// is near the target, or beyond it: data in memory, and in builds without cgo what
	// was read from disk. Without it, the collector would never end.
	roomBytes = 512 << 20

	// Where memory is small, the target is half of it and the room an eighth.
	targetShare = 2
	roomShare   = 8
	// The target is never above five eighths: the rest is for what the collector does
	// not see, the storage engine's memtables and blocks, and for the system.
	mostNumerator, mostDenominator = 5, 8

	// The target moves in steps: each stops the process for a moment.
	targetStepBytes = 16 << 20
)

// paceCollector sets how often the collector runs in so much memory, 0 for what there is,
// and how soon C memory is given back, unless the environment does.
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

// newPacer returns the pacer for so much memory, or for enough if that is not known.
func newPacer(memory int64) *pacer {
	p := &pacer{least: memoryTargetBytes, room: roomBytes, step: targetStepBytes, most: math.MaxInt64}
	if memory > 0 {
		p.least, p.room = min(p.least, memory/targetShare), min(p.room, memory/roomShare)
		p.most = memory / mostDenominator * mostNumerator
	}
	return p
}

// pacer moves the target with what is in use, after each collection.
type pacer struct {
	least, most, room, step int64
	stopped                 atomic.Bool
}

func (p *pacer) start() {
	debug.SetMemoryLimit(p.least)
	p.watch(p.least)
}

// watch waits for the next collection.
func (p *pacer) watch(target int64) {
	// Nobody holds it, so it is collected the next time.
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

// sentinel has a pointer, so that it gets memory of its own.
type sentinel struct{ _ *byte }

// target returns the one for what is in use.
func (p *pacer) target(inUse int64) int64 {
	steps := (inUse + p.room + p.step - 1) / p.step
	return min(max(p.least, steps*p.step), p.most)
}

// heapInUse is what the last collection has left.
func heapInUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64))
}
