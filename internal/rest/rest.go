// SPDX-License-Identifier: MIT

// Package rest is the transport over HTTP: paths, headers, signatures and bodies. It
// decides nothing about data: a request is filled from what the client sends, answered
// in package api, and its answer is rendered here. It also has the pages of our own,
// under /_mayfly/.
package rest

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
)

// Options are the parameters of New.
type Options struct {
	Engine *engine.Engine
	// Keys are the master keys, in base64; a request may be signed with any.
	Keys []string
	// ReadOnlyKeys are keys that open only what is read.
	ReadOnlyKeys []string
	Account      api.Account
	// PublicKey says that one of the keys is one that everybody knows: then only hosts
	// are answered that no page in a browser can be at, and AllowHosts.
	PublicKey  bool
	AllowHosts []string
	// RoutingGateway refuses the ids in paths that the service's older gateway does.
	RoutingGateway bool
	// Memory is what requests under way may take; nil for no bounds.
	Memory *memory.Budget
	Logger *slog.Logger
}

// Handler answers every request to the server.
type Handler struct {
	engine         *engine.Engine
	keys           []*key // those that may write first
	service        *api.Service
	hosts          *hosts
	routingGateway bool
	quota          func() []string // of every container, as it is told
	logger         *slog.Logger
	lastDate       atomic.Pointer[checkedDate]
	memory         *memory.Budget
	exchanges      sync.Pool // of *exchange
	followers      *followers
	metrics        *metrics

	// life is held for reading by every request under way, and for writing by
	// Close: the engine must not be closed under a request.
	life   sync.RWMutex
	closed bool // written under life
}

// New returns a handler.
func New(o Options) (*Handler, error) {
	h := &Handler{
		engine: o.Engine, logger: o.Logger,
		routingGateway: o.RoutingGateway,
		quota:          sync.OnceValue(func() []string { return quotaHeader(o.Engine.ContainerQuota()) }), memory: o.Memory, followers: newFollowers(), metrics: newMetrics(),
	}
	if h.logger == nil {
		h.logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	h.service = &api.Service{Engine: o.Engine, Account: &o.Account, Logger: h.logger, Token: h.newToken}
	if err := o.Account.Check(); err != nil {
		return nil, err
	}
	var err error
	if h.hosts, err = newHosts(!o.PublicKey, &o.Account, o.AllowHosts); err != nil {
		return nil, err
	}
	for by, texts := range [][]string{api.ByKey: o.Keys, api.ByReadOnlyKey: o.ReadOnlyKeys} {
		for _, text := range texts {
			k, err := newKey(api.Credential(by), text)
			if err != nil {
				return nil, err
			}
			h.keys = append(h.keys, k)
		}
	}
	if len(o.Keys) == 0 {
		return nil, errors.New("there is no master key")
	}
	return h, nil
}

// Close waits for the requests under way and refuses all others from then on. The
// engine can be closed after it.
func (h *Handler) Close() {
	h.followers.close()
	h.life.Lock()
	defer h.life.Unlock()
	h.closed = true
}

// adminPrefix begins the paths of Mayfly's own pages.
const adminPrefix = "/_mayfly/"

// ServeHTTP implements http.Handler. It is no ServeMux: that one redirects
// double slashes and refuses trailing ones, both of which SDKs send.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := h.exchange(w, r)
	h.serve(x)
	*x = exchange{}
	h.exchanges.Put(x)
}

func (h *Handler) serve(x *exchange) {
	defer h.metrics.observe(x)
	h.life.RLock()
	defer h.life.RUnlock()
	defer x.End()
	defer x.recovered()
	if err := x.answer(); err != nil {
		x.writeError(err)
	}
}

// exchange begins with a request. Its memory is used again for another: that of a new one
// would be most of what a read of a small item takes.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request) *exchange {
	x, _ := h.exchanges.Get().(*exchange)
	if x == nil {
		x = &exchange{}
	}
	k := &kept{share: h.memory.Share()}
	x.h, x.w, x.r, x.operation, x.kept = h, w, r, opUnknown, k
	x.Began, x.Activity, x.Share = time.Now(), activityID(r), &k.share
	x.Context, x.Method, x.Path = r.Context(), r.Method, r.URL.EscapedPath()
	h.service.Begin(&x.Call)
	return x
}

func (x *exchange) answer() error {
	if x.h.closed {
		return engine.ErrStopping
	}
	if !x.h.hosts.check(x.r.Host).admitted {
		return hostRefused(x.r.Host)
	}
	if path, ok := strings.CutPrefix(x.r.URL.Path, adminPrefix); ok {
		x.operation = opAdmin
		return x.serveAdmin(path)
	}
	return x.serve()
}

// addressesPath is where clients in direct mode look for replicas.
const addressesPath = "addresses"

// serve answers a request of the protocol.
func (x *exchange) serve() error {
	rt, ok := parseURL(x.r.URL)
	if !ok {
		if strings.Trim(x.r.URL.Path, "/") == addressesPath {
			x.operation = opAddressResolve
			return errDirectMode
		}
		return errNoRoute
	}
	if x.h.routingGateway && !x.routed(&rt) {
		return nil
	}
	x.fill(&rt)
	g, err := x.h.authorize(x.r, &rt)
	if err != nil {
		return x.unauthenticated(err)
	}
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
		if x.Request.Body, err = x.bodyUpTo(x.Row.MaxBody); err != nil {
			return err
		}
	}
	if err := x.Row.Handle(&x.Call); err != nil {
		return err
	}
	x.render()
	return nil
}
