// SPDX-License-Identifier: MIT

// The last hour of each container, for plots: what was live, what had expired and how long
// ago, how fast it was purged, and the debt of purge. A point is taken every ten seconds of the database's
// time, and kept in memory.

package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// HistoryEvery is how long one point stands for, and HistoryLength how long points are
	// kept.
	HistoryEvery  = 10 * time.Second
	HistoryLength = time.Hour

	historyPoints = int(HistoryLength / HistoryEvery)
	// ringBytes is what the history of one container takes when it is full.
	ringBytes = int64(historyPoints) * int64(unsafe.Sizeof(point{}))
	// defaultHistories is enough for about 90 containers.
	defaultHistories = 2 << 20
)

// point is a HistoryPoint as it is kept.
type point struct {
	atMs           int64
	usage          store.Usage
	lagMs          int64
	itemsPerSecond float64
	debtBytes      int64
}

// slot returns the ten seconds that the point stands for.
func (p *point) slot() int64 { return p.atMs / HistoryEvery.Milliseconds() }

// ring has the last points of one container.
type ring struct {
	points []point // grows to historyPoints
	next   int     // in a full ring, the oldest point, which is replaced next
	// version is that of the container, at the last point or before.
	version version
}

// version tells whether a container has changed.
type version struct {
	epoch   uint64 // of its settings
	commits uint64 // the sum over its partitions
}

// add adds a point. It replaces the last one if that stands for the same time. A point that
// took longer to read than the one after it is dropped.
func (r *ring) add(p point) {
	switch last := r.last(); {
	case last != nil && last.atMs > p.atMs:
	case last != nil && last.slot() == p.slot():
		*last = p
	case len(r.points) < historyPoints:
		r.points = append(r.points, p)
	default:
		r.points[r.next] = p
		r.next = (r.next + 1) % historyPoints
	}
}

// last returns the latest point, nil if there is none.
func (r *ring) last() *point {
	n := len(r.points)
	if n == 0 {
		return nil
	}
	return &r.points[(r.next+n-1)%n]
}

// since returns the points after a moment, the oldest first.
func (r *ring) since(ms int64) []point {
	all := append(append(make([]point, 0, len(r.points)), r.points[r.next:]...), r.points[:r.next]...)
	for len(all) > 0 && all[0].atMs <= ms {
		all = all[1:]
	}
	return all
}

// histories has the rings of all containers, as many as there is memory for.
type histories struct {
	most int // how many

	mu struct {
		sync.Mutex
		rings map[catalog.ContainerRID]*ring
	}
}

func newHistories(bytes int64) *histories {
	h := &histories{most: int(max(1, bytes/ringBytes))}
	h.mu.rings = map[catalog.ContainerRID]*ring{}
	return h
}

// add adds a point to a container's ring, which it makes if there is room. It returns the
// points since a moment, and whether they are kept.
func (h *histories) add(rid catalog.ContainerRID, v version, p point, sinceMs int64) (points []point, kept bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.mu.rings[rid]
	if r == nil {
		if len(h.mu.rings) >= h.most {
			return []point{p}, false
		}
		r = &ring{}
		h.mu.rings[rid] = r
	}
	r.add(p)
	r.version = v
	return r.since(sinceMs), true
}

// repeat adds a point to the ring of a container that has not changed since its last one,
// and in which nothing had expired. It reports whether it did.
func (h *histories) repeat(rid catalog.ContainerRID, v version, nowMs int64, itemsPerSecond float64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.mu.rings[rid]
	if r == nil || r.version != v || r.last().usage.Expired.Items > 0 {
		return false
	}
	r.add(point{atMs: nowMs, usage: r.last().usage, itemsPerSecond: itemsPerSecond})
	return true
}

func (h *histories) has(rid catalog.ContainerRID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.rings[rid] != nil
}

// prune drops the rings of containers that were deleted.
func (h *histories) prune(all []*catalog.Container) {
	exist := map[catalog.ContainerRID]bool{}
	for _, c := range all {
		exist[c.RID] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.mu.rings, func(rid catalog.ContainerRID, _ *ring) bool { return !exist[rid] })
}

// History is the last hour of a container, as far as it was observed since the start.
type History struct {
	Database  string `json:"database"`
	Container string `json:"container"`
	clock.Moment
	EverySeconds float64 `json:"everySeconds"`
	// Kept is false if there are more containers than memory for their histories. Points
	// then has only the present.
	Kept   bool           `json:"kept"`
	Points []HistoryPoint `json:"points"`
}

// HistoryPoint is what a container held at one moment.
type HistoryPoint struct {
	At   string `json:"at"`
	AtMs int64  `json:"atMs"`
	store.Usage
	LagSeconds float64 `json:"lagSeconds"`
	// ItemsPerSecond is how many items purge removed in each of the seconds before.
	ItemsPerSecond float64 `json:"itemsPerSecond"`
	// DebtBytes is how far expired items exceeded the space that they may take.
	DebtBytes int64 `json:"debtBytes"`
}

// History returns the last hour of a container, the present included: of a cluster, what all
// live nodes have seen of it.
func (e *Engine) History(ctx context.Context, c *catalog.Container) (History, error) {
	all, _, err := askNodes(ctx, e, c, opHistory, 0)
	if err != nil {
		return History{}, err
	}
	points, kept := sumPoints(all)
	h := History{
		Database: c.DatabaseID, Container: c.ID, Moment: clock.At(points[len(points)-1].atMs), EverySeconds: HistoryEvery.Seconds(),
		Kept: kept, Points: make([]HistoryPoint, len(points)),
	}
	for i, p := range points {
		h.Points[i] = HistoryPoint{clock.Stamp(p.atMs), p.atMs, p.usage, float64(p.lagMs) / 1000, p.itemsPerSecond, p.debtBytes}
	}
	return h, nil
}

// seenPoints are the points of a node.
type seenPoints struct {
	Points []seenPoint
	Kept   bool
}

// seenPoint is a point as it is sent.
type seenPoint struct {
	AtMs           int64
	Usage          store.Usage
	LagMs          int64
	ItemsPerSecond float64
	DebtBytes      int64
}

var opHistory = newOperation(operation[int, seenPoints]{"history", func(_ context.Context, e *Engine, c *catalog.Container, _ int, _ *store.Partition, _ int) (seenPoints, error) {
	points, kept, err := e.observeUsage(c)
	s := seenPoints{make([]seenPoint, len(points)), kept}
	for i, p := range points {
		s.Points[i] = seenPoint{p.atMs, p.usage, p.lagMs, p.itemsPerSecond, p.debtBytes}
	}
	return s, err
}, false})

// sumPoints adds up the points of nodes that stand for the same ten seconds.
func sumPoints(nodes []seenPoints) (points []point, kept bool) {
	at := map[int64]int{}
	kept = true
	for _, n := range nodes {
		kept = kept && n.Kept
		for _, s := range n.Points {
			p := point{s.AtMs, s.Usage, s.LagMs, s.ItemsPerSecond, s.DebtBytes}
			i, ok := at[p.slot()]
			if !ok {
				at[p.slot()] = len(points)
				points = append(points, p)
				continue
			}
			sum := &points[i]
			sum.atMs, sum.usage, sum.lagMs = max(sum.atMs, p.atMs), sum.usage.Plus(p.usage), max(sum.lagMs, p.lagMs)
			sum.itemsPerSecond, sum.debtBytes = sum.itemsPerSecond+p.itemsPerSecond, sum.debtBytes+p.debtBytes
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.atMs, b.atMs) })
	return points, kept
}

// observeUsage adds the present to a container's history, and returns its last hour.
func (e *Engine) observeUsage(c *catalog.Container) (points []point, kept bool, err error) {
	nowMs := e.clock.Now()
	v, _ := e.look(c, nowMs)
	s, err := e.StatusHere(context.Background(), c)
	if err != nil {
		return nil, false, err
	}
	p := point{nowMs, s.Usage, int64(1000 * s.Purge.LagSeconds), s.Purge.ItemsPerSecond, s.Purge.Debt.Bytes}
	points, kept = e.histories.add(c.RID, v, p, nowMs-HistoryLength.Milliseconds())
	return points, kept, nil
}

// keepHistories adds a point to every history, until the engine is closed. While a test
// holds the time, no time passes that a point could stand for.
func (e *Engine) keepHistories(ctx context.Context) {
	t := time.NewTicker(HistoryEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			all := e.AllContainers()
			e.histories.prune(all)
			if e.clock.Status().Mode != clock.ModeTestFrozen {
				e.observeAll(ctx, all)
			}
		}
	}
}

// observeAll adds a point to the histories of the containers that are in use, and in which
// items can expire or could within the hour. A container in which nothing happens costs
// nothing.
func (e *Engine) observeAll(ctx context.Context, all []*catalog.Container) {
	for _, c := range all {
		if !e.used(c) || c.DefaultTTL == catalog.TTLAbsent && !c.Final() && !e.histories.has(c.RID) {
			continue
		}
		nowMs := e.clock.Now()
		if v, quiet := e.look(c, nowMs); quiet && e.histories.repeat(c.RID, v, nowMs, e.purger.Status(c.RID).ItemsPerSecond) {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if _, _, err := e.observeUsage(c); err != nil && !errors.Is(err, store.ErrClosed) && !errors.Is(err, ErrStopping) {
			e.logger.Error("cannot read what a container holds, for its history", "container", c.ID, "database", c.DatabaseID, "err", err)
		}
	}
}

// look returns the version of a container, and whether nothing has expired there that is not
// purged. It reads no rows.
func (e *Engine) look(c *catalog.Container, nowMs int64) (v version, quiet bool) {
	v, quiet = version{epoch: c.Epoch}, true
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range c.Ranges {
		p := e.mu.open[partitionID{c.RID, c.Ranges[i].ID}]
		if p == nil {
			return v, false
		}
		v.commits += p.Commits()
		quiet = quiet && p.ExpiryDue() > nowMs
	}
	return v, quiet
}

// used reports whether a partition of a container is open. One that was not used since the
// start stays closed: nothing in it changes, and nothing in it is due.
func (e *Engine) used(c *catalog.Container) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range c.Ranges {
		if e.mu.open[partitionID{c.RID, c.Ranges[i].ID}] != nil {
			return true
		}
	}
	return false
}
