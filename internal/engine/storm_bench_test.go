// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

// A storm: many items of 1 KiB with eight indexed properties expire in one second.
// MAYFLY_STORM is their number; a hundred thousand by default.

const (
	stormItems     = 100_000
	stormWriters   = 64
	stormTTL       = 3600
	stormTraffic   = 2000 // operations per second at the same time
	stormLiveItems = 10_000
)

type storm struct {
	b  testing.TB
	db *pebblekv.DB
	e  *Engine
	n  int
	// dir has the files of db.
	dir string
}

func newStorm(b testing.TB, paused bool) *storm {
	b.Helper()
	s := &storm{b: b, n: stormItems, dir: b.TempDir()}
	if text := os.Getenv("MAYFLY_STORM"); text != "" {
		var err error
		if s.n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	var err error
	s.db, err = pebblekv.Open(pebblekv.Options{Dir: s.dir, IsIndexKey: store.IsIndexKey, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	s.e, err = Open(Options{DB: s.db, Health: s.db.Health, TestClock: true, PurgePaused: paused})
	if err != nil {
		b.Fatal(err)
	}
	s.must(s.e.Clock().Freeze())
	ctx := context.Background()
	_, err = s.e.CreateDatabase(ctx, []byte(`{"id":"d"}`), catalog.Throughput{})
	s.must(err)
	_, err = s.e.CreateContainer(ctx, "d", stormDefinition(stormTTL), catalog.Throughput{})
	s.must(err)
	return s
}

func stormDefinition(ttl int) []byte {
	return fmt.Appendf(nil, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":%d}`, ttl)
}

func (s *storm) must(err error) {
	s.b.Helper()
	if err != nil {
		s.b.Fatal(err)
	}
}

func (s *storm) close() {
	s.must(s.e.Close())
	s.must(s.db.Close())
}

var stormPad = strings.Repeat("x", 800)

// stormBody returns an item of 1 KiB with id, partition key and six more properties.
func stormBody(id, pk int, extra string) []byte {
	r := rand.New(rand.NewPCG(uint64(id), 1))
	return fmt.Appendf(nil, `{"id":"%d","pk":"%d","user":"user-%d","state":"%s","total":%d,"at":%d,"ok":%t,"pad":%q%s}`,
		id, pk, r.IntN(100_000), []string{"open", "paid", "sent"}[r.IntN(3)], r.IntN(100_000), 1_700_000_000+id, id%2 == 0, stormPad, extra)
}

func (s *storm) write(op store.Op, id int, extra string) error {
	_, err := s.e.WriteItem(context.Background(), &Request{
		Target: Target{Database: "d", Container: "c"}, Op: op, Body: stormBody(id, id%1000, extra),
	})
	return err
}

// fill writes n items, numbered from first on.
func (s *storm) fill(first, n int, extra string) {
	var next atomic.Int64
	next.Store(int64(first))
	var all sync.WaitGroup
	for range stormWriters {
		all.Go(func() {
			for id := int(next.Add(1)) - 1; id < first+n; id = int(next.Add(1)) - 1 {
				if err := s.write(store.Create, id, extra); err != nil {
					s.b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// gone waits until the items of the storm are purged.
func (s *storm) gone() {
	for {
		u, err := s.status()
		s.must(err)
		if u.Expired.Items == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *storm) status() (store.Usage, error) { return s.e.Usage(context.Background(), s.container()) }

func (s *storm) container() *catalog.Container {
	c, err := s.e.Container("d", "c")
	s.must(err)
	return c
}

func (s *storm) pausePurge(paused bool) {
	_, err := s.e.PausePurge(context.Background(), nil, paused)
	s.must(err)
}

// BenchmarkStorm measures how fast purge removes a storm without other work, and what the
// reports about it cost.
func BenchmarkStorm(b *testing.B) {
	for b.Loop() {
		s := newStorm(b, true)
		s.fill(0, s.n, "")
		began := time.Now()
		s.must(s.e.Clock().Advance(stormTTL * time.Second))
		u, err := s.status()
		s.must(err)
		if u.Live.Items != 0 || u.Expired.Items != int64(s.n) {
			b.Fatalf("got %+v", u)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds()), "usage-us")
		began = time.Now()
		_, err = s.e.WhatIf(context.Background(), s.container(), 60)
		s.must(err)
		b.ReportMetric(float64(time.Since(began).Microseconds()), "whatif-us")
		began = time.Now()
		_, err = s.e.Forecast(context.Background(), s.container(), time.Hour, 24)
		s.must(err)
		b.ReportMetric(float64(time.Since(began).Microseconds()), "forecast-us")
		began = time.Now()
		cpu := cpuTime(b)
		s.pausePurge(false)
		s.gone()
		b.ReportMetric(float64(s.n)/time.Since(began).Seconds(), "items/s")
		b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(s.n), "cpu-us/item")
		b.ReportMetric(0, "ns/op")
		s.close()
	}
}

// cpuTime returns the processor time that the process has used.
func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSpace measures whether space is freed: the size of the data after half of it
// has expired, was purged and compacted, compared with data that never contained it. It
// also measures a change of the default TTL, and finding the next item to expire once
// everything before it is purged.
func BenchmarkSpace(b *testing.B) {
	size := func(s *storm) float64 {
		s.must(s.db.Compact(context.Background(), nil, nil))
		// Replaced files are removed a moment later.
		least, calm := uint64(math.MaxUint64), 0
		for range 100 {
			if now := s.db.Health().DiskBytes; now < least {
				least, calm = now, 0
			} else if calm++; calm == 20 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		return float64(least - s.db.Health().SpareWALBytes)
	}
	for b.Loop() {
		never := newStorm(b, true)
		never.fill(never.n, never.n, `,"ttl":-1`)
		want := size(never)
		never.close()

		s := newStorm(b, true)
		s.fill(0, s.n, "")
		s.fill(s.n, s.n, `,"ttl":-1`)
		replace := func(ttl int) time.Duration {
			began := time.Now()
			_, err := s.e.ReplaceContainer(context.Background(), "d", "c", stormDefinition(ttl), "")
			s.must(err)
			return time.Since(began)
		}
		s.must(s.e.Clock().Advance(60 * time.Second))
		replace(86400)
		took := replace(60)
		u, err := s.status()
		s.must(err)
		if u.Live.Items != int64(s.n) || u.Expired.Items != int64(s.n) {
			b.Fatalf("right after the default was lowered: %+v", u)
		}
		b.ReportMetric(float64(took.Microseconds()), "replace-us")
		s.pausePurge(false)
		s.gone()
		s.pausePurge(true)
		c, err := s.e.Container("d", "c")
		s.must(err)
		p, err := s.e.partition(c, 0)
		s.must(err)
		for more := true; more; { // goes over the remaining items once
			done, err := p.Purge(context.Background(), store.Purge{MaxItems: 1})
			s.must(err)
			more = done.More
		}
		began := time.Now()
		const looks = 100
		for range looks {
			if _, err := p.Purge(context.Background(), store.Purge{MaxItems: 1}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/looks, "next-us")
		b.ReportMetric(size(s)/want, "size-ratio")
		b.ReportMetric(0, "ns/op")
		s.close()
	}
}

// BenchmarkStormTraffic measures what storms do to requests: the latency of reads and writes
// at a fixed rate, with and without concurrent purge. Each pair of measurements has a storm
// of its own. The garbage collector runs as seldom as in the server.
func BenchmarkStormTraffic(b *testing.B) {
	const serverGCPercent = 400
	defer debug.SetGCPercent(debug.SetGCPercent(serverGCPercent))
	for b.Loop() {
		s := newStorm(b, true)
		s.fill(0, stormLiveItems, `,"ttl":-1`)
		var ratios, rates []float64
		for i := range 5 {
			s.fill(stormLiveItems+i*s.n, s.n, "")
			s.must(s.e.Clock().Advance(stormTTL * time.Second))
			without := s.traffic(5 * time.Second)
			before, err := s.status()
			s.must(err)
			s.pausePurge(false)
			began := time.Now()
			with := s.traffic(5 * time.Second)
			s.pausePurge(true)
			after, err := s.status()
			s.must(err)
			rate := float64(before.Expired.Items-after.Expired.Items) / time.Since(began).Seconds()
			if after.Expired.Items == 0 {
				b.Errorf("pair %d: everything was purged before the end, so that the requests of the rest had nothing beside them", i)
			}
			b.Logf("p99 without %v, with %v, purged %.0f/s, left %d", without, with, rate, after.Expired.Items)
			ratios, rates = append(ratios, float64(with)/float64(without)), append(rates, rate)
		}
		// The median of pairs, since the disk's speed may change from one minute to the
		// next.
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], "p99-ratio")
		b.ReportMetric(slices.Min(rates), "least-items/s")
		b.ReportMetric(0, "ns/op")
		s.close()
	}
}

// traffic makes requests at a fixed rate, nine reads and one write in ten. It returns the
// 99th percentile of their latency, from the moment when each was due.
func (s *storm) traffic(d time.Duration) time.Duration {
	n := int(d.Seconds() * stormTraffic)
	took := make([]time.Duration, n)
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				due := began.Add(time.Duration(i) * time.Second / stormTraffic)
				time.Sleep(time.Until(due))
				id := i % stormLiveItems
				var err error
				if i%10 == 0 {
					err = s.write(store.Upsert, id, `,"ttl":-1`)
				} else {
					key, _ := json.Marshal([]string{strconv.Itoa(id % 1000)})
					_, err = s.e.ReadItem(&Request{Target: Target{Database: "d", Container: "c", ID: strconv.Itoa(id), PartitionKey: string(key)}})
				}
				took[i] = time.Since(due)
				if err != nil {
					s.b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took[n*99/100]
}
