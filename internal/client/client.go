// SPDX-License-Identifier: MIT

// Package client sends requests to a server that speaks the protocol: this one, another of
// its kind, or the service itself. It signs them, trusts a certificate that it is given, and
// repeats what the server was too busy for. It is made for tools, and is no SDK: it keeps no
// session and knows no regions.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// version is that of the protocol.
	version = "2020-07-15"
	// maxBodyBytes bounds an answer: a page has 4 MiB, and a little more around it.
	maxBodyBytes = 64 << 20
	// defaultAttempt is how long a request may take, with its answer.
	defaultAttempt = 2 * time.Minute
	// defaultPatience is how long a request is repeated.
	defaultPatience = time.Minute
	// defaultGreeting is how long a server is waited for that nobody listens for and that has
	// answered nothing yet: it may be starting, but most likely is not running.
	defaultGreeting = 5 * time.Second
	// The pause before a repetition, if the server names none.
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
	// dialLimit is how long a connection may take to be made.
	dialLimit = 10 * time.Second
	// idleLimit is how long a connection is kept without a request.
	idleLimit = 90 * time.Second
)

// Options are the parameters of New.
type Options struct {
	// Endpoint is the address of the server, and Key its key in base64.
	Endpoint, Key string
	// Roots are the certificates that are trusted; nil for those of the system.
	Roots *x509.CertPool
	// Connections is how many connections are kept; 0 for one.
	Connections int
	// Patience is how long a request is repeated that the server was too busy for, or did
	// not get; 0 for a minute, negative for not at all. Before its first answer a server that
	// takes no connection is waited for a few seconds only.
	Patience time.Duration
	// Retried is called before a request is repeated; nil for not.
	Retried func(reason error)
}

// Client sends requests to one server. Several goroutines may use it.
type Client struct {
	endpoint string
	signer   *signer
	http     *http.Client
	patience time.Duration
	greeting time.Duration
	retried  func(error)
	// met says that the server has answered.
	met atomic.Bool
}

// New returns a client. It sends nothing yet.
func New(o Options) (*Client, error) {
	at, err := url.Parse(o.Endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("%q is no endpoint: give a URL such as https://localhost:8081/", o.Endpoint)
	}
	s, err := newSigner(o.Key)
	if err != nil {
		return nil, err
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	connections := max(o.Connections, 1)
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialLimit}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: o.Roots},
		TLSHandshakeTimeout: dialLimit,
		MaxIdleConns:        connections, MaxIdleConnsPerHost: connections,
		IdleConnTimeout: idleLimit,
		// One connection of HTTP/2 would carry all requests, and the tools want several.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	return &Client{
		endpoint: strings.TrimRight(o.Endpoint, "/"), signer: s, http: &http.Client{Transport: transport},
		patience: o.Patience, greeting: defaultGreeting, retried: o.Retried,
	}, nil
}

// Endpoint returns the address of the server, without a slash at its end.
func (c *Client) Endpoint() string { return c.endpoint }

// Close closes the connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is a request of the protocol.
type Request struct {
	Method string
	// Path is the path of the URL, escaped. Kind and Link are what the signature names: the
	// kind of the resource, and the names on the path to it or to its list.
	Path, Kind, Link string
	Header           map[string]string
	Body             []byte
	// Once says that the request must not be repeated if its answer was lost: it is one that
	// does something else the second time.
	Once bool
}

// Answer is the server's answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Number returns a header that is a number; 0 if it is none.
func (a *Answer) Number(name string) float64 {
	n, _ := strconv.ParseFloat(a.Header.Get(name), 64)
	return n
}

// Do sends a request, signed, until it is answered, and returns the answer. A status of 400
// and above is an *Error, beside the answer.
func (c *Client) Do(ctx context.Context, r *Request) (*Answer, error) {
	began := time.Now()
	pause := firstPause
	for {
		a, err := c.attempt(ctx, r)
		wait, again := repeatable(a, err, r.Once)
		if !again || ctx.Err() != nil {
			return a, err
		}
		if wait == 0 {
			wait, pause = pause, min(2*pause, maxPause)
		}
		patience := c.patience
		if notSent(err) && !c.met.Load() {
			patience = min(patience, c.greeting)
		}
		if time.Since(began)+wait > patience {
			return a, err
		}
		if c.retried != nil {
			c.retried(err)
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// notSent reports whether no connection was made for a request.
func notSent(err error) bool {
	var refused *net.OpError
	return errors.As(err, &refused) && refused.Op == "dial"
}

// repeatable reports whether a request may be repeated, and after which time if the server
// names one.
func repeatable(a *Answer, err error, once bool) (wait time.Duration, again bool) {
	if err == nil {
		return 0, false
	}
	if a == nil { // no answer
		var untrusted *tls.CertificateVerificationError
		var plain tls.RecordHeaderError
		if errors.As(err, &untrusted) || errors.As(err, &plain) {
			return 0, false
		}
		return 0, notSent(err) || !once
	}
	switch a.Status {
	case http.StatusTooManyRequests:
		ms := a.Number("X-Ms-Retry-After-Ms")
		return time.Duration(ms) * time.Millisecond, true
	case http.StatusServiceUnavailable, http.StatusRequestTimeout, statusRetryWith:
		return 0, !once || a.Status == http.StatusServiceUnavailable
	}
	return 0, false
}

// statusRetryWith is 449: another request was writing the same thing.
const statusRetryWith = 449

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r *Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultAttempt)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, c.endpoint+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-Ms-Version", version)
	req.Header.Set("User-Agent", "mayfly")
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	c.signer.sign(req, r.Kind, r.Link, time.Now())
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer res.Body.Close()
	c.met.Store(true)
	body, err := readAll(res)
	if err != nil {
		return nil, c.unreachable(fmt.Errorf("the answer ended early: %w", err))
	}
	a := &Answer{res.StatusCode, res.Header, body}
	if res.StatusCode >= http.StatusBadRequest {
		return a, newError(a)
	}
	return a, nil
}

// readAll reads the body of an answer.
func readAll(res *http.Response) ([]byte, error) {
	if res.ContentLength > maxBodyBytes {
		return nil, fmt.Errorf("it has %d bytes", res.ContentLength)
	}
	var b bytes.Buffer
	if res.ContentLength > 0 {
		b.Grow(int(res.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(res.Body, maxBodyBytes+1))
	if err == nil && n > maxBodyBytes {
		err = fmt.Errorf("it has more than %d bytes", maxBodyBytes)
	}
	return b.Bytes(), err
}

// unreachable says what to do about a server that does not answer.
func (c *Client) unreachable(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the address, which is long with its parameters
	}
	return &Unreachable{c.endpoint, err}
}

// Page sends a request for one of the pages under /_mayfly/, with the key as a bearer token,
// and returns its answer, whose body the caller closes. Another status than 200 is an *Error.
// The time is for the answer with its body; 0 is no limit.
func (c *Client) Page(ctx context.Context, method, page string, q url.Values, body []byte, limit time.Duration) (*http.Response, error) {
	cancel := context.CancelFunc(func() {})
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	address := c.endpoint + "/_mayfly/" + page
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.signer.text)
	res, err := c.http.Do(req)
	if err != nil {
		cancel()
		return nil, c.unreachable(err)
	}
	res.Body = &ending{res.Body, cancel}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	answer, err := readAll(res)
	if err != nil {
		return nil, err
	}
	return nil, newError(&Answer{res.StatusCode, res.Header, answer})
}

// ending is a body that releases the time limit of its request when it is closed.
type ending struct {
	io.ReadCloser
	release func()
}

func (e *ending) Close() error {
	defer e.release()
	return e.ReadCloser.Close()
}
