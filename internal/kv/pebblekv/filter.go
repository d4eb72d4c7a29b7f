// SPDX-License-Identifier: MIT

package pebblekv

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// bloomBitsPerKey gives one false positive in a hundred.
const bloomBitsPerKey = 10

// setFilters sets which filters are written to tables, and which can be read.
func setFilters(p *pebble.Options, walked func(key []byte) bool) {
	whole := bloom.FilterPolicy(bloomBitsPerKey)
	p.Filters = map[string]pebble.FilterPolicy{whole.Name(): whole}
	var made pebble.FilterPolicy = whole
	if walked != nil {
		made = filterPolicy{whole, walked}
	}
	for i := range p.Levels {
		// On the last level too: every create looks up a key that does not exist.
		p.Levels[i].FilterPolicy = made
	}
}

// filterPolicy is the engine's bloom filter without the keys that Get never looks up: most
// rows are entries of an index, which only scans read.
type filterPolicy struct {
	pebble.FilterPolicy
	walked func(key []byte) bool
}

// Name implements pebble.FilterPolicy. A store that is opened without this policy, or by an
// engine that does not know it, finds no filter by this name and reads without one. A policy
// that leaves out other keys needs another name.
func (p filterPolicy) Name() string { return "mayfly.BloomFilterWithoutIndexRows" }

// MayContain implements pebble.FilterPolicy.
func (p filterPolicy) MayContain(kind pebble.FilterType, filter, key []byte) bool {
	return p.walked(key) || p.FilterPolicy.MayContain(kind, filter, key)
}

// NewWriter implements pebble.FilterPolicy.
func (p filterPolicy) NewWriter(kind pebble.FilterType) pebble.FilterWriter {
	return filterWriter{p.FilterPolicy.NewWriter(kind), p.walked}
}

type filterWriter struct {
	pebble.FilterWriter
	walked func(key []byte) bool
}

// AddKey implements pebble.FilterWriter.
func (w filterWriter) AddKey(key []byte) {
	if !w.walked(key) {
		w.FilterWriter.AddKey(key)
	}
}
