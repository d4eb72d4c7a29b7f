// SPDX-License-Identifier: MIT

package cluster

import (
	"fmt"
	"hash/maphash"
	"os"
	"strings"
	"testing"
)

// The protocol as a model: two nodes, one partition, writes, reads, kills, claims, releases,
// restarts, lost and late commits, and an engine's clock that steps back, in every order.
// A model is small, so every state is visited. Its steps are those that the package takes
// between two visits of the engine.

const modelNodes = 2

// modelNode is what a process believes.
type modelNode struct {
	inc      int8 // its incarnation; it may be dead without knowing it
	owned    bool
	giving   bool // has stopped serving, and is about to write that it is free
	epoch    int8 // of its fence
	view     int8 // published lsn
	since    int8 // opening moment
	last     int8 // the highest moment
	least    int8 // the floor of earlier incarnations
	write    int8 // 0: none, 1: executed, 2: committed, to be acknowledged
	id       int8 // of the write
	claiming int8 // 0: no, 1: may claim the row of seen, 2: claimed, to be opened
	seen     int8 // epoch of the row that it has seen
	open     int8 // the time that it may not look before
}

// modelRead is a read, which one client after another begins.
type modelRead struct {
	stage int8 // 0: not begun, 1: arrived, 2: has its moment, 3: looked, 4: answered
	at    int8
	inc   int8
	needV int8 // acknowledged when it began
	needT int8 // told when it began
	t, v  int8
}

// modelState is all there is. The zero epoch of late says that no commit is on its way.
type modelState struct {
	alive [modelNodes]int8 // the incarnation that is alive, -1: none
	floor [modelNodes]int8
	// The owner row; owner -1: free.
	owner, ownerInc, epoch, latest int8
	log                            [3]int8 // the write at each lsn
	lsn                            int8
	time                           int8
	back                           bool
	late                           struct{ node, inc, epoch, id, at int8 }
	n                              [modelNodes]modelNode
	r                              [3]modelRead
	wrote                          int8
	acked                          [3]int8 // the lsn of each acknowledged write, 0: not acknowledged
	told                           int8
}

// modelRules says which rules do not hold.
type modelRules struct{ no1, no2, no3, no4, no4latest, no5floor, no5claim, no5open, no6 bool }

type modelBounds struct{ writes, reads, ticks, incarnations, epochs int8 }

type modelStep struct {
	name string
	to   modelState
}

func (s *modelState) ackedLSN() (lsn int8) {
	for _, at := range s.acked {
		lsn = max(lsn, at)
	}
	return lsn
}

// wrong says what no history may show.
func (s *modelState) wrong() string {
	for i := range s.r {
		r := &s.r[i]
		switch {
		case r.stage == 3 && r.v < r.needV:
			return fmt.Sprintf("read %d sees lsn %d, and %d was acknowledged before it began", i, r.v, r.needV)
		case r.stage == 3 && r.t < r.needT:
			return fmt.Sprintf("read %d is at time %d, and %d was told before it began", i, r.t, r.needT)
		}
	}
	for id, at := range s.acked {
		if at > 0 && (s.log[at-1] != int8(id)+1 || s.lsn < at) {
			return fmt.Sprintf("write %d was acknowledged, and is gone", id+1)
		}
	}
	return ""
}

// next returns every step that is possible.
func (s *modelState) next(k modelRules, b modelBounds, out []modelStep) []modelStep {
	add := func(name string, change func(*modelState)) {
		to := *s
		change(&to)
		out = append(out, modelStep{name, to})
	}
	if s.time < b.ticks {
		add("the engine's clock ticks", func(s *modelState) { s.time++ })
	}
	if s.time > 0 && !s.back {
		add("the engine's clock steps back", func(s *modelState) { s.time--; s.back = true })
	}
	if l := s.late; l.epoch != 0 {
		if s.fenced(l.node, l.inc, l.epoch) || k.no1 {
			add("a late commit lands", func(s *modelState) { s.land(l.at, l.id); s.late.epoch = 0 })
		}
		add("a late commit is lost", func(s *modelState) { s.late.epoch = 0 })
	}
	for i := range int8(modelNodes) {
		out = s.nextOf(i, k, b, out)
	}
	for j := range b.reads {
		out = s.nextRead(j, k, out)
	}
	return out
}

func (s *modelState) fenced(node, inc, epoch int8) bool {
	return s.owner == node && s.ownerInc == inc && s.epoch == epoch
}

func (s *modelState) land(at, id int8) {
	s.log[at-1] = id
	s.lsn = max(s.lsn, at)
}

// nextOf returns the steps of a node.
func (s *modelState) nextOf(i int8, k modelRules, b modelBounds, out []modelStep) []modelStep {
	me, other := s.n[i], 1-i
	add := func(name string, change func(*modelState, *modelNode)) {
		to := *s
		change(&to, &to.n[i])
		out = append(out, modelStep{fmt.Sprintf("%c %s", 'A'+i, name), to})
	}
	if me.owned && me.write == 0 && s.wrote < b.writes {
		add("executes a write", func(s *modelState, n *modelNode) { s.wrote++; n.write, n.id = 1, s.wrote })
	}
	if me.write == 1 {
		if s.fenced(i, me.inc, me.epoch) || k.no1 { // rule 1
			add("commits", func(s *modelState, n *modelNode) { s.land(n.view+1, n.id); n.write = 2 })
			add("commits, and the answer is lost", func(s *modelState, n *modelNode) {
				s.land(n.view+1, n.id)
				n.unknown(k)
			})
		} else {
			add("finds another owner", func(s *modelState, n *modelNode) { n.write, n.owned = 0, false })
		}
		if s.late.epoch == 0 {
			add("sends a commit that is late", func(s *modelState, n *modelNode) {
				s.late.node, s.late.inc, s.late.epoch, s.late.id, s.late.at = i, n.inc, n.epoch, n.id, n.view+1
				n.unknown(k)
			})
		}
	}
	if me.write == 2 {
		add("publishes and acknowledges", func(s *modelState, n *modelNode) {
			n.view++
			s.acked[n.id-1] = n.view
			n.write = 0
		})
	}
	if s.alive[i] == me.inc && s.alive[other] >= 0 {
		add("kills the other", func(s *modelState, n *modelNode) { s.alive[other] = -1 })
	}
	// Claim: look at the owner row and at its node, then replace it, then open.
	ours := s.owner == i && s.ownerInc == me.inc
	dead := s.owner >= 0 && s.alive[s.owner] != s.ownerInc
	if !me.owned && !me.giving && me.claiming == 0 && (ours || dead || s.owner < 0 || k.no3) { // rule 3
		add("may claim", func(s *modelState, n *modelNode) {
			n.claiming, n.seen, n.open = 1, s.epoch, s.latest
			if dead && !k.no5claim { // rule 5
				n.open = max(n.open, s.floor[s.owner])
			}
		})
	}
	if me.claiming == 1 {
		if s.epoch != me.seen {
			add("claims in vain", func(s *modelState, n *modelNode) { n.claiming = 0 })
		} else if s.epoch < b.epochs {
			add("claims", func(s *modelState, n *modelNode) {
				s.owner, s.ownerInc, s.epoch, s.latest = i, n.inc, s.epoch+1, max(n.open, n.last)
				n.claiming, n.epoch, n.open = 2, s.epoch, s.latest
			})
		}
	}
	if me.claiming == 2 {
		add("opens", func(s *modelState, n *modelNode) {
			n.claiming, n.owned, n.view, n.since = 0, true, s.lsn, n.open
		})
	}
	// Release: stop, then write the row.
	if me.owned && me.write == 0 && !me.giving {
		add("stops serving", func(s *modelState, n *modelNode) { n.giving, n.owned = true, k.no4 }) // rule 4
	}
	if me.giving && s.epoch < b.epochs {
		add("releases", func(s *modelState, n *modelNode) {
			n.giving = false
			if s.fenced(i, n.inc, n.epoch) {
				s.owner, s.ownerInc, s.epoch = -1, 0, s.epoch+1
				if !k.no4latest { // rule 4
					s.latest = max(s.latest, n.last)
				}
			}
		})
	}
	if me.inc < b.incarnations {
		add("registers anew", func(s *modelState, n *modelNode) {
			*n = modelNode{inc: n.inc + 1, least: s.floor[i]}
			s.alive[i] = n.inc
		})
	}
	if low := max(me.last, me.least); s.alive[i] == me.inc && low < s.floor[i] {
		add("saves the exact floor", func(s *modelState, n *modelNode) { s.floor[i] = low })
	}
	return out
}

// unknown closes the partition after a commit whose outcome is unknown. By rule 6 the node
// claims it anew; without the rule it just opens it again.
func (n *modelNode) unknown(k modelRules) {
	n.write, n.owned = 0, false
	if k.no6 {
		n.claiming, n.open = 2, n.since
	}
}

// nextRead returns the steps of a read.
func (s *modelState) nextRead(j int8, k modelRules, out []modelStep) []modelStep {
	r := s.r[j]
	add := func(name string, at int8, change func(*modelState, *modelRead)) {
		to := *s
		change(&to, &to.r[j])
		out = append(out, modelStep{fmt.Sprintf("read %d %s %c", j, name, 'A'+at), to})
	}
	me := s.n[r.at]
	switch r.stage {
	case 0:
		if j > 0 && s.r[j-1].stage == 0 {
			return out // reads begin in order: they are all alike
		}
		for i := range int8(modelNodes) {
			add("comes to", i, func(s *modelState, r *modelRead) {
				*r = modelRead{stage: 1, at: i, needV: s.ackedLSN(), needT: s.told}
			})
		}
	case 1:
		if s.alive[r.at] != me.inc && !k.no2 { // rule 2: it waits until the node has registered anew
			return out
		}
		t := max(s.time, me.last)
		if t > s.floor[r.at] && !k.no5floor { // rule 5
			if s.alive[r.at] == me.inc {
				add("has a floor saved at", r.at, func(s *modelState, r *modelRead) { s.floor[r.at] = t })
			}
			return out
		}
		add("has its moment at", r.at, func(s *modelState, r *modelRead) {
			s.n[r.at].last = t
			r.stage, r.t, r.inc = 2, t, me.inc
		})
	case 2:
		if me.inc != r.inc || !me.owned {
			add("is passed on by", r.at, func(s *modelState, r *modelRead) { r.stage, r.at, r.t = 1, 1-r.at, 0 })
			return out
		}
		add("looks at", r.at, func(s *modelState, r *modelRead) {
			r.stage, r.v = 3, me.view
			if !k.no5open { // rule 5
				r.t = max(r.t, me.since)
			}
		})
	case 3:
		add("is answered by", r.at, func(s *modelState, r *modelRead) {
			s.told = max(s.told, r.t)
			*r = modelRead{stage: 4}
		})
	}
	return out
}

// checkModel visits every state, in the order of their distance, and returns how many there
// are and the shortest history that goes wrong, if there is one.
func checkModel(k modelRules, b modelBounds, limit int) (states int, wrong string, history []string) {
	type from struct {
		prev int32
		step int16
	}
	first := modelState{owner: 0, epoch: 1}
	first.n[0] = modelNode{owned: true, epoch: 1}
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{maphash.Comparable(seed, first): {}}
	froms := []from{{-1, 0}}
	queue := []modelState{first}
	base := 0 // the number of queue[0]
	var steps []modelStep
	for len(queue) > 0 && len(froms) < limit {
		s := queue[0]
		if wrong := s.wrong(); wrong != "" {
			var path []int16
			for at := int32(base); froms[at].prev >= 0; at = froms[at].prev {
				path = append(path, froms[at].step)
			}
			again := first
			for i := len(path) - 1; i >= 0; i-- {
				step := again.next(k, b, nil)[path[i]]
				history, again = append(history, step.name), step.to
			}
			return len(froms), wrong, history
		}
		steps = s.next(k, b, steps[:0])
		for i := range steps {
			h := maphash.Comparable(seed, steps[i].to)
			if _, ok := seen[h]; !ok {
				seen[h] = struct{}{}
				froms = append(froms, from{int32(base), int16(i)})
				queue = append(queue, steps[i].to)
			}
		}
		queue = queue[1:]
		base++
	}
	return len(froms), "", nil
}

// TestRulesAreNeeded: without any one of the rules a short history goes wrong.
func TestRulesAreNeeded(t *testing.T) {
	lost := modelBounds{writes: 2, epochs: 3, incarnations: 1}
	stale := modelBounds{writes: 1, reads: 1, epochs: 3}
	times := modelBounds{reads: 2, ticks: 1, epochs: 3}
	for _, test := range []struct {
		name  string
		rules modelRules
		in    modelBounds
	}{
		{"1: commits require the owner row", modelRules{no1: true}, lost},
		{"2: a moment before the answer", modelRules{no2: true}, stale},
		{"3: kill before the claim", modelRules{no3: true}, stale},
		{"4: stop before the release", modelRules{no4: true}, stale},
		{"4: leave the latest moment", modelRules{no4latest: true}, times},
		{"5: no moment above the floor", modelRules{no5floor: true}, times},
		{"5: a claim opens at the killed node's floor", modelRules{no5claim: true}, times},
		{"5: a partition never looks before its opening moment", modelRules{no5open: true}, times},
		{"6: a new epoch after an unknown commit", modelRules{no6: true}, lost},
	} {
		states, wrong, history := checkModel(test.rules, test.in, 3_000_000)
		if wrong == "" {
			t.Errorf("without rule %s nothing goes wrong in %d states", test.name, states)
			continue
		}
		t.Logf("without rule %s (%d states): %s:\n    %s", test.name, states, wrong, strings.Join(history, "\n    "))
	}
}

// TestRulesSuffice: with all rules no history goes wrong.
func TestRulesSuffice(t *testing.T) {
	bounds := []modelBounds{
		{writes: 2, reads: 1, ticks: 0, incarnations: 1, epochs: 3},
		{writes: 0, reads: 2, ticks: 1, incarnations: 0, epochs: 3},
	}
	if os.Getenv("MAYFLY_LONG") != "" {
		bounds = []modelBounds{{writes: 2, reads: 2, ticks: 1, incarnations: 1, epochs: 3}}
	}
	for _, b := range bounds {
		states, wrong, history := checkModel(modelRules{}, b, 100_000_000)
		t.Logf("%+v: %d states", b, states)
		if wrong != "" {
			t.Errorf("%+v: %s:\n    %s", b, wrong, strings.Join(history, "\n    "))
		}
	}
}
