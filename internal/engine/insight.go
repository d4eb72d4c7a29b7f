// SPDX-License-Identifier: MIT

// What everybody may know about expiry: how much there is, how much is gone, what
// would happen, what will, and why.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/purge"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// TTLStatus is how a container stands with its expired items at one moment.
type TTLStatus struct {
	Database, Container string
	DefaultTTL          catalog.TTL
	TTLFinality         bool
	NowMs               int64
	// Live is what clients see, Expired what is gone for them and still takes
	// space.
	Live, Expired store.Amount
	// LagMs is how long ago the oldest item expired that still takes space.
	LagMs int64
	Purge purge.Status
	// Throughput says what requests used and left over.
	Throughput ThroughputStatus
	Partitions []PartitionStatus
}

// PartitionStatus is TTLStatus for one physical partition.
type PartitionStatus struct {
	ID            string
	Live, Expired store.Amount
	LagMs         int64
}

// ThroughputStatus is what a container may spend, and did in the last second.
type ThroughputStatus struct {
	Mode                        ThroughputMode
	Provisioned, Used, Leftover ru.Units
	Shared                      bool
}

// TTLStatus returns the status of a container.
func (e *Engine) TTLStatus(database, container string) (TTLStatus, error) {
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return TTLStatus{}, err
	}
	return e.ttlStatus(c)
}

// TTLStatuses returns the status of all containers.
func (e *Engine) TTLStatuses(ctx context.Context) ([]TTLStatus, error) {
	var all []TTLStatus
	for _, d := range e.catalog.Databases() {
		for _, c := range d.Containers() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s, err := e.ttlStatus(c)
			if errors.Is(err, store.ErrClosed) { // dropped meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

func (e *Engine) ttlStatus(c *catalog.Container) (TTLStatus, error) {
	s := TTLStatus{
		Database: c.DatabaseID, Container: c.ID, DefaultTTL: c.DefaultTTL, TTLFinality: c.Final(), NowMs: e.clock.Now(),
		Purge: e.purger.Status(c.RID),
	}
	s.Throughput = ThroughputStatus(e.throughputOf(c))
	for i := range c.Ranges {
		p, err := e.partition(c, i)
		if err != nil {
			return TTLStatus{}, err
		}
		ps := PartitionStatus{ID: catalog.RangeID(i)}
		usage, err := p.Usage(s.NowMs)
		if err != nil {
			return TTLStatus{}, err
		}
		ps.Live, ps.Expired = usage.Live, usage.Expired
		oldestMs, found, err := p.Oldest(s.NowMs)
		if err != nil {
			return TTLStatus{}, err
		}
		if found {
			ps.LagMs = s.NowMs - oldestMs
		}
		s.Live, s.Expired = add(s.Live, ps.Live), add(s.Expired, ps.Expired)
		s.LagMs = max(s.LagMs, ps.LagMs)
		s.Partitions = append(s.Partitions, ps)
	}
	return s, nil
}

func add(a, b store.Amount) store.Amount {
	return store.Amount{Items: a.Items + b.Items, Bytes: a.Bytes + b.Bytes}
}

// Usage is what a container holds at one moment.
type Usage struct {
	Live, Expired store.Amount
}

// ContainerQuota returns how many live bytes a container may hold, 0 for no bound.
func (e *Engine) ContainerQuota() int64 { return e.quotas.ContainerBytes }

// Usage returns what a container holds.
func (e *Engine) Usage(c *catalog.Container) (Usage, error) {
	var u Usage
	parts, err := e.UsageByRange(c)
	for _, got := range parts {
		u.Live, u.Expired = add(u.Live, got.Live), add(u.Expired, got.Expired)
	}
	return u, err
}

// UsageByRange returns what each of a container's partitions holds.
func (e *Engine) UsageByRange(c *catalog.Container) ([]Usage, error) {
	parts := make([]Usage, len(c.Ranges))
	nowMs := e.clock.Now()
	for i := range c.Ranges {
		p, err := e.partition(c, i)
		if err != nil {
			return nil, err
		}
		got, err := p.Usage(nowMs)
		if err != nil {
			return nil, err
		}
		parts[i] = Usage{got.Live, got.Expired}
	}
	return parts, nil
}

// WhatIf is what another default TTL would do to a container now. Nothing has
// changed.
type WhatIf struct {
	DefaultTTL catalog.TTL
	NowMs      int64
	// Live is what is live now; Expires what of it would be gone at once, Returns
	// what has expired and would come back, Remains what would be live then.
	Live, Expires, Returns, Remains store.Amount
	// Never is what of Remains would never expire.
	Never store.Amount
	// LastMs is about when the last of Remains would have expired, within the hour;
	// 0 if none of it ever does.
	LastMs int64
}

// WhatIf says what a default TTL would do.
func (e *Engine) WhatIf(ctx context.Context, database, container string, ttl catalog.TTL) (WhatIf, error) {
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return WhatIf{}, err
	}
	w := WhatIf{DefaultTTL: ttl, NowMs: e.clock.Now()}
	for i := range c.Ranges {
		p, err := e.partition(c, i)
		if err != nil {
			return WhatIf{}, err
		}
		now, err := p.Usage(w.NowMs)
		if err != nil {
			return WhatIf{}, err
		}
		then, err := p.WhatIf(ttl, w.NowMs)
		if err != nil {
			return WhatIf{}, err
		}
		o, err := p.Outlook(ctx, ttl, w.NowMs, nil)
		if err != nil {
			return WhatIf{}, err
		}
		w.Live, w.Remains, w.Never = add(w.Live, now.Live), add(w.Remains, then.Live), add(w.Never, o.Never)
		w.Expires, w.Returns = add(w.Expires, then.Expires), add(w.Returns, then.Returns)
		w.LastMs = max(w.LastMs, o.LastMs)
	}
	return w, nil
}

const (
	// MaxForecastIntervals bounds a forecast.
	MaxForecastIntervals = 1000
	// MinForecastInterval is the shortest.
	MinForecastInterval = time.Second
)

// Forecast is what expires when, if nothing is written.
type Forecast struct {
	NowMs     int64
	Intervals []Interval
	// Later expires after the last interval, Never does not.
	Later, Never store.Amount
}

// Interval is a part of a forecast: after FromMs, up to and with UntilMs.
type Interval struct {
	FromMs, UntilMs int64
	store.Amount
}

// Forecast says how much of a container expires in each of the next intervals.
// They end with whole seconds.
func (e *Engine) Forecast(ctx context.Context, database, container string, interval time.Duration, count int) (Forecast, error) {
	if count < 1 || count > MaxForecastIntervals || interval < MinForecastInterval {
		return Forecast{}, invalid("A forecast has 1 to %d intervals of at least %v each.", MaxForecastIntervals, MinForecastInterval)
	}
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{NowMs: e.clock.Now(), Intervals: make([]Interval, count)}
	from := f.NowMs
	until := make([]int64, count)
	for i := range until {
		until[i] = (f.NowMs+int64(i+1)*interval.Milliseconds())/1000*1000 + 999
		f.Intervals[i] = Interval{FromMs: from, UntilMs: until[i]}
		from = until[i]
	}
	for i := range c.Ranges {
		p, err := e.partition(c, i)
		if err != nil {
			return Forecast{}, err
		}
		o, err := p.Outlook(ctx, c.DefaultTTL, f.NowMs, until)
		if err != nil {
			return Forecast{}, err
		}
		for n, a := range o.Expiring {
			f.Intervals[n].Amount = add(f.Intervals[n].Amount, a)
		}
		f.Later, f.Never = add(f.Later, o.Later), add(f.Never, o.Never)
	}
	return f, nil
}

// Explanation is an item's effective TTL, and the reason for it.
type Explanation struct {
	store.Fate
	NowMs int64
	// Source is where the TTL comes from: "item", "container" or "none".
	Source string
	// Reason says it in a sentence.
	Reason string
}

// Explain says when an item expires, and why, or why it does not.
func (e *Engine) Explain(t Target) (Explanation, error) {
	c, err := e.target(t)
	if err != nil {
		return Explanation{}, err
	}
	k, err := givenKey(c, t.PartitionKey)
	if err != nil {
		return Explanation{}, err
	}
	key := itemKey(c, k, t.ID)
	p, err := e.partition(c, c.Partition(key.EPK))
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{NowMs: e.clock.Now()}
	if x.Fate, err = p.Fate(key, x.NowMs); err != nil {
		return Explanation{}, err
	}
	x.explain()
	return x, nil
}

func (x *Explanation) explain() {
	f := &x.Fate
	x.Source = "none"
	switch {
	case f.Final:
		x.Reason = "It had expired when the settings were changed, and the container's ttlFinality keeps it so."
		return
	case f.Default == catalog.TTLAbsent && f.Own != catalog.TTLAbsent:
		x.Reason = "It never expires: it has a ttl of its own, but its container has no defaultTtl, and without one a ttl has no effect."
	case f.Default == catalog.TTLAbsent:
		x.Reason = "It never expires: its container has no defaultTtl."
	case f.Own == catalog.TTLForever:
		x.Source, x.Reason = "item", "It never expires: its own ttl is -1."
	case f.Own > 0:
		x.Source, x.Reason = "item", fmt.Sprintf("Its own ttl is %d s from its last write.", f.Own)
	case f.Default == catalog.TTLForever:
		x.Source, x.Reason = "container", "It never expires: it has no ttl of its own, and its container's defaultTtl is -1."
	default:
		x.Source, x.Reason = "container", fmt.Sprintf("It has no ttl of its own, and its container's defaultTtl is %d s from its last write.", f.Default)
	}
	if f.Expired {
		x.Reason += " That has passed: it is gone, though it still takes space."
	}
}

// Event tells that an item has expired.
type Event struct {
	Database, Container string
	ID                  string
	PartitionKey        value.PartitionKey
	RID                 string
	// WrittenMs is the item's last write, ExpiredMs its deadline, and GoneMs when
	// it was gone: later than its deadline if a change of settings expired it.
	WrittenMs, ExpiredMs, GoneMs int64
	TTL                          catalog.TTL // its own; TTLAbsent if it inherited
}

// EventPage is a part of the events of a container.
type EventPage struct {
	Events []Event
	// Cursor asks for what follows.
	Cursor string
	// More says that there are more already.
	More bool
}

// EventRetention is how long events are kept.
const EventRetention = time.Hour

// MaxEvents bounds a page of events.
const MaxEvents = 1000

// ErrEventsGone: the cursor is older than the events that are kept.
var ErrEventsGone = errors.New("the cursor is older than the events that are kept")

// EventsNow returns a cursor for the events of a container from now on.
func (e *Engine) EventsNow(database, container string) (string, error) {
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return "", err
	}
	return newCursor(c, e.clock.Horizon()-1).encode(), nil
}

// EventsKept returns a cursor for all events of a container that are kept.
func (e *Engine) EventsKept(database, container string) (string, error) {
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return "", err
	}
	return newCursor(c, e.clock.Horizon()-EventRetention.Milliseconds()).encode(), nil
}

// Events returns the events after a cursor, in order within each partition. A
// follower, who has kept up so far, is told of all that happened since, however
// far the time has moved.
func (e *Engine) Events(database, container, cursor string, follower Follower) (EventPage, error) {
	c, err := e.catalog.Container(database, container)
	if err != nil {
		return EventPage{}, err
	}
	at, err := parseCursor(c, cursor)
	if err != nil {
		return EventPage{}, err
	}
	oldestMs := e.clock.Horizon() - EventRetention.Milliseconds()
	var page EventPage
	for i := range c.Ranges {
		if follower == Resuming && at.Places[i].GoneMs < oldestMs {
			return EventPage{}, ErrEventsGone
		}
		p, err := e.partition(c, i)
		if err != nil {
			return EventPage{}, err
		}
		part, err := p.Events(at.Places[i], MaxEvents)
		if err != nil {
			return EventPage{}, err
		}
		for _, ev := range part.Events {
			page.Events = append(page.Events, Event{
				Database: c.DatabaseID, Container: c.ID, ID: ev.ID, PartitionKey: ev.PartitionKey,
				RID: c.RID.ItemRID(ev.Ordinal), WrittenMs: ev.WrittenMs, TTL: ev.TTL,
				ExpiredMs: ev.Place.DeadlineMs, GoneMs: ev.Place.GoneMs,
			})
		}
		at.Places[i] = part.Next
		page.More = page.More || part.More
	}
	slices.SortStableFunc(page.Events, func(a, b Event) int { return int(a.GoneMs - b.GoneMs) })
	page.Cursor = at.encode()
	return page, nil
}

// Follower says how somebody came by a cursor.
type Follower int

const (
	// Resuming is who comes back with a cursor.
	Resuming Follower = iota
	// Following is who has just been given it.
	Following
)
