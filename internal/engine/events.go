// SPDX-License-Identifier: MIT

// Events of expiry in pages, and the cursors between them.

package engine

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store"
)

const (
	// EventRetention is how long events are kept.
	EventRetention = time.Hour
	// MaxEvents bounds a page of events of one partition.
	MaxEvents = 1000
	// maxCursorBytes bounds the text of a cursor: it has a position for every partition.
	maxCursorBytes = 64 << 10
)

// ErrEventsGone: the cursor is older than the events that are kept.
var ErrEventsGone = errors.New("the cursor is older than the events that are kept")

// Event reports that an item has expired.
type Event struct {
	// ID and PartitionKey are absent once they are erased.
	ID           string          `json:"id,omitempty"`
	PartitionKey json.RawMessage `json:"partitionKey,omitempty"`
	RID          string          `json:"rid"`
	// WrittenAt is the item's last write, ExpiredAt its deadline, and GoneAt when it
	// became invisible: later than its deadline if a change of settings expired it.
	WrittenAt string `json:"writtenAt"`
	ExpiredAt string `json:"expiredAt"`
	GoneAt    string `json:"goneAt"`
	// TTL is the item's own, absent if it inherited its container's: the container's TTL
	// at that time is not kept. Source says what decided: "item" or "container" for the
	// TTL of either, "expireAtPath" for a deadline that the item named.
	TTL    catalog.TTL `json:"ttl"`
	Source string      `json:"source"`

	GoneMs int64 `json:"-"`
}

// EventPage is a page of the events of a container.
type EventPage struct {
	Events []Event `json:"-"`
	// Cursor is where the next page begins.
	Cursor string `json:"cursor"`
	// More says that the next page already has events.
	More bool `json:"more"`
}

// EventStart is where a reader of events begins: after a cursor, with all events that are
// kept, or from now on.
type EventStart struct {
	Cursor string
	Now    bool
}

// Events returns a reader's first page. It fails with ErrEventsGone if a reader with a
// cursor may have missed events: they are older than EventRetention, or there were more than
// store.KeptEvents in a partition since.
func (e *Engine) Events(ctx context.Context, c *catalog.Container, from EventStart) (EventPage, error) {
	nowMs := e.clock.Horizon()
	oldestMs := nowMs - EventRetention.Milliseconds()
	switch {
	case from.Now:
		return e.eventsAfter(ctx, c, newCursor(c, nowMs-1), false)
	case from.Cursor == "":
		return e.eventsAfter(ctx, c, newCursor(c, oldestMs), false)
	}
	at, err := parseCursor(c, from.Cursor)
	if err != nil {
		return EventPage{}, err
	}
	if slices.ContainsFunc(at.After, func(p store.EventKey) bool { return p.GoneMs < oldestMs }) {
		return EventPage{}, ErrEventsGone
	}
	return e.eventsAfter(ctx, c, at, true)
}

// NextEvents returns the page after another one, for a reader that has not paused. It
// gets all events since then, however far the time has moved, unless there are more than are
// kept.
func (e *Engine) NextEvents(ctx context.Context, c *catalog.Container, cursor string) (EventPage, error) {
	c, err := e.catalog.Current(c.RID)
	if err != nil {
		return EventPage{}, err
	}
	at, err := parseCursor(c, cursor)
	if err != nil {
		return EventPage{}, err
	}
	return e.eventsAfter(ctx, c, at, true)
}

// eventsAfter returns the events after a cursor, in order within each partition; all of them,
// or those that are kept.
func (e *Engine) eventsAfter(ctx context.Context, c *catalog.Container, at *eventCursor, all bool) (EventPage, error) {
	var page EventPage
	after := map[int]store.EventKey{}
	for i := range at.After {
		after[c.Ranges[i].ID] = at.After[i]
	}
	parts, err := gather(ctx, e, c, opEvents, after)
	if err != nil {
		return page, err
	}
	for i, part := range parts {
		if all && part.Missed {
			return EventPage{}, ErrEventsGone
		}
		page.Events = append(page.Events, part.Events...)
		at.After[i] = part.Next
		page.More = page.More || part.More
	}
	slices.SortStableFunc(page.Events, func(a, b Event) int { return cmp.Compare(a.GoneMs, b.GoneMs) })
	page.Cursor = at.encode()
	return page, nil
}

// eventPart is a page of the events of a partition.
type eventPart struct {
	Events []Event
	Next   store.EventKey
	More   bool
	Missed bool
}

// opEvents returns the events of a partition after its position among those of all.
var opEvents = newOperation(operation[map[int]store.EventKey, eventPart]{"events", func(_ context.Context, _ *Engine, c *catalog.Container, i int, p *store.Partition, after map[int]store.EventKey) (eventPart, error) {
	part, err := p.Events(after[i], MaxEvents)
	if err != nil {
		return eventPart{}, err
	}
	out := eventPart{Next: part.Next, More: part.More, Missed: part.Missed}
	for _, ev := range part.Events {
		told := Event{
			ID: ev.ID, RID: c.RID.ItemRID(ev.Ordinal),
			WrittenAt: clock.Stamp(ev.WrittenMs), ExpiredAt: clock.Stamp(ev.Key.DeadlineMs), GoneAt: clock.Stamp(ev.Key.GoneMs),
			TTL: ev.TTL, Source: eventSource(&ev), GoneMs: ev.Key.GoneMs,
		}
		if !ev.Erased {
			told.PartitionKey = json.RawMessage(ev.PartitionKey.String())
		}
		out.Events = append(out.Events, told)
	}
	return out, nil
}, false})

// eventSource returns what decided when an item expired.
func eventSource(ev *store.Event) string {
	switch {
	case ev.Named:
		return SourceNamed
	case ev.TTL == catalog.TTLAbsent:
		return sourceContainer
	}
	return sourceItem
}

// eventCursor is a position in the events of each partition of a container. If a partition was
// split since, both that it became go on at its position.
type eventCursor struct {
	Container string           `json:"c"`
	After     []store.EventKey `json:"p"`
}

// newCursor returns the cursor after all items that were gone at goneMs.
func newCursor(c *catalog.Container, goneMs int64) *eventCursor {
	at := &eventCursor{Container: c.RIDText, After: make([]store.EventKey, len(c.Ranges))}
	for i := range at.After {
		at.After[i] = store.EventKey{GoneMs: goneMs, DeadlineMs: math.MaxInt64}
	}
	return at
}

func (at *eventCursor) encode() string {
	raw, err := json.Marshal(at)
	if err != nil {
		panic("engine: a cursor cannot be encoded: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(c *catalog.Container, text string) (*eventCursor, error) {
	refused := invalid("Invalid cursor. Omit it to start over.")
	if len(text) > maxCursorBytes {
		return nil, refused
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, refused
	}
	var at eventCursor
	if err := json.Unmarshal(raw, &at); err != nil || at.Container != c.RIDText || len(at.After) == 0 {
		return nil, refused
	}
	of, ok := origins(c, 0, len(c.Ranges)-1, len(at.After))
	if !ok {
		return nil, refused
	}
	now := eventCursor{Container: c.RIDText}
	for _, origin := range of {
		now.After = append(now.After, at.After[origin])
	}
	return &now, nil
}
