// SPDX-License-Identifier: MIT

// Package kvtest is the conformance suite of package kv: one subtest for each promise, a
// random history that is compared with a simple Model, and that Model itself, which serves
// as an engine where speed does not matter. It imports no engine, and it does not test
// durability: a durable engine tests that itself, with the faults of its own medium.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Run checks that the engine behind open keeps the promises of package kv. Each
// call of open returns a new, empty store; Run closes it.
func Run(t *testing.T, open func(t *testing.T) kv.DB) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open func(t *testing.T) kv.DB)
	}{
		{"get", with(testGet)},
		{"empty batch", with(testEmptyBatch)},
		{"failed require writes nothing", with(testFailedRequire)},
		{"require refers to the store before the batch", with(testRequireBefore)},
		{"order within a batch", testBatchOrder},
		{"key order", with(testKeyOrder)},
		{"snapshot isolation", with(testSnapshotIsolation)},
		{"scan bounds", with(testScanBounds)},
		{"scan breaks and restarts", with(testScanBreak)},
		{"scans nest", with(testScanNested)},
		{"slices passed in", with(testSlicesIn)},
		{"slices handed out", with(testSlicesOut)},
		{"limits", with(testLimits)},
		{"ended context", with(testContext)},
		{"erasure changes nothing that is there", with(testErase)},
		{"look", with(testLook)},
		{"look sees every commit that returned", with(testLookFollows)},
		{"warm changes no answer", with(testWarm)},
		{"sweep", with(testSweep)},
		{"closed snapshot", with(testClosedSnapshot)},
		{"closed store", testClosedStore},
		{"counter loses nothing", with(testCounter)},
		{"one creator wins", with(testOneCreator)},
		{"nothing slips past a fence", with(testFence)},
		{"commits are seen whole and in order", with(testSeenWhole)},
		{"history", testHistory},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// with opens a store for test and closes it afterwards.
func with(test func(t *testing.T, db kv.DB)) func(*testing.T, func(*testing.T) kv.DB) {
	return func(t *testing.T, open func(*testing.T) kv.DB) {
		db := open(t)
		defer func() {
			if err := db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		test(t, db)
	}
}

// commit commits a batch that must succeed.
func commit(t testing.TB, db kv.DB, fill func(b *kv.Batch)) {
	t.Helper()
	if err := tryCommit(db, fill); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func tryCommit(db kv.DB, fill func(b *kv.Batch)) error {
	var b kv.Batch
	fill(&b)
	return db.Commit(context.Background(), &b)
}

// put commits keys and values in turn: "k1", "v1", "k2", "v2".
func put(t testing.TB, db kv.DB, pairs ...string) {
	t.Helper()
	commit(t, db, func(b *kv.Batch) {
		for i := 0; i < len(pairs); i += 2 {
			b.Set([]byte(pairs[i]), []byte(pairs[i+1]))
		}
	})
}

func snapshot(t testing.TB, db kv.DB) kv.Snapshot {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return s
}

// contents returns the whole store as "k=v k=v".
func contents(t testing.TB, db kv.DB) string {
	t.Helper()
	s := snapshot(t, db)
	defer s.Close()
	return scan(t, s, nil, nil, kv.Forward)
}

// scan returns the entries of a scan that must not fail, as "k=v k=v".
func scan(t testing.TB, s kv.Snapshot, lower, upper []byte, order kv.Order) string {
	t.Helper()
	var rows []string
	for e, err := range s.Scan(lower, upper, order) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		rows = append(rows, fmt.Sprintf("%s=%s", e.Key, e.Value))
	}
	return strings.Join(rows, " ")
}

func wantContents(t testing.TB, db kv.DB, want string) {
	t.Helper()
	if got := contents(t, db); got != want {
		t.Errorf("the store holds %q, want %q", got, want)
	}
}

func wantError(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantGet checks one key of s; a nil want means that the key must not exist.
func wantGet(t testing.TB, s kv.Snapshot, key string, want []byte) {
	t.Helper()
	got, found, err := s.Get([]byte(key))
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	if found != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("get %q: got %.40q, %v, want %.40q", key, got, found, want)
	}
}
