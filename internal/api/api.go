// SPDX-License-Identifier: MIT

// Package api is what the database does for clients, whatever the transport. A transport
// finds out which resource and verb a request means, and passes on its credential. It fills
// the fields of a Request, and renders the fields of an Answer. One table lists the
// requests that there are: which credentials allow each, its name in metrics, and the
// function that answers it. Errors become statuses and messages for clients in failure.go,
// and nowhere else.
package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/binaryjson"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
)

// Service answers requests.
type Service struct {
	Engine  *engine.Engine
	Account *Account
	Keys    *Keys
	Journal *Journal
	Logger  *slog.Logger
	// Moments has calls note the time at which they began, for tests.
	Moments bool

	rooms sync.Pool // of *room
}

// Call is a request and its answer.
type Call struct {
	Service *Service
	Context context.Context
	// Row is the request's row of the table; nil if it has none.
	Row     *Row
	Request Request
	Answer  Answer
	// Share is the memory that the request may take. It can outlive the request: a write
	// whose client has gone holds it until the write is done.
	Share *memory.Share
	// Began is when the request arrived. Activity identifies it in logs and errors.
	// Method and Path describe it there, in the terms of its transport.
	Began                  time.Time
	Activity, Method, Path string
	// Bare has errors within an answer, those of operations of a batch, written as the
	// service's backend writes them. Else they have what its gateway puts around them.
	Bare bool
	// Origin tells the log where the call came from; nil if nobody knows.
	Origin Origin
	// FromMs is the database's time when the handler was called; 0 unless the service's
	// Moments is set.
	FromMs int64

	room   *room
	waited bool // for memory

	// For the log: the client's credential, once it was admitted; the error that it got, and
	// its cause, if clients may not see that; and what it did, if that matters for security.
	by       Credential
	admitted bool
	failure  Failure
	cause    error
	audited  string
}

// Begin connects a call to the service. The transport fills the rest.
func (s *Service) Begin(c *Call) {
	c.Service = s
	c.Request.Memory = c.Share
}

// errAgain has a request done again.
var errAgain = errors.New("the request is done again")

// Handle answers the request, which was admitted, by the handler of its row. It calls the
// handler again, with a fresh answer, after a wait for memory and if the request's
// partition was closed under it. This is the only place where a request is repeated, and
// where its moment is taken.
func (c *Call) Handle() (err error) {
	r := &c.Request
	if binaryjson.Is(r.Body) {
		if r.Body, err = c.textOf(r.Body, c.Row.MaxBody); err != nil {
			return err
		}
	}
	target, attempts := r.Target, engine.Attempts{}
	for {
		if err = c.Service.Engine.Moment(c.Context); err == nil {
			if c.Service.Moments {
				c.FromMs = c.Service.Engine.Clock().Now()
			}
			err = c.handle()
		}
		if !errors.Is(err, errAgain) && !attempts.Again(&err) {
			break
		}
		r.Target, c.Answer = target, Answer{}
	}
	if err == nil && r.BinaryAnswer {
		err = c.Answer.toBinary()
	}
	return err
}

// handle answers a request by what holds at its moment.
func (c *Call) handle() error {
	if !c.Row.Reads && !c.Service.regions().WritableAt(c.Request.Host) {
		return errRegion
	}
	return c.Row.Handle(c)
}

// End gives back the call's memory. Call it after the answer was rendered.
func (c *Call) End() {
	if c.room != nil {
		c.Service.leaveRoom(c.room, c.Answer.Room)
	}
	c.Share.Close()
}

// room is a buffer for an item or for the rows of a page. It is reused once they are
// sent.
type room struct {
	bytes []byte
}

// maxKeptRoom is the size of the largest buffer that is kept for reuse.
const maxKeptRoom = 64 << 10

// takeRoom gives the request a buffer for what it reads.
func (c *Call) takeRoom() {
	if c.room != nil {
		return // of an earlier attempt
	}
	c.room, _ = c.Service.rooms.Get().(*room)
	if c.room == nil {
		c.room = &room{}
	}
	c.Request.Room = c.room.bytes
}

// leaveRoom keeps the larger of the room's buffer and the answer's, and returns the room.
func (s *Service) leaveRoom(r *room, bytes []byte) {
	if cap(bytes) > cap(r.bytes) && cap(bytes) <= maxKeptRoom {
		r.bytes = bytes
	}
	s.rooms.Put(r)
}

// hold charges n bytes of the answer to the call's share. If the memory is not there at
// once, hold drops the answer, waits for the memory, and has the request done again:
// answers that wait must not hold what they wait for. A request waits once.
func (c *Call) hold(n int) error {
	if n <= memory.FreeBytes || c.waited || c.Share.TryTake(int64(n)) {
		return nil
	}
	c.Answer.Answer, c.waited = engine.Answer{}, true
	if err := c.Share.Take(c.Context, int64(n)); err != nil {
		return err
	}
	return errAgain
}
