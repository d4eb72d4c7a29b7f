// SPDX-License-Identifier: MIT

// What requests cost: processor time of the nodes and of PostgreSQL, and round trips.

package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// costTime is how long requests of one kind are sent, and costWarm before that.
	costTime = 5 * time.Second
	costWarm = time.Second
	// costGroups are found by queries, each of costGroup items.
	costGroups = 20
	costGroup  = 100
	// tick is the unit in which Linux tells the processor time of a process.
	tick = time.Second / 100
)

// cost is what has been used so far.
type cost struct {
	at                      time.Time
	requests                int64
	owner, passer, db       time.Duration // processor time
	ownerTrips, passerTrips int64
}

// costs prints what requests cost at a node that owns the partition, and through one that
// owns nothing. Between each node and PostgreSQL is a proxy, whose time is not counted.
func (t *trial) costs() error {
	defer t.tearDown()
	if t.engine != "postgres" {
		return errors.New("-costs measures PostgreSQL only")
	}
	if err := t.setUp(2); err != nil {
		return err
	}
	db, owner, passer := t.db.(*postgres), t.nodes[0], t.nodes[1]
	trips := map[*node]*atomic.Int64{}
	for _, n := range t.nodes {
		count := &atomic.Int64{}
		trips[n] = count
		n.engine[0].watch(func() io.Writer { return &questions{count: count} })
		// All connections are made again, so that none is without its counter.
		if err := n.stop(); err != nil {
			return err
		}
		if err := n.start(); err != nil {
			return err
		}
		if err := n.ready(t.client); err != nil {
			return err
		}
	}
	res, err := t.client.admin(context.Background(), passer, http.MethodPost, "cluster", mustJSON(map[string]string{"drain": passer.name}))
	if err == nil && res.status != http.StatusOK {
		err = fmt.Errorf("%d %s", res.status, brief(res.body))
	}
	if err != nil {
		return fmt.Errorf("drain node %s: %w", passer.name, err)
	}
	c := &container{name: "costs", ttl: -1, throughput: "400", partitions: 1}
	if err := t.createContainers(c); err != nil {
		return err
	}
	w := &costly{c: c}
	for _, pk := range c.probes {
		w.pk = pk
	}
	for range costGroups * costGroup {
		if err := w.send(t.client, owner, w.create()); err != nil {
			return err
		}
	}
	read := func() (now cost, err error) {
		now = cost{at: time.Now(), requests: w.sent.Load(), ownerTrips: trips[owner].Load(), passerTrips: trips[passer].Load()}
		if now.owner, _, err = timeOf(owner.running().cmd.Process.Pid); err != nil {
			return now, err
		}
		if now.passer, _, err = timeOf(passer.running().cmd.Process.Pid); err != nil {
			return now, err
		}
		now.db, err = db.time()
		return now, err
	}
	var idle cost
	if idle, err = read(); err != nil {
		return err
	}
	time.Sleep(costTime)
	now, err := read()
	if err != nil {
		return err
	}
	seconds := now.at.Sub(idle.at).Seconds()
	fmt.Printf("in each second, without requests: owner %.0f µs, other node %.0f µs, PostgreSQL %.0f µs, %.1f + %.1f round trips\n",
		micros(now.owner-idle.owner)/seconds, micros(now.passer-idle.passer)/seconds, micros(now.db-idle.db)/seconds,
		float64(now.ownerTrips-idle.ownerTrips)/seconds, float64(now.passerTrips-idle.passerTrips)/seconds)
	fmt.Println("| request | clients | owner | passed on by | PostgreSQL | round trips |\n| --- | --- | --- | --- | --- | --- |")
	for _, clients := range []int{1, 16} {
		for _, kind := range []struct {
			name string
			next func() request
		}{{"create", w.create}, {"read", w.read}, {"query of 100", w.query}} {
			for _, via := range t.nodes {
				if err := w.load(clients, via, kind.next, costWarm); err != nil {
					return err
				}
				before, err := read()
				if err != nil {
					return err
				}
				if err := w.load(clients, via, kind.next, costTime); err != nil {
					return err
				}
				after, err := read()
				if err != nil {
					return err
				}
				n := float64(after.requests - before.requests)
				where, passed := "at the owner", ""
				asked := fmt.Sprintf("%.1f", float64(after.ownerTrips-before.ownerTrips)/n)
				if via == passer {
					where, passed = "through another node", fmt.Sprintf("%.0f µs", micros(after.passer-before.passer)/n)
					asked += fmt.Sprintf(" + %.1f", float64(after.passerTrips-before.passerTrips)/n)
				}
				fmt.Printf("| %s, %s | %d | %.0f µs | %s | %.0f µs | %s |\n", kind.name, where, clients,
					micros(after.owner-before.owner)/n, passed, micros(after.db-before.db)/n, asked)
			}
		}
	}
	if all := t.owners(); all[owner.name] != 1 || all[passer.name] != 0 {
		return fmt.Errorf("the nodes have %v partitions: what is printed is not what it says", all)
	}
	return t.endNodes()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// costly sends requests to one partition.
type costly struct {
	c       *container
	pk      string
	created atomic.Int64
	turn    atomic.Int64 // chooses what is read
	sent    atomic.Int64
}

// load has clients send requests, for some time.
func (w *costly) load(clients int, via *node, next func() request, length time.Duration) error {
	var (
		all    sync.WaitGroup
		failed atomic.Pointer[error]
		until  = time.Now().Add(length)
	)
	for range clients {
		all.Go(func() {
			for c := newClient([]*node{via}); failed.Load() == nil && time.Now().Before(until); {
				if err := w.send(c, via, next()); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// send sends a request, and checks that it did what is measured.
func (w *costly) send(c *client, via *node, r request) error {
	w.sent.Add(1)
	res, err := c.do(context.Background(), via, r)
	if err != nil {
		return err
	}
	var page struct{ Documents []json.RawMessage }
	asks := r.header["x-ms-documentdb-isquery"] != ""
	switch {
	case asks && res.status == http.StatusOK:
		if err := json.Unmarshal(res.body, &page); err != nil || len(page.Documents) != costGroup {
			return fmt.Errorf("a query found %d items, not %d: %s (%v)", len(page.Documents), costGroup, brief(res.body), err)
		}
		return nil
	case r.method == http.MethodGet && res.status == http.StatusOK, r.method == http.MethodPost && !asks && res.status == http.StatusCreated:
		return nil
	}
	return fmt.Errorf("%s /%s: %d %s", r.method, r.path, res.status, brief(res.body))
}

// request returns a request for items, at the path of its resource or of the feed.
func (w *costly) request(method, id string, body any) request {
	r := request{method: method, kind: "docs", link: w.c.link(), path: w.c.link() + "/docs", header: keyHeader(w.pk)}
	if id != "" {
		r.path += "/" + id
		r.link = r.path
	}
	if body != nil {
		r.body = mustJSON(body)
	}
	return r
}

// create returns the request that creates the next item, which has eight indexed properties
// besides its id and its partition key. The first items are in groups; later ones are not.
func (w *costly) create() request {
	i := w.created.Add(1) - 1
	group := i / costGroup
	if group >= costGroups {
		group = -1
	}
	return w.request(http.MethodPost, "", map[string]any{
		"id": "i" + strconv.FormatInt(i, 10), "pk": w.pk, "group": group, "number": i, "tenth": i % 10, "name": fmt.Sprint("name ", i),
		"even": i%2 == 0, "city": fmt.Sprint("city ", i%50), "price": float64(i%1000) / 4, "word": fmt.Sprint("word ", i%100),
	})
}

// read returns a request that reads an item by its id.
func (w *costly) read() request {
	i := w.turn.Add(1) * 7919 % (costGroups * costGroup)
	return w.request(http.MethodGet, "i"+strconv.FormatInt(i, 10), nil)
}

// query returns a request that finds the items of a group.
func (w *costly) query() request {
	r := w.request(http.MethodPost, "", map[string]any{
		"query":      `SELECT * FROM c WHERE c["group"] = @group`,
		"parameters": []map[string]any{{"name": "@group", "value": w.turn.Add(1) % costGroups}},
	})
	r.header["Content-Type"], r.header["x-ms-documentdb-isquery"] = "application/query+json", "True"
	r.header["x-ms-max-item-count"] = strconv.Itoa(costGroup)
	return r
}

// questions counts the round trips that one connection to PostgreSQL asks for: a client waits
// for an answer after each message Query or Sync. It is told what the client sends.
type questions struct {
	count *atomic.Int64
	begun bool   // the first message, which has no kind, is over
	head  []byte // what has come of the head of a message
	left  int    // what is to come of its body
}

// Messages of clients after which PostgreSQL answers that it is ready for the next, in its
// protocol, version 3.
const (
	messageQuery = 'Q'
	messageSync  = 'S'
)

// Write implements io.Writer. It never fails.
func (q *questions) Write(b []byte) (int, error) {
	all := len(b)
	for len(b) > 0 {
		if q.left > 0 {
			n := min(q.left, len(b))
			q.left, b = q.left-n, b[n:]
			continue
		}
		size := 4 // a length, which counts itself
		if q.begun {
			size = 5 // and the kind before it
		}
		n := min(size-len(q.head), len(b))
		q.head, b = append(q.head, b[:n]...), b[n:]
		if len(q.head) < size {
			break
		}
		if q.begun && (q.head[0] == messageQuery || q.head[0] == messageSync) {
			q.count.Add(1)
		}
		q.left = max(0, int(binary.BigEndian.Uint32(q.head[size-4:]))-4)
		q.begun, q.head = true, q.head[:0]
	}
	return all, nil
}

// timeOf returns the processor time of a process, and of those of its children that have
// ended.
func timeOf(pid int) (own, ended time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name of the process, in parentheses, may have spaces in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks [4]int
	for i := range ticks {
		var bad error
		ticks[i], bad = strconv.Atoi(fields[11+i])
		err = cmp.Or(err, bad)
	}
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, err
}

// time returns the processor time of all processes of PostgreSQL so far.
func (p *postgres) time() (total time.Duration, err error) {
	parent, children, err := p.processes()
	if err != nil {
		return 0, err
	}
	own, ended, err := timeOf(parent)
	total = own + ended
	for _, pid := range children {
		if own, _, err := timeOf(pid); err == nil { // else it has ended
			total += own
		}
	}
	return total, err
}
