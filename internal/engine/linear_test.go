// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	linearClients = 16
	linearItems   = 4
	linearOps     = 1000 // of a history
	linearPace    = 20   // requests a second
	linearTimeout = time.Minute
)

// Concurrent clients use few items while time passes. Some order of their requests must
// explain all answers. Thirteen histories of a thousand requests, times MAYFLY_LONG.
func TestLinearizability(t *testing.T) {
	for _, c := range []struct {
		name       string
		ttl        string
		partitions int
		histories  int
	}{
		{"items that expire by default", "2", 1, 4},
		{"items that expire by their own ttl", "-1", 1, 3},
		{"four partitions", "2", 4, 3},
		{"items that name their deadlines", `2,"expireAtPath":"/at","expireAtPast":"accept"`, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := map[verdict]int{}
			for seed := range uint64(c.histories * kvtest.LongFactor(t)) {
				l := &linearRun{w: newWorld(t), rng: func(client uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, client)) }}
				l.container = l.w.container("c", c.ttl, c.partitions)
				history := l.run(t)
				l.w.close()
				checkLinear(t, seed, l.container.DefaultTTL, history)
				for _, o := range history {
					answers[o.Output.(linearOutput).verdict]++
				}
			}
			if len(answers) != verdicts {
				t.Errorf("the clients did not meet everything: %v", answers)
			}
		})
	}
}

// checkLinear checks a history, and prints that of an item which no order explains.
func checkLinear(t *testing.T, seed uint64, containerDefault catalog.TTL, history []porcupine.Operation) {
	t.Helper()
	model := linearModel(containerDefault)
	if porcupine.CheckOperationsTimeout(model, history, linearTimeout) == porcupine.Ok {
		return
	}
	for _, ops := range byItem(history) {
		if porcupine.CheckOperationsTimeout(model, ops, linearTimeout) == porcupine.Ok {
			continue
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var lines strings.Builder
		for _, o := range ops {
			fmt.Fprintf(&lines, "%6d to %6d  %s\n", o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
		}
		t.Fatalf("seed %d: no order explains\n%s", seed, &lines)
	}
}

// linearRun is a set of clients that use one container.
type linearRun struct {
	w         *world
	container *catalog.Container
	rng       func(client uint64) *rand.Rand
	keys      []string     // the partition key of each item
	instants  atomic.Int64 // the order in which requests begin and end
}

func (l *linearRun) run(t *testing.T) []porcupine.Operation {
	keys := spread(l.container)
	for i := range linearItems {
		l.keys = append(l.keys, keys[i%len(keys)])
	}
	seconds := make(chan struct{}, linearOps)
	var clock, clients sync.WaitGroup
	clock.Go(func() {
		for range seconds {
			if err := l.w.e.Clock().Advance(time.Second); err != nil {
				t.Error(err)
			}
		}
	})
	histories := make([][]porcupine.Operation, linearClients)
	var begun atomic.Int64
	for client := range linearClients {
		clients.Go(func() {
			c := &linearClient{run: l, id: client, rng: l.rng(uint64(client)), seen: map[string]string{}}
			for n := begun.Add(1); n <= linearOps; n = begun.Add(1) {
				if n%linearPace == 0 {
					seconds <- struct{}{}
				}
				o, err := c.request()
				if err != nil {
					t.Error(err)
					return
				}
				histories[client] = append(histories[client], o)
			}
		})
	}
	clients.Wait()
	close(seconds)
	clock.Wait()
	return slices.Concat(histories...)
}

// linearClient is one client. It remembers the last etag of each item that it saw.
type linearClient struct {
	run  *linearRun
	id   int
	rng  *rand.Rand
	seen map[string]string
}

// request makes a request, and records the result.
func (c *linearClient) request() (porcupine.Operation, error) {
	i := c.rng.IntN(linearItems)
	in := linearInput{
		item: fmt.Sprint("item ", i),
		op:   []store.Op{opRead, opRead, opRead, store.Upsert, store.Upsert, store.Create, store.Create, store.Replace, store.Delete, opTouch, store.Undelete}[c.rng.IntN(11)],
		ttl:  []catalog.TTL{catalog.TTLAbsent, catalog.TTLAbsent, catalog.TTLForever, 1, 2, 3}[c.rng.IntN(6)],
	}
	if in.op == store.Undelete && c.run.container.ExpireAtPath != nil { // its deadline is by another reading of the clock
		in.op = opRead
	}
	if in.op == store.Undelete && in.ttl == catalog.TTLAbsent {
		in.ttl = 2
	}
	target := item("c", c.run.keys[i], in.item)
	now := c.run.w.e.Clock().Now
	if c.run.container.ExpireAtPath != nil && in.op > opRead && in.op != store.Delete && c.rng.IntN(2) == 0 {
		in.at = now()/1000 - 1 + c.rng.Int64N(5)
	}
	if in.op > opRead && in.op != store.Create && in.op != store.Undelete && c.rng.IntN(3) == 0 {
		in.ifMatch = c.seen[in.item]
	}
	o := porcupine.Operation{ClientId: c.id, Input: in, Call: c.run.instants.Add(1)}
	out := linearOutput{lo: now()}
	res, err := c.do(in, target, c.run.keys[i])
	out.hi = now()
	o.Return = c.run.instants.Add(1)
	if err := out.judge(in, res, err); err != nil {
		return o, fmt.Errorf("%+v: %w", in, err)
	}
	if out.etag != "" {
		c.seen[in.item] = out.etag
	}
	o.Output = out
	return o, nil
}

func (c *linearClient) do(in linearInput, target Target, pk string) (Answer, error) {
	switch in.op {
	case opRead:
		return c.run.w.e.ReadItem(&Request{Target: target})
	case store.Undelete:
		return c.run.w.e.undelete(context.Background(), c.run.container, itemKey(c.run.container, value.PartitionKey{value.String(pk)}, in.item), in.ttl)
	case opTouch:
		return c.run.w.e.ReadItem(&Request{Target: target, SlidingTTL: "0"})
	}
	w := &Request{Target: target, Op: in.op, IfMatch: in.ifMatch}
	if in.op != store.Delete {
		more := ""
		if in.ttl != catalog.TTLAbsent {
			more = fmt.Sprintf(`"ttl":%d`, in.ttl)
		}
		if in.at != 0 {
			more = strings.Trim(fmt.Sprintf(`%s,"at":%d`, more, in.at), ",")
		}
		w.Body = body(pk, in.item, more)
	}
	return c.run.w.e.WriteItem(context.Background(), w)
}

// judge records what the answer was.
func (out *linearOutput) judge(in linearInput, res Answer, err error) error {
	out.verdict, out.etag, out.lsn = verdictDone, res.ETag, res.LSN
	switch {
	case errors.Is(err, store.ErrNotFound):
		out.verdict = verdictNotFound
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrLive):
		out.verdict = verdictExists
	case errors.Is(err, store.ErrPrecondition):
		out.verdict = verdictPrecondition
	case err != nil:
		return err
	case in.op == opTouch && res.Charge > ru.Read(len(res.Body)):
		out.verdict = verdictTouched
	case res.Created:
		out.verdict = verdictCreated
	}
	if err == nil && in.op > opRead && in.op != store.Delete {
		_, out.ts = systemProperties(res.Body)
	}
	return nil
}
