// SPDX-License-Identifier: MIT

// Prints the answers of the ttl pages for people.

package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
)

// printStatuses prints a line for each container.
func printStatuses(w io.Writer, a *engine.TTLReport) {
	if len(a.Containers) == 0 {
		fmt.Fprintln(w, "There are no containers.")
		return
	}
	rows := [][]string{{"DATABASE", "CONTAINER", "TTL", "LIVE", "SIZE", "EXPIRED", "SIZE", "LAG", "PURGE"}}
	for i := range a.Containers {
		c := &a.Containers[i]
		rows = append(rows, []string{
			plain(c.Database), plain(c.Container), ttlText(c.DefaultTTL), fmt.Sprint(c.Live.Items), byteCount(c.Live.Bytes),
			fmt.Sprint(c.Expired.Items), byteCount(c.Expired.Bytes), lag(c.Purge.LagSeconds), purgeText(c),
		})
	}
	table(w, "llrrrrrrl", rows)
	printErasure(w, &a.Erasure)
	printClock(w, a)
}

func printClock(w io.Writer, a *engine.TTLReport) {
	if !a.Clock.Trusted {
		fmt.Fprintf(w, "\nSome expired items are not purged: %s\nSee: mayfly clock\n", a.Clock.Reason)
	}
}

// printErasure prints what is left on disk of deleted data.
func printErasure(w io.Writer, a *engine.ErasureStatus) {
	if a.WithinSeconds == nil && len(a.Containers) == 0 {
		fmt.Fprintln(w, "\nDeleted data stays on disk until the storage engine rewrites it: erasure is off.")
		return
	}
	time := "no time is set for other containers than those that set one"
	if a.WithinSeconds != nil {
		time = "has to be erased within " + lag(*a.WithinSeconds)
	}
	switch {
	case a.LagSeconds == 0:
		fmt.Fprintf(w, "\nNothing is left on disk of deleted data (%s).\n", time)
	default:
		fmt.Fprintf(w, "\nDeleted data is left on disk, the oldest for %s (%s): %d tables of %s to rewrite.\n", lag(a.LagSeconds), time, a.LeftTables, byteCount(int64(a.LeftBytes)))
	}
	if a.OverdueSeconds > 0 {
		fmt.Fprintf(w, "It is overdue by %s.\n", lag(a.OverdueSeconds))
	}
	if a.Failure != "" {
		fmt.Fprintf(w, "It cannot be erased now: %s\n", a.Failure)
	}
}

// purgeText returns the state of purge in a few words.
func purgeText(c *engine.TTLStatus) string {
	switch {
	case c.Purge.Paused:
		return "paused"
	case c.Purge.HeldBack != "":
		return "held back by " + string(c.Purge.HeldBack)
	case c.Purge.ItemsPerSecond > 0:
		return fmt.Sprintf("%.0f items/s", c.Purge.ItemsPerSecond)
	case c.DefaultTTL == catalog.TTLAbsent && !c.TTLFinality:
		return "off"
	}
	return "idle"
}

// debtText returns what writes pay for purge.
func debtText(c *engine.TTLStatus) string {
	d := &c.Purge.Debt
	text := "none"
	if d.Bytes > 0 {
		text = fmt.Sprintf("%s above %s", byteCount(d.Bytes), byteCount(d.Limit))
	}
	if d.ItemsPerWrite > 0 {
		text += fmt.Sprintf(", each write carries %.2g expired items", d.ItemsPerWrite)
	}
	if d.PaidItems > 0 {
		text += fmt.Sprintf(", %d carried since the start", d.PaidItems)
	}
	return text
}

// printStatus prints all figures of one container.
func printStatus(w io.Writer, a *engine.TTLReport) {
	for i := range a.Containers {
		c := &a.Containers[i]
		limit := "none"
		if c.Purge.Limit != 0 {
			limit = fmt.Sprintf("%g items/s", c.Purge.Limit)
		}
		of := ""
		if c.Throughput.Shared {
			of = " of the database"
		}
		rows := [][]string{
			{"Container", plain(c.Container) + " of " + plain(c.Database)},
			{"Default TTL", ttlText(c.DefaultTTL)},
		}
		rows = append(rows, extensionRows(c)...)
		table(w, "ll", append(rows, [][]string{
			{"Live", amountText(c.Live)},
			{"Expired, not purged", amountText(c.Expired)},
			{"Purge", purgeText(c)},
			{"Lag", lag(c.Purge.LagSeconds)},
			{"Limit", limit},
			{"Debt", debtText(c)},
			{"Purged since the start", fmt.Sprintf("%s, for %.0f RU", amountText(store.Amount{Items: c.Purge.PurgedItems, Bytes: c.Purge.PurgedBytes}), c.Purge.Units)},
			{"Throughput" + of, fmt.Sprintf("%.0f RU/s (%s): %.0f used, %.0f left over", c.Throughput.Provisioned, c.Throughput.Mode, c.Throughput.Used, c.Throughput.Leftover)},
		}...))
		rows = [][]string{{"PARTITION", "LIVE", "SIZE", "EXPIRED", "SIZE", "LAG"}}
		for _, p := range c.Partitions {
			rows = append(rows, []string{
				p.ID, fmt.Sprint(p.Live.Items), byteCount(p.Live.Bytes),
				fmt.Sprint(p.Expired.Items), byteCount(p.Expired.Bytes), lag(p.LagSeconds),
			})
		}
		fmt.Fprintln(w)
		table(w, "lrrrrr", rows)
	}
	printClock(w, a)
}

func printWhatIf(w io.Writer, a *engine.WhatIf) {
	last := "never"
	if a.LastExpiresAt != nil {
		last = *a.LastExpiresAt
	}
	fmt.Fprintf(w, "If the default TTL of %s of %s were %s (it is %s):\n\n", plain(a.Container), plain(a.Database), ttlText(a.DefaultTTL), ttlText(a.CurrentDefaultTTL))
	table(w, "lrr", [][]string{
		{"", "ITEMS", "SIZE"},
		amountRow("live now", a.Live),
		amountRow("would be gone at once", a.Expires),
		amountRow("would come back", a.Returns),
		amountRow("would be live", a.Remains),
		amountRow("of these never expire", a.Never),
	})
	fmt.Fprintf(w, "\nThe last would expire: %s\n", last)
}

func printForecast(w io.Writer, a *engine.Forecast) {
	rows := [][]string{{"UNTIL", "ITEMS", "SIZE"}}
	for _, i := range a.Intervals {
		rows = append(rows, []string{i.Until, fmt.Sprint(i.Items), byteCount(i.Bytes)})
	}
	table(w, "lrr", append(rows, amountRow("later", a.Later), amountRow("never", a.Never)))
}

func printExplanation(w io.Writer, a *engine.Explanation) {
	expires, label := "never", "Expires"
	if a.Expired {
		label = "Expired"
	}
	switch {
	case a.Expired && a.ExpiresAt == nil:
		expires = "gone"
	case a.ExpiresAt != nil:
		left := time.Duration(*a.ExpiresAtMs-a.NowMs) * time.Millisecond
		expires = *a.ExpiresAt + ", in " + duration(left)
		if a.Expired {
			expires = *a.ExpiresAt + ", " + duration(-left) + " ago"
		}
	}
	own := "none"
	if a.TTL != catalog.TTLAbsent {
		own = ttlText(a.TTL)
	}
	rows := [][]string{
		{"Item", plain(a.ID) + " with the partition key " + plain(string(a.PartitionKey))},
		{"Last written", a.WrittenAt},
		{"Its own ttl", own},
		{"Default TTL", ttlText(a.DefaultTTL)},
		{label, expires},
	}
	if a.TouchedAt != nil {
		rows = slices.Insert(rows, 2, []string{"Last touched", *a.TouchedAt})
	}
	table(w, "ll", rows)
	fmt.Fprintf(w, "\n%s\n", a.Reason)
}

// extensionRows describes the settings of TTL that a container has beside its default.
func extensionRows(c *engine.TTLStatus) (rows [][]string) {
	if c.ExpireAtPath != "" {
		rows = append(rows, []string{"Deadlines at", plain(c.ExpireAtPath)})
	}
	if c.SlidingTTLPercent != 0 {
		rows = append(rows, []string{"Reads restart it", fmt.Sprintf("from %d %% of an item's life on", c.SlidingTTLPercent)})
	}
	if c.UndeleteGraceSeconds != 0 {
		rows = append(rows, []string{"Purge waits", duration(time.Duration(c.UndeleteGraceSeconds) * time.Second)})
	}
	return rows
}

func printUndeletable(w io.Writer, a *engine.Undeletable) {
	if len(a.Items) == 0 {
		fmt.Fprintln(w, "There is no expired item that can come back.")
		return
	}
	rows := [][]string{{"ID", "PARTITION KEY", "EXPIRED", "PURGED FROM"}}
	for _, i := range a.Items {
		rows = append(rows, []string{plain(i.ID), plain(string(i.PartitionKey)), i.ExpiredAt, i.PurgedFrom})
	}
	table(w, "llll", rows)
	if a.More {
		fmt.Fprintln(w, "\nThere are more: --count")
	}
}

// plain returns a text unchanged, or quoted if it has control characters that a terminal
// would obey: clients choose names and ids.
func plain(s string) string {
	for _, c := range s {
		if !strconv.IsPrint(c) {
			return strconv.Quote(s)
		}
	}
	return s
}

func amountRow(what string, a store.Amount) []string {
	return []string{what, fmt.Sprint(a.Items), byteCount(a.Bytes)}
}

func amountText(a store.Amount) string { return itemCount(a.Items) + ", " + byteCount(a.Bytes) }

func itemCount(n int64) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}

// byteCount returns a number of bytes with a unit.
func byteCount(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < len(units)-1 {
		f /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[unit])
}

// ttlText returns a TTL in words.
func ttlText(ttl catalog.TTL) string {
	switch ttl {
	case catalog.TTLAbsent:
		return "off"
	case catalog.TTLForever:
		return "never"
	}
	return duration(time.Duration(ttl) * time.Second)
}

func lag(seconds float64) string {
	if seconds == 0 {
		return "none"
	}
	return duration(time.Duration(math.Round(seconds*1000)) * time.Millisecond)
}

// duration returns a time in its two largest units.
func duration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	s := int64(d / time.Second)
	var parts []string
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := s / unit.seconds; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, unit.name))
			s %= unit.seconds
		} else if len(parts) > 0 {
			break // only two adjacent units are shown
		}
	}
	return strings.Join(parts[:min(2, len(parts))], " ")
}

// table writes rows in columns. align has a letter for each column: l aligns it to the
// left, r to the right.
func table(w io.Writer, align string, rows [][]string) {
	width := make([]int, len(align))
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if align[i] == 'r' {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
