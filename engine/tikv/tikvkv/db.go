// SPDX-License-Identifier: MIT

// Package tikvkv keeps the promises of package kv with a TiKV cluster. Several processes may
// have the same store open: transactions at timestamps of PD order their commits.
//
// The invariant to know: a commit locks the keys that it requires. So a commit whose fence has
// moved meets a conflict, whatever else it writes. DESIGN.md has the decisions.
package tikvkv

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/tikv/client-go/v2/config"
	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"
	pd "github.com/tikv/pd/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Options are the parameters of Open.
type Options struct {
	// URL names the cluster's PD servers and the store, as in
	// tikv://pd1:2379,pd2:2379/name?ca=ca.pem. DESIGN.md lists the parameters.
	URL string
	// Logger gets what an operator should know; nil is slog.Default().
	Logger *slog.Logger
}

// DB is one handle on a store. It implements kv.DB.
type DB struct {
	store *tikv.KVStore
	log   *slog.Logger
	id    string // of this handle
	rows  prefix // of the store's rows
	own   prefix // of the rows that the engine keeps for itself
	step  time.Duration

	onePhase, asyncCommit bool
	collect               collection

	// life is held for reading by methods that use the cluster, and for writing by Close.
	life   sync.RWMutex
	closed bool // guarded by life
	// stop is closed when Close begins, and ends what takes long.
	stop       chan struct{}
	stopping   atomic.Bool
	background sync.WaitGroup // what Close waits for

	open struct {
		sync.Mutex
		snapshots map[*snapshot]struct{}
	}
}

var (
	_ kv.DB      = (*DB)(nil)
	_ kv.Stepper = (*DB)(nil)
)

// Open opens the store. It returns kv.ErrUnavailable if PD cannot be reached.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	a, err := parseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	logTo(o.Logger)
	s, err := a.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	step, err := a.timeStep(ctx)
	if err != nil {
		step = defaultStep
		o.Logger.Warn("PD does not tell the step of its time", "error", err.Error(), "assumed", step)
	}
	db := attach(s, a, step, defaultCollection, o.Logger)
	if err := db.checkFormat(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// attach makes a handle, which closes s.
func attach(s *tikv.KVStore, a address, step time.Duration, c collection, logger *slog.Logger) *DB {
	s.SetTiKVClient(witness{s.GetTiKVClient()})
	db := &DB{
		store: s, log: logger, id: uuid.NewString(), rows: a.rows(), own: a.own(), step: step,
		onePhase: a.onePhase, asyncCommit: a.asyncCommit, collect: c, stop: make(chan struct{}),
	}
	db.open.snapshots = map[*snapshot]struct{}{}
	db.background.Go(db.keepSafePoint)
	return db
}

const (
	// connectLimit is how long a client waits for PD before it reports that it is not there.
	connectLimit = 5 * time.Second
	// A connection to PD that is silent for idleLimit is asked whether it is alive, and given
	// up after aliveLimit, as connections to TiKV are.
	idleLimit  = 10 * time.Second
	aliveLimit = 3 * time.Second
	// An attempt to connect to PD is given up after attemptLimit, and the next one follows
	// after longestWait at most. The defaults of gRPC are 20 and 120 s, in which a node would
	// have no time of day although PD can be reached again.
	attemptLimit = 3 * time.Second
	longestWait  = time.Second
	// refreshSeconds is how often the client asks PD for the stores, which it does after 60 s by
	// itself. A store that could not be reached is not used before PD has told its address again.
	// The client does other work every quarter of this, which must be a second at least.
	refreshSeconds = 4
)

// configure sets what the client has for the whole process.
var configure = sync.OnceFunc(func() {
	config.UpdateGlobal(func(c *config.Config) { c.StoresRefreshInterval = refreshSeconds })
})

// dialing is how connections to PD are made and watched.
func dialing() []grpc.DialOption {
	wait := backoff.DefaultConfig
	wait.BaseDelay, wait.MaxDelay = longestWait/10, longestWait
	return []grpc.DialOption{
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: idleLimit, Timeout: aliveLimit}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: wait, MinConnectTimeout: attemptLimit}),
	}
}

// connect connects to the cluster.
func (a address) connect(ctx context.Context) (*tikv.KVStore, error) {
	configure()
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	client, err := pd.NewClientWithContext(context.WithoutCancel(ctx), a.pds, pd.SecurityOption{CAPath: a.ca, CertPath: a.cert, KeyPath: a.key},
		pd.WithCustomTimeoutOption(connectLimit), pd.WithMaxErrorRetry(1), pd.WithGRPCDialOptions(dialing()...))
	if err != nil {
		return nil, err
	}
	security := config.NewSecurity(a.ca, a.cert, a.key, nil)
	tls, err := security.ToTLSConfig()
	if err != nil {
		client.Close()
		return nil, err
	}
	points, err := tikv.NewEtcdSafePointKV(a.pds, tls)
	if err != nil {
		client.Close()
		return nil, err
	}
	codec := tikv.NewCodecPDClient(tikv.ModeTxn, client)
	rpc := tikv.NewRPCClient(tikv.WithSecurity(security), tikv.WithCodec(codec.GetCodec()))
	return tikv.NewKVStore("mayfly-"+uuid.NewString(), codec, points, rpc)
}

// formatKey has the number of the layout of the store in TiKV.
const (
	formatKey = "format"
	format    = "1"
)

// checkFormat writes the layout's number into a new store, and compares it in others.
func (db *DB) checkFormat(ctx context.Context) error {
	var b kv.Batch
	b.RequireAbsent([]byte(formatKey))
	b.Set([]byte(formatKey), []byte(format))
	err := db.commit(ctx, db.own, &b)
	if err == nil || !isConflict(err) {
		return err
	}
	values, _, err := db.look(ctx, db.own, [][]byte{[]byte(formatKey)})
	if err == nil && string(values[0]) != format {
		err = fmt.Errorf("%w: the layout in TiKV is %q, and this program knows %s", kv.ErrNewerFormat, values[0], format)
	}
	return err
}

// Far implements kv.DB.
func (db *DB) Far() bool { return true }

// Step implements kv.Stepper: PD's time moves in steps.
func (db *DB) Step() time.Duration { return db.step }

// Remains implements kv.DB. Files, logs and backups of the cluster are out of reach.
func (db *DB) Remains([]kv.Range) (position uint64, left []kv.Remains, err error) {
	return 0, nil, kv.ErrNoErasure
}

// Erase implements kv.DB.
func (db *DB) Erase(context.Context, []kv.Range, func(kv.Remains) error) error {
	return kv.ErrNoErasure
}

// Close implements kv.DB.
func (db *DB) Close() error {
	if db.stopping.Swap(true) {
		return kv.ErrClosed
	}
	close(db.stop)
	db.life.Lock()
	db.closed = true
	db.life.Unlock()
	db.background.Wait()
	return db.store.Close()
}

// enter begins the use of the cluster, until the caller calls db.life.RUnlock.
func (db *DB) enter() error {
	db.life.RLock()
	if db.closed {
		db.life.RUnlock()
		return kv.ErrClosed
	}
	return nil
}

// timestampLimit bounds the wait for a timestamp of PD, in milliseconds, and answerLimit that
// for everything else.
const (
	timestampLimit = 10_000
	answerLimit    = 30 * time.Second
)

// timestamp returns the present timestamp of PD. It is later than those of all commits that
// have returned.
func (db *DB) timestamp(ctx context.Context) (uint64, error) {
	return db.store.GetTimestampWithRetry(tikv.NewBackofferWithVars(ctx, timestampLimit, nil), oracle.GlobalTxnScope)
}
