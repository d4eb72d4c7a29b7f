// SPDX-License-Identifier: MIT

// Clients of all nodes, and the record of what they asked and what they were told.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	clientsPerNode = 4
	// itemsAtOnce is how many items of a container are in use at a time. After
	// generationTime others follow, so that the history of each is short enough to be judged.
	itemsAtOnce    = 8
	generationTime = 8 * time.Second
	// pace is how long a client pauses between two requests, on average.
	pace = 20 * time.Millisecond

	databaseLink = "dbs/faults"
)

// container is a container of the trial.
type container struct {
	name       string
	ttl        int // its default, in seconds
	throughput string
	partitions int
	// probes has a partition key in each partition, by its range.
	probes map[string]string
}

func (c *container) link() string { return databaseLink + "/colls/" + c.name }

// operation is a request of a client for one item, with its answer.
type operation struct {
	node, pk string
	asked
	told
	// call and end count nanoseconds since the trial began, by this process's watch.
	call, end int64
}

// row is an item in the answer to a query.
type row struct {
	ID string `json:"id"`
	V  int64  `json:"v"`
	TS int64  `json:"_ts"`
}

// page is a page of a query's answer.
type page struct {
	rows []row
	at   moment
}

// query is a query for all items of a generation.
type query struct {
	node      string
	container *container
	gen       int
	pages     []page
	call, end int64
}

// record is what the clients have seen.
type record struct {
	mu         sync.Mutex
	operations []operation
	queries    []query
	// refused has writes that were answered with "nothing was changed".
	refused    map[int64]string
	violations []string
	counts     map[string]int
}

const maxViolations = 50

func (r *record) violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.violations) < maxViolations {
		text := fmt.Sprintf(format, args...)
		fmt.Println("VIOLATION:", text)
		r.violations = append(r.violations, text)
	}
}

func (r *record) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// load is all clients.
type load struct {
	nodes      []*node
	containers []*container
	record     *record
	began      time.Time
	versions   atomic.Int64
	lagMs      int64 // how far the engine's time may be behind
	seed       uint64
}

func (l *load) watch() int64 { return int64(time.Since(l.began)) }

func (l *load) generation() int { return int(time.Since(l.began) / generationTime) }

// run has the clients at work until ctx ends.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	for i, n := range l.nodes {
		for j := range clientsPerNode {
			w := &worker{load: l, node: n, http: newClient(l.nodes), random: rand.New(rand.NewPCG(l.seed, uint64(i*clientsPerNode+j))), etags: map[string]seen{}}
			all.Go(func() { w.run(ctx) })
		}
	}
	all.Wait()
}

// worker is one client.
type worker struct {
	load   *load
	node   *node
	http   *client
	random *rand.Rand
	etags  map[string]seen // of items that it saw
}

// seen is a version of an item.
type seen struct {
	etag string
	v    int64
}

func (w *worker) run(ctx context.Context) {
	for gen := -1; ctx.Err() == nil; {
		if now := w.load.generation(); now != gen {
			gen = now
			clear(w.etags)
		}
		c := w.load.containers[w.random.IntN(len(w.load.containers))]
		if w.random.IntN(15) == 0 {
			w.query(c, gen)
		} else {
			w.item(c, w.choose(c, gen), gen)
		}
		time.Sleep(time.Duration(w.random.Int64N(int64(2 * pace))))
	}
}

func itemName(gen, i int) string { return fmt.Sprintf("g%d-%d", gen, i) }

func pkOf(i int) string { return fmt.Sprintf("key%d", i) }

// choose chooses a request for an item.
func (w *worker) choose(c *container, gen int) operation {
	i := w.random.IntN(itemsAtOnce)
	o := operation{node: w.node.name, pk: pkOf(i), asked: asked{
		item: c.name + "/" + itemName(gen, i),
		verb: []verb{read, read, read, read, create, create, upsert, upsert, upsert, replace, replace, remove}[w.random.IntN(12)],
	}}
	if o.verb == read {
		return o
	}
	o.asked.v = w.load.versions.Add(1)
	if o.verb != remove {
		o.ttl = []int{0, -1, 1, 1, 2, 3}[w.random.IntN(6)]
	}
	if known, ok := w.etags[o.item]; ok && o.verb != create && w.random.IntN(3) == 0 {
		o.ifMatch = known.v
	}
	return o
}

// item makes a request for an item, and records its answer.
func (w *worker) item(c *container, o operation, gen int) {
	_, id := splitItem(o.item)
	r := request{method: http.MethodGet, kind: "docs", link: c.link() + "/docs/" + id, header: keyHeader(o.pk)}
	r.path = r.link
	switch o.verb {
	case create, upsert:
		r.method, r.link, r.path = http.MethodPost, c.link(), c.link()+"/docs"
	case replace:
		r.method = http.MethodPut
	case remove:
		r.method = http.MethodDelete
	}
	if o.verb == upsert {
		r.header["x-ms-documentdb-is-upsert"] = "True"
	}
	if o.verb != read && o.verb != remove {
		r.body = mustJSON(content{ID: id, PK: o.pk, Gen: gen, V: o.asked.v, TTL: o.ttl})
	}
	if o.ifMatch != 0 {
		r.header["If-Match"] = w.etags[o.item].etag
	}
	o.call = w.load.watch()
	sent := time.Now().UnixMilli()
	res, err := w.http.do(context.Background(), w.node, r)
	received := time.Now().UnixMilli()
	o.end = w.load.watch()
	rec := w.load.record
	switch {
	case errors.Is(err, errNotSent):
		rec.count("not sent")
		time.Sleep(pace) // there is no process
		return
	case err != nil:
		rec.count("no answer")
		o.verdict, o.at = unknown, moment{sent - w.load.lagMs, 0}
	default:
		if !w.judge(&o, res, sent, received) {
			return
		}
	}
	if o.verdict == unknown && o.verb == read {
		return
	}
	rec.mu.Lock()
	rec.operations = append(rec.operations, o)
	rec.mu.Unlock()
}

// judge fills in what an answer says. It returns false if that says nothing about the item.
func (w *worker) judge(o *operation, res reply, sent, received int64) bool {
	rec := w.load.record
	sub := res.header.Get("x-ms-substatus")
	rec.count(fmt.Sprint("status ", res.status))
	switch {
	case res.status == http.StatusRequestTimeout && o.verb != read:
		o.verdict, o.at = unknown, moment{sent - w.load.lagMs, 0}
		return true
	case res.status == http.StatusServiceUnavailable, res.status == http.StatusTooManyRequests, res.status == http.StatusRequestTimeout, res.status == 449:
		if o.asked.v != 0 {
			rec.mu.Lock()
			rec.refused[o.asked.v] = fmt.Sprintf("%d %s", res.status, brief(res.body))
			rec.mu.Unlock()
		}
		return false
	}
	at, err := res.moment()
	if err != nil {
		rec.violation("%s of %s by node %s: %v", o.verb, o.item, o.node, err)
		return false
	}
	if at.lo < sent-1-w.load.lagMs || at.hi > received+1 || at.lo > at.hi {
		rec.violation("%s of %s by node %s was sent at %d and answered at %d, but its moments are %d to %d", o.verb, o.item, o.node, sent, received, at.lo, at.hi)
	}
	o.at = at
	var item content
	switch {
	case res.status == http.StatusOK, res.status == http.StatusCreated:
		if err := json.Unmarshal(res.body, &item); err != nil || item.V == 0 || item.TS == 0 {
			rec.violation("%s of %s was answered with %s", o.verb, o.item, brief(res.body))
			return false
		}
		o.verdict, o.told.v, o.tsMs = done, item.V, item.TS*1000
		if res.status == http.StatusCreated {
			o.verdict = created
		}
		w.etags[o.item] = seen{item.ETag, item.V}
	case res.status == http.StatusNoContent && o.verb == remove:
		o.verdict = done
	case res.status == http.StatusNotFound && (sub == "" || sub == "0"):
		o.verdict = notFound
	case res.status == http.StatusConflict:
		o.verdict = exists
	case res.status == http.StatusPreconditionFailed:
		o.verdict = precondition
	default:
		rec.violation("%s of %s by node %s was answered with %d/%s: %s", o.verb, o.item, o.node, res.status, sub, brief(res.body))
		return false
	}
	if o.verdict == done || o.verdict == created || o.verb == read {
		if o.lsn, err = res.lsn(); err != nil {
			rec.violation("%s of %s has the lsn %q", o.verb, o.item, res.header.Get("lsn"))
		}
	}
	return true
}

// query asks for all items of a generation, and records its pages.
func (w *worker) query(c *container, gen int) {
	q := query{node: w.node.name, container: c, gen: gen, call: w.load.watch()}
	body := mustJSON(map[string]any{
		"query":      "SELECT c.id, c.v, c._ts FROM c WHERE c.gen = @gen",
		"parameters": []map[string]any{{"name": "@gen", "value": gen}},
	})
	next := ""
	for {
		r := request{method: http.MethodPost, kind: "docs", link: c.link(), path: c.link() + "/docs", body: body, header: map[string]string{
			"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True", "x-ms-max-item-count": "5",
		}}
		if next != "" {
			r.header["x-ms-continuation"] = next
		}
		res, err := w.http.do(context.Background(), w.node, r)
		if err != nil {
			w.load.record.count("query without an answer")
			return
		}
		w.load.record.count(fmt.Sprint("query status ", res.status))
		switch res.status {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout:
			return
		}
		at, err := res.moment()
		var answer struct{ Documents []row }
		if res.status != http.StatusOK || err != nil || json.Unmarshal(res.body, &answer) != nil {
			w.load.record.violation("a query by node %s was answered with %d: %s (%v)", q.node, res.status, brief(res.body), err)
			return
		}
		q.pages = append(q.pages, page{answer.Documents, at})
		if next = res.header.Get("x-ms-continuation"); next == "" {
			break
		}
	}
	q.end = w.load.watch()
	w.load.record.mu.Lock()
	defer w.load.record.mu.Unlock()
	w.load.record.queries = append(w.load.record.queries, q)
}

// readAll reads every item of the trial once more, through one node or another.
func (l *load) readAll() {
	var all sync.WaitGroup
	gens := l.generation() + 1
	for i, n := range l.nodes {
		w := &worker{load: l, node: n, http: newClient(l.nodes), etags: map[string]seen{}}
		all.Go(func() {
			for gen := range gens {
				for k := range itemsAtOnce {
					for _, c := range l.containers {
						if (gen+k)%len(l.nodes) == i {
							w.item(c, operation{node: n.name, pk: pkOf(k), asked: asked{item: c.name + "/" + itemName(gen, k), verb: read}}, gen)
						}
					}
				}
			}
		})
	}
	all.Wait()
}
