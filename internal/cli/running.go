// SPDX-License-Identifier: MIT

// The running server that a command asks something of.

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
)

// maxResponseBytes bounds an answer that is no list.
const maxResponseBytes = 1 << 20

// defaultPort is the port of the service's emulators.
const defaultPort = "8081"

// running is a running server, of which a command asks something.
type running struct {
	Endpoint   string  `env:"MAYFLY_ENDPOINT" placeholder:"URL" help:"The running server. Default: this machine, at the port of MAYFLY_LISTEN or 8081."`
	Connection string  `env:"MAYFLY_CONNECTION" placeholder:"TEXT" help:"Its connection string, in place of --endpoint and --key."`
	Key        string  `env:"MAYFLY_KEY" placeholder:"BASE64" help:"Its master key. Default: the well-known key."`
	KeyFile    keyFile `env:"MAYFLY_KEY_FILE" placeholder:"FILE" help:"File with that key."`
	CA         string  `name:"ca" env:"MAYFLY_CA" placeholder:"FILE" help:"Certificate to trust over HTTPS, as mayfly cert prints it, or the server's data directory. The one in ./mayfly-data or MAYFLY_DATA is trusted for servers on this machine."`
}

// address returns the endpoint and the key.
func (s *running) address() (endpoint, key string, err error) {
	endpoint, key = s.Endpoint, s.Key
	if s.Connection != "" {
		named, itsKey, err := client.ParseConnection(s.Connection)
		if err != nil {
			return "", "", fmt.Errorf("--connection or MAYFLY_CONNECTION: %w", err)
		}
		endpoint = cmp.Or(endpoint, named)
		if s.KeyFile == "" {
			key = cmp.Or(key, itsKey)
		}
	}
	key, err = s.KeyFile.orWellKnown(key)
	return withScheme(cmp.Or(endpoint, ownEndpoint())), key, err
}

// ownEndpoint returns the address of a server that the same environment configures.
func ownEndpoint() string {
	host, port, err := net.SplitHostPort(listenAddress(os.Getenv("MAYFLY_LISTEN")))
	if err != nil || port == "0" {
		port = defaultPort
		if emulating(os.LookupEnv) {
			port = cmp.Or(os.Getenv("PORT"), port)
		}
		return "http://127.0.0.1:" + port
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// withScheme completes an address without a scheme.
func withScheme(endpoint string) string {
	if strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "http://" + endpoint
}

// open returns a client of the server that keeps a number of connections.
func (s *running) open(connections int) (*client.Client, error) {
	endpoint, key, err := s.address()
	if err != nil {
		return nil, err
	}
	return dial(client.Options{Endpoint: endpoint, Key: key, Connections: connections}, s.CA)
}

// dial returns a client that trusts the certificates in ca.
func dial(o client.Options, ca string) (*client.Client, error) {
	at, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if at.Scheme == "https" {
		if o.Roots, err = roots(ca, onThisMachine(at.Hostname())); err != nil {
			return nil, err
		}
	}
	return client.New(o)
}

// roots returns the certificates to trust; nil for those of the system alone.
func roots(ca string, here bool) (*x509.CertPool, error) {
	pem, err := certificates(ca, here)
	if err != nil || pem == nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in %s: mayfly cert prints one", ca)
	}
	return pool, nil
}

// certificates reads the file or directory that is named, or else the directory of a server
// on this machine.
func certificates(ca string, here bool) ([]byte, error) {
	if ca != "" {
		if info, err := os.Stat(ca); err == nil && info.IsDir() {
			return mayfly.Certificate(ca)
		}
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		return pem, nil
	}
	if !here {
		return nil, nil
	}
	pem, err := mayfly.Certificate(cmp.Or(os.Getenv("MAYFLY_DATA"), mayfly.DefaultDir))
	if err != nil { // that server may have its data elsewhere
		return nil, nil
	}
	return pem, nil
}

// onThisMachine reports whether a host is this machine by its name.
func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// warnOfClearKey warns before a key goes to another machine where others can read it. Only
// the pages under /_mayfly/ take the key itself; other requests are signed with it.
func warnOfClearKey(endpoint, key string) {
	at, err := url.Parse(endpoint)
	if err != nil || at.Scheme != "http" || onThisMachine(at.Hostname()) || key == mayfly.WellKnownKey {
		return
	}
	fmt.Fprintf(os.Stderr, "mayfly: the key goes to %s in clear, since the endpoint begins with http: use https, and --ca with the server's certificate\n", at.Host)
}

// send sends a request for one of Mayfly's own pages and returns its answer, or an error if
// the server refused it.
func (s *running) send(method, page string, q url.Values, body []byte, timeout time.Duration) (*http.Response, error) {
	c, err := s.open(1)
	if err != nil {
		return nil, err
	}
	_, key, _ := s.address()
	warnOfClearKey(c.Endpoint(), key)
	res, err := c.Page(context.Background(), method, page, q, body, timeout)
	if err != nil {
		return nil, explained(err, page)
	}
	return res, nil
}

// explained adds what to do to an error of a client.
func explained(err error, page string) error {
	var refused *client.Error
	var unreachable *client.Unreachable
	var unknown x509.UnknownAuthorityError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w%s", err, advice(refused.Status, page))
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: trust the server's certificate with --ca FILE; mayfly cert prints it", err)
	case errors.As(err, &plain):
		return fmt.Errorf("%w: the server speaks no TLS at this port; is the endpoint http?", err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("%w: is it running? Name it with --endpoint or MAYFLY_ENDPOINT", err)
	}
	return err
}

// advice returns a sentence about what to do after a refusal.
func advice(status int, page string) string {
	switch {
	case status == http.StatusUnauthorized:
		return " Give the server's key with --key or MAYFLY_KEY."
	case status == http.StatusNotFound && strings.HasPrefix(page, "ttl/") && page != "ttl/explain" && page != "ttl/undelete":
		return " To list all containers: mayfly ttl status"
	case status == http.StatusNotFound && page == "":
		return " To list what there is: mayfly ls"
	case status == http.StatusGone:
		return " Use --from=kept or --from=now in place of --cursor."
	}
	return ""
}

// interruptible returns a context that ends with Ctrl-C or SIGTERM. A second signal ends the
// process at once.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
