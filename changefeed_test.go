// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A copy of the data is written to, and a reader of the original's change feed continues
// in the copy. It gets every write to the copy, although its position is far beyond the
// point at which the copy was made.
func TestFeedGoesOnInACopy(t *testing.T) {
	original := Options{Dir: t.TempDir()}
	s := serveTest(t, original)
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"changeFeedPolicy":{"retentionDuration":60}}`, nil)
	s.createItems(t, "common", 3)
	s.stop(t)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "db"), os.DirFS(filepath.Join(original.Dir, "db"))); err != nil {
		t.Fatal(err)
	}

	s = serveTest(t, original)
	s.createItems(t, "original", 5)
	at := map[string]string{}
	for _, mode := range feedModes {
		_, at[mode] = s.changes(t, mode, "")
	}
	s.stop(t)
	s = serveTest(t, original)
	s.createItems(t, "restarted", 1)
	for _, mode := range feedModes {
		if got, _ := s.changes(t, mode, at[mode]); !slices.Equal(got, []string{"restarted0"}) {
			t.Errorf("%s: after a restart, a position has %q after it", mode, got)
		}
	}
	s.stop(t)

	want := []string{"copy0", "copy1", "copy2", "copy3", "copy4", "copy5", "copy6"}
	for told := false; !told; { // one copy in 63 cannot be told from the original
		copied := Options{Dir: t.TempDir()}
		if err := os.CopyFS(filepath.Join(copied.Dir, "db"), os.DirFS(filepath.Join(dir, "db"))); err != nil {
			t.Fatal(err)
		}
		s = serveTest(t, copied)
		_, now := s.changes(t, feedModes[0], "*")
		told = len(now) != len(at[feedModes[0]]) // by its zeros
		s.createItems(t, "copy", len(want))
		for _, mode := range feedModes {
			got, next := s.changes(t, mode, at[mode])
			if told && !slices.Equal(got, want) {
				t.Errorf("%s: after a restore, position %s has %q after it, want %q", mode, at[mode], got, want)
			}
			if got, _ := s.changes(t, mode, next); len(got) > 0 {
				t.Errorf("%s: %q is in the feed again", mode, got)
			}
		}
		s.stop(t)
	}
}

var feedModes = []string{"Incremental Feed", "Full-Fidelity Feed"}

func (s *testServer) createItems(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		s.must(t, 201, "POST", "/dbs/d/colls/c/docs", fmt.Sprintf(`{"id":"%s%d","pk":"p"}`, name, i), map[string]string{keyHeader: `["p"]`})
	}
}

// changes returns the ids of the items that have changed after a position, and the
// position after them. An empty position is the start of the mode's feed.
func (s *testServer) changes(t *testing.T, mode, position string) (ids []string, next string) {
	t.Helper()
	headers := map[string]string{"A-IM": mode, "x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}
	switch {
	case position != "":
		headers["If-None-Match"] = position
	case mode != feedModes[0]:
		headers["If-None-Match"] = "*"
	}
	a := s.send(t, "GET", "/dbs/d/colls/c/docs", "", headers)
	if a.status == 304 {
		return nil, a.header.Get("Etag")
	}
	var page struct {
		Documents []struct{ Current struct{ ID string } }
	}
	if err := json.Unmarshal(a.body, &page); err != nil || a.status != 200 {
		t.Fatalf("%s after %q: status %d: %s", mode, position, a.status, a.body)
	}
	for _, d := range page.Documents {
		ids = append(ids, d.Current.ID)
	}
	return ids, a.header.Get("Etag")
}

// A server that is started without a retention serves no versions from before, and Check
// does not report the versions that an earlier run left.
func TestRetentionOfTheAccount(t *testing.T) {
	o := Options{Dir: t.TempDir(), ChangeFeedRetention: time.Hour}
	s := serveTest(t, o)
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`, nil)
	_, at := s.changes(t, feedModes[1], "")
	s.createItems(t, "kept", 2)
	if got, _ := s.changes(t, feedModes[1], at); !slices.Equal(got, []string{"kept0", "kept1"}) {
		t.Errorf("got %q", got)
	}
	if account := s.must(t, 200, "GET", "/", "", nil).body; !bytes.Contains(account, []byte(`"continuousBackupEnabled":true`)) {
		t.Errorf("the account is %s", account)
	}
	s.stop(t)
	checkClean(t, o.Dir)
	o.ChangeFeedRetention = 0
	for range 2 {
		s = serveTest(t, o)
		s.must(t, 400, "GET", "/dbs/d/colls/c/docs", "", map[string]string{"A-IM": feedModes[1], "If-None-Match": at, "x-ms-documentdb-partitionkeyrangeid": "0"})
		s.must(t, 200, "POST", "/dbs/d/colls/c/docs", `{"id":"kept0","pk":"p"}`, map[string]string{keyHeader: `["p"]`, "x-ms-documentdb-is-upsert": "true"})
		s.stop(t)
		checkClean(t, o.Dir)
	}
	o.ChangeFeedRetention = time.Hour
	s = serveTest(t, o)
	_, err := Open(Options{Memory: true, ChangeFeedRetention: 721 * time.Hour})
	if s.must(t, 400, "GET", "/dbs/d/colls/c/docs", "", map[string]string{"A-IM": feedModes[1], "If-None-Match": at, "x-ms-documentdb-partitionkeyrangeid": "0"}); err == nil {
		t.Error("a retention of 721 hours is taken")
	}
}
