// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/store"
)

// nodes are engines on one store, in one process, that ask each other by function calls.
type nodes struct {
	t    *testing.T
	db   kv.DB
	mu   sync.Mutex
	all  map[string]*Engine
	deaf map[string]bool // does not answer questions
	// links are the nodes' ways to the store.
	links map[string]*gate
	// settled is how long the nodes must be the same before partitions move.
	settled time.Duration
}

// gate is a node's way to the store, which a test can close: then calls wait.
type gate struct {
	kv.DB
	open sync.RWMutex
	// before is called with each commit, if there is one.
	before atomic.Pointer[func(*kv.Batch)]
	// commit takes the place of each commit, if there is one; do commits the batch.
	commit atomic.Pointer[func(b *kv.Batch, do func() error) error]
}

func (g *gate) Look(ctx context.Context, keys ...[]byte) ([][]byte, int64, error) {
	g.open.RLock()
	defer g.open.RUnlock()
	return g.DB.Look(context.WithoutCancel(ctx), keys...)
}

func (g *gate) Snapshot() (kv.Snapshot, error) {
	g.open.RLock()
	defer g.open.RUnlock()
	return g.DB.Snapshot()
}

func (g *gate) Commit(ctx context.Context, b *kv.Batch) error {
	g.open.RLock()
	defer g.open.RUnlock()
	if before := g.before.Load(); before != nil {
		(*before)(b)
	}
	do := func() error { return g.DB.Commit(context.WithoutCancel(ctx), b) }
	if commit := g.commit.Load(); commit != nil {
		return (*commit)(b, do)
	}
	return do()
}

// startNodes starts nodes with a test clock that stands.
func startNodes(t *testing.T, names ...string) *nodes {
	t.Helper()
	ns := newNodes(t)
	ns.begin(names...)
	return ns
}

// begin starts nodes, and stops the clock.
func (ns *nodes) begin(names ...string) {
	ns.t.Helper()
	for _, name := range names {
		ns.start(name)
	}
	ns.meet()
	if err := ns.all[names[0]].Clock().Freeze(); err != nil {
		ns.t.Fatal(err)
	}
}

// newNodes returns an empty store for nodes.
func newNodes(t *testing.T) *nodes {
	t.Helper()
	if os.Getenv(lane) == "" {
		return newNodesOn(t, kvtest.NewModel())
	}
	return newNodesOn(t, newDB(t).(standing).DB)
}

// newNodesOn returns no nodes yet, on an empty store.
func newNodesOn(t *testing.T, db kv.DB) *nodes {
	t.Helper()
	ns := &nodes{t: t, db: db, all: map[string]*Engine{}, deaf: map[string]bool{}, links: map[string]*gate{}, settled: time.Hour}
	t.Cleanup(func() {
		for _, e := range ns.all {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		_, err := Check(ns.db, nil, func(problem string) { t.Errorf("check: %s", problem) })
		if err := errors.Join(err, ns.db.Close()); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// meet waits until every node knows all.
func (ns *nodes) meet() {
	for _, e := range ns.all {
		for len(e.alive()) < len(ns.all) {
			time.Sleep(time.Millisecond)
		}
	}
}

func (ns *nodes) start(name string) {
	ns.t.Helper()
	if err := ns.startIn(name, catalog.Region{}, false); err != nil {
		ns.t.Fatal(err)
	}
}

// startIn starts a node in a region.
func (ns *nodes) startIn(name string, region catalog.Region, multiWrite bool, set ...func(*cluster.Options)) error {
	link := &gate{DB: ns.db}
	o := cluster.Options{
		Name: name, Address: name, Beat: 50 * time.Millisecond, Death: 500 * time.Millisecond, Reserve: 200 * time.Millisecond,
		ClaimWait: 200 * time.Millisecond, Settled: ns.settled, MoveEvery: 10 * time.Millisecond,
		Refuses: func(context.Context, string) bool { return false },
	}
	for _, set := range set {
		set(&o)
	}
	e, err := Open(Options{
		DB: link, TestClock: true, Explain: testExplain, ScriptTime: scriptTime, Peers: ns, PurgePaused: true,
		Region: region, MultiWrite: multiWrite, Cluster: &o,
	})
	if err != nil {
		return err
	}
	ns.mu.Lock()
	ns.all[name], ns.links[name] = e, link
	ns.mu.Unlock()
	return nil
}

// Ask implements Peers.
func (ns *nodes) Ask(ctx context.Context, node, _ string, request []byte) ([]byte, error) {
	ns.mu.Lock()
	e, deaf := ns.all[node], ns.deaf[node]
	ns.mu.Unlock()
	if e == nil || deaf {
		return nil, errors.New("no answer")
	}
	return e.Asked(ctx, request)
}

// do does a request at a node as a transport does: it is passed on to the owner, once.
func (ns *nodes) do(name string, request func(e *Engine) (Answer, error)) (Answer, error) {
	for tries := 0; ; tries++ {
		e := ns.all[name]
		a, err := again(func() (Answer, error) {
			if err := e.Moment(context.Background()); err != nil {
				return Answer{}, err
			}
			return request(e)
		})
		var elsewhere *NotOwnerError
		if !errors.As(err, &elsewhere) || tries > 20 {
			return a, err
		}
		name = elsewhere.Node
		if tries > 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (ns *nodes) container(name, ttl string, n int) *catalog.Container {
	ns.t.Helper()
	e := ns.all["a"]
	ctx := context.Background()
	if _, err := e.catalog.Database("d"); err != nil {
		if _, err := e.CreateDatabase(ctx, []byte(`{"id":"d"}`), catalog.Throughput{}); err != nil {
			ns.t.Fatal(err)
		}
	}
	c, err := e.CreateContainer(ctx, "d", definition(name, ttl), partitions(n))
	if err != nil {
		ns.t.Fatal(err)
	}
	return c
}

func (ns *nodes) put(at, container, pk, id, properties string) (Answer, error) {
	return ns.do(at, func(e *Engine) (Answer, error) {
		return e.WriteItem(context.Background(), &Request{Target: item(container, pk, id), Op: store.Upsert, Body: body(pk, id, properties)})
	})
}

func (ns *nodes) read(at, container, pk, id string) (Answer, error) {
	return ns.do(at, func(e *Engine) (Answer, error) { return e.ReadItem(&Request{Target: item(container, pk, id)}) })
}

// owners returns how many partitions of a container each node has open.
func (ns *nodes) owners(c *catalog.Container) map[string]int {
	all := map[string]int{}
	for name, e := range ns.all {
		e.mu.RLock()
		for i := range c.Ranges {
			if p := e.mu.open[partitionID{c.RID, c.Ranges[i].ID}]; p != nil && !p.Closed() {
				all[name]++
			}
		}
		e.mu.RUnlock()
	}
	return all
}

// Items are written, read, listed and counted through every node, whichever owns their
// partition, and expire everywhere at once.
func TestThreeNodes(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	c := ns.container("c", "10", 12)
	keys := spread(c)
	names := []string{"a", "b", "c"}
	for i, pk := range keys {
		if _, err := ns.put(names[i%3], "c", pk, "x", ""); err != nil {
			t.Fatal(err)
		}
	}
	owners := ns.owners(c)
	if len(owners) < 2 || owners["a"]+owners["b"]+owners["c"] != len(keys) {
		t.Fatalf("the partitions are owned as %v, want all %d, by several nodes", owners, len(keys))
	}
	for _, name := range names {
		for _, pk := range keys {
			if _, err := ns.read(name, "c", pk, "x"); err != nil {
				t.Errorf("read of %s at %s: %v", pk, name, err)
			}
		}
		if n := ns.list(name, "c"); n != len(keys) {
			t.Errorf("a list at %s has %d items, want %d", name, n, len(keys))
		}
		if n := ns.changes(name, "c"); n != len(keys) {
			t.Errorf("the change feed at %s has %d items, want %d", name, n, len(keys))
		}
		u, err := ns.all[name].Usage(t.Context(), ns.find(name, "c"))
		if err != nil || u.Live.Items != int64(len(keys)) {
			t.Errorf("the usage at %s is %+v, %v", name, u, err)
		}
		s, err := ns.all[name].TTLStatus(t.Context(), ns.find(name, "c"))
		if err != nil || len(s.Partitions) != len(keys) {
			t.Errorf("the status at %s has %d partitions, %v", name, len(s.Partitions), err)
		}
		h, err := ns.all[name].History(t.Context(), ns.find(name, "c"))
		if err != nil || h.Points[len(h.Points)-1].Live.Items != int64(len(keys)) {
			t.Errorf("the history at %s is %+v, %v", name, h, err)
		}
	}
	if err := ns.all["b"].Clock().Advance(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, pk := range keys {
			if _, err := ns.read(name, "c", pk, "x"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("read of %s at %s after it expired: %v", pk, name, err)
			}
		}
	}
	done, err := ns.all["c"].PurgeNow(t.Context(), ns.find("c", "c"))
	if err != nil || done.Purged.Items != int64(len(keys)) {
		t.Errorf("purged %+v, %v, want all items", done, err)
	}
	if err := ns.all["a"].Clock().Advance(time.Second); err != nil { // events of the present millisecond wait
		t.Fatal(err)
	}
	ns.moments()
	page, err := ns.all["b"].Events(t.Context(), ns.find("b", "c"), EventStart{})
	if err != nil || len(page.Events) != len(keys) {
		t.Errorf("%d events, %v, want %d", len(page.Events), err, len(keys))
	}
}

func (ns *nodes) moments() {
	ns.t.Helper()
	for _, e := range ns.all {
		if err := e.Moment(context.Background()); err != nil {
			ns.t.Fatal(err)
		}
	}
}

// find returns a container as a node knows it now.
func (ns *nodes) find(at, name string) *catalog.Container {
	ns.t.Helper()
	ns.moments()
	c, err := ns.all[at].catalog.Container("d", name)
	if err != nil {
		ns.t.Fatal(err)
	}
	return c
}

func (ns *nodes) list(at, container string) (count int) {
	r := &Request{Target: Target{Database: "d", Container: container}}
	for {
		page, err := ns.do(at, func(e *Engine) (Answer, error) { return e.ListItems(context.Background(), r) })
		if err != nil {
			ns.t.Errorf("list at %s: %v", at, err)
			return count
		}
		count += page.Count
		if r.Continuation = page.Continuation; r.Continuation == "" {
			return count
		}
	}
}

func (ns *nodes) changes(at, container string) (count int) {
	r := &Request{Target: Target{Database: "d", Container: container}}
	for range 100 {
		page, err := ns.do(at, func(e *Engine) (Answer, error) { return e.ReadChangeFeed(context.Background(), r) })
		if err != nil {
			ns.t.Errorf("changes at %s: %v", at, err)
			return count
		}
		count += page.Count
		if r.Continuation = page.Continuation; !page.More {
			return count
		}
	}
	ns.t.Error("the change feed does not end")
	return count
}

// A replace holds in all partitions, at their owners, when it returns: items that would have
// expired live on. An owner that does not answer is declared dead first.
func TestReplaceReachesAllOwners(t *testing.T) {
	for _, deaf := range []string{"", "b"} {
		t.Run("deaf:"+deaf, func(t *testing.T) {
			ns := startNodes(t, "a", "b", "c")
			c := ns.container("c", "10", 9)
			keys := spread(c)
			for _, pk := range keys {
				if _, err := ns.put("a", "c", pk, "x", ""); err != nil {
					t.Fatal(err)
				}
			}
			ns.mu.Lock()
			ns.deaf[deaf] = true
			ns.mu.Unlock()
			ns.moments()
			if _, err := ns.all["c"].ReplaceContainer(t.Context(), "d", "c", definition("c", "100"), ""); err != nil {
				t.Fatal(err)
			}
			ns.mu.Lock()
			ns.deaf[deaf] = false
			ns.mu.Unlock()
			if err := ns.all["a"].Clock().Advance(20 * time.Second); err != nil {
				t.Fatal(err)
			}
			for _, pk := range keys {
				if _, err := ns.read("b", "c", pk, "x"); err != nil {
					t.Errorf("read of %s: %v", pk, err)
				}
			}
		})
	}
}

// A container that one node drops is gone on all, and one of the same name is empty.
func TestDropOnAnotherNode(t *testing.T) {
	ns := startNodes(t, "a", "b")
	c := ns.container("c", "null", 6)
	for _, pk := range spread(c) {
		if _, err := ns.put("a", "c", pk, "x", ""); err != nil {
			t.Fatal(err)
		}
	}
	ns.moments()
	if err := ns.all["b"].DeleteContainer(t.Context(), "d", "c", ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := ns.read(name, "c", "k", "x"); !errors.Is(err, ErrOwnerNotFound) {
			t.Errorf("read at %s: %v, want ErrOwnerNotFound", name, err)
		}
	}
	ns.container("c", "null", 6)
	if n := ns.list("b", "c"); n != 0 {
		t.Errorf("%d items are in the new container", n)
	}
}

// When a node drains, the others own its partitions, nothing is lost, and nothing comes back.
func TestDrain(t *testing.T) {
	ns := startNodes(t, "a", "b")
	c := ns.container("c", "null", 8)
	keys := spread(c)
	for i, pk := range keys {
		if _, err := ns.put("b", "c", pk, "x", fmt.Sprintf(`"n":%d`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.all["a"].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := ns.owners(c)["a"]; n != 0 {
		t.Errorf("a still has %d partitions", n)
	}
	for i, pk := range keys {
		a, err := ns.read("a", "c", pk, "x")
		if err != nil || !strings.Contains(string(a.Body), fmt.Sprintf(`"n":%d`, i)) {
			t.Errorf("read of %s: %s, %v", pk, a.Body, err)
		}
	}
	if n := ns.owners(c)["b"]; n != len(keys) {
		t.Errorf("b has %d partitions, want %d", n, len(keys))
	}
}

// A node that another is told to drain has given everything up when the call returns, and the
// last node that serves is not drained: nobody would answer any more.
func TestDrainAnotherNode(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	ns.meet()
	c := ns.container("c", "null", 8)
	keys := spread(c)
	put := func() {
		t.Helper()
		for _, pk := range keys {
			if _, err := ns.put("a", "c", pk, "x", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	put()
	for _, name := range []string{"b", "c"} {
		if err := ns.all["a"].DrainNode(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if n := ns.owners(c)[name]; n != 0 {
			t.Errorf("%s still has %d partitions", name, n)
		}
		status, err := ns.all["a"].ClusterStatus(t.Context())
		if err != nil || !slices.ContainsFunc(status.Nodes, func(n NodeStatus) bool { return n.Name == name && n.State == cluster.Draining.String() }) {
			t.Errorf("%s does not drain: %+v, %v", name, status.Nodes, err)
		}
	}
	for _, by := range []string{"a", "b"} {
		var refused *InvalidError
		if err := ns.all[by].DrainNode(t.Context(), "a"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "No other node serves") {
			t.Errorf("the last node was drained by %s: %v", by, err)
		}
	}
	put()
	if n := ns.owners(c)["a"]; n != len(keys) {
		t.Errorf("a has %d partitions, want %d", n, len(keys))
	}
}

// A partition that is given up while a commit of it is under way is not opened anew by a
// request that comes meanwhile: the node would go on answering for it after it has written
// that nobody owns it.
func TestDrainUnderRequests(t *testing.T) {
	ns := startNodes(t, "a", "b")
	c := ns.container("c", "null", 8)
	preferred := func(by string, i int) string {
		name, _, err := ns.all[by].node.Preferred(store.OwnerKey(c.RID, i))
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	var pk string
	var index int
	for i, key := range spread(c) {
		if preferred("a", i) == "a" {
			pk, index = key, i
		}
	}
	if _, err := ns.put("a", "c", pk, "x", `"n":1`); err != nil {
		t.Fatal(err)
	}
	reached, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	hold := func(b *kv.Batch) {
		for op := range b.Ops {
			if op.Kind == kv.OpSet && len(op.Key) > 0 && op.Key[0] == 'p' && !store.IsOwnerKey(op.Key) {
				first.Do(func() { close(reached); <-goOn })
				return
			}
		}
	}
	ns.links["a"].before.Store(&hold)
	var all sync.WaitGroup
	all.Go(func() { // a client that does not try again
		_, err := ns.all["a"].WriteItem(context.Background(), &Request{Target: item("c", pk, "y"), Op: store.Upsert, Body: body(pk, "y", "")})
		if err != nil && !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
	<-reached
	all.Go(func() {
		if err := ns.all["a"].Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for !ns.all["a"].node.Draining() || ns.owners(c)["a"] > 0 {
		time.Sleep(time.Millisecond)
	}
	read := make(chan struct{})
	all.Go(func() {
		defer close(read)
		if a, err := ns.read("a", "c", pk, "x"); err != nil || !strings.Contains(string(a.Body), `"n":1,`) {
			t.Errorf("a read during the drain: %s, %v", a.Body, err)
		}
	})
	select { // it waits; if it did not, it would be done soon
	case <-read:
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	all.Wait()
	for preferred("b", index) != "b" {
		time.Sleep(time.Millisecond)
	}
	if _, err := ns.put("b", "c", pk, "x", `"n":2`); err != nil {
		t.Fatal(err)
	}
	if a, err := ns.read("a", "c", pk, "x"); err != nil || !strings.Contains(string(a.Body), `"n":2,`) {
		t.Errorf("a read after b has written: %s, %v", a.Body, err)
	}
}

// A request to a node that does not own its partition is neither charged nor throttled.
func TestNotOwnerBeforeAdmission(t *testing.T) {
	ns := startNodes(t, "a", "b")
	c := ns.container("c", "null", 6)
	for _, pk := range spread(c) {
		if _, err := ns.put("a", "c", pk, "x", ""); err != nil {
			t.Fatal(err)
		}
	}
	ns.moments()
	refused := 0
	for _, pk := range spread(c) {
		a, err := ns.all["b"].ReadItem(&Request{Target: item("c", pk, "x")})
		var elsewhere *NotOwnerError
		if errors.As(err, &elsewhere) {
			refused++
			if a.Charge != 0 || elsewhere.Node != "a" || elsewhere.Address != "a" {
				t.Errorf("got charge %v and %+v", a.Charge, elsewhere)
			}
		}
	}
	if refused == 0 {
		t.Error("node b owns every partition")
	}
}

// A node that stands still is declared dead, and another serves its partitions. When it goes
// on, it answers neither what it knew before, nor does a write land that was under way.
func TestNodeStandsStill(t *testing.T) {
	ns := newNodes(t)
	ns.start("a")
	ns.start("b")
	ns.meet()
	c := ns.container("c", "100", 8)
	keys := spread(c)
	for _, pk := range keys {
		if _, err := ns.put("a", "c", pk, "x", `"v":"old"`); err != nil {
			t.Fatal(err)
		}
	}
	if n := ns.owners(c)["a"]; n == 0 {
		t.Fatal("node a owns nothing")
	}
	ns.links["a"].open.Lock()
	type result struct {
		pk  string
		a   Answer
		err error
	}
	reads, writes := make(chan result, len(keys)), make(chan result, len(keys))
	for _, pk := range keys {
		go func() {
			a, err := ns.read("a", "c", pk, "x")
			reads <- result{pk, a, err}
		}()
		go func() { // straight into the partition: its moment was taken before
			a, err := ns.all["a"].WriteItem(context.Background(), &Request{Target: item("c", pk, "late"), Op: store.Create, Body: body(pk, "late", "")})
			writes <- result{pk, a, err}
		}()
	}
	for _, pk := range keys { // until b serves all
		for began := time.Now(); ; {
			_, err := ns.all["b"].WriteItem(context.Background(), &Request{Target: item("c", pk, "x"), Op: store.Upsert, Body: body(pk, "x", `"v":"new"`)})
			if err == nil {
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatalf("b does not take %s over: %v", pk, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	ns.links["a"].open.Unlock()
	for range keys {
		if r := <-reads; r.err != nil || !strings.Contains(string(r.a.Body), "new") {
			t.Errorf("a read of %s at the node that stood still: %s, %v", r.pk, r.a.Body, r.err)
		}
	}
	for range keys {
		r := <-writes
		_, err := ns.read("b", "c", r.pk, "late")
		if done := r.err == nil; done != (err == nil) {
			t.Errorf("a write of %s that was under way: %v, and then a read: %v", r.pk, r.err, err)
		}
	}
}

// Partitions move to a node that joins, while clients write and read, and no write is lost.
func TestRebalance(t *testing.T) {
	ns := newNodes(t)
	ns.settled = 100 * time.Millisecond
	ns.start("a")
	c := ns.container("c", "null", 12)
	keys := spread(c)
	for _, pk := range keys {
		if _, err := ns.put("a", "c", pk, "x", `"n":0`); err != nil {
			t.Fatal(err)
		}
	}
	ns.start("b")
	ns.meet()
	want := 0
	for i := range c.Ranges {
		if name, _, err := ns.all["a"].node.Preferred(store.OwnerKey(c.RID, i)); err == nil && name == "b" {
			want++
		}
	}
	written := make([]int, len(keys))
	began := time.Now()
	for n := 1; ns.owners(c)["b"] < want && time.Since(began) < 20*time.Second; n++ {
		for i, pk := range keys {
			if _, err := ns.put([]string{"a", "b"}[n%2], "c", pk, "x", fmt.Sprintf(`"n":%d`, n)); err != nil {
				t.Fatalf("write of %s: %v", pk, err)
			}
			written[i] = n
			a, err := ns.read([]string{"b", "a"}[n%2], "c", pk, "x")
			if err != nil || !strings.Contains(string(a.Body), fmt.Sprintf(`"n":%d,`, n)) {
				t.Fatalf("read of %s after write %d: %s, %v", pk, n, a.Body, err)
			}
		}
	}
	if got := ns.owners(c)["b"]; want == 0 || got != want {
		t.Errorf("node b has %d partitions, want %d", got, want)
	}
}
