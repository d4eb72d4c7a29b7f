// SPDX-License-Identifier: MIT

// What must hold of all that the clients have seen.

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// judgeLimit bounds the search for an order that explains the history of one item.
const judgeLimit = 2 * time.Minute

func splitItem(item string) (container, id string) {
	container, id, _ = strings.Cut(item, "/")
	return container, id
}

// judge judges the record. It returns how many histories it found no order for in time.
func (l *load) judge() (items, undecided int) {
	r := l.record
	ttls := map[string]int{}
	for _, c := range l.containers {
		ttls[c.name] = c.ttl
	}
	r.learn()
	r.momentsGrow()
	histories := map[string][]operation{}
	for _, o := range r.operations {
		histories[o.item] = append(histories[o.item], o)
	}
	for _, item := range slices.Sorted(maps.Keys(histories)) {
		container, _ := splitItem(item)
		if !r.judgeItem(item, ttls[container], histories[item]) {
			undecided++
		}
	}
	for i := range r.queries {
		r.judgeQuery(&r.queries[i], histories)
	}
	return len(histories), undecided
}

// learn finds out what became of writes without an answer, where another answer shows it,
// and that no write happened whose client was told that nothing was changed.
func (r *record) learn() {
	shown := map[int64]int64{} // the time of each version that was seen
	for _, o := range r.operations {
		if o.told.v != 0 && o.verdict != unknown {
			shown[o.told.v] = o.tsMs
		}
	}
	for _, q := range r.queries {
		for _, p := range q.pages {
			for _, row := range p.rows {
				shown[row.V] = row.TS * 1000
			}
		}
	}
	for v, said := range r.refused {
		if _, happened := shown[v]; happened {
			r.violation("write %d happened, although its client was told: %s", v, said)
		}
	}
	for i := range r.operations {
		if o := &r.operations[i]; o.verdict == unknown {
			o.end, o.tsMs, o.told.v = math.MaxInt64, shown[o.asked.v], o.asked.v
		}
	}
}

// momentsGrow: an answer to a request that was sent after another answer came has no earlier
// moment, on whichever nodes.
func (r *record) momentsGrow() {
	type edge struct {
		at      int64
		isCall  bool
		m       moment
		of      *operation
		isQuery string
	}
	var edges []edge
	for i := range r.operations {
		if o := &r.operations[i]; o.verdict != unknown {
			edges = append(edges, edge{o.call, true, o.told.at, o, ""}, edge{o.end, false, o.told.at, o, ""})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var latest int64
	var by *operation
	for _, e := range edges {
		switch {
		case !e.isCall && e.m.hi > latest:
			latest, by = e.m.hi, e.of
		case e.isCall && e.m.lo < latest:
			r.violation("node %s made an answer about %s at %d, after node %s had made one at %d", e.of.node, e.of.item, e.m.lo, by.node, latest)
		}
	}
}

// judgeItem looks for an order that explains the history of an item. It returns false if
// there was no time for that.
func (r *record) judgeItem(item string, ttl int, history []operation) bool {
	ops := make([]porcupine.Operation, len(history))
	for i, o := range history {
		ops[i] = porcupine.Operation{Input: o.asked, Output: o.told, Call: o.call, Return: o.end}
	}
	m := model(ttl)
	switch porcupine.CheckOperationsTimeout(m, ops, judgeLimit) {
	case porcupine.Ok:
		return true
	case porcupine.Unknown:
		fmt.Printf("UNDECIDED: %d requests for %s within %v\n", len(ops), item, judgeLimit)
		return false
	}
	history = shortest(m, history)
	var lines strings.Builder
	for _, o := range history {
		end := "never"
		if o.end != math.MaxInt64 {
			end = time.Duration(o.end).Round(time.Millisecond).String()
		}
		fmt.Fprintf(&lines, "\n  %s to %s  node %s: %+v -> %+v", time.Duration(o.call).Round(time.Millisecond), end, o.node, o.asked, o.told)
	}
	r.violation("no order explains the answers about %s. The end of the shortest history that shows it:%s", item, &lines)
	return true
}

// shown is how much of a history that cannot be explained is printed.
const shown = 25

// shortest returns the end of the shortest beginning of a history that no order explains.
func shortest(m porcupine.Model, history []operation) []operation {
	slices.SortFunc(history, func(a, b operation) int { return cmp.Compare(a.call, b.call) })
	bad := func(n int) bool {
		ops := make([]porcupine.Operation, 0, n)
		for _, o := range history[:n] {
			ops = append(ops, porcupine.Operation{Input: o.asked, Output: o.told, Call: o.call, Return: o.end})
		}
		return porcupine.CheckOperationsTimeout(m, ops, judgeLimit) == porcupine.Illegal
	}
	lo, hi := 0, len(history) // a beginning of lo is explained, one of hi is not
	for lo+1 < hi {
		if mid := (lo + hi) / 2; bad(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return history[max(0, hi-shown):hi]
}

// judgeQuery: a page shows nothing that was gone when it was made, and nothing that was
// overwritten or deleted before the query began. And all that was there is on some page.
func (r *record) judgeQuery(q *query, histories map[string][]operation) {
	got := map[string]int64{}
	last := moment{math.MaxInt64, 0}
	for _, p := range q.pages {
		last.lo, last.hi = min(last.lo, p.at.lo), max(last.hi, p.at.hi)
		for _, row := range p.rows {
			got[row.ID] = row.V
			item := q.container.name + "/" + row.ID
			var version, later *operation
			for i := range histories[item] {
				if o := &histories[item][i]; o.asked.v == row.V {
					version = o
				}
			}
			if version == nil {
				r.violation("a query by node %s shows version %d of %s, which nobody wrote", q.node, row.V, item)
				continue
			}
			at := version.told.at
			if version.verdict == unknown {
				at.hi = math.MaxInt64 - 1
			}
			s, _ := state{}.written(q.container.ttl, version.asked, told{tsMs: row.TS * 1000, at: at})
			if s.goneHi <= p.at.lo {
				r.violation("a query by node %s shows version %d of %s at %d, which was gone at %d", q.node, row.V, item, p.at.lo, s.goneHi)
			}
			for i := range histories[item] {
				if o := &histories[item][i]; o.verb != read && (o.verdict == done || o.verdict == created) && version.lsn != 0 && o.lsn > version.lsn && o.end < q.call {
					later = o
				}
			}
			if later != nil {
				r.violation("a query by node %s shows version %d of %s, although %s %d was answered before it began", q.node, row.V, item, later.verb, later.asked.v)
			}
		}
	}
	for i := range itemsAtOnce {
		item := q.container.name + "/" + itemName(q.gen, i)
		_, id := splitItem(item)
		w := settled(q, histories[item])
		if w == nil || got[id] == w.asked.v {
			continue
		}
		if s, _ := (state{}).written(q.container.ttl, w.asked, w.told); s.goneLo > last.hi {
			r.violation("a query by node %s shows version %d of %s, and not version %d, which was there from before the query until after it", q.node, got[id], item, w.asked.v)
		}
	}
}

// settled returns the last write of an item before a query, if no other write was under way
// at the same time or during the query.
func settled(q *query, history []operation) *operation {
	var w *operation
	for i := range history {
		if o := &history[i]; o.verb != read && o.verb != remove && (o.verdict == done || o.verdict == created) && o.end < q.call && (w == nil || o.call > w.call) {
			w = o
		}
	}
	for i := range history {
		if o := &history[i]; w != nil && o != w && o.verb != read && o.end > w.call && o.call < q.end {
			return nil
		}
	}
	return w
}
