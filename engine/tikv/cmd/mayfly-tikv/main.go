// SPDX-License-Identifier: MIT

// Command mayfly-tikv is mayfly with one more storage engine, TiKV, whose client the default
// binary does not carry.
package main

import (
	"context"

	"github.com/mayflydb/mayfly/engine/tikv/tikvkv"
	"github.com/mayflydb/mayfly/internal/cli"
	"github.com/mayflydb/mayfly/internal/kv"
)

func main() {
	cli.Main("mayfly-tikv", cli.Engine{
		Name: "TiKV", Schemes: []string{tikvkv.Scheme}, Example: tikvkv.Example,
		Open: func(ctx context.Context, o cli.EngineOptions) (kv.DB, error) {
			return tikvkv.Open(ctx, tikvkv.Options{URL: o.URL, Logger: o.Logger})
		},
	})
}
