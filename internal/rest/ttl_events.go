// SPDX-License-Identifier: MIT

// Events of expiry, as lines of JSON: one page, or a stream that lasts until the client
// or the server goes.

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

const (
	// maxFollowers bounds how many clients follow events at the same time: each has a
	// connection and polls for events.
	maxFollowers = 64
	// followEvery is how often events are polled for a follower.
	followEvery = 200 * time.Millisecond
	// cursorEvery is how often a follower gets the cursor when there are no events.
	cursorEvery = 10 * time.Second
	// followWriteTimeout is how long a follower may take to receive a page.
	followWriteTimeout = 30 * time.Second

	contentLines = "application/x-ndjson"
)

// errFollowers: maxFollowers clients already follow events.
var errFollowers = api.Refuse(503, 0, "Too many clients follow events already. Try again later, or ask for pages.")

// eventLine is the event of an expired item.
type eventLine struct {
	Type string `json:"type"` // "expired"
	*engine.Event
}

// cursorLine ends a page.
type cursorLine struct {
	Type string `json:"type"` // "cursor"
	*engine.EventPage
}

// errorLine ends a stream that failed.
type errorLine struct {
	Type    string `json:"type"` // "error"
	Code    string `json:"code"`
	Message string `json:"message"`
}

// pageLines writes the lines of a page.
func pageLines(page *engine.EventPage) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	for i := range page.Events {
		if err := lines.Encode(eventLine{"expired", &page.Events[i]}); err != nil {
			return nil, err
		}
	}
	err := lines.Encode(cursorLine{"cursor", page})
	return b.Bytes(), err
}

func (x *exchange) serveEvents(p params, c *catalog.Container) (any, error) {
	begin, err := p.start()
	if err != nil {
		return nil, err
	}
	follow, err := p.follow()
	if err != nil {
		return nil, err
	}
	page, err := x.h.engine.Events(x.Context, c, begin)
	if err != nil {
		return nil, err
	}
	if follow {
		return nil, x.followEvents(c, page)
	}
	lines, err := pageLines(&page)
	if err == nil {
		x.writeAs(http.StatusOK, contentLines, lines)
	}
	return nil, err
}

// followEvents sends the first page, and then every page that has events, until the
// client or the server goes.
func (x *exchange) followEvents(c *catalog.Container, page engine.EventPage) error {
	if !x.h.followers.slots.TryAcquire(1) {
		return errFollowers
	}
	defer x.h.followers.slots.Release(1)
	x.unhurried()
	x.setCommon()
	x.set(headerContentType, contentLines)
	x.begin(http.StatusOK)
	stopping := x.h.followers.stopping(x.r)
	look := time.NewTicker(followEvery)
	defer look.Stop()
	remind := time.NewTicker(cursorEvery)
	defer remind.Stop()
	for sendCursor := true; ; {
		if sendCursor || len(page.Events) > 0 {
			lines, err := pageLines(&page)
			if err != nil {
				return err
			}
			if x.send(lines) != nil {
				return nil // the client has gone
			}
			remind.Reset(cursorEvery)
		}
		sendCursor = false
		if !page.More {
			select {
			case <-x.r.Context().Done():
				return nil
			case <-stopping:
				return nil
			case <-x.h.followers.closed:
				return nil
			case <-remind.C:
				sendCursor = true
			case <-look.C:
			}
		}
		var err error
		if page, err = x.h.engine.NextEvents(x.Context, c, page.Cursor); err != nil {
			x.sendFailure(err)
			return err
		}
	}
}

// sendFailure sends an error to a follower as a line, since the status was already sent.
func (x *exchange) sendFailure(err error) {
	f, _ := api.FailureOf(err)
	line, err := json.Marshal(errorLine{"error", f.Code(), f.Text})
	if err == nil {
		_ = x.send(append(line, '\n'))
	}
}

// send sends a part of an answer at once.
func (x *exchange) send(part []byte) error {
	c := http.NewResponseController(x.w)
	if err := c.SetWriteDeadline(time.Now().Add(followWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := x.w.Write(part); err != nil {
		return err
	}
	return c.Flush()
}

// followers are the clients that follow events. They would delay the end of a server, so
// it ends their streams.
type followers struct {
	slots  *semaphore.Weighted
	closed chan struct{} // closed when the handler is
	close  func()        // ends all followers

	mu struct {
		sync.Mutex
		// servers has a channel for each server that has had followers, closed when it
		// shuts down.
		servers map[*http.Server]chan struct{}
	}
}

func newFollowers() *followers {
	f := &followers{slots: semaphore.NewWeighted(maxFollowers), closed: make(chan struct{})}
	f.close = sync.OnceFunc(func() { close(f.closed) })
	f.mu.servers = map[*http.Server]chan struct{}{}
	return f
}

// stopping returns a channel that is closed when the request's server shuts down; nil if
// the server is unknown.
func (f *followers) stopping(r *http.Request) <-chan struct{} {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stopped := f.mu.servers[server]
	if stopped == nil {
		stopped = make(chan struct{})
		f.mu.servers[server] = stopped
		// A server may be shut down more than once.
		server.RegisterOnShutdown(sync.OnceFunc(func() { close(stopped) }))
	}
	return stopped
}
