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

func TestHandles(t *testing.T) {
	kvtest.RunShared(t, func(t *testing.T) func() kv.DB {
		url := pgtest.New(t)
		return func() kv.DB { return mustOpen(t, url) }
	})
}
