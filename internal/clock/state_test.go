// SPDX-License-Identifier: MIT

package clock

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"
)

func states() []State {
	return []State{
		{},
		{FloorMs: startMs},
		{FloorMs: startMs, Boot: BootKey{1, 2, 3}, LineMs: -5, RewindToMs: 7},
		{FloorMs: startMs, Jumps: [MaxJumps]Jump{{1, 5, 4, DoubtMs}, {9, 12, 7, 0}}},
		{FloorMs: MaxMs, Test: true, Frozen: true, OffsetMs: MaxMs},
		{FloorMs: startMs, Test: true, OffsetMs: -MaxMs},
		{Test: true, Frozen: true},
	}
}

func TestStateSurvivesItsBytes(t *testing.T) {
	for _, want := range states() {
		got, err := DecodeState(want.Encode())
		if err != nil || got != want {
			t.Errorf("DecodeState(Encode(%+v)): got %+v, %v", want, got, err)
		}
	}
}

// TestStateFormatStays decodes bytes of version 1, which existing data has.
func TestStateFormatStays(t *testing.T) {
	const kept = "01030000000000001c1e0000000000000bb8fffffffffffffff99f64ae3e"
	want := State{FloorMs: 7198, Test: true, Frozen: true, OffsetMs: -7}
	b, err := hex.DecodeString(kept)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeState(b); err != nil || got != want {
		t.Errorf("DecodeState(%s): got %+v, %v, want %+v", kept, got, err, want)
	}
}

// TestSecondStateFormatStays does the same for version 2.
func TestSecondStateFormatStays(t *testing.T) {
	const kept = "02000000000000001c1e000000000000000001000000000000000000000000000009fffffffffffffff900000000000000030100000000000000010000000000000005000000000000000600000000000003e8dd73a49e"
	want := State{FloorMs: 7198, Boot: BootKey{1, 15: 9}, LineMs: -7, RewindToMs: 3, Jumps: [MaxJumps]Jump{{1, 5, 6, 1000}}}
	b, err := hex.DecodeString(kept)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeState(b); err != nil || got != want {
		t.Errorf("DecodeState(%s): got %+v, %v, want %+v", kept, got, err, want)
	}
	if got := hex.EncodeToString(want.Encode()); got != kept {
		t.Errorf("Encode(%+v): got %s, want %s", want, got, kept)
	}
}

func TestDecodeStateRefusesGarbage(t *testing.T) {
	good := State{FloorMs: startMs, Test: true, OffsetMs: 5, Jumps: [MaxJumps]Jump{{1, 5, 4, 9}}}.Encode()
	for n := range good {
		if _, err := DecodeState(good[:n]); !errors.Is(err, ErrBadState) {
			t.Errorf("first %d bytes: got error %v, want ErrBadState", n, err)
		}
	}
	if _, err := DecodeState(append(bytes.Clone(good), 0)); !errors.Is(err, ErrBadState) {
		t.Errorf("a byte too many: got error %v, want ErrBadState", err)
	}
	for bit := 8; bit < 8*len(good); bit++ {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := DecodeState(bad); !errors.Is(err, ErrBadState) {
			t.Errorf("bit %d flipped: got error %v, want ErrBadState", bit, err)
		}
	}
	flagged := bytes.Clone(good[:len(good)-sumBytes])
	flagged[1] |= 1 << 7
	flagged = binary.BigEndian.AppendUint32(flagged, stateSum(flagged))
	if _, err := DecodeState(flagged); !errors.Is(err, ErrBadState) {
		t.Errorf("unknown flag: got error %v, want ErrBadState", err)
	}
	old := bytes.Clone(good)
	old[0] = 0
	if _, err := DecodeState(old); !errors.Is(err, ErrBadState) {
		t.Errorf("version 0: got error %v, want ErrBadState", err)
	}
	newer := append(bytes.Clone(good), 1, 2, 3)
	newer[0] = stateVersion + 1
	if _, err := DecodeState(newer); !errors.Is(err, ErrNewerState) {
		t.Errorf("next version: got error %v, want ErrNewerState", err)
	}
}

func TestStateOutOfRangeIsRefused(t *testing.T) {
	bad := []State{
		{FloorMs: -1},
		{FloorMs: MaxMs + 1},
		{LineMs: MaxMs + 1},
		{LineMs: -MaxMs - 1},
		{FloorMs: 5, RewindToMs: 6},
		{FloorMs: 5, RewindToMs: -1},
		{Jumps: [MaxJumps]Jump{{5, 5, 4, 9}}},
		{Jumps: [MaxJumps]Jump{{1, 5, 0, 9}}},
		{Jumps: [MaxJumps]Jump{{1, 5, 4, DoubtMs + 1}}},
		{Jumps: [MaxJumps]Jump{{1, 5, 4, 0}, {4, 8, 4, 0}}},
		{Test: true, OffsetMs: MaxMs + 1},
		{Test: true, OffsetMs: -MaxMs - 1},
		{OffsetMs: 1},
		{Frozen: true},
	}
	for _, s := range bad {
		if _, err := DecodeState(s.Encode()); !errors.Is(err, ErrBadState) {
			t.Errorf("DecodeState of %+v: got error %v, want ErrBadState", s, err)
		}
		_, err := Open(Options{State: s, Test: s.Test, Save: func(State) error { return nil }})
		if !errors.Is(err, ErrBadState) {
			t.Errorf("Open with %+v: got error %v, want ErrBadState", s, err)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	for _, s := range states() {
		f.Add(s.Encode())
	}
	f.Add([]byte{})
	f.Add([]byte{stateVersion + 1})
	f.Add(bytes.Repeat([]byte{0xff}, stateBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			if !errors.Is(err, ErrBadState) && !errors.Is(err, ErrNewerState) {
				t.Errorf("DecodeState(%x): error %v is none of ours", b, err)
			}
			return
		}
		if got := s.Encode(); !bytes.Equal(got, b) && b[0] == stateVersion {
			t.Errorf("DecodeState(%x) = %+v, which encodes to %x", b, s, got)
		}
	})
}
