// SPDX-License-Identifier: MIT

// Copying all data from one storage engine to another, of the same kind or of another.
//
//  1. All rows are those of one snapshot. Rids, etags, LSNs and tokens are in them, so they
//     stay good.
//  2. The format row of the target is a mark from the first commit to the last, which no
//     version opens. The last commit replaces it. So a copy that was interrupted cannot be
//     opened, and another one begins from the start.
//  3. The time of the target never is below a time that the source has used. Rows that are
//     about the source's engine are not copied: its clock, its nodes and their
//     regions, the owners of its partitions, and what its files hold of deleted data.

package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// copyRows and copyBytes bound a batch of a copy, but for one large row.
	copyRows  = 2048
	copyBytes = 1 << 20
	// copyTries is how often a batch is repeated whose outcome is unknown, or that found no
	// engine, and copyPause the time between.
	copyTries = 30
	copyPause = time.Second
	// copyReports is the time between two reports of progress.
	copyReports = time.Second

	// copyFormat begins the format row of a target while a copy is under way: a format that
	// there will never be. A random number follows, by which a copy knows its own.
	copyFormat    = 255
	copyMarkBytes = 1 + 16

	// copiedNode is the name of the node row that has the source's time on a shared engine.
	copiedNode = "(copied from another engine)"
)

var (
	// ErrHalfCopied: a copy into the data has not come to its end.
	ErrHalfCopied = errors.New("a copy into this data has begun and not ended: repeat the copy, which starts over")
	// ErrNotEmpty: the target of a copy has data.
	ErrNotEmpty = errors.New("the target of the copy is not empty")
	// ErrNoData: the source of a copy has no data.
	ErrNoData = errors.New("there is no data to copy")
	// ErrUnsettled: the time of the source is not settled.
	ErrUnsettled = errors.New("the time of the data is not settled")
)

// CopyProgress says how far a copy is.
type CopyProgress struct {
	// Counting says that the source is being counted; Rows and Bytes are what was counted.
	Counting    bool
	Rows, Bytes int64
	// AllRows and AllBytes are how many there are.
	AllRows, AllBytes int64
	// Took is the time since the copying began.
	Took time.Duration
}

// Rate returns how many bytes were copied in a second.
func (p CopyProgress) Rate() float64 {
	if p.Took <= 0 {
		return 0
	}
	return float64(p.Bytes) / p.Took.Seconds()
}

// Remaining returns how long the copy will take from now on, if it goes on as it did; 0 if
// that is not known.
func (p CopyProgress) Remaining() time.Duration {
	if rate := p.Rate(); rate > 0 && !p.Counting {
		return time.Duration(float64(p.AllBytes-p.Bytes) / rate * float64(time.Second))
	}
	return 0
}

// CopyOptions are the parameters of Copy.
type CopyOptions struct {
	From, To kv.DB
	// Shared says that To is an engine that several nodes share: its time is its own, not
	// that of the machine.
	Shared bool
	// Report is called now and then, and at the end.
	Report func(CopyProgress)
	// Restarted is called if the target has an interrupted copy, which is removed. Alive is
	// called if nodes that use the source seem to be alive: what they write from now on is
	// not copied.
	Restarted, Alive func()
}

// Copy copies all data into an empty engine. If it is interrupted, the target cannot be
// opened, and Copy can be called again: it starts over.
func Copy(ctx context.Context, o CopyOptions) (CopyProgress, error) {
	c := &copying{o: o, mark: make([]byte, copyMarkBytes), reported: time.Now()}
	c.mark[0] = copyFormat
	_, _ = rand.Read(c.mark[1:]) // it never fails
	snap, err := o.From.Snapshot()
	if err != nil {
		return c.progress, err
	}
	defer snap.Close()
	if snap, err = store.WithoutSwept(snap); err != nil {
		return c.progress, err
	}
	if err := c.prepare(ctx, snap); err != nil {
		return c.progress, err
	}
	if err := c.claim(ctx); err != nil {
		return c.progress, err
	}
	if err := c.copyAll(ctx, snap); err != nil {
		return c.progress, err
	}
	if err := c.finish(ctx); err != nil {
		return c.progress, err
	}
	c.report(true)
	return c.progress, nil
}

// copying is a copy under way.
type copying struct {
	o        CopyOptions
	mark     []byte
	format   []byte // of the source
	time     copiedTime
	progress CopyProgress
	began    time.Time
	reported time.Time
}

// copiedTime is what the source's rows say about the time.
type copiedTime struct {
	floorMs int64       // no time that was used is above it
	own     []byte      // the clock row of an engine that is not shared
	state   clock.State // in own
	shared  clock.Shared
	isOwn   bool
}

// stays reports whether a row is about the source's engine, so that it is not copied. The
// root of the nodes' certificates goes to another engine that nodes share.
func (c *copying) stays(key []byte) bool {
	if bytes.Equal(key, catalog.RootKey) {
		return !c.o.Shared
	}
	for _, k := range [][]byte{catalog.FormatKey, catalog.ClockKey, catalog.TimeKey, catalog.EraseKey, catalog.RegionsKey} {
		if bytes.Equal(key, k) {
			return true
		}
	}
	return cluster.IsNodeKey(key) || store.IsOwnerKey(key)
}

// prepare counts the rows of the source, and reads its format and time.
func (c *copying) prepare(ctx context.Context, snap kv.Snapshot) error {
	c.progress.Counting = true
	alive := false
	for e, err := range snap.Scan(nil, nil, kv.Forward) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		switch {
		case bytes.Equal(e.Key, catalog.FormatKey):
			c.format = bytes.Clone(e.Value)
		case bytes.Equal(e.Key, catalog.RewindKey):
			return fmt.Errorf("%w: a rewind is under way; start a server on the source to finish it", ErrUnsettled)
		case bytes.Equal(e.Key, catalog.ClockKey):
			c.time.isOwn, c.time.own = true, bytes.Clone(e.Value)
			c.time.state, err = clock.DecodeState(e.Value)
			c.time.floorMs = max(c.time.floorMs, c.time.state.FloorMs)
		case bytes.Equal(e.Key, catalog.TimeKey):
			c.time.shared, err = clock.DecodeShared(e.Value)
		case cluster.IsNodeKey(e.Key):
			var floorMs int64
			var lives bool
			floorMs, lives, err = cluster.NodeFloor(e.Value)
			c.time.floorMs, alive = max(c.time.floorMs, floorMs), alive || lives
		case store.IsOwnerKey(e.Key):
			var latestMs int64
			latestMs, err = cluster.OwnerLatest(e.Value)
			c.time.floorMs = max(c.time.floorMs, latestMs)
		}
		if err != nil {
			return fmt.Errorf("read the source's row %x: %w", e.Key, err)
		}
		if !c.stays(e.Key) {
			c.progress.Rows++
			c.progress.Bytes += int64(len(e.Key) + len(e.Value))
		}
		c.report(false)
	}
	switch f, err := readFormat(c.o.From, formatVersion); {
	case err != nil:
		return fmt.Errorf("the source: %w", err)
	case c.format == nil:
		return ErrNoData
	case f.number < formatVersion: // its rows may exceed the limits of today
		return fmt.Errorf("the source has format %d: start a server on it once, which migrates it to %d, and copy it then", f.number, formatVersion)
	}
	c.progress = CopyProgress{AllRows: c.progress.Rows, AllBytes: c.progress.Bytes}
	if alive && c.o.Alive != nil {
		c.o.Alive()
	}
	return c.time.settled(c.o.Shared)
}

// settled returns an error if the source's time cannot be carried over. Between engines of
// one kind without nodes its row is copied as it is.
func (t *copiedTime) settled(shared bool) error {
	switch {
	case t.isOwn && !shared:
		return nil
	case t.isOwn && t.state.RewindToMs != 0:
		return fmt.Errorf("%w: a rewind is under way; start a server on the source to finish it", ErrUnsettled)
	case t.isOwn && t.state.Jumps != [clock.MaxJumps]clock.Jump{}:
		return fmt.Errorf("%w: a jump of the wall clock is in doubt; wait for a day with a server running, or confirm it with mayfly clock confirm", ErrUnsettled)
	case !t.isOwn && t.shared.ShiftMs < 0:
		return fmt.Errorf("%w: a jump of the engine's clock is held; correct that clock, or confirm it with mayfly clock confirm", ErrUnsettled)
	case !t.isOwn && t.shared.GapMs != 0 && t.floorMs < t.shared.GapUntilMs:
		return fmt.Errorf("%w: a jump of the engine's clock is in doubt; wait for a day, or confirm it with mayfly clock confirm", ErrUnsettled)
	}
	return nil
}

// claim makes sure that the target is empty, and marks it.
func (c *copying) claim(ctx context.Context) error {
	raw, found, err := kv.Get(c.o.To, catalog.FormatKey)
	if err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	half := found && len(raw) == copyMarkBytes && raw[0] == copyFormat
	if half && c.o.Restarted != nil {
		c.o.Restarted()
	}
	if !half {
		empty, err := isEmpty(c.o.To)
		if err != nil {
			return fmt.Errorf("read the target: %w", err)
		}
		if !empty {
			return ErrNotEmpty
		}
	}
	var b kv.Batch
	if half {
		b.Require(catalog.FormatKey, raw)
	} else {
		b.RequireAbsent(catalog.FormatKey)
	}
	b.Set(catalog.FormatKey, c.mark)
	if err := c.o.To.Commit(ctx, &b); err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	if !half {
		return nil
	}
	// The other copy may still run: its commits require its mark, which is gone.
	for _, r := range [][2][]byte{{nil, catalog.FormatKey}, {append(bytes.Clone(catalog.FormatKey), 0), {0xff}}} {
		if err := c.o.To.Sweep(ctx, append([]byte{}, r[0]...), r[1]); err != nil {
			return fmt.Errorf("remove the interrupted copy: %w", err)
		}
	}
	return nil
}

func isEmpty(db kv.DB) (bool, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Close()
	for _, err := range snap.Scan(nil, nil, kv.Forward) {
		return false, err
	}
	return true, nil
}

// copyAll copies the rows.
func (c *copying) copyAll(ctx context.Context, snap kv.Snapshot) error {
	c.began = time.Now()
	var b kv.Batch
	var rows, size int64
	flush := func() error {
		if rows == 0 {
			return nil
		}
		b.Require(catalog.FormatKey, c.mark)
		b.Lazy() // the last commit is not, and no commit is kept without those before it
		if err := c.commit(ctx, &b); err != nil {
			return err
		}
		c.progress.Rows, c.progress.Bytes = c.progress.Rows+rows, c.progress.Bytes+size
		b, rows, size = kv.Batch{}, 0, 0
		c.report(false)
		return nil
	}
	for e, err := range snap.Scan(nil, nil, kv.Forward) {
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		if c.stays(e.Key) {
			continue
		}
		b.Set(e.Key, e.Value)
		rows, size = rows+1, size+int64(len(e.Key)+len(e.Value))
		if rows == copyRows || size >= copyBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if c.progress.Rows != c.progress.AllRows || c.progress.Bytes != c.progress.AllBytes {
		return fmt.Errorf("%w: %d rows were counted in the source and %d read", kv.ErrCorrupt, c.progress.AllRows, c.progress.Rows)
	}
	return nil
}

// commit commits a batch of the copy. It only sets rows, so it may be repeated.
func (c *copying) commit(ctx context.Context, b *kv.Batch) error {
	for try := 1; ; try++ {
		err := c.o.To.Commit(ctx, b)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, kv.ErrConflict):
			return fmt.Errorf("another copy into the target has begun: %w", err)
		case errors.Is(err, kv.ErrLimit):
			return fmt.Errorf("a row of the source is larger than the target permits: %w", err)
		case try == copyTries || !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrUnavailable):
			return fmt.Errorf("write to the target: %w", err)
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
	}
}

// finish writes the time and the format, from which moment the copy can be opened.
func (c *copying) finish(ctx context.Context) error {
	var b kv.Batch
	b.Require(catalog.FormatKey, c.mark)
	b.Set(catalog.FormatKey, c.format)
	if err := c.setTime(ctx, &b); err != nil {
		return err
	}
	err := c.o.To.Commit(ctx, &b)
	for try := 1; errors.Is(err, kv.ErrUnknown) || errors.Is(err, kv.ErrUnavailable); try++ {
		if try == copyTries {
			break
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
		if raw, _, failed := kv.Get(c.o.To, catalog.FormatKey); failed == nil && bytes.Equal(raw, c.format) {
			return nil // it has happened
		}
		err = c.o.To.Commit(ctx, &b)
	}
	if err != nil {
		return fmt.Errorf("finish the copy: %w", err)
	}
	return nil
}

// setTime carries the source's time over to the target's kind of clock.
func (c *copying) setTime(ctx context.Context, b *kv.Batch) error {
	t := &c.time
	switch {
	case t.isOwn && !c.o.Shared:
		b.Set(catalog.ClockKey, t.own) // whose boot tells whether it is still the same machine
	case !c.o.Shared:
		state := clock.State{FloorMs: t.floorMs, Test: t.shared.Test, OffsetMs: t.shared.OffsetMs, Frozen: t.shared.StopMs != 0}
		state.FloorMs = max(state.FloorMs, t.shared.StopMs)
		b.Set(catalog.ClockKey, state.Encode())
	default:
		row := clock.Shared{Test: t.shared.Test, OffsetMs: t.shared.OffsetMs, StopMs: t.shared.StopMs}
		if t.isOwn {
			row = clock.Shared{Test: t.state.Test, OffsetMs: t.state.OffsetMs}
			if t.state.Frozen {
				row.StopMs = t.state.FloorMs
			}
		}
		_, engineMs, err := c.o.To.Look(ctx, catalog.FormatKey)
		if err != nil {
			return fmt.Errorf("look at the target: %w", err)
		}
		if row.StopMs == 0 && row.At(engineMs) < t.floorMs {
			row = row.Bridged(engineMs, t.floorMs)
		}
		key, former, err := cluster.FormerNode(copiedNode, t.floorMs)
		if err != nil {
			return err
		}
		b.Set(catalog.TimeKey, row.Encode())
		b.Set(key, former)
	}
	return nil
}

// report reports the progress, if it is time to.
func (c *copying) report(last bool) {
	now := time.Now()
	if c.o.Report == nil || !last && now.Sub(c.reported) < copyReports {
		return
	}
	if c.reported = now; !c.began.IsZero() {
		c.progress.Took = now.Sub(c.began)
	}
	c.o.Report(c.progress)
}
