// SPDX-License-Identifier: MIT

package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// The audit must find a write of a process that is not the owner any more.
func TestAudit(t *testing.T) {
	const partition = "70" + "0000000100000001" + "00"
	own := func(writer, name string, epoch uint64) string {
		value := append(binary.BigEndian.AppendUint64([]byte{1}, epoch), make([]byte, 16)...)
		value = append(append(value, byte(len(name))), name...)
		return fmt.Sprintf(`table public.kv: UPDATE: k[bytea]:'\x%s6f' v[bytea]:'\x%s' w[text]:'%s'`, partition+"00", hex.EncodeToString(append(value, 0, 0, 0, 0)), writer)
	}
	write := func(writer string) string {
		return fmt.Sprintf(`table public.kv: INSERT: k[bytea]:'\x%s6d' v[bytea]:'\x00' w[text]:'%s'`, partition+"00", writer)
	}
	for _, c := range []struct {
		name string
		log  []string
		bad  string
	}{
		{"an owner writes", []string{write("a-1"), own("a-1", "a", 1), write("a-1"), own("b-1", "b", 2), write("b-1"), own("b-1", "b", 3), write("b-1")}, ""},
		{"after another has claimed", []string{own("a-1", "a", 1), write("a-1"), own("b-1", "b", 2), write("a-1")}, "a-1 wrote"},
		{"after its release", []string{own("a-1", "a", 1), own("a-1", "", 2), write("a-1")}, "a-1 wrote"},
		{"the process before", []string{own("a-1", "a", 1), own("a-2", "a", 2), write("a-1")}, "a-1 wrote"},
		{"an epoch comes back", []string{own("a-1", "a", 2), own("b-1", "b", 2)}, "went from epoch 2"},
		{"another's name", []string{own("a-1", "b", 2)}, "wrote the name"},
	} {
		var found []string
		a := newAudit(nil, func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
		for _, line := range c.log {
			if err := a.see(line); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if got := strings.Join(found, "\n"); (got == "") != (c.bad == "") || !strings.Contains(got, c.bad) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.bad)
		}
	}
	if err := newAudit(nil, t.Errorf).see("table public.kv: UPDATE: k[bytea]:'x'"); err == nil {
		t.Error("a line of another form is passed over")
	}
}

// What is judged beside the order of the answers.
func TestJudge(t *testing.T) {
	wide := &container{name: "c", ttl: 2}
	write := func(v, call, end, ms int64, lsn uint64) operation {
		return operation{node: "a", asked: asked{item: "c/g0-0", verb: upsert, v: v}, told: told{verdict: done, v: v, tsMs: ms - ms%1000, lsn: lsn, at: moment{ms, ms}}, call: call, end: end}
	}
	show := func(v, call, end, ms int64) query {
		q := query{node: "b", container: wide, call: call, end: end, pages: []page{{at: moment{ms, ms}}}}
		if v != 0 {
			q.pages[0].rows = []row{{ID: "g0-0", V: v, TS: 10}}
		}
		return q
	}
	first := write(1, 0, 1, 10_000, 1)
	first.verdict = created
	for _, c := range []struct {
		name       string
		operations []operation
		queries    []query
		refused    int64
		bad        string
	}{
		{"a query shows what is there", []operation{first}, []query{show(1, 2, 3, 11_000)}, 0, ""},
		{"a query shows what is gone", []operation{first}, []query{show(1, 2, 3, 12_001)}, 0, "which was gone"},
		{"a query shows what was overwritten", []operation{first, write(2, 2, 3, 10_500, 2)}, []query{show(1, 4, 5, 10_600)}, 0, "although upsert 2"},
		{"a query shows what is being overwritten", []operation{first, write(2, 2, 6, 10_500, 2)}, []query{show(1, 4, 5, 10_600)}, 0, ""},
		{"a query shows what nobody wrote", []operation{first}, []query{show(9, 2, 3, 11_000)}, 0, "nobody wrote"},
		{"a query misses what is there", []operation{first}, []query{show(0, 2, 3, 11_000)}, 0, "and not version 1"},
		{"a query misses what is gone", []operation{first}, []query{show(0, 2, 3, 12_500)}, 0, ""},
		{"a write happened that was refused", []operation{first, write(2, 2, 3, 10_500, 2)}, nil, 2, "write 2 happened"},
		{"moments go back", []operation{first, write(2, 2, 3, 9_999, 2)}, nil, 0, "made an answer about"},
	} {
		r := &record{operations: c.operations, queries: c.queries, refused: map[int64]string{}, counts: map[string]int{}}
		if c.refused != 0 {
			r.refused[c.refused] = "no"
		}
		l := &load{containers: []*container{wide}, record: r}
		l.judge()
		got := strings.Join(r.violations, "\n")
		if (got == "") != (c.bad == "") || !strings.Contains(got, c.bad) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.bad)
		}
	}
}
