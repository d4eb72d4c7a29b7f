// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/value"
)

// processorTime is the processor time that this process has used.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkCreateIndexed creates items of 1 KiB with ten indexed properties, durably, by
// many clients. Its measure is processor time, since other processes share the machine.
func BenchmarkCreateIndexed(b *testing.B) {
	db, err := pebblekv.Open(pebblekv.Options{Dir: b.TempDir(), IsIndexKey: IsIndexKey, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	f := makeFixture(b, db, setup{definition: withTTL("3600"), nowMs: startMs})
	defer f.p.Close()
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(16)
	began := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			id := fmt.Sprint("order-", i)
			o, err := value.ParseObject(benchOrder(id, int(i)))
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := f.p.Write(context.Background(), Write{Op: Create, Key: f.key("k", id), Item: o}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(processorTime(b)-began)/1000/float64(b.N), "cpu-us/op")
}

var benchOrderPad = strings.Repeat("x", 500)

// benchOrder is an item with ten indexed properties.
func benchOrder(id string, i int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"pk":"k","kind":"order","total":%d.5,"count":%d,"paid":true,"created":"2024-05-01T12:00:00Z","customer":"c%d","city":"Springfield","state":"%d","pad":%q}`,
		id, i%1000, i%7, i%5000, i%50, benchOrderPad)
}
