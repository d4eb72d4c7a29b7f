// SPDX-License-Identifier: MIT

package clock

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// State is what is kept of the clock with the data. DESIGN.md draws its bytes.
type State struct {
	// FloorMs is at or above every time that was ever returned; 0 with fresh data.
	FloorMs int64
	// SuspectUntilMs is the database time before which purge does not trust the
	// clock, after a restart found a jump too large to believe at once. It is kept
	// so that another restart does not shorten the wait; 0 when there was none.
	SuspectUntilMs int64
	// Test says that the data was written under a test clock.
	Test bool
	// Frozen says that the test clock stands at FloorMs.
	Frozen bool
	// OffsetMs is what a running test clock adds to the wall clock.
	OffsetMs int64
}

const (
	stateVersion = 1
	stateBytes   = 1 + 1 + 3*8 + 4

	flagTest   = 1 << 0
	flagFrozen = 1 << 1
)

// Encode returns the bytes to keep.
func (s State) Encode() []byte {
	var flags byte
	if s.Test {
		flags |= flagTest
	}
	if s.Frozen {
		flags |= flagFrozen
	}
	b := make([]byte, 0, stateBytes)
	b = append(b, stateVersion, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(s.FloorMs))
	b = binary.BigEndian.AppendUint64(b, uint64(s.SuspectUntilMs))
	b = binary.BigEndian.AppendUint64(b, uint64(s.OffsetMs))
	return binary.BigEndian.AppendUint32(b, stateSum(b))
}

// DecodeState reads the bytes of Encode. It keeps no part of b. Bytes of a later
// version are ErrNewerState, any others that Encode cannot have made ErrBadState.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return State{}, fmt.Errorf("%w: no bytes", ErrBadState)
	}
	if b[0] > stateVersion {
		return State{}, fmt.Errorf("%w: version %d, this program reads up to %d", ErrNewerState, b[0], stateVersion)
	}
	if b[0] != stateVersion || len(b) != stateBytes {
		return State{}, fmt.Errorf("%w: version %d with %d bytes", ErrBadState, b[0], len(b))
	}
	body := b[:stateBytes-4]
	if got, want := binary.BigEndian.Uint32(b[stateBytes-4:]), stateSum(body); got != want {
		return State{}, fmt.Errorf("%w: checksum %08x, computed %08x", ErrBadState, got, want)
	}
	flags := b[1]
	if flags&^(flagTest|flagFrozen) != 0 {
		return State{}, fmt.Errorf("%w: flags %08b", ErrBadState, flags)
	}
	s := State{
		FloorMs:        int64(binary.BigEndian.Uint64(b[2:])),
		SuspectUntilMs: int64(binary.BigEndian.Uint64(b[10:])),
		OffsetMs:       int64(binary.BigEndian.Uint64(b[18:])),
		Test:           flags&flagTest != 0,
		Frozen:         flags&flagFrozen != 0,
	}
	return s, s.validate()
}

func stateSum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// validate refuses values on which the clock's arithmetic could overflow, and
// traces of a test clock in data that never had one.
func (s State) validate() error {
	switch {
	case s.FloorMs < 0 || s.FloorMs > MaxMs:
		return fmt.Errorf("%w: floor %d ms", ErrBadState, s.FloorMs)
	case s.SuspectUntilMs < 0 || s.SuspectUntilMs > MaxMs:
		return fmt.Errorf("%w: suspect until %d ms", ErrBadState, s.SuspectUntilMs)
	case s.OffsetMs < -MaxMs || s.OffsetMs > MaxMs:
		return fmt.Errorf("%w: offset %d ms", ErrBadState, s.OffsetMs)
	case !s.Test && (s.Frozen || s.OffsetMs != 0):
		return fmt.Errorf("%w: moved without a test clock", ErrBadState)
	}
	return nil
}
