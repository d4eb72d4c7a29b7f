// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// world is one engine and its nodes, in a bubble of synctest: time is scripted.
type world struct {
	t      *testing.T
	db     kv.DB
	stepMs atomic.Int64 // what the engine's clock is ahead of the bubble's
	nodes  map[string]*Node
	links  map[string]*link
}

func newWorld(t *testing.T) *world {
	return &world{t: t, db: kvtest.NewModel(), nodes: map[string]*Node{}, links: map[string]*link{}}
}

// options are those of a node of the world.
func (w *world) options(name string) Options {
	l := &link{DB: w.db, w: w}
	w.links[name] = l
	start := time.Now()
	return Options{
		DB: l, Name: name, Address: "http://" + name,
		Refuses: func(context.Context, string) bool { return false },
		Watch:   func() int64 { return time.Since(start).Milliseconds() },
	}
}

// join starts a node; it leaves with the test, unless it is stopped then.
func (w *world) join(name string) *Node {
	w.t.Helper()
	return w.joinWith(w.options(name))
}

func (w *world) joinWith(o Options) *Node {
	w.t.Helper()
	n, err := Join(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.nodes[o.Name] = n
	w.t.Cleanup(func() {
		o.DB.(*link).heal()
		n.cancel()
		n.work.Wait()
	})
	return n
}

// write is a commit of a partition, as package store makes it (rule 1).
func (w *world) write(key []byte, l Lease) error {
	var b kv.Batch
	b.Require(key, l.Fence)
	b.Set([]byte("data"), l.Fence)
	return w.db.Commit(context.Background(), &b)
}

// link is a node's way to the engine, which a test can cut, hold, and have lose answers.
type link struct {
	kv.DB
	w *world

	mu        sync.Mutex
	cut       bool
	held      chan struct{} // not nil: calls wait until it is closed
	loseAfter int           // the answers of so many commits are lost, although they happened
	loseCalls int           // so many commits are lost on the way; the node cannot tell
	delay     time.Duration
}

func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.loseAfter, l.loseCalls, l.delay = false, 0, 0, 0
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

// hold stops the node: none of its calls reaches the engine until it is healed.
func (l *link) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
}

func (l *link) set(f func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// pass waits as the link wants, and reports whether it is cut. A held call ignores its
// context: a stopped process does not notice that its time is up.
func (l *link) pass() error {
	l.mu.Lock()
	held, delay := l.held, l.delay
	l.mu.Unlock()
	if held != nil {
		<-held
	}
	time.Sleep(delay)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return kv.ErrUnavailable
	}
	return nil
}

func (l *link) Look(ctx context.Context, keys ...[]byte) ([][]byte, int64, error) {
	if err := l.pass(); err != nil {
		return nil, 0, err
	}
	values, _, err := l.DB.Look(context.WithoutCancel(ctx), keys...)
	return values, time.Now().UnixMilli() + l.w.stepMs.Load(), err
}

func (l *link) Snapshot() (kv.Snapshot, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.DB.Snapshot()
}

func (l *link) Commit(ctx context.Context, b *kv.Batch) error {
	if err := l.pass(); err != nil {
		return err
	}
	l.mu.Lock()
	lost, late := l.loseCalls > 0, l.loseAfter > 0
	if lost {
		l.loseCalls--
	} else if late {
		l.loseAfter--
	}
	l.mu.Unlock()
	if lost {
		return kv.ErrUnknown
	}
	err := l.DB.Commit(context.WithoutCancel(ctx), b)
	if late && err == nil {
		return kv.ErrUnknown
	}
	return err
}
