// SPDX-License-Identifier: MIT

package clock

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// State is the part of the clock that is saved with the data. DESIGN.md draws its bytes.
type State struct {
	// FloorMs is at or above every time that was ever returned; 0 for fresh data.
	FloorMs int64
	// Boot is the boot in which the state was saved, and LineMs the time minus that
	// boot's clock. Both verify a restart within one boot; Boot is zero if it has no ID.
	Boot   BootKey
	LineMs int64
	// Jumps are the jumps of the wall clock that were followed, the oldest first.
	Jumps [MaxJumps]Jump
	// RewindToMs is the time to which the data is being rewound; 0 without a rewind.
	RewindToMs int64
	// Test says that the data was written under a test clock.
	Test bool
	// Frozen says that the test clock stands at FloorMs.
	Frozen bool
	// OffsetMs is what a running test clock adds to the wall clock.
	OffsetMs int64
}

const (
	stateVersion = 2
	sumBytes     = 4
	jumpBytes    = 4 * 8
	// stateBytes is the length without jumps, firstStateBytes the length of version 1.
	stateBytes      = 1 + 1 + 2*8 + 16 + 2*8 + 1 + sumBytes
	firstStateBytes = 1 + 1 + 3*8 + sumBytes

	flagTest   = 1 << 0
	flagFrozen = 1 << 1
)

// Encode returns the state as bytes.
func (s State) Encode() []byte {
	var flags byte
	if s.Test {
		flags |= flagTest
	}
	if s.Frozen {
		flags |= flagFrozen
	}
	n := countJumps(s.Jumps)
	b := make([]byte, 0, stateBytes+n*jumpBytes)
	b = append(b, stateVersion, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(s.FloorMs))
	b = binary.BigEndian.AppendUint64(b, uint64(s.OffsetMs))
	b = append(b, s.Boot[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.LineMs))
	b = binary.BigEndian.AppendUint64(b, uint64(s.RewindToMs))
	b = append(b, byte(n))
	for _, j := range s.Jumps[:n] {
		for _, ms := range [...]int64{j.FromMs, j.ToMs, j.GapMs, j.LeftMs} {
			b = binary.BigEndian.AppendUint64(b, uint64(ms))
		}
	}
	return binary.BigEndian.AppendUint32(b, stateSum(b))
}

// DecodeState decodes the bytes of Encode, and those of version 1. It keeps no part of b.
// The error is ErrNewerState for bytes of a later version, and ErrBadState for all other
// bytes that Encode cannot have made.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return State{}, fmt.Errorf("%w: no bytes", ErrBadState)
	}
	if b[0] > stateVersion {
		return State{}, fmt.Errorf("%w: version %d, this program reads up to %d", ErrNewerState, b[0], stateVersion)
	}
	first := b[0] == 1 && len(b) == firstStateBytes
	if !first && (b[0] != stateVersion || len(b) < stateBytes || len(b) != stateBytes+int(b[stateBytes-sumBytes-1])*jumpBytes) {
		return State{}, fmt.Errorf("%w: version %d with %d bytes", ErrBadState, b[0], len(b))
	}
	body := b[:len(b)-sumBytes]
	if got, want := binary.BigEndian.Uint32(b[len(body):]), stateSum(body); got != want {
		return State{}, fmt.Errorf("%w: checksum %08x, computed %08x", ErrBadState, got, want)
	}
	flags := b[1]
	if flags&^(flagTest|flagFrozen) != 0 {
		return State{}, fmt.Errorf("%w: flags %08b", ErrBadState, flags)
	}
	s := State{Test: flags&flagTest != 0, Frozen: flags&flagFrozen != 0}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(body[at:])) }
	s.FloorMs = number(2)
	if first { // its second number is no longer used
		s.OffsetMs = number(18)
		return s, s.validate()
	}
	s.OffsetMs = number(10)
	copy(s.Boot[:], body[18:])
	s.LineMs, s.RewindToMs = number(34), number(42)
	n := int(body[50])
	if n > MaxJumps {
		return State{}, fmt.Errorf("%w: %d jumps", ErrBadState, n)
	}
	for i := range n {
		at := 51 + i*jumpBytes
		s.Jumps[i] = Jump{FromMs: number(at), ToMs: number(at + 8), GapMs: number(at + 16), LeftMs: number(at + 24)}
		if s.Jumps[i] == (Jump{}) {
			return State{}, fmt.Errorf("%w: jump %d is empty", ErrBadState, i)
		}
	}
	return s, s.validate()
}

func stateSum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// validate refuses values with which the clock's arithmetic could overflow, and settings
// of a test clock in data that never had one.
func (s State) validate() error {
	inTime := func(ms int64) bool { return ms >= 0 && ms <= MaxMs }
	switch {
	case !inTime(s.FloorMs):
		return fmt.Errorf("%w: floor %d ms", ErrBadState, s.FloorMs)
	case s.OffsetMs < -MaxMs || s.OffsetMs > MaxMs:
		return fmt.Errorf("%w: offset %d ms", ErrBadState, s.OffsetMs)
	case s.LineMs < -MaxMs || s.LineMs > MaxMs:
		return fmt.Errorf("%w: line %d ms", ErrBadState, s.LineMs)
	case !inTime(s.RewindToMs) || s.RewindToMs > s.FloorMs:
		return fmt.Errorf("%w: rewind to %d ms", ErrBadState, s.RewindToMs)
	case !s.Test && (s.Frozen || s.OffsetMs != 0):
		return fmt.Errorf("%w: frozen or offset without a test clock", ErrBadState)
	}
	for i, j := range s.Jumps[:countJumps(s.Jumps)] {
		if !inTime(j.FromMs) || !inTime(j.ToMs) || j.FromMs >= j.ToMs || j.GapMs <= 0 || j.GapMs > MaxJumps*MaxMs || j.LeftMs < 0 || j.LeftMs > DoubtMs {
			return fmt.Errorf("%w: jump %d: %+v", ErrBadState, i, j)
		}
		if i > 0 && j.FromMs < s.Jumps[i-1].ToMs {
			return fmt.Errorf("%w: jump %d begins before jump %d ends", ErrBadState, i, i-1)
		}
	}
	return nil
}
