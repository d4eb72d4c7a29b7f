// SPDX-License-Identifier: MIT

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

// maxLineBytes bounds a line of events: an event with its id and partition key, or a
// cursor with a position in each partition.
const maxLineBytes = 1 << 20

// Run prints events as they come, a line each, and then the cursor to continue with.
func (s ttlEvents) Run(c *commands) error {
	q := s.query()
	if s.Cursor != "" {
		q.Set("cursor", s.Cursor)
	} else {
		q.Set("from", s.From)
	}
	timeout := ttlTimeout
	if s.Follow {
		q.Set("follow", "true")
		timeout = 0
	}
	res, err := c.TTL.send(http.MethodGet, "ttl/events", q, nil, timeout)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	out := &eventPrinter{w: os.Stdout, json: c.TTL.JSON}
	err = out.printAll(res.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%w%s", err, out.continueWith())
	case s.Follow:
		return fmt.Errorf("the server has ended the answer%s", out.continueWith())
	case !c.TTL.JSON:
		_, err = fmt.Fprintf(os.Stderr, "%s. To continue: --cursor=%s\n", out.summary(), out.cursor)
	}
	return err
}

// eventPrinter prints the lines of an answer with events.
type eventPrinter struct {
	w      io.Writer
	json   bool
	events int
	cursor string
	more   bool
}

func (p *eventPrinter) printAll(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		var l eventLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("cannot read the server's answer, it may be of another version; --json prints it unchanged: %w", err)
		}
		if err := p.print(&l, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("lost the connection: %w", err)
	}
	return nil
}

// print prints one line. A line with an error is returned as an error.
func (p *eventPrinter) print(l *eventLine, raw []byte) error {
	if p.json {
		if _, err := fmt.Fprintf(p.w, "%s\n", raw); err != nil {
			return err
		}
	}
	switch l.Type {
	case "cursor":
		p.cursor, p.more = l.Cursor, l.More
	case "error":
		return errors.New(l.Message)
	case "expired":
		p.events++
		if p.json {
			return nil
		}
		_, err := fmt.Fprintf(p.w, "%s  %s  %s\n", l.GoneAt, l.who(), l.why())
		return err
	}
	return nil
}

// who names the item.
func (l *eventLine) who() string {
	if l.ID == "" {
		return "(erased)"
	}
	return plain(l.ID) + "  " + plain(string(l.PartitionKey))
}

// why says by which TTL an item expired.
func (l *eventLine) why() string {
	by := "by its container's TTL"
	switch {
	case l.Source == engine.SourceNamed:
		by = "by the deadline that it named"
	case l.TTL != catalog.TTLAbsent:
		by = "by its own ttl of " + duration(time.Duration(l.TTL)*time.Second)
	}
	if l.ExpiredAt != l.GoneAt {
		by += ", due since " + l.ExpiredAt
	}
	return by
}

func (p *eventPrinter) summary() string {
	text := itemCount(int64(p.events)) + " expired"
	if p.more {
		text += ", and there are more"
	}
	return text
}

// continueWith says how to continue after an error.
func (p *eventPrinter) continueWith() string {
	if p.cursor == "" {
		return ""
	}
	return "; continue with --cursor=" + p.cursor
}

// eventLine is any line of the server's answer.
type eventLine struct {
	Type, Message string
	engine.Event
	engine.EventPage
}
