// SPDX-License-Identifier: MIT

// Cluster runs three nodes, as real processes, on one PostgreSQL or one PD with a store, with
// clients on all, and does to them what happens to servers: processes are killed, stand still
// and are drained; links to the engine and between the nodes are cut, silent, slow, or lose
// what goes one way. Partitions are split meanwhile. The nodes' wall clocks are hours apart all
// the time.
//
// What must hold: for each item some order of the requests explains all answers, with its
// expiry at one instant on all nodes. No acknowledged write is lost, and none happened whose
// client was told that nothing was changed. Nothing is written to a partition but by the
// process that claimed it last, which only PostgreSQL's log shows. A split leaves the parent or
// both children. Moments grow with the time. Service returns in time. At the end all rows are
// checked.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// errBroken: the cluster broke one of these promises.
var errBroken = errors.New("promises were broken")

// wallOffsets are how far the nodes' wall clocks are off.
var wallOffsets = map[string]time.Duration{"a": time.Hour, "b": -time.Hour, "c": 0}

func main() {
	var (
		engine    = flag.String("engine", "postgres", "the storage `engine`: postgres, or tikv for PD and unistore")
		binary    = flag.String("mayfly", "", "the server's `binary`, whose time package adds WALL_OFFSET_SECONDS")
		logs      = flag.String("logs", "", "an empty `directory` for the nodes' logs")
		length    = flag.Duration("for", 90*time.Second, "how long faults happen")
		allowance = flag.Duration("busy", 2*time.Second, "what is added to the limits for the return of service, on a busy machine")
		seed      = flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses the requests and the faults, though not what the machine makes of them")
		sizes     = flag.Int("sizes", 0, "measure what open partitions take instead, on a node with so many `connections` at most")
		costs     = flag.Bool("costs", false, "measure what requests cost instead: processor time and round trips")
	)
	flag.Parse()
	if *binary == "" || *logs == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Printf("seed %d, logs in %s\n", *seed, *logs)
	t := &trial{engine: *engine, binary: *binary, logs: *logs, allowance: *allowance, random: rand.New(rand.NewPCG(*seed, 0)), returns: map[string][]time.Duration{}}
	t.load = &load{seed: *seed, record: &record{refused: map[int64]string{}, counts: map[string]int{}}}
	run := func() error { return t.run(*length) }
	if *sizes > 0 {
		run = func() error { return t.measure(*sizes) }
	}
	if *costs {
		run = t.costs
	}
	err := run()
	if errors.Is(err, errAbsent) && *engine == "postgres" && os.Getenv("MAYFLY_REQUIRE_POSTGRES") == "" && os.Getenv("CI") == "" {
		fmt.Println("SKIPPED:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// trial is the whole run.
type trial struct {
	engine       string
	binary, logs string
	allowance    time.Duration
	random       *rand.Rand
	began        time.Time
	db           engine
	nodes        []*node
	client       *client  // of the trial itself
	more         []string // flags of the nodes
	load         *load

	splits []*splitting
	// splitTime is about how long a split takes.
	splitTime time.Duration
	returns   map[string][]time.Duration
	wholes    []time.Duration
}

func (t *trial) run(length time.Duration) error {
	defer t.tearDown()
	if err := t.setUp(3); err != nil {
		return err
	}
	ctx := context.Background()
	var log *audit
	if db, ok := t.db.(*postgres); ok {
		c, err := db.connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		log = newAudit(c, t.load.record.violation)
		if err := log.prepare(ctx); err != nil {
			return err
		}
	} else {
		fmt.Println("LEFT OUT: the audit of who wrote what, which reads PostgreSQL's log. A stale writer shows in the answers, and in the check of all rows.")
	}
	t.load.containers = []*container{
		{name: "narrow", ttl: -1, throughput: "400", partitions: 1},
		{name: "wide", ttl: 3, throughput: "21000", partitions: 4},
	}
	if err := t.createContainers(t.load.containers...); err != nil {
		return err
	}
	for _, c := range t.load.containers {
		if err := t.addBallast(c); err != nil {
			return err
		}
	}
	if err := t.wrongDates(); err != nil {
		return err
	}
	if first := <-t.watch(time.Now(), t.nodes); first.err != nil {
		return first.err
	}
	auditing, endAudit := context.WithCancel(ctx)
	audited := make(chan error, 1)
	go func() {
		if log == nil {
			audited <- nil
			return
		}
		audited <- log.run(auditing)
	}()
	t.began = time.Now()
	t.load.began = t.began
	loading, endLoad := context.WithCancel(ctx)
	loaded := make(chan struct{})
	go func() { t.load.run(loading); close(loaded) }()
	faulty, endFaults := context.WithTimeout(ctx, length)
	err := t.inflict(faulty)
	endFaults()
	endLoad()
	<-loaded
	if err == nil {
		t.load.readAll()
		err = errors.Join(t.judgeSplits(), t.endNodes())
	}
	endAudit()
	err = errors.Join(err, <-audited)
	fmt.Printf("the load has ended after %v; all is judged now\n", time.Since(t.began).Round(time.Second))
	items, undecided := t.load.judge()
	t.report(log, items, undecided)
	if err == nil {
		var said string
		if said, err = check(t.binary, t.db.url("check")); err == nil {
			fmt.Println("mayfly check:", said)
		}
	}
	if undecided > 0 {
		err = errors.Join(err, fmt.Errorf("%d histories were not decided in time", undecided))
	}
	if n := len(t.load.record.violations); n > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d", errBroken, n))
	}
	return err
}

// setUp starts the engine and so many nodes.
func (t *trial) setUp(count int) (err error) {
	db, err := startEngine(t.engine)
	if err != nil {
		return err
	}
	t.db = db
	t.allowance += db.patience()
	t.load.lagMs = db.lag().Milliseconds()
	port := func() (string, error) { return freePort(t.random.IntN) }
	places := db.places(count)
	for i, p := range places {
		name := string(rune('a' + i))
		n := &node{name: name, binary: t.binary, more: t.more, offset: wallOffsets[name], logs: t.logs, db: db, place: p}
		t.nodes = append(t.nodes, n)
		if n.listen, err = port(); err != nil {
			return err
		}
		if n.engine, err = db.links(n, port); err != nil {
			return err
		}
		at, err := port()
		if err != nil {
			return err
		}
		everywhere := places
		if p == nil {
			everywhere = places[:1] // it is the same one
		}
		peers, err := newProxyIn(everywhere, at, func() (net.Conn, error) { return n.place.dial("tcp", n.listen) })
		if err != nil {
			return err
		}
		n.peers = proxies{peers}
	}
	t.load.nodes = t.nodes
	t.client = newClient(t.nodes)
	for _, n := range t.nodes {
		if err := n.start(); err != nil {
			return err
		}
		if err := n.ready(t.client); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) tearDown() {
	for _, n := range t.nodes {
		if p := n.running(); p != nil {
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		n.engine.close()
		n.peers.close()
		n.place.close()
	}
	if t.db != nil {
		t.db.stop()
	}
}

// endNodes ends all nodes as an operator would, one after another.
func (t *trial) endNodes() error {
	for _, n := range t.nodes {
		if err := n.stop(); err != nil {
			return err
		}
		text, err := os.ReadFile(n.log())
		if err != nil {
			return err
		}
		for _, bad := range []string{"panic:", "panic=", "DATA RACE", "invariant"} {
			if strings.Contains(string(text), bad) {
				t.load.record.violation("the log of node %s has %q: see %s", n.name, bad, filepath.Base(n.log()))
			}
		}
	}
	return nil
}

// createContainers creates the containers, and finds a partition key for each partition.
func (t *trial) createContainers(containers ...*container) error {
	post := func(kind, link string, header map[string]string, body any) (reply, error) {
		path := strings.TrimPrefix(link+"/"+kind, "/")
		return t.client.do(context.Background(), t.nodes[0], request{method: http.MethodPost, kind: kind, link: link, path: path, header: header, body: mustJSON(body)})
	}
	expect := func(res reply, err error) error {
		if err == nil && res.status != http.StatusCreated && res.status != http.StatusOK {
			err = fmt.Errorf("%d %s", res.status, brief(res.body))
		}
		return err
	}
	if res, err := post("dbs", "", nil, map[string]string{"id": "faults"}); res.status != http.StatusConflict {
		if err := expect(res, err); err != nil {
			return err
		}
	}
	for _, c := range containers {
		if err := expect(post("colls", databaseLink, map[string]string{"x-ms-offer-throughput": c.throughput}, map[string]any{
			"id": c.name, "partitionKey": map[string]any{"paths": []string{"/pk"}, "kind": "Hash", "version": 2}, "defaultTtl": c.ttl,
		})); err != nil {
			return err
		}
		c.probes = map[string]string{}
		for i := 0; len(c.probes) < c.partitions; i++ {
			pk := fmt.Sprintf("probe%d", i)
			res, err := t.client.do(context.Background(), t.nodes[0], probeRequest(c, pk))
			if err := expect(res, err); err != nil {
				return err
			}
			c.probes[cmp.Or(res.header.Get("x-ms-documentdb-partitionkeyrangeid"), "0")] = pk
			if i > 100*c.partitions {
				return fmt.Errorf("container %s has %d partitions, not %d", c.name, len(c.probes), c.partitions)
			}
		}
	}
	return nil
}

// wrongDates shows that the wall clocks are wrong: the date of a signature is judged by the
// clock of the node that it came to.
func (t *trial) wrongDates() error {
	for _, n := range t.nodes {
		res, err := t.client.dated(context.Background(), n, request{method: http.MethodGet, kind: "dbs", link: databaseLink, path: databaseLink}, time.Now())
		if err != nil {
			return err
		}
		if right := n.offset == 0; (res.status == http.StatusOK) != right {
			return fmt.Errorf("node %s, whose clock should be off by %v, answers a request of now with %d: build it as the script run does", n.name, n.offset, res.status)
		}
	}
	return nil
}

// owners returns how many partitions each node has; nothing if no node answers.
func (t *trial) owners() map[string]int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, n := range t.nodes {
		res, err := t.client.admin(ctx, n, http.MethodGet, "cluster", nil)
		var s struct {
			Nodes []struct {
				Name       string
				Partitions int
			}
		}
		if err != nil || res.status != http.StatusOK || json.Unmarshal(res.body, &s) != nil {
			continue
		}
		all := map[string]int{}
		for _, n := range s.Nodes {
			all[n.Name] = n.Partitions
		}
		return all
	}
	return nil
}

func (t *trial) report(a *audit, items, undecided int) {
	r := t.load.record
	seen := ""
	if a != nil {
		seen = fmt.Sprintf(" %d commits, %d claims and %d ends of partitions in PostgreSQL's log;", a.commits, a.claims, a.ends)
	}
	fmt.Printf("%d requests for %d items, %d queries;%s %d histories undecided\n", len(r.operations), items, len(r.queries), seen, undecided)
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Printf("  %-24s %d\n", what, r.counts[what])
	}
	fmt.Printf("%-30s %5s %8s %8s\n", "return of service after", "times", "median", "worst")
	for _, name := range slices.Sorted(maps.Keys(t.returns)) {
		all := t.returns[name]
		slices.Sort(all)
		fmt.Printf("%-30s %5d %6.2f s %6.2f s\n", name, len(all), all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
	}
}
