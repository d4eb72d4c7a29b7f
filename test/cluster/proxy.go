// SPDX-License-Identifier: MIT

// A TCP proxy whose link can be made worse while it is in use.

package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is what a proxy does to what passes it.
type link int

const (
	whole   link = iota
	cut          // connections break, and new ones break at once
	refused      // connections break, and new ones are refused, as at the port of a process that is gone
	silent       // nothing passes; what was sent arrives when the link is whole again, as TCP sends it again
	deaf         // what clients send passes, the answers are lost, and their connections break afterwards
	mute         // the other way round
	slow         // everything comes late
)

func (l link) String() string {
	return [...]string{"whole", "cut", "refused", "silent", "deaf", "mute", "slow"}[l]
}

const (
	proxyBuffer = 32 << 10
	dialLimit   = 5 * time.Second
)

// proxy passes connections on.
type proxy struct {
	address string   // where it listens,
	in      []*place // in each of these
	dial    func() (net.Conn, error)

	mu    sync.Mutex
	turn  *sync.Cond // the link has changed, or the proxy was closed
	ls    []net.Listener
	link  link
	delay time.Duration
	tap   func() io.Writer // for each connection, told what its client sends; or nil
	conns map[*passage]struct{}
	over  bool
}

// passage is a connection with its other half.
type passage struct {
	client, server net.Conn
	lossy          bool // something of it was lost: it cannot go on. Under the proxy's lock
}

// newProxyIn makes a proxy that listens at the same address in several places.
func newProxyIn(in []*place, address string, dial func() (net.Conn, error)) (*proxy, error) {
	p := &proxy{address: address, in: in, dial: dial, conns: map[*passage]struct{}{}}
	p.turn = sync.NewCond(&p.mu)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.listenLocked()
}

func (p *proxy) listenLocked() error {
	for _, where := range p.in {
		l, err := where.listen(p.address)
		if err != nil {
			p.deafenLocked()
			return err
		}
		p.ls, p.address = append(p.ls, l), l.Addr().String()
		go p.accept(l)
	}
	return nil
}

// deafenLocked stops listening.
func (p *proxy) deafenLocked() {
	for _, l := range p.ls {
		_ = l.Close()
	}
	p.ls = nil
}

func (p *proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go p.pass(client)
	}
}

// watch has a tap told what the clients of later connections send.
func (p *proxy) watch(tap func() io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tap = tap
}

// set changes the link.
func (p *proxy) set(to link, delay time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link, p.delay = to, delay
	for c := range p.conns {
		if to == cut || to == refused || c.lossy {
			c.abort()
		}
	}
	p.turn.Broadcast()
	if to == refused {
		p.deafenLocked()
		return nil
	}
	if p.ls == nil && !p.over {
		return p.listenLocked()
	}
	return nil
}

func (p *proxy) close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	_ = p.set(refused, 0)
}

// proxies are the links of a node in one direction.
type proxies []*proxy

func (all proxies) set(to link, delay time.Duration) (err error) {
	for _, p := range all {
		err = errors.Join(err, p.set(to, delay))
	}
	return err
}

func (all proxies) close() {
	for _, p := range all {
		p.close()
	}
}

// abort breaks a connection at both ends, so that no end takes it for an orderly close.
func (c *passage) abort() {
	for _, half := range []net.Conn{c.client, c.server} {
		if t, ok := half.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		if half != nil {
			_ = half.Close()
		}
	}
}

// pass serves a connection.
func (p *proxy) pass(client net.Conn) {
	c := &passage{client: client}
	p.mu.Lock()
	for p.link == silent && !p.over {
		p.turn.Wait()
	}
	broken := p.link == cut || p.link == refused || p.over
	p.mu.Unlock()
	if broken {
		c.abort()
		return
	}
	server, err := p.dial()
	if err != nil {
		c.abort()
		return
	}
	c.server = server
	p.mu.Lock()
	broken = p.link == cut || p.link == refused
	p.conns[c] = struct{}{}
	var from io.Reader = client
	if p.tap != nil {
		from = io.TeeReader(client, p.tap())
	}
	p.mu.Unlock()
	if !broken {
		var halves sync.WaitGroup
		halves.Go(func() { p.copy(c, from, server, mute) })
		halves.Go(func() { p.copy(c, server, client, deaf) })
		halves.Wait()
	}
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	c.abort()
}

// copy passes one direction of a connection on. What comes while the link loses this
// direction is lost.
func (p *proxy) copy(c *passage, from io.Reader, to io.Writer, loses link) {
	defer c.abort()
	b := make([]byte, proxyBuffer)
	for {
		n, err := from.Read(b)
		if n > 0 {
			lost, broken := p.wait(c, loses)
			if broken {
				return
			}
			if !lost {
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			// An end that goes while the link is silent cannot tell the other.
			p.wait(c, loses)
			return
		}
	}
}

// wait waits until the link lets a piece through. lost says that it never will.
func (p *proxy) wait(c *passage, loses link) (lost, broken bool) {
	p.mu.Lock()
	if p.link == slow {
		d := p.delay
		p.mu.Unlock()
		time.Sleep(d)
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	for p.link == silent && !p.over {
		p.turn.Wait()
	}
	if p.link == loses {
		c.lossy = true
	}
	return c.lossy, p.link == cut || p.link == refused || p.over
}

// freePort returns an address whose port is below those that the system gives to outgoing
// connections, so that nothing takes it while it is not listened on.
func freePort(random func(int) int) (string, error) {
	for range 100 {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20000 + random(10000)})
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no port is free")
}
