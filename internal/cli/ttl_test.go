// SPDX-License-Identifier: MIT

package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

func TestTextForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 1 << 62: "4.0 EiB"} {
		if got := byteCount(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0ms", 5 * time.Millisecond: "5ms", time.Second: "1s", 90 * time.Second: "1m 30s", time.Hour: "1h", time.Hour + time.Second: "1h",
		25 * time.Hour: "1d 1h", 48*time.Hour + 30*time.Minute: "2d", 3661 * time.Second: "1h 1m",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for seconds, want := range map[catalog.TTL]string{catalog.TTLAbsent: "off", -1: "never", 1: "1s", 2147483647: "24855d 3h"} {
		if got := ttlText(seconds); got != want {
			t.Errorf("the TTL %d is %q, want %q", seconds, got, want)
		}
	}
	for s, want := range map[string]string{"cart 1": "cart 1", "größe": "größe", "a\x1b[2Jb": `"a\x1b[2Jb"`, "a\nb": `"a\nb"`} {
		if got := plain(s); got != want {
			t.Errorf("%q is printed as %s, want %s", s, got, want)
		}
	}
	if got, want := plot([]float64{0, -1, 1, 4, 7}, 7), "▁ ▂▅█"; got != want {
		t.Errorf("the plot is %q, want %q", got, want)
	}
	if got, want := plot([]float64{0, 0}, 0), "▁▁"; got != want {
		t.Errorf("the plot of nothing is %q, want %q", got, want)
	}
	var b strings.Builder
	table(&b, "lr", [][]string{{"NAME", "N"}, {"ä", "100"}, {"longer", ""}})
	if got, want := b.String(), "NAME      N\nä       100\nlonger\n"; got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
	if got := fmt.Sprint(itemCount(1), ", ", itemCount(0)); got != "1 item, 0 items" {
		t.Errorf("items are counted as %q", got)
	}
}

func TestStatusOfExtensions(t *testing.T) {
	var b strings.Builder
	printStatus(&b, &engine.TTLReport{Containers: []engine.TTLStatus{{Container: "c", Database: "d", ExpireAtPath: "/end", SlidingTTLPercent: 20, UndeleteGraceSeconds: 86400}}})
	for _, want := range []string{"Deadlines at            /end\n", "Reads restart it        from 20 % of an item's life on\n", "Purge waits             1d\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got\n%s\nwant %q", b.String(), want)
		}
	}
}

// The lines of events that people read.
func TestEventLines(t *testing.T) {
	const lines = `{"type":"expired","id":"1","partitionKey":["ada"],"expiredAt":"x","goneAt":"x","ttl":60,"source":"item"}
{"type":"expired","id":"2","partitionKey":["ada"],"expiredAt":"w","goneAt":"x","ttl":null,"source":"container"}
{"type":"expired","id":"3","partitionKey":["ada"],"expiredAt":"x","goneAt":"x","ttl":null,"source":"expireAtPath"}
{"type":"expired","expiredAt":"x","goneAt":"x","ttl":null,"source":"container"}
{"type":"cursor","cursor":"c","more":false}
`
	const want = `x  1  ["ada"]  by its own ttl of 1m
x  2  ["ada"]  by its container's TTL, due since w
x  3  ["ada"]  by the deadline that it named
x  (erased)  by its container's TTL
`
	var b strings.Builder
	p := &eventPrinter{w: &b}
	if err := p.printAll(strings.NewReader(lines)); err != nil || b.String() != want {
		t.Errorf("got\n%swant\n%s%v", b.String(), want, err)
	}
	if got := p.summary(); got != "4 items expired" || p.cursor != "c" {
		t.Errorf("got %q and the cursor %q", got, p.cursor)
	}
}
