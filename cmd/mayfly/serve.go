// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly"
)

type serveCommand struct {
	Listen string `default:"127.0.0.1:8081" env:"MAYFLY_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on, for HTTP and HTTPS (${default})."`
	Data   string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Where the data is kept (${default})."`
	Memory bool   `env:"MAYFLY_MEMORY" help:"Keep the data in memory, and nothing after the end."`
	keyFlags
	AllowHost         []string `env:"MAYFLY_ALLOW_HOST" placeholder:"NAME" help:"Host name by which clients may come, or *.NAME for those below it. Repeat for more. With the well-known key only these are answered, besides addresses, localhost, names without a dot, host.docker.internal and the advertised endpoints: a page in a browser knows that key too."`
	Sync              bool     `default:"true" negatable:"" env:"MAYFLY_SYNC" help:"Acknowledge a write when it is on disk. --sync=false is for throw-away data: a crash of the server or the machine may lose the last writes."`
	TestClock         bool     `env:"MAYFLY_TEST_CLOCK" help:"Let the time be moved through /_mayfly/clock. Data written so opens only so."`
	Region            []string `default:"South Central US" env:"MAYFLY_REGION" placeholder:"NAME" help:"Region that the account advertises (${default}), or NAME=URL for one with an endpoint of its own. Repeat for more: the first is written to, and who comes by the endpoint of another can only read."`
	Consistency       string   `default:"Session" env:"MAYFLY_CONSISTENCY" enum:"Strong,BoundedStaleness,Session,ConsistentPrefix,Eventual" placeholder:"LEVEL" help:"Default consistency level of the account: ${enum} (${default})."`
	Throughput        string   `default:"report" env:"MAYFLY_THROUGHPUT" enum:"report,enforce" placeholder:"MODE" help:"What provisioned throughput means: ${enum} (${default}). report counts what is spent and limits nothing; enforce refuses what goes beyond it with 429."`
	ContainerQuota    int64    `default:"0" env:"MAYFLY_CONTAINER_QUOTA" placeholder:"BYTES" help:"Live bytes that a container may hold, in equal shares for its physical partitions; 0 is no bound."`
	PartitionKeyQuota int64    `default:"21474836480" env:"MAYFLY_PARTITION_KEY_QUOTA" placeholder:"BYTES" help:"Live bytes that the items with one partition key may hold (${default}, 20 GiB)."`
	MemoryLimit       int64    `env:"MAYFLY_MEMORY_LIMIT" placeholder:"BYTES" help:"Memory that the server should get by with. Without it what the machine has, or the container or service if that is less. Requests under way have a quarter of it: those that do not fit wait, and get 429 if that takes long."`
	Cache             int64    `env:"MAYFLY_CACHE" placeholder:"BYTES" help:"Memory for data that was read from disk, taken as it is read. Without it an eighth of the memory, 32 MiB to 4 GiB; 256 MiB where it is not known how much there is."`
	Advertise         string   `env:"MAYFLY_ADVERTISE" placeholder:"URL" help:"Endpoint that clients are told to use. Without it, the one that each came by."`
	RoutingGateway    bool     `env:"MAYFLY_ROUTING_GATEWAY" help:"Refuse items by ids that the service's older gateway refuses in a path: those that end with a space, or have a percent triplet, a slash, a hash or a line end in them."`
	LogLevel          string   `default:"info" env:"MAYFLY_LOG_LEVEL" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"What to log on standard error: ${enum} (${default})."`

	ChangeFeedRetention time.Duration `env:"MAYFLY_CHANGE_FEED_RETENTION" placeholder:"DURATION" help:"For how long the change feed keeps all versions and deletes of containers without a changeFeedPolicy, as continuous backup does in the service, 720h at most. Without it not at all."`

	QueryTime time.Duration `default:"60s" env:"MAYFLY_QUERY_TIME" placeholder:"DURATION" help:"How long a query may work that cannot end a page early, like one that sorts without an index (${default}). Others end a page after 5 seconds."`
}

// shutdownLimit is how long requests under way may take to end at a stop.
const shutdownLimit = 20 * time.Second

// Run serves until it is told to stop.
func (c *serveCommand) Run() error {
	paceCollector(c.MemoryLimit)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	// The port comes first: it is the commonest thing to be taken, and cheap to
	// ask for.
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return listenFailed(c.Listen, err)
	}
	o := mayfly.Options{
		Dir: c.Data, Memory: c.Memory, AllowHosts: c.AllowHost, NoSync: !c.Sync, TestClock: c.TestClock,
		Regions: c.Region, Consistency: c.Consistency, Throughput: c.Throughput, Advertise: c.Advertise, RoutingGateway: c.RoutingGateway,
		ContainerQuota: c.ContainerQuota, PartitionKeyQuota: c.PartitionKeyQuota, CacheBytes: c.Cache, MemoryBytes: c.MemoryLimit, QueryTime: c.QueryTime, ChangeFeedRetention: c.ChangeFeedRetention,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}
	if err := c.setKeys(&o); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := o.Admits(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	s, err := mayfly.Open(o)
	if err != nil {
		return errors.Join(openFailed(err), l.Close())
	}
	defer s.Close()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c.greet(s, l.Addr())
	select {
	case err := <-served:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	fmt.Fprintln(os.Stderr, "mayfly: stopping; requests under way may end")
	limited, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	return errors.Join(s.Shutdown(limited), s.Close())
}

// greet says where the server is and how to reach it.
func (c *serveCommand) greet(s *mayfly.Server, a net.Addr) {
	endpoint := c.Advertise
	if endpoint == "" {
		endpoint = "http://" + a.String() + "/"
	}
	data := c.Data
	if c.Memory {
		data = "memory"
	}
	fmt.Printf("Mayfly listens on http://%s and https://%s, data in %s\n", a, a, data)
	if s.Key() == mayfly.WellKnownKey {
		fmt.Printf("Connection string: %s\n", s.ConnectionString(endpoint))
	} else {
		fmt.Printf("Connection string: AccountEndpoint=%s;AccountKey=<your key>;\n", endpoint)
	}
	if !c.Sync && !c.Memory {
		fmt.Println("Without --sync: a crash of the server or the machine may lose the last writes.")
	}
}

func listenFailed(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program: stop it, or choose another address with --listen", address)
	}
	return fmt.Errorf("cannot listen on %s: %w", address, err)
}

// openFailed adds what to do about an error.
func openFailed(err error) error {
	switch {
	case errors.Is(err, mayfly.ErrInUse):
		return fmt.Errorf("%w: stop the other server, or choose another directory with --data", err)
	case errors.Is(err, mayfly.ErrNewerFormat):
		return fmt.Errorf("%w: use a newer version of mayfly", err)
	case errors.Is(err, mayfly.ErrDiskFull):
		return fmt.Errorf("%w: make room, or choose another directory with --data", err)
	}
	return err
}
