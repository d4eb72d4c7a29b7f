// SPDX-License-Identifier: MIT

// One request and its answer.

package direct

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

var (
	errDraining   = api.Refuse(410, 0, "The server is stopping. Look for its address again.")
	errBodyTooBig = api.Refuse(413, 0, "Request size is too large")
	errTokens     = api.Refuse(400, 0, "The request is not a frame of direct mode: a token is cut, or has another type than it must have.")
	errUnknown    = api.Refuse(400, 0, "The resource or operation of the request is not known in direct mode.")
)

// exchange is a request and its answer.
type exchange struct {
	api.Call
	ch        *channel
	id        rntbd.GUID // of the client's activity
	transport uint32     // by which the client finds the answer's request
	asked     asked
	executing bool // holds a value in the server's channel of that name
	inline    bool // the channel's reader executes it
}

// open reads the frame that opens the channel, and answers it.
func (ch *channel) open() error {
	if err := ch.awaitFrame(); err != nil {
		return err
	}
	share := ch.s.Memory.Share()
	defer share.Close()
	h, tokens, err := ch.head(&share)
	if err != nil {
		return err
	}
	if h.Resource != rntbd.Connection || h.Operation != rntbd.Connect {
		return malformed("a channel begins with a frame that does not open it")
	}
	version, known := uint32(0), rntbd.Scan(tokens, rntbd.ContextTokens)
	for known.Next() {
		if known.ID == rntbd.ContextProtocolVersion {
			version = known.Uint32()
		}
	}
	if known.Err() != nil {
		return malformed("the frame that opens a channel is malformed")
	}
	if err := ch.begin(); err != nil {
		return err
	}
	ch.send(accepted(newFrame(), h.Activity, version))
	if version != protocolVersion {
		return malformed("a client speaks version %d of the protocol", version)
	}
	return nil
}

// next reads one request, and starts to execute it or refuses it.
func (ch *channel) next() error {
	if err := ch.awaitFrame(); err != nil {
		return err
	}
	if err := ch.begin(); err != nil {
		return err
	}
	x := ch.s.newExchange(ch)
	passed, err := x.read()
	if !passed {
		x.end()
		ch.leave(1, 0)
	}
	return err
}

func (s *Server) newExchange(ch *channel) *exchange {
	x, _ := s.exchanges.Get().(*exchange)
	if x == nil {
		x = &exchange{}
	}
	x.ch = ch
	share := s.Memory.Share()
	x.Began, x.Context, x.Share = time.Now(), ch.ctx, &share
	x.Origin, x.Bare = x, true
	s.Service.Begin(&x.Call)
	return x
}

// CameFrom implements api.Origin.
func (x *exchange) CameFrom() (activity, client string) {
	return x.id.String(), x.ch.conn.RemoteAddr().String()
}

// end gives back what the exchange holds.
func (x *exchange) end() {
	s := x.ch.s
	x.release()
	x.End()
	*x = exchange{}
	s.exchanges.Put(x)
}

// acquire waits until one more request may execute.
func (x *exchange) acquire() error {
	select {
	case x.ch.s.executing <- struct{}{}:
		x.executing = true
		return nil
	default:
	}
	x.ch.flush()
	select {
	case x.ch.s.executing <- struct{}{}:
		x.executing = true
		return nil
	case <-x.ch.ctx.Done():
		return x.ch.ctx.Err()
	}
}

func (x *exchange) release() {
	if x.executing {
		<-x.ch.s.executing
		x.executing = false
	}
}

// read reads the request. It returns passed once the request is executing or answered, and
// an error if the channel cannot be read any further. A refusal is no error.
func (x *exchange) read() (passed bool, err error) {
	h, tokens, err := x.ch.head(x.Share)
	if errors.Is(err, memory.ErrFull) {
		return false, malformed("a frame of %d bytes found no memory", h.Length)
	}
	if err != nil {
		return false, err
	}
	x.id = h.Activity
	if err := x.fill(&h, tokens); err != nil {
		x.refuse(err)
		return true, malformed("a frame of direct mode is malformed") // where the next begins is unknown
	}
	length := int64(0)
	if x.asked.payload {
		if length, err = x.ch.payloadLength(); err != nil {
			return false, err
		}
	}
	if err := x.acquire(); err != nil {
		return false, err
	}
	refusal := x.admit(length)
	if errors.Is(refusal, net.ErrClosed) {
		return false, refusal
	}
	if refusal == nil && length > 0 {
		var left int64
		if left, err = x.readBody(length); errors.Is(err, memory.ErrFull) {
			refusal, length = err, left
		} else if err != nil {
			return false, err
		}
	}
	if refusal == nil {
		x.ch.run(x)
		return true, nil
	}
	x.release() // what is dropped, or waits, does not execute
	err = x.ch.drop(length)
	x.refuse(refusal)
	return true, err
}

// run executes a request. A read of one item takes less time than a goroutine for it would,
// so the reader executes it, and answers to requests that arrived together leave together.
// After one that took long, as from a slow disk, reads have goroutines for a while: others
// must not wait for them.
func (ch *channel) run(x *exchange) {
	began := x.Began
	if x.Request.Resource != api.Items || x.Request.Verb != api.Read || began.Before(ch.slowUntil) {
		ch.s.running.Go(x.execute)
		return
	}
	x.inline = true
	x.execute()
	if now := time.Now(); now.Sub(began) > briefTime {
		ch.slowUntil = now.Add(slowTime)
	}
}

// admit verifies the request's credential, and decides whether it may go on.
func (x *exchange) admit(length int64) error {
	if x.ch.s.draining.Load() {
		return errDraining
	}
	if x.asked.unknown {
		return errUnknown
	}
	g, err := x.Service.Keys.Authorize(&api.Proof{
		Authorization: x.asked.authorization, Method: x.Method, Resource: x.Request.Resource, Link: x.Path, MsDate: x.asked.date,
	}, x.Began)
	if err != nil {
		x.ch.s.Unauthenticated(err)
		return &unauthenticated{err, x.ch.failures.Add(x.Began)}
	}
	if err := x.ch.trust(); err != nil {
		return err
	}
	if err := x.Admit(&g); err != nil {
		return err
	}
	if err := x.parse(); err != nil {
		return err
	}
	if length > int64(x.Row.MaxBody) {
		return errBodyTooBig
	}
	return nil
}

// unauthenticated is a refused credential, whose answer waits if there were many on its
// channel.
type unauthenticated struct {
	error
	wait time.Duration
}

func (u *unauthenticated) Unwrap() error { return u.error }

// readBody reads the request's payload. It returns how much is left to read.
func (x *exchange) readBody(length int64) (left int64, err error) {
	from := io.LimitedReader{R: x.ch.in, N: length}
	if err := x.ch.expect(int(length)); err != nil {
		return from.N, err
	}
	if length > readBytes {
		x.ch.flush() // there may be no memory for long
	}
	x.Share.AwaitClient(true)
	x.Request.Body, err = x.Receive(&from, int(length))
	x.Share.AwaitClient(false)
	switch {
	case err != nil:
		return from.N, err
	case from.N > 0:
		return from.N, io.ErrUnexpectedEOF
	}
	return 0, x.TakeCopies(x.Request.Body)
}

// execute answers the request.
func (x *exchange) execute() {
	defer x.recovered()
	if err := x.handle(); err != nil {
		x.answerError(err)
		return
	}
	x.answer()
}

// refuse answers with an error, later if the client has failed to authenticate often. The
// reader waits: as over HTTP/1.1, a connection has one such request at a time, and not many
// that wait for each other.
func (x *exchange) refuse(err error) {
	var failed *unauthenticated
	if errors.As(err, &failed) && failed.wait > 0 {
		x.ch.flush()
		wait := time.NewTimer(failed.wait)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-x.ch.ctx.Done():
		}
	}
	x.answerError(err)
}

// recovered answers after a panic: this client gets status 500 and the log the stack.
// Other requests are not affected.
func (x *exchange) recovered() {
	if p := recover(); p != nil {
		x.answerError(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}
