// SPDX-License-Identifier: MIT

// Data in a storage engine that several servers share.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv"
)

// Engine is a kind of storage engine that several servers can share.
type Engine struct {
	Name    string
	Schemes []string // of its URLs
	Example string   // a URL, for help and messages
	Open    func(ctx context.Context, o EngineOptions) (kv.DB, error)
}

// EngineOptions are the parameters of Engine.Open.
type EngineOptions struct {
	URL string
	// Connections is how many connections to the engine this process may have; 0 is the
	// engine's default. It is for engines whose snapshots hold connections.
	Connections int
	Logger      *slog.Logger
}

// engines are those that this program can open.
var engines = []Engine{{
	Name: "PostgreSQL", Schemes: []string{"postgres", "postgresql"}, Example: "postgres://user:password@host/database",
	Open: func(ctx context.Context, o EngineOptions) (kv.DB, error) {
		return pgkv.Open(ctx, pgkv.Options{URL: o.URL, Connections: o.Connections, Logger: o.Logger})
	},
}}

// engineExamples returns a URL of each engine.
func engineExamples() string {
	var all []string
	for _, e := range engines {
		all = append(all, e.Example)
	}
	return strings.Join(all, " or ")
}

// engineOf returns the engine of a URL.
func engineOf(url string) (Engine, error) {
	scheme, _, found := strings.Cut(url, "://")
	for _, e := range engines {
		if found && slices.Contains(e.Schemes, scheme) {
			return e, nil
		}
	}
	return Engine{}, fmt.Errorf("--engine must be the URL of a storage engine that this program knows: %s", engineExamples())
}

// engineFlag names a shared storage engine.
type engineFlag struct {
	Engine string `env:"MAYFLY_ENGINE" placeholder:"URL" help:"Storage engine that several servers share, in place of --data: ${engines}."`
}

// alone refuses a directory beside the engine, in which nothing would be kept. Only the
// flag counts: MAYFLY_DATA says where data is if no engine is named, as in the images.
func (f *engineFlag) alone(k *kong.Context) error {
	if f.Engine != "" && slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "data" }) {
		return errors.New("give either --engine or --data: with --engine, which MAYFLY_ENGINE sets too, no directory has data")
	}
	return nil
}

// nodeFlags say how a server joins the others on its storage engine.
type nodeFlags struct {
	engineFlag
	Node        string `env:"MAYFLY_NODE" placeholder:"NAME" help:"Name of this server among those on the storage engine. A server that starts takes the place of one with the same name."`
	Peer        string `env:"MAYFLY_PEER" placeholder:"URL" help:"URL at which the other servers reach this one. Default: the address that it listens on."`
	Connections int    `default:"32" env:"MAYFLY_CONNECTIONS" placeholder:"N" help:"Connections to the storage engine, at most (${default})."`
}

// engineOpenLimit is how long a start waits for the storage engine.
const engineOpenLimit = 30 * time.Second

// open opens the storage engine.
func (f *engineFlag) open(connections int, logger *slog.Logger) (kv.DB, error) {
	engine, err := engineOf(f.Engine)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineOpenLimit)
	defer cancel()
	db, err := engine.Open(ctx, EngineOptions{URL: f.Engine, Connections: connections, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("open the storage engine: %w", err)
	}
	return db, nil
}

// tool opens the storage engine for a tool.
func (f *engineFlag) tool() (kv.DB, error) {
	return f.open(0, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// join opens the storage engine and sets the options of a node on it.
func (f *nodeFlags) join(o *mayfly.Options, a net.Addr) error {
	switch {
	case f.Engine == "" && (f.Node != "" || f.Peer != ""):
		return errors.New("--node and --peer are for servers that share a storage engine: name it with --engine")
	case f.Engine == "":
		return nil
	case f.Node == "":
		return errors.New("--engine needs --node, a name of this server's own")
	case o.Memory:
		return errors.New("give either --engine or --memory")
	case o.NoSync:
		return errors.New("--sync=false has no effect with --engine: the storage engine decides when a write is durable")
	}
	peer := f.Peer
	if peer == "" {
		peer = "https://" + a.String()
		if anyAddress(a) {
			o.Logger.Warn("servers on other machines cannot reach this one at the address that it listens on", "address", peer, "remedy", "name it with --peer, as in --peer https://10.0.0.1:8081")
		}
	}
	db, err := f.open(f.Connections, o.Logger)
	if err != nil {
		return err
	}
	o.Cluster = &mayfly.Cluster{DB: db, Node: f.Node, Peer: peer}
	return nil
}

// anyAddress reports whether an address is all those of the machine, such as 0.0.0.0: it is
// none by which another machine finds this one.
func anyAddress(a net.Addr) bool {
	at, ok := a.(*net.TCPAddr)
	return ok && (len(at.IP) == 0 || at.IP.IsUnspecified())
}
