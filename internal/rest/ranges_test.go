// SPDX-License-Identifier: MIT

package rest

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// rangeFeed is the feed of partition key ranges as a client decodes it.
type rangeFeed struct {
	Rid    string `json:"_rid"`
	Count  int    `json:"_count"`
	Ranges []struct {
		ID, MinInclusive, MaxExclusive, Status string
		RidPrefix, Lsn, VectorClockVersion     int
		ThroughputFraction                     float64
		Parents, OwnedArchivalPKRangeIds       []string
		Rid                                    string `json:"_rid"`
		Self                                   string `json:"_self"`
		Etag                                   string `json:"_etag"`
		Ts                                     int64  `json:"_ts"`
	} `json:"PartitionKeyRanges"`
}

// createContainer makes a container in the database d, with headers for its throughput.
func createContainer(t *testing.T, h *Handler, id string, version int, headers map[string]string) (rid string) {
	t.Helper()
	body := fmt.Sprintf(`{"id":"%s","partitionKey":{"paths":["/pk"],"kind":"Hash","version":%d}}`, id, version)
	return call(t, h, "POST", "/dbs/d/colls", body, headers, 201).json(t)["_rid"].(string)
}

func manual(ru int) map[string]string {
	return map[string]string{"x-ms-offer-throughput": strconv.Itoa(ru)}
}

func autoscale(ru int) map[string]string {
	return map[string]string{"x-ms-cosmos-offer-autopilot-settings": fmt.Sprintf(`{"maxThroughput":%d}`, ru)}
}

func TestRangesShape(t *testing.T) {
	h := newContainer(t)
	coll := call(t, h, "GET", "/dbs/d/colls/c", "", nil, 200).json(t)
	a := call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", nil, 200)
	got := a.json(t)
	if got["_count"] != 1.0 || got["_rid"] != coll["_rid"] || a.header.Get("x-ms-item-count") != "1" {
		t.Errorf("count %v, rid %v, x-ms-item-count %q", got["_count"], got["_rid"], a.header.Get("x-ms-item-count"))
	}
	r := got["PartitionKeyRanges"].([]any)[0].(map[string]any)
	rid, _ := r["_rid"].(string)
	if len(rid) != 24 || !strings.HasPrefix(rid, coll["_rid"].(string)[:10]) {
		t.Errorf("the range's rid is %q, the container's %v", rid, coll["_rid"])
	}
	want := map[string]any{
		"id": "0", "minInclusive": "", "maxExclusive": "FF", "ridPrefix": 0.0, "throughputFraction": 1.0,
		"status": "online", "parents": []any{}, "ownedArchivalPKRangeIds": []any{},
		"_rid": rid, "_self": coll["_self"].(string) + "pkranges/" + rid + "/",
		"_etag": a.header.Get("etag"), "_ts": coll["_ts"], "lsn": 1.0, "vectorClockVersion": 0.0,
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("the range is\n%v, want\n%v", r, want)
	}
}

// TestRangesLoop reads the ranges as most SDKs do: as a change feed, until 304.
func TestRangesLoop(t *testing.T) {
	h := newContainer(t)
	headers := map[string]string{"A-IM": "Incremental Feed", "x-ms-max-item-count": "-1"}
	first := call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", headers, 200)
	etag := first.header.Get("etag")
	if etag == "" {
		t.Fatal("no etag")
	}
	headers["If-None-Match"] = etag
	for range 2 {
		a := call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", headers, 304)
		if len(a.body) > 0 || a.header.Get("etag") != etag {
			t.Errorf("304 with %d bytes and the etag %q, want none and %q", len(a.body), a.header.Get("etag"), etag)
		}
	}
	// Writes do not change it; a new container of the same name does.
	call(t, h, "POST", "/dbs/d/colls/c/docs", `{"id":"i","pk":"p"}`, pk("p"), 201)
	call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", headers, 304)
	call(t, h, "DELETE", "/dbs/d/colls/c", "", nil, 204)
	call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", headers, 404).failureText(t, 404, 1003)
	call(t, h, "POST", "/dbs/d/colls", containerBody, nil, 201)
	call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", headers, 200)
	for _, stale := range []string{`"x"`, "*", "garbage", `"`, "\xff"} {
		headers["If-None-Match"] = stale
		call(t, h, "GET", "/dbs/d/colls/c/pkranges", "", headers, 200)
	}
}

// The boundaries are those that the SDKs' own suites expect.
func TestRangeBoundaries(t *testing.T) {
	h := newContainer(t)
	for i, c := range []struct {
		version int
		offer   map[string]string
		cuts    []string
	}{
		{1, nil, nil},
		{2, nil, nil},
		{2, manual(400), nil},
		{2, manual(10_000), nil},
		{2, autoscale(10_000), nil},
		{2, manual(11_000), []string{"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
		{2, autoscale(20_000), []string{"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
		{2, manual(21_000), []string{"0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE", "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD"}},
		{1, manual(11_000), []string{"05C1DFFFFFFFFC"}},
		{1, manual(21_000), []string{"05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA"}},
		{1, autoscale(40_000), []string{"05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA"}},
		{1, manual(25_100), []string{"05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"}},
	} {
		id := fmt.Sprintf("r%d", i)
		rid := createContainer(t, h, id, c.version, c.offer)
		feed := decode[rangeFeed](t, call(t, h, "GET", "/dbs/d/colls/"+id+"/pkranges", "", nil, 200))
		if len(feed.Ranges) != len(c.cuts)+1 || feed.Count != len(feed.Ranges) || feed.Rid != rid {
			t.Errorf("version %d, %v: %d ranges (_count %d, _rid %s), want %d", c.version, c.offer, len(feed.Ranges), feed.Count, feed.Rid, len(c.cuts)+1)
			continue
		}
		bounds := append(append([]string{""}, c.cuts...), "FF")
		rids := map[string]bool{}
		for i, r := range feed.Ranges {
			if r.ID != strconv.Itoa(i) || r.MinInclusive != bounds[i] || r.MaxExclusive != bounds[i+1] {
				t.Errorf("version %d, %v: range %d is %s from %q to %q, want %q to %q", c.version, c.offer, i, r.ID, r.MinInclusive, r.MaxExclusive, bounds[i], bounds[i+1])
			}
			if r.ThroughputFraction != 1/float64(len(feed.Ranges)) || r.Status != "online" || rids[r.Rid] {
				t.Errorf("version %d, %v: range %d is %+v", c.version, c.offer, i, r)
			}
			rids[r.Rid] = true
		}
	}
}

// TestRangesServe: a container of four partitions names the range of each item, and lists
// the same items by range as all together.
func TestRangesServe(t *testing.T) {
	h := newContainer(t)
	rid := createContainer(t, h, "four", 2, manual(21_000))
	owner := map[string]string{}
	for i := range 40 {
		key := fmt.Sprintf("p%d", i)
		a := call(t, h, "POST", "/dbs/d/colls/four/docs", fmt.Sprintf(`{"id":"i","pk":"%s"}`, key), pk(key), 201)
		owner[key] = a.header.Get("x-ms-documentdb-partitionkeyrangeid")
		if token := a.header.Get("x-ms-session-token"); !strings.HasPrefix(token, owner[key]+":-1#") {
			t.Errorf("range %s with the session token %q", owner[key], token)
		}
	}
	listed := 0
	for i := range 4 {
		id := strconv.Itoa(i)
		for _, text := range []string{id, rid + "," + id} {
			a := call(t, h, "GET", "/dbs/d/colls/four/docs", "", map[string]string{"x-ms-documentdb-partitionkeyrangeid": text}, 200)
			items := a.json(t)["Documents"].([]any)
			if len(items) == 0 {
				t.Errorf("range %s is empty", text)
			}
			for _, item := range items {
				if key := item.(map[string]any)["pk"].(string); owner[key] != id {
					t.Errorf("range %s lists %s, which is in %s", text, key, owner[key])
				}
			}
			listed += len(items)
		}
	}
	if listed != 2*40 {
		t.Errorf("the ranges list %d items, want all 40 twice", listed)
	}
	for _, gone := range []string{"4", "-1", "x", "0,0", "AAAA,0", rid + ",4", rid + ",", strings.Repeat("9", 400)} {
		call(t, h, "GET", "/dbs/d/colls/four/docs", "", map[string]string{"x-ms-documentdb-partitionkeyrangeid": gone}, 410).
			failureText(t, 410, 1002)
	}
}

func TestRangesOfNothing(t *testing.T) {
	h := newContainer(t)
	for _, path := range []string{"/dbs/nosuch/colls/c/pkranges", "/dbs/d/colls/nosuch/pkranges"} {
		call(t, h, http.MethodGet, path, "", nil, 404).failureText(t, 404, 1003)
	}
}
