// SPDX-License-Identifier: MIT

package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// followLimit bounds every wait for a line that must come.
const followLimit = time.Minute

// line is a line of any type.
type line struct {
	Type, ID, RID, WrittenAt, ExpiredAt, GoneAt, Source string
	PartitionKey                                        json.RawMessage
	TTL                                                 *int32
	Cursor                                              string
	More                                                bool
	Code, Message                                       string
}

func parseLines(t testing.TB, body []byte) []line {
	t.Helper()
	var all []line
	for text := range bytes.Lines(body) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil || text[len(text)-1] != '\n' {
			t.Fatalf("%q is no line: %v", text, err)
		}
		all = append(all, l)
	}
	if len(all) == 0 || all[len(all)-1].Type != "cursor" || all[len(all)-1].Cursor == "" {
		t.Fatalf("no cursor ends %s", body)
	}
	return all
}

func events(t testing.TB, h *Handler, query string) []line {
	t.Helper()
	a := admin(t, h, "GET", "ttl/events"+inContainer+query, 200)
	if got := a.header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("the content type is %q", got)
	}
	return parseLines(t, a.body)
}

func TestEventsPage(t *testing.T) {
	h := newCarts(t)
	writtenMs := h.engine.Clock().Now()
	fromNow := events(t, h, "&from=now")
	if len(fromNow) != 1 || fromNow[0].More {
		t.Fatalf("before anything expires: %+v", fromNow)
	}
	advance(t, h, 2*time.Minute)
	for _, query := range []string{"", "&from=kept", "&follow=false", "&cursor=" + fromNow[0].Cursor} {
		got := events(t, h, query)
		if len(got) != 3 {
			t.Fatalf("%q: %+v, want two events", query, got)
		}
		own, inherits := got[0], got[1]
		if own.Type != "expired" || own.ID != "own" || own.Source != "item" || own.TTL == nil || *own.TTL != 10 || own.RID == "" ||
			own.WrittenAt != clock.Stamp(writtenMs) || own.ExpiredAt != clock.Stamp(writtenMs+10_000) || own.GoneAt != own.ExpiredAt || string(own.PartitionKey) != `["ada"]` {
			t.Errorf("%q: %+v", query, own)
		}
		if inherits.ID != "inherits" || inherits.Source != "container" || inherits.TTL != nil || inherits.ExpiredAt != clock.Stamp(writtenMs+60_000) {
			t.Errorf("%q: %+v", query, inherits)
		}
	}
	// Purge does not remove events, and no event is sent twice.
	admin(t, h, "POST", "ttl/purge", 200)
	got := events(t, h, "")
	if len(got) != 3 || got[0].ID != "own" || got[1].ID != "inherits" {
		t.Errorf("after a purge: %+v", got)
	}
	if again := events(t, h, "&cursor="+got[2].Cursor); len(again) != 1 {
		t.Errorf("after the last event: %+v", again)
	}
	advance(t, h, 2*time.Hour)
	text := admin(t, h, "GET", "ttl/events"+inContainer+"&cursor="+fromNow[0].Cursor, 410).failureText(t, 410, 0)
	if !strings.Contains(text, "from=kept") {
		t.Errorf("an old cursor: %q, want what to do", text)
	}
}

// follower reads lines from a server.
type follower struct {
	lines  chan line
	ended  chan struct{}
	cancel context.CancelFunc
}

// follow begins to follow events, and waits for the first line.
func follow(t *testing.T, s *httptest.Server, query string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), followLimit)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/_mayfly/ttl/events"+inContainer+"&follow=true"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testKey)
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("follow: status %d", res.StatusCode)
	}
	f := &follower{lines: make(chan line, 100), ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(f.ended)
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Errorf("%q is no line: %v", lines.Text(), err)
			}
			f.lines <- l
		}
	}()
	return f
}

func (f *follower) next(t *testing.T) line {
	t.Helper()
	select {
	case l := <-f.lines:
		return l
	case <-f.ended:
		select {
		case l := <-f.lines:
			return l
		default:
			t.Fatal("the server has ended it")
		}
	case <-time.After(followLimit):
		t.Fatal("no line comes")
	}
	return line{}
}

func (f *follower) wantEnd(t *testing.T) {
	t.Helper()
	select {
	case <-f.ended:
	case <-time.After(followLimit):
		t.Fatal("the server does not end it")
	}
}

func TestFollowEvents(t *testing.T) {
	h := newCarts(t)
	s := httptest.NewServer(h)
	defer s.Close()
	f := follow(t, s, "&from=now")
	if l := f.next(t); l.Type != "cursor" || l.More {
		t.Fatalf("the first line is %+v, want a cursor", l)
	}
	for _, c := range []struct {
		after time.Duration
		id    string
	}{{11 * time.Second, "own"}, {50 * time.Second, "inherits"}} {
		advance(t, h, c.after)
		if l := f.next(t); l.Type != "expired" || l.ID != c.id {
			t.Fatalf("it tells %+v, want that %s has expired", l, c.id)
		}
		if l := f.next(t); l.Type != "cursor" || l.Cursor == "" {
			t.Fatalf("it tells %+v, want a cursor", l)
		}
	}
	// A follower misses nothing, however far the time jumps.
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"later","pk":"ada"}`, pk("ada"), 201)
	advance(t, h, 48*time.Hour)
	if l := f.next(t); l.ID != "later" {
		t.Fatalf("after two days it tells %+v", l)
	}
	if l := f.next(t); l.Type != "cursor" {
		t.Fatalf("it tells %+v, want a cursor", l)
	}
	call(t, h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
	if l := f.next(t); l.Type != "error" || l.Code != "NotFound" || l.Message == "" {
		t.Errorf("when its container is gone, a follower is told %+v", l)
	}
	f.wantEnd(t)
}

// Followers do not delay the end of a server or of a handler.
func TestFollowersEndWithTheServer(t *testing.T) {
	h := newCarts(t)
	s := httptest.NewServer(h)
	defer s.Close()
	f := follow(t, s, "")
	f.next(t)
	ctx, cancel := context.WithTimeout(t.Context(), followLimit)
	defer cancel()
	for range 2 { // the second call does nothing
		if err := s.Config.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	}
	f.wantEnd(t)

	other := httptest.NewServer(h)
	defer other.Close()
	f = follow(t, other, "")
	f.next(t)
	h.Close()
	f.wantEnd(t)
}

func TestFollowersAreBounded(t *testing.T) {
	h := newCarts(t)
	if !h.followers.slots.TryAcquire(maxFollowers) {
		t.Fatal("there is no room for as many followers as may be")
	}
	text := admin(t, h, "GET", "ttl/events"+inContainer+"&follow=true", 503).failureText(t, 503, 0)
	if !strings.Contains(text, "Too many clients follow") {
		t.Errorf("one too many is told %q", text)
	}
	events(t, h, "") // pages are not limited
	h.followers.slots.Release(maxFollowers)
	s := httptest.NewServer(h)
	defer s.Close()
	f := follow(t, s, "")
	f.next(t)
	f.cancel()
	f.wantEnd(t)
}
