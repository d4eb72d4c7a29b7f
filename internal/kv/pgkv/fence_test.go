// SPDX-License-Identifier: MIT

package pgkv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
)

// A commit has checked its fence and is held up in the server. Then another moves the fence.
// Whoever sees the new fence must see all that was ever committed under the old one.
func TestSlowCommitStaysBeforeTheNextFence(t *testing.T) {
	ctx, url := t.Context(), pgtest.New(t)
	db := mustOpen(t, url)
	defer db.Close()
	put := func(ops ...string) *kv.Batch {
		var b kv.Batch
		for i := 0; i < len(ops); i += 2 {
			b.Set([]byte(ops[i]), []byte(ops[i+1]))
		}
		return &b
	}
	if err := db.Commit(ctx, put("fence", "1", "row", "old")); err != nil {
		t.Fatal(err)
	}
	holder, err := pgconn.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	hold := func(text string) {
		t.Helper()
		if err := holder.Exec(ctx, text).Close(); err != nil {
			t.Fatal(err)
		}
	}
	hold(`BEGIN;SELECT FROM kv WHERE k='row' FOR UPDATE`)

	slow, moved := make(chan error, 1), make(chan error, 1)
	go func() {
		b := put("row", "new")
		b.Require([]byte("fence"), []byte("1"))
		slow <- db.Commit(ctx, b)
	}()
	waiters(t, url, 1)
	go func() {
		b := put("fence", "2")
		b.Require([]byte("fence"), []byte("1"))
		moved <- db.Commit(ctx, b)
	}()
	var after string
	select {
	case err := <-moved: // the fence has moved, while the commit waits
		if err != nil {
			t.Fatal(err)
		}
		after = contentsOf(t, db, "row")
		hold("ROLLBACK")
	case <-time.After(300 * time.Millisecond): // it waits for the commit
		hold("ROLLBACK")
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		after = contentsOf(t, db, "row")
	}
	if err := <-slow; err == nil && after != "new" {
		t.Errorf("under the new fence the row was %q, and then the commit under the old one changed it", after)
	}
}

// waiters waits until so many connections of the store wait for a lock.
func waiters(t *testing.T, url string, n int) {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for range 1000 {
		results, err := c.Exec(t.Context(), "SELECT FROM pg_stat_activity WHERE wait_event_type='Lock'").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(results[0].Rows) >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no commit waits for a lock")
}

func contentsOf(t *testing.T, db *DB, key string) string {
	t.Helper()
	value, _, err := kv.Get(db, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// A caller with a deadline does not wait longer for an answer that does not come.
func TestDeadlineBoundsTheAnswer(t *testing.T) {
	url := pgtest.New(t)
	db := mustOpen(t, url)
	defer db.Close()
	var b kv.Batch
	b.Set([]byte("row"), []byte("old"))
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	holder, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	if err := holder.Exec(t.Context(), "BEGIN;LOCK TABLE kv").Close(); err != nil {
		t.Fatal(err)
	}
	within := func(limit time.Duration, do func(context.Context) error) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		began := time.Now()
		err := do(ctx)
		if took := time.Since(began); took > limit+5*time.Second {
			t.Errorf("it took %v, and had %v", took, limit)
		}
		return err
	}
	err = within(100*time.Millisecond, func(ctx context.Context) error { _, _, err := db.Look(ctx, []byte("row")); return err })
	if !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a look without an answer: %v", err)
	}
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		err := within(limit, func(ctx context.Context) error { return db.Commit(ctx, &b) })
		if errors.Is(err, kv.ErrUnknown) {
			break
		}
		// On a busy machine the time may be over before the commit is sent: nothing is in doubt.
		if !errors.Is(err, context.DeadlineExceeded) || limit > 10*time.Second {
			t.Fatalf("a commit without an answer in %v: %v", limit, err)
		}
	}
}
