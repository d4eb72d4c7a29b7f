// SPDX-License-Identifier: MIT

// Progress of long work: a bar with rate and remaining time on a terminal, and a line now and
// then elsewhere.

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/transfer"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	barWidth  = 24
)

// showProgress shows how far a transfer is, until the returned function is called, which
// prints what was done at the end.
func showProgress(p *transfer.Progress, verb string) (end func()) {
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
				fmt.Fprintf(w, "\r\x1b[K%s", progressLine(p, verb, time.Since(began), true))
			} else {
				fmt.Fprintln(w, progressLine(p, verb, time.Since(began), false))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		if terminal {
			fmt.Fprint(w, "\r\x1b[K")
		}
		fmt.Fprintln(w, summary(p, verb, time.Since(began)))
	}
}

// progressLine says how far a transfer is after a time.
func progressLine(p *transfer.Progress, verb string, took time.Duration, bar bool) string {
	done, all := p.Done.Load(), p.All.Load()
	rate := float64(done-p.Before.Load()) / max(took.Seconds(), 0.001)
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
	case all > 0:
		share := min(float64(done)/float64(all), 1)
		if bar {
			full := int(share * barWidth)
			fmt.Fprintf(&b, "[%s%s] ", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full))
		}
		if p.Bytes.Load() {
			fmt.Fprintf(&b, "%3.0f%%  %s, %s of %s, %s/s", share*100, items, byteCount(done), byteCount(all), byteCount(int64(rate)))
		} else {
			fmt.Fprintf(&b, "%3.0f%%  %s of %s items, %s/s", share*100, grouped(done), grouped(all), grouped(int64(rate)))
		}
		if rate > 0 && done < all {
			fmt.Fprintf(&b, ", %v left", (time.Duration(float64(all-done) / rate * float64(time.Second))).Round(time.Second))
		}
	default:
		fmt.Fprintf(&b, "%s %s, %s/s", verb, items, grouped(int64(float64(p.Items.Load())/max(took.Seconds(), 0.001))))
	}
	if n := p.Rejected.Load(); n > 0 {
		fmt.Fprintf(&b, ", %s rejected", grouped(n))
	}
	return b.String()
}

// summary says what a transfer did.
func summary(p *transfer.Progress, verb string, took time.Duration) string {
	items := p.Items.Load()
	text := fmt.Sprintf("%s %s items in %v, %s a second", verb, grouped(items), took.Round(time.Millisecond), grouped(int64(float64(items)/max(took.Seconds(), 0.001))))
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

// grouped returns a number with a comma for each thousand.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
