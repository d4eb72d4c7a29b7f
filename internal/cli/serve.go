// SPDX-License-Identifier: MIT

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
)

type serveCommand struct {
	Listen string `default:"127.0.0.1:8081" env:"MAYFLY_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on, for HTTP and HTTPS (${default}). A port alone is one of this machine."`
	Data   string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data (${default})."`
	Memory bool   `env:"MAYFLY_MEMORY" help:"Keep the data in memory until the server stops."`
	nodeFlags
	emulatorFlags
	keyFlags
	AllowHost         []string `env:"MAYFLY_ALLOW_HOST" placeholder:"NAME" help:"Host name that requests may come to, or *.NAME for all names below it. Repeat for more. With the well-known key, which a page in a browser knows too, requests to other names get 403, except localhost, names without a dot, host.docker.internal and the advertised endpoints. Addresses are always allowed."`
	Sync              bool     `default:"true" negatable:"" env:"MAYFLY_SYNC" help:"Acknowledge a write when it is on disk. --sync=false is for throw-away data: a crash of the server or the machine may lose the last writes."`
	TestClock         bool     `env:"MAYFLY_TEST_CLOCK" help:"Let the time be moved through /_mayfly/clock. Data written with this flag opens only with it. Answers say in x-mayfly-moment between which times of the database they were made, in milliseconds."`
	Region            []string `default:"South Central US" env:"MAYFLY_REGION" placeholder:"NAME" help:"Region that the account advertises (${default}), or NAME=URL for a region with its own endpoint. Repeat for more: the first takes writes, and requests to the endpoint of another can only read, unless --multi-write is set. With --engine it is where this server is, once: the account has the regions of all servers, and mayfly cluster failover says which is the first."`
	MultiWrite        bool     `env:"MAYFLY_MULTI_WRITE" help:"Let clients write in every region, as in --region='West US' --region='East US' --multi-write. All regions have one database, so there are never conflicts. Excludes --consistency=Strong."`
	Consistency       string   `default:"Session" env:"MAYFLY_CONSISTENCY" enum:"Strong,BoundedStaleness,Session,ConsistentPrefix,Eventual" placeholder:"LEVEL" help:"Default consistency level of the account: ${enum} (${default})."`
	Throughput        string   `default:"report" env:"MAYFLY_THROUGHPUT" enum:"report,enforce" placeholder:"MODE" help:"What provisioned throughput means: ${enum} (${default}). report counts request units and limits nothing; enforce refuses requests beyond it with 429."`
	ContainerQuota    limit    `default:"0" env:"MAYFLY_CONTAINER_QUOTA" placeholder:"SIZE" help:"Bytes of live items that a container may hold, in equal shares for its physical partitions; 0 for no limit."`
	PartitionKeyQuota limit    `default:"20GiB" env:"MAYFLY_PARTITION_KEY_QUOTA" placeholder:"SIZE" help:"Bytes of live items with one partition key (${default})."`
	MemoryLimit       limit    `env:"MAYFLY_MEMORY_LIMIT" placeholder:"SIZE" help:"Memory, such as 512MB or 2GiB, that the server divides among its parts. Default: the memory of the machine, or the limit of its container or service if that is less. Requests under way share a quarter of it: those that do not fit wait, and get 429 after ten seconds."`
	Cache             limit    `env:"MAYFLY_CACHE" placeholder:"SIZE" help:"Memory for the cache of data read from disk. It is taken as data is read. Default: an eighth of the memory, 32 MiB to 4 GiB; 256 MiB where the memory is not known."`
	Advertise         string   `env:"MAYFLY_ADVERTISE" placeholder:"URL" help:"Endpoint that clients are told to use. Default: the address that their request came to."`
	TLSCert           string   `name:"tls-cert" env:"MAYFLY_TLS_CERT" placeholder:"FILE" help:"Certificate to present, in PEM, with those that have signed it behind it. Default: the server makes one, which clients must trust (mayfly cert). It is read again when the file changes."`
	TLSKey            string   `name:"tls-key" env:"MAYFLY_TLS_KEY" placeholder:"FILE" help:"Key of that certificate, in PEM."`
	TLSName           []string `name:"tls-name" env:"MAYFLY_TLS_NAME" placeholder:"NAME" help:"Host name or address that the certificate which the server makes is for, beside localhost and the name of the machine. Repeat for more. A new name makes a new certificate."`
	RoutingGateway    bool     `env:"MAYFLY_ROUTING_GATEWAY" help:"Refuse requests for item ids that the service's older gateway refuses in a path: those that end with a space, or contain a percent triplet, a slash, a hash or a line end."`
	Explorer          bool     `default:"true" negatable:"" env:"MAYFLY_EXPLORER" help:"Serve pages for people, who open the server's address in a browser. From other machines they are open over HTTPS only. --explorer=false turns them off."`
	LogRequests       bool     `env:"MAYFLY_LOG_REQUESTS" help:"Log a line for every request."`
	LogFormat         string   `default:"text" env:"MAYFLY_LOG_FORMAT" enum:"text,json" placeholder:"FORMAT" help:"Form of the log: ${enum} (${default})."`
	LogLevel          string   `default:"info" env:"MAYFLY_LOG_LEVEL" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"Least level that is logged, on standard error: ${enum} (${default})."`

	ChangeFeedRetention time.Duration `env:"MAYFLY_CHANGE_FEED_RETENTION" placeholder:"DURATION" help:"How long the change feed keeps all versions and deletes of containers without a changeFeedPolicy, as continuous backup does in the service: 30d at most. Default: it keeps none."`

	EraseWithin string `env:"MAYFLY_ERASE_WITHIN" placeholder:"DURATION" help:"The time in which the bytes of expired, deleted and overwritten items leave all files of the data directory (24h), or off. A container may set its own. With --engine they cannot be erased in time, and this is refused."`
	PurgeDebt   size   `default:"256MiB" env:"MAYFLY_PURGE_DEBT" placeholder:"SIZE" help:"Space that the expired items of a container may take, as in --purge-debt=64MiB (${default}), or as much as its live items if that is more. As they come near it, writes carry purges with them and take longer, so that space is bounded at any load."`

	Init string `env:"MAYFLY_INIT" placeholder:"PLACE" help:"Fill a new server from this file of databases, containers and items, or from the directory of an export. Data that is there stays as it is."`

	SlowRequest time.Duration `default:"1s" env:"MAYFLY_SLOW_REQUEST" placeholder:"DURATION" help:"How long a request takes that gets a line in the log (${default}); 0 for none."`

	QueryTime time.Duration `default:"60s" env:"MAYFLY_QUERY_TIME" placeholder:"DURATION" help:"How long a query may take that cannot end a page early, such as one that sorts without an index (${default}). Other queries end a page after 5 seconds."`
}

// eraseWithin returns the time in which deleted data is erased, negative for any, and 0 for
// the default.
func (c *serveCommand) eraseWithin() (time.Duration, error) {
	switch c.EraseWithin {
	case "":
		return 0, nil
	case "off":
		return -1, nil
	}
	within, err := clock.ParseDuration(c.EraseWithin)
	if err != nil || within <= 0 {
		return 0, fmt.Errorf("--erase-within is %q: give a duration such as 24h or 7d, or off", c.EraseWithin)
	}
	return within, nil
}

// shutdownLimit is how long a stop waits for requests under way.
const shutdownLimit = 20 * time.Second

// Run serves until a signal or a failed write to the disk stops it.
func (c *serveCommand) Run(k *kong.Context) error {
	if err := c.alone(k); err != nil {
		return err
	}
	paceCollector(int64(c.MemoryLimit))
	addProcessors()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	// The port comes first: a port in use is the commonest failure, and cheap to detect.
	c.Listen = listenAddress(c.Listen)
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return listenFailed(c.Listen, err)
	}
	o := mayfly.Options{
		Dir: c.Data, Memory: c.Memory, AllowHosts: c.AllowHost, NoSync: !c.Sync, TestClock: c.TestClock,
		Regions: c.Region, MultiWrite: c.MultiWrite, Consistency: c.Consistency, Throughput: c.Throughput, Advertise: c.Advertise, RoutingGateway: c.RoutingGateway, NoExplorer: !c.Explorer,
		ContainerQuota: int64(c.ContainerQuota), PartitionKeyQuota: int64(c.PartitionKeyQuota), CacheBytes: int64(c.Cache), MemoryBytes: int64(c.MemoryLimit), QueryTime: c.QueryTime, PurgeDebt: int64(c.PurgeDebt), ChangeFeedRetention: c.ChangeFeedRetention,
		Logger: newLogger(os.Stderr, c.LogFormat, level), LogRequests: c.LogRequests,
		TLSCert: c.TLSCert, TLSKey: c.TLSKey, TLSNames: c.TLSName,
		SlowRequest: cmp.Or(c.SlowRequest, -1), Emulator: c.Emulator,
	}
	if o.EraseWithin, err = c.eraseWithin(); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := c.setKeys(&o); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := o.Admits(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := c.join(&o, l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	s, err := mayfly.Open(o)
	if err != nil {
		return errors.Join(openFailed(err), l.Close())
	}
	defer s.Close()
	if c.WriteCert != "" {
		if err := writeCertificate(c.WriteCert, s.TrustedCertificate()); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	served := make(chan error, 2)
	ready := func() {}
	if c.Init != "" {
		ready = s.Hold(errSeeding) // before the port is served: nobody is to see it ready too early
	}
	go func() { served <- s.Serve(l) }()
	if err := c.seed(ctx, s, l.Addr()); err != nil {
		return errors.Join(err, s.Close())
	}
	ready()
	c.greet(s, l.Addr())
	closeMore, err := c.listenMore(s, served, o.Logger)
	if err != nil {
		return err
	}
	defer closeMore()
	if c.Emulator {
		o.Logger.Warn("emulator mode: anybody who reaches this port has all rights, since the key is public", "address", l.Addr().String())
		announce(os.Stdout, l.Addr())
	}
	select {
	case err := <-served:
		return errors.Join(err, s.Close())
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	o.Logger.Info("stopping after the requests under way")
	limited, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	return errors.Join(s.Shutdown(limited), s.Close())
}

// newLogger returns the server's log in one of its forms.
func newLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// greet prints the server's addresses and a connection string.
func (c *serveCommand) greet(s *mayfly.Server, a net.Addr) {
	endpoint := c.Advertise
	if endpoint == "" {
		endpoint = "http://" + reachable(a.String()) + "/"
	}
	data := c.Data
	switch {
	case c.Memory:
		data = "memory"
	case c.Engine != "":
		data = "the shared storage engine, node " + c.Node
	}
	fmt.Printf("Mayfly listens on http://%s and https://%s, data in %s\n", a, a, data)
	if s.Key() == mayfly.WellKnownKey {
		fmt.Printf("Connection string: %s\n", s.ConnectionString(endpoint))
	} else {
		fmt.Printf("Connection string: AccountEndpoint=%s;AccountKey=<your key>;\n", endpoint)
	}
	if c.Explorer {
		fmt.Printf("Open %s in a browser to look into it.\n", endpoint)
	}
	if !c.Sync && !c.Memory {
		fmt.Println("--sync is off: a crash of the server or the machine may lose the last writes.")
	}
}

// reachable returns an address by which this machine reaches a server that listens on another:
// all addresses of a machine are no address that a client can use.
func reachable(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsUnspecified() {
		return address
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(at.Port())))
}

// listenAddress completes an address that is a port alone. It stays on this machine: all
// addresses are :PORT or 0.0.0.0:PORT.
func listenAddress(text string) string {
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		return net.JoinHostPort("127.0.0.1", text)
	}
	return text
}

func listenFailed(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program: stop it, or choose another address with --listen", address)
	}
	return fmt.Errorf("cannot listen on %s: %w", address, err)
}

// openFailed adds advice to an error of mayfly.Open, Check or RewindClock.
func openFailed(err error) error {
	switch {
	case errors.Is(err, mayfly.ErrInUse):
		return fmt.Errorf("%w: stop the other server, or choose another directory with --data", err)
	case errors.Is(err, mayfly.ErrNewerFormat):
		return fmt.Errorf("%w: use a newer version of mayfly", err)
	case errors.Is(err, mayfly.ErrDiskFull):
		return fmt.Errorf("%w: free some space, or choose another directory with --data", err)
	}
	return err
}
