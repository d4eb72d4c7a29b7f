// SPDX-License-Identifier: MIT

// What would expire, what will, which items have, and why.

package scripttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// whatIf asks what another default TTL would do: off, -1, or a number of seconds.
//
//	whatif 60
//	----
//	live 3 items, 612 bytes
//	would expire 1 item, 204 bytes
//	would return 0 items, 0 bytes
//	would remain 2 items, 408 bytes; for ever 1 item, 204 bytes
//	the last would expire 2100-01-01T00:59:30.000Z
func whatIf(s *script, d *directive) string {
	var w struct {
		Live, Expires, Returns, Remains, Never amount
		LastExpiresAt                          *string
	}
	a := s.expiry(d, http.MethodGet, "whatif", url.Values{"ttl": {d.word("")}})
	if refusal := s.decoded(d, a, &w); refusal != "" {
		return refusal
	}
	if w.Live.plus(w.Returns) != w.Remains.plus(w.Expires) {
		d.fatalf("it does not add up: %s", a.body)
	}
	lines := []string{
		"live " + w.Live.String(), "would expire " + w.Expires.String(), "would return " + w.Returns.String(),
		fmt.Sprintf("would remain %v; for ever %v", w.Remains, w.Never),
	}
	if w.LastExpiresAt != nil {
		lines = append(lines, "the last would expire "+*w.LastExpiresAt)
	}
	return strings.Join(lines, "\n")
}

// forecast asks what expires in each of so many intervals, and shows those in which
// something does. It shows an interval that it was not given.
//
//	forecast 1h 24
//	----
//	2100-01-01T00:00:00.000Z to 2100-01-01T01:00:00.999Z: 2 items, 408 bytes
//	later 0 items, 0 bytes; never 1 item, 204 bytes
func forecast(s *script, d *directive) string {
	query := url.Values{}
	for i, word := range d.words() {
		query.Set([]string{"interval", "count", "too-many-words"}[min(i, 2)], word)
	}
	var f struct {
		IntervalSeconds float64
		Intervals       []struct {
			From, Until  string
			Items, Bytes int64
		}
		Later, Never amount
	}
	a := s.expiry(d, http.MethodGet, "forecast", query)
	if refusal := s.decoded(d, a, &f); refusal != "" {
		return refusal
	}
	if count := query.Get("count"); count != "" && count != strconv.Itoa(len(f.Intervals)) {
		d.fatalf("%d intervals, want %s", len(f.Intervals), count)
	}
	var lines []string
	if query.Get("interval") == "" {
		lines = append(lines, fmt.Sprintf("in intervals of %v", time.Duration(f.IntervalSeconds*float64(time.Second))))
	}
	sum := f.Later.plus(f.Never)
	for i, v := range f.Intervals {
		if i > 0 && v.From != f.Intervals[i-1].Until {
			d.fatalf("an interval begins at %s, and the one before ends at %s", v.From, f.Intervals[i-1].Until)
		}
		if a := (amount{v.Items, v.Bytes}); a != (amount{}) {
			lines = append(lines, fmt.Sprintf("%s to %s: %v", v.From, v.Until, a))
			sum = sum.plus(a)
		}
	}
	if c, _ := s.status(d); sum != c.Live {
		d.fatalf("of %v live, %v are in the forecast", c.Live, sum)
	}
	return strings.Join(append(lines, fmt.Sprintf("later %v; never %v", f.Later, f.Never)), "\n")
}

// explain shows when items expire, and why. It takes items as other verbs do.
//
//	explain a b
//	----
//	lives until 2100-01-01T00:01:00.000Z (container): It has no ttl of its own, and …
//	404 There is no item 'b' …
func explain(s *script, d *directive) string {
	return s.explained(d, http.MethodGet, "explain", nil)
}

// undelete brings items back, with a new ttl.
//
//	undelete a ttl=10
//	----
//	lives until 2100-01-01T00:00:20.000Z (item): Its own ttl is 10 s from its last write.
func undelete(s *script, d *directive) string {
	return s.explained(d, http.MethodPost, "undelete", url.Values{"ttl": {d.option("ttl")}})
}

// undeletable lists the items that can come back.
//
//	undeletable
//	----
//	a expired 2100-01-01T00:00:10.000Z, kept until 2100-01-01T00:01:10.000Z
func undeletable(s *script, d *directive) string {
	var u struct {
		Items []struct{ ID, ExpiredAt, PurgedFrom string }
		More  bool
	}
	query := url.Values{}
	if count := d.option("count"); count != "" {
		query.Set("count", count)
	}
	if refusal := s.decoded(d, s.expiry(d, http.MethodGet, "undeletable", query), &u); refusal != "" {
		return refusal
	}
	var lines []string
	for _, i := range u.Items {
		lines = append(lines, fmt.Sprintf("%s expired %s, kept until %s", i.ID, i.ExpiredAt, i.PurgedFrom))
	}
	slices.Sort(lines) // partitions list theirs one after the other
	if u.More {
		lines = append(lines, "and more")
	}
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, "\n")
}

// explained asks a page that explains items, once for each.
func (s *script) explained(d *directive, method, page string, more url.Values) string {
	database, container := d.database(), d.container()
	var lines []string
	for _, object := range d.objects() {
		var x struct {
			Expired, Final bool
			Purged         bool
			ExpiresAt      *string
			Source, Reason string
		}
		query := url.Values{
			"id":           {pointID(object, d.option("id"))},
			"partitionKey": {s.partitionKey(d, database, container, object)},
		}
		maps.Copy(query, more)
		if refusal := s.decoded(d, s.expiry(d, method, page, query), &x); refusal != "" {
			lines = append(lines, refusal)
			continue
		}
		var text string
		switch {
		case x.Expired != (x.Final || x.ExpiresAt != nil && x.Expired):
			d.fatalf("it is expired and never expires: %+v", x)
		case x.Final:
			text = "expired for good"
		case x.Purged:
			text = "purged, expired " + *x.ExpiresAt
		case x.Expired:
			text = "expired " + *x.ExpiresAt
		case x.ExpiresAt == nil:
			text = "lives for ever"
		default:
			text = "lives until " + *x.ExpiresAt
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %s", text, x.Source, x.Reason))
	}
	return strings.Join(lines, "\n")
}

// history shows the points of the last hour, the present included.
//
//	history
//	----
//	2100-01-01T00:00:00.000Z: live 2 items, 408 bytes; expired 0 items, 0 bytes
//	2100-01-01T00:01:00.000Z: live 1 item, 204 bytes; expired 1 item, 204 bytes, for 30 s
func history(s *script, d *directive) string {
	var h struct {
		Now          string
		EverySeconds float64
		Kept         bool
		Points       []struct {
			At                   string
			Live, ExpiredPending amount
			LagSeconds           float64
		}
	}
	if refusal := s.decoded(d, s.expiry(d, http.MethodGet, "history", nil), &h); refusal != "" {
		return refusal
	}
	if !h.Kept || len(h.Points) == 0 || h.Points[len(h.Points)-1].At != h.Now {
		d.fatalf("the present is missing: %+v", h)
	}
	var lines []string
	for _, p := range h.Points {
		text := fmt.Sprintf("%s: live %v; expired %v", p.At, p.Live, p.ExpiredPending)
		if p.LagSeconds > 0 {
			text += fmt.Sprintf(", for %v s", p.LagSeconds)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// expiryEvent is one line of a page of events.
type expiryEvent struct {
	Type, ID                     string
	PartitionKey                 json.RawMessage
	RID                          string
	WrittenAt, ExpiredAt, GoneAt string
	TTL                          *int32
	Source                       string
	Cursor                       string
	More                         bool
}

// events shows the items that have expired since events were last read, in
// the order in which they expired, and those of one moment by id.
//
//	events from=now
//	----
//	none
//
//	events
//	----
//	a expired 2100-01-01T00:01:00.000Z by its container's ttl
//	b expired 2100-01-01T00:01:05.000Z by its own ttl of 5, gone 2100-01-01T00:02:00.000Z
//
// It takes in= and db=, and
//
//	from=now from=kept   begin anew: with what is yet to come, or all that is kept
//	from=e               begin where a kept cursor stands
//	cursor=e             keep the cursor that follows
//	with=(_rid, pk)      show the rid, or the partition key
//	count                show only how many there are
func events(s *script, d *directive) string {
	v, name, count := d.view(), d.database()+"/"+d.container(), d.flag("count")
	query := url.Values{}
	switch from := d.option("from"); from {
	case "":
		query.Set("cursor", s.cursors[name])
	case "now", "kept":
		query.Set("from", from)
	default:
		query.Set("cursor", s.given(d, "from"))
	}
	var all []expiryEvent
	seen := map[string]bool{}
	for page := 0; ; page++ {
		a := s.expiry(d, http.MethodGet, "events", query)
		if a.status != http.StatusOK {
			return s.line(d, a, v)
		}
		told, last := d.eventPage(a)
		for _, e := range told {
			if name := e.RID + " " + e.GoneAt; seen[name] {
				d.fatalf("%s is told twice", e.ID)
			} else {
				seen[name] = true
			}
		}
		all = append(all, told...)
		s.cursors[name] = last.Cursor
		if !last.More {
			break
		}
		if page == maxPages {
			d.fatalf("the events have no end after %d pages", page)
		}
		query = url.Values{"cursor": {last.Cursor}}
	}
	if keep := d.option("cursor"); keep != "" {
		s.kept[keep] = s.cursors[name]
	}
	if count {
		return strconv.Itoa(len(all)) + " events"
	}
	return s.eventLines(all, v)
}

// eventPage parses a page, and checks that it is in order.
func (d *directive) eventPage(a answer) (told []expiryEvent, last expiryEvent) {
	d.Helper()
	for line := range bytes.Lines(a.body) {
		var e expiryEvent
		if err := json.Unmarshal(line, &e); err != nil {
			d.fatalf("%s: %v", line, err)
		}
		switch {
		case last.Type != "":
			d.fatalf("a page goes on after its cursor: %s", a.body)
		case e.Type == "cursor":
			last = e
		case e.Type != "expired" || len(told) > 0 && e.GoneAt < told[len(told)-1].GoneAt:
			d.fatalf("not an event, or out of order: %s", line)
		default:
			told = append(told, e)
		}
	}
	if last.Cursor == "" {
		d.fatalf("a page has no cursor: %s", a.body)
	}
	return told, last
}

// eventLines renders events. Events of different partitions at one moment have no order.
func (s *script) eventLines(all []expiryEvent, v view) string {
	slices.SortStableFunc(all, func(a, b expiryEvent) int {
		return strings.Compare(a.GoneAt+"\x00"+a.ID, b.GoneAt+"\x00"+b.ID)
	})
	lines := []string{}
	for _, e := range all {
		text := e.ID
		if slices.Contains(v.with, "pk") {
			text += " " + string(e.PartitionKey)
		}
		if slices.Contains(v.with, "_rid") {
			text += " " + s.labels.of("rid", e.RID)
		}
		text += " expired " + e.ExpiredAt
		switch {
		case e.Source == "expireAtPath":
			text += " at the deadline that it named"
		case (e.Source == "item") != (e.TTL != nil):
			text += " by " + e.Source + " or not"
		case e.TTL != nil:
			text += fmt.Sprintf(" by its own ttl of %d", *e.TTL)
		default:
			text += " by its container's ttl"
		}
		if e.GoneAt != e.ExpiredAt {
			text += ", gone " + e.GoneAt
		}
		lines = append(lines, text)
	}
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, "\n")
}
