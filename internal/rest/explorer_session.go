// SPDX-License-Identifier: MIT

// Sessions of the explorer. A browser proves a key once, and then sends a cookie with a
// random id. The key itself never reaches a page, a script or a URL. Sessions are kept in
// memory, so they end with the server.

package rest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
)

const (
	// sessionIdle is after which time without a request a session ends.
	sessionIdle = 30 * time.Minute
	// linkLife is how long a link to sign in with works.
	linkLife = 5 * time.Minute
	// maxSessions bounds the sessions, and also the links. The one that was unused for
	// longest makes room for the next.
	maxSessions = 256
	// secretBytes is the length of an id: too long to be guessed.
	secretBytes = 32
)

// sessions are those of one server.
type sessions struct {
	now func() time.Time // the wall clock

	mu    sync.Mutex
	open  map[digest]session
	links map[digest]session
}

// digest is the hash of an id. The id itself is only in the browser.
type digest [sha256.Size]byte

// session is what the holder of an id may do.
type session struct {
	by   api.Credential
	used time.Time // last
}

func newSessions() *sessions {
	return &sessions{now: time.Now, open: map[digest]session{}, links: map[digest]session{}}
}

// begin begins a session, and returns its id.
func (s *sessions) begin(by api.Credential) string { return s.add(s.open, by, sessionIdle) }

// link returns a code with which one session can be begun.
func (s *sessions) link(by api.Credential) string { return s.add(s.links, by, linkLife) }

func (s *sessions) add(to map[digest]session, by api.Credential, life time.Duration) string {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // which cannot fail
	id := base64.RawURLEncoding.EncodeToString(secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	oldest, full := digest{}, len(to) >= maxSessions
	for d, other := range to {
		if now.Sub(other.used) >= life {
			delete(to, d)
			full = false
		} else if oldest == (digest{}) || other.used.Before(to[oldest].used) {
			oldest = d
		}
	}
	if full {
		delete(to, oldest)
	}
	to[sha256.Sum256([]byte(id))] = session{by, now}
	return id
}

// find returns the credential of an open session, which is used by that.
func (s *sessions) find(id string) (api.Credential, bool) {
	d := digest(sha256.Sum256([]byte(id)))
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.open[d]
	if now := s.now(); !ok || now.Sub(found.used) >= sessionIdle {
		delete(s.open, d)
		return 0, false
	} else {
		found.used = now
	}
	s.open[d] = found
	return found.by, true
}

// redeem returns the credential of a link, which works once.
func (s *sessions) redeem(code string) (api.Credential, error) {
	d := digest(sha256.Sum256([]byte(code)))
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.links[d]
	delete(s.links, d)
	if !ok || s.now().Sub(found.used) >= linkLife {
		return 0, errLinkUsed
	}
	return found.by, nil
}

// end ends a session.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(id)))
}

// cookieName is the name of a session's cookie. Browsers send a cookie to all ports of its
// host, so the name has the port: several servers on one machine have several sessions. A
// page over HTTP cannot replace a cookie that was set over HTTPS, so the name has that, too.
func cookieName(r *http.Request) string {
	name := "mayfly-http"
	if r.TLS != nil {
		name = "mayfly-https"
	}
	if i := strings.LastIndexByte(r.Host, ':'); i >= 0 && !strings.HasSuffix(r.Host, "]") {
		name += "-" + strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return c
			}
			return -1
		}, r.Host[i+1:])
	}
	return name
}

// cookie returns the cookie for a session; with an empty id the one that removes it.
func cookie(r *http.Request, id string) string {
	c := http.Cookie{
		Name: cookieName(r), Value: id, Path: explorerPrefix, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
	if id == "" {
		c.MaxAge = -1
	}
	return c.String()
}
