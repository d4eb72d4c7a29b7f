// SPDX-License-Identifier: MIT

package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/value"
)

type benchCommand struct {
	running
	printed
	Time        time.Duration `name:"seconds" default:"10s" placeholder:"DURATION" help:"How long each measurement takes (${default})."`
	Connections int           `default:"8" placeholder:"N" help:"How many requests are under way (${default})."`
	Bytes       size          `default:"1KB" placeholder:"SIZE" help:"Size of the items (${default})."`
	TTL         time.Duration `name:"ttl" default:"1h" placeholder:"DURATION" help:"Their ttl (${default}); -1 for none."`
	Keep        bool          `help:"Keep the database with the items."`
}

// Help is shown below the usage.
func (*benchCommand) Help() string {
	return `It makes a database of its own in a running server, measures creates, reads, replaces,
queries and deletes of items, one request for each, and deletes the database. The figures
are those of the server and of this client together: on one machine they share its
processors.

Examples:

  mayfly bench
  mayfly bench --connections 64 --seconds 1m --bytes 4KB
  mayfly bench --json | jq .perSecond`
}

const (
	benchKeys = 1000
	// benchLeast is the shortest time in which there is something to measure.
	benchLeast     = 100 * time.Millisecond
	maxConnections = 4096
	// benchWatch is how many latencies a connection keeps.
	benchWatch = 1 << 20
)

// Run measures a running server.
func (b *benchCommand) Run() error {
	if b.TTL != -time.Second && (b.TTL < time.Second || b.TTL%time.Second != 0) {
		return fmt.Errorf("--ttl is %v: give %s, of whole seconds, or -1", b.TTL, clock.DurationRule)
	}
	if b.Time < benchLeast || b.Connections < 1 || b.Connections > maxConnections || b.Bytes > 1<<20 {
		return fmt.Errorf("give at least %v, 1 to %d connections, and items of 1 MiB at most", benchLeast, maxConnections)
	}
	ctx, stop := interruptible()
	defer stop()
	c, err := b.open(b.Connections)
	if err != nil {
		return err
	}
	name := client.Name{Database: fmt.Sprintf("mayfly-bench-%08x", rand.Uint32()), Container: "items"}
	err = explained(b.make(ctx, c, name), "")
	if err == nil {
		err = explained(b.measure(ctx, c, name), "")
	}
	if b.Keep {
		return err
	}
	// The database is deleted also after Ctrl-C.
	return errors.Join(err, ignoreNotFound(c.Delete(context.WithoutCancel(ctx), client.Name{}, client.Databases, name.Database)))
}

func ignoreNotFound(err error) error {
	if client.Is(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func (b *benchCommand) make(ctx context.Context, c *client.Client, name client.Name) error {
	if err := c.Create(ctx, client.Name{}, client.Databases, idBody(name.Database), nil); err != nil {
		return err
	}
	definition := `{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}`
	return c.Create(ctx, client.Name{Database: name.Database}, client.Containers, []byte(definition), nil)
}

// measure runs the measurements and prints a line for each.
func (b *benchCommand) measure(ctx context.Context, c *client.Client, name client.Name) error {
	pad := strings.Repeat("x", max(0, int(b.Bytes)-100))
	item := func(i int64) (id string, key value.PartitionKey, body []byte) {
		id, pk := fmt.Sprint(i), fmt.Sprint("p", i%benchKeys)
		return id, value.PartitionKey{value.String(pk)}, fmt.Appendf(nil, `{"id":"%s","pk":"%s","n":%d,"even":%t,"ttl":%d,"pad":"%s"}`, id, pk, i, i%2 == 0, b.TTL/time.Second, pad)
	}
	var made, gone atomic.Int64
	some := func() int64 { return 1 + rand.Int64N(max(made.Load(), 1)) }
	query := []byte(`{"query":"SELECT c.id, c.n FROM c WHERE c.n >= 0 ORDER BY c.n OFFSET 0 LIMIT 10","parameters":[]}`)
	var all []measurement
	for _, m := range []struct {
		what string
		do   func(context.Context) (*client.Answer, error)
	}{
		{"create", func(ctx context.Context) (*client.Answer, error) {
			_, key, body := item(made.Add(1))
			return c.WriteItem(ctx, name, body, key, client.Create)
		}},
		{"read", func(ctx context.Context) (*client.Answer, error) {
			id, key, _ := item(some())
			return c.ReadItem(ctx, name, id, key)
		}},
		{"replace", func(ctx context.Context) (*client.Answer, error) {
			_, key, body := item(some())
			return c.WriteItem(ctx, name, body, key, client.Upsert)
		}},
		{"query", func(ctx context.Context) (*client.Answer, error) {
			_, key, _ := item(some())
			return c.Query(ctx, name, query, client.Page{Key: key, MaxItems: 10})
		}},
		{"delete", func(ctx context.Context) (*client.Answer, error) {
			next := gone.Add(1)
			if next > made.Load() {
				return nil, errNoMore
			}
			id, key, _ := item(next)
			return c.DeleteItem(ctx, name, id, key)
		}},
	} {
		fmt.Fprintf(os.Stderr, "measuring %s for %v\n", m.what, b.Time)
		of, err := b.drive(ctx, m.do)
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		of.What = m.what
		all = append(all, of)
	}
	return b.show(func() error {
		rows := [][]string{{"", "A SECOND", "MEAN", "HALF", "99 %", "99.9 %", "RU"}}
		for _, m := range all {
			rows = append(rows, []string{
				m.What, grouped(int64(m.PerSecond)), milliseconds(m.MeanMs), milliseconds(m.HalfMs), milliseconds(m.P99Ms), milliseconds(m.P999Ms), fmt.Sprintf("%.2f", m.RU),
			})
		}
		table(os.Stdout, "lrrrrrr", rows)
		return nil
	}, anys(all)...)
}

// measurement is what one kind of request came to.
type measurement struct {
	What      string  `json:"what"`
	PerSecond float64 `json:"perSecond"`
	// The times that requests took.
	MeanMs float64 `json:"meanMs"`
	HalfMs float64 `json:"halfMs"`
	P99Ms  float64 `json:"p99Ms"`
	P999Ms float64 `json:"p999Ms"`
	// RU is the charge of one request.
	RU float64 `json:"requestUnits"`
}

// errNoMore: everything is deleted.
var errNoMore = errors.New("there are no more items")

// drive repeats a request over all connections, and returns the figures.
func (b *benchCommand) drive(ctx context.Context, do func(context.Context) (*client.Answer, error)) (m measurement, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latencies := make([][]time.Duration, b.Connections)
	var charge, count atomic.Int64 // hundredths
	began := time.Now()
	var wait sync.WaitGroup
	for w := range b.Connections {
		wait.Go(func() {
			for time.Since(began) < b.Time && ctx.Err() == nil {
				at := time.Now()
				a, err := do(ctx)
				if errors.Is(err, errNoMore) {
					return
				}
				if err != nil {
					cancel(err)
					return
				}
				if len(latencies[w]) < benchWatch {
					latencies[w] = append(latencies[w], time.Since(at))
				}
				charge.Add(int64(a.Charge() * 100))
				count.Add(1)
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return m, err
	}
	all := slices.Concat(latencies...)
	if len(all) == 0 {
		return m, errors.New("nothing was measured")
	}
	slices.Sort(all)
	var sum time.Duration
	for _, l := range all {
		sum += l
	}
	at := func(share float64) float64 {
		return 1000 * all[min(int(share*float64(len(all))), len(all)-1)].Seconds()
	}
	n := float64(count.Load())
	return measurement{
		PerSecond: n / took.Seconds(), MeanMs: 1000 * (sum / time.Duration(len(all))).Seconds(), HalfMs: at(0.5), P99Ms: at(0.99), P999Ms: at(0.999),
		RU: float64(charge.Load()) / 100 / n,
	}, nil
}

func milliseconds(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }
