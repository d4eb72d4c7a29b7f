// SPDX-License-Identifier: MIT

// Expiry and purge. Purge runs only when a script says so. All of this uses the pages under
// /_mayfly/ttl.

package scripttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
)

// amount is a number of items and their bytes.
type amount struct{ Items, Bytes int64 }

func (a amount) String() string {
	noun := "items"
	if a.Items == 1 {
		noun = "item"
	}
	return fmt.Sprintf("%d %s, %d bytes", a.Items, noun, a.Bytes)
}

func (a amount) plus(b amount) amount { return amount{a.Items + b.Items, a.Bytes + b.Bytes} }

// expiry requests one of the pages. Without in= and db=, it is about container c; with the
// flag all, about all containers; with the flag whole, about those of the database.
func (s *script) expiry(d *directive, method, page string, query url.Values) answer {
	d.Helper()
	if query == nil {
		query = url.Values{}
	}
	if !d.flag("all") {
		query.Set("database", d.database())
		if !d.flag("whole") {
			query.Set("container", d.container())
		}
	}
	header := http.Header{"Authorization": {"Bearer " + mayfly.WellKnownKey}}
	a, err := s.server.send(method, "/_mayfly/ttl/"+page+"?"+query.Encode(), header, nil)
	if err != nil {
		d.fatalf("ask for %s: %v", page, err)
	}
	return a
}

// decoded parses the answer of a page, or returns the text of its refusal.
func (s *script) decoded(d *directive, a answer, into any) (refusal string) {
	d.Helper()
	if a.status != http.StatusOK {
		return s.line(d, a, view{})
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		d.fatalf("%s: %v", a.body, err)
	}
	return ""
}

// expiryStatus is the status of a container on the page.
type expiryStatus struct {
	Database, Container  string
	DefaultTTL           *int32
	TTLFinality          bool
	Live, ExpiredPending amount
	Purge                struct {
		LagSeconds               float64
		PurgedItems, PurgedBytes int64
		Paused                   bool
		Limit                    *float64
		HeldBack                 *string
	}
	Throughput struct {
		Mode        string
		Provisioned float64
		Shared      bool
	}
	Partitions []struct {
		Live, ExpiredPending amount
		LagSeconds           float64
	}
}

// statuses requests the status of a container, or of all, and checks the sums.
func (s *script) statuses(d *directive) (all []expiryStatus, refusal string) {
	d.Helper()
	var page struct{ Containers []expiryStatus }
	refusal = s.decoded(d, s.expiry(d, http.MethodGet, "status", nil), &page)
	for _, c := range page.Containers {
		var live, expired amount
		lag := 0.0
		for _, p := range c.Partitions {
			live, expired, lag = live.plus(p.Live), expired.plus(p.ExpiredPending), max(lag, p.LagSeconds)
		}
		if live != c.Live || expired != c.ExpiredPending || lag != c.Purge.LagSeconds {
			d.fatalf("the partitions of %s do not add up: %+v", c.Container, c)
		}
	}
	return page.Containers, refusal
}

// status requests the status of one container.
func (s *script) status(d *directive) (_ expiryStatus, refusal string) {
	d.Helper()
	all, refusal := s.statuses(d)
	if refusal == "" && len(all) != 1 {
		d.fatalf("one container has %d statuses", len(all))
	}
	if refusal != "" {
		return expiryStatus{}, refusal
	}
	return all[0], ""
}

// purge purges all expired items, in the container or, with all, everywhere.
//
//	purge
//	----
//	purged 1 item, 204 bytes
//
// A purge is not durable at once, so after a crash it may have to be repeated: with
// uncounted, the output does not say how much was purged. With kept, items may be left
// because of their container's grace.
func purge(s *script, d *directive) string {
	all, uncounted, kept := d.flag("all"), d.flag("uncounted"), d.flag("kept")
	var before, after expiryStatus
	var taken struct {
		Purged amount
		Reason string
	}
	if !all {
		before, _ = s.status(d)
	}
	if refusal := s.decoded(d, s.expiry(d, http.MethodPost, "purge", nil), &taken); refusal != "" {
		return refusal
	}
	if taken.Reason != "forced" {
		d.fatalf("the reason is %q", taken.Reason)
	}
	if !all {
		after, _ = s.status(d)
		gone := amount{after.Purge.PurgedItems - before.Purge.PurgedItems, after.Purge.PurgedBytes - before.Purge.PurgedBytes}
		// Items in doubt are not purged.
		left := amount{before.ExpiredPending.Items - taken.Purged.Items, before.ExpiredPending.Bytes - taken.Purged.Bytes}
		sure := left == (amount{}) || kept || strings.Contains(s.clock(d, ""), "in doubt")
		if !sure || taken.Purged != gone || after.ExpiredPending != left || after.Live != before.Live {
			d.fatalf("purged %v, though before it was %+v and after it is %+v", taken.Purged, before, after)
		}
	}
	if uncounted {
		return "purged"
	}
	return "purged " + taken.Purged.String()
}

// usage shows how much is live, and how much has expired and still takes space. It
// checks that a read of the container with its quota says the same, and that the
// items of the container, listed, have that number and size.
//
//	usage
//	----
//	live 2 items, 408 bytes; expired 1 item, 204 bytes
func usage(s *script, d *directive) string {
	c, refusal := s.status(d)
	if refusal != "" {
		return refusal
	}
	path := containerPath(d.database(), d.container())
	a := s.send(d, request{method: http.MethodGet, path: path, header: map[string]string{"X-Ms-Documentdb-Populatequotainfo": "True"}})
	kib := (c.Live.Bytes + 1023) / 1024
	want := fmt.Sprintf("documentSize=0;documentsSize=%d;documentsCount=%d;collectionSize=%d;", kib, c.Live.Items, kib)
	if got := a.header.Get("X-Ms-Resource-Usage"); got != want {
		d.fatalf("the usage in a read of the container is %q, want %q", got, want)
	}
	if listed := s.listed(d, path); listed != c.Live {
		d.fatalf("the live items are %v, and those in the list %v", c.Live, listed)
	}
	return fmt.Sprintf("live %v; expired %v", c.Live, c.ExpiredPending)
}

// listed adds up the items of a container, as a client can.
func (s *script) listed(d *directive, container []string) amount {
	d.Helper()
	var sum amount
	r := request{method: http.MethodGet, path: append(slices.Clone(container), "docs"), header: map[string]string{}}
	for range maxPages {
		a := s.send(d, r)
		if a.status != http.StatusOK {
			d.fatalf("list %v: %s", container, a.body)
		}
		for _, item := range s.page(d, a, "Documents") {
			sum = sum.plus(amount{1, int64(len(item))})
		}
		next := a.header.Get("X-Ms-Continuation")
		if next == "" {
			return sum
		}
		r.header["X-Ms-Continuation"] = next
	}
	d.fatalf("the list has no end after %d pages", maxPages)
	return sum
}

// lag shows how long the oldest expired item has waited to be purged.
//
//	lag
//	----
//	1.5s
func lag(s *script, d *directive) string {
	c, refusal := s.status(d)
	if refusal != "" {
		return refusal
	}
	return (time.Duration(c.Purge.LagSeconds*1000) * time.Millisecond).String()
}

// expiryOf shows a container's TTL, and the settings of purge in it; with
// all, for each container.
//
//	ttl all
//	----
//	db/c: ttl 60, purge paused; 400 RU/s, report
//	db/c2: ttl off, purge paused, limit 5/s; 400 RU/s, report, shared
func expiryOf(s *script, d *directive) string {
	all, refusal := s.statuses(d)
	if refusal != "" {
		return refusal
	}
	var lines []string
	for _, c := range all {
		text := c.Database + "/" + c.Container + ": ttl " + ttlText(c.DefaultTTL)
		if c.TTLFinality {
			text += ", final"
		}
		text += purgeText(c.Purge.Paused, c.Purge.Limit)
		if held := c.Purge.HeldBack; held != nil && *held != "paused" {
			text += ", held back: " + *held
		}
		text += fmt.Sprintf("; %v RU/s, %s", c.Throughput.Provisioned, c.Throughput.Mode)
		if c.Throughput.Shared {
			text += ", shared"
		}
		lines = append(lines, text)
	}
	if len(lines) == 0 {
		return "none"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func ttlText(ttl *int32) string {
	if ttl == nil {
		return "off"
	}
	return strconv.Itoa(int(*ttl))
}

func purgeText(paused bool, limit *float64) string {
	text := ", purge on"
	if paused {
		text = ", purge paused"
	}
	if limit != nil {
		text += fmt.Sprintf(", limit %v/s", *limit)
	}
	return text
}

// pause stops purge in the container or, with all, everywhere, and resume lets it
// go on. A server starts with all of it paused, unless it is set up with purge=on. limit
// bounds it; 0 is no bound.
//
//	pause
//	----
//	purge paused
//
//	limit 5
//	----
//	purge paused, limit 5/s
func pause(s *script, d *directive) string  { return s.purgeSetting(d, "pause", nil) }
func resume(s *script, d *directive) string { return s.purgeSetting(d, "resume", nil) }
func limit(s *script, d *directive) string {
	d.flag("all")
	return s.purgeSetting(d, "limit", url.Values{"itemsPerSecond": {d.word("")}})
}

func (s *script) purgeSetting(d *directive, page string, query url.Values) string {
	d.Helper()
	var set struct {
		Paused bool
		Limit  *float64
	}
	if refusal := s.decoded(d, s.expiry(d, http.MethodPost, page, query), &set); refusal != "" {
		return refusal
	}
	return strings.TrimPrefix(purgeText(set.Paused, set.Limit), ", ")
}

// drain waits until purge, in the background, has purged all expired items.
//
//	drain
//	----
//	nothing expired is left
func drain(s *script, d *directive) string {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(drainPoll) {
		c, refusal := s.status(d)
		if refusal != "" {
			return refusal
		}
		if c.ExpiredPending == (amount{}) {
			return "nothing expired is left"
		}
	}
	d.fatalf("after %v there are still expired items", patience)
	return ""
}

// drainPoll is how often drain checks.
const drainPoll = 10 * time.Millisecond
