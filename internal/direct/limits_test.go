// SPDX-License-Identifier: MIT

package direct

import (
	"encoding/base64"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/direct/directclient"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

const limitsKey = "a2V5"

// pipe is a connection without a network, whose deadlines go by the clock of the test.
type pipe struct {
	net.Conn
	before func()
	busy   atomic.Bool
}

func (p *pipe) Read(b []byte) (int, error) {
	p.before()
	return p.Conn.Read(b)
}

func (p *pipe) Begin() bool         { p.busy.Store(true); return true }
func (p *pipe) Idle()               { p.busy.Store(false) }
func (p *pipe) BeforeRead(f func()) { p.before = f }
func (p *pipe) Hold()               {}
func (p *pipe) Flush() error        { return nil }

// limitsServer is a server for requests that get no further than the check of what they may.
func limitsServer(t *testing.T) *Server {
	t.Helper()
	keys, err := api.NewKeys([]string{limitsKey}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Service: &api.Service{Keys: keys, Account: &api.Account{}}, Memory: memory.NewBudget(1 << 20),
		Unauthenticated: func(error) {}, Observe: func(*api.Call, int) {},
	})
}

// silent is a channel to the server on which nothing was sent.
func (s *Server) silent() net.Conn {
	client, server := net.Pipe()
	s.Serve(&pipe{Conn: server})
	return client
}

// busy returns how many connections must not be closed for others.
func (s *Server) busy() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.mu.channels {
		if ch.conn.(*pipe).busy.Load() {
			n++
		}
	}
	return n
}

// opened is an open channel.
func (s *Server) opened(t *testing.T) net.Conn {
	t.Helper()
	c := s.silent()
	send(t, c, openingFrame())
	if status := statusOf(t, c); status != 200 {
		t.Fatalf("opened with %d", status)
	}
	return c
}

func openingFrame() []byte {
	b := rntbd.BeginRequest(nil, rntbd.Connection, rntbd.Connect, rntbd.GUID{})
	b = rntbd.AppendULong(b, rntbd.ContextProtocolVersion, protocolVersion)
	rntbd.End(b, 0)
	return b
}

// unknownFrame is a request that is refused with 400, whoever sends it.
func unknownFrame() []byte {
	return (&directclient.Request{Resource: rntbd.Attachment, Operation: rntbd.Read}).Frame(1)
}

// createFrame is a valid request to create an item.
func createFrame(t *testing.T, body string) []byte {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(limitsKey)
	if err != nil {
		t.Fatal(err)
	}
	b := directclient.AppendSignature(nil, key, "POST", "docs", "dbs/d/colls/c")
	b = rntbd.AppendText(b, rntbd.RequestDatabaseName, "d")
	b = rntbd.AppendText(b, rntbd.RequestCollectionName, "c")
	b = rntbd.AppendText(b, rntbd.RequestPartitionKey, `["p"]`)
	return (&directclient.Request{Resource: rntbd.Document, Operation: rntbd.Create, Tokens: b, Body: []byte(body)}).Frame(1)
}

// stranger is the same without its credential.
func stranger(*testing.T) []byte {
	return (&directclient.Request{Resource: rntbd.Document, Operation: rntbd.Create, Body: make([]byte, 200)}).Frame(1)
}

func send(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// statusOf reads an answer.
func statusOf(t *testing.T, c net.Conn) int {
	t.Helper()
	var head [rntbd.HeadBytes]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	h, err := rntbd.ParseResponseHead(head[:])
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]byte, h.Length-rntbd.HeadBytes)
	if _, err := io.ReadFull(c, tokens); err != nil {
		t.Fatal(err)
	}
	if scan := rntbd.Scan(string(tokens), rntbd.ResponseTokens); h.Status != 200 {
		for scan.Next() {
			if scan.ID == rntbd.ResponsePayloadPresent && scan.Flag() {
				skipPayload(t, c)
			}
		}
	}
	return h.Status
}

func skipPayload(t *testing.T, c net.Conn) {
	t.Helper()
	var length [rntbd.LengthBytes]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		t.Fatal(err)
	}
	n := int64(length[0]) | int64(length[1])<<8 | int64(length[2])<<16 | int64(length[3])<<24
	if _, err := io.CopyN(io.Discard, c, n); err != nil {
		t.Fatal(err)
	}
}

// open returns how many channels there are.
func (s *Server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.channels)
}

// A client that leaves a frame unfinished loses its channel when the frame has taken its
// time, also if it sends a byte now and then. Others go on.
func TestFramesThatNeverEnd(t *testing.T) {
	request := func(*testing.T) []byte { return unknownFrame() }
	create := func(t *testing.T) []byte { return createFrame(t, strings.Repeat(" ", 200)) }
	for name, c := range map[string]struct {
		frame func(*testing.T) []byte // nil for the one that opens the channel
		sent  int                     // how much of it is sent at once; from the end, if negative
		more  int                     // how many bytes follow, one every ten seconds
		// answered says that the request is refused before its payload is there.
		answered bool
	}{
		"an opening":               {nil, rntbd.HeadBytes / 2, 0, false},
		"the tokens of an opening": {nil, -1, 0, false},
		"a head":                   {request, rntbd.HeadBytes - 1, 0, false},
		"a head, byte by byte":     {request, 1, rntbd.HeadBytes - 2, false},
		"tokens":                   {request, -1, 0, false},
		"the length of a payload":  {create, -201, 0, false},
		"a payload":                {create, -1, 0, false},
		"a payload, byte by byte":  {create, -150, 100, false},
		"a refused payload":        {stranger, -1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := limitsServer(t)
				defer s.Close()
				other := s.opened(t)
				channel, frame := s.silent(), openingFrame()
				if c.frame != nil {
					_ = channel.Close()
					channel, frame = s.opened(t), c.frame(t)
				}
				sent := c.sent
				if sent < 0 {
					sent += len(frame)
				}
				began := time.Now()
				send(t, channel, frame[:sent])
				var more sync.WaitGroup
				more.Go(func() {
					for _, b := range frame[sent : sent+c.more] {
						time.Sleep(10 * time.Second)
						if _, err := channel.Write([]byte{b}); err != nil {
							return
						}
					}
				})
				if n, err := io.Copy(io.Discard, channel); (n > 0) != c.answered || err != nil {
					t.Errorf("the server answers with %d bytes, %v", n, err)
				}
				if took := time.Since(began); took != frameTimeout {
					t.Errorf("the channel ended after %v, want %v", took, frameTimeout)
				}
				_ = channel.Close()
				more.Wait()
				synctest.Wait()
				if n, use := s.open(), s.Memory.Use(); n != 1 || use.Held != 0 {
					t.Errorf("%d channels are left, and %d bytes", n, use.Held)
				}
				send(t, other, unknownFrame())
				if status := statusOf(t, other); status != 400 {
					t.Errorf("another channel answers %d", status)
				}
			})
		})
	}
}

// A channel that is never opened, or is silent, is closed.
func TestSilentChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitsServer(t)
		defer s.Close()
		began := time.Now()
		ended := make(chan time.Duration, 2)
		for _, c := range []net.Conn{s.silent(), s.opened(t)} {
			go func() {
				_, _ = io.Copy(io.Discard, c)
				ended <- time.Since(began)
				_ = c.Close()
			}()
		}
		used := s.opened(t)
		for range 3 {
			time.Sleep(idleTimeout / 2)
			send(t, used, unknownFrame())
			if status := statusOf(t, used); status != 400 {
				t.Errorf("a channel that is used answers %d", status)
			}
		}
		for range 2 {
			if took := <-ended; took != idleTimeout {
				t.Errorf("a silent channel ended after %v, want %v", took, idleTimeout)
			}
		}
		if n := s.open(); n != 1 {
			t.Errorf("%d channels are left, want the one that is used", n)
		}
	})
}

// A client that does not read its answers loses its channel, and what it holds is free.
func TestReadersThatNeverRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitsServer(t)
		defer s.Close()
		other := s.opened(t)
		c := s.opened(t)
		defer c.Close()
		sent := make(chan int, 1)
		go func() {
			frame := unknownFrame()
			for n := 0; ; n++ {
				if _, err := c.Write(frame); err != nil {
					sent <- n
					return
				}
			}
		}()
		time.Sleep(writeTimeout - time.Second)
		synctest.Wait()
		if n := s.open(); n != 2 {
			t.Errorf("%d channels are open before the time is over, want 2", n)
		}
		send(t, other, unknownFrame())
		if status := statusOf(t, other); status != 400 {
			t.Errorf("another channel answers %d", status)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n, use := s.open(), s.Memory.Use(); n != 1 || use.Held != 0 {
			t.Errorf("%d channels are left, and %d bytes", n, use.Held)
		}
		if n, most := <-sent, maxInFlight+readBytes/len(unknownFrame())+2; n > most {
			t.Errorf("%d requests of a client that reads nothing were read, at most %d may be", n, most)
		}
	})
}

// No more than maxExecuting requests execute. The next one waits, without holding up the
// end of the server.
func TestRequestsExecuting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitsServer(t)
		for range maxExecuting { // as many are executing on other channels
			s.executing <- struct{}{}
		}
		answers := make(chan int, 2)
		channels := []net.Conn{s.opened(t), s.opened(t), s.opened(t)}
		for _, c := range channels {
			send(t, c, unknownFrame())
		}
		for _, c := range channels[:2] {
			go func() { answers <- statusOf(t, c) }()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(answers) > 0 {
			t.Fatalf("a request was answered beside %d others", maxExecuting)
		}
		// One that ends makes room for all three, one after the other.
		<-s.executing
		for range 2 {
			if status := <-answers; status != 400 {
				t.Errorf("answered with %d", status)
			}
		}
		synctest.Wait()
		if n := len(s.executing); n != maxExecuting-1 {
			t.Errorf("%d places are taken, want %d", n, maxExecuting-1)
		}
		s.executing <- struct{}{}
		send(t, channels[0], unknownFrame())
		synctest.Wait()
		s.Close()
		if n := s.open(); n != 0 {
			t.Errorf("%d channels are left", n)
		}
		for _, c := range channels {
			_ = c.Close()
		}
	})
}

// Refusals that wait, since their clients have no credential, take no place of requests that
// execute, and a channel has one of them at a time.
func TestStrangersDoNotExecute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitsServer(t)
		const channels, requests = 3, 40
		unsigned := rntbd.AppendText(nil, rntbd.RequestDatabaseName, "d")
		unsigned = rntbd.AppendText(unsigned, rntbd.RequestCollectionName, "c")
		frame := (&directclient.Request{Resource: rntbd.Document, Operation: rntbd.ReadFeed, Tokens: unsigned}).Frame(1)
		var all sync.WaitGroup
		began := time.Now()
		for range channels {
			c := s.opened(t)
			all.Go(func() {
				for range requests {
					if status := statusOf(t, c); status != 401 {
						t.Errorf("a stranger was answered with %d", status)
					}
				}
				_ = c.Close()
			})
			all.Go(func() {
				for range requests {
					if _, err := c.Write(frame); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(5*time.Second + time.Second/2)
		synctest.Wait()
		if n := len(s.executing); n != 0 {
			t.Errorf("%d refused requests have places of requests that execute", n)
		}
		s.mu.Lock()
		for ch := range s.mu.channels {
			ch.mu.Lock()
			if n := ch.mu.inFlight; n != 1 {
				t.Errorf("%d refused requests of a channel wait", n)
			}
			ch.mu.Unlock()
		}
		s.mu.Unlock()
		all.Wait()
		if took := time.Since(began); took < (requests-11)*time.Second || took > requests*time.Second {
			t.Errorf("%d refusals took %s", requests, took)
		}
		s.Close()
	})
}

// What a client leaves unfinished keeps its connection busy only if it has shown a valid
// credential: otherwise the connection can be closed for another.
func TestStrangersAreIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitsServer(t)
		create := createFrame(t, "{}")
		whole := unknownFrame()
		silent, half, refused, known := s.opened(t), s.opened(t), s.opened(t), s.opened(t)
		send(t, half, whole[:len(whole)/2])
		send(t, refused, whole)
		if status := statusOf(t, refused); status != 400 {
			t.Errorf("answered with %d", status)
		}
		send(t, refused, stranger(t)[:rntbd.HeadBytes])
		synctest.Wait()
		if n := s.busy(); n != 0 {
			t.Errorf("%d connections of strangers are busy", n)
		}
		send(t, known, create[:len(create)-1]) // its body is not complete
		synctest.Wait()
		if n := s.busy(); n != 1 {
			t.Errorf("%d connections are busy, want that of the client with a credential", n)
		}
		send(t, known, create[len(create)-1:])
		statusOf(t, known)
		synctest.Wait()
		if n := s.busy(); n != 0 {
			t.Errorf("%d connections are busy after the answer", n)
		}
		send(t, known, whole[:1])
		synctest.Wait()
		if n := s.busy(); n != 1 {
			t.Errorf("%d connections are busy during the client's next frame", n)
		}
		s.Close()
		for _, c := range []net.Conn{silent, half, refused, known} {
			_ = c.Close()
		}
	})
}

// A stranger that announces a long head holds memory for what it has sent of it, and no more.
func TestAnnouncedHeadsTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitsServer(t)
		tokens := rntbd.AppendText(nil, rntbd.RequestContinuationToken, strings.Repeat("c", rntbd.MaxText))
		frame := (&directclient.Request{Resource: rntbd.Attachment, Operation: rntbd.Read, Tokens: tokens}).Frame(1)
		const channels = 20
		var all []net.Conn
		for range channels {
			c := s.opened(t)
			send(t, c, frame[:rntbd.HeadBytes])
			all = append(all, c)
		}
		synctest.Wait()
		if use := s.Memory.Use(); use.Held != 0 || use.Waiting != 0 {
			t.Errorf("%d heads of %d bytes hold %d bytes, and %d wait", channels, len(frame), use.Held, use.Waiting)
		}
		for _, c := range all {
			send(t, c, frame[rntbd.HeadBytes:])
			if status := statusOf(t, c); status != 400 {
				t.Errorf("a long head was answered with %d", status)
			}
			_ = c.Close()
		}
		synctest.Wait()
		if use := s.Memory.Use(); use.Held != 0 {
			t.Errorf("%d bytes are held", use.Held)
		}
		s.Close()
	})
}
