// SPDX-License-Identifier: MIT

// Connections to the other nodes of a cluster. They are HTTP/1.1 over TLS, on the port that
// clients use, with one request at a time on each. Package net/http has a client too, but
// it does not tell whether a request that failed was sent, and repeats some by itself.
//
//  1. A request counts as sent once its last byte was written. Before that its receiver
//     cannot have executed it: the length of its body is announced.
//  2. A connection with an error, or with an exchange that did not end, is closed.
//  3. What is kept is bounded: connections that are idle and in use, by address and in all.

package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/internal/peer"
)

const (
	// maxPeerRequests is how many requests to other nodes may be under way, and
	// maxPeerConns how many of them to one address. More wait.
	maxPeerRequests = 1024
	maxPeerConns    = 256
	// maxIdlePeerConns is how many idle connections are kept for an address, and
	// peerIdleTimeout for how long: less than idleTimeout, after which the other end
	// closes them.
	maxIdlePeerConns = 64
	peerIdleTimeout  = time.Minute
	// maxPeerAddresses is how many addresses are remembered that have no connection.
	maxPeerAddresses = 64

	// peerDialTimeout bounds the connecting and the handshake.
	peerDialTimeout = 2 * time.Second
	// peerTimeout is how long an exchange with another node may take: a little less than
	// a client's may.
	peerTimeout = writeTimeout - 5*time.Second
	// lifeEvery is how often it is checked that the node of a request under way is alive.
	lifeEvery = 200 * time.Millisecond

	// maxPeerAnswer bounds the body of another node's answer. Pages, items and batches are
	// far smaller.
	maxPeerAnswer = 64 << 20
	// peerBuffer is how much of an answer is read at once, and the largest body of a
	// request that is copied behind its head.
	peerBuffer = 16 << 10
)

// headerPeer has the note of package peer.
const headerPeer = "X-Mayfly-Peer"

// peerPath is where nodes ask each other.
const peerPath = adminPrefix + "peer"

// MaxAskBytes bounds a question of a node to another, and its answer.
const MaxAskBytes = 16 << 20

var (
	errPeersClosed = errors.New("the connections to other nodes are closed")
	errNodeDied    = errors.New("the node was declared dead, or has restarted")
)

// peerError is a request to another node that has no answer. If it was sent, the node may
// have executed it.
type peerError struct {
	node, address string
	sent          bool
	err           error
}

func (e *peerError) Error() string {
	what := "could not be reached"
	if e.sent {
		what = "did not answer"
	}
	return fmt.Sprintf("node %s at %s %s: %v", e.node, e.address, what, e.err)
}

func (e *peerError) Unwrap() error { return e.err }

// Peers carries requests to other nodes.
type Peers struct {
	trust  *peer.Trust
	self   string
	config *tls.Config
	dialer net.Dialer
	logger *slog.Logger
	// life returns the incarnation of a node, or 0 if it is not alive; nil if that is not
	// known.
	life    atomic.Pointer[func(node string) uint64]
	flights chan struct{}
	wait    time.Duration // ownerWait; tests have less time

	mu struct {
		sync.Mutex
		pools  map[string]*peerPool // by host and port
		closed bool
	}
}

// NewPeers returns the connections of the node self. The secrets are the account's keys that
// may write: all nodes must have the first, or know it as their second.
func NewPeers(self string, secrets [][]byte, logger *slog.Logger) (*Peers, error) {
	trust, err := peer.New(secrets...)
	if err != nil {
		return nil, err
	}
	if self == "" || len(self) > peer.MaxNameBytes {
		return nil, fmt.Errorf("the name of a node must have 1 to %d bytes", peer.MaxNameBytes)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	p := &Peers{trust: trust, self: self, config: trust.Client(), logger: logger, flights: make(chan struct{}, maxPeerRequests), wait: ownerWait}
	// An end that is cut off is noticed within some seconds, in the middle of a request
	// too. One that stands still is not: life tells that.
	p.dialer = net.Dialer{Timeout: peerDialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}}
	p.mu.pools = map[string]*peerPool{}
	return p, nil
}

// Watch has requests under way given up when the incarnation of their node changes. life
// must be quick, and returns 0 for a node that is not alive.
func (p *Peers) Watch(life func(node string) uint64) { p.life.Store(&life) }

// ServerTLS returns the settings of TLS for connections of other nodes.
func (p *Peers) ServerTLS() *tls.Config { return p.trust.Server() }

// Close closes the idle connections, and lets no request begin any more.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	for _, pool := range p.mu.pools {
		for _, c := range pool.idle {
			c.close()
		}
		pool.idle = nil
	}
}

// Ask sends a question to a node, and returns its answer. An error says that there is no
// answer; the node may have done what it was asked for nevertheless.
func (p *Peers) Ask(ctx context.Context, node, address string, request []byte) ([]byte, error) {
	if len(request) > MaxAskBytes {
		return nil, fmt.Errorf("a question to node %s has %d bytes, more than %d", node, len(request), MaxAskBytes)
	}
	a, err := p.do(ctx, node, address, &peerRequest{method: http.MethodPost, target: peerPath, host: peer.ServerName, body: request, at: time.Now()})
	switch {
	case err != nil:
		return nil, err
	case a.status != http.StatusOK:
		return nil, fmt.Errorf("node %s at %s refused a question with status %d: %.512s", node, address, a.status, a.body)
	}
	return a.body, nil
}

// peerRequest is a request to another node.
type peerRequest struct {
	method, target, host string
	header               http.Header // of the client; nil if there is none
	activity             string
	body                 []byte
	at                   time.Time // when the client's request came
	secure               bool      // the client's request came over TLS
	// room is called with the length of the answer before it is read; nil if it is not
	// counted.
	room func(n int) error
}

// peerAnswer is another node's answer. Its fields have the length, and nothing that is about
// the connection.
type peerAnswer struct {
	status int
	fields []field
	body   []byte
}

// do sends a request to a node, and reads its answer. The error is a *peerError, or that of
// room.
func (p *Peers) do(ctx context.Context, node, address string, r *peerRequest) (*peerAnswer, error) {
	fail := func(sent bool, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return &peerError{node, address, sent, err}
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	to, err := hostPort(address)
	if err != nil {
		return nil, fail(false, err)
	}
	pool, err := p.enter(ctx, to)
	if err != nil {
		return nil, fail(false, err)
	}
	defer p.leave(pool)
	g := p.guard(ctx, node)
	c, err := p.conn(g.ctx, pool)
	if err != nil {
		g.end()
		return nil, fail(false, g.cause(err))
	}
	g.attach(c)
	a, sent, err := c.exchange(p.self, node, r)
	if !g.end() || err != nil || c.broken || c.in.Buffered() > 0 {
		c.close()
	} else {
		p.keep(pool, c)
	}
	if refused := (*roomError)(nil); errors.As(err, &refused) {
		return nil, refused.error
	}
	if err != nil {
		return nil, fail(sent, g.cause(err))
	}
	return a, nil
}

// roomError is the error of room: the answer was not read for it.
type roomError struct{ error }

// hostPort returns where to connect for a node's address, which may be a URL.
func hostPort(address string) (string, error) {
	port := "80"
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("the address %q is neither host:port nor a URL", address)
		}
		if address, _, _ = strings.Cut(rest, "/"); strings.EqualFold(scheme, "https") {
			port = "443"
		}
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), port)
	}
	return address, nil
}

// CheckPeer returns why no node can be reached at an address; nil if one may be.
func CheckPeer(address string) error {
	refused := fmt.Errorf("other nodes cannot reach a node at %q: give --peer as https://HOST:PORT", address)
	if scheme, _, ok := strings.Cut(address, "://"); ok {
		u, err := url.Parse(address)
		if err != nil || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return refused
		}
	}
	to, err := hostPort(address)
	if err != nil {
		return refused
	}
	host, port, err := net.SplitHostPort(to)
	if number, failed := strconv.ParseUint(port, 10, 16); err != nil || failed != nil || number == 0 || host == "" || strings.ContainsAny(host, "/ ") {
		return refused
	}
	return nil
}

// guard ends an exchange if its context ends, or its node dies.
type guard struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	unhook func() bool
	over   atomic.Bool
}

func (p *Peers) guard(ctx context.Context, node string) *guard {
	g := &guard{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	if life := p.life.Load(); life != nil {
		began := (*life)(node)
		g.timer = time.AfterFunc(lifeEvery, func() {
			switch now := (*life)(node); {
			case g.over.Load():
			case began != 0 && now != began:
				g.cancel(errNodeDied)
			default:
				began = now // a node that has just registered may not be known at first
				g.timer.Reset(lifeEvery)
			}
		})
	}
	return g
}

// attach has the connection interrupted when the guard ends it.
func (g *guard) attach(c *peerConn) { g.unhook = context.AfterFunc(g.ctx, c.interrupt) }

// end ends the guard. It returns whether the connection was not interrupted.
func (g *guard) end() (whole bool) {
	g.over.Store(true)
	if g.timer != nil {
		g.timer.Stop()
	}
	whole = g.unhook == nil || g.unhook()
	g.cancel(nil)
	return whole
}

// cause returns why the guard has ended the exchange, or err.
func (g *guard) cause(err error) error {
	if cause := context.Cause(g.ctx); errors.Is(cause, errNodeDied) {
		return cause
	}
	return err
}

// peerPool has the connections to an address.
type peerPool struct {
	address string
	slots   chan struct{} // holds a value for each request under way
	users   int           // under the lock of Peers
	idle    []*peerConn   // under the lock of Peers; the one that was used last is the last
}

// enter waits until one more request to an address may begin.
func (p *Peers) enter(ctx context.Context, address string) (*peerPool, error) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, errPeersClosed
	}
	pool := p.mu.pools[address]
	if pool == nil {
		pool = &peerPool{address: address, slots: make(chan struct{}, maxPeerConns)}
		p.mu.pools[address] = pool
	}
	pool.users++
	p.mu.Unlock()
	select {
	case pool.slots <- struct{}{}:
	case <-ctx.Done():
		p.forget(pool)
		return nil, ctx.Err()
	}
	select {
	case p.flights <- struct{}{}:
		return pool, nil
	case <-ctx.Done():
		<-pool.slots
		p.forget(pool)
		return nil, ctx.Err()
	}
}

func (p *Peers) leave(pool *peerPool) {
	<-p.flights
	<-pool.slots
	p.forget(pool)
}

// forget ends a use of a pool. Addresses without a connection are forgotten if there are
// many.
func (p *Peers) forget(pool *peerPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool.users--
	if pool.users == 0 && len(pool.idle) == 0 && len(p.mu.pools) > maxPeerAddresses {
		delete(p.mu.pools, pool.address)
	}
}

// conn returns an idle connection whose other end is still there, or a new one.
func (p *Peers) conn(ctx context.Context, pool *peerPool) (*peerConn, error) {
	for {
		c := p.idle(pool)
		if c == nil {
			return p.dial(ctx, pool.address)
		}
		if c.timer.Stop() && (c.file == nil || isQuiet(c.file)) {
			return c, nil
		}
		c.close()
	}
}

func (p *Peers) idle(pool *peerPool) *peerConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(pool.idle)
	if n == 0 {
		return nil
	}
	c := pool.idle[n-1]
	pool.idle[n-1] = nil
	pool.idle = pool.idle[:n-1]
	return c
}

// keep puts a connection among the idle ones.
func (p *Peers) keep(pool *peerPool, c *peerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || len(pool.idle) == maxIdlePeerConns {
		c.close()
		return
	}
	pool.idle = append(pool.idle, c)
	c.timer = time.AfterFunc(peerIdleTimeout, func() { p.expire(pool, c) })
}

// expire closes a connection that has been idle for long.
func (p *Peers) expire(pool *peerPool, c *peerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range pool.idle {
		if other == c {
			pool.idle = append(pool.idle[:i], pool.idle[i+1:]...)
			c.close()
			return
		}
	}
}

// dial opens a connection.
func (p *Peers) dial(ctx context.Context, address string) (*peerConn, error) {
	ctx, cancel := context.WithTimeout(ctx, peerDialTimeout)
	defer cancel()
	raw, err := p.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	limitUnacked(raw)
	conn := tls.Client(raw, p.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	state := conn.ConnectionState()
	link, err := p.trust.Dialed(&state)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &peerConn{conn: conn, raw: raw, file: descriptor(raw), link: link, in: bufio.NewReaderSize(conn, peerBuffer)}, nil
}

// peerConn is a connection to another node. One goroutine uses it at a time.
type peerConn struct {
	conn   *tls.Conn
	raw    net.Conn
	file   syscall.RawConn // nil if it cannot be looked at
	link   *peer.Link
	in     *bufio.Reader
	out    []byte
	broken bool        // the connection cannot have another request
	timer  *time.Timer // while it is idle
}

func (c *peerConn) close() { _ = c.raw.Close() }

// interrupt ends what waits for the other end.
func (c *peerConn) interrupt() { _ = c.raw.SetDeadline(time.Unix(1, 0)) }

// exchange sends a request and reads its answer. It returns whether the request was sent.
func (c *peerConn) exchange(self, node string, r *peerRequest) (a *peerAnswer, sent bool, err error) {
	note := c.link.Sign(peer.Note{Sender: self, Receiver: node, AtMs: r.at.UnixMilli(), Secure: r.secure}, r.method, r.target)
	b := appendPeerHead(c.out[:0], r, note)
	body := r.body
	if len(body) <= peerBuffer {
		b, body = append(b, body...), nil
	}
	if c.out = b; cap(c.out) > 2*peerBuffer {
		c.out = nil
	}
	for _, part := range [...][]byte{b, body} {
		if len(part) == 0 {
			continue
		}
		if _, err := c.conn.Write(part); err != nil {
			return nil, false, err
		}
	}
	a, err = c.read(r)
	return a, true, err
}

// notPassedOn are the headers that are about a connection, and those that are set anew.
var notPassedOn = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authorization": true, "Proxy-Authenticate": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true, "Http2-Settings": true,
	"Host": true, headerContentLength: true, headerPeer: true, headerActivity: true, "Date": true,
}

// appendPeerHead appends the head of a request. The client's Date is passed on: it may be
// signed.
func appendPeerHead(b []byte, r *peerRequest, note string) []byte {
	b = append(append(append(append(b, r.method...), ' '), r.target...), " HTTP/1.1\r\n"...)
	b = appendField(b, "Host", r.host)
	for name, values := range r.header {
		if notPassedOn[name] && name != "Date" {
			continue
		}
		for _, v := range values {
			b = appendField(b, name, v)
		}
	}
	if r.activity != "" {
		b = appendField(b, headerActivity, r.activity)
	}
	if len(r.body) > 0 || r.method != http.MethodGet && r.method != http.MethodHead {
		b = appendField(b, headerContentLength, strconv.Itoa(len(r.body)))
	}
	b = appendField(b, headerPeer, note)
	return append(b, "\r\n"...)
}

// errPeerAnswer says that another node's answer is not one that a node sends.
var errPeerAnswer = errors.New("the answer is not that of a node")

// read reads an answer.
func (c *peerConn) read(r *peerRequest) (*peerAnswer, error) {
	a := &peerAnswer{}
	line, left, err := c.line(maxHeaderBytes)
	if err != nil {
		return nil, err
	}
	version, rest, _ := strings.Cut(line, " ")
	status, _, _ := strings.Cut(rest, " ")
	if a.status, err = strconv.Atoi(status); err != nil || version != "HTTP/1.1" || a.status < firstStatus || a.status > lastStatus {
		return nil, errPeerAnswer
	}
	length := -1
	for {
		if line, left, err = c.line(left); err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, errPeerAnswer
		}
		switch canonical := http.CanonicalHeaderKey(name); {
		case canonical == headerContentLength:
			if length, err = strconv.Atoi(value); err != nil || length < 0 || length > maxPeerAnswer {
				return nil, errPeerAnswer
			}
			a.fields = append(a.fields, field{headerContentLength, value})
		case canonical == "Connection" && strings.EqualFold(value, "close"):
			c.broken = true
		case canonical == "Transfer-Encoding":
			return nil, errPeerAnswer // all answers that are passed on have a length
		case canonical == headerActivity || !notPassedOn[canonical]:
			a.fields = append(a.fields, field{name, value})
		}
	}
	switch {
	case r.method == http.MethodHead || a.status == http.StatusNoContent || a.status == http.StatusNotModified || length == 0:
		return a, nil
	case length < 0:
		return nil, errPeerAnswer
	}
	if r.room != nil {
		if err := r.room(length); err != nil {
			return nil, &roomError{err}
		}
	}
	a.body = make([]byte, length)
	_, err = io.ReadFull(c.in, a.body)
	return a, err
}

// line reads a line of an answer's head, of which left bytes may follow.
func (c *peerConn) line(left int) (string, int, error) {
	b, err := c.in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return c.longLine(b, left)
		}
		return "", 0, err
	}
	return c.trim(string(b), left)
}

// longLine reads the rest of a line that is longer than the buffer.
func (c *peerConn) longLine(begin []byte, left int) (string, int, error) {
	whole := append([]byte(nil), begin...)
	for {
		b, err := c.in.ReadSlice('\n')
		if whole = append(whole, b...); len(whole) > left {
			return "", 0, errPeerAnswer
		}
		if err == nil {
			return c.trim(string(whole), left)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", 0, err
		}
	}
}

func (c *peerConn) trim(line string, left int) (string, int, error) {
	left -= len(line)
	line, ok := strings.CutSuffix(line, "\r\n")
	if !ok || left < 0 {
		return "", 0, errPeerAnswer
	}
	return line, left, nil
}
