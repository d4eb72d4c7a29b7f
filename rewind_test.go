// SPDX-License-Identifier: MIT

package mayfly

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// The machine and the server were started with a clock that is most of a day ahead. After
// the clock is corrected, a rewind brings back the items that were hidden, and keeps those
// that were written meanwhile.
func TestRewindClock(t *testing.T) {
	const ahead = 20 * time.Hour
	right := Options{Dir: t.TempDir()}
	wrong := Options{Dir: right.Dir, clockSource: func() clock.Reading {
		return clock.Reading{WallMs: time.Now().Add(ahead).UnixMilli()}
	}}
	key := map[string]string{"x-ms-documentdb-partitionkey": `["k"]`}
	s := serveTest(t, right)
	s.must(t, 201, "POST", "/dbs", `{"id":"d"}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":3600}`, nil)
	s.must(t, 201, "POST", "/dbs/d/colls/c/docs", `{"id":"before","pk":"k"}`, key)
	s.stop(t)
	if _, err := RewindClock(context.Background(), RewindOptions{Dir: right.Dir}); !errors.Is(err, clock.ErrNotAhead) {
		t.Fatalf("a clock that is right: %v", err)
	}

	s = serveTest(t, wrong)
	s.must(t, 404, "GET", "/dbs/d/colls/c/docs/before", "", key)
	s.must(t, 201, "POST", "/dbs/d/colls/c/docs", `{"id":"meanwhile","pk":"k"}`, key)
	s.stop(t)

	s = serveTest(t, right) // its time stays ahead
	s.must(t, 404, "GET", "/dbs/d/colls/c/docs/before", "", key)
	s.must(t, 200, "GET", "/dbs/d/colls/c/docs/meanwhile", "", key)
	s.stop(t)

	var told bytes.Buffer
	done, err := RewindClock(context.Background(), RewindOptions{Dir: right.Dir, Progress: &told})
	if err != nil || done.Items != 1 || done.From.Sub(done.To) < ahead-time.Hour || time.Since(done.To) > time.Hour {
		t.Fatalf("rewind: %+v, %v", done, err)
	}
	checkClean(t, right.Dir)
	s = serveTest(t, right)
	s.must(t, 200, "GET", "/dbs/d/colls/c/docs/before", "", key)
	s.must(t, 200, "GET", "/dbs/d/colls/c/docs/meanwhile", "", key)
	s.stop(t)
}
