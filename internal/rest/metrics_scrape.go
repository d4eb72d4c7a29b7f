// SPDX-License-Identifier: MIT

// The figures of the metrics page that are read when the page is.

package rest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// maxMeteredContainers bounds how many containers have figures of their own: the
	// oldest. The others are added up under the name otherContainers and no database.
	maxMeteredContainers = 200
	otherContainers      = "other"
)

// horizons are the lengths of the forecasts.
var (
	horizons     = []time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
	horizonNames = []string{"1h", "24h", "7d"}
)

// The states of ttl_clock_guard_state.
const (
	guardTrusts  = 0 // purge follows the time
	guardDoubts  = 1 // items that only a jump of the wall clock expired are kept for a day
	guardHolds   = 2 // the wall clock jumped too far to be followed at once
	guardIsAhead = 3 // the database's time is ahead of the wall clock
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descLag           = describe("ttl_purge_lag_seconds", "How long ago the oldest item expired that still takes space.", "database", "container")
	descPendingItems  = describe("ttl_expired_pending_items", "Items that have expired and still take space.", "database", "container")
	descPendingBytes  = describe("ttl_expired_pending_bytes", "Bytes of items that have expired and still take space.", "database", "container")
	descDebt          = describe("ttl_purge_debt_bytes", "Bytes by which expired items exceed the space from which on writes carry purges with them.", "database", "container")
	descLeftover      = describe("ttl_leftover_ru", "Request units that requests did not use in the last second; without a container label if the database's containers share them.", "database", "container")
	descForecastItems = describe("ttl_forecast_items", "Items that expire within the horizon if nothing is written.", "database", "container", "horizon")
	descForecastBytes = describe("ttl_forecast_bytes", "Bytes of items that expire within the horizon if nothing is written.", "database", "container", "horizon")
	descDeadReadRU    = describe("ttl_dead_read_ru_total", "Request units for reading past expired items since the start, which no client was charged.")
	descPurgedItems   = describe("ttl_purged_items_total", "Expired items purged since the start.", "reason")
	descPurgedBytes   = describe("ttl_purged_bytes_total", "Bytes of expired items purged since the start.", "reason")
	descPurgedRU      = describe("ttl_purged_ru_total", "Request units for purging expired items since the start, which no client was charged.", "reason")
	descThrottled     = describe("ttl_purge_throttled_seconds_total", "How long purge was held back while it had work to do.", "cause")
	descErasureLag    = describe("ttl_erasure_lag_seconds", "How long ago the oldest data was deleted of which bytes are left on disk, at most; 0 if none are left. Data that need not be erased in time does not count.")
	descErasureLate   = describe("ttl_erasure_overdue_seconds", "By how much that exceeds the time in which it has to be erased.")
	descErasureBytes  = describe("ttl_erasure_left_bytes", "Size of the tables that have to be rewritten to erase deleted data.")
	descErasureTables = describe("ttl_erasure_left_tables", "Tables that have to be rewritten to erase deleted data.")
	descErased        = describe("ttl_erasure_rewritten_bytes_total", "Size of the tables that were rewritten to erase deleted data since the start.")
	descSkew          = describe("ttl_clock_skew_seconds", "How far the wall clock is ahead of the database's time.")
	descScripts       = describe("mayfly_scripts_running", "Stored procedures, writes with triggers and queries with functions that are running.")
	descScriptsWait   = describe("mayfly_scripts_waiting", "Stored procedures, writes with triggers and queries with functions that wait for others to end.")
	descMemoryLimit   = describe("mayfly_memory_limit_bytes", "Memory that all requests under way may hold together.")
	descMemory        = describe("mayfly_memory_bytes", "Memory that large requests under way hold.")
	descMemoryWait    = describe("mayfly_memory_waiting", "Requests that wait for memory.")
	descMemoryRefused = describe("mayfly_memory_refused_total", "Requests refused because they waited too long for memory.")
	descDoubt         = describe("ttl_clock_doubt_seconds", "How far the database's time is past the horizon up to which expired items may be purged.")
	descGuard         = describe("ttl_clock_guard_state", "0 normally, 1 while a jump of the wall clock is in doubt, 2 while one is held back, 3 while the wall clock is behind the database's time.")
)

// The figures of a node of a cluster.
var (
	descNodes   = describe("mayfly_cluster_nodes", "Nodes that this one knows, by state.", "state")
	descOwned   = describe("mayfly_cluster_owned_partitions", "Partitions that this node serves.")
	descMoments = describe("mayfly_cluster_moments_total", "Looks at the storage engine before requests were answered, since the start. Requests share them.")
	descClaims  = describe("mayfly_cluster_claims_total", "Partitions that this node has claimed since the start.")
	descLosses  = describe("mayfly_cluster_lost_partitions_total", "Partitions that this node has lost to others since the start, or whose state was unknown after a commit.")
)

// scrape holds the figures of one page.
type scrape struct {
	figures []prometheus.Metric
}

// Describe implements prometheus.Collector. It describes nothing in advance, since the
// figures were already read.
func (s *scrape) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	for _, f := range s.figures {
		ch <- f
	}
}

func (s *scrape) figure(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels []string) {
	m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(desc, err)
	}
	s.figures = append(s.figures, m)
}

func (s *scrape) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s.figure(desc, prometheus.GaugeValue, value, labels)
}

func (s *scrape) counter(desc *prometheus.Desc, value float64, labels ...string) {
	s.figure(desc, prometheus.CounterValue, value, labels)
}

// takeScrape reads all figures.
func takeScrape(ctx context.Context, h *Handler) (*scrape, error) {
	s, e := &scrape{}, h.engine
	if err := s.containers(ctx, e); err != nil {
		return nil, err
	}
	for _, cause := range []ru.Cause{ru.Sweep, ru.Assisted, ru.Debt, ru.Forced} {
		work := e.SystemWork(cause)
		s.counter(descPurgedItems, float64(work.Items), cause.String())
		s.counter(descPurgedBytes, float64(work.Bytes), cause.String())
		s.counter(descPurgedRU, float64(work.Units), cause.String())
	}
	s.counter(descDeadReadRU, float64(e.SystemWork(ru.DeadRead).Units))
	for cause, d := range e.PurgeThrottled() {
		s.counter(descThrottled, d.Seconds(), strings.ReplaceAll(string(cause), " ", "_"))
	}
	if err := s.erasure(e); err != nil {
		return nil, err
	}
	s.clock(e.Clock().Status())
	running, waiting := e.ScriptLoad()
	s.gauge(descScripts, float64(running))
	s.gauge(descScriptsWait, float64(waiting))
	s.memory(h.memory.Use())
	s.engine(e)
	s.cluster(e)
	return s, nil
}

// cluster adds the figures of a node of a cluster.
func (s *scrape) cluster(e *engine.Engine) {
	if e.Node() == nil {
		return
	}
	states := map[string]int{}
	for _, m := range e.Node().Members() {
		states[m.State]++
	}
	for _, state := range []cluster.State{cluster.Serving, cluster.Draining, cluster.Dead, cluster.Left} {
		s.gauge(descNodes, float64(states[state.String()]), state.String())
	}
	w := e.Work()
	s.gauge(descOwned, float64(w.Partitions))
	s.counter(descMoments, float64(w.Moments))
	s.counter(descClaims, float64(w.Claims))
	s.counter(descLosses, float64(w.Losses))
}

// erasure adds what is left of deleted data.
func (s *scrape) erasure(e *engine.Engine) error {
	left, err := e.Erasure()
	if err != nil {
		return err
	}
	s.gauge(descErasureLag, left.LagSeconds)
	s.gauge(descErasureLate, left.OverdueSeconds)
	s.gauge(descErasureBytes, float64(left.LeftBytes))
	s.gauge(descErasureTables, float64(left.LeftTables))
	s.counter(descErased, float64(left.RewrittenBytes))
	return nil
}

// memory adds what requests hold of the memory budget.
func (s *scrape) memory(u memory.Use) {
	s.gauge(descMemoryLimit, float64(u.Total))
	s.gauge(descMemory, float64(u.Held))
	s.gauge(descMemoryWait, float64(u.Waiting))
	s.counter(descMemoryRefused, float64(u.Refused))
}

func (s *scrape) clock(c clock.Status) {
	s.gauge(descSkew, float64(c.SkewMs)/1000)
	s.gauge(descDoubt, float64(c.NowMs-c.HorizonMs)/1000)
	state := guardTrusts
	switch {
	case c.Mode == clock.ModeAhead:
		state = guardIsAhead
	case c.Mode == clock.ModeHeld:
		state = guardHolds
	case !c.Trusted:
		state = guardDoubts
	}
	s.gauge(descGuard, float64(state))
}

// containerFigures are the figures of one container, or the sum of several.
type containerFigures struct {
	engine.TTLStatus
	expiring []store.Amount // by horizon
}

// add adds the figures of another container. The lag is the larger of the two.
func (f *containerFigures) add(g *containerFigures) {
	f.Usage, f.Purge.LagSeconds = f.Usage.Plus(g.Usage), max(f.Purge.LagSeconds, g.Purge.LagSeconds)
	for i, a := range g.expiring {
		f.expiring[i] = f.expiring[i].Plus(a)
	}
	f.Purge.Debt.Bytes += g.Purge.Debt.Bytes
	f.Throughput.Leftover += g.Throughput.Leftover
}

// containers adds the figures of every container. Shared throughput is reported once, for
// the database.
func (s *scrape) containers(ctx context.Context, e *engine.Engine) error {
	all := e.AllContainers()
	other := containerFigures{engine.TTLStatus{Container: otherContainers}, make([]store.Amount, len(horizons))}
	shared := map[string]bool{}
	for i, c := range all {
		var f containerFigures
		err := ctx.Err()
		if err == nil {
			f.TTLStatus, err = e.StatusHere(ctx, c)
		}
		if err == nil {
			f.expiring, err = e.ExpiringHere(ctx, c, horizons)
		}
		if errors.Is(err, store.ErrClosed) { // the container was dropped meanwhile
			continue
		}
		if err != nil {
			return err
		}
		metered, ofDatabase := i < maxMeteredContainers, f.Throughput.Shared
		switch {
		case ofDatabase && shared[c.DatabaseID]: // already reported
			f.Throughput.Leftover = 0
		case metered && ofDatabase:
			s.gauge(descLeftover, float64(f.Throughput.Leftover), c.DatabaseID, "")
		case metered:
			s.gauge(descLeftover, float64(f.Throughput.Leftover), c.DatabaseID, c.ID)
		}
		shared[c.DatabaseID] = shared[c.DatabaseID] || ofDatabase
		if metered {
			s.container(&f)
		} else {
			other.add(&f)
		}
	}
	if len(all) > maxMeteredContainers {
		s.container(&other)
		s.gauge(descLeftover, float64(other.Throughput.Leftover), "", otherContainers)
	}
	return nil
}

func (s *scrape) container(f *containerFigures) {
	s.gauge(descLag, f.Purge.LagSeconds, f.Database, f.Container)
	s.gauge(descPendingItems, float64(f.Expired.Items), f.Database, f.Container)
	s.gauge(descPendingBytes, float64(f.Expired.Bytes), f.Database, f.Container)
	s.gauge(descDebt, float64(f.Purge.Debt.Bytes), f.Database, f.Container)
	for i, a := range f.expiring {
		s.gauge(descForecastItems, float64(a.Items), f.Database, f.Container, horizonNames[i])
		s.gauge(descForecastBytes, float64(a.Bytes), f.Database, f.Container, horizonNames[i])
	}
}

// engine adds the storage engine's figures, if it reports any: an engine in use has some
// memory or disk.
func (s *scrape) engine(e *engine.Engine) {
	h := e.Health()
	if h.DiskBytes == 0 && h.MemTableBytes == 0 {
		return
	}
	gauge := func(name, help string, value float64) { s.gauge(describe("mayfly_engine_"+name, help), value) }
	counter := func(name, help string, value float64) { s.counter(describe("mayfly_engine_"+name, help), value) }
	gauge("read_amplification", "Runs that a read may have to look into.", float64(h.ReadAmp))
	gauge("compaction_debt_bytes", "About how much has to be compacted until nothing is due.", float64(h.CompactionDebtBytes))
	gauge("flushing_memtables", "Memtables that wait to be flushed, or are being flushed.", float64(h.Flushing))
	stalled := 0.0
	if h.Stalled {
		stalled = 1
	}
	gauge("stalled", "1 while commits wait for flushes or compactions, or are refused.", stalled)
	counter("stalls_total", "How often commits had to wait.", float64(h.Stalls))
	gauge("disk_bytes", "What the data takes where it is kept.", float64(h.DiskBytes))
	gauge("wal_bytes", "What is in the logs and not in tables yet.", float64(h.WALBytes))
	gauge("spare_wal_bytes", "What logs take that are kept to be written over.", float64(h.SpareWALBytes))
	gauge("garbage_bytes", "About how much compactions could free.", float64(h.GarbageBytes))
	gauge("tombstones", "About how many deletes are kept until compactions drop them.", float64(h.Tombstones))
	gauge("memtable_bytes", "What memtables take in memory.", float64(h.MemTableBytes))
	gauge("cache_bytes", "What blocks that were read take in memory.", float64(h.CacheBytes))
	counter("cache_hits_total", "Blocks that were wanted and in memory.", float64(h.CacheHits))
	counter("cache_misses_total", "Blocks that were wanted and not in memory.", float64(h.CacheMisses))
	counter("flushes_total", "Flushes.", float64(h.Flushes))
	counter("flushed_bytes_total", "What flushes wrote.", float64(h.BytesFlushed))
	counter("compactions_total", "Compactions.", float64(h.Compactions))
	counter("compacted_bytes_total", "What compactions wrote.", float64(h.BytesCompacted))
}
