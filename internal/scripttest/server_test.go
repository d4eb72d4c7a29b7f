// SPDX-License-Identifier: MIT

package scripttest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/rest"
	"github.com/mayflydb/mayfly/internal/store"
)

// server is a database under test, and how scripts reach it.
type server interface {
	// setUp changes how the server starts.
	setUp(setup)
	// start opens the data, new or existing, and begins to answer. It has no effect on a
	// server that runs.
	start() error
	// stop ends it cleanly. It has no effect on a stopped server.
	stop() error
	// send sends a request. The target is a path, percent-encoded.
	send(method, target string, header http.Header, body []byte) (answer, error)
	// endpoint is the server's address for clients.
	endpoint() string
	// check checks all rows and returns the problems. Where that is done on data at rest, it
	// stops the server.
	check() (problems []string, err error)
}

// crasher is a server whose processes can be killed.
type crasher interface {
	// crash kills processes and starts them again.
	crash() error
}

// setup is what can differ between servers. With the zero value, purge is paused, and there
// are no quotas and no limit of throughput.
type setup struct {
	purge                             bool // purge runs in the background
	enforce                           bool // provisioned throughput is enforced
	containerQuota, partitionKeyQuota int64
	regions                           []string      // names, or name=endpoint; none for one
	multiWrite                        bool          // every region takes writes
	consistency                       string        // of the account, empty for Session
	retention                         time.Duration // of all versions, for containers without a policy
	scriptTime                        time.Duration // limit of a procedure, 0 for a long one
	oneOwner                          bool          // one node of a cluster owns all partitions
}

// account is the server's description of its account.
func (s *setup) account() api.Account {
	a := api.Account{Regions: s.regions, MultiWrite: s.multiWrite, Consistency: cmp.Or(s.consistency, mayfly.DefaultConsistency)}
	if len(a.Regions) == 0 {
		a.Regions = []string{mayfly.DefaultRegion}
	}
	return a
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
	// framed says that it came over direct mode.
	framed bool
}

// machine is the machine of an in-process server: a disk that can lose unsynced data, and
// clocks that scripts can move.
type machine struct {
	disk *vfs.MemFS
	// manual says that the machine's clocks are the ones below.
	manual bool

	mu struct {
		sync.Mutex
		clocks clock.Reading
		boot   clock.Boot
	}
}

func newMachine() *machine {
	m := &machine{disk: vfs.NewCrashableMem()}
	m.mu.boot.ID = "once "
	return m
}

// crash drops all that was not durable. A server that still has the old disk open writes to
// a copy that is never read again.
func (m *machine) crash() { m.disk = m.disk.CrashClone(vfs.CrashCloneCfg{}) }

func (m *machine) clocks() clock.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.clocks
}

func (m *machine) boot() clock.Boot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.boot
}

// pass lets time pass, for a part of which the machine sleeps. step sets the wall clock.
func (m *machine) pass(awake, asleep, step time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.clocks.WallMs += (awake + asleep + step).Milliseconds()
	m.mu.clocks.MonoMs += awake.Milliseconds()
	m.mu.boot.Ms += (awake + asleep).Milliseconds()
}

// reboot restarts the machine after it was off for some time.
func (m *machine) reboot(off time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.clocks.WallMs += off.Milliseconds()
	m.mu.clocks.MonoMs = 0
	m.mu.boot = clock.Boot{ID: m.mu.boot.ID + "again "}
}

// inProcess calls the handler directly, without a network.
type inProcess struct {
	machine *machine
	setup   setup

	db      *pebblekv.DB
	engine  *engine.Engine
	handler *rest.Handler
	memory  *memory.Budget
}

func (p *inProcess) setUp(s setup) { p.setup = s }

func (p *inProcess) start() (err error) {
	if p.engine != nil {
		return nil
	}
	if p.db, err = pebblekv.Open(pebblekv.Options{Dir: "data", FS: p.machine.disk, IsIndexKey: store.IsIndexKey, Logger: quiet()}); err != nil {
		return err
	}
	o := p.options()
	o.DB = p.db
	if m := p.machine; m.manual {
		o.TestClock = false
		o.ClockSource, o.ClockBoot = m.clocks, m.boot
	}
	return p.serve(o, p.db)
}

// options are those of the engine, but for the storage engine.
func (p *inProcess) options() engine.Options {
	o := engine.Options{
		TestClock: true, PurgePaused: !p.setup.purge, Logger: quiet(),
		Quotas: engine.Quotas{ContainerBytes: p.setup.containerQuota, LogicalBytes: p.setup.partitionKeyQuota}, Retention: p.setup.retention,
		ScriptTime: cmp.Or(p.setup.scriptTime, plenty), Explain: api.Explain,
	}
	if p.setup.enforce {
		o.Throughput = engine.Enforce
	}
	return o
}

// serve opens the engine and its handler.
func (p *inProcess) serve(o engine.Options, db kv.DB) (err error) {
	if p.engine, err = engine.Open(o); err != nil {
		return errors.Join(err, db.Close())
	}
	p.memory = memory.NewBudget(scriptMemory)
	p.handler, err = rest.New(rest.Options{
		Engine: p.engine, Keys: []string{mayfly.WellKnownKey}, Logger: quiet(),
		Account: p.setup.account(), Memory: p.memory,
	})
	return err
}

// scriptMemory is the memory of a script's requests, which come one by one.
const scriptMemory = 128 << 20

// endpoint is the host in the requests of httptest.
func (p *inProcess) endpoint() string { return "http://example.com/" }

func (p *inProcess) stop() error {
	if p.engine == nil {
		return nil
	}
	return p.end(p.db)
}

// end closes the engine and its storage engine.
func (p *inProcess) end(db kv.DB) error {
	err := errors.Join(p.engine.Close(), db.Close())
	if use := p.memory.Use(); use.Held != 0 {
		err = errors.Join(err, fmt.Errorf("requests that have ended hold memory: %+v", use))
	}
	p.engine = nil
	return err
}

func (p *inProcess) send(method, target string, header http.Header, body []byte) (answer, error) {
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	r.Header = header
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	received := http.Header{} // as net/http of a client spells them
	for name, values := range w.Result().Header {
		received[http.CanonicalHeaderKey(name)] = values
	}
	return answer{status: w.Code, header: received, body: w.Body.Bytes()}, nil
}

// rewind corrects the clock of the stopped server.
func (p *inProcess) rewind(force bool) (res engine.RewindResult, err error) {
	if p.db, err = pebblekv.Open(pebblekv.Options{Dir: "data", FS: p.machine.disk, IsIndexKey: store.IsIndexKey, Logger: quiet()}); err != nil {
		return res, err
	}
	res, err = engine.Rewind(context.Background(), engine.RewindOptions{
		DB: p.db, Force: force, ClockSource: p.machine.clocks, ClockBoot: p.machine.boot,
	})
	return res, errors.Join(err, p.db.Close())
}

func (p *inProcess) check() (problems []string, err error) { return checkRows(p.db) }

func checkRows(db kv.DB) (problems []string, err error) {
	_, err = engine.Check(db, nil, func(problem string) {
		problems = append(problems, problem)
	})
	return problems, err
}

// onShared is a node of a cluster, with its data in a shared engine, whose handler is called
// directly.
type onShared struct {
	inProcess
	open func() (kv.DB, error)
	db   kv.DB
}

// onPostgres is one with its data in PostgreSQL.
func onPostgres(url string) *onShared {
	return &onShared{open: func() (kv.DB, error) { return openPostgres(url) }}
}

func openPostgres(url string) (kv.DB, error) {
	return pgkv.Open(context.Background(), pgkv.Options{URL: url, Connections: 24, Logger: quiet()})
}

func (p *onShared) start() (err error) {
	if p.engine != nil {
		return nil
	}
	if p.db, err = p.open(); err != nil {
		return err
	}
	o := p.options()
	o.DB, o.Cluster = p.db, &cluster.Options{Name: "a", Address: "http://example.com/"}
	return p.serve(o, p.db)
}

func (p *onShared) stop() error {
	if p.engine == nil {
		return nil
	}
	return p.end(p.db)
}

func (p *onShared) check() (problems []string, err error) { return checkRows(p.db) }

// overHTTP is a whole server with its data on disk, and its client.
type overHTTP struct {
	dir   string
	http2 bool // speaks HTTP/2, else HTTP/1.1
	setup setup

	server *mayfly.Server
	client *http.Client
	served chan error
	base   string
}

// plenty is the time limit of a procedure that is stopped by something else, however busy
// the machine is. A call of a function has a fifth of it.
const plenty = 5 * patience

// patience is how long to wait for an answer, or for the server to stop.
const patience = time.Minute

func (h *overHTTP) setUp(s setup) { h.setup = s }

func (h *overHTTP) start() (err error) {
	if h.server != nil {
		return nil
	}
	o := mayfly.Options{
		Dir: h.dir, TestClock: true, NoSync: true, PausePurge: !h.setup.purge, Logger: quiet(),
		ContainerQuota: h.setup.containerQuota, PartitionKeyQuota: h.setup.partitionKeyQuota, ChangeFeedRetention: h.setup.retention,
		ScriptTime: cmp.Or(h.setup.scriptTime, plenty),
	}
	account := h.setup.account()
	o.Regions, o.MultiWrite, o.Consistency = account.Regions, account.MultiWrite, account.Consistency
	if h.setup.enforce {
		o.Throughput = mayfly.ThroughputEnforce
	}
	if h.server, err = mayfly.Open(o); err != nil {
		return err
	}
	roots, err := h.roots()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.base = "https://" + l.Addr().String()
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!h.http2)
	protocols.SetHTTP2(h.http2)
	h.client = &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: protocols},
		Timeout:   patience,
	}
	served := make(chan error, 1)
	h.served = served
	go func() { served <- h.server.Serve(l) }()
	return nil
}

func (h *overHTTP) endpoint() string { return h.base + "/" }

func (h *overHTTP) roots() (*x509.CertPool, error) {
	pem, err := mayfly.Certificate(h.dir)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", pem)
	}
	return roots, nil
}

func (h *overHTTP) stop() error {
	if h.server == nil {
		return nil
	}
	h.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := h.server.Shutdown(ctx)
	err = errors.Join(err, <-h.served, h.server.Close())
	h.server = nil
	return err
}

func (h *overHTTP) send(method, target string, header http.Header, body []byte) (answer, error) {
	r, err := http.NewRequest(method, h.base+target, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header, r.Host = header, header.Get("Host") // the server's own if empty
	res, err := h.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if version := res.ProtoMajor == 2; version != h.http2 {
		err = errors.Join(err, fmt.Errorf("the answer came by %s", res.Proto))
	}
	return answer{status: res.StatusCode, header: res.Header, body: got}, err
}

// check checks the data at rest, as an operator would.
func (h *overHTTP) check() ([]string, error) {
	if err := h.stop(); err != nil {
		return nil, err
	}
	report, err := mayfly.Check(h.dir, nil)
	if err != nil {
		return nil, err
	}
	return report.Problems, nil
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
