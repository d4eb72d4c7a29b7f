// SPDX-License-Identifier: MIT

package mayfly

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv/rawtest"
)

// secret is in the ids, partition keys, properties and unique keys of items that end.
const secret = "s3cr3t"

// writeSecrets writes items of which the secret ones expire, are deleted or are overwritten.
func writeSecrets(t *testing.T, s *testServer) {
	t.Helper()
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1,
		"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]},
		"indexingPolicy":{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/name"},{"path":"/mail"}]]}}`, nil)
	for i := range 60 {
		var pkv, id, ttl, mark string
		switch i % 4 {
		case 0: // expires
			pkv, id, ttl, mark = fmt.Sprint(secret, "-pk-", i), fmt.Sprint(secret, "-id-", i), `"ttl":60,`, secret
		case 1: // is deleted
			pkv, id, mark = fmt.Sprint(secret, "-pk-", i), fmt.Sprint(secret, "-id-", i), secret
		case 2: // is overwritten
			pkv, id, mark = fmt.Sprint("pk-", i), fmt.Sprint("id-", i), secret
		default:
			pkv, id, mark = fmt.Sprint("pk-", i), fmt.Sprint("id-", i), "plain"
		}
		body := fmt.Sprintf(`{"id":%q,"pk":%q,%s"name":"%s name %d","mail":"%s@%d","text":%q}`, id, pkv, ttl, mark, i, mark, i, strings.Repeat(mark+" ", 50))
		s.must(t, 201, "POST", "/dbs/d/colls/c/docs", body, pk(pkv))
		switch i % 4 {
		case 1:
			s.must(t, 204, "DELETE", "/dbs/d/colls/c/docs/"+id, "", pk(pkv))
		case 2:
			s.must(t, 200, "PUT", "/dbs/d/colls/c/docs/"+id, fmt.Sprintf(`{"id":%q,"pk":%q,"name":"plain","mail":"plain@%d"}`, id, pkv, i), pk(pkv))
		}
	}
}

func secretFiles(t *testing.T, dir string) []string {
	t.Helper()
	found, err := rawtest.Find(dir, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkPlain checks that the items that did not end are all there.
func checkPlain(t *testing.T, s *testServer) {
	t.Helper()
	for i := range 60 {
		if i%4 >= 2 {
			s.must(t, 200, "GET", fmt.Sprintf("/dbs/d/colls/c/docs/id-%d", i), "", pk(fmt.Sprint("pk-", i)))
		}
	}
}

func (s *testServer) erasure(t *testing.T) engine.ErasureStatus {
	t.Helper()
	a := s.admin(t, "GET", "ttl/status", "", "Bearer "+s.Key())
	var r engine.TTLReport
	if err := json.Unmarshal(a.body, &r); err != nil || a.status != 200 {
		t.Fatalf("status %d: %s, %v", a.status, a.body, err)
	}
	return r.Erasure
}

func TestEraseNow(t *testing.T) {
	o := Options{Dir: t.TempDir(), TestClock: true}
	s := serveTest(t, o)
	s.move(t, `{"freeze":true}`)
	writeSecrets(t, s)
	s.move(t, `{"advance":"61s"}`)
	if len(secretFiles(t, o.Dir)) == 0 {
		t.Fatal("no file holds a secret before: the test tests nothing")
	}
	a := s.admin(t, "POST", "ttl/erase", "", "Bearer "+s.Key())
	var r engine.ErasureResult
	if err := json.Unmarshal(a.body, &r); err != nil || a.status != 200 || len(r.Paused) > 0 {
		t.Fatalf("erase: status %d: %s, %v", a.status, a.body, err)
	}
	if found := secretFiles(t, o.Dir); len(found) > 0 {
		t.Errorf("after an erasure, secrets are in %v", found)
	}
	if left := s.erasure(t); left.LagSeconds != 0 || left.LeftTables != 0 || *left.WithinSeconds != DefaultEraseWithin.Seconds() {
		t.Errorf("after an erasure, the status says %+v", left)
	}
	checkPlain(t, s)
	// The events of the expired items keep their times.
	a = s.admin(t, "GET", "ttl/events?database=d&container=c", "", "Bearer "+s.Key())
	if n := strings.Count(string(a.body), `"goneAt"`); n != 15 || strings.Contains(string(a.body), secret) || strings.Contains(string(a.body), `"id"`) {
		t.Errorf("events after an erasure: %d in %s", n, a.body)
	}
	s.stop(t)
	if found := secretFiles(t, o.Dir); len(found) > 0 {
		t.Errorf("after a stop, secrets are in %v", found)
	}
	checkClean(t, o.Dir)
	s = serveTest(t, o)
	checkPlain(t, s)
}

// Secrets that are in compressed tables, and in their indexes, when they expire.
func TestEraseCompressedTables(t *testing.T) {
	o := Options{Dir: t.TempDir(), TestClock: true}
	s := serveTest(t, o)
	s.move(t, `{"freeze":true}`)
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}`, nil)
	const items = 600
	for i := range items {
		mark, ttl := secret, `,"ttl":60`
		if i%3 == 2 {
			mark, ttl = "plain", ""
		}
		body := fmt.Sprintf(`{"id":"%s-%d","pk":"%s","name":"%s %d","text":%q%s}`, mark, i, mark, mark, i, strings.Repeat(fmt.Sprint(mark, i, " "), 40), ttl)
		s.must(t, 201, "POST", "/dbs/d/colls/c/docs", body, pk(mark))
	}
	eraseNow := func() {
		t.Helper()
		if a := s.admin(t, "POST", "ttl/erase", "", "Bearer "+s.Key()); a.status != 200 {
			t.Fatalf("erase: status %d: %s", a.status, a.body)
		}
	}
	eraseNow() // which writes all to tables
	places := strings.Join(secretFiles(t, o.Dir), "\n")
	for _, want := range []string{".sst: row ", ".sst: block of the index"} {
		if !strings.Contains(places, want) {
			t.Fatalf("no secret is in %q, only in %s: the test tests nothing", want, places)
		}
	}
	s.move(t, `{"advance":"61s"}`)
	eraseNow()
	if found := secretFiles(t, o.Dir); len(found) > 0 {
		t.Errorf("after an erasure, secrets are in %v", found)
	}
	for i := 2; i < items; i += 3 {
		s.must(t, 200, "GET", fmt.Sprintf("/dbs/d/colls/c/docs/plain-%d", i), "", pk("plain"))
	}
	s.stop(t)
	if found := secretFiles(t, o.Dir); len(found) > 0 {
		t.Errorf("after a stop, secrets are in %v", found)
	}
	checkClean(t, o.Dir)
}

// Nobody asks for the erasure here: it happens in time, by the database's time, also if the
// time passes while the server is stopped.
func TestEraseWithin(t *testing.T) {
	for _, restart := range []bool{false, true} {
		o := Options{Dir: t.TempDir(), TestClock: true, EraseWithin: time.Minute}
		s := serveTest(t, o)
		s.move(t, `{"freeze":true}`)
		writeSecrets(t, s)
		s.move(t, `{"advance":"60s"}`)
		if restart {
			s.stop(t)
			s = serveTest(t, o)
		}
		s.move(t, `{"advance":"60s"}`)
		until := time.Now().Add(20 * time.Second)
		for {
			found := secretFiles(t, o.Dir)
			if len(found) == 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("restart %v: secrets are in %v: %+v", restart, found, s.erasure(t))
			}
			time.Sleep(50 * time.Millisecond)
		}
		checkPlain(t, s)
		s.stop(t)
		checkClean(t, o.Dir)
	}
}

// A pause of purge keeps expired items, and so their bytes.
func TestEraseRespectsPause(t *testing.T) {
	o := Options{Dir: t.TempDir(), TestClock: true}
	s := serveTest(t, o)
	s.move(t, `{"freeze":true}`)
	s.admin(t, "POST", "ttl/pause", "", "Bearer "+s.Key())
	writeSecrets(t, s)
	s.move(t, `{"advance":"61s"}`)
	a := s.admin(t, "POST", "ttl/erase", "", "Bearer "+s.Key())
	if a.status != 200 || !strings.Contains(string(a.body), `"paused":["d/c"]`) {
		t.Fatalf("erase: status %d: %s", a.status, a.body)
	}
	found, err := rawtest.Find(o.Dir, []byte(secret+"-id-8"))
	if err != nil || len(found) == 0 {
		t.Errorf("an expired item was erased although purge is paused: %v", err)
	}
	found, err = rawtest.Find(o.Dir, []byte(secret+"-id-9"))
	if err != nil || len(found) > 0 {
		t.Errorf("a deleted item is in %v, %v", found, err)
	}
}

// In real time, beside requests that go on: a minute after the last secret may be purged, no
// file holds one.
func TestEraseWithinAMinute(t *testing.T) {
	if os.Getenv("MAYFLY_LONG") == "" {
		t.Skip("takes 90 s; set MAYFLY_LONG")
	}
	o := Options{Dir: t.TempDir(), EraseWithin: time.Minute}
	s := serveTest(t, o)
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}`, nil)
	began := time.Now()
	const lastSecret, ttl = 20 * time.Second, 5 * time.Second
	for i := 0; time.Since(began) < lastSecret+ttl+time.Minute; i++ {
		mark, life := "plain", ""
		if time.Since(began) < lastSecret && i%2 == 0 {
			mark, life = secret, `,"ttl":5`
		}
		s.must(t, 201, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"%s-%d","pk":"%s-%d","name":"%s %d"%s}`, mark, i, mark, i%100, mark, i, life), pk(fmt.Sprintf("%s-%d", mark, i%100)))
		if i == 100 && len(secretFiles(t, o.Dir)) == 0 {
			t.Fatal("no file holds a secret: the test tests nothing")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if found := secretFiles(t, o.Dir); len(found) > 0 {
		t.Errorf("secrets are in %v: %+v", found, s.erasure(t))
	}
}
