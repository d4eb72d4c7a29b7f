// SPDX-License-Identifier: MIT

// The pages under /_mayfly/, over HTTP.

package mayfly

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// admin sends a request to one of Mayfly's own pages.
func (s *testServer) admin(t *testing.T, method, page, body, authorization string) reply {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr+"/_mayfly/"+page, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	a, err := s.do(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type clockAnswer struct {
	Now           string
	NowMs, WallMs int64
	Mode          string
	PurgeTrusted  bool
	Reason        string
}

// move posts to the clock and returns its time.
func (s *testServer) move(t *testing.T, body string) clockAnswer {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	a := s.admin(t, method, "clock", body, "Bearer "+s.Key())
	if a.status != 200 {
		t.Fatalf("%s the clock %s: status %d: %s", method, body, a.status, a.body)
	}
	var c clockAnswer
	if err := json.Unmarshal(a.body, &c); err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse("2006-01-02T15:04:05.000Z", c.Now)
	if err != nil || at.UnixMilli() != c.NowMs {
		t.Errorf("the clock says %q and %d ms, %v", c.Now, c.NowMs, err)
	}
	return c
}

func TestHealthPages(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	for _, page := range []string{"health", "ready"} {
		a := s.admin(t, "GET", page, "", "")
		if a.status != 200 || string(a.body) != `{"status":"ok"}` {
			t.Errorf("%s: status %d: %s", page, a.status, a.body)
		}
		if a := s.admin(t, "HEAD", page, "", ""); a.status != 200 || len(a.body) > 0 {
			t.Errorf("HEAD %s: status %d, %d bytes", page, a.status, len(a.body))
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			if a := s.admin(t, method, page, "{}", ""); a.status != 405 || a.message(t) == "" {
				t.Errorf("%s %s: status %d, want 405", method, page, a.status)
			}
		}
	}
	for _, page := range []string{"", "nosuch", "health/", "Health", "clock/x", "../dbs"} {
		if a := s.admin(t, "GET", page, "", "Bearer "+s.Key()); a.status != 404 {
			t.Errorf("%q: status %d, want 404", page, a.status)
		}
	}
}

func TestClockPage(t *testing.T) {
	s := serveTest(t, Options{Memory: true, TestClock: true})
	frozen := s.move(t, `{"freeze":true}`)
	if again := s.move(t, ""); again.NowMs != frozen.NowMs || again.Mode != frozen.Mode {
		t.Errorf("frozen at %+v, then %+v", frozen, again)
	}
	if c := s.move(t, `{"advance":"90s"}`); c.NowMs != frozen.NowMs+90_000 {
		t.Errorf("90 s after %d it is %d", frozen.NowMs, c.NowMs)
	}
	if c := s.move(t, `{"advance":"1d1h"}`); c.NowMs != frozen.NowMs+90_000+25*3600_000 {
		t.Errorf("a day and an hour later it is %d", c.NowMs)
	}
	if c := s.move(t, `{"set":"2100-01-01T00:00:00Z"}`); c.Now != "2100-01-01T00:00:00.000Z" {
		t.Errorf("set to 2100 it is %s", c.Now)
	}
	if c := s.move(t, ` {"set" : "2100-01-01T02:00:00.5+01:00"} `); c.Now != "2100-01-01T01:00:00.500Z" {
		t.Errorf("set with a zone it is %s", c.Now)
	}
	s.makeContainer(t)
	made := s.must(t, 201, "POST", items, `{"id":"i","pk":"p"}`, pk("p"))
	var item struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal(made.body, &item); err != nil || item.TS != time.Date(2100, 1, 1, 1, 0, 0, 0, time.UTC).Unix() {
		t.Errorf("an item written in 2100 has _ts %d, %v", item.TS, err)
	}
	running := s.move(t, `{"release":true}`)
	if running.Mode == frozen.Mode || running.NowMs < time.Date(2100, 1, 1, 1, 0, 0, 0, time.UTC).UnixMilli() {
		t.Errorf("released: %+v", running)
	}
	for body, text := range map[string]string{
		`{"set":"2000-01-01T00:00:00Z"}`: "backwards",
		`{"set":"9999-01-01T00:00:00Z"}`: "largest time",
		`{"advance":"-1s"}`:              "backwards",
		`{"advance":"0s"}`:               "millisecond",
		`{"advance":"2540400h"}`:         "largest time",
		`{"confirm":true}`:               "confirm",
	} {
		a := s.admin(t, "POST", "clock", body, "Bearer "+s.Key())
		if a.status != 400 || !strings.Contains(a.message(t), text) {
			t.Errorf("%s: status %d, %q, want 400 and %q", body, a.status, a.body, text)
		}
	}
	if after := s.move(t, ""); after.NowMs < running.NowMs {
		t.Errorf("the time went from %d to %d", running.NowMs, after.NowMs)
	}
}

// A body that the clock's page does not accept is refused with an example of one that it
// does.
func TestClockPageBadBodies(t *testing.T) {
	s := serveTest(t, Options{Memory: true, TestClock: true})
	before := s.move(t, `{"freeze":true}`)
	for _, body := range []string{
		"", "{}", "null", "[]", "true", `"freeze"`, "{", `{"freeze":true`, `{"freeze":false}`, `{"freeze":1}`, `{"freeze":"true"}`,
		`{"frieze":true}`, `{"freeze":true,"release":true}`, `{"advance":"90s","set":"2100-01-01T00:00:00Z"}`, `{"advance":90}`,
		`{"advance":""}`, `{"advance":"90 s"}`, `{"advance":"forever"}`, `{"advance":"99999999999h"}`, `{"set":"tomorrow"}`,
		`{"set":"2100-01-01"}`, `{"set":4102444800}`, `{"set":"2100-13-01T00:00:00Z"}`, `{"set":null}`,
		`{"advance":"1h"}{"advance":"1h"}`, `{"advance":"1h"} x`, "\xff\xfe", "\x00", strings.Repeat("[", 100_000),
	} {
		a := s.admin(t, "POST", "clock", body, "Bearer "+s.Key())
		if a.status != 400 || !strings.Contains(a.message(t), `{"advance":"90s"}`) {
			t.Errorf("%.60q: status %d, %.300q, want 400 and an example", body, a.status, a.body)
		}
	}
	if a := s.admin(t, "POST", "clock", strings.Repeat(" ", 3<<20), "Bearer "+s.Key()); a.status != 413 {
		t.Errorf("3 MB: status %d, want 413", a.status)
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		if a := s.admin(t, method, "clock", `{"advance":"1h"}`, "Bearer "+s.Key()); a.status != 405 {
			t.Errorf("%s: status %d, want 405", method, a.status)
		}
	}
	if after := s.move(t, ""); after.NowMs != before.NowMs || after.Mode != before.Mode {
		t.Errorf("a refused request has moved the clock from %+v to %+v", before, after)
	}
}

func TestClockPageNeedsTheKey(t *testing.T) {
	s := serveTest(t, Options{Memory: true, TestClock: true, Key: ownKey})
	before := s.move(t, `{"freeze":true}`)
	signed := signedHeaders(t, ownKey, "GET", "/_mayfly/clock").Get("Authorization")
	for _, authorization := range []string{
		"", "Bearer", "Bearer ", "Bearer x", "bearer " + ownKey, "Bearer  " + ownKey, "Bearer " + ownKey[:10], "Bearer " + WellKnownKey,
		"Basic " + ownKey, ownKey, signed, "Bearer " + strings.Repeat("A", 10_000), "Bearer \xff",
	} {
		for _, method := range []string{"GET", "POST"} {
			a := s.admin(t, method, "clock", `{"advance":"1h"}`, authorization)
			if a.status != 401 || a.message(t) == "" {
				t.Errorf("%s with %.40q: status %d, want 401: %s", method, authorization, a.status, a.body)
			}
		}
		s.client.CloseIdleConnections() // many refusals on one connection are delayed
	}
	if after := s.move(t, ""); after.NowMs != before.NowMs {
		t.Errorf("a request without the key has moved the clock")
	}
}

func TestClockPageWithoutTestClock(t *testing.T) {
	s := serveTest(t, Options{Memory: true})
	c := s.move(t, "")
	if d := time.Since(time.UnixMilli(c.NowMs)); d < -time.Minute || d > time.Minute || !c.PurgeTrusted {
		t.Errorf("the clock is %v from the wall: %+v", d, c)
	}
	for _, body := range []string{`{"freeze":true}`, `{"set":"2100-01-01T00:00:00Z"}`, `{"advance":"1h"}`, `{"release":true}`} {
		a := s.admin(t, "POST", "clock", body, "Bearer "+s.Key())
		if a.status != 400 || !strings.Contains(a.message(t), "--test-clock") {
			t.Errorf("%s: status %d, %q, want 400 and a sentence about --test-clock", body, a.status, a.body)
		}
	}
	if a := s.admin(t, "POST", "clock", `{"confirm":true}`, "Bearer "+s.Key()); a.status != 400 || !strings.Contains(a.message(t), "no jump") {
		t.Errorf("confirm: status %d, %q, want 400 and a sentence", a.status, a.body)
	}
}
