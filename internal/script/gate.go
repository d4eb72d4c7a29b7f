// SPDX-License-Identifier: MIT

// How many scripts run at once.

package script

import (
	"context"
	"errors"
	"time"
)

const (
	// MaxAtOnce is how many scripts may run at the same time, and how many workers there
	// are at most.
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

// gate lets a bounded number of goroutines in at a time, and those in front of it in
// the order in which they came. A goroutine that is in must not enter again: all could
// be.
type gate struct {
	places chan struct{}
	queue  chan struct{}
	wait   time.Duration
}

// GateOptions say how many scripts run, and how many wait.
type GateOptions struct {
	Places int           // inside
	Queue  int           // before it
	Wait   time.Duration // at most
}

func newGate(o GateOptions) *gate {
	return &gate{places: make(chan struct{}, o.Places), queue: make(chan struct{}, o.Queue), wait: o.Wait}
}

// enter waits for a place, which leave gives back. Beside [ErrBusy] it returns the
// context's error; then there is nothing to give back.
func (g *gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case g.places <- struct{}{}: // never before one that waits: its place is taken as it gets free
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

// leave gives a place back.
func (g *gate) leave() { <-g.places }

// load tells how many are inside, and how many wait.
func (g *gate) load() (inside, waiting int) { return len(g.places), len(g.queue) }
