// SPDX-License-Identifier: MIT

package tikvkv_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/engine/tikv/tikvkv"
	"github.com/mayflydb/mayfly/engine/tikv/tikvtest"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func mustOpen(t testing.TB, url string) *tikvkv.DB {
	t.Helper()
	db, err := tikvkv.Open(t.Context(), tikvkv.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return mustOpen(t, tikvtest.New(t)) })
}

func TestHandles(t *testing.T) {
	kvtest.RunShared(t, func(t *testing.T) func() kv.DB {
		url := tikvtest.New(t)
		return func() kv.DB { return mustOpen(t, url) }
	})
}

// A commit has happened, and the answer that says so is lost. The client repeats the message.
// Unistore refuses that, since it keeps nothing of the fence, which was locked and not written.
// The commit must not be reported as one that did not happen: it would be executed again.
func TestLostAnswerOfACommit(t *testing.T) {
	db := mustOpen(t, tikvtest.New(t))
	defer db.Close()
	var b kv.Batch
	b.Set([]byte("fence"), []byte("1"))
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	db.LoseOneAnswer()
	b.Reset()
	b.Require([]byte("fence"), []byte("1"))
	b.RequireAbsent([]byte("row"))
	b.Set([]byte("row"), []byte("new"))
	if err := db.Commit(t.Context(), &b); err != nil && !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("a commit that happened is reported as %v", err)
	}
	if value, _, err := kv.Get(db, []byte("row")); err != nil || string(value) != "new" {
		t.Errorf("the row is %q, %v", value, err)
	}
}

// A long range is destroyed by the servers of the cluster, after the safe point has passed, and
// its neighbours are not. The time moves in the steps that PD has.
func TestLongRangesAreDestroyed(t *testing.T) {
	url := tikvtest.New(t)
	restore, piece := tikvkv.OpenCollecting(200*time.Millisecond, time.Second, 400*time.Millisecond)
	defer restore()
	db := mustOpen(t, url)
	defer db.Close()
	if step := db.Step(); step != 50*time.Millisecond {
		t.Errorf("PD's time moves in steps of %v", step)
	}
	var b kv.Batch
	b.Set([]byte("j"), nil)
	b.Set([]byte("l"), nil)
	for i := range 3*piece + 1 {
		b.Set(fmt.Appendf(nil, "k%07d", i), []byte("x"))
	}
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := db.Sweep(t.Context(), []byte("k"), []byte("l")); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("the range was swept after %v, before the safe point can have passed", took)
	}
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var left []string
	for e, err := range s.Scan(nil, nil, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, string(e.Key))
	}
	if got := strings.Join(left, " "); got != "j l" {
		t.Errorf("%.60s is left", got)
	}
}
