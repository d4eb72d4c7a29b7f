// SPDX-License-Identifier: MIT

// How many scripts run at once.

package script

import (
	"context"
	"errors"
	"time"
)

const (
	// MaxAtOnce is how many scripts may run at the same time. What is watched of their
	// memory is watched together, and bounded whatever their number; what one takes
	// within a tick, or in one instruction, is not, and may be some hundred megabytes.
	// This is what multiplies that.
	MaxAtOnce = 8
	// MaxWaiting is how many requests may wait to run one: the memory of one that
	// waits is its body and its goroutine.
	MaxWaiting = 1024
	// MaxWait is how long each may wait. It is less than a script may take, so that
	// clients hear of scripts that keep all others from running.
	MaxWait = 2 * time.Second
)

// ErrBusy: as many scripts were running as may, for as long as one may wait; or too
// many waited already.
var ErrBusy = errors.New("too many scripts are running")

// Gate lets a bounded number of goroutines in at a time, and those in front of it in
// the order in which they came. Who is in must not enter again: all could be.
type Gate struct {
	places chan struct{}
	queue  chan struct{}
	wait   time.Duration
}

// GateOptions are the parameters of a gate.
type GateOptions struct {
	Places int           // inside
	Queue  int           // before it
	Wait   time.Duration // at most
}

// NewGate returns an open gate.
func NewGate(o GateOptions) *Gate {
	return &Gate{places: make(chan struct{}, o.Places), queue: make(chan struct{}, o.Queue), wait: o.Wait}
}

// Enter waits for a place, which Leave gives back. Beside [ErrBusy] it returns the
// context's error; then there is nothing to give back.
func (g *Gate) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case g.places <- struct{}{}: // never before one who waits: its place is taken as it gets free
		return nil
	default:
	}
	select {
	case g.queue <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-g.queue }()
	timeout := time.NewTimer(g.wait)
	defer timeout.Stop()
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return ErrBusy
	}
}

// Leave gives a place back.
func (g *Gate) Leave() { <-g.places }

// Load tells how many are inside, and how many wait.
func (g *Gate) Load() (inside, waiting int) { return len(g.places), len(g.queue) }
