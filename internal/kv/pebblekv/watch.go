// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// exitCode is the exit code of the process when the engine cannot go on.
const exitCode = 1

// watcher gets the engine's events. It logs what an operator needs at warn and error and
// everything else at debug, and records whether flushes fail, whether the last background job
// failed, and whether commits wait.
type watcher struct {
	log *slog.Logger

	// flushFailure is the error of the last flush, or nil. While it is set, commits are
	// refused: their memtables would queue until the engine makes every writer wait for a
	// flush that may never succeed.
	flushFailure atomic.Pointer[error]
	// jobFailed says that the last flush or compaction failed. The engine tries
	// again at once.
	jobFailed atomic.Bool
	// working says that the engine has started background work.
	working atomic.Bool
	// queued is how many memtables wait to be flushed, counted from the engine's events.
	// Written under mu.
	queued atomic.Int32
	// stalled counts the waits for flushes or compactions under way: of commits in room, and
	// of the engine itself. stalls counts all waits.
	stalled atomic.Int32
	stalls  atomic.Int64

	mu struct {
		sync.Mutex
		// changed is closed, and replaced, when waiters should check again.
		changed chan struct{}
		// opening gets the first failure that pebble.Open would not return from; it
		// is nil once the store is open.
		opening chan<- error
		// lastFlush is the error of the last flush, which was of lastInput memtables. The
		// engine also reports an error, which it does not export, for a flush that had nothing
		// to write. The error is a failure if a background error follows, and none if another
		// flush follows.
		lastFlush error
		lastInput int
	}
}

func newWatcher(log *slog.Logger) *watcher {
	w := &watcher{log: log}
	w.mu.changed = make(chan struct{})
	return w
}

// refused returns why commits are refused, or nil.
func (w *watcher) refused() error {
	if failure := w.flushFailure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// room waits while crowded reports that too many memtables are queued, unless commits are
// refused. The engine makes commits wait too, a memtable later, but there nothing wakes them
// when flushes begin to fail.
func (w *watcher) room(ctx context.Context, crowded func() bool) error {
	waits := false
	for w.queued.Load() >= memTablesQueued && w.refused() == nil {
		w.mu.Lock()
		changed := w.mu.changed
		w.mu.Unlock()
		if w.refused() != nil || !crowded() {
			break
		}
		if !waits {
			waits = true
			w.stallBegins()
			defer w.stalled.Add(-1)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return w.refused()
}

func (w *watcher) stallBegins() {
	w.stalls.Add(1)
	w.stalled.Add(1)
}

// failure waits until flushes fail or ctx ends, and returns the error of either.
func (w *watcher) failure(ctx context.Context) error {
	for {
		w.mu.Lock()
		changed := w.mu.changed
		w.mu.Unlock()
		if err := w.refused(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// queueLocked records that n memtables joined the queue, or left it if n is negative. A batch
// as large as a memtable is flushed as one, but there is no event when it joins. So the count
// can be too low until the queue is empty; then the engine's own limit applies.
func (w *watcher) queueLocked(n int) {
	w.queued.Store(max(w.queued.Load()+int32(n), 0))
	close(w.mu.changed)
	w.mu.changed = make(chan struct{})
}

// startOpening returns a channel for a failure that pebble.Open does not return
// from. There are two: it waits for the flush of what it replayed from the log,
// and the engine repeats a flush that fails for ever; and it calls Fatalf.
func (w *watcher) startOpening() <-chan error {
	failed := make(chan error, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.opening = failed
	return failed
}

func (w *watcher) doneOpening() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.opening = nil
	w.queued.Store(0) // opening creates a log, and flushes all that it found
}

// abandon reports err to Open if the store is being opened, and then never returns: the engine
// cannot be stopped, and must not go on.
func (w *watcher) abandon(err error) {
	if w.reportOpening(err) {
		select {}
	}
}

// reportOpening reports err to Open under the lock, so that doneOpening comes
// either before or after it. It returns false if the store is open.
func (w *watcher) reportOpening(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.opening == nil {
		return false
	}
	select {
	case w.mu.opening <- err:
	default: // another failure came first
	}
	return true
}

func (w *watcher) listener() *pebble.EventListener {
	l := &pebble.EventListener{
		BackgroundError: w.backgroundError,
		FlushBegin:      w.flushBegins,
		FlushEnd:        w.flushEnded,
		CompactionEnd:   w.compactionEnded,
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			w.stallBegins()
			w.log.Warn("commits wait for flushes or compactions", "reason", info.Reason)
		},
		WriteStallEnd: func() {
			w.stalled.Add(-1)
			w.log.Info("commits no longer wait")
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			w.log.Error("the data is corrupt", "file", info.Path, "error", info.Details)
		},
		LowDiskSpace: func(info pebble.LowDiskSpaceInfo) {
			w.log.Warn("disk space is low", "free_bytes", info.AvailBytes, "total_bytes", info.TotalBytes)
		},
		WALCreated: w.logCreated,
		ManifestCreated: func(info pebble.ManifestCreateInfo) {
			w.jobEnded("manifest created", info, info.Err)
		},
		// The key is not logged: it may contain values of an item.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			w.log.Debug("delete with a wrong size hint", "kind", info.Kind.String())
		},
	}
	l.EnsureDefaults(w)
	return l
}

func (w *watcher) backgroundError(err error) {
	// Only the first of consecutive failures is logged as an error: the engine repeats the
	// job, and would fill the log with the same line.
	level := slog.LevelError
	if w.jobFailed.Swap(true) {
		level = slog.LevelDebug
	}
	w.log.Log(context.Background(), level, "a background job of the store failed", "error", err.Error()) // without the stack

	w.mu.Lock()
	isFlush := w.mu.lastFlush != nil && errors.Is(err, w.mu.lastFlush)
	if isFlush {
		w.mu.lastFlush = nil
		w.flushFailure.Store(&err)
		w.queueLocked(0)
	}
	w.mu.Unlock()
	if isFlush {
		w.abandon(err)
	}
}

// logCreated counts a memtable that was queued: each new memtable begins a log of its own.
func (w *watcher) logCreated(info pebble.WALCreateInfo) {
	w.mu.Lock()
	w.queueLocked(1)
	w.mu.Unlock()
	w.jobEnded("log created", info, info.Err)
}

func (w *watcher) flushBegins(pebble.FlushInfo) {
	w.working.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.lastFlush != nil { // no failure after all
		w.mu.lastFlush = nil
		w.queueLocked(-w.mu.lastInput)
	}
}

func (w *watcher) flushEnded(info pebble.FlushInfo) {
	w.mu.Lock()
	w.mu.lastFlush, w.mu.lastInput = info.Err, info.Input
	if info.Err == nil {
		w.queueLocked(-info.Input)
	}
	w.mu.Unlock()
	if info.Err == nil {
		w.flushFailure.Store(nil)
		w.jobFailed.Store(false)
	}
	w.debug("flush ended", info)
}

func (w *watcher) compactionEnded(info pebble.CompactionInfo) {
	if info.Err == nil {
		w.jobFailed.Store(false)
	}
	w.debug("compaction ended", info)
}

func (w *watcher) diskSlow(info vfs.DiskSlowInfo) {
	w.log.Warn("the disk is slow", "operation", info.OpType.String(), "file", info.Path, "took", info.Duration)
}

func (w *watcher) jobEnded(what string, info fmt.Stringer, err error) {
	if err != nil {
		w.log.Error(what, "error", err)
		return
	}
	w.debug(what, info)
}

func (w *watcher) debug(what string, info fmt.Stringer) {
	if w.log.Enabled(context.Background(), slog.LevelDebug) {
		w.log.Debug(what, "info", info.String())
	}
}

// Infof implements pebble.Logger.
func (w *watcher) Infof(format string, args ...any) {
	if w.log.Enabled(context.Background(), slog.LevelDebug) {
		w.log.Debug("store", "detail", fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (w *watcher) Errorf(format string, args ...any) {
	w.log.Error("store", "detail", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. The engine calls it when it cannot go on, such as after a
// failed write of its manifest, and relies on it not to return.
func (w *watcher) Fatalf(format string, args ...any) {
	err := &fatalError{text: fmt.Sprintf(format, args...)}
	for _, arg := range args {
		if cause, ok := arg.(error); ok {
			err.cause = cause
		}
	}
	w.abandon(err)
	w.log.Error("the store cannot go on and ends the process; start it again when the cause is fixed", "cause", err)
	os.Exit(exitCode)
}

// fatalError is the message of a Fatalf, and the error among its arguments.
type fatalError struct {
	text  string
	cause error
}

func (e *fatalError) Error() string { return e.text }
func (e *fatalError) Unwrap() error { return e.cause }
