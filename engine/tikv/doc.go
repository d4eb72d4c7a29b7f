// SPDX-License-Identifier: MIT

// Package tikv is the module of TiKV as a storage engine: package tikvkv is the engine,
// cmd/mayfly-tikv the binary. It is a module of its own so that nobody else carries TiKV's
// client.
package tikv
