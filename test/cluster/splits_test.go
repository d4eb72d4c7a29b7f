// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"testing"
)

// The parent or both children is right, whatever became of them later; all else is not.
func TestWhatSplitsLeave(t *testing.T) {
	s := &splitting{id: "0", children: []string{"1", "2"}}
	for _, c := range []struct {
		all  []span
		want string
	}{
		{[]span{{ID: "0"}}, "abandoned"},
		{[]span{{ID: "1", Parents: []string{"0"}}, {ID: "2", Parents: []string{"0"}}}, "done"},
		{[]span{{ID: "3", Parents: []string{"0", "1"}}, {ID: "4", Parents: []string{"0", "1"}}, {ID: "2", Parents: []string{"0"}}}, "done"},
		{[]span{{ID: "3", Parents: []string{"0"}}, {ID: "4", Parents: []string{"0"}}}, "abandoned"}, // and split again
		{[]span{{ID: "0"}, {ID: "1", Parents: []string{"0"}}}, ""},
		{[]span{{ID: "0"}, {ID: "1", Parents: []string{"0"}}, {ID: "2", Parents: []string{"0"}}}, ""},
		{[]span{{ID: "2", Parents: []string{"0"}}}, ""},
		{[]span{{ID: "5"}}, ""},
	} {
		if what, ok := s.left(c.all); ok != (c.want != "") || ok && what != c.want {
			t.Errorf("%+v: %s, %v, want %q", c.all, what, ok, c.want)
		}
	}
	for _, c := range []struct {
		all  []span
		want bool
	}{
		{[]span{{Min: "", Max: "FF"}}, true},
		{[]span{{Min: "", Max: "1F"}, {Min: "1F", Max: "FF"}}, true},
		{[]span{{Min: "", Max: "1F"}, {Min: "2F", Max: "FF"}}, false},
		{[]span{{Min: "", Max: "1F"}, {Min: "1E", Max: "FF"}}, false},
		{[]span{{Min: "", Max: "1F"}}, false},
		{[]span{{Min: "1F", Max: "FF"}}, false},
	} {
		if covers(c.all) != c.want {
			t.Errorf("%+v cover all keys: %v", c.all, !c.want)
		}
	}
}

// Nothing is written to a partition whose owner row has ended, unless it is claimed anew.
func TestAuditOfEnds(t *testing.T) {
	var breaches int
	a := newAudit(nil, func(string, ...any) { breaches++ })
	const partition = "7000000001000000010000"
	row := func(space, value, writer string) string {
		return fmt.Sprintf(`table public.kv: INSERT: k[bytea]:'\x%s%s' v[bytea]:'\x%s' w[text]:'%s'`, partition, space, value, writer)
	}
	owner := func(epoch int) string { return fmt.Sprintf("01%016x%032x0161", epoch, 0) }
	for i, step := range []struct {
		text     string
		breaches int
	}{
		{row("6f", owner(5), "a-1"), 0},
		{row("6d", "00", "a-1"), 0},
		{row("6d", "00", "b-1"), 1},
		{fmt.Sprintf(`table public.kv: DELETE: k[bytea]:'\x%s6f'`, partition), 1},
		{row("6d", "00", "a-1"), 2},
		{row("6f", owner(1), "a-1"), 2},
		{row("6d", "00", "a-1"), 2},
		{row("6f", owner(1), "a-1"), 3},
	} {
		if err := a.see(step.text); err != nil || breaches != step.breaches {
			t.Fatalf("step %d: %d breaches, %v, want %d", i, breaches, err, step.breaches)
		}
	}
}
