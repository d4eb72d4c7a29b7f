// SPDX-License-Identifier: MIT

// Package mayfly is a document database that forgets on time, embedded in a Go
// program. It speaks the REST protocol of Azure Cosmos DB for NoSQL, so the
// official SDKs use it unchanged. This package connects the internal packages; the
// binary cmd/mayfly and its command line, internal/cli, are a thin layer over it.
package mayfly

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/direct"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/erase"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/rest"
	"github.com/mayflydb/mayfly/internal/store"
)

// WellKnownKey is the key of the service's emulators, which every SDK's samples
// use. It is public, so a server with it listens on the loopback interface only.
const WellKnownKey = api.WellKnownKey

// ErrNeedsKey is returned for an address beyond the loopback interface if a key of the
// server is WellKnownKey.
var ErrNeedsKey = errors.New("listening beyond loopback needs a key of your own: give one with --key-file or MAYFLY_KEY, for example from: openssl rand -base64 64")

// ErrShortKey is returned for an address beyond the loopback interface if a key of the
// server is short enough to be guessed.
var ErrShortKey = errors.New("listening beyond loopback needs keys of at least 32 bytes, and one of them has fewer: make another, for example with: openssl rand -base64 64")

// Errors of Open and Check.
var (
	// ErrInUse means that another process has the data open.
	ErrInUse = kv.ErrInUse
	// ErrNewerFormat means that a newer version has written the data.
	ErrNewerFormat = kv.ErrNewerFormat
	// ErrDiskFull means that the disk has no room for the data.
	ErrDiskFull = kv.ErrDiskFull
)

// Defaults of Options.
const (
	DefaultDir         = "mayfly-data"
	DefaultRegion      = "South Central US"
	DefaultConsistency = "Session"
	DefaultThroughput  = ThroughputReport
	DefaultQueryTime   = engine.DefaultQueryTime
)

// Values of Options.Throughput.
const (
	// ThroughputReport counts the request units spent and limits nothing.
	ThroughputReport = string(engine.Report)
	// ThroughputEnforce refuses requests beyond the provisioned throughput with 429 and
	// the time after which to try again.
	ThroughputEnforce = string(engine.Enforce)
)

// Options say how a database is opened. The zero value keeps its data in
// ./mayfly-data and is ready to use.
type Options struct {
	// Dir is the directory of the data.
	Dir string
	// Memory keeps the data in memory until Close. Dir is not used.
	Memory bool
	// Key is the master key, in base64; empty for WellKnownKey.
	Key string
	// SecondaryKey allows the same as Key, so that clients can change keys one after the
	// other; empty for none.
	SecondaryKey string
	// ReadOnlyKey and SecondaryReadOnlyKey allow reads and queries, but not of
	// permissions; empty for none.
	ReadOnlyKey, SecondaryReadOnlyKey string
	// NoSync acknowledges writes before they are on disk: for throw-away data.
	NoSync bool
	// TestClock lets the time be moved, through Server.Clock and over HTTP. Data
	// written with it opens only with it. Answers say in x-mayfly-moment between which
	// times of the database, in milliseconds, they were made.
	TestClock bool
	// Regions are the region names that the account advertises, in the order in which
	// clients fall back on them. This server serves all of them. Either no name or every
	// name has an endpoint behind it, as in West US=http://localhost:8081/. A request
	// that comes to the endpoint of a region other than the first can only read, unless
	// MultiWrite is set. A node of a cluster has one: where it is. The regions of the cluster
	// are those of its nodes, a new one last; mayfly cluster failover changes the order.
	Regions []string
	// MultiWrite makes the account one that is written to in every region. The regions
	// are all this server, so there are no conflicts. It excludes the consistency level
	// Strong.
	MultiWrite bool
	// Consistency is the account's default level.
	Consistency string
	// Throughput is ThroughputReport or ThroughputEnforce.
	Throughput string
	// ContainerQuota is the number of bytes of live items that a container may hold; 0
	// for no bound.
	ContainerQuota int64
	// PartitionKeyQuota is the number of bytes of live items that a logical partition may
	// hold; 0 for 20 GiB, as in the service.
	PartitionKeyQuota int64
	// ChangeFeedRetention is how long the change feed keeps all versions and deletes of
	// containers without a changeFeedPolicy, as continuous backup does in the service: 30
	// days at most; 0 keeps none.
	ChangeFeedRetention time.Duration
	// EraseWithin is the time in which the bytes of expired, deleted and overwritten items leave
	// the files of the data; 0 for DefaultEraseWithin, negative for any time. A container may
	// set another. It has no effect in memory.
	EraseWithin time.Duration
	// MemoryBytes is the memory that the server divides among its parts; 0 for the memory
	// of the machine, or of the process's control group if that is less. Requests under
	// way share a quarter of it: those that do not fit wait, and get 429 after ten
	// seconds.
	MemoryBytes int64
	// CacheBytes bounds the cache of data read from disk; 0 for an eighth of MemoryBytes.
	// The cache grows as data is read, not at the start.
	CacheBytes int64
	// QueryTime is how long a query may take that cannot end a page early, such as one
	// that sorts without an index; 0 for DefaultQueryTime. Other queries end a page after
	// five seconds, as in the service.
	QueryTime time.Duration
	// ScriptTime is how long a stored procedure or a trigger may take; 0 for five seconds,
	// as in the service. A call of a user-defined function may take a fifth of it.
	ScriptTime time.Duration
	// PausePurge starts with purge paused, until it is resumed over HTTP or with mayfly
	// ttl resume.
	PausePurge bool
	// PurgeDebt is how many bytes the expired items of a container may take, if its live
	// items take less; 0 for 256 MiB. Near that, writes carry purges with them.
	PurgeDebt int64
	// Advertise is the endpoint that clients are told to use; empty for the one that
	// their request came to.
	Advertise string
	// AllowHosts are host names that requests may come to, in addition to addresses,
	// localhost and the names below it, names without a dot, host.docker.internal, and
	// the hosts of Advertise and Regions. "*.x" stands for all names below x. They matter
	// only with WellKnownKey, which a page in a browser knows too.
	AllowHosts []string
	// RoutingGateway refuses requests for item ids that end with a space, or contain a
	// percent triplet or one of / \\ # and line ends, as the service's older gateway does.
	// It is for test suites that expect this.
	RoutingGateway bool
	// Emulator has the server behave as the service's emulators do in containers: it listens
	// beyond the loopback interface also with WellKnownKey, answers a read of the account
	// without a credential, and opens the explorer without TLS. Anybody who reaches it has
	// all rights.
	Emulator bool
	// Cluster makes the server a node of a cluster, with its data in a storage engine that
	// all nodes share; nil for data of its own. Dir, Memory and NoSync are not used then.
	Cluster *Cluster
	// NoExplorer serves no pages for people under /_explorer/.
	NoExplorer bool
	// TLSCert and TLSKey name the files of a certificate and its key, in PEM, that the server
	// presents in place of one that it makes; empty for that. It reads them again when they
	// change.
	TLSCert, TLSKey string
	// TLSNames are host names and addresses that the certificate which the server makes is
	// for, beside localhost and the machine's own name.
	TLSNames []string
	// Logger gets the log for the operator; nil for no log.
	Logger *slog.Logger
	// LogRequests has the log get a line for every request.
	LogRequests bool
	// SlowRequest is the duration from which a request gets a line in the log; 0 for one
	// second, negative for none.
	SlowRequest time.Duration

	clockSource func() clock.Reading // in tests, in place of the machine's clocks
}

func (o Options) withDefaults() Options {
	if o.Dir == "" {
		o.Dir = DefaultDir
	}
	for _, key := range []*string{&o.Key, &o.SecondaryKey, &o.ReadOnlyKey, &o.SecondaryReadOnlyKey} {
		// openssl breaks a long key into lines, and a pasted key still has them.
		*key = strings.Join(strings.Fields(*key), "")
	}
	if o.Key == "" {
		o.Key = WellKnownKey
	}
	if len(o.Regions) == 0 {
		o.Regions = []string{DefaultRegion}
	}
	if o.Consistency == "" {
		o.Consistency = DefaultConsistency
	}
	if o.Throughput == "" {
		o.Throughput = DefaultThroughput
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = AvailableMemory()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

// Server is an open database that can serve clients.
type Server struct {
	options Options
	db      kv.DB
	engine  *engine.Engine
	handler *rest.Handler
	http    *rest.Server
	direct  *direct.Server
	peers   *rest.Peers // nil if there is no cluster
	failed  chan error

	stopKeeping func() // of the certificate; nil before it is kept

	closeOnce sync.Once
	closeErr  error
}

// Open opens the database. The caller closes it.
func Open(o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{options: o, failed: make(chan error, 1)}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open() (err error) {
	o := s.options
	mode, err := o.throughputMode()
	if err := errors.Join(err, o.checkSizes(), o.checkCertificate()); err != nil {
		return err
	}
	division := memory.Divide(o.MemoryBytes, o.CacheBytes)
	var certificate tls.Certificate
	of := engine.Options{}
	var checkpoint func(context.Context) (kv.Checkpoint, error) // nil with a shared engine
	if o.Cluster != nil {
		s.db = o.Cluster.DB
		if err = o.joins(&of); err != nil {
			return err
		}
		if certificate, err = o.certificate(time.Now(), 0); err != nil { // which also checks the key
			return err
		}
		if s.peers, err = o.peers(); err != nil {
			return err
		}
		of.Peers = s.peers
	} else {
		embedded, err := openData(o, division)
		if err != nil {
			return err
		}
		s.db, of.FreeBytes, of.Reclaim, of.Health = embedded, embedded.FreeBytes, embedded.Reclaim, embedded.Health
		checkpoint = embedded.Checkpoint
	}
	budget := memory.NewBudget(division.Requests)
	s.engine, err = engine.Open(engine.Options{
		DB: s.db, FreeBytes: of.FreeBytes, Reclaim: of.Reclaim, Health: of.Health, Cluster: of.Cluster, Region: of.Region, MultiWrite: of.MultiWrite, Peers: of.Peers, Throughput: mode, TestClock: o.TestClock, ClockSource: o.clockSource,
		Quotas:      engine.Quotas{ContainerBytes: o.ContainerQuota, LogicalBytes: o.PartitionKeyQuota},
		Retention:   o.ChangeFeedRetention,
		QueryTime:   o.QueryTime,
		EraseWithin: o.eraseWithin(),
		PurgePaused: o.PausePurge, PurgeDebt: o.PurgeDebt, Logger: o.Logger, Failed: s.fail, Explain: api.Explain,
		HistoryBytes: division.History,
		Caches:       store.CacheSizes{IndexRows: division.IndexRows, ItemRows: division.ItemRows},
		Scripts:      division.Scripts, ScriptMemory: division.Script, ScriptTime: o.ScriptTime, ReserveScript: budget.Reserve,
	})
	if err != nil {
		return fmt.Errorf("open the data in %s: %w", o.location(), err)
	}
	s.handler, err = rest.New(rest.Options{
		Engine: s.engine, Keys: given(o.Key, o.SecondaryKey), ReadOnlyKeys: given(o.ReadOnlyKey, o.SecondaryReadOnlyKey), Logger: o.Logger,
		Account:    api.Account{Regions: o.Regions, MultiWrite: o.MultiWrite, Consistency: o.Consistency, Advertise: o.Advertise, ContinuousBackup: o.ChangeFeedRetention > 0},
		Checkpoint: checkpoint,
		PublicKey:  slices.ContainsFunc(o.keys(), wellKnown), AllowHosts: o.AllowHosts,
		Emulator:       o.Emulator,
		RoutingGateway: o.RoutingGateway, NoExplorer: o.NoExplorer, Docs: site, ShowMoments: o.TestClock, LogRequests: o.LogRequests, SlowRequest: max(cmp.Or(o.SlowRequest, api.DefaultSlowRequest), 0), Memory: budget, Peers: s.peers, Cluster: s.engine, Asked: s.engine.Asked,
	})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(o.keys(), wellKnown) {
		o.Logger.Info("audit", "what", "keys", "fingerprints", s.handler.Service().Keys.Fingerprints())
	}
	if o.Cluster == nil {
		if certificate, err = o.certificate(time.Now(), 0); err != nil {
			return err
		}
	}
	s.direct = direct.New(direct.Options{
		Service: s.handler.Service(), Memory: budget, Logger: o.Logger,
		Unauthenticated: s.handler.Unauthenticated, Observe: s.handler.Observe,
	})
	s.handler.ShowCertificate(certificate)
	s.http = rest.NewServer(s.handler, certificate, func(c *rest.Channel) { s.direct.Serve(c) }, o.Logger)
	if s.peers != nil {
		s.peers.Watch(s.engine.Node().Incarnation)
		s.http.AcceptPeers(s.peers)
	}
	s.keepCertificate(certificate)
	return nil
}

// given returns the keys that are not empty.
func given(keys ...string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

func (o Options) throughputMode() (engine.ThroughputMode, error) {
	switch o.Throughput {
	case ThroughputReport, ThroughputEnforce:
		return engine.ThroughputMode(o.Throughput), nil
	}
	return "", fmt.Errorf("the throughput %q is neither %q nor %q", o.Throughput, ThroughputReport, ThroughputEnforce)
}

// DefaultEraseWithin is the time in which deleted data is erased.
const DefaultEraseWithin = 24 * time.Hour

// eraseWithin returns the time in which deleted data is erased, 0 for any.
func (o Options) eraseWithin() time.Duration {
	if o.Memory || o.Cluster != nil {
		return 0
	}
	return max(cmp.Or(o.EraseWithin, DefaultEraseWithin), 0)
}

// checkSizes refuses sizes and times that are out of range.
func (o Options) checkSizes() error {
	for _, size := range []struct {
		name  string
		bytes int64
	}{{"container quota", o.ContainerQuota}, {"partition key quota", o.PartitionKeyQuota}, {"cache", o.CacheBytes}, {"memory", o.MemoryBytes}, {"purge debt", o.PurgeDebt}} {
		if size.bytes < 0 {
			return fmt.Errorf("the %s is %d bytes: give 0, or leave it out, for the default", size.name, size.bytes)
		}
	}
	for name, limit := range map[string]time.Duration{"query time": o.QueryTime, "script time": o.ScriptTime} {
		if limit < 0 {
			return fmt.Errorf("the %s is %v: give 0, or leave it out, for the default", name, limit)
		}
	}
	if o.EraseWithin > 0 && o.Cluster != nil {
		return ErrNoErasure
	}
	if o.EraseWithin > 0 && o.EraseWithin < erase.Shortest {
		return fmt.Errorf("the time to erase is %v: give %v at least", o.EraseWithin, erase.Shortest)
	}
	if o.ChangeFeedRetention < 0 || o.ChangeFeedRetention > catalog.MaxRetention {
		return fmt.Errorf("the change feed retention is %v: give 0, or leave it out, for none, and %v at most", o.ChangeFeedRetention, catalog.MaxRetention)
	}
	return nil
}

// AvailableMemory returns the memory of the machine, or of the process's control group if
// that is less; 0 if it is not known.
func AvailableMemory() int64 { return memory.Available() }

// dataDir is the directory of the storage engine's files. The certificate is beside it.
func (o Options) dataDir() string { return filepath.Join(o.Dir, "db") }

// location names where the data is, for messages.
func (o Options) location() string {
	switch {
	case o.Cluster != nil:
		return "the shared storage engine"
	case o.Memory:
		return "memory"
	}
	return o.Dir
}

func openData(o Options, d memory.Division) (*pebblekv.DB, error) {
	if o.Memory {
		return pebblekv.OpenMemory(pebblekv.Options{NoSync: true, MemTableBytes: d.MemTable, IsIndexKey: store.IsIndexKey, Logger: o.Logger})
	}
	if err := o.restrict(); err != nil {
		return nil, fmt.Errorf("close the data in %s to others: %w", o.Dir, err)
	}
	db, err := pebblekv.Open(pebblekv.Options{
		Dir: o.dataDir(), NoSync: o.NoSync, CacheBytes: d.Blocks, MemTableBytes: d.MemTable, IsIndexKey: store.IsIndexKey, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("open the data in %s: %w", o.Dir, err)
	}
	return db, nil
}

// Serve answers clients on l until Shutdown is called or a commit fails, or until another
// process takes the name of this node.
func (s *Server) Serve(l net.Listener) error {
	if err := s.options.Admits(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(l) }()
	select {
	case err := <-served:
		return err
	case err := <-s.failed:
		why := "stopped, since a write to the disk failed"
		if s.options.Cluster != nil { // such a write ends its partition only
			why = "stopped"
		}
		return errors.Join(fmt.Errorf("%s: %w", why, err), l.Close())
	}
}

// Admits returns ErrNeedsKey or ErrShortKey if a server with these options must not
// listen on a.
func (o Options) Admits(a net.Addr) error {
	o = o.withDefaults()
	if loopback(a) {
		return nil
	}
	if o.Emulator {
		return nil
	}
	if slices.ContainsFunc(o.keys(), wellKnown) {
		return ErrNeedsKey
	}
	if slices.ContainsFunc(o.keys(), short) {
		return ErrShortKey
	}
	return nil
}

// keys returns all keys that the server accepts.
func (o Options) keys() []string {
	return given(o.Key, o.SecondaryKey, o.ReadOnlyKey, o.SecondaryReadOnlyKey)
}

// minKeyBytes is the length of a signature: a shorter key is easier to guess than a
// signature.
const minKeyBytes = 32

func short(key string) bool {
	decoded, err := api.ParseKey(key)
	return err == nil && len(decoded) < minKeyBytes // Open refuses a key that cannot be parsed
}

// wellKnown compares the bytes of keys: base64 can spell them in several ways.
func wellKnown(key string) bool {
	given, err1 := api.ParseKey(key)
	known, err2 := api.ParseKey(WellKnownKey)
	return err1 == nil && err2 == nil && bytes.Equal(given, known)
}

func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return !ok || t.IP.IsLoopback()
}

// fail makes Serve return. The engine calls it when a commit has failed, after which it
// writes nothing more.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Hold has the server say at /_mayfly/ready that it is not ready, and why, until the function
// is called: while it is filled, for example. It answers requests all the same.
func (s *Server) Hold(why error) (release func()) { return s.handler.Hold(why) }

// Handler returns the server as an http.Handler, for the caller's own http.Server.
func (s *Server) Handler() http.Handler { return s.handler }

// Key returns the master key.
func (s *Server) Key() string { return s.options.Key }

// Shutdown stops serving: it takes no new requests, and waits for those under way
// until ctx ends. A node of a cluster first gives its partitions to others. The database
// stays open until Close.
func (s *Server) Shutdown(ctx context.Context) error {
	drained := s.engine.Drain(ctx) // other nodes take over before this one stops
	s.direct.Drain()               // before the idle connections are closed
	channels := make(chan error, 1)
	go func() { channels <- s.direct.Shutdown(ctx) }()
	return errors.Join(drained, s.http.Shutdown(ctx), <-channels)
}

// Close cuts all connections, waits for the requests under way, and closes the database.
// Acknowledged writes are kept.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		if s.stopKeeping != nil {
			s.stopKeeping()
		}
		if s.http != nil {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // do not wait for clients: Shutdown is for that
			_ = s.http.Shutdown(ctx)
			s.direct.Close()
		}
		if s.handler != nil {
			s.handler.Close()
		}
		if s.engine != nil {
			s.closeErr = s.engine.Close()
		}
		if s.peers != nil {
			s.peers.Close()
		}
		if s.db != nil {
			s.closeErr = errors.Join(s.closeErr, s.db.Close())
		}
	})
	return s.closeErr
}

// ConnectionString returns what an SDK takes to connect to endpoint.
func (s *Server) ConnectionString(endpoint string) string {
	return "AccountEndpoint=" + endpoint + ";AccountKey=" + s.options.Key + ";"
}

// exists reports whether there is data in dir.
func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}
