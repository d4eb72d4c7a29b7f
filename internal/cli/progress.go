// SPDX-License-Identifier: MIT

// Progress of long work: a bar with rate and remaining time on a terminal, and a line now and
// then elsewhere.

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/transfer"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	barWidth  = 24
)

// shown is long work, as it is shown.
type shown interface {
	// line says how far it is after a time, with a bar if there is room for one.
	line(took time.Duration, bar bool) string
	// summary says what was done; empty if the command does.
	summary(took time.Duration) string
}

// showProgress shows how far some work is, until the returned function is called, which
// prints what was done at the end.
func showProgress(p shown) (end func()) {
	w, terminal := io.Writer(os.Stderr), isTerminal(os.Stderr)
	began := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	every := lineEvery
	if terminal {
		every = barEvery
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if terminal {
				fmt.Fprintf(w, "\r\x1b[K%s", p.line(time.Since(began), true))
			} else {
				fmt.Fprintln(w, p.line(time.Since(began), false))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		if terminal {
			fmt.Fprint(w, "\r\x1b[K")
		}
		if text := p.summary(time.Since(began)); text != "" {
			fmt.Fprintln(w, text)
		}
	}
}

// appendBar says which part of something is done, how fast, and how long the rest will take.
// amount says what a number of it is.
func appendBar(b *strings.Builder, done, all, before int64, took time.Duration, bar bool, what string, amount func(int64) string) {
	rate := float64(done-before) / max(took.Seconds(), 0.001)
	share := min(float64(done)/float64(all), 1)
	if bar {
		full := int(share * barWidth)
		fmt.Fprintf(b, "[%s%s] ", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full))
	}
	fmt.Fprintf(b, "%3.0f%%  %s, %s/s", share*100, what, amount(int64(rate)))
	if rate > 0 && done < all {
		fmt.Fprintf(b, ", %v left", (time.Duration(float64(all-done) / rate * float64(time.Second))).Round(time.Second))
	}
}

// moving is a transfer that is shown. verb says what it does with items.
type moving struct {
	*transfer.Progress
	verb string
}

func (p moving) line(took time.Duration, bar bool) string {
	done, all := p.Done.Load(), p.All.Load()
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", plain(p.What()))
	items := fmt.Sprintf("%s items", grouped(p.Items.Load()))
	switch {
	case p.Followed.Load():
		fmt.Fprintf(&b, "in step, %s", items)
		if n := p.Deleted.Load(); n > 0 {
			fmt.Fprintf(&b, ", %s deletes", grouped(n))
		}
		b.WriteString(" so far; Ctrl-C stops")
	case all > 0 && p.Bytes.Load():
		appendBar(&b, done, all, p.Before.Load(), took, bar, fmt.Sprintf("%s, %s of %s", items, byteCount(done), byteCount(all)), byteCount)
	case all > 0:
		appendBar(&b, done, all, p.Before.Load(), took, bar, fmt.Sprintf("%s of %s items", grouped(done), grouped(all)), grouped)
	default:
		fmt.Fprintf(&b, "%s %s, %s/s", p.verb, items, grouped(int64(float64(p.Items.Load())/max(took.Seconds(), 0.001))))
	}
	if n := p.Rejected.Load(); n > 0 {
		fmt.Fprintf(&b, ", %s rejected", grouped(n))
	}
	return b.String()
}

func (p moving) summary(took time.Duration) string {
	items := p.Items.Load()
	text := fmt.Sprintf("%s %s items in %v, %s a second", p.verb, grouped(items), took.Round(time.Millisecond), grouped(int64(float64(items)/max(took.Seconds(), 0.001))))
	for _, more := range []struct {
		n    int64
		what string
	}{{p.Deleted.Load(), "deletes followed"}, {p.Expired.Load(), "had expired and were left out"}, {p.Rejected.Load(), "were rejected"}} {
		if more.n > 0 {
			text += fmt.Sprintf("; %s %s", grouped(more.n), more.what)
		}
	}
	return text
}

// work is something long that has steps, each of a number of bytes, items or rows.
type work struct {
	mu        sync.Mutex
	step      string
	unit      string // empty for bytes
	done, all int64  // all is 0 if it is not known
	began     time.Time
}

// begin begins a step.
func (w *work) begin(step, unit string, all int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step, w.unit, w.done, w.all, w.began = step, unit, 0, all, time.Now()
}

// reach says how much of the step is done.
func (w *work) reach(done int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = done
}

func (w *work) line(_ time.Duration, bar bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	amount := byteCount
	of := func(n int64) string { return byteCount(n) }
	if w.unit != "" {
		amount = grouped
		of = func(n int64) string { return grouped(n) + " " + w.unit }
	}
	var b strings.Builder
	b.WriteString(plain(w.step))
	switch {
	case w.all > 0:
		b.WriteByte(' ')
		appendBar(&b, w.done, w.all, 0, time.Since(w.began), bar, fmt.Sprintf("%s of %s", amount(w.done), of(w.all)), amount)
	case w.done > 0:
		fmt.Fprintf(&b, " %s", of(w.done))
	}
	return b.String()
}

func (w *work) summary(time.Duration) string { return "" }

// counted returns a reader that counts what is read as done.
func (w *work) counted(r io.Reader) io.Reader { return &countedReader{r, w} }

type countedReader struct {
	from io.Reader
	work *work
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.work.mu.Lock()
	r.work.done += int64(n)
	r.work.mu.Unlock()
	return n, err
}

// grouped returns a number with a comma for each thousand.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
