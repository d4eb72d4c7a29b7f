// SPDX-License-Identifier: MIT

// The lines that the operator's log has about requests: refused credentials, errors of the
// server, requests that took long, and commands that matter for security. All transports
// report here how their requests ended. A request without a line costs a few comparisons.
//
// A log outlives what Mayfly erases. So unless the operator asks for all requests, no line
// names an item: paths end before an item's id, and texts that quote the request are cut.

package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

// DefaultSlowRequest is how long a request takes that gets a line in the log.
const DefaultSlowRequest = time.Second

const (
	// Lines of one kind are limited to maxLinesAtOnce, and then one in lineEvery, so that no
	// client can fill the disk of the log. A line tells how many before it were left out.
	maxLinesAtOnce = 20
	lineEvery      = time.Second
)

// Journal writes lines about requests.
type Journal struct {
	// Logger gets the lines.
	Logger *slog.Logger
	// All has every request get a line, without a limit and with the ids of items.
	All bool
	// Slow is the duration from which a request gets a line; 0 for none.
	Slow time.Duration

	limits [lineKinds]LineLimit
}

// Origin tells where a call came from. It is asked only for calls that get a line.
type Origin interface {
	// CameFrom returns the call's activity id, and the address of its client.
	CameFrom() (activity, client string)
}

// lineKind is why a request gets a line.
type lineKind int

const (
	noLine lineKind = iota
	lineRequest
	lineUnauthenticated
	lineForbidden
	lineFailed
	lineSlow
	lineKinds
)

// lineTexts are the messages and levels of the kinds.
var lineTexts = [lineKinds]struct {
	text  string
	level slog.Level
}{
	lineRequest:         {"request", slog.LevelInfo},
	lineUnauthenticated: {"a request was refused: its credential is missing or wrong", slog.LevelWarn},
	lineForbidden:       {"a request was refused: it is not allowed", slog.LevelWarn},
	lineFailed:          {"a request failed", slog.LevelError},
	lineSlow:            {"a request took long", slog.LevelWarn},
}

// Ended records that a call was answered with a status, or that its client has gone, with 0.
func (j *Journal) Ended(c *Call, status int, took time.Duration) {
	if kind := j.kind(c, status, took); kind != noLine {
		j.write(c, kind, status, took)
	}
	if c.audited != "" || c.admitted && c.Row != nil && c.Row.Audited {
		j.audit(c, status)
	}
}

func (j *Journal) kind(c *Call, status int, took time.Duration) lineKind {
	switch {
	case c.cause != nil:
		return lineFailed
	case status < statusesOfErrors:
	case status >= 500:
		return lineFailed
	case status == 401:
		return lineUnauthenticated
	case status == 403:
		return lineForbidden
	}
	switch {
	case j.Slow > 0 && took >= j.Slow && c.Row != nil: // Mayfly's own pages may take long
		return lineSlow
	case j.All:
		return lineRequest
	}
	return noLine
}

func (j *Journal) write(c *Call, kind lineKind, status int, took time.Duration) {
	line := lineTexts[kind]
	if !j.Logger.Enabled(context.Background(), line.level) {
		return
	}
	omitted := 0
	if !j.All {
		var ok bool
		if omitted, ok = j.limits[kind].Take(time.Now()); !ok {
			return
		}
	}
	attrs := append(j.attrs(c, status), slog.Float64("ms", float64(took.Microseconds())/1e3))
	if c.failure.SubStatus != 0 {
		attrs = append(attrs, slog.Int("substatus", c.failure.SubStatus))
	}
	if c.cause != nil {
		attrs = append(attrs, slog.Any("err", c.cause))
	} else if text := j.text(&c.failure); text != "" {
		attrs = append(attrs, slog.String("text", value.Clip(text)))
	}
	if omitted > 0 {
		attrs = append(attrs, slog.Int("omitted", omitted))
	}
	j.Logger.LogAttrs(context.Background(), line.level, line.text, attrs...)
}

// audit writes a line about a command that matters for security. There is no limit: only
// who has a key can cause it.
func (j *Journal) audit(c *Call, status int) {
	attrs := append(j.attrs(c, status), slog.String("by", credentialNames[c.by]))
	if c.audited != "" {
		attrs = append(attrs, slog.String("what", value.Clip(c.audited)))
	} else if id := c.Request.ID; id != "" {
		attrs = append(attrs, slog.String("what", value.Clip(id)))
	}
	j.Logger.LogAttrs(context.Background(), slog.LevelInfo, "audit", attrs...)
}

// text returns what a line says about a failure. Errors of a client's own requests may quote
// an item, and a signature covers its id.
func (j *Journal) text(f *Failure) string {
	switch {
	case j.All || f.Status >= 500 || f.Status == 403:
		return f.Text
	case f.Status == 401:
		text, _, _ := strings.Cut(f.Text, signedPayload)
		return text
	}
	return ""
}

// hidden is in the place of what a line leaves out.
const hidden = "…"

// PathWithoutItem returns the path of a request without the id of an item. Names of
// databases and containers may be "docs" too: they are the second and the fourth segment.
func PathWithoutItem(path string) string {
	names := 0 // segments, without empty ones
	for at := 0; at < len(path); {
		segment, _, _ := strings.Cut(path[at:], "/")
		end := at + len(segment)
		if segment != "" {
			names++
		}
		if names != 2 && names != 4 && strings.EqualFold(segment, Items.Word()) && end+1 < len(path) {
			return path[:end+1] + hidden
		}
		at = end + 1
	}
	return path
}

// QueryWithoutItem returns the query of an address without the id and the partition key of an
// item.
func QueryWithoutItem(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		raw, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(raw); err != nil || name == "id" || name == "partitionKey" {
			parts[i] = raw + "=" + hidden
		}
	}
	return strings.Join(parts, "&")
}

// attrs are those of every line.
func (j *Journal) attrs(c *Call, status int) []slog.Attr {
	path := c.Path
	if !j.All {
		path = PathWithoutItem(path)
	}
	activity, client := c.Activity, ""
	if c.Origin != nil {
		activity, client = c.Origin.CameFrom()
	}
	attrs := append(make([]slog.Attr, 0, 12),
		slog.String("method", c.Method), slog.String("path", value.Clip(path)), slog.Int("status", status),
		slog.String("activity", activity), slog.String("client", client))
	if c.Row != nil {
		attrs = append(attrs, slog.String("operation", c.Row.Name))
	}
	return attrs
}

// credentialNames name the credentials in the log.
var credentialNames = map[Credential]string{
	ByKey: "key", ByReadOnlyKey: "read-only key", ByPrincipal: "principal", ByReadOnlyPrincipal: "read-only principal", ByToken: "resource token",
}

// Audit has the call get a line in the log that says what it did, with the credential of its
// client.
func (c *Call) Audit(by Credential, what string) { c.by, c.audited = by, cmp.Or(what, "-") }

// LineLimit limits how often a line is written.
type LineLimit struct {
	mu        sync.Mutex
	paidUntil time.Time // when the lines so far would have been written at the permitted rate
	omitted   int
}

// Take reports whether a line may be written now, and how many were omitted before it.
func (l *LineLimit) Take(now time.Time) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paidUntil.Before(now) {
		l.paidUntil = now
	}
	if l.paidUntil.Sub(now) >= maxLinesAtOnce*lineEvery {
		l.omitted++
		return 0, false
	}
	l.paidUntil = l.paidUntil.Add(lineEvery)
	omitted, l.omitted = l.omitted, 0
	return omitted, true
}
