// SPDX-License-Identifier: MIT

package tikvkv_test

import (
	"log/slog"
	"testing"

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
