// SPDX-License-Identifier: MIT

// The change feed, as the SDKs read it: each physical partition by itself, from its last
// position, until nothing is new.

package scripttest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readFeed shows the changes since the feed was last read, at first from the
// beginning, in the order of the items' JSON. Between two reads of one reader it
// reads in other ways too, with the same result: in pages of one, in ranges of
// effective partition keys, and for the whole container at once.
//
//	feed
//	----
//	{"id":"a"}
//	{"id":"b"}
//
//	feed
//	----
//	nothing new
//
// It takes in=, db= and what to show, and
//
//	as=r              the reader: each resumes at its own position
//	from=beginning from=now   begin anew
//	since=2100-01-01T00:00:05Z    begin anew, with what was written then or later
//	at=12             begin anew, at an etag: a kept one, or one
//	pk="x"            one partition key; ordered shows what it has in order
//	range=0           one physical partition
//	max=2             the size of a page
//	wrapped           in the form that has the change's metadata
//	all               all versions and deletes: what became of each item, in order
//	token=s session=s   keep the session token, or read no earlier state than that
//	charge            show the statuses and charges of the first partition's pages
//	one               ask for one page only, in one way only
func readFeed(s *script, d *directive) string {
	f := &feedReader{s: s, d: d, view: d.view(), all: d.flag("all"), wrapped: d.flag("wrapped"), one: d.flag("one"), max: d.option("max")}
	f.name = "feed " + d.database() + "/" + d.container() + " " + d.option("as") + " "
	f.path = append(containerPath(d.database(), d.container()), "docs")
	f.charge, f.header = d.flag("charge"), s.itemHeader(d)
	ordered := d.flag("ordered")
	var changes []feedChange
	var scopes []feedScope
	switch {
	case d.option("pk") != "":
		scopes = []feedScope{{pk: s.partitionKey(d, d.database(), d.container(), nil)}}
	case d.option("range") != "":
		scopes = []feedScope{{id: s.rangeID(d)}}
	default:
		scopes = f.ranges()
	}
	start := f.start()
	for _, scope := range scopes {
		told, refusal := f.read(scope, start)
		if refusal != "" {
			return refusal
		}
		changes = append(changes, told...)
	}
	if len(scopes) > 0 && scopes[0].pk == "" && d.option("range") == "" && !f.one {
		if refusal := f.readWhole(start, changes); refusal != "" {
			return refusal
		}
	}
	if !ordered {
		slices.SortStableFunc(changes, func(a, b feedChange) int { return strings.Compare(a.place, b.place) })
	}
	lines := f.pageCharges
	for _, c := range changes {
		lines = append(lines, c.line)
	}
	if len(changes) == 0 {
		lines = append(lines, "nothing new")
	}
	return strings.Join(lines, "\n")
}

// feedReader is one directive's reading.
type feedReader struct {
	s                         *script
	d                         *directive
	name                      string
	path                      []string
	header                    map[string]string
	view                      view
	all, wrapped, one, charge bool
	max                       string
	pageCharges               []string
}

// feedScope is the part of a container that is read.
type feedScope struct {
	id, pk         string
	min, max       string // of a physical partition
	minEPK, maxEPK string // of a part of it
	parents        []string
}

// feedStart is where a reader without a position begins.
type feedStart struct {
	anew          bool
	etag, instant string
}

// feedChange is a change in the feed, as the script shows it.
type feedChange struct {
	rid, place, line string
}

func (f *feedReader) start() feedStart {
	f.d.Helper()
	start := feedStart{}
	switch from := f.d.option("from"); from {
	case "":
	case "beginning":
		start.anew = true
	case "now":
		start.anew, start.etag = true, "*"
	default:
		f.d.fatalf("a feed does not begin from %q", from)
	}
	if since := f.d.option("since"); since != "" {
		t, err := time.Parse(time.RFC3339, since)
		if err != nil {
			start.instant = since
		} else {
			start.instant = t.UTC().Format(http.TimeFormat)
		}
		start.anew = true
	}
	if etag := f.s.given(f.d, "at"); etag != "" {
		start.anew, start.etag = true, etag
	}
	return start
}

// ranges returns the container's physical partitions.
func (f *feedReader) ranges() []feedScope {
	f.d.Helper()
	a := f.s.send(f.d, request{method: http.MethodGet, path: append(slices.Clone(f.path[:len(f.path)-1]), "pkranges")})
	var list struct {
		PartitionKeyRanges []struct {
			ID, MinInclusive, MaxExclusive string
			Parents                        []string
		}
	}
	if err := json.Unmarshal(a.body, &list); err != nil {
		f.d.fatalf("%s: %v", a.body, err)
	}
	var scopes []feedScope
	for _, r := range list.PartitionKeyRanges {
		scopes = append(scopes, feedScope{id: r.ID, min: r.MinInclusive, max: r.MaxExclusive, parents: r.Parents})
	}
	if len(scopes) == 0 { // no such container: the feed reports it
		scopes = []feedScope{{id: "0"}}
	}
	return scopes
}

// read reads the new changes of a scope, and keeps the position for the next read.
func (f *feedReader) read(scope feedScope, start feedStart) (changes []feedChange, refusal string) {
	f.d.Helper()
	place := f.name + scope.id + scope.pk
	for _, was := range append(slices.Clone(scope.parents), scope.id) { // it goes on where that was
		if at := f.s.kept[f.name+was+scope.pk]; at != "" && !start.anew {
			start = feedStart{etag: at}
		}
	}
	changes, next, refusal := f.pages(scope, start, f.max)
	f.charge = false
	if refusal != "" {
		return nil, refusal
	}
	if !f.one && start.etag != "*" {
		single, again, _ := f.pages(scope, start, "1")
		f.same("in pages of one", changes, single)
		if again != next {
			f.d.fatalf("the feed ends at %s, and in pages of one at %s", next, again)
		}
		if cut := f.cut(scope); cut != "" {
			low, high := scope, scope
			low.minEPK, low.maxEPK, high.minEPK, high.maxEPK = scope.min, cut, cut, scope.max
			lower, _, _ := f.pages(low, start, f.max)
			higher, _, _ := f.pages(high, start, f.max)
			f.same("in two ranges of effective partition keys", changes, append(lower, higher...))
		}
	}
	f.s.kept[place] = next
	return changes, ""
}

// cut returns an effective partition key in the middle of a physical partition.
func (f *feedReader) cut(scope feedScope) string {
	if scope.max == "" {
		return ""
	}
	upper := scope.max
	if upper == "FF" {
		upper = "40" // no hash begins with its two highest bits set
	}
	bound := func(text string) *big.Int {
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) > 16 {
			f.d.fatalf("%q is no effective partition key", text)
		}
		return new(big.Int).SetBytes(append(raw, make([]byte, 16-len(raw))...))
	}
	sum := new(big.Int).Add(bound(scope.min), bound(upper))
	return fmt.Sprintf("%032X", sum.Rsh(sum, 1))
}

// readWhole reads the whole container at once, and compares.
func (f *feedReader) readWhole(start feedStart, want []feedChange) (refusal string) {
	f.d.Helper()
	place := f.name + "whole"
	if !start.anew && f.s.kept[place] != "" {
		start = feedStart{etag: f.s.kept[place]}
	} else if start.etag != "" && start.etag != "*" {
		return "" // positions of single partitions cannot be compared with it
	}
	changes, next, refusal := f.pages(feedScope{}, start, f.max)
	if refusal != "" {
		return refusal
	}
	f.same("in the whole container", want, changes)
	f.s.kept[place] = next
	return ""
}

func (f *feedReader) same(how string, want, got []feedChange) {
	f.d.Helper()
	lines := func(changes []feedChange) string {
		sorted := slices.Clone(changes)
		slices.SortStableFunc(sorted, func(a, b feedChange) int { return strings.Compare(a.place, b.place) })
		var out strings.Builder
		for _, c := range sorted {
			out.WriteString(c.line + "\n")
		}
		return out.String()
	}
	if lines(got) != lines(want) {
		f.d.fatalf("the feed, read %s, has\n%swant\n%s", how, lines(got), lines(want))
	}
}

// pages reads all pages of a scope until nothing is new, and returns the last position.
func (f *feedReader) pages(scope feedScope, start feedStart, most string) (changes []feedChange, next, refusal string) {
	f.d.Helper()
	header := map[string]string{
		"A-Im": "Incremental feed", "X-Ms-Documentdb-Partitionkeyrangeid": scope.id, "X-Ms-Documentdb-Partitionkey": scope.pk,
		"X-Ms-Start-Epk": scope.minEPK, "X-Ms-End-Epk": scope.maxEPK, "X-Ms-Max-Item-Count": most,
		"If-None-Match": start.etag, "If-Modified-Since": start.instant, "X-Ms-Session-Token": f.header["X-Ms-Session-Token"],
	}
	if f.wrapped || f.all {
		header["X-Ms-Cosmos-Changefeed-Wire-Format-Version"] = "2021-09-15"
	}
	if f.all {
		header["A-Im"] = "Full-Fidelity Feed"
	}
	last := uint64(0)
	told := map[string]bool{}
	for range maxPages {
		a := f.s.send(f.d, request{method: http.MethodGet, path: f.path, header: header})
		etag := a.header.Get("Etag")
		if a.status >= http.StatusBadRequest {
			return nil, "", f.s.line(f.d, a, f.view)
		}
		if etag == "" || a.header.Get("X-Ms-Session-Token") == "" {
			f.d.fatalf("a page of the feed has etag %q and session token %q", etag, a.header.Get("X-Ms-Session-Token"))
		}
		f.s.keep(f.d, a)
		if f.charge {
			f.pageCharges = append(f.pageCharges, fmt.Sprintf("%d, %s RU", a.status, a.charge()))
		}
		if a.status == http.StatusNotModified {
			return changes, etag, ""
		}
		for _, raw := range f.s.page(f.d, a, "Documents") {
			c, lsn := f.change(raw)
			if scope.id == "" && scope.pk == "" { // several partitions count for themselves
				last = 0
			}
			if lsn < last || !f.all && told[c.rid] {
				f.d.fatalf("after lsn %d the feed has %s", last, raw)
			}
			last, told[c.rid] = lsn, true
			changes = append(changes, c)
		}
		header["If-None-Match"] = etag
		if f.one {
			return changes, etag, ""
		}
	}
	f.d.fatalf("the feed has no end after %d pages", maxPages)
	return nil, "", ""
}

// change parses a change, checks its metadata, and renders it.
func (f *feedReader) change(raw []byte) (c feedChange, lsn uint64) {
	f.d.Helper()
	if !f.wrapped && !f.all {
		text, _ := lookup(raw, "_lsn")
		lsn, err := strconv.ParseUint(string(text), 10, 64)
		rid, _ := lookup(raw, "_rid")
		if err != nil || lsn == 0 || rid == nil {
			f.d.fatalf("a change of lsn %q: %s", text, raw)
		}
		line := f.s.resource(raw, f.view)
		return feedChange{string(rid), line, line}, lsn
	}
	var x struct {
		Current, Previous json.RawMessage
		Metadata          struct {
			LSN, Crts, PreviousImageLSN uint64
			OperationType, ID           string
			PartitionKey                json.RawMessage
			TimeToLiveExpired           bool
		}
	}
	m := &x.Metadata
	if err := json.Unmarshal(raw, &x); err != nil || m.LSN == 0 || m.Crts == 0 || x.Current == nil {
		f.d.fatalf("not a change: %s", raw)
	}
	ts, _ := lookup(x.Current, "_ts")
	line := f.s.resource(x.Current, f.view)
	rid, _ := lookup(x.Current, "_rid")
	switch {
	case m.OperationType == "delete":
		if m.PreviousImageLSN == 0 || m.PreviousImageLSN > m.LSN || line != "{}" || x.Previous != nil {
			f.d.fatalf("not a delete: %s", raw)
		}
		line = quoted(m.ID) + " of " + string(m.PartitionKey)
		if m.TimeToLiveExpired {
			line += " expired"
		}
	case string(ts) != strconv.FormatUint(m.Crts, 10), (m.OperationType == "replace") != (m.PreviousImageLSN > 0), x.Previous != nil:
		f.d.fatalf("not a %q: %s", m.OperationType, raw)
	}
	if !f.all {
		return feedChange{string(rid), line, line}, m.LSN
	}
	id := m.ID
	if text, found := lookup(x.Current, "id"); found {
		id = unquoted(text)
	}
	return feedChange{string(rid), id, m.OperationType + " " + line}, m.LSN
}
