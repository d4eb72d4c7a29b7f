// SPDX-License-Identifier: MIT

package clock

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Shared is the clock row of an engine that several nodes share. The time is a function of
// this row and of the engine's time alone, so all nodes agree on it, whatever their own
// clocks say. DESIGN.md, "A clock without a source", gives the reasons.
type Shared struct {
	// ShiftMs is added to the engine's time. Below zero it holds a jump ahead. Above zero it
	// bridges a step back, and shrinks by a millisecond for every two of the engine's time
	// since ShiftFromMs: the time goes at half its pace until the engine's time is there.
	ShiftMs, ShiftFromMs int64
	// GapMs is the size of the steps ahead that were followed and are in doubt until the time
	// GapUntilMs.
	GapMs, GapUntilMs int64
	// Test says that the data was written under a test clock. OffsetMs is what that adds to
	// the time, and StopMs, if it is not zero, where it stops: it is frozen there.
	Test             bool
	OffsetMs, StopMs int64
}

const (
	// JumpMs is the largest step ahead of the engine's time that is followed: seven days. A
	// larger one is held for all nodes until an operator confirms it, or it goes back.
	JumpMs = 7 * 24 * 60 * 60 * 1000
	// StepAheadMs is the smallest step ahead of the engine's time that is in doubt.
	StepAheadMs = 60 * 1000
	// StepBackMs is the largest step back of the engine's time at which the time stands still
	// until the engine's is there. A larger one is bridged.
	StepBackMs = 3000

	sharedVersion = 1
	sharedBytes   = 1 + 1 + 6*8 + sumBytes
)

// Encode returns the row as bytes.
func (s Shared) Encode() []byte {
	b := make([]byte, 0, sharedBytes)
	b = append(b, sharedVersion, 0)
	if s.Test {
		b[1] = flagTest
	}
	for _, ms := range [...]int64{s.ShiftMs, s.ShiftFromMs, s.GapMs, s.GapUntilMs, s.OffsetMs, s.StopMs} {
		b = binary.BigEndian.AppendUint64(b, uint64(ms))
	}
	return binary.BigEndian.AppendUint32(b, stateSum(b))
}

// DecodeShared decodes the bytes of Encode; no bytes are the zero row. The error is
// ErrNewerState for bytes of a later version, and ErrBadState for all other bytes that
// Encode cannot have made.
func DecodeShared(b []byte) (Shared, error) {
	switch {
	case len(b) == 0:
		return Shared{}, nil
	case b[0] > sharedVersion:
		return Shared{}, fmt.Errorf("%w: shared clock of version %d, this program reads up to %d", ErrNewerState, b[0], sharedVersion)
	case b[0] != sharedVersion || len(b) != sharedBytes:
		return Shared{}, fmt.Errorf("%w: shared clock of version %d with %d bytes", ErrBadState, b[0], len(b))
	}
	body := b[:len(b)-sumBytes]
	if got, want := binary.BigEndian.Uint32(b[len(body):]), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)); got != want {
		return Shared{}, fmt.Errorf("%w: shared clock with checksum %08x, computed %08x", ErrBadState, got, want)
	}
	if b[1]&^flagTest != 0 {
		return Shared{}, fmt.Errorf("%w: shared clock with flags %08b", ErrBadState, b[1])
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(body[2+8*i:])) }
	s := Shared{
		ShiftMs: number(0), ShiftFromMs: number(1), GapMs: number(2), GapUntilMs: number(3),
		Test: b[1] == flagTest, OffsetMs: number(4), StopMs: number(5),
	}
	return s, s.validate()
}

// validate refuses values with which the arithmetic could overflow, and settings of a test
// clock in data that never had one.
func (s Shared) validate() error {
	for _, ms := range [...]int64{s.ShiftFromMs, s.GapMs, s.GapUntilMs, s.StopMs} {
		if ms < 0 || ms > MaxMs {
			return fmt.Errorf("%w: shared clock %+v", ErrBadState, s)
		}
	}
	for _, ms := range [...]int64{s.ShiftMs, s.OffsetMs} {
		if ms < -MaxMs || ms > 2*MaxMs {
			return fmt.Errorf("%w: shared clock %+v", ErrBadState, s)
		}
	}
	if !s.Test && (s.OffsetMs != 0 || s.StopMs != 0) {
		return fmt.Errorf("%w: shared clock %+v: frozen or offset without a test clock", ErrBadState, s)
	}
	return nil
}

// At returns the time of the database at a time of the engine.
func (s Shared) At(engineMs int64) int64 {
	t := min(max(s.corrected(engineMs)+s.OffsetMs, 0), MaxMs)
	if s.StopMs != 0 {
		t = min(t, s.StopMs)
	}
	return t
}

// Frozen reports whether the time t of this row stands still.
func (s Shared) Frozen(t int64) bool { return s.StopMs != 0 && t >= s.StopMs }

// corrected returns the engine's time without its jumps and steps back.
func (s Shared) corrected(engineMs int64) int64 {
	return min(max(engineMs+s.shift(engineMs), 0), MaxMs)
}

// shift returns what the row adds to a time of the engine.
func (s Shared) shift(engineMs int64) int64 {
	if s.ShiftMs <= 0 {
		return s.ShiftMs
	}
	return max(0, s.ShiftMs-max(0, engineMs-s.ShiftFromMs)/2)
}

// doubt returns how much of the engine's time is in doubt.
func (s Shared) doubt(engineMs int64) int64 {
	if s.corrected(engineMs) >= s.GapUntilMs {
		return 0
	}
	return s.GapMs
}

// horizon returns the time up to which expired items may be purged, if the time is nowMs.
func (s Shared) horizon(engineMs, nowMs int64) int64 { return max(0, nowMs-s.doubt(engineMs)) }

// bridge lets the time go on from at, at half its pace until the engine's time is there.
func (s *Shared) bridge(engineMs, at int64) { s.ShiftMs, s.ShiftFromMs = at-engineMs, engineMs }

// Bridged returns the row with which the time at engineMs is ms, which is ahead of it.
func (s Shared) Bridged(engineMs, ms int64) Shared {
	s.bridge(engineMs, min(max(ms-s.OffsetMs, 0), MaxMs))
	return s
}

// Trail is where the engine's time was when a node last looked, with the node's own watch.
// The zero Trail is that of a node that has not looked yet.
type Trail struct {
	watchMs, engineMs, timeMs, doubtMs int64
	known                              bool
}

// Trail returns the trail of a look.
func (s Shared) Trail(engineMs, watchMs int64) Trail {
	return Trail{watchMs, engineMs, s.corrected(engineMs), s.doubt(engineMs), true}
}

// Judge compares the engine's time with where it was at the node's last look plus what the
// node's watch has counted since. It returns the row as it should be: another than s if
// the engine's clock has stepped and no node has written that into the row yet. The node
// that sees a step first saves the row before it uses the time, so no node ever does.
func (s Shared) Judge(engineMs, watchMs int64, was Trail) Shared {
	if !was.known {
		return s
	}
	passed := max(0, watchMs-was.watchMs)
	line := was.timeMs + passed
	stepped := engineMs - was.engineMs - passed
	switch {
	case s.ShiftMs < 0 && engineMs <= line+JumpMs: // the held jump went back
		s.ShiftMs, s.ShiftFromMs = 0, 0
		stepped = max(stepped, engineMs-line)
	case s.ShiftMs > 0 && stepped > 0 && stepped >= s.shift(engineMs) && engineMs >= line: // a step back was made good: nothing is left to bridge
		s.ShiftMs, s.ShiftFromMs = 0, 0
	}
	now := s.corrected(engineMs)
	// Both must have moved: the row's change alone is an operator's, or another node's, and
	// the engine's alone is in the row already.
	if min(stepped, now-line) > JumpMs {
		s.bridge(engineMs, line)
		return s
	}
	known := max(0, s.doubt(engineMs)-was.doubtMs) // by the row of a node that saw it before
	if ahead := min(stepped, now-line-known); ahead > StepAheadMs {
		s.GapMs, s.GapUntilMs = min(s.doubt(engineMs)+ahead, MaxMs), min(now+DoubtMs, MaxMs)
	}
	if now < was.timeMs-StepBackMs {
		s.bridge(engineMs, line)
	}
	return s
}

// JudgeStart is Judge for a node that starts: floorMs is the highest time that any node may
// have used, 0 for fresh data, and alone says that no other node is alive. All nodes may
// have been off for long, so the time is followed however far it is ahead; then it is in
// doubt for a day.
func (s Shared) JudgeStart(engineMs, floorMs int64, alone bool) Shared {
	if floorMs == 0 || s.StopMs != 0 {
		return s
	}
	floor := floorMs - s.OffsetMs
	if s.ShiftMs < 0 && engineMs <= floor+JumpMs {
		s.ShiftMs, s.ShiftFromMs = 0, 0
	}
	now := s.corrected(engineMs)
	switch {
	case alone && now > floor+JumpMs:
		s.GapMs, s.GapUntilMs = min(max(s.doubt(engineMs), now-floor), MaxMs), min(now+DoubtMs, MaxMs)
	case now < floor-StepBackMs:
		s.bridge(engineMs, floor)
	}
	return s
}
