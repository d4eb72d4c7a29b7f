// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/engine"
)

// Loads under which a server must forget as fast as it learns. MAYFLY_FORGET is the part
// of the full time that they take; 1 by default:
//
//	make forget
//	MAYFLY_FORGET=0.3 go test -run '^$' -bench Forget -benchtime 1x ./cmd/mayfly

const (
	forgetDebtMiB    = 64
	saturatedTime    = 3 * time.Minute
	saturatedClients = 32
	steadyTime       = 90 * time.Second
	steadyClients    = 64
	steadyRate       = 2000 // creates a second
	burstItems       = 200_000
	burstLive        = 10_000
	burstRate        = 1000 // reads a second
	burstTime        = 20 * time.Second
	halfPairs        = 5
	halfTime         = 8 * time.Second // of each half of a pair
	erasePairs       = 9
	eraseTime        = 10 * time.Second
)

var forgetPad = strings.Repeat("x", 900)

// forgetTime shortens a time by MAYFLY_FORGET.
func forgetTime(b *testing.B, d time.Duration) time.Duration {
	part := 1.0
	if text := os.Getenv("MAYFLY_FORGET"); text != "" {
		var err error
		if part, err = strconv.ParseFloat(text, 64); err != nil {
			b.Fatal(err)
		}
	}
	return time.Duration(part * float64(d))
}

// newForgetful starts a server with a container whose default TTL is given in JSON.
func newForgetful(b *testing.B, built binary, ttl string, flags ...string) *benchServer {
	b.Helper()
	s := &benchServer{process: built.start(b, nil, append([]string{"serve", anyPort}, flags...)...)}
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: 2 * steadyClients}
	for _, err := range []error{
		s.post(b, "/dbs", "dbs", "", []byte(`{"id":"d"}`), nil, http.StatusCreated, nil),
		s.post(b, "/dbs/d/colls", "colls", "dbs/d", forgetDefinition(ttl), nil, http.StatusCreated, nil),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func forgetDefinition(ttl string) []byte {
	return fmt.Appendf(nil, `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":%s}`, ttl)
}

// end stops the server and removes its data.
func (s *benchServer) end(b *testing.B) {
	b.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	<-s.ended
	s.client.CloseIdleConnections()
	if err := os.RemoveAll(s.cmd.Dir); err != nil {
		b.Fatal(err)
	}
}

// create creates an item of 1 KiB.
func (s *benchServer) create(b *testing.B, id, more string) error {
	pk := fmt.Sprintf("p%d", len(id)*31%97)
	item := fmt.Appendf(nil, `{"id":%q,"pk":%q,"n":%d,"kind":"bench","tags":["a","b"],"pad":%q%s}`, id, pk, len(id), forgetPad, more)
	return s.post(b, docsPath, "docs", docsLink, item, map[string]string{pkHeader: fmt.Sprintf("[%q]", pk)}, http.StatusCreated, nil)
}

// pressure is the outcome of a load.
type pressure struct {
	perSecond float64
	p99       time.Duration
}

// press calls do from so many clients for a time: so many times a second, with latencies
// from the moment when each call was due, or one after the other if perSecond is 0.
func press(b *testing.B, clients, perSecond int, d time.Duration, do func(i int) error) pressure {
	b.Helper()
	var next atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			var mine []time.Duration
			for time.Since(began) < d && !b.Failed() {
				i := int(next.Add(1)) - 1
				due := time.Now()
				if perSecond > 0 {
					due = began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
					time.Sleep(time.Until(due))
				}
				if err := do(i); err != nil {
					b.Error(err)
				}
				mine = append(mine, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	if all.Wait(); b.Failed() {
		b.FailNow()
	}
	slices.Sort(took)
	return pressure{float64(len(took)) / time.Since(began).Seconds(), took[len(took)*99/100]}
}

// ttlStatus reads the status of the container.
func (s *benchServer) ttlStatus(b *testing.B) engine.TTLStatus {
	b.Helper()
	r, err := http.NewRequest("GET", "http://"+s.addr+"/_mayfly/ttl/status?database=d&container=c", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+mayfly.WellKnownKey)
	_, body, err := do(r)
	var report engine.TTLReport
	if err == nil {
		err = json.Unmarshal(body, &report)
	}
	if err != nil || len(report.Containers) != 1 {
		b.Errorf("status: %s, %v", body, err)
		return engine.TTLStatus{}
	}
	return report.Containers[0]
}

// diskMiB returns what the data directory takes.
func (s *benchServer) diskMiB() float64 {
	var sum int64
	_ = filepath.WalkDir(s.cmd.Dir, func(_ string, e fs.DirEntry, err error) error { // files come and go
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return float64(sum) / (1 << 20)
}

// watch calls look every second until stop is called.
func watch(look func(second int)) (stop func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for second := 1; ; second++ {
			select {
			case <-ended:
				return
			case <-t.C:
				look(second)
			}
		}
	})
	return func() {
		close(ended)
		all.Wait()
	}
}

// BenchmarkForgetSaturated creates items of ttl 5 as fast as the server takes them, with a
// small --purge-debt, and compares that with the same load without TTL.
func BenchmarkForgetSaturated(b *testing.B) {
	built := build(b)
	for b.Loop() {
		run := func(ttl string, d time.Duration, look func(s *benchServer, second int)) pressure {
			s := newForgetful(b, built, ttl, fmt.Sprintf("--purge-debt=%dMiB", forgetDebtMiB))
			defer s.end(b)
			stop := watch(func(second int) { look(s, second) })
			defer stop()
			return press(b, saturatedClients, 0, d, func(i int) error { return s.create(b, strconv.Itoa(i), "") })
		}
		d, none := forgetTime(b, saturatedTime), func(*benchServer, int) {}
		before := run("null", d/3, none)
		worst, disk, paid := 0.0, []float64{}, int64(0)
		with := run("5", d, func(s *benchServer, second int) {
			u := s.ttlStatus(b)
			paid = u.Purge.Debt.PaidItems
			disk = append(disk, s.diskMiB())
			if second > 20 {
				worst = max(worst, float64(u.Expired.Bytes)/max(1.5*float64(u.Live.Bytes), forgetDebtMiB<<20))
			}
		})
		after := run("null", d/3, none)
		b.Logf("without TTL %.0f/s, p99 %v; ttl 5 %.0f/s, p99 %v; without %.0f/s, p99 %v; disk in MiB by second %.0f",
			before.perSecond, before.p99, with.perSecond, with.p99, after.perSecond, after.p99, disk)
		b.ReportMetric(with.perSecond/((before.perSecond+after.perSecond)/2), "creates-ratio")
		b.ReportMetric(float64(with.p99)/(float64(before.p99+after.p99)/2), "p99-ratio")
		b.ReportMetric(worst, "of-allowed-bytes")
		b.ReportMetric(float64(paid), "paid-items")
		b.ReportMetric(slices.Max(disk[len(disk)/2:])/slices.Max(disk[:len(disk)/2]), "disk-growth")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkForgetSteady creates 2,000 items a second of ttl 10, with purge and with purge
// paused.
func BenchmarkForgetSteady(b *testing.B) {
	built := build(b)
	for b.Loop() {
		most := int64(0)
		run := func(paused bool, d time.Duration) (pressure, float64) {
			s := newForgetful(b, built, "10")
			defer s.end(b)
			if paused {
				s.switchPurge(b, "pause")
			} else {
				stop := watch(func(int) { most = max(most, s.ttlStatus(b).Expired.Items) })
				defer stop()
			}
			cpu := s.cpuMicros(b)
			p := press(b, steadyClients, steadyRate, d, func(i int) error { return s.create(b, strconv.Itoa(i), "") })
			return p, (s.cpuMicros(b) - cpu) / (p.perSecond * d.Seconds())
		}
		d := forgetTime(b, steadyTime)
		before, beforeCPU := run(true, d/3)
		with, cpu := run(false, d)
		after, afterCPU := run(true, d/3)
		b.Logf("paused %.0f/s, p99 %v, %.0f us; purging %.0f/s, p99 %v, %.0f us; paused %.0f/s, p99 %v, %.0f us",
			before.perSecond, before.p99, beforeCPU, with.perSecond, with.p99, cpu, after.perSecond, after.p99, afterCPU)
		b.ReportMetric(float64(most), "most-expired-items")
		b.ReportMetric(cpu, "server-us/item")
		b.ReportMetric(float64(with.p99)/(float64(before.p99+after.p99)/2), "p99-ratio")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkForgetHalf creates items of ttl 5 at half the rate that the server takes at most,
// in pairs: with purge paused, and with purge, which then has the items of both to remove.
func BenchmarkForgetHalf(b *testing.B) {
	built := build(b)
	for b.Loop() {
		s, next := newForgetful(b, built, "5"), 0
		d := forgetTime(b, halfTime)
		create := func(clients, perSecond int) pressure {
			first := next
			next += 1 << 24
			return press(b, clients, perSecond, d, func(i int) error { return s.create(b, strconv.Itoa(first+i), "") })
		}
		half := int(create(saturatedClients, 0).perSecond / 2)
		create(steadyClients, half) // lets what saturation has left expire, and be purged
		var ratios []float64
		for range halfPairs {
			s.switchPurge(b, "pause")
			without := create(steadyClients, half)
			s.switchPurge(b, "resume")
			before := s.ttlStatus(b)
			with := create(steadyClients, half)
			after := s.ttlStatus(b)
			purged := after.Purge.PurgedItems - before.Purge.PurgedItems
			b.Logf("%d creates/s: p99 without purge %v, with purge %v, purged %.0f/s", half, without.p99, with.p99, float64(purged)/d.Seconds())
			ratios = append(ratios, float64(with.p99)/float64(without.p99))
		}
		slices.Sort(ratios)
		b.ReportMetric(float64(half), "creates/s")
		b.ReportMetric(ratios[halfPairs/2], "p99-ratio")
		b.ReportMetric(0, "ns/op")
		s.end(b)
	}
}

// switchPurge pauses or resumes purge.
func (s *benchServer) switchPurge(b *testing.B, action string) {
	b.Helper()
	r, err := http.NewRequest("POST", "http://"+s.addr+"/_mayfly/ttl/"+action, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+mayfly.WellKnownKey)
	if _, _, err := do(r); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkForgetBurst lets 200,000 items expire at once beside 1,000 reads a second.
func BenchmarkForgetBurst(b *testing.B) {
	built := build(b)
	for b.Loop() {
		s := newForgetful(b, built, "-1")
		s.drive(b, burstItems, func(i int) error { return s.create(b, fmt.Sprint("old", i), "") })
		s.drive(b, burstLive, func(i int) error { return s.create(b, strconv.Itoa(i), `,"ttl":-1`) })
		read := func(i int) error {
			id := strconv.Itoa(i % burstLive)
			header := map[string]string{pkHeader: fmt.Sprintf(`["p%d"]`, len(id)*31%97)}
			return s.send(b, &s.client, http.MethodGet, docsPath+"/"+id, "docs", docsLink+"/docs/"+id, nil, header, http.StatusOK, nil)
		}
		press(b, benchClients, burstRate, burstTime/4, read) // fills the caches
		without := press(b, benchClients, burstRate, burstTime, read)
		err := s.send(b, &s.client, http.MethodPut, "/dbs/d/colls/c", "colls", "dbs/d/colls/c", forgetDefinition("1"), nil, http.StatusOK, nil)
		if err != nil {
			b.Fatal(err)
		}
		began, gone := time.Now(), math.Inf(1)
		stop := watch(func(int) {
			if math.IsInf(gone, 1) && s.ttlStatus(b).Expired.Items == 0 {
				gone = time.Since(began).Seconds()
			}
		})
		with := press(b, benchClients, burstRate, burstTime/2, read)
		stop()
		b.Logf("p99 of reads without purge %v, with purge %v, gone after %.0f s", without.p99, with.p99, gone)
		b.ReportMetric(gone, "gone-s")
		b.ReportMetric(float64(with.p99)/float64(without.p99), "p99-ratio")
		b.ReportMetric(0, "ns/op")
		s.end(b)
	}
}

// BenchmarkForgetErase measures what --erase-within=24h adds to the CPU of a create, beside
// --erase-within=off: pairs of new servers with the same load, in changing order.
func BenchmarkForgetErase(b *testing.B) {
	built := build(b)
	for b.Loop() {
		run := func(within string) float64 {
			s := newForgetful(b, built, "-1", "--erase-within="+within)
			defer s.end(b)
			cpu := s.cpuMicros(b)
			d := forgetTime(b, eraseTime)
			p := press(b, saturatedClients, 0, d, func(i int) error { return s.create(b, strconv.Itoa(i), "") })
			return (s.cpuMicros(b) - cpu) / (p.perSecond * d.Seconds())
		}
		var ratios, off, day []float64
		for i := range erasePairs {
			order := []string{"off", "24h"}
			if i%2 == 1 {
				slices.Reverse(order)
			}
			took := map[string]float64{}
			for _, within := range order {
				took[within] = run(within)
			}
			off, day = append(off, took["off"]), append(day, took["24h"])
			ratios = append(ratios, took["24h"]/took["off"])
		}
		b.Logf("us of CPU for a create, off %.1f, 24h %.1f, ratios %.3f", off, day, ratios)
		slices.Sort(ratios)
		b.ReportMetric(ratios[erasePairs/2], "cpu-ratio")
		b.ReportMetric(0, "ns/op")
	}
}
