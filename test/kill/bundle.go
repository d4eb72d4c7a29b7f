// SPDX-License-Identifier: MIT

// A writer's knowledge of items that are written together, and its consequences.

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bundle is all items with one partition key. Their only writer writes several at a time,
// each time all of them or none.
type bundle struct {
	pk      string
	members []*member
	// doubt is a write without an answer, or nil.
	doubt *bundleWrite
}

// member is one item of a bundle. It does not expire during a trial.
type member struct {
	id   string
	sent []byte // as last acknowledged; nil if the item does not exist
	// body is the item's exact bytes in an answer; nil if no answer had it.
	body []byte
}

// bundleWrite is a request to write several items.
type bundleWrite struct {
	way     way
	doom    doom
	changes []change
}

// change is the effect of a write on one item.
type change struct {
	member *member
	op     op
	body   []byte // nil for a delete
}

// way is how several items are written at once.
type way string

const (
	batched   way = "batch"
	procedure way = "procedure"
	// triggered is a write of one item, to which a pre-trigger and a post-trigger each add
	// one.
	triggered way = "write with triggers"
)

// doom is why a write must fail as a whole.
type doom string

const (
	none       doom = ""
	impossible doom = "impossible" // one of its operations cannot succeed
	thrown     doom = "thrown"     // its script throws, after it has written everything
)

func (b *bundle) String() string { return "bundle " + b.pk }

// matches reports whether what was read, nil for nothing, is what the writer knows.
func (m *member) matches(read []byte) bool {
	switch {
	case m.sent == nil || read == nil:
		return m.sent == nil && read == nil
	case m.body != nil:
		return bytes.Equal(read, m.body)
	}
	return sameProperties(read, m.sent)
}

// made reports whether what was read, nil for nothing, is the result of a change.
func (c *change) made(read []byte) bool {
	if c.body == nil || read == nil {
		return c.body == nil && read == nil
	}
	return sameProperties(read, c.body)
}

// asBefore reports whether all items are as before the write in doubt.
func (b *bundle) asBefore(read map[string][]byte) bool {
	for _, m := range b.members {
		if !m.matches(read[m.id]) {
			return false
		}
	}
	return true
}

// asAfter reports whether all items are as after the write in doubt.
func (b *bundle) asAfter(read map[string][]byte) bool {
	if b.doubt == nil || b.doubt.doom != none {
		return false
	}
	for _, m := range b.members {
		i := slices.IndexFunc(b.doubt.changes, func(c change) bool { return c.member == m })
		if i < 0 && !m.matches(read[m.id]) || i >= 0 && !b.doubt.changes[i].made(read[m.id]) {
			return false
		}
	}
	return true
}

// settle compares all items of the partition key with what the writer knows, and ends the
// doubt: its write was done as a whole, or not at all.
func (b *bundle) settle(read map[string][]byte) error {
	defer func() { b.doubt = nil }()
	for id := range read {
		if !slices.ContainsFunc(b.members, func(m *member) bool { return m.id == id }) {
			return fmt.Errorf("it has an item that was never written: %s", brief(read[id]))
		}
	}
	switch {
	case b.asBefore(read):
	case b.asAfter(read):
		b.apply(b.doubt)
	default:
		return fmt.Errorf("it is neither as acknowledged nor as after all of %s:%s", b.doubt, b.compare(read))
	}
	for _, m := range b.members {
		m.body = read[m.id]
	}
	return nil
}

// apply records that a write was done.
func (b *bundle) apply(w *bundleWrite) {
	for _, c := range w.changes {
		c.member.sent, c.member.body = c.body, nil
	}
}

// compare lists what was read beside what the writer knows, an item a line.
func (b *bundle) compare(read map[string][]byte) string {
	var lines strings.Builder
	for _, m := range b.members {
		fmt.Fprintf(&lines, "\n  %s: acknowledged %s, read %s", m.id, brief(m.sent), brief(read[m.id]))
	}
	return lines.String()
}

func (w *bundleWrite) String() string {
	if w == nil {
		return "a write"
	}
	ops := map[string]op{}
	for _, c := range w.changes {
		ops[c.member.id] = c.op
	}
	var text strings.Builder
	fmt.Fprintf(&text, "a %s", w.way)
	for _, id := range slices.Sorted(maps.Keys(ops)) {
		fmt.Fprintf(&text, " %s:%s", ops[id], id)
	}
	if w.doom != none {
		fmt.Fprintf(&text, " (%s)", w.doom)
	}
	return text.String()
}
