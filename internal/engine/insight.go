// SPDX-License-Identifier: MIT

// Reports about expiry: how much is there, how much is gone, what would happen, what will
// happen, and why. Operators and programs read their JSON.

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// TTLReport reports the expired items of containers at one moment.
type TTLReport struct {
	clock.Moment
	Clock TTLClock `json:"clock"`
	// Erasure says what is left on disk of deleted data, in all containers.
	Erasure    ErasureStatus `json:"erasure"`
	Containers []TTLStatus   `json:"containers"`
}

// TTLClock says whether purge may follow the time and, if not, why.
type TTLClock struct {
	Trusted bool   `json:"trusted"`
	Reason  string `json:"reason,omitempty"`
}

// TTLStatus is the report of one container.
type TTLStatus struct {
	Database    string      `json:"database"`
	Container   string      `json:"container"`
	DefaultTTL  catalog.TTL `json:"defaultTtl"`
	TTLFinality bool        `json:"ttlFinality"`
	// ExpireAtPath is where items name their deadlines, absent if they do not.
	ExpireAtPath string `json:"expireAtPath,omitempty"`
	// SlidingTTLPercent is after which share of their life reads restart the countdown of
	// items, absent if they do not.
	SlidingTTLPercent int `json:"slidingTtlPercent,omitempty"`
	// UndeleteGraceSeconds is how long purge waits after deadlines, absent if it does not.
	UndeleteGraceSeconds int64 `json:"undeleteGraceSeconds,omitempty"`
	store.Usage
	Purge      PurgeStatus       `json:"purge"`
	Throughput ThroughputStatus  `json:"throughput"`
	Partitions []PartitionStatus `json:"partitions"`
}

// PurgeStatus is purge's state in a container and its lag: how long ago the oldest item
// expired that still takes space.
type PurgeStatus struct {
	LagSeconds float64 `json:"lagSeconds"`
	purge.Status
	Debt purge.Debt `json:"debt"`
}

// PartitionStatus is TTLStatus for one physical partition.
type PartitionStatus struct {
	ID string `json:"id"`
	store.Usage
	LagSeconds float64 `json:"lagSeconds"`
}

// TTLReport reports on one container, or on all if c is nil.
func (e *Engine) TTLReport(ctx context.Context, c *catalog.Container) (TTLReport, error) {
	if c == nil {
		return e.ttlReport(ctx, e.AllContainers())
	}
	s, err := e.TTLStatus(ctx, c)
	if err != nil {
		return TTLReport{}, err
	}
	return e.reported([]TTLStatus{s})
}

// TTLReportOf reports on the containers of a database.
func (e *Engine) TTLReportOf(ctx context.Context, d *catalog.Database) (TTLReport, error) {
	return e.ttlReport(ctx, d.Containers())
}

// ttlReport reports on several containers, without those that are dropped meanwhile.
func (e *Engine) ttlReport(ctx context.Context, all []*catalog.Container) (TTLReport, error) {
	statuses := []TTLStatus{}
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return TTLReport{}, err
		}
		s, err := e.TTLStatus(ctx, c)
		if errors.Is(err, store.ErrClosed) {
			continue
		}
		if err != nil {
			return TTLReport{}, err
		}
		statuses = append(statuses, s)
	}
	return e.reported(statuses)
}

// reported returns the report with the given statuses.
func (e *Engine) reported(containers []TTLStatus) (TTLReport, error) {
	left, err := e.Erasure()
	if err != nil {
		return TTLReport{}, err
	}
	r := TTLReport{Erasure: left, Containers: containers}
	status := e.clock.Status()
	r.Moment, r.Clock = status.Moment, TTLClock{status.Trusted, status.Notice}
	return r, nil
}

// TTLStatus reports on one container.
func (e *Engine) TTLStatus(ctx context.Context, c *catalog.Container) (TTLStatus, error) {
	parts, err := gather(ctx, e, c, opStatus, 0)
	if err != nil {
		return TTLStatus{}, err
	}
	work, _, err := askNodes(ctx, e, c, opPurgeWork, 0)
	if err != nil {
		return TTLStatus{}, err
	}
	return e.status(c, parts, work), nil
}

// StatusHere reports on what this node has of a container: all, if there is no cluster.
func (e *Engine) StatusHere(ctx context.Context, c *catalog.Container) (TTLStatus, error) {
	var parts []partStatus
	err := e.eachHere(c, func(i int, p *store.Partition) error {
		part, err := opStatus.here(ctx, e, c, c.Ranges[i].ID, p, 0)
		parts = append(parts, part)
		return err
	})
	if err != nil {
		return TTLStatus{}, err
	}
	work, err := opPurgeWork.here(ctx, e, c, -1, nil, 0)
	return e.status(c, parts, []purgeWork{work}), err
}

// partStatus is what a report on a container has of one partition.
type partStatus struct {
	PartitionStatus
	// Backlog is what purge may take.
	Backlog store.Usage
}

// opStatus reports on a partition.
var opStatus = newOperation(operation[int, partStatus]{"status", func(_ context.Context, e *Engine, c *catalog.Container, i int, p *store.Partition, _ int) (s partStatus, err error) {
	nowMs := e.clock.Now()
	s.ID = catalog.RangeID(i)
	if s.Usage, err = p.Usage(nowMs); err != nil {
		return s, err
	}
	oldestMs, found, err := p.Oldest(nowMs)
	if found {
		s.LagSeconds = float64(nowMs-oldestMs) / 1000
	}
	if err != nil {
		return s, err
	}
	if e.clock.Horizon() < nowMs || c.UndeleteGrace > 0 { // what is in doubt, or in its grace, is no debt
		backlog, err := p.Backlog()
		s.Backlog = backlog.Usage
		return s, err
	}
	s.Backlog = s.Usage
	return s, nil
}, false})

// purgeWork is what a node knows of purge and throughput in a container.
type purgeWork struct {
	Purge      purge.Status
	Debt       purge.Debt // without bytes
	Throughput ThroughputStatus
}

// opPurgeWork reports on purge and throughput on a node.
var opPurgeWork = newOperation(operation[int, purgeWork]{"purge work", func(_ context.Context, e *Engine, c *catalog.Container, _ int, _ *store.Partition, _ int) (purgeWork, error) {
	return purgeWork{e.purger.Status(c.RID), e.purger.DebtOf(c.RID, nil), e.throughputOf(c)}, nil
}, false})

// status adds up the parts of a report. The first work is this node's.
func (e *Engine) status(c *catalog.Container, parts []partStatus, works []purgeWork) TTLStatus {
	s := TTLStatus{
		Database: c.DatabaseID, Container: c.ID, DefaultTTL: c.DefaultTTL, TTLFinality: c.Final(),
		ExpireAtPath: c.ExpireAtPath.String(), SlidingTTLPercent: c.SlidingPercent, UndeleteGraceSeconds: int64(c.UndeleteGrace / time.Second),
		Purge: PurgeStatus{Status: works[0].Purge}, Throughput: works[0].Throughput,
	}
	backlogs := make([]store.Usage, len(parts))
	for i, part := range parts {
		s.Usage, s.Purge.LagSeconds = s.Usage.Plus(part.Usage), max(s.Purge.LagSeconds, part.LagSeconds)
		s.Partitions = append(s.Partitions, part.PartitionStatus)
		backlogs[i] = part.Backlog
	}
	s.Purge.Debt = e.purger.DebtOf(c.RID, backlogs)
	for _, w := range works[1:] {
		s.Purge.Work = s.Purge.Work.Plus(w.Purge.Work)
		if s.Purge.HeldBack == purge.None {
			s.Purge.HeldBack = w.Purge.HeldBack
		}
		s.Purge.Debt.PaidItems += w.Debt.PaidItems
		s.Purge.Debt.ItemsPerWrite = max(s.Purge.Debt.ItemsPerWrite, w.Debt.ItemsPerWrite)
		s.Throughput.Used += w.Throughput.Used
		s.Throughput.Leftover = max(0, s.Throughput.Leftover-w.Throughput.Used) // each node counts from the whole
	}
	return s
}

// AllContainers returns the containers of all databases, the oldest first in each.
func (e *Engine) AllContainers() []*catalog.Container { return containersOf(e.catalog) }

// oneOrAll returns c, or all containers if it is nil.
func (e *Engine) oneOrAll(c *catalog.Container) []*catalog.Container {
	if c == nil {
		return e.AllContainers()
	}
	return []*catalog.Container{c}
}

func containersOf(cat *catalog.Catalog) (all []*catalog.Container) {
	for _, d := range cat.Databases() {
		all = append(all, d.Containers()...)
	}
	return all
}

// eachPartition calls do with every partition of a container, and its position.
func (e *Engine) eachPartition(c *catalog.Container, do func(i int, p *store.Partition) error) error {
	for i := range c.Ranges {
		p, err := e.partition(c, c.Ranges[i].ID)
		if err != nil {
			return err
		}
		if err := do(i, p); err != nil {
			return err
		}
	}
	return nil
}

// eachHere calls do with the partitions of a container that this node has: all of them, or
// those that are open, if there is a cluster.
func (e *Engine) eachHere(c *catalog.Container, do func(i int, p *store.Partition) error) error {
	if e.node == nil {
		return e.eachPartition(c, do)
	}
	for i := range c.Ranges {
		e.mu.RLock()
		p := e.mu.open[partitionID{c.RID, c.Ranges[i].ID}]
		e.mu.RUnlock()
		if p == nil {
			continue
		}
		if err := do(i, p); err != nil && !errors.Is(err, store.ErrClosed) {
			return err
		}
	}
	return nil
}

// ContainerQuota returns the quota of live bytes of a container; 0 for no bound.
func (e *Engine) ContainerQuota() int64 { return e.options.Quotas.ContainerBytes }

// Usage returns what a container holds.
func (e *Engine) Usage(ctx context.Context, c *catalog.Container) (u store.Usage, err error) {
	parts, err := e.UsageByRange(ctx, c)
	for _, got := range parts {
		u = u.Plus(got)
	}
	return u, err
}

// UsageByRange returns what each of a container's partitions holds.
func (e *Engine) UsageByRange(ctx context.Context, c *catalog.Container) ([]store.Usage, error) {
	return gather(ctx, e, c, opUsage, 0)
}

var opUsage = newOperation(operation[int, store.Usage]{"usage", func(_ context.Context, e *Engine, _ *catalog.Container, _ int, p *store.Partition, _ int) (store.Usage, error) {
	return p.Usage(e.clock.Now())
}, false})

// WhatIf reports what another default TTL would do to a container now. It changes
// nothing.
type WhatIf struct {
	Database  string `json:"database"`
	Container string `json:"container"`
	clock.Moment
	CurrentDefaultTTL catalog.TTL `json:"currentDefaultTtl"`
	DefaultTTL        catalog.TTL `json:"defaultTtl"`
	store.WhatIf
	// Never is the part of Remains that would never expire.
	Never store.Amount `json:"never"`
	// LastExpiresAt is when the last of Remains would expire; null if none of it ever
	// would.
	LastExpiresAt   *string `json:"lastExpiresAt"`
	LastExpiresAtMs *int64  `json:"lastExpiresAtMs"`
}

// WhatIf computes what a default TTL would do.
func (e *Engine) WhatIf(ctx context.Context, c *catalog.Container, ttl catalog.TTL) (WhatIf, error) {
	w := WhatIf{Database: c.DatabaseID, Container: c.ID, Moment: clock.At(e.clock.Now()), CurrentDefaultTTL: c.DefaultTTL, DefaultTTL: ttl}
	changes, err := gather(ctx, e, c, opWhatIf, whatIf{ttl, w.NowMs})
	if err != nil {
		return w, err
	}
	for _, change := range changes {
		w.WhatIf = w.WhatIf.Plus(change)
	}
	o, err := e.outlook(ctx, c, ttl, w.NowMs, nil)
	w.Never = o.Never
	if o.LastMs > 0 {
		w.LastExpiresAt, w.LastExpiresAtMs = optional(o.LastMs)
	}
	return w, err
}

// whatIf is a question about another default TTL, at a moment.
type whatIf struct {
	TTL   catalog.TTL
	NowMs int64
}

var opWhatIf = newOperation(operation[whatIf, store.WhatIf]{"what if", func(_ context.Context, _ *Engine, _ *catalog.Container, _ int, p *store.Partition, q whatIf) (store.WhatIf, error) {
	return p.WhatIf(q.TTL, q.NowMs)
}, false})

// optional returns a moment in the form of optional fields.
func optional(ms int64) (text *string, milliseconds *int64) {
	s := clock.Stamp(ms)
	return &s, &ms
}

// outlook returns what would expire by each of the given moments, in ascending order,
// under a default TTL.
func (e *Engine) outlook(ctx context.Context, c *catalog.Container, ttl catalog.TTL, nowMs int64, untilMs []int64) (store.Outlook, error) {
	parts, err := gather(ctx, e, c, opOutlook, outlook{ttl, nowMs, untilMs})
	return sumOutlook(parts, len(untilMs)), err
}

func sumOutlook(parts []store.Outlook, moments int) store.Outlook {
	all := store.Outlook{Expiring: make([]store.Amount, moments)}
	for _, o := range parts {
		for n, a := range o.Expiring {
			all.Expiring[n] = all.Expiring[n].Plus(a)
		}
		all.Later, all.Never, all.LastMs = all.Later.Plus(o.Later), all.Never.Plus(o.Never), max(all.LastMs, o.LastMs)
	}
	return all
}

// outlook is a question about what expires when.
type outlook struct {
	TTL     catalog.TTL
	NowMs   int64
	UntilMs []int64
}

var opOutlook = newOperation(operation[outlook, store.Outlook]{"outlook", func(ctx context.Context, _ *Engine, _ *catalog.Container, _ int, p *store.Partition, q outlook) (store.Outlook, error) {
	return p.Outlook(ctx, q.TTL, q.NowMs, q.UntilMs)
}, false})

const (
	// MaxForecastIntervals bounds the length of a forecast.
	MaxForecastIntervals = 1000
	// MinForecastInterval is the shortest interval, and MaxForecastInterval the longest: it
	// keeps the last moment of a forecast within four-digit years.
	MinForecastInterval = time.Second
	MaxForecastInterval = 366 * day

	day = 24 * time.Hour
)

// Forecast reports what expires when, if nothing is written.
type Forecast struct {
	Database  string `json:"database"`
	Container string `json:"container"`
	clock.Moment
	IntervalSeconds float64    `json:"intervalSeconds"`
	Intervals       []Interval `json:"intervals"`
	// Later expires after the last interval. Never does not expire.
	Later store.Amount `json:"later"`
	Never store.Amount `json:"never"`
}

// Interval is a part of a forecast: after From, until Until inclusive.
type Interval struct {
	From  string `json:"from"`
	Until string `json:"until"`
	store.Amount
}

// Forecast computes how much of a container expires in each of the next intervals. They
// end with whole seconds. An interval of 0 is chosen by the TTL.
func (e *Engine) Forecast(ctx context.Context, c *catalog.Container, interval time.Duration, count int) (Forecast, error) {
	return e.ForecastUnder(ctx, c, c.DefaultTTL, interval, count)
}

// ForecastUnder is Forecast as it would be with another default TTL.
func (e *Engine) ForecastUnder(ctx context.Context, c *catalog.Container, ttl catalog.TTL, interval time.Duration, count int) (Forecast, error) {
	if count < 1 || count > MaxForecastIntervals || interval != 0 && interval < MinForecastInterval {
		return Forecast{}, invalid("A forecast has 1 to %d intervals of at least %v each.", MaxForecastIntervals, MinForecastInterval)
	}
	f := Forecast{Database: c.DatabaseID, Container: c.ID, Moment: clock.At(e.clock.Now()), Intervals: make([]Interval, count)}
	if interval == 0 {
		span, err := e.forecastSpan(ctx, c, ttl, f.NowMs)
		if err != nil {
			return f, err
		}
		interval = intervalFor(span, count)
	}
	f.IntervalSeconds = interval.Seconds()
	until := make([]int64, count)
	for i := range until {
		until[i] = (f.NowMs+int64(i+1)*interval.Milliseconds())/1000*1000 + 999
	}
	o, err := e.outlook(ctx, c, ttl, f.NowMs, until)
	from := f.Now
	for i, a := range o.Expiring {
		f.Intervals[i] = Interval{from, clock.Stamp(until[i]), a}
		from = f.Intervals[i].Until
	}
	f.Later, f.Never = o.Later, o.Never
	return f, err
}

// forecastSpan returns how long a forecast should cover: the default TTL, by which all
// items expire that have none of their own. Without one, it is the time until the last
// item expires.
func (e *Engine) forecastSpan(ctx context.Context, c *catalog.Container, ttl catalog.TTL, nowMs int64) (time.Duration, error) {
	if ttl > 0 {
		return time.Duration(ttl) * time.Second, nil
	}
	o, err := e.outlook(ctx, c, ttl, nowMs, nil)
	if err != nil || o.LastMs == 0 {
		return spanOfNone, err
	}
	return time.Duration(o.LastMs-nowMs) * time.Millisecond, nil
}

// spanOfNone is what a forecast covers where nothing expires.
const spanOfNone = 24 * time.Hour

// forecastIntervals are the intervals that a forecast chooses from: those of clocks and
// calendars. The last is the longest that a client may ask for.
var forecastIntervals = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 180 * day, MaxForecastInterval,
}

// intervalFor returns the shortest interval of which count cover the span.
func intervalFor(span time.Duration, count int) time.Duration {
	for _, i := range forecastIntervals {
		if i >= (span+time.Duration(count)-1)/time.Duration(count) {
			return i
		}
	}
	return MaxForecastInterval
}

// ExpiringHere returns how much of what this node has of a container expires within each of
// the given times, in ascending order, if nothing is written. It takes a few sums, where a
// forecast up to the last of them would take many.
func (e *Engine) ExpiringHere(ctx context.Context, c *catalog.Container, within []time.Duration) ([]store.Amount, error) {
	nowMs := e.clock.Now()
	untilMs := make([]int64, len(within))
	for i, d := range within {
		untilMs[i] = nowMs + d.Milliseconds()
	}
	var parts []store.Outlook
	err := e.eachHere(c, func(_ int, p *store.Partition) error {
		o, err := p.Outlook(ctx, c.DefaultTTL, nowMs, untilMs)
		parts = append(parts, o)
		return err
	})
	o := sumOutlook(parts, len(untilMs))
	for i := 1; i < len(o.Expiring); i++ {
		o.Expiring[i] = o.Expiring[i].Plus(o.Expiring[i-1])
	}
	return o.Expiring, err
}

// Explanation reports an item's effective TTL, and the reason for it.
type Explanation struct {
	Database     string          `json:"database"`
	Container    string          `json:"container"`
	ID           string          `json:"id"`
	PartitionKey json.RawMessage `json:"partitionKey"`
	clock.Moment
	Expired bool `json:"expired"`
	// Purged says that the item expired and was purged, as its event tells. There is no
	// item of this name any more.
	Purged bool `json:"purged"`
	// Final says that only ttlFinality keeps it expired.
	Final bool `json:"final"`
	// TTL is the item's own, DefaultTTL its container's, and Source what applies: "item" or
	// "container" for one of these, "expireAtPath" for a deadline that the item names, or
	// "none".
	TTL         catalog.TTL `json:"ttl"`
	DefaultTTL  catalog.TTL `json:"defaultTtl"`
	Source      string      `json:"source"`
	WrittenAt   string      `json:"writtenAt"`
	WrittenAtMs int64       `json:"writtenAtMs"`
	// TouchedAt is when a read last restarted the countdown, absent if none did since the
	// last write.
	TouchedAt   *string `json:"touchedAt,omitempty"`
	TouchedAtMs *int64  `json:"touchedAtMs,omitempty"`
	// ExpiresAt is null for an item that never expires, and for one that only ttlFinality
	// keeps expired.
	ExpiresAt   *string `json:"expiresAt"`
	ExpiresAtMs *int64  `json:"expiresAtMs"`
	// GoneAt is when a purged item was gone: later than its deadline if a change of
	// settings expired it.
	GoneAt   *string `json:"goneAt,omitempty"`
	GoneAtMs *int64  `json:"goneAtMs,omitempty"`
	// Reason is a sentence.
	Reason string `json:"reason"`
}

// Explain reports when an item expires and why, or why it does not. An item that was purged
// is explained from its event, as long as that is kept and names it.
func (e *Engine) Explain(ctx context.Context, c *catalog.Container, id string, pk value.PartitionKey) (Explanation, error) {
	k, err := givenKey(c, pk.String())
	if err != nil {
		return Explanation{}, err
	}
	key := itemKey(c, k, id)
	p, err := e.partition(c, c.Partition(key.EPK))
	if err != nil {
		return Explanation{}, err
	}
	now := clock.At(e.clock.Now())
	x := Explanation{
		Database: c.DatabaseID, Container: c.ID, ID: id, PartitionKey: json.RawMessage(pk.String()), Moment: now,
	}
	f, err := p.ItemExpiry(key, now.NowMs)
	if errors.Is(err, store.ErrNotFound) {
		return x, x.ofPurged(ctx, p, key)
	}
	if err != nil {
		return Explanation{}, err
	}
	x.Expired, x.Final, x.TTL, x.DefaultTTL = f.Expired, f.Final, f.Own, f.Default
	x.WrittenAt, x.WrittenAtMs = clock.Stamp(f.WrittenMs), f.WrittenMs
	if f.DeadlineMs != store.Never && !f.Final {
		x.ExpiresAt, x.ExpiresAtMs = optional(f.DeadlineMs)
	}
	if f.TouchedMs != 0 {
		x.TouchedAt, x.TouchedAtMs = optional(f.TouchedMs)
	}
	x.Source, x.Reason = explain(&f)
	return x, nil
}

// ofPurged explains an item that was purged. The error is store.ErrNotFound if no event
// tells of it.
func (x *Explanation) ofPurged(ctx context.Context, p *store.Partition, k store.Key) error {
	ev, found, err := p.LastEvent(ctx, k)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return err
	}
	x.Expired, x.Purged, x.TTL, x.DefaultTTL, x.Source = true, true, ev.TTL, p.Container().DefaultTTL, eventSource(&ev)
	x.WrittenAt, x.WrittenAtMs = clock.Stamp(ev.WrittenMs), ev.WrittenMs
	x.ExpiresAt, x.ExpiresAtMs = optional(ev.Key.DeadlineMs)
	x.GoneAt, x.GoneAtMs = optional(ev.Key.GoneMs)
	by := "the TTL of its container"
	switch x.Source {
	case SourceNamed:
		by = "the deadline that it named"
	case sourceItem:
		by = fmt.Sprintf("its own ttl of %d s", ev.TTL)
	}
	x.Reason = fmt.Sprintf("There is no such item now. The last one expired at %s, by %s, and was purged.", *x.ExpiresAt, by)
	if ev.Key.GoneMs != ev.Key.DeadlineMs {
		x.Reason += fmt.Sprintf(" It was gone at %s, when its container's settings changed.", *x.GoneAt)
	}
	return nil
}

// The sources of a deadline: the TTL of the item or of its container, a deadline that the
// item names itself, or none.
const (
	sourceItem      = "item"
	sourceContainer = "container"
	SourceNamed     = "expireAtPath"
	sourceNone      = "none"
)

func explain(f *store.Expiry) (source, reason string) {
	source = sourceNone
	from := "its last write"
	if f.TouchedMs != 0 {
		from = fmt.Sprintf("%s, when a read restarted its countdown", clock.Stamp(f.TouchedMs))
	}
	switch {
	case f.Final:
		return source, "It had expired when the settings were changed, and the container's ttlFinality keeps it so."
	case f.Default == catalog.TTLAbsent && f.Named:
		reason = "It never expires: it names a deadline, but its container has no defaultTtl, and without one a deadline has no effect."
	case f.Default == catalog.TTLAbsent && f.Own != catalog.TTLAbsent:
		reason = "It never expires: it has a ttl of its own, but its container has no defaultTtl, and without one a ttl has no effect."
	case f.Default == catalog.TTLAbsent:
		reason = "It never expires: its container has no defaultTtl."
	case f.Named:
		source, reason = SourceNamed, fmt.Sprintf("It expires at %s, the deadline that it named at the container's expireAtPath when it was last written.", clock.Stamp(f.DeadlineMs))
	case f.Own == catalog.TTLForever:
		source, reason = sourceItem, "It never expires: its own ttl is -1."
	case f.Own > 0:
		source, reason = sourceItem, fmt.Sprintf("Its own ttl is %d s from %s.", f.Own, from)
	case f.Default == catalog.TTLForever:
		source, reason = sourceContainer, "It never expires: it has no ttl of its own, and its container's defaultTtl is -1."
	default:
		source, reason = sourceContainer, fmt.Sprintf("It has no ttl of its own, and its container's defaultTtl is %d s from %s.", f.Default, from)
	}
	if f.Expired {
		reason += " That has passed: it is gone, though it still takes space."
	}
	return source, reason
}
