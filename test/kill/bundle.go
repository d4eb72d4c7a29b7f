// SPDX-License-Identifier: MIT

// What a writer knows of items that are written together, and what follows from it.

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bundle is everything with one partition key: items that their only writer writes
// several at a time, each time all of them or none.
type bundle struct {
	pk      string
	members []*member
	// doubt is a write that got no answer, or nil.
	doubt *bundleWrite
}

// member is one item of a bundle. It never expires while a trial goes on.
type member struct {
	id   string
	sent []byte // what was last acknowledged; nil if there is no such item
	// body is the item as the server has shown it, to the byte; nil if it has not.
	body []byte
}

// bundleWrite is a write of several items that was asked for.
type bundleWrite struct {
	way     way
	doom    doom
	changes []change
}

// change is what a write makes of one item.
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
	// triggered is a write of one item that a pre- and a post-trigger add one to each.
	triggered way = "write with triggers"
)

// doom is why a write must fail as a whole.
type doom string

const (
	none       doom = ""
	impossible doom = "impossible" // one of its operations is
	thrown     doom = "thrown"     // its script throws, after it has written everything
)

func (b *bundle) String() string { return "bundle " + b.pk }

// matches reports whether what was read, nil for nothing, is what is known.
func (m *member) matches(read []byte) bool {
	switch {
	case m.sent == nil || read == nil:
		return m.sent == nil && read == nil
	case m.body != nil:
		return bytes.Equal(read, m.body)
	}
	return sameProperties(read, m.sent)
}

// made reports whether what was read, nil for nothing, is what a change makes.
func (c *change) made(read []byte) bool {
	if c.body == nil || read == nil {
		return c.body == nil && read == nil
	}
	return sameProperties(read, c.body)
}

// asBefore reports whether everything is as it was before the doubtful write.
func (b *bundle) asBefore(read map[string][]byte) bool {
	for _, m := range b.members {
		if !m.matches(read[m.id]) {
			return false
		}
	}
	return true
}

// asAfter reports whether everything is as the doubtful write would leave it.
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

// settle compares everything that the partition key has with what is known, and ends
// the doubt: its write was done as a whole, or not at all.
func (b *bundle) settle(read map[string][]byte) error {
	defer func() { b.doubt = nil }()
	for id := range read {
		if !slices.ContainsFunc(b.members, func(m *member) bool { return m.id == id }) {
			return fmt.Errorf("it has an item that nobody wrote: %s", brief(read[id]))
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

// apply notes that a write was done.
func (b *bundle) apply(w *bundleWrite) {
	for _, c := range w.changes {
		c.member.sent, c.member.body = c.body, nil
	}
}

// compare tells what was read beside what is known, an item a line.
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
