// SPDX-License-Identifier: MIT

// Data of every format that this version must read. testdata/formats has data of each
// format, with requests and the answers of the version that wrote it.

package mayfly

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
)

var recordFormat = flag.String("record-format", "", "write a store of today's format and its answers to testdata/formats under this name")

const formatsDir = "testdata/formats"

// formatDialogue has the answers that a fixture must give.
type formatDialogue struct {
	// AtMs is a time after the last write at which the same items are expired as when the
	// answers were recorded.
	AtMs      int64
	Exchanges []formatExchange
}

// formatExchange is a request and its answer, to the byte.
type formatExchange struct {
	Method, Path string
	Headers      map[string]string `json:",omitempty"`
	Body         string            `json:",omitempty"`
	// Passing says that time changes the answer.
	Passing bool   `json:",omitempty"`
	Status  int    `json:",omitempty"`
	Answer  string `json:",omitempty"`
}

// Every fixture opens at its own time, when all answers must be as recorded, and at the
// present time, when the answers that do not depend on time must be. Then the data can be
// written, expired items can be purged, and the check finds no problem.
func TestFormats(t *testing.T) {
	if *recordFormat != "" {
		recordFixture(t, *recordFormat)
	}
	dirs, err := os.ReadDir(formatsDir)
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d fixtures in %s: %v", len(dirs), formatsDir, err)
	}
	for _, d := range dirs {
		t.Run(d.Name(), func(t *testing.T) {
			dialogue := readDialogue(t, filepath.Join(formatsDir, d.Name(), "answers.json"))
			var passed atomic.Int64 // milliseconds since the fixture's time
			then := Options{clockSource: func() clock.Reading {
				return clock.Reading{WallMs: dialogue.AtMs + passed.Load(), MonoMs: passed.Load()}
			}}
			for _, o := range []Options{then, {}} {
				o.Dir = t.TempDir()
				unpack(t, filepath.Join(formatsDir, d.Name(), "db.tar.gz"), o.Dir)
				s := serveTest(t, o)
				for _, x := range dialogue.Exchanges {
					if !x.Passing || o.clockSource != nil {
						s.compare(t, x)
					}
				}
				s.stop(t)
				checkClean(t, o.Dir)
				s = serveTest(t, o)
				s.writeEverywhere(t)
				if o.clockSource != nil {
					for range 5 { // until the clock is trusted
						passed.Add(time.Minute.Milliseconds())
						s.must(t, 200, "GET", "/dbs/shop/colls/sessions/docs", "", nil)
					}
					s.postPurge(t, "resume")
					s.postPurge(t, "purge")
				}
				s.stop(t)
				checkClean(t, o.Dir)
			}
		})
	}
}

// New data has a format of which there is a fixture: a change of the format needs a new
// fixture before it is released.
func TestFormatHasFixture(t *testing.T) {
	versions := func(dir string) string {
		return fmt.Sprintf("data %d, clock %d", rowOf(t, dir, catalog.FormatKey)[0], rowOf(t, dir, catalog.ClockKey)[0])
	}
	dir := t.TempDir()
	serveTest(t, Options{Dir: dir}).stop(t)
	ours := versions(dir)
	dirs, err := os.ReadDir(formatsDir)
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, d := range dirs {
		dir := t.TempDir()
		unpack(t, filepath.Join(formatsDir, d.Name(), "db.tar.gz"), dir)
		known = append(known, versions(dir))
	}
	if !slices.Contains(known, ours) {
		t.Errorf("new data has the versions %s, and there are fixtures only of %q: internal/engine/DESIGN.md says how to make one", ours, known)
	}
}

// compare sends a request and compares the answer with the recorded one.
func (s *testServer) compare(t *testing.T, x formatExchange) {
	t.Helper()
	got := s.ask(t, x)
	if got.Status != x.Status || got.Answer != x.Answer {
		t.Errorf("%s %s %v %s\nis  %d %s\nwas %d %s", x.Method, x.Path, x.Headers, x.Body, got.Status, got.Answer, x.Status, x.Answer)
	}
}

// ask sends a request and fills in its answer, without resource tokens, which differ in
// every answer.
func (s *testServer) ask(t *testing.T, x formatExchange) formatExchange {
	t.Helper()
	a := s.send(t, x.Method, x.Path, x.Body, x.Headers)
	x.Status, x.Answer = a.status, tokens.ReplaceAllString(string(a.body), `"_token":""`)
	if a.status == 404 {
		x.Answer = "" // it names the request
	}
	return x
}

var tokens = regexp.MustCompile(`"_token":"[^"]*"`)

// writeEverywhere creates and replaces an item in every container.
func (s *testServer) writeEverywhere(t *testing.T) {
	t.Helper()
	for _, path := range s.containers(t) {
		var definition struct {
			PartitionKey struct{ Paths []string }
		}
		if err := json.Unmarshal(s.must(t, 200, "GET", path, "", nil).body, &definition); err != nil {
			t.Fatal(err)
		}
		item, key := map[string]string{"id": "written later"}, []string{}
		for _, p := range definition.PartitionKey.Paths {
			item[strings.TrimPrefix(p, "/")] = "written later"
			key = append(key, "written later")
		}
		headers := map[string]string{"x-ms-documentdb-partitionkey": marshal(t, key), "x-ms-documentdb-is-upsert": "true"}
		for _, want := range []int{201, 200} {
			s.must(t, want, "POST", path+"/docs", marshal(t, item), headers)
		}
	}
}

// containers returns the paths of all containers.
func (s *testServer) containers(t *testing.T) []string {
	t.Helper()
	var paths []string
	var dbs struct{ Databases []struct{ ID string } }
	if err := json.Unmarshal(s.must(t, 200, "GET", "/dbs", "", nil).body, &dbs); err != nil {
		t.Fatal(err)
	}
	for _, db := range dbs.Databases {
		var list struct{ DocumentCollections []struct{ ID string } }
		if err := json.Unmarshal(s.must(t, 200, "GET", "/dbs/"+db.ID+"/colls", "", nil).body, &list); err != nil {
			t.Fatal(err)
		}
		for _, c := range list.DocumentCollections {
			paths = append(paths, "/dbs/"+db.ID+"/colls/"+c.ID)
		}
	}
	return paths
}

// postPurge posts to a page of purge, with the key as bearer token.
func (s *testServer) postPurge(t *testing.T, order string) {
	t.Helper()
	if a := s.admin(t, "POST", "ttl/"+order, "", "Bearer "+s.Key()); a.status != 200 {
		t.Fatalf("%s: status %d: %s", order, a.status, a.body)
	}
}

func readDialogue(t *testing.T, name string) formatDialogue {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var d formatDialogue
	if err := json.Unmarshal(raw, &d); err != nil || len(d.Exchanges) == 0 || d.AtMs == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// unpack extracts an archive into dir/db.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		content, err2 := io.ReadAll(r)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "db", filepath.Base(h.Name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
