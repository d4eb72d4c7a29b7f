// SPDX-License-Identifier: MIT

// A channel: its reader, its requests under way, and its writer.

package direct

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

const (
	// readBytes is the size of a channel's buffer: several requests for small items.
	readBytes = 8 << 10
	// A channel's reader executes reads of items itself, but not for slowTime after one that
	// took longer than briefTime.
	briefTime = time.Millisecond
	slowTime  = 100 * time.Millisecond
)

// channel is a connection and its requests.
type channel struct {
	s        *Server
	conn     Conn
	in       *bufio.Reader
	ctx      context.Context // ends with the channel
	cancel   context.CancelFunc
	failures api.Failures // of authentication
	// trusted says that a request has had a valid credential. Until then the connection counts
	// as idle, and may be closed for another: what a stranger leaves unfinished must not keep
	// others out. The reader sets it.
	trusted bool
	// idleFrom is when the read deadline of an idle channel was last set.
	idleFrom time.Time
	// slowUntil is until when the reader executes no request itself.
	slowUntil time.Time
	// writeFrom is when the write deadline was last set. Only the goroutine that writes
	// uses it.
	writeFrom time.Time

	mu struct {
		sync.Mutex
		inFlight int // requests, until their answers are written
		queue    []outgoing
		spare    []outgoing // the queue before, for reuse
		queued   int64      // bytes of answers that wait or are being written
		writing  bool
		failed   bool // the client cannot be written to any more
		// share holds the memory of answers that wait. Those of large ones are held by
		// their own shares.
		share memory.Share
	}
	// room is signalled when requests or bytes have left.
	room *sync.Cond
}

// outgoing is an answer that waits to be written. Its frame is in head, with a small
// payload; a large one follows in parts, which belong to the exchange.
type outgoing struct {
	head  []byte
	parts [3][]byte
	x     *exchange // whose memory the parts are; nil without parts
	size  int64
}

func newChannel(s *Server, conn Conn) *channel {
	ch := &channel{s: s, conn: conn, in: bufio.NewReaderSize(conn, readBytes)}
	ch.mu.share = s.Memory.Share()
	ch.ctx, ch.cancel = context.WithCancel(context.Background())
	ch.room = sync.NewCond(&ch.mu)
	return ch
}

// serve reads requests until the channel ends, and waits for those under way.
func (ch *channel) serve() {
	// What the reader has answered itself leaves before it waits for more requests.
	ch.conn.BeforeRead(ch.flush)
	err := ch.open()
	for err == nil {
		err = ch.next()
	}
	ch.logEnd(err)
	var foul *protocolError
	if errors.As(err, &foul) {
		ch.awaitAnswers() // the last of them tells what is wrong
	}
	ch.abort()
	ch.awaitAnswers()
	ch.mu.share.Close()
}

// logEnd logs the end of a channel whose client does not speak the protocol.
func (ch *channel) logEnd(err error) {
	var foul *protocolError
	if errors.As(err, &foul) {
		ch.s.Logger.Warn("closed a channel of direct mode", "address", ch.conn.RemoteAddr(), "error", err)
	}
}

// abort ends the channel at once: requests under way are cancelled.
func (ch *channel) abort() {
	ch.cancel()
	_ = ch.conn.Close()
	ch.mu.Lock()
	ch.mu.failed = true
	ch.mu.Unlock()
	ch.room.Broadcast()
}

// awaitAnswers waits until no request is under way.
func (ch *channel) awaitAnswers() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.drainLocked(false)
	for ch.mu.inFlight > 0 {
		ch.room.Wait()
	}
}

// drain makes the reader notice that the server drains, and keeps the connection from
// being closed as idle before.
func (ch *channel) drain() {
	ch.conn.Begin()
	_ = ch.conn.SetReadDeadline(time.Now().Add(drainTime))
}

// awaitFrame waits for the first byte of a frame, and sets the time limit for the rest if
// the head has not arrived with it.
func (ch *channel) awaitFrame() error {
	for ch.in.Buffered() == 0 {
		if err := ch.setIdleDeadline(); err != nil {
			return err
		}
		_, err := ch.in.Peek(1)
		if errors.Is(err, os.ErrDeadlineExceeded) && ch.s.draining.Load() && ch.underWay() {
			continue // what arrives until the last answer is refused, not cut off
		}
		if err != nil {
			return err
		}
	}
	return ch.expect(rntbd.HeadBytes)
}

// setIdleDeadline sets how long the channel may be silent. It looks for draining after it
// has set a deadline: so either it sees it, or drain sets the deadline last.
func (ch *channel) setIdleDeadline() error {
	const refreshEvery = time.Minute
	now := time.Now()
	if now.Sub(ch.idleFrom) > refreshEvery {
		ch.idleFrom = now
		if err := ch.conn.SetReadDeadline(now.Add(idleTimeout)); err != nil {
			return err
		}
	}
	if ch.s.draining.Load() {
		return ch.conn.SetReadDeadline(now.Add(drainTime))
	}
	return nil
}

// underWay reports whether requests are under way.
func (ch *channel) underWay() bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.mu.inFlight > 0
}

// expect sets a time limit if fewer than n bytes have arrived.
func (ch *channel) expect(n int) error {
	if ch.in.Buffered() >= n {
		return nil
	}
	ch.idleFrom = time.Time{} // the next idle time has to set its own
	return ch.conn.SetReadDeadline(time.Now().Add(frameTimeout))
}

// head reads the head of a frame, and its tokens. A large frame takes memory.
func (ch *channel) head(share *memory.Share) (h rntbd.RequestHead, tokens string, err error) {
	b, err := ch.in.Peek(rntbd.HeadBytes)
	if err != nil {
		return h, "", err
	}
	if h, err = rntbd.ParseRequestHead(b); err != nil {
		return h, "", malformed("a frame has a length that no frame can have")
	}
	if err := ch.expect(h.Length); err != nil {
		return h, "", err
	}
	if h.Length <= ch.in.Size() {
		if b, err = ch.in.Peek(h.Length); err != nil {
			return h, "", err
		}
		tokens = string(b[rntbd.HeadBytes:])
		_, err = ch.in.Discard(h.Length)
		return h, tokens, err
	}
	ch.flush() // there may be no memory for long
	frame, err := ch.longHead(share, h.Length)
	if err != nil {
		return h, "", err
	}
	return h, string(frame[rntbd.HeadBytes:]), nil
}

// longHead reads n bytes of head and tokens. It takes memory as they arrive, for them and for
// a copy: who announces much and sends nothing, without a credential, must not hold memory
// that others wait for.
func (ch *channel) longHead(share *memory.Share, n int) (frame []byte, err error) {
	for len(frame) < n {
		from := len(frame)
		more := min(max(from, readBytes), n-from)
		if err := share.Take(ch.ctx, int64(2*more)); err != nil {
			return nil, err
		}
		frame = slices.Grow(frame, more)[:from+more]
		share.AwaitClient(true)
		_, err = io.ReadFull(ch.in, frame[from:])
		share.AwaitClient(false)
		if err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// payloadLength reads the length of a payload, which follows it.
func (ch *channel) payloadLength() (int64, error) {
	if err := ch.expect(rntbd.LengthBytes); err != nil {
		return 0, err
	}
	b, err := ch.in.Peek(rntbd.LengthBytes)
	if err != nil {
		return 0, err
	}
	n := int64(binary.LittleEndian.Uint32(b))
	_, err = ch.in.Discard(rntbd.LengthBytes)
	return n, err
}

// drop reads and drops the payload of a request that was refused.
func (ch *channel) drop(n int64) error {
	if n > maxDroppedBytes {
		return malformed("a payload of %d bytes was refused, which is too much to skip", n)
	}
	if n == 0 {
		return nil
	}
	if err := ch.expect(int(n)); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, ch.in, n)
	return err
}

// begin makes room for one more request.
func (ch *channel) begin() error {
	ch.mu.Lock()
	for !ch.mu.failed && (ch.mu.inFlight >= maxInFlight || ch.mu.queued >= maxQueuedBytes) {
		if ch.drainLocked(false); ch.mu.inFlight >= maxInFlight || ch.mu.queued >= maxQueuedBytes {
			ch.room.Wait()
		}
	}
	failed := ch.mu.failed
	first := ch.mu.inFlight == 0
	ch.mu.inFlight++
	ch.mu.Unlock()
	if failed || first && ch.trusted && !ch.conn.Begin() {
		ch.leave(1, 0)
		return net.ErrClosed
	}
	return nil
}

// trust records that the request that is being read has a valid credential. It returns
// net.ErrClosed if the connection was closed before: then the request must not be executed.
func (ch *channel) trust() error {
	if ch.trusted {
		return nil
	}
	ch.trusted = true
	if !ch.conn.Begin() {
		return net.ErrClosed
	}
	return nil
}

// leave records that requests have ended, and that bytes of answers were written.
func (ch *channel) leave(requests int, bytes int64) {
	ch.mu.Lock()
	ch.mu.inFlight -= requests
	ch.mu.queued -= bytes
	if ch.mu.inFlight == 0 && !ch.s.draining.Load() {
		ch.conn.Idle()
	}
	ch.mu.Unlock()
	ch.room.Broadcast()
}

// queue queues an answer. flush sends it.
func (ch *channel) queue(o outgoing) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.queueLocked(o)
}

func (ch *channel) queueLocked(o outgoing) {
	ch.mu.queue = append(ch.mu.queue, o)
	ch.mu.queued += o.size
	ch.mu.share.MustTake(int64(len(o.head)))
	ch.mu.share.AwaitClient(true)
}

// send queues an answer. If no goroutine writes, this one does, until nothing waits.
func (ch *channel) send(o outgoing) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.queueLocked(o)
	ch.drainLocked(true)
}

// flush sends the answers that wait, unless another goroutine does.
func (ch *channel) flush() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.drainLocked(false)
}

// drainLocked writes until nothing waits, unless another goroutine does. If more answers may
// come at once, from other goroutines, it lets these run before each write: requests that
// arrived together are mostly answered together.
func (ch *channel) drainLocked(more bool) {
	if ch.mu.writing || len(ch.mu.queue) == 0 {
		return
	}
	ch.mu.writing = true
	batch := ch.mu.spare
	for len(ch.mu.queue) > 0 {
		if more {
			ch.mu.Unlock()
			runtime.Gosched()
			ch.mu.Lock()
		}
		batch, ch.mu.queue = ch.mu.queue, batch[:0]
		failed := ch.mu.failed
		ch.mu.Unlock()
		if !failed && ch.write(batch) != nil {
			ch.abort()
		}
		ch.written(batch)
		ch.mu.Lock()
	}
	ch.mu.writing, ch.mu.spare = false, batch[:0]
}

// write writes answers. Each begins a TLS record of its own: the Java SDK mixes up frames
// that share one.
func (ch *channel) write(batch []outgoing) error {
	const refreshEvery = time.Second
	if now := time.Now(); now.Sub(ch.writeFrom) > refreshEvery {
		ch.writeFrom = now
		if err := ch.conn.SetWriteDeadline(now.Add(writeTimeout + refreshEvery)); err != nil {
			return err
		}
	}
	ch.conn.Hold()
	for i := range batch {
		if _, err := ch.conn.Write(batch[i].head); err != nil {
			return err
		}
		for _, part := range batch[i].parts {
			if len(part) == 0 {
				continue
			}
			if _, err := ch.conn.Write(part); err != nil {
				return err
			}
		}
	}
	return ch.conn.Flush()
}

// written frees what answers held.
func (ch *channel) written(batch []outgoing) {
	var bytes, copied int64
	for i := range batch {
		bytes += batch[i].size
		copied += int64(len(batch[i].head))
		if x := batch[i].x; x != nil {
			x.end()
		}
		freeFrame(batch[i].head)
	}
	requests := len(batch)
	clear(batch)
	ch.mu.Lock()
	ch.mu.share.Give(copied)
	ch.mu.Unlock()
	ch.leave(requests, bytes)
}

// frames are buffers of answers, for reuse.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// maxKeptFrame is the size of the largest buffer that is kept.
const maxKeptFrame = 64 << 10

func newFrame() []byte { return (*frames.Get().(*[]byte))[:0] }

func freeFrame(b []byte) {
	if cap(b) <= maxKeptFrame {
		frames.Put(&b)
	}
}
