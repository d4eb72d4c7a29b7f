// SPDX-License-Identifier: MIT

package pgkv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	// statementLimit is how long the server works on one statement. It is shorter than
	// answerLimit, so that a slow server says that it wrote nothing before the client stops
	// listening and does not know.
	statementLimit = 10 * time.Second
	// answerLimit is how long the answer to one message may take.
	answerLimit = 30 * time.Second
	// connectLimit is how long it may take to connect.
	connectLimit = 5 * time.Second
	// turnLimit is how long a caller waits for a free connection.
	turnLimit = 5 * time.Second
	// idleLimit ends what a stopped process holds: the transactions of its snapshots.
	idleLimit = 60 * time.Second
	// trustedFor is how long an unused connection counts as alive. Afterwards it is pinged
	// before it is used: the server may have closed it.
	trustedFor = time.Second
)

// session is how the server treats our connections. Every statement of this package reads by
// the primary key, and a plan that reads more, as the planner likes for small tables, would
// also lock more: commits of others would seem to conflict.
var session = map[string]string{
	"statement_timeout":                   fmt.Sprint(statementLimit.Milliseconds()),
	"idle_in_transaction_session_timeout": fmt.Sprint(idleLimit.Milliseconds()),
	"default_transaction_isolation":       "read committed",
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"enable_sort":                         "off",
	"plan_cache_mode":                     "force_generic_plan",
	"jit":                                 "off",
	"standard_conforming_strings":         "on",
}

// pool is the connections of one handle.
type pool struct {
	config *pgconn.Config
	slots  chan struct{} // one token for each connection that exists or is being made

	mu struct {
		sync.Mutex
		idle   []*conn // the one used last is at the end
		closed bool
		// broken is when a connection was last found broken: others that were not used since
		// may be too.
		broken time.Time
	}
}

// conn is a connection. One goroutine uses it at a time.
type conn struct {
	pg         *pgconn.PgConn
	wire       *wire
	statements [statementCount]*pgconn.StatementDescription // those that are prepared
	used       time.Time
	by         time.Time // the deadline of the caller that has it; zero: none
}

// wire is the network connection below. It remembers whether a write failed: a message is one
// write, so the server has not got the whole of the last message then, and does not act on it.
type wire struct {
	net.Conn
	failed bool
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if n < len(p) {
		w.failed = true
	}
	return n, err
}

func newPool(config *pgconn.Config, size int) *pool {
	config = config.Copy()
	own := maps.Clone(session)
	own["application_name"] = "mayfly"
	maps.Copy(own, config.RuntimeParams) // what the URL says is stronger
	config.RuntimeParams = own
	config.ConnectTimeout = connectLimit
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, c net.Conn) (net.Conn, error) {
		return &wire{Conn: c}, nil
	}
	// A standby shows old rows: no look at it proves anything.
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	return &pool{config: config, slots: make(chan struct{}, size)}
}

// acquire returns a connection for the caller alone, who releases it.
func (p *pool) acquire(ctx context.Context) (c *conn, err error) {
	select {
	case p.slots <- struct{}{}:
	default:
		if err := wait(ctx, p.slots); err != nil {
			return nil, err
		}
	}
	for {
		c, trusted := p.take()
		if c == nil {
			break
		}
		c.by, _ = ctx.Deadline()
		if trusted {
			return c, nil
		}
		if _, err := c.simple("-- ping"); err == nil {
			return c, nil
		}
		p.discard(c)
	}
	if c, err = p.connect(ctx); err != nil {
		<-p.slots
		return nil, err
	}
	c.by, _ = ctx.Deadline()
	return c, nil
}

// wait puts a token into c, as soon as there is room.
func wait(ctx context.Context, c chan struct{}) error {
	timer := time.NewTimer(turnLimit)
	defer timer.Stop()
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("%w: all %d connections were in use for %v", kv.ErrUnavailable, cap(c), turnLimit)
	}
}

// take removes the idle connection that was used last. trusted says that it need not be
// pinged.
func (p *pool) take() (c *conn, trusted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.mu.idle)
	if n == 0 {
		return nil, false
	}
	c = p.mu.idle[n-1]
	p.mu.idle = p.mu.idle[:n-1]
	return c, time.Since(c.used) < trustedFor && c.used.After(p.mu.broken)
}

func (p *pool) connect(ctx context.Context) (*conn, error) {
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	pg, err := pgconn.ConnectConfig(limited, p.config)
	if err != nil {
		if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
			return nil, ended
		}
		return nil, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	return &conn{pg: pg, wire: pg.Conn().(*wire)}, nil
}

// release gives the connection back. One that is broken, or in a transaction, is closed.
func (p *pool) release(c *conn) {
	if c.pg.IsClosed() || c.pg.TxStatus() != 'I' {
		p.discard(c)
		<-p.slots
		return
	}
	c.used = time.Now()
	p.mu.Lock()
	closed := p.mu.closed
	if !closed {
		p.mu.idle = append(p.mu.idle, c)
	}
	p.mu.Unlock()
	if closed {
		c.close()
	}
	<-p.slots
}

func (p *pool) discard(c *conn) {
	p.mu.Lock()
	p.mu.broken = time.Now()
	p.mu.Unlock()
	c.close()
}

// close closes idle connections, and has the others closed as they are released.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.mu.idle
	p.mu.idle, p.mu.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// close ends the connection, and with it a transaction that is open.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.pg.Close(ctx) // what cannot be told to the server, it notices
}

// limit bounds the exchange that follows, by the caller's deadline too. A caller that cancels
// does not end it: a client that goes away should not cost a connection.
func (c *conn) limit() {
	by := time.Now().Add(answerLimit)
	if !c.by.IsZero() && c.by.Before(by) {
		by = c.by
	}
	_ = c.wire.SetDeadline(by) // it fails only on a closed connection
}

// simple sends one message of the simple protocol, and returns the rows of its last statement.
func (c *conn) simple(text string) (rows [][][]byte, err error) {
	c.limit()
	results, err := c.pg.Exec(context.Background(), text).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[len(results)-1].Rows, nil
}
