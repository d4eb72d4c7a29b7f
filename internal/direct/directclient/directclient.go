// SPDX-License-Identifier: MIT

// Package directclient is a client of direct mode, for tests and measurements. It sends
// frames on a channel and finds the answers by their numbers, as SDKs do. It knows nothing
// of what requests mean.
package directclient

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/rntbd"
)

const (
	// maxPayload bounds the payload of an answer.
	maxPayload = 64 << 20
	bufferSize = 64 << 10

	statusOK   = 200
	dateFormat = "Mon, 02 Jan 2006 15:04:05 GMT"
)

// Request is a request without its number.
type Request struct {
	Resource  rntbd.Resource
	Operation rntbd.Operation
	Activity  rntbd.GUID
	// Tokens are encoded tokens, all but TransportRequestID and PayloadPresent.
	Tokens []byte
	Body   []byte
}

// Response is an answer.
type Response struct {
	rntbd.ResponseHead
	tokens string
	Body   []byte
}

// Token returns a scanner at the token with an id, and whether there is one.
func (r *Response) Token(id rntbd.Token) (rntbd.Scanner, bool) {
	s := rntbd.Scan(r.tokens, rntbd.ResponseTokens)
	for s.Next() {
		if s.ID == id {
			return s, true
		}
	}
	return s, false
}

// Text returns a token's text, or "" if there is none.
func (r *Response) Text(id rntbd.Token) string {
	if s, ok := r.Token(id); ok {
		return s.Text()
	}
	return ""
}

// Number returns a token's number, or 0 if there is none.
func (r *Response) Number(id rntbd.Token) int64 {
	if s, ok := r.Token(id); ok {
		return s.Int64()
	}
	return 0
}

// Channel is a connection with any number of requests under way.
type Channel struct {
	conn net.Conn

	mu struct {
		sync.Mutex
		next    uint32
		pending map[uint32]chan Response
		err     error // once the channel has ended
		// queue has the frames that wait for the goroutine that writes, and spare the memory
		// of the queue before.
		queue, spare []byte
		writing      bool
	}
}

// Open opens a channel on a connection, which it closes with it.
func Open(conn net.Conn) (*Channel, error) {
	c := &Channel{conn: conn}
	c.mu.pending = map[uint32]chan Response{}
	b := rntbd.BeginRequest(nil, rntbd.Connection, rntbd.Connect, rntbd.GUID{1})
	b = rntbd.AppendULong(b, rntbd.ContextProtocolVersion, 1)
	b = rntbd.AppendSmall(b, rntbd.ContextClientVersion, "2020-07-15")
	b = rntbd.AppendSmall(b, rntbd.ContextUserAgent, "directclient")
	rntbd.End(b, 0)
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, bufferSize)
	head, tokens, err := readHead(in)
	if err != nil {
		return nil, err
	}
	if head.Status != statusOK {
		return nil, fmt.Errorf("the server does not open a channel: %d %x", head.Status, tokens)
	}
	go c.read(in)
	return c, nil
}

// Close ends the channel. Requests under way fail.
func (c *Channel) Close() error { return c.conn.Close() }

// Do sends a request and waits for its answer.
func (c *Channel) Do(r *Request) (Response, error) {
	done, err := c.Start(r)
	if err != nil {
		return Response{}, err
	}
	a, ok := <-done
	if !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		return a, fmt.Errorf("the channel has ended: %w", c.mu.err)
	}
	return a, nil
}

// Start sends a request. Its answer comes from the Go channel, which is closed if the
// connection ends before.
func (c *Channel) Start(r *Request) (<-chan Response, error) {
	done := make(chan Response, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return nil, c.mu.err
	}
	c.mu.next++
	c.mu.pending[c.mu.next] = done
	c.mu.queue = r.append(c.mu.queue, c.mu.next)
	return done, c.flushLocked()
}

// flushLocked writes what waits, unless another goroutine does. Before each write it lets
// other goroutines run: requests that are made together leave together.
func (c *Channel) flushLocked() (err error) {
	if c.mu.writing {
		return nil
	}
	c.mu.writing = true
	for len(c.mu.queue) > 0 && err == nil {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		frames := c.mu.queue
		c.mu.queue = c.mu.spare[:0]
		c.mu.Unlock()
		_, err = c.conn.Write(frames)
		c.mu.Lock()
		c.mu.spare = frames
	}
	c.mu.writing = false
	return err
}

// Frame returns the request's frame and payload, with a number.
func (r *Request) Frame(id uint32) []byte {
	return r.append(make([]byte, 0, rntbd.HeadBytes+len(r.Tokens)+len(r.Body)+16), id)
}

// append appends the request's frame and payload to b.
func (r *Request) append(b []byte, id uint32) []byte {
	begin := len(b)
	b = rntbd.BeginRequest(b, r.Resource, r.Operation, r.Activity)
	b = append(b, r.Tokens...)
	b = rntbd.AppendFlag(b, rntbd.RequestPayloadPresent, r.Body != nil)
	b = rntbd.AppendULong(b, rntbd.RequestTransportRequestID, id)
	rntbd.End(b, begin)
	if r.Body != nil {
		b = append(rntbd.AppendLength(b, len(r.Body)), r.Body...)
	}
	return b
}

// read passes answers to their requests until the connection ends.
func (c *Channel) read(in *bufio.Reader) {
	for {
		a, id, err := ReadResponse(in)
		c.mu.Lock()
		if err != nil {
			c.mu.err = err
			for id, done := range c.mu.pending {
				close(done)
				delete(c.mu.pending, id)
			}
			c.mu.Unlock()
			_ = c.conn.Close()
			return
		}
		done := c.mu.pending[id]
		delete(c.mu.pending, id)
		c.mu.Unlock()
		if done != nil {
			done <- a
		}
	}
}

// ReadResponse reads one answer, and returns the number of its request.
func ReadResponse(in *bufio.Reader) (a Response, id uint32, err error) {
	if a.ResponseHead, a.tokens, err = readHead(in); err != nil {
		return a, 0, err
	}
	payload, numbered := false, false
	s := rntbd.Scan(a.tokens, rntbd.ResponseTokens)
	for s.Next() {
		switch s.ID {
		case rntbd.ResponsePayloadPresent:
			payload = s.Flag()
		case rntbd.ResponseTransportRequestID:
			id, numbered = s.Uint32(), true
		}
	}
	if s.Err() != nil || !numbered {
		return a, 0, errors.Join(errors.New("an answer is malformed, or has no number"), s.Err())
	}
	if !payload {
		return a, id, nil
	}
	var length [rntbd.LengthBytes]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return a, 0, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxPayload {
		return a, 0, fmt.Errorf("a payload of %d bytes", n)
	}
	a.Body = make([]byte, n)
	_, err = io.ReadFull(in, a.Body)
	return a, id, err
}

func readHead(in *bufio.Reader) (rntbd.ResponseHead, string, error) {
	var head [rntbd.HeadBytes]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return rntbd.ResponseHead{}, "", err
	}
	h, err := rntbd.ParseResponseHead(head[:])
	if err != nil {
		return h, "", err
	}
	tokens := make([]byte, h.Length-rntbd.HeadBytes)
	_, err = io.ReadFull(in, tokens)
	return h, string(tokens), err
}

// AppendSignature appends the tokens of a signature with a key over a method,
// the word of a resource type and a link.
func AppendSignature(b []byte, key []byte, method, kind, link string) []byte {
	date := time.Now().UTC().Format(dateFormat)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(method), kind, link, strings.ToLower(date))
	signature := "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	b = rntbd.AppendText(b, rntbd.RequestAuthorizationToken, url.QueryEscape(signature))
	return rntbd.AppendSmall(b, rntbd.RequestDate, date)
}
