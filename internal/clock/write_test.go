// SPDX-License-Identifier: MIT

package clock

import (
	"testing"
	"time"
)

// wrote checks both times of a moment, relative to startMs.
func (s *story) wrote(wantNow, wantWrite int64) {
	s.Helper()
	now, write := s.c.NowAndWrite()
	s.c.background.Wait()
	if now != startMs+wantNow || write != startMs+wantWrite {
		s.Fatalf("got start%+d ms to read and start%+d ms to write, want %+d and %+d", now-startMs, write-startMs, wantNow, wantWrite)
	}
}

// A clock that is finer than a millisecond is rounded down for reads and up for
// writes; neither goes back when it is set back, crashes or is started again.
func TestWritesAreRoundedUp(t *testing.T) {
	s := newStory(t)
	s.at.Floored = true
	s.open()
	s.wrote(0, 1)
	s.pass(1)
	s.wrote(1, 2)
	s.step(-20)
	s.wrote(1, 2)
	s.pass(40)
	s.wrote(21, 22)
	s.restart()
	s.wrote(21, 22)
}

// Write times are no larger than the largest time either: _ts has room for no more.
func TestWritesEndWithTime(t *testing.T) {
	s := newStory(t)
	s.at = Reading{WallMs: MaxMs, Floored: true}
	s.open()
	if now, write := s.c.NowAndWrite(); now != MaxMs || write != MaxMs {
		t.Errorf("got %d and %d, want %d", now, write, int64(MaxMs))
	}
}

// A frozen time is exact, and not before anything that was written while it ticked.
func TestFrozenWritesAreExact(t *testing.T) {
	s := newStory(t)
	s.test, s.at.Floored = true, true
	s.open()
	s.wrote(0, 1)
	s.ok(s.c.Freeze())
	s.wrote(1, 1)
	s.ok(s.c.Advance(time.Second))
	s.wrote(1001, 1001)
	s.restart()
	s.wrote(1001, 1001)
	s.ok(s.c.Freeze())
	s.wrote(1001, 1001)
	s.ok(s.c.Release())
	s.wrote(1001, 1002)
}
