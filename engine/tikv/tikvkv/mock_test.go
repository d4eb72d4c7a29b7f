// SPDX-License-Identifier: MIT

package tikvkv

import (
	"log/slog"
	"testing"

	"github.com/tikv/client-go/v2/testutils"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func init() { logTo(slog.New(slog.DiscardHandler)) }

// The mock of TiKV's client is one for all handles on a store, and outlives each of them.
type (
	sharedClient struct{ tikv.Client }
	sharedPD     struct{ pd.Client }
)

func (sharedClient) Close() error { return nil }
func (sharedPD) Close()           {}

// newMock makes a cluster in this process, and returns a function that opens one more handle on
// its store.
func newMock(t testing.TB, c collection) func() *DB {
	open, _ := newMockWith(t, c)
	return open
}

// newFaultyMock is newMock with faults.
func newFaultyMock(t testing.TB) (open func() *DB, faults *faulty) {
	return newMockWith(t, defaultCollection)
}

func newMockWith(t testing.TB, c collection) (open func() *DB, faults *faulty) {
	t.Helper()
	client, cluster, pds, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		t.Fatal(err)
	}
	testutils.BootstrapWithSingleStore(cluster)
	t.Cleanup(func() {
		pds.Close()
		_ = client.Close()
	})
	faults = &faulty{Client: client}
	return func() *DB {
		store, err := tikv.NewTestTiKVStore(sharedClient{faults}, sharedPD{pds}, nil, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return attach(store, address{name: "test"}, defaultStep, c, slog.New(slog.DiscardHandler))
	}, faults
}

func TestConformanceInProcess(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return newMock(t, defaultCollection)() })
}

func TestHandlesInProcess(t *testing.T) {
	kvtest.RunShared(t, func(t *testing.T) func() kv.DB {
		open := newMock(t, defaultCollection)
		return func() kv.DB { return open() }
	})
}
