// SPDX-License-Identifier: MIT

// Package rest is the transport over HTTP: paths, headers and bodies. It decides nothing
// about data: it fills a request from what the client sends, package api answers it, and
// the answer is rendered here. It also has Mayfly's own pages, under /_mayfly/.
package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/docs"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// Options are the parameters of New.
type Options struct {
	Engine *engine.Engine
	// Keys are the master keys, in base64. A request may be signed with any of them.
	Keys []string
	// ReadOnlyKeys are keys that allow only reads.
	ReadOnlyKeys []string
	Account      api.Account
	// PublicKey says that one of the keys is public. Then only hosts are accepted that no
	// web page can have, and AllowHosts.
	PublicKey  bool
	AllowHosts []string
	// Checkpoint makes a checkpoint of the data; nil if there can be none.
	Checkpoint func(context.Context) (kv.Checkpoint, error)
	// RoutingGateway refuses the ids in paths that the service's older gateway refuses.
	RoutingGateway bool
	// Emulator answers a read of the account without a credential, and opens the explorer to
	// other machines without TLS.
	Emulator bool
	// NoExplorer serves no pages for people under /_explorer/.
	NoExplorer bool
	// Docs has the pages that the explorer serves under /_explorer/docs/; nil for none.
	Docs *docs.Site
	// ShowMoments adds to every answer between which times of the database it was made.
	ShowMoments bool
	// Memory is the budget of all requests under way; nil for no limit.
	Memory *memory.Budget
	Logger *slog.Logger
	// LogRequests has the log get a line for every request, and SlowRequest for each that
	// takes as long; 0 for none.
	LogRequests bool
	SlowRequest time.Duration
	// Peers and Cluster are those of a node of a cluster; nil if there is none.
	Peers   *Peers
	Cluster Cluster
	// Asked answers a question of another node; nil if none is answered.
	Asked func(ctx context.Context, question []byte) ([]byte, error)
}

// Handler answers every request to the server.
type Handler struct {
	engine         *engine.Engine
	service        *api.Service
	hosts          *hosts
	routingGateway bool
	emulator       bool
	quota          func() string // the header with the quota of every container
	logger         *slog.Logger
	checkpoint     func(context.Context) (kv.Checkpoint, error)
	memory         *memory.Budget
	exchanges      sync.Pool // of *exchange
	followers      *followers
	metrics        *metrics
	peers          *Peers
	cluster        Cluster
	asked          func(ctx context.Context, question []byte) ([]byte, error)
	handle         func(*api.Call) error  // Handle of package api; tests say where partitions are
	sessions       *sessions              // of the explorer; nil if it is off
	docs           *docs.Site             // nil for none
	root           atomic.Pointer[[]byte] // the certificate that clients must trust, in PEM; nil if it is not known

	held        atomic.Pointer[error] // why the server is not ready yet; nil if nothing holds it
	directModes api.LineLimit         // of the line about clients that want direct mode where there is none

	// Every request under way holds life for reading, and Close takes it for writing: the
	// engine must not be closed during a request.
	life   sync.RWMutex
	closed bool // written under life
}

// Hold says that the server is not ready, and why, until the function is called. It answers
// requests all the same.
func (h *Handler) Hold(why error) (release func()) {
	h.held.Store(&why)
	return func() { h.held.Store(nil) }
}

// ready returns why the server is not ready; nil if it is.
func (h *Handler) ready() error {
	if why := h.held.Load(); why != nil {
		return *why
	}
	return h.engine.Ready()
}

// New returns a handler.
func New(o Options) (*Handler, error) {
	h := &Handler{
		engine: o.Engine, logger: o.Logger, checkpoint: o.Checkpoint,
		routingGateway: o.RoutingGateway, emulator: o.Emulator, peers: o.Peers, cluster: o.Cluster, asked: o.Asked, handle: (*api.Call).Handle,
		quota: sync.OnceValue(func() string { return api.QuotaText(o.Engine.ContainerQuota()) }), memory: o.Memory, followers: newFollowers(), metrics: newMetrics(),
	}
	if !o.NoExplorer {
		h.sessions, h.docs = newSessions(), o.Docs
	}
	if h.logger == nil {
		h.logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	h.service = &api.Service{
		Engine: o.Engine, Moments: o.ShowMoments, Account: &o.Account, Logger: h.logger,
		Journal: &api.Journal{Logger: h.logger, All: o.LogRequests, Slow: o.SlowRequest},
	}
	if err := o.Account.Check(); err != nil {
		return nil, err
	}
	var err error
	if h.hosts, err = newHosts(!o.PublicKey, &o.Account, o.AllowHosts); err != nil {
		return nil, err
	}
	if h.service.Keys, err = api.NewKeys(o.Keys, o.ReadOnlyKeys); err != nil {
		return nil, err
	}
	return h, nil
}

// Close waits for the requests under way and refuses all later ones. After it, the engine
// can be closed.
func (h *Handler) Close() {
	h.followers.close()
	h.life.Lock()
	defer h.life.Unlock()
	h.closed = true
}

// adminPrefix begins the paths of Mayfly's own pages.
const adminPrefix = "/_mayfly/"

// ServeHTTP implements http.Handler. A ServeMux would redirect double slashes and refuse
// trailing ones, and SDKs send both.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := h.exchange(w, r)
	defer h.release(x)
	defer h.observe(x)
	h.life.RLock()
	defer h.life.RUnlock()
	defer x.End()
	defer x.recovered()
	if err := x.answer(); err != nil {
		x.writeError(err)
	}
	x.seeOff()
}

// exchange begins an exchange. Exchanges are pooled: a new one would be most of the
// memory that a read of a small item takes.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request) *exchange {
	x, _ := h.exchanges.Get().(*exchange)
	if x == nil {
		x = &exchange{}
	}
	share := h.memory.Share() // not pooled: a write whose client has gone may still use it
	x.h, x.w, x.r, x.operation = h, w, r, opUnknown
	x.Began, x.Activity, x.Share = time.Now(), activityID(r), &share
	x.Context, x.Method, x.Path = r.Context(), r.Method, r.URL.EscapedPath()
	x.Origin = x
	h.service.Begin(&x.Call)
	return x
}

// release ends an exchange.
func (h *Handler) release(x *exchange) {
	*x = exchange{}
	h.exchanges.Put(x)
}

// answer answers a request, or returns the error for its client.
func (x *exchange) answer() error {
	if isPeer(x.r) {
		if err := x.recognise(); err != nil {
			return err
		}
	}
	switch {
	case x.h.closed && x.passed:
		return misdirected(engine.ErrStopping)
	case x.h.closed:
		return engine.ErrStopping
	case !x.passed && !x.h.hosts.check(x.r.Host).admitted: // a node has checked what it passes on
		return hostRefused(x.r.Host)
	case x.h.wantsPage(x.r):
		return x.leadToExplorer()
	}
	if page, ok := strings.CutPrefix(x.r.URL.Path, explorerPrefix); ok {
		return x.serveExplorer(page)
	}
	return x.route()
}

// route answers a request of the protocol, or for one of Mayfly's own pages.
func (x *exchange) route() error {
	switch path, admin := strings.CutPrefix(x.r.URL.Path, adminPrefix); {
	case admin:
		x.operation = opAdmin
		return x.atOwner(func() error { return x.serveAdmin(path) })
	case isAddresses(x.r.URL):
		return x.serveAddresses()
	}
	if err := x.accept(); err != nil {
		return err
	}
	target := x.Request.Target
	if err := x.h.handle(&x.Call); err != nil {
		return x.elsewhere(err, func() error {
			x.Request.Target, x.Answer = target, api.Answer{}
			err := x.h.handle(&x.Call)
			if err == nil {
				x.render()
			}
			return err
		})
	}
	x.render()
	return nil
}

// accept fills a request of the protocol, and checks whether its client may make it.
func (x *exchange) accept() error {
	rt, ok := parseURL(x.r.URL)
	if !ok {
		return errNoRoute
	}
	if x.h.routingGateway {
		if err := x.routed(&rt); err != nil {
			return err
		}
	}
	x.fill(&rt)
	g, err := x.authorize(&rt)
	if err != nil {
		return x.unauthenticated(err)
	}
	x.known = true
	if x.operation = opOther; x.Row != nil {
		x.operation = x.Row.Number
	}
	if err := x.Admit(&g); err != nil {
		return err
	}
	if err := x.admitHeaders(); err != nil {
		return err
	}
	if err := x.parse(); err != nil {
		return err
	}
	if x.Row.MaxBody > 0 {
		x.Request.Body, err = x.bodyUpTo(x.Row.MaxBody)
	}
	return err
}
