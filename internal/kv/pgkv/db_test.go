// SPDX-License-Identifier: MIT

package pgkv

import (
	"log/slog"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
)

func mustOpen(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return mustOpen(t, pgtest.New(t)) })
}

// TestOpenAtOnce has several processes make the tables of one store at the same time.
func TestOpenAtOnce(t *testing.T) {
	for range 8 {
		url := pgtest.New(t)
		errs := make(chan error)
		const processes = 6
		for range processes {
			go func() {
				db, err := Open(t.Context(), Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
				if err == nil {
					err = db.Close()
				}
				errs <- err
			}()
		}
		for range processes {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestHandles(t *testing.T) {
	kvtest.RunShared(t, func(t *testing.T) func() kv.DB {
		url := pgtest.New(t)
		return func() kv.DB { return mustOpen(t, url) }
	})
}
