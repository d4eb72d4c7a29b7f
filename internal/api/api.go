// SPDX-License-Identifier: MIT

// Package api is what the database does for clients, whatever the transport by which
// they come. A transport finds out which resource a client means and what it wants done
// with it, and who it is; it fills the fields of a Request, and renders the fields of an
// Answer. What is between them is here: one table says which requests there are, what
// each needs to be let in, what it is called in metrics, and what answers it. Errors
// become statuses and words for clients in failure.go, and nowhere else.
package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
)

// Service answers requests.
type Service struct {
	Engine  *engine.Engine
	Account *Account
	Logger  *slog.Logger
	// Token makes a resource token for a permission.
	Token func(p *catalog.Permission, expires time.Time) string

	rooms sync.Pool // of *room
}

// Call is a request and its answer.
type Call struct {
	Service *Service
	Context context.Context
	// Row is what the table says of the request; nil if it has no row.
	Row     *Row
	Request Request
	Answer  Answer
	// Share is the memory that the request may take. It has a life of its own: a write
	// whose client has gone holds it until it is done.
	Share *memory.Share
	// Began is when the request came. Activity is what it is called in logs and errors,
	// and Method and Path say there what it was, in the words of its transport.
	Began                  time.Time
	Activity, Method, Path string

	room *room
}

// Begin makes a call ready to be filled.
func (s *Service) Begin(c *Call) {
	c.Service = s
	c.Request.Memory = c.Share
}

// End gives back what a call has taken. Its answer has been rendered.
func (c *Call) End() {
	if c.room != nil {
		c.Service.leaveRoom(c.room, c.Answer.Room)
	}
	c.Share.Close()
}

// room is memory for an item or the rows of a page. It is used again when they are sent.
type room struct {
	bytes []byte
}

// maxKeptRoom is the largest that is kept.
const maxKeptRoom = 64 << 10

// takeRoom takes memory for what is read.
func (c *Call) takeRoom() {
	c.room, _ = c.Service.rooms.Get().(*room)
	if c.room == nil {
		c.room = &room{}
	}
	c.Request.Room = c.room.bytes
}

// leaveRoom leaves the memory of an answer, if that is more than there was.
func (s *Service) leaveRoom(r *room, bytes []byte) {
	if cap(bytes) > cap(r.bytes) && cap(bytes) <= maxKeptRoom {
		r.bytes = bytes
	}
	s.rooms.Put(r)
}

// read does what reads an answer into memory. If there is not enough for it, what was
// read is let go of, and read again when there is.
func (c *Call) read(do func() (engine.Answer, error), size func(*engine.Answer) int) (err error) {
	c.Answer.Answer, err = do()
	n := size(&c.Answer.Answer)
	if n <= memory.FreeBytes || c.Share.TryTake(int64(n)) {
		return err
	}
	c.Answer.Answer = engine.Answer{}
	if err := c.Share.Take(c.Context, int64(n)); err != nil {
		return err
	}
	c.Answer.Answer, err = do()
	return err
}
