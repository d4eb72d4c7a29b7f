// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// benchIndexed indexes eight properties and nothing else.
	benchIndexed = `,"indexingPolicy":{"excludedPaths":[{"path":"/*"}],"includedPaths":[` +
		`{"path":"/a/?"},{"path":"/b/?"},{"path":"/c/?"},{"path":"/d/?"},{"path":"/e/?"},{"path":"/f/?"},{"path":"/g/?"},{"path":"/h/?"}]}}`
	benchUnindexed = `,"indexingPolicy":{"excludedPaths":[{"path":"/*"}]}}`
)

// onDisk is an engine as the server opens it.
func onDisk(b *testing.B) kv.DB {
	b.Helper()
	db, err := pebblekv.Open(pebblekv.Options{Dir: b.TempDir(), IsIndexKey: IsIndexKey, Logger: slog.New(slog.DiscardHandler), CacheBytes: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// scaled is how many items a benchmark has, fewer with -short.
func scaled(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}

// benchPurged is an item of 1 KiB with eight indexed properties.
func benchPurged() string {
	properties := fmt.Sprintf(`"pad":%q`, strings.Repeat("x", benchPad-160))
	for i, name := range "abcdefgh" {
		properties += fmt.Sprintf(`,"%c":"value of %d"`, name, i)
	}
	return properties
}

// BenchmarkPurge purges items that expired all at once: in small groups, as while requests
// come, and in large ones.
func BenchmarkPurge(b *testing.B) {
	n := scaled(200_000)
	for _, most := range []int{50, 1000} {
		b.Run(fmt.Sprintf("items=%d/group=%d", n, most), func(b *testing.B) {
			f := makeFixture(b, onDisk(b), setup{definition: strings.TrimSuffix(withTTL("3600"), "}") + benchIndexed, nowMs: startMs})
			defer func() { f.p.Close() }()
			for range b.N {
				b.StopTimer()
				f.createMany(0, n, benchPurged())
				f.advance(2 * time.Hour)
				b.StartTimer()
				for more := true; more; {
					done, err := f.p.Purge(context.Background(), Purge{MaxItems: most})
					if err != nil {
						b.Fatal(err)
					}
					more = done.More
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "items/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPurgeIndexed purges items that were written once, of 1 KiB with ten indexed
// properties whose values differ, as the creates of BenchmarkCreateIndexed leave them. Its
// measure is processor time, with the flushes and compactions that the deletes cause.
func BenchmarkPurgeIndexed(b *testing.B) {
	const serverGCPercent = 400
	defer debug.SetGCPercent(debug.SetGCPercent(serverGCPercent))
	n := scaled(300_000)
	f := makeFixture(b, onDisk(b), setup{definition: withTTL("3600"), nowMs: startMs})
	defer func() { f.p.Close() }()
	for range b.N {
		b.StopTimer()
		f.createOrders(n)
		f.advance(2 * time.Hour)
		began := processorTime(b)
		b.StartTimer()
		for more := true; more; {
			done, err := f.p.Purge(context.Background(), Purge{MaxItems: 512})
			if err != nil {
				b.Fatal(err)
			}
			more = done.More
		}
		b.StopTimer()
		b.ReportMetric(float64(processorTime(b)-began)/1000/float64(n), "cpu-us/item")
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(0, "ns/op")
}

// createOrders creates orders as BenchmarkCreateIndexed does.
func (f *fixture) createOrders(n int) {
	f.t.Helper()
	var wg sync.WaitGroup
	for c := range manyClients {
		wg.Go(func() {
			for i := c; i < n; i += manyClients {
				id := fmt.Sprint("order-", i)
				o, err := value.ParseObject(benchOrder(id, i))
				if err == nil {
					_, err = f.p.Write(context.Background(), Write{Op: Create, Key: f.key("k", id), Item: o})
				}
				if err != nil {
					f.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkFindNext finds the next item to purge, right after many others were purged.
func BenchmarkFindNext(b *testing.B) {
	n := scaled(500_000)
	f := makeFixture(b, onDisk(b), setup{definition: strings.TrimSuffix(withTTL("3600"), "}") + benchUnindexed, nowMs: startMs})
	defer func() { f.p.Close() }()
	f.createMany(0, n, "")
	f.advance(2 * time.Hour)
	if got := f.purgeAll(); got != int64(n) {
		b.Fatalf("purged %d items, want %d", got, n)
	}
	f.put("next", "")
	f.advance(2 * time.Hour)
	for _, when := range []string{"running", "after a restart"} {
		b.Run(fmt.Sprintf("purged=%d/%s", n, when), func(b *testing.B) {
			for b.Loop() {
				pl, _, err := f.p.plan(Purge{MaxItems: 1})
				if err != nil || len(pl.victims) != 1 {
					b.Fatalf("got %+v, %v, want one victim", pl, err)
				}
			}
		})
		f.reopen()
	}
}

// BenchmarkInsight sums up many items, which were written in the course of a month, a tenth
// of them with a ttl of their own.
func BenchmarkInsight(b *testing.B) {
	n := scaled(1_000_000)
	const month = 30 * 24 * time.Hour
	f := makeFixture(b, inMemory(b), setup{definition: strings.TrimSuffix(withTTL("1296000"), "}") + benchUnindexed, nowMs: startMs})
	defer func() { f.p.Close() }()
	const steps = 1000
	for s := range steps {
		properties := ""
		if s%10 == 0 {
			properties = `"ttl":604800`
		}
		f.createMany(s*n/steps, (s+1)*n/steps, properties)
		f.advance(month / steps)
	}
	nowMs := f.clock.Now() + 123
	u, err := f.p.Usage(nowMs)
	if err != nil || u.Live.Items+u.Expired.Items != int64(n) || u.Expired.Items < int64(n)/3 {
		b.Fatalf("got %+v, %v", u, err)
	}
	var days []int64
	for d := range int64(30) {
		days = append(days, nowMs+(d+1)*24*3_600_000)
	}
	for name, ask := range map[string]func() error{
		"usage":    func() error { _, err := f.p.Usage(nowMs); return err },
		"what if":  func() error { _, err := f.p.WhatIf(86_400, nowMs); return err },
		"30 days":  func() error { _, err := f.p.Outlook(context.Background(), 1_296_000, nowMs, days); return err },
		"the last": func() error { _, err := f.p.Outlook(context.Background(), 86_400, nowMs, nil); return err },
		"oldest":   func() error { _, _, err := f.p.Oldest(nowMs); return err },
	} {
		b.Run(fmt.Sprintf("items=%d/%s", n, name), func(b *testing.B) {
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run(fmt.Sprintf("items=%d/reconfigure", n), func(b *testing.B) {
		settings := [2]catalog.Container{*f.container, *f.container}
		settings[1].DefaultTTL = 86_400
		for i := 0; b.Loop(); i++ {
			c := settings[i%2]
			c.Epoch += uint64(i) + 1
			if err := f.p.Reconfigure(context.Background(), &c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
