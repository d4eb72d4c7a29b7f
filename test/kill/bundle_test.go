// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"testing"
)

// shownAs is an item as the server returns it.
func shownAs(id string, version int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"version":%d,"_rid":"r","_self":"s","_etag":"%d","_attachments":"a","_ts":1}`, id, version, version)
}

func sentAs(id string, version int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"version":%d}`, id, version)
}

// A bundle of a, b and c, of which a and b were acknowledged in version 1: what may exist
// after a kill, and what may not. A write of version 2 is in doubt, which replaces a,
// deletes b and creates c.
func TestBundleSettles(t *testing.T) {
	before := map[string]int{"a": 1, "b": 1}
	after := map[string]int{"a": 2, "c": 2}
	for _, c := range []struct {
		name  string
		doubt bool
		doom  doom
		read  map[string]int
		ok    bool
	}{
		{"all that was acknowledged", false, none, before, true},
		{"an acknowledged item is missing", false, none, map[string]int{"a": 1}, false},
		{"an acknowledged item is another", false, none, map[string]int{"a": 1, "b": 2}, false},
		{"an item that was never written", false, none, map[string]int{"a": 1, "b": 1, "d": 1}, false},
		{"nothing of the doubtful write", true, none, before, true},
		{"all of the doubtful write", true, none, after, true},
		{"a replace without the rest", true, none, map[string]int{"a": 2, "b": 1}, false},
		{"a delete without the rest", true, none, map[string]int{"a": 1}, false},
		{"a create without the rest", true, none, map[string]int{"a": 1, "b": 1, "c": 2}, false},
		{"all but the delete", true, none, map[string]int{"a": 2, "b": 1, "c": 2}, false},
		{"nothing of a write that must fail", true, impossible, before, true},
		{"all of a write that must fail", true, thrown, after, false},
		{"some of a write that must fail", true, thrown, map[string]int{"a": 2, "b": 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, two, three := &member{id: "a"}, &member{id: "b"}, &member{id: "c"}
			one.sent, two.sent = sentAs("a", 1), sentAs("b", 1)
			one.body = shownAs("a", 1) // no answer had b
			b := &bundle{pk: "k", members: []*member{one, two, three}}
			if c.doubt {
				b.doubt = &bundleWrite{way: batched, doom: c.doom, changes: []change{
					{one, replace, sentAs("a", 2)}, {two, remove, nil}, {three, create, sentAs("c", 2)},
				}}
			}
			read := map[string][]byte{}
			for id, version := range c.read {
				read[id] = shownAs(id, version)
			}
			if err := b.settle(read); (err == nil) != c.ok {
				t.Fatalf("settle of %v: %v", c.read, err)
			}
			if !c.ok {
				return
			}
			if b.doubt != nil {
				t.Error("the doubt has not ended")
			}
			if err := b.settle(read); err != nil {
				t.Errorf("what was settled is not as it was read: %v", err)
			}
		})
	}
}
