// SPDX-License-Identifier: MIT

// This file joins package internal/scripttest when engine/tikv/run tests it.

package scripttest

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/engine/tikv/tikvkv"
	"github.com/mayflydb/mayfly/engine/tikv/tikvtest"
	"github.com/mayflydb/mayfly/internal/kv"
)

func init() {
	tikvtest.Prepare()
	// What a client leaves behind while PD starts, and its pools for some seconds.
	for _, name := range []string{
		"github.com/tiancaiamao/gp.(*Pool).worker",
		"google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run",
		"google.golang.org/grpc/internal/transport.(*http2Client).reader",
		"google.golang.org/grpc/internal/transport.(*loopyWriter).run",
	} {
		moreRunning = append(moreRunning, goleak.IgnoreAnyFunction(name))
	}
}

// TestScriptsOnTiKV runs all scripts on a node of a cluster with its data in TiKV.
func TestScriptsOnTiKV(t *testing.T) { onTiKV(t, onePartition) }

// TestScriptsOnTiKVPartitions is the same with four partitions in each container.
func TestScriptsOnTiKVPartitions(t *testing.T) { onTiKV(t, fourPartitions) }

func onTiKV(t *testing.T, throughput string) {
	tikvtest.New(t) // skips all of them at once
	runScripts(t, func(t *testing.T) *script {
		url := tikvtest.New(t)
		return &script{throughput: throughput, server: &onShared{open: func() (kv.DB, error) {
			return tikvkv.Open(context.Background(), tikvkv.Options{URL: url, Logger: quiet()})
		}}}
	})
}
