// SPDX-License-Identifier: MIT

package ru

import (
	"math"
	"sync"
	"time"
)

// Limits of a Meter.
const (
	// MaxRate is the most that a Meter allows in a second. It stands for no limit.
	MaxRate Units = 1e12
	// MaxDebt is the largest debt, as the time it takes to pay it back. Units spent
	// beyond it are forgotten.
	MaxDebt = time.Hour
)

// burst is how long unspent units accrue.
const burst = time.Second

// Meter limits what a container may spend in a second, or a partition of it, or a
// database whose containers share throughput. Units accrue continuously, up to one
// second's worth. A request is admitted while the balance is above zero, and settles its
// charge when it is done. That may leave a debt; later requests wait until it is paid
// back. Requests that run at the same time are admitted without knowing each other's
// charges; all charges are paid back.
//
// Over any n seconds, requests that follow one another spend at most n+1 seconds' worth
// plus the charge of the last.
//
// A Meter on which only Settle is called limits nothing, and shows what was used and what
// is left over. To enforce a rate after that, make a new Meter: this one may be deep in
// debt.
//
// Each now is the time since the process started. A now that is earlier than a previous
// one, as racing goroutines may pass, counts as the previous one. A Meter is safe for
// concurrent use and does not allocate.
type Meter struct {
	mu struct {
		sync.Mutex
		rate Units
		// last is the latest now.
		last time.Duration
		// broke is when the balance is zero: in the past while there are units, and in
		// the future while there is a debt. The balance is rate * (last - broke). As a
		// time, in whole nanoseconds and rounded up, it does not drift however often it
		// is changed, and waiting until then is always enough.
		broke time.Duration
		// second is the whole second that last is in. used and usedBefore are what
		// was settled in it and in the one before it.
		second           int64
		used, usedBefore Units
		// spent is how many of the units left over were spent in this second.
		spent Units
	}
}

// NewMeter returns a Meter with one second's worth of units. A rate that is not
// above zero admits nothing; one above MaxRate counts as MaxRate.
func NewMeter(perSecond Units) *Meter {
	m := &Meter{}
	m.mu.rate = clampRate(perSecond)
	m.mu.broke = -burst
	return m
}

// SetRate changes what may be spent in a second. The balance stays as it is, in units, up
// to one second's worth at the new rate.
func (m *Meter) SetRate(perSecond Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.mu.rate
	m.mu.rate = clampRate(perSecond)
	owed := Units(max(m.mu.broke-m.mu.last, -burst).Seconds()) * old
	m.mu.broke = m.mu.last + min(span(owed, m.mu.rate), MaxDebt)
}

// Rate returns what may be spent in a second.
func (m *Meter) Rate() Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.rate
}

// Admit reports whether a request may begin. If not, retryAfter is how long it takes until
// there are units again if nothing else is settled, in whole milliseconds.
func (m *Meter) Admit(now time.Duration) (retryAfter time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceLocked(now)
	if m.mu.rate <= 0 {
		return MaxDebt, false
	}
	wait := m.mu.broke - m.mu.last
	if wait < 0 {
		return 0, true
	}
	// At broke itself the balance is zero, which is not enough.
	return wait.Truncate(time.Millisecond) + time.Millisecond, false
}

// Settle records the charge of a request. Charges of zero or less are ignored.
func (m *Meter) Settle(now time.Duration, u Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceLocked(now)
	if !(u > 0) {
		return
	}
	m.mu.used += u
	m.mu.broke = min(max(m.mu.broke, m.mu.last-burst)+span(u, m.mu.rate), m.mu.last+MaxDebt)
}

// Used returns what was settled in the last whole second before now. Seconds are
// counted from the start of the process.
func (m *Meter) Used(now time.Duration) Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceLocked(now)
	return m.mu.usedBefore
}

// Leftover returns what requests did not use in the last whole second before now. No
// request can use those units any more, so spending them takes nothing from requests. It
// returns the same throughout a second, whatever SpendLeftover took.
func (m *Meter) Leftover(now time.Duration) Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceLocked(now)
	return max(0, m.mu.rate-m.mu.usedBefore)
}

// SpendLeftover records that u of the units left over were spent.
func (m *Meter) SpendLeftover(now time.Duration, u Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceLocked(now)
	m.mu.spent += u
}

// Unspent returns how much of the units left over, times share, has not been spent in this
// second; below zero if more was.
func (m *Meter) Unspent(now time.Duration, share Units) Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceLocked(now)
	return share*max(0, m.mu.rate-m.mu.usedBefore) - m.mu.spent
}

// advanceLocked moves last and second on to now.
func (m *Meter) advanceLocked(now time.Duration) {
	m.mu.last = max(m.mu.last, now)
	second := int64(m.mu.last / time.Second)
	switch second - m.mu.second {
	case 0:
		return
	case 1:
		m.mu.usedBefore = m.mu.used
	default:
		m.mu.usedBefore = 0
	}
	m.mu.second, m.mu.used, m.mu.spent = second, 0, 0
}

// spanMax leads from a full balance to the deepest debt. It bounds spans so that they fit
// into a time.Duration.
const spanMax = MaxDebt + burst

// span returns how long u takes to accrue, rounded up.
func span(u, rate Units) time.Duration {
	if rate <= 0 {
		return 0
	}
	ns := math.Ceil(float64(u) * float64(time.Second) / float64(rate))
	return time.Duration(min(max(ns, -float64(spanMax)), float64(spanMax)))
}

func clampRate(perSecond Units) Units {
	if !(perSecond > 0) { // also if it is not a number
		return 0
	}
	return min(perSecond, MaxRate)
}
