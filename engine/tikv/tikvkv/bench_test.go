// SPDX-License-Identifier: MIT

package tikvkv_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly/engine/tikv/tikvtest"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv"
	"github.com/mayflydb/mayfly/internal/kv/pgkv/pgtest"
)

// BenchmarkEngines measures what the two shared engines take for the same operations, in this
// process and in their servers. PostgreSQL runs without fsync, and so does unistore: this is
// about processor time and messages. CPU time of servers is known to a hundredth of a second.
//
//	MAYFLY_TIKV_SERVERS=$(engine/tikv/run build) go test -run '^$' -bench Engines -benchtime 3000x ./tikvkv
func BenchmarkEngines(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("needs /proc to know what a server takes")
	}
	for name, open := range map[string]func(b *testing.B) kv.DB{
		"tikv": func(b *testing.B) kv.DB { return mustOpen(b, tikvtest.New(b)) },
		"postgres": func(b *testing.B) kv.DB {
			db, err := pgkv.Open(b.Context(), pgkv.Options{URL: pgtest.New(b), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			return db
		},
	} {
		b.Run(name, func(b *testing.B) { benchEngine(b, open(b)) })
	}
}

const (
	itemRows   = 14 // of an item with ten indexed properties
	groupItems = 12 // that commit together, with 16 clients
	rowBytes   = 100
)

func benchEngine(b *testing.B, db kv.DB) {
	defer db.Close()
	must := func(b *testing.B, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(b, kv.Set(b.Context(), db, []byte("fence"), []byte("1")))
	value := make([]byte, rowBytes)
	group := func(n, items int) *kv.Batch {
		var batch kv.Batch
		batch.Require([]byte("fence"), []byte("1"))
		for i := range items * itemRows {
			batch.Set(fmt.Appendf(nil, "row%02d/%08d/%04d", i%itemRows, n, i), value)
		}
		return &batch
	}
	n := 0
	for range 100 {
		must(b, db.Commit(b.Context(), group(n, groupItems)))
		n++
	}
	snap, err := db.Snapshot()
	must(b, err)
	defer snap.Close()
	for _, o := range []struct {
		name    string
		clients int
		op      func(b *testing.B, i int) error
	}{
		{"look", 1, func(b *testing.B, i int) error {
			_, _, err := db.Look(b.Context(), []byte("fence"), []byte("row00"), []byte("row01"))
			return err
		}},
		{"get", 1, func(b *testing.B, i int) error {
			_, _, err := snap.Get(fmt.Appendf(nil, "row%02d/%08d/%04d", i%itemRows, i%100, i%itemRows))
			return err
		}},
		{"scan-1000", 1, func(b *testing.B, i int) error {
			rows := 0
			for _, err := range snap.Scan([]byte("row03"), nil, kv.Forward) {
				if rows++; err != nil || rows == 1000 {
					return err
				}
			}
			return nil
		}},
		{"commit-item", 1, func(b *testing.B, i int) error { n++; return db.Commit(b.Context(), group(n, 1)) }},
		{"commit-group", 1, func(b *testing.B, i int) error { n++; return db.Commit(b.Context(), group(n, groupItems)) }},
		{"look-16", 16, func(b *testing.B, i int) error {
			_, _, err := db.Look(b.Context(), []byte("fence"), []byte("row00"), []byte("row01"))
			return err
		}},
	} {
		b.Run(o.name, func(b *testing.B) {
			own, servers := ownMicros(b), serverMicros(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for c := range o.clients {
				wg.Go(func() {
					for i := c; i < b.N; i += o.clients {
						if err := o.op(b, i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric((ownMicros(b)-own)/float64(b.N), "own-us/op")
			b.ReportMetric((serverMicros(b)-servers)/float64(b.N), "server-us/op")
		})
	}
}

// ownMicros is the processor time of this process.
func ownMicros(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// serverMicros is the processor time of the processes that descend from this one, with those
// that have ended and were waited for.
func serverMicros(b *testing.B) float64 {
	const ticks = 100 // in a second
	type process struct {
		parent int
		micros float64
	}
	all := map[int]process{}
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(text), ") ") // after the name in parentheses
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		var sum float64
		for _, field := range fields[11:15] { // utime, stime, and those of children
			n, _ := strconv.ParseFloat(field, 64)
			sum += n
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, _ := strconv.Atoi(fields[1])
		all[pid] = process{parent, sum * 1e6 / ticks}
	}
	var sum float64
	for pid, p := range all {
		for at := pid; at > 1; at = all[at].parent {
			if all[at].parent == os.Getpid() {
				if pid != os.Getpid() {
					sum += p.micros
				}
				break
			}
		}
	}
	return sum
}
