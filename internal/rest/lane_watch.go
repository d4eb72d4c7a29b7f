// SPDX-License-Identifier: MIT

// Watching whether the client of a request that takes long is still there. net/http has a
// goroutine for each request that waits for a byte. A lane looks at the socket from time
// to time instead, which costs a request that ends sooner nothing but a timer.

package rest

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// watch watches the client of one connection.
type watch struct {
	file   syscall.RawConn
	timer  *time.Timer
	mu     sync.Mutex
	cancel context.CancelFunc // of the request under way, or nil
}

// begin watches during a request. If its client leaves, it calls cancel.
func (w *watch) begin(cancel context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = cancel
	if w.timer == nil {
		w.timer = time.AfterFunc(goneEvery, w.look)
	} else {
		w.timer.Reset(goneEvery)
	}
}

// end ends the watch of a request.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = nil
	w.timer.Stop()
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cancel == nil:
	case hasLeft(w.file):
		w.cancel()
	default:
		w.timer.Reset(goneEvery)
	}
}
