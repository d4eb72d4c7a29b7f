// SPDX-License-Identifier: MIT

// Prints the last hour of a container, a line for each figure.

package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
)

// plotColumn is the time that one column of a plot stands for.
const plotColumn = time.Minute

// figure is a figure of a history: how it is read from a point, and printed.
type figure struct {
	name  string
	of    func(*engine.HistoryPoint) float64
	print func(float64) string
}

var figures = []figure{
	{"live", func(p *engine.HistoryPoint) float64 { return float64(p.Live.Items) }, wholeText},
	{"  size", func(p *engine.HistoryPoint) float64 { return float64(p.Live.Bytes) }, bytesText},
	{"expired", func(p *engine.HistoryPoint) float64 { return float64(p.Expired.Items) }, wholeText},
	{"  size", func(p *engine.HistoryPoint) float64 { return float64(p.Expired.Bytes) }, bytesText},
	{"lag", func(p *engine.HistoryPoint) float64 { return p.LagSeconds }, lag},
	{"purged/s", func(p *engine.HistoryPoint) float64 { return p.ItemsPerSecond }, wholeText},
	{"debt", func(p *engine.HistoryPoint) float64 { return float64(p.DebtBytes) }, bytesText},
}

func wholeText(f float64) string { return fmt.Sprintf("%.0f", f) }

func bytesText(f float64) string { return byteCount(int64(f)) }

func printHistory(w io.Writer, a *engine.History) {
	if len(a.Points) == 0 {
		fmt.Fprintln(w, "Nothing is known yet.")
		return
	}
	firstMs := a.Points[0].AtMs
	rows := [][]string{{"", "NOW", "LEAST", "MOST", "SINCE " + a.Points[0].At}}
	for _, f := range figures {
		least, most := math.Inf(1), 0.0
		columns := make([]float64, (a.NowMs-firstMs)/plotColumn.Milliseconds()+1)
		for i := range columns {
			columns[i] = -1
		}
		for i := range a.Points {
			v, at := f.of(&a.Points[i]), (a.Points[i].AtMs-firstMs)/plotColumn.Milliseconds()
			least, most, columns[at] = min(least, v), max(most, v), max(columns[at], v)
		}
		now := f.of(&a.Points[len(a.Points)-1])
		rows = append(rows, []string{f.name, f.print(now), f.print(least), f.print(most), plot(columns, most)})
	}
	fmt.Fprintf(w, "%s of %s, a column for each minute, the most in it:\n\n", plain(a.Container), plain(a.Database))
	table(w, "lrrrl", rows)
	if !a.Kept {
		fmt.Fprintln(w, "\nThere are more containers than memory for their histories: only the present of this one is known.")
	}
}

// plot draws values up to the most, below zero for none.
func plot(values []float64, most float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for _, v := range values {
		switch {
		case v < 0:
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune([]rune(bars)[0])
		default:
			b.WriteRune([]rune(bars)[int(math.Round(v/most*7))])
		}
	}
	return b.String()
}
