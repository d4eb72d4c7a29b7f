// SPDX-License-Identifier: MIT

package tikvkv

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
	pd "github.com/tikv/pd/client"

	"github.com/mayflydb/mayfly/internal/kv"
)

// trips counts messages to the store and timestamps of PD.
type trips struct{ messages, timestamps atomic.Int64 }

type countingClient struct {
	tikv.Client
	trips *trips
}

func (c countingClient) SendRequest(ctx context.Context, addr string, r *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	c.trips.messages.Add(1)
	return c.Client.SendRequest(ctx, addr, r, timeout)
}

type countingPD struct {
	pd.Client
	trips *trips
}

func (c countingPD) GetTS(ctx context.Context) (physical, logical int64, err error) {
	c.trips.timestamps.Add(1)
	return c.Client.GetTS(ctx)
}

// What each operation costs, as DESIGN.md says.
func TestRoundTrips(t *testing.T) {
	client, cluster, pds, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	testutils.BootstrapWithSingleStore(cluster)
	var n trips
	store, err := tikv.NewTestTiKVStore(countingClient{client, &n}, countingPD{pds, &n}, nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	db := attach(store, address{name: "test"}, defaultStep, defaultCollection, slog.New(slog.DiscardHandler))
	defer db.Close()
	if err := db.Commit(t.Context(), set("fence", "1", "a", "1", "b", "2")); err != nil {
		t.Fatal(err)
	}
	commit := func(b *kv.Batch) func() error {
		return func() error { return db.Commit(t.Context(), b) }
	}
	fenced := func(b *kv.Batch) *kv.Batch {
		b.Require([]byte("fence"), []byte("1"))
		return b
	}
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func() error {
		_, _, err := s.Get([]byte("a"))
		return err
	}
	for _, c := range []struct {
		name                 string
		do                   func() error
		messages, timestamps int64
	}{
		{"look", func() error { _, _, err := db.Look(t.Context(), []byte("a"), []byte("b")); return err }, 1, 1},
		{"look at the time", func() error { _, _, err := db.Look(t.Context()); return err }, 0, 1},
		{"fenced commit", commit(fenced(set("a", "3", "b", "4"))), 3, 2},
		{"commit", commit(set("a", "3", "b", "4")), 2, 2},
		{"check of a fence", commit(fenced(&kv.Batch{})), 1, 1},
		{"get", get, 1, 0},
		{"warm", func() error { return s.Warm([][]byte{[]byte("a"), []byte("b"), []byte("none")}) }, 1, 0},
		{"warm get", get, 0, 0},
	} {
		// The client asks for a timestamp of its own now and then, which a second try does not meet.
		var messages, timestamps int64
		for range 3 {
			messages, timestamps = n.messages.Load(), n.timestamps.Load()
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			messages, timestamps = n.messages.Load()-messages, n.timestamps.Load()-timestamps
			if messages == c.messages && timestamps == c.timestamps || c.name == "warm" {
				break
			}
		}
		if messages != c.messages || timestamps != c.timestamps {
			t.Errorf("%s took %d messages and %d timestamps, want %d and %d", c.name, messages, timestamps, c.messages, c.timestamps)
		}
	}
}
