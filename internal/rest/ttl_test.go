// SPDX-License-Identifier: MIT

package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/store"
)

// admin requests one of Mayfly's own pages, with the key.
func admin(t testing.TB, h *Handler, method, page string, want int) answer {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost/_mayfly/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testKey)
	a := serve(h, r)
	if a.status != want {
		t.Fatalf("%s %s: status %d, want %d: %s", method, page, a.status, want, a.body)
	}
	return a
}

const inContainer = "?database=d&container=c"

// newCarts returns a handler with a frozen clock, purge paused, and a container with a
// default TTL of 60 seconds and three items: "inherits" has no TTL of its own, "own" has
// 10 seconds, and "never" -1. All have the partition key "ada".
func newCarts(t testing.TB) *Handler {
	t.Helper()
	h := newTestHandler(t)
	if err := h.engine.Clock().Freeze(); err != nil {
		t.Fatal(err)
	}
	admin(t, h, "POST", "ttl/pause", 200)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	call(t, h, "POST", "/dbs/d/colls", `{"id":"c","defaultTtl":60,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, nil, 201)
	for _, body := range []string{
		`{"id":"inherits","pk":"ada"}`, `{"id":"own","pk":"ada","ttl":10}`, `{"id":"never","pk":"ada","ttl":-1}`,
	} {
		call(t, h, "POST", "/dbs/d/colls/c/docs", body, pk("ada"), 201)
	}
	return h
}

func advance(t testing.TB, h *Handler, d time.Duration) {
	t.Helper()
	if err := h.engine.Clock().Advance(d); err != nil {
		t.Fatal(err)
	}
}

func TestTTLStatusPage(t *testing.T) {
	h := newCarts(t)
	advance(t, h, 15*time.Second)
	for _, page := range []string{"ttl/status", "ttl/status" + inContainer} {
		s := decode[engine.TTLReport](t, admin(t, h, "GET", page, 200))
		if len(s.Containers) != 1 || !s.Clock.Trusted || s.Now != clock.Stamp(s.NowMs) || s.NowMs != h.engine.Clock().Now() {
			t.Fatalf("%s: %+v", page, s)
		}
		c := s.Containers[0]
		if c.Database != "d" || c.Container != "c" || c.DefaultTTL != 60 || c.TTLFinality {
			t.Errorf("%s: the settings are %+v", page, c)
		}
		if c.Live.Items != 2 || c.Live.Bytes == 0 || c.Expired.Items != 1 || c.Expired.Bytes == 0 {
			t.Errorf("%s: live %+v, expired %+v, want 2 and 1", page, c.Live, c.Expired)
		}
		if p := c.Purge; p.LagSeconds != 5 || !p.Paused || p.HeldBack != purge.Paused || p.Limit != 0 || p.PurgedItems != 0 {
			t.Errorf("%s: purge is %+v", page, p)
		}
		if c.Throughput.Mode != "report" || c.Throughput.Provisioned != 400 || c.Throughput.Shared {
			t.Errorf("%s: the throughput is %+v", page, c.Throughput)
		}
		if len(c.Partitions) != 1 || c.Partitions[0] != (engine.PartitionStatus{ID: "0", Usage: c.Usage, LagSeconds: 5}) {
			t.Errorf("%s: the partitions are %+v", page, c.Partitions)
		}
	}
	// A missing value is null, and not left out.
	call(t, h, "POST", "/dbs/d/colls", `{"id":"off","partitionKey":{"paths":["/pk"]}}`, nil, 201)
	a := admin(t, h, "GET", "ttl/status?database=d&container=off", 200)
	for _, text := range []string{`"defaultTtl":null`, `"limit":null`} {
		if !strings.Contains(string(a.body), text) {
			t.Errorf("the answer lacks %s: %s", text, a.body)
		}
	}
}

func TestTTLStatusOfNothing(t *testing.T) {
	if a := admin(t, newTestHandler(t), "GET", "ttl/status", 200); !strings.Contains(string(a.body), `"containers":[]`) {
		t.Errorf("an empty database: %s", a.body)
	}
}

func TestWhatIfPage(t *testing.T) {
	h := newCarts(t)
	advance(t, h, 15*time.Second)
	for _, c := range []struct {
		ttl                              string
		expires, returns, remains, never int64
		last                             bool
	}{
		{"60", 0, 0, 2, 1, true},
		{"10", 1, 0, 1, 1, false}, // the remaining items never expire
		{"-1", 0, 0, 2, 2, false},
		{"off", 0, 1, 3, 3, false},
	} {
		w := decode[engine.WhatIf](t, admin(t, h, "GET", "ttl/whatif"+inContainer+"&ttl="+c.ttl, 200))
		if w.Live.Items != 2 || w.Expires.Items != c.expires || w.Returns.Items != c.returns || w.Remains.Items != c.remains || w.Never.Items != c.never {
			t.Errorf("ttl %s: %+v, want %+v", c.ttl, w, c)
		}
		if (w.LastExpiresAt != nil) != c.last || (w.DefaultTTL == catalog.TTLAbsent) != (c.ttl == "off") || w.CurrentDefaultTTL != 60 {
			t.Errorf("ttl %s: %+v, want a last moment: %v", c.ttl, w, c.last)
		}
	}
	if s := decode[engine.TTLReport](t, admin(t, h, "GET", "ttl/status", 200)); s.Containers[0].Live.Items != 2 {
		t.Errorf("asking has changed something: %+v", s)
	}
}

func TestForecastPage(t *testing.T) {
	h := newCarts(t)
	for _, interval := range []string{"30s", "30", "0.5m"} {
		f := decode[engine.Forecast](t, admin(t, h, "GET", "ttl/forecast"+inContainer+"&count=3&interval="+interval, 200))
		if len(f.Intervals) != 3 || f.Intervals[0].From != f.Now || f.Intervals[1].From != f.Intervals[0].Until {
			t.Fatalf("%s: the intervals are %+v", interval, f.Intervals)
		}
		first, rest := f.Intervals[0].Items, f.Intervals[1].Items+f.Intervals[2].Items
		if first != 1 || rest != 1 || f.Intervals[0].Bytes == 0 || f.Later.Items != 0 || f.Never.Items != 1 {
			t.Errorf("%s: %+v, want one item in the first interval, one later, and one never", interval, f)
		}
	}
	if f := decode[engine.Forecast](t, admin(t, h, "GET", "ttl/forecast"+inContainer, 200)); len(f.Intervals) != defaultIntervals || f.IntervalSeconds != 5 || f.Intervals[0].Items != 0 || f.Later.Items != 0 {
		t.Errorf("without parameters: %+v", f)
	}
}

func TestExplainPage(t *testing.T) {
	h := newCarts(t)
	writtenMs := h.engine.Clock().Now()
	advance(t, h, 15*time.Second)
	for _, c := range []struct {
		id, key, source string
		expired         bool
		seconds         int64 // from the write, 0 for never
		own             catalog.TTL
		reason          string
	}{
		{"inherits", `["ada"]`, "container", false, 60, 0, "defaultTtl is 60 s"},
		{"inherits", "ada", "container", false, 60, 0, "defaultTtl is 60 s"},
		{"own", `["ada"]`, "item", true, 10, 10, "still takes space"},
		{"never", ` [ "ada" ] `, "item", false, 0, -1, "its own ttl is -1"},
	} {
		page := "ttl/explain" + inContainer + "&id=" + c.id + "&partitionKey=" + url.QueryEscape(c.key)
		e := decode[engine.Explanation](t, admin(t, h, "GET", page, 200))
		if e.ID != c.id || string(e.PartitionKey) != `["ada"]` || e.Source != c.source || e.Expired != c.expired || e.Final || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s: %+v, want %+v", page, e, c)
		}
		if e.WrittenAtMs != writtenMs || e.WrittenAt != clock.Stamp(writtenMs) || e.NowMs != writtenMs+15_000 || e.DefaultTTL != 60 {
			t.Errorf("%s: the times are %+v", page, e)
		}
		if e.TTL != c.own {
			t.Errorf("%s: its own ttl is %v, want %d", page, e.TTL, c.own)
		}
		switch {
		case c.seconds == 0 && (e.ExpiresAt != nil || e.ExpiresAtMs != nil):
			t.Errorf("%s: it expires at %v, want never", page, *e.ExpiresAt)
		case c.seconds > 0 && (*e.ExpiresAtMs != writtenMs+1000*c.seconds || *e.ExpiresAt != clock.Stamp(*e.ExpiresAtMs)):
			t.Errorf("%s: it expires at %d, want %d s after %d", page, *e.ExpiresAtMs, c.seconds, writtenMs)
		}
	}
	admin(t, h, "POST", "ttl/purge", 200)
	if e := decode[engine.Explanation](t, admin(t, h, "GET", "ttl/explain"+inContainer+"&id=own&partitionKey=ada", 200)); !e.Purged || !e.Expired || !strings.Contains(e.Reason, "was purged") {
		t.Errorf("a purged item: %+v", e)
	}
	text := admin(t, h, "GET", "ttl/explain"+inContainer+"&id=nobody&partitionKey=ada", 404).failureText(t, 404, 0)
	if !strings.Contains(text, `no item 'nobody' with the partition key ["ada"]`) || !strings.Contains(text, "was purged") {
		t.Errorf("an item that never was: %q", text)
	}
}

// With ttlFinality, an expired item stays gone even if it would live by the new settings.
func TestExplainPageOfFinality(t *testing.T) {
	h := newCarts(t)
	definition := `{"id":"c","defaultTtl":%d,"ttlFinality":true,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`
	call(t, h, "PUT", "/dbs/d/colls/c", fmt.Sprintf(definition, 60), nil, 200)
	advance(t, h, 2*time.Minute)
	call(t, h, "PUT", "/dbs/d/colls/c", fmt.Sprintf(definition, 3600), nil, 200)
	e := decode[engine.Explanation](t, admin(t, h, "GET", "ttl/explain"+inContainer+"&id=inherits&partitionKey=ada", 200))
	if !e.Final || !e.Expired || e.ExpiresAt != nil || !strings.Contains(e.Reason, "ttlFinality") {
		t.Errorf("%+v", e)
	}
}

func TestPurgePages(t *testing.T) {
	h := newCarts(t)
	advance(t, h, 2*time.Minute)
	p := decode[engine.PurgeResult](t, admin(t, h, "POST", "ttl/purge"+inContainer, 200))
	if p.Purged.Items != 2 || p.Purged.Bytes == 0 || p.Reason != "forced" {
		t.Errorf("purge: %+v, want 2 items", p)
	}
	if p := decode[engine.PurgeResult](t, admin(t, h, "POST", "ttl/purge", 200)); p.Purged != (store.Amount{}) {
		t.Errorf("a second purge: %+v, want nothing", p)
	}
	set := func(page string) engine.PurgeSetting {
		return decode[engine.PurgeSetting](t, admin(t, h, "POST", page, 200))
	}
	call(t, h, "POST", "/dbs/d/colls", `{"id":"off","partitionKey":{"paths":["/pk"]}}`, nil, 201)
	paused := func(container string) bool {
		return decode[engine.TTLReport](t, admin(t, h, "GET", "ttl/status?database=d&container="+container, 200)).Containers[0].Purge.Paused
	}
	if s := set("ttl/resume"); s.Paused {
		t.Errorf("resume: %+v", s)
	}
	if s := set("ttl/pause" + inContainer); !s.Paused || paused("off") {
		t.Errorf("pause of a container: %+v, and of the other: %v", s, paused("off"))
	}
	if s := set("ttl/limit" + inContainer + "&itemsPerSecond=12.5"); s.Limit != 12.5 || !s.Paused {
		t.Errorf("limit: %+v", s)
	}
	s := decode[engine.TTLReport](t, admin(t, h, "GET", "ttl/status"+inContainer, 200)).Containers[0].Purge
	if !s.Paused || s.Limit != 12.5 || s.PurgedItems != 2 || s.Units <= 0 {
		t.Errorf("the status is %+v", s)
	}
	if s := set("ttl/limit" + inContainer + "&itemsPerSecond=0"); s.Limit != 0 {
		t.Errorf("no limit: %+v", s)
	}
	if s := set("ttl/resume" + inContainer); s.Paused {
		t.Errorf("resume of a container: %+v", s)
	}
	r, err := http.NewRequest("POST", "http://localhost/_mayfly/ttl/pause", strings.NewReader(`{"database":"d"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testKey)
	if text := serve(h, r).failureText(t, 400, 0); !strings.Contains(text, "query of the URL") || paused("off") {
		t.Errorf("a body: %q", text)
	}
}

func TestTTLPagesRefuse(t *testing.T) {
	h := newCarts(t)
	for page, text := range map[string]string{
		"ttl/status?database=":                                 "both database and container",
		"ttl/status?container=c":                               "both database and container",
		"ttl/status?database=&container=":                      "both database and container",
		"ttl/status" + inContainer + "&database=e":             "more than once",
		"ttl/status?nosuch=1":                                  "Allowed are: database, container",
		"ttl/status?%zz":                                       "cannot be parsed",
		"ttl/status?database=%ff&container=c":                  "not UTF-8",
		"ttl/whatif?ttl=60":                                    "Name the container",
		"ttl/whatif" + inContainer:                             "off",
		"ttl/whatif" + inContainer + "&ttl=0":                  "from 1 to 2147483647",
		"ttl/whatif" + inContainer + "&ttl=2147483648":         "from 1 to 2147483647",
		"ttl/whatif" + inContainer + "&ttl=-2":                 "from 1 to 2147483647",
		"ttl/forecast" + inContainer + "&interval=1":           "",
		"ttl/forecast" + inContainer + "&interval=3d":          "",
		"ttl/forecast" + inContainer + "&interval=367d":        "up to 366d",
		"ttl/whatif" + inContainer + "&ttl=1h":                 "",
		"ttl/whatif" + inContainer + "&ttl=24855d":             "",
		"ttl/whatif" + inContainer + "&ttl=24856d":             "from 1 to 2147483647 whole seconds",
		"ttl/whatif" + inContainer + "&ttl=1500ms":             "whole seconds",
		"ttl/whatif" + inContainer + "&ttl=-1s":                "whole seconds",
		"ttl/forecast" + inContainer + "&interval=999ms":       "a duration such as",
		"ttl/forecast" + inContainer + "&interval=-1h":         "a duration such as",
		"ttl/forecast" + inContainer + "&interval=8785h":       "a duration such as",
		"ttl/forecast" + inContainer + "&interval=soon":        "a duration such as",
		"ttl/forecast" + inContainer + "&count=0":              "from 1 to 1000",
		"ttl/forecast" + inContainer + "&count=1001":           "from 1 to 1000",
		"ttl/explain" + inContainer + "&partitionKey=ada":      "parameter id",
		"ttl/explain" + inContainer + "&id=own":                "partitionKey",
		"ttl/explain" + inContainer + "&id=own&partitionKey=[": "JSON array",
		"ttl/events?follow=true":                               "Name the container",
		"ttl/events" + inContainer + "&follow=maybe":           "true or false",
		"ttl/events" + inContainer + "&from=then":              "now or kept",
		"ttl/events" + inContainer + "&from=now&cursor=x":      "either cursor or from",
		"ttl/events" + inContainer + "&cursor=":                "empty",
		"ttl/events" + inContainer + "&cursor=x":               "Invalid cursor",
		"POST ttl/limit?itemsPerSecond=1":                      "Name the container",
		"POST ttl/limit" + inContainer:                         "must be a number",
		"POST ttl/limit" + inContainer + "&itemsPerSecond=-1":  "between 0",
		"POST ttl/limit" + inContainer + "&itemsPerSecond=NaN": "between 0",
		"POST ttl/pause?database=d":                            "both database and container",
		"POST ttl/purge?database=&container=":                  "both database and container",
		"POST ttl/purge" + inContainer + "&itemsPerSecond=1":   "There is no parameter",
	} {
		method := "GET"
		if rest, post := strings.CutPrefix(page, "POST "); post {
			method, page = "POST", rest
		}
		if text == "" {
			admin(t, h, method, page, 200)
			continue
		}
		if got := admin(t, h, method, page, 400).failureText(t, 400, 0); !strings.Contains(got, text) {
			t.Errorf("%s %s says %q, want %q", method, page, got, text)
		}
	}
	// A partition key that does not fit the container is refused as in the protocol.
	admin(t, h, "GET", "ttl/explain"+inContainer+"&id=own&partitionKey=[1,2]", 400).failureText(t, 400, 1001)
	for _, page := range []string{"ttl/status?database=d&container=x", "ttl/whatif?database=x&container=c&ttl=1", "ttl/events?database=d&container=x", "POST ttl/pause?database=d&container=x"} {
		method := "GET"
		if rest, post := strings.CutPrefix(page, "POST "); post {
			method, page = "POST", rest
		}
		if got := admin(t, h, method, page, 404).failureText(t, 404, 0); !strings.Contains(got, "There is no container") {
			t.Errorf("%s says %q", page, got)
		}
	}
}

func TestTTLPagesMethodsAndKey(t *testing.T) {
	h := newCarts(t)
	for page, allowed := range map[string]string{
		"ttl/status": "GET", "ttl/whatif": "GET", "ttl/forecast": "GET", "ttl/explain": "GET", "ttl/events": "GET", "metrics": "GET",
		"ttl/pause": "POST", "ttl/resume": "POST", "ttl/limit": "POST", "ttl/purge": "POST",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"} {
			if method != allowed {
				admin(t, h, method, page, 405)
			}
			r, err := http.NewRequest(method, "http://localhost/_mayfly/"+page, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a := serve(h, r); a.status != 401 {
				t.Errorf("%s %s without the key: status %d, want 401", method, page, a.status)
			}
		}
	}
	for _, page := range []string{"ttl", "ttl/", "ttl/nosuch", "ttl/status/", "metrics/", "metrics/x"} {
		admin(t, h, "GET", page, 404)
	}
}

// Every query of the URL is refused with a sentence, or parsed to values within their
// bounds.
func FuzzTTLParams(f *testing.F) {
	for _, q := range []string{
		"", "database=d&container=c", "database=d", "ttl=60", "ttl=-1", "ttl=off", "interval=1h&count=24", "interval=90", "count=1000",
		"id=1&partitionKey=ada", "id=1&partitionKey=%5B%22ada%22%2C1%5D", "partitionKey=[[", "itemsPerSecond=1e400", "follow=true&from=now",
		"cursor=abc", "%", "a=1;b=2", "database=%ff", "ttl=1&ttl=2",
	} {
		f.Add(q)
	}
	all := []string{paramContainer, paramCount, paramCursor, paramDatabase, paramFollow, paramFrom, paramID, paramInterval, paramKey, paramRate, paramTTL}
	f.Fuzz(func(t *testing.T, query string) {
		p, err := parseParams(query, all...)
		if err != nil {
			if refused, known := api.FailureOf(err); !known || refused.Status != 400 || refused.Text == "" {
				t.Fatalf("%q is refused with %v", query, err)
			}
			return
		}
		if n, err := p.container(ofAll); err == nil && (n.database == "") != (n.container == "") {
			t.Errorf("%q names half a container: %+v", query, n)
		}
		if ttl, err := p.ttl(); err == nil && ttl < -1 {
			t.Errorf("%q: the ttl %d", query, ttl)
		}
		if d, err := p.interval(); err == nil && (d != 0 && d < time.Second || d > engine.MaxForecastInterval) {
			t.Errorf("%q: the interval %v", query, d)
		}
		if n, err := p.count(); err == nil && (n < 1 || n > 1000) {
			t.Errorf("%q: the count %d", query, n)
		}
		if k, err := p.partitionKey(); err == nil && len(k) > 3 {
			t.Errorf("%q: the partition key %v", query, k)
		}
		if s, err := p.start(); err == nil && s.Now && s.Cursor != "" {
			t.Errorf("%q: the start %+v", query, s)
		}
	})
}

// Programs read these answers, so their spelling must not change.
func TestTTLAnswersAreSpelled(t *testing.T) {
	h := newTestHandler(t)
	c := h.engine.Clock()
	if err := errors.Join(c.Freeze(), c.Set(time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())); err != nil {
		t.Fatal(err)
	}
	admin(t, h, "POST", "ttl/pause", 200)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	for page, want := range map[string]string{
		"ttl/status" + inContainer: `{"now":"2101-01-01T00:00:00.000Z","nowMs":4133980800000,"clock":{"trusted":true},` +
			`"erasure":{"withinSeconds":null,"lagSeconds":0,"overdueSeconds":0,"leftTables":0,"leftBytes":0,"working":false,"rewrittenBytes":0},"containers":[{"database":"d","container":"c",` +
			`"defaultTtl":60,"ttlFinality":false,"live":{"items":0,"bytes":0},"expiredPending":{"items":0,"bytes":0},` +
			`"purge":{"lagSeconds":0,"itemsPerSecond":0,"purgedItems":0,"purgedBytes":0,"requestUnits":0,"paused":true,"limit":null,"heldBack":"paused","debt":{"limitBytes":201326592,"bytes":0,"itemsPerWrite":0,"paidItems":0}},` +
			`"throughput":{"mode":"report","provisioned":400,"used":0,"leftover":400,"shared":false},` +
			`"partitions":[{"id":"0","live":{"items":0,"bytes":0},"expiredPending":{"items":0,"bytes":0},"lagSeconds":0}]}]}`,
		"ttl/whatif" + inContainer + "&ttl=off": `{"database":"d","container":"c","now":"2101-01-01T00:00:00.000Z","nowMs":4133980800000,"currentDefaultTtl":60,"defaultTtl":null,` +
			`"live":{"items":0,"bytes":0},"expires":{"items":0,"bytes":0},"returns":{"items":0,"bytes":0},"remains":{"items":0,"bytes":0},"never":{"items":0,"bytes":0},` +
			`"lastExpiresAt":null,"lastExpiresAtMs":null}`,
		"ttl/forecast" + inContainer + "&count=1": `{"database":"d","container":"c","now":"2101-01-01T00:00:00.000Z","nowMs":4133980800000,` +
			`"intervalSeconds":60,"intervals":[{"from":"2101-01-01T00:00:00.000Z","until":"2101-01-01T00:01:00.999Z","items":0,"bytes":0}],"later":{"items":0,"bytes":0},"never":{"items":0,"bytes":0}}`,
		"ttl/explain?database=d&container=e&id=1&partitionKey=ada": `{"database":"d","container":"e","id":"1","partitionKey":["ada"],"now":"2101-01-01T00:00:00.000Z","nowMs":4133980800000,` +
			`"expired":false,"purged":false,"final":false,"ttl":5,"defaultTtl":60,"source":"item","writtenAt":"2101-01-01T00:00:00.000Z","writtenAtMs":4133980800000,` +
			`"expiresAt":"2101-01-01T00:00:05.000Z","expiresAtMs":4133980805000,"reason":"Its own ttl is 5 s from its last write."}`,
		"POST ttl/limit" + inContainer + "&itemsPerSecond=2.5": `{"paused":true,"limit":2.5}`,
		"POST ttl/limit" + inContainer + "&itemsPerSecond=0":   `{"paused":true}`,
		"POST ttl/purge": `{"purged":{"items":0,"bytes":0},"reason":"forced"}`,
	} {
		for _, id := range []string{"c", "e"} { // fresh containers, without earlier requests
			call(t, h, "POST", "/dbs/d/colls", `{"id":"`+id+`","defaultTtl":60,"partitionKey":{"paths":["/pk"]}}`, nil, 201)
		}
		call(t, h, "POST", "/dbs/d/colls/e/docs", `{"id":"1","pk":"ada","ttl":5}`, pk("ada"), 201)
		method := "GET"
		if rest, post := strings.CutPrefix(page, "POST "); post {
			method, page = "POST", rest
		}
		if got := string(admin(t, h, method, page, 200).body); got != want {
			t.Errorf("%s is\n%s, want\n%s", page, got, want)
		}
		call(t, h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
		call(t, h, "DELETE", "/dbs/d/colls/e", "", nil, 204)
	}
}

// A forecast under another TTL is what the forecast will be once that is set.
func TestForecastUnderAnotherTTL(t *testing.T) {
	h := newTestHandler(t)
	call(t, h, "POST", "/dbs", `{"id":"d"}`, nil, 201)
	definition := strings.Replace(containerBody, `"id"`, `"defaultTtl":%d,"id"`, 1)
	call(t, h, "POST", "/dbs/d/colls", fmt.Sprintf(definition, 100), nil, 201)
	if err := h.engine.Clock().Freeze(); err != nil {
		t.Fatal(err)
	}
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"1","pk":"a"}`, pk("a"), 201)
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"2","pk":"a","ttl":30}`, pk("a"), 201)
	page := "ttl/forecast" + inContainer + "&interval=60s&count=5"
	if f := decode[engine.Forecast](t, admin(t, h, "GET", page, 200)); f.Intervals[0].Items != 1 || f.Intervals[1].Items != 1 {
		t.Errorf("with the TTL as it is: %+v", f)
	}
	tried := decode[engine.Forecast](t, admin(t, h, "GET", page+"&ttl=200", 200))
	if tried.Intervals[0].Items != 1 || tried.Intervals[1].Items != 0 || tried.Intervals[3].Items != 1 {
		t.Errorf("with 200 s: %+v", tried)
	}
	if f := decode[engine.Forecast](t, admin(t, h, "GET", page+"&ttl=off", 200)); f.Never.Items != 2 {
		t.Errorf("with none: %+v", f)
	}
	admin(t, h, "GET", page+"&ttl=soon", 400)
	call(t, h, "PUT", "/dbs/d/colls/c", fmt.Sprintf(definition, 200), nil, 200)
	if f := decode[engine.Forecast](t, admin(t, h, "GET", page, 200)); !reflect.DeepEqual(f, tried) {
		t.Errorf("once it is set: %+v, and before: %+v", f, tried)
	}
}
