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
	// MaxWaiting is how many requests may wait to run a script: a waiting request takes the
	// memory of its body and its goroutine.
	MaxWaiting = 1024
	// MaxWait is how long each may wait. It is less than a script may take, so that clients
	// get an error when scripts keep all others from running.
	MaxWait = 2 * time.Second
)

// ErrBusy: no slot became free while the request waited, or too many requests waited
// already.
var ErrBusy = errors.New("too many scripts are running")

// gate lets a bounded number of goroutines in at a time, in the order in which they came. Not
// reentrant: a goroutine that is in may deadlock if it enters again.
type gate struct {
	slots chan struct{}
	queue chan struct{}
	wait  time.Duration
}

// GateOptions bound how many scripts run, and how many requests wait and how long.
type GateOptions struct {
	Slots int           // how many scripts run at once
	Queue int           // how many requests wait
	Wait  time.Duration // how long a request waits at most
}

func newGate(o GateOptions) *gate {
	return &gate{slots: make(chan struct{}, o.Slots), queue: make(chan struct{}, o.Queue), wait: o.Wait}
}

// enter waits for a slot, which leave gives back. The error is [ErrBusy] or the context's;
// then there is nothing to give back.
func (g *gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case g.slots <- struct{}{}: // never overtakes: free slots go to waiting goroutines
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
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return ErrBusy
	}
}

// leave gives a slot back.
func (g *gate) leave() { <-g.slots }

// load returns how many goroutines are inside, and how many wait.
func (g *gate) load() (inside, waiting int) { return len(g.slots), len(g.queue) }
