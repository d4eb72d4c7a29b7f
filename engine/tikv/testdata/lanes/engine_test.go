// SPDX-License-Identifier: MIT

// This file joins package internal/engine when engine/tikv/run tests it: its tests are those of
// the engine, with TiKV as a lane.

package engine

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/engine/tikv/tikvkv"
	"github.com/mayflydb/mayfly/engine/tikv/tikvtest"
	"github.com/mayflydb/mayfly/internal/kv"
)

func init() {
	tikvtest.Prepare()
	moreLanes["tikv"] = func(t testing.TB) (kv.DB, error) {
		return tikvkv.Open(t.Context(), tikvkv.Options{URL: tikvtest.New(t), Logger: quiet()})
	}
	// Pools and loops of TiKV's client end some seconds after it was closed.
	for _, name := range []string{
		"github.com/tiancaiamao/gp.(*worker).run",
		"github.com/tiancaiamao/gp.worker",
		"github.com/tikv/client-go/v2/internal/client.(*batchConn).batchSendLoop",
	} {
		moreRunning = append(moreRunning, goleak.IgnoreAnyFunction(name))
	}
}
