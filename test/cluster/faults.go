// SPDX-License-Identifier: MIT

// What goes wrong in a trial, and how long service takes to return.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// killLimit is how long service may take to return after a process was killed, and
	// cutLimit after a node stood still or was cut off.
	killLimit = 4 * time.Second
	cutLimit  = 10 * time.Second
	// giveUp is how long service is waited for before the trial ends.
	giveUp = time.Minute

	probeEvery = 200 * time.Millisecond
	// hold is how long a node stands still, or a link is bad.
	hold = 5 * time.Second
	// deafTime is how long answers are lost: some hundred commits have no outcome then.
	deafTime = 1500 * time.Millisecond
)

// fault is a kind of fault. begin and end are of the nodes that it hits.
type fault struct {
	name  string
	hits  int
	hold  time.Duration // 0: until service is back
	limit time.Duration // for the return of service through the other nodes
	begin func(t *trial, n *node) error
	end   func(t *trial, n *node) error
	// orderly says that service should go on while it begins.
	orderly bool
	// splits says that it comes while a partition is split, to the node that does that. If it
	// hits none, the split is all that happens.
	splits bool
}

func bad(of func(*node) proxies, to link) func(*trial, *node) error {
	return func(t *trial, n *node) error {
		return of(n).set(to, time.Duration(20+t.random.IntN(130))*time.Millisecond)
	}
}

func toEngine(n *node) proxies { return n.engine }
func toPeers(n *node) proxies  { return n.peers }

func start(_ *trial, n *node) error { return n.start() }
func stop(_ *trial, n *node) error  { return n.stop() }
func kill(_ *trial, n *node) error  { return n.kill() }

func restart(_ *trial, n *node) error { return errors.Join(n.stop(), n.start()) }

func send(s syscall.Signal) func(*trial, *node) error {
	return func(_ *trial, n *node) error { return n.signal(s) }
}

// faults is the order of a trial, which begins anew after the last. So each run of a minute
// and a half has most of them.
var faults = []fault{
	{name: "split", limit: cutLimit, orderly: true, splits: true},
	{name: "kill -9", hits: 1, limit: killLimit, begin: kill, end: start},
	{name: "SIGSTOP", hits: 1, hold: hold, limit: cutLimit, begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT)},
	{name: "engine cut", hits: 1, hold: hold, limit: cutLimit, begin: bad(toEngine, cut), end: bad(toEngine, whole)},
	{name: "engine deaf", hits: 1, hold: deafTime, limit: cutLimit, begin: bad(toEngine, deaf), end: bad(toEngine, whole)},
	{name: "kill -9 and restart at once", hits: 1, hold: time.Nanosecond, limit: killLimit, begin: kill, end: start},
	{name: "kill -9 in a split", hits: 1, limit: killLimit, begin: kill, end: start, splits: true},
	{name: "peers silent", hits: 1, hold: hold, limit: cutLimit, begin: bad(toPeers, silent), end: bad(toPeers, whole)},
	{name: "engine silent", hits: 1, hold: hold, limit: cutLimit, begin: bad(toEngine, silent), end: bad(toEngine, whole)},
	{name: "kill -9", hits: 1, limit: killLimit, begin: kill, end: start},
	{name: "SIGSTOP in a split", hits: 1, hold: hold, limit: cutLimit, begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT), splits: true},
	{name: "drain", hits: 1, hold: hold, limit: cutLimit, begin: (*trial).drain, end: restart, orderly: true},
	{name: "peers deaf", hits: 1, hold: deafTime, limit: cutLimit, begin: bad(toPeers, deaf), end: bad(toPeers, whole)},
	{name: "engine slow", hits: 1, hold: hold, limit: cutLimit, begin: bad(toEngine, slow), end: bad(toEngine, whole)},
	{name: "engine deaf in a split", hits: 1, hold: deafTime, limit: cutLimit, begin: bad(toEngine, deaf), end: bad(toEngine, whole), splits: true},
	{name: "kill -9 of two", hits: 2, limit: killLimit, begin: kill, end: start},
	{name: "peers cut", hits: 1, hold: hold, limit: cutLimit, begin: bad(toPeers, cut), end: bad(toPeers, whole)},
	{name: "engine mute", hits: 1, hold: deafTime, limit: cutLimit, begin: bad(toEngine, mute), end: bad(toEngine, whole)},
	{name: "engine cut in a split", hits: 1, hold: hold, limit: cutLimit, begin: bad(toEngine, cut), end: bad(toEngine, whole), splits: true},
	{name: "SIGSTOP", hits: 1, hold: hold, limit: cutLimit, begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT)},
	{name: "peers slow", hits: 1, hold: hold, limit: cutLimit, begin: bad(toPeers, slow), end: bad(toPeers, whole)},
	{name: "kill -9", hits: 1, limit: killLimit, begin: kill, end: start},
	{name: "SIGTERM", hits: 1, hold: time.Nanosecond, limit: cutLimit, begin: stop, end: start, orderly: true},
	{name: "peers mute", hits: 1, hold: deafTime, limit: cutLimit, begin: bad(toPeers, mute), end: bad(toPeers, whole)},
}

// cutsEngine reports whether the fault is one of the links to the engine.
func (f *fault) cutsEngine() bool { return strings.HasPrefix(f.name, "engine ") }

// drain has a node give its partitions up, by way of another.
func (t *trial) drain(n *node) error {
	i := slices.Index(t.nodes, n)
	by := t.nodes[(i+1)%len(t.nodes)]
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	res, err := t.client.admin(ctx, by, http.MethodPost, "cluster", mustJSON(map[string]string{"drain": n.name}))
	if err != nil || res.status != http.StatusOK {
		return fmt.Errorf("drain node %s: %d %s: %w", n.name, res.status, brief(res.body), err)
	}
	return nil
}

// inflict does one fault after the other until ctx ends, and heals everything.
func (t *trial) inflict(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		f := &faults[i%len(faults)]
		if f.cutsEngine() && len(t.nodes[0].engine) == 0 {
			continue
		}
		if err := t.suffer(f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second + time.Duration(t.random.Int64N(int64(time.Second)))):
		}
	}
	return nil
}

// suffer does one fault, and measures until service has returned: through the nodes that it
// does not hit, and then through all.
func (t *trial) suffer(f *fault) error {
	owned := t.owners()
	order := make([]*node, len(t.nodes))
	for i, k := range t.random.Perm(len(t.nodes)) {
		order[i] = t.nodes[k]
	}
	if t.random.IntN(4) > 0 { // mostly owners are hit
		slices.SortStableFunc(order, func(a, b *node) int { return owned[b.name] - owned[a.name] })
	}
	if f.splits {
		s, err := t.beginSplit()
		if err != nil {
			return err
		}
		slices.SortStableFunc(order, func(a, b *node) int { return rank(a.name == s.node) - rank(b.name == s.node) })
		if f.hits == 0 {
			began := time.Now()
			watch := t.watch(began, t.nodes)
			if t.splitTime, err = t.settle(s.container, order[0]); err != nil {
				return err
			}
			return t.recover(f, nil, owned, began, watch)
		}
		time.Sleep(time.Duration(t.random.Int64N(int64(t.splitTime)*5/4 + 1))) // the end of a split is the most delicate
	}
	hit, others := order[:f.hits], order[f.hits:]
	began := time.Now()
	if f.orderly {
		watch := t.watch(began, others)
		if err := each(hit, t, f.begin); err != nil {
			return err
		}
		return t.recover(f, hit, owned, began, watch)
	}
	if err := each(hit, t, f.begin); err != nil {
		return err
	}
	began = time.Now()
	return t.recover(f, hit, owned, began, t.watch(began, others))
}

// rank sorts what is to be first before the rest.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

func each(nodes []*node, t *trial, do func(*trial, *node) error) error {
	var errs error
	for _, n := range nodes {
		errs = errors.Join(errs, do(t, n))
	}
	return errs
}

func (t *trial) recover(f *fault, hit []*node, owned map[string]int, began time.Time, watch <-chan back) error {
	var first back
	if f.hold == 0 {
		first = <-watch
	} else {
		time.Sleep(f.hold)
	}
	if err := each(hit, t, f.end); err != nil {
		return err
	}
	if f.hold != 0 {
		first = <-watch
	}
	for _, n := range hit {
		if err := n.ready(t.client); err != nil {
			return err
		}
	}
	ready := time.Since(began)
	all := <-t.watch(time.Now(), t.nodes)
	names := ""
	for _, n := range hit {
		names += " " + n.name
	}
	slowest := ""
	if first.took > f.limit/2 {
		slowest = ", last " + first.where
	}
	fmt.Printf("%8s  %-28s node%s of %v: service after %.2f s%s; the node ready at %.1f s, all served at once %.2f s later\n",
		time.Since(t.began).Round(100*time.Millisecond), f.name, names, fmt.Sprint(owned)[3:], first.took.Seconds(), slowest, ready.Seconds(), all.took.Seconds())
	t.returns[f.name] = append(t.returns[f.name], first.took)
	t.wholes = append(t.wholes, all.took)
	if first.took > f.limit+t.allowance {
		t.load.record.violation("after %q of node%s, service returned after %.2f s, not within %v (and %v for a busy machine): %s", f.name, names, first.took.Seconds(), f.limit, t.allowance, first.where)
	}
	if all.took > cutLimit+t.allowance {
		t.load.record.violation("after %q of node%s was over, service through all nodes returned after %.2f s, not within %v (and %v for a busy machine): %s", f.name, names, all.took.Seconds(), cutLimit, t.allowance, all.where)
	}
	if first.err != nil || all.err != nil {
		return fmt.Errorf("service has not returned: %w", errors.Join(first.err, all.err))
	}
	for _, n := range t.nodes {
		select {
		case <-n.running().ended:
			return fmt.Errorf("node %s ended by itself: %v", n.name, n.running().err)
		default:
		}
	}
	return nil
}

// back is when service has returned, and where last.
type back struct {
	took  time.Duration
	where string
	err   error
}

// watch writes to each partition through each of the nodes until that succeeds. A new attempt
// begins every probeEvery, whether the ones before have an answer or not.
func (t *trial) watch(began time.Time, through []*node) <-chan back {
	result := make(chan back, 1)
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		last back
	)
	for _, n := range through {
		for _, c := range t.load.containers {
			for partition, pk := range c.probes {
				all.Go(func() {
					took, err := t.probe(ctx, began, n, c, pk)
					mu.Lock()
					defer mu.Unlock()
					if took > last.took {
						last.took, last.where = took, fmt.Sprintf("partition %s of %s through node %s", partition, c.name, n.name)
					}
					last.err = errors.Join(last.err, err)
				})
			}
		}
	}
	go func() {
		all.Wait()
		cancel()
		result <- last
	}()
	return result
}

// probe returns how long it took until a write of one partition through one node succeeded.
func (t *trial) probe(ctx context.Context, began time.Time, n *node, c *container, pk string) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ok := make(chan time.Duration, 1)
	why := make(chan string, 1)
	for {
		go func() {
			res, err := t.client.do(ctx, n, probeRequest(c, pk))
			if err == nil && (res.status == http.StatusOK || res.status == http.StatusCreated) {
				select {
				case ok <- time.Since(began):
				default:
				}
				return
			}
			select {
			case <-why:
			default:
			}
			select {
			case why <- fmt.Sprintf("%d %s %v", res.status, brief(res.body), err):
			default:
			}
		}()
		select {
		case took := <-ok:
			return took, nil
		case <-ctx.Done():
			last := "no answer"
			select {
			case last = <-why:
			default:
			}
			return time.Since(began), fmt.Errorf("writes of key %s in %s through node %s: %s", pk, c.name, n.name, last)
		case <-time.After(probeEvery):
		}
	}
}

func probeRequest(c *container, pk string) request {
	header := keyHeader(pk)
	header["x-ms-documentdb-is-upsert"] = "True"
	return request{method: http.MethodPost, kind: "docs", link: c.link(), path: c.link() + "/docs", header: header,
		body: mustJSON(map[string]any{"id": "probe", "pk": pk, "at": rand.Int64(), "ttl": -1})}
}
