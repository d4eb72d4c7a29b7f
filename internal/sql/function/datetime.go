// SPDX-License-Identifier: MIT

// Points in time: strings in a form of ISO 8601, always UTC, and how functions
// compute with them.
//
// Inside, a point in time is a number of ticks of 100 ns since 1970, negative
// before. Every point from year 1 to year 9999 has one, and every sum of two fits
// an int64.

package function

import (
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// Units of time in ticks.
const (
	tick        int64 = 1
	microsecond       = 10 * tick
	millisecond       = 1000 * microsecond
	second            = 1000 * millisecond
	minute            = 60 * second
	hour              = 60 * minute
	day               = 24 * hour

	nanosecondsPerTick = 100
)

// The first and last points that can be written, and the first that may begin a
// bin: Windows time begins there, and the service's documentation names it.
const (
	minTicks int64 = -62135596800 * second
	maxTicks int64 = 253402300800*second - tick
	year1601 int64 = -11644473600 * second
)

// inRange reports whether a point can be written with a year of four digits.
func inRange(ticks int64) bool { return minTicks <= ticks && ticks <= maxTicks }

// digitsAt reads n decimal digits at s[i:].
func digitsAt(s string, i, n int) (number int, ok bool) {
	if len(s) < i+n {
		return 0, false
	}
	for _, c := range []byte(s[i : i+n]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = number*10 + int(c-'0')
	}
	return number, true
}

// parseDateTime reads YYYY-MM-DD, then perhaps a T or a space and hh:mm:ss, then
// perhaps a point and one to seven digits, then perhaps a Z.
func parseDateTime(s string) (ticks int64, ok bool) {
	s = strings.TrimSuffix(s, "Z")
	year, okYear := digitsAt(s, 0, 4)
	month, okMonth := digitsAt(s, 5, 2)
	dayOfMonth, okDay := digitsAt(s, 8, 2)
	if !okYear || !okMonth || !okDay || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	ofDay, ok := parseTime(s[10:])
	if !ok {
		return 0, false
	}
	date, ok := dateTicks(year, month, dayOfMonth)
	return date + ofDay, ok
}

// parseTime reads what follows the date.
func parseTime(s string) (ticks int64, ok bool) {
	if s == "" {
		return 0, true
	}
	h, okHour := digitsAt(s, 1, 2)
	m, okMinute := digitsAt(s, 4, 2)
	sec, okSecond := digitsAt(s, 7, 2)
	if !okHour || !okMinute || !okSecond || s[0] != 'T' && s[0] != ' ' || s[3] != ':' || s[6] != ':' {
		return 0, false
	}
	if h > 23 || m > 59 || sec > 59 {
		return 0, false
	}
	ticks = int64(h)*hour + int64(m)*minute + int64(sec)*second
	if len(s) == len("Thh:mm:ss") {
		return ticks, true
	}
	fraction := s[len("Thh:mm:ss"):]
	if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 8 {
		return 0, false
	}
	n, ok := digitsAt(fraction, 1, len(fraction)-1)
	for range 8 - len(fraction) {
		n *= 10
	}
	return ticks + int64(n), ok
}

// dateTicks returns midnight of a day of the calendar.
func dateTicks(year, month, dayOfMonth int) (ticks int64, ok bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || dayOfMonth < 1 || dayOfMonth > daysIn(year, month) {
		return 0, false
	}
	return time.Date(year, time.Month(month), dayOfMonth, 0, 0, 0, 0, time.UTC).Unix() * second, true
}

// daysIn returns how many days a month has, leap years included.
func daysIn(year, month int) int {
	// The day before the first of the next month.
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// civil is a point in time taken apart.
type civil struct {
	year, month, day     int
	hour, minute, second int
	fraction             int // of a second, in ticks
	weekday              time.Weekday
}

// civilOf takes a point apart in UTC. Package time does the calendar, in seconds: it has no
// ticks.
func civilOf(ticks int64) civil {
	t := time.Unix(floorDiv(ticks, second), 0).UTC()
	year, month, dayOfMonth := t.Date()
	h, m, s := t.Clock()
	return civil{year, int(month), dayOfMonth, h, m, s, int(floorMod(ticks, second)), t.Weekday()}
}

// appendDigits appends n with leading zeros.
func appendDigits(dst []byte, n, width int) []byte {
	at := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := at + width - 1; i >= at; i-- {
		dst[i] += byte(n % 10)
		n /= 10
	}
	return dst
}

// formatDateTime writes a point in time as all functions do, with seven digits of
// a second. Undefined is what the calendar does not reach.
func formatDateTime(ticks int64) datum.Value {
	if !inRange(ticks) {
		return datum.Undefined()
	}
	c := civilOf(ticks)
	dst := make([]byte, 0, len("YYYY-MM-DDThh:mm:ss.fffffffZ"))
	dst = append(appendDigits(dst, c.year, 4), '-')
	dst = append(appendDigits(dst, c.month, 2), '-')
	dst = append(appendDigits(dst, c.day, 2), 'T')
	dst = append(appendDigits(dst, c.hour, 2), ':')
	dst = append(appendDigits(dst, c.minute, 2), ':')
	dst = append(appendDigits(dst, c.second, 2), '.')
	return datum.Str(string(append(appendDigits(dst, c.fraction, 7), 'Z')))
}

// floorDiv and floorMod round towards minus infinity, so that time before 1970
// falls into the same bins as time after.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// datePart is a unit of the calendar or the clock.
type datePart uint8

const (
	noPart datePart = iota
	partYear
	partMonth
	partDay
	partHour
	partMinute
	partSecond
	partMillisecond
	partMicrosecond
	partNanosecond
)

// dateParts has the names of each part, how long it is, or 0 if that varies or is less than
// a tick, and what a clock shows of it; the parts of a second all count from the full second.
var dateParts = [...]struct {
	names string
	ticks int64
	shown func(c civil) int
}{
	partYear:        {"year yyyy yy", 0, func(c civil) int { return c.year }},
	partMonth:       {"month mm m", 0, func(c civil) int { return c.month }},
	partDay:         {"day dd d", day, func(c civil) int { return c.day }},
	partHour:        {"hour hh", hour, func(c civil) int { return c.hour }},
	partMinute:      {"minute mi n", minute, func(c civil) int { return c.minute }},
	partSecond:      {"second ss s", second, func(c civil) int { return c.second }},
	partMillisecond: {"millisecond ms", millisecond, func(c civil) int { return c.fraction / int(millisecond) }},
	partMicrosecond: {"microsecond mcs", microsecond, func(c civil) int { return c.fraction / int(microsecond) }},
	partNanosecond:  {"nanosecond ns", 0, func(c civil) int { return c.fraction * nanosecondsPerTick }},
}

// partsByName is never written to after it has been made.
var partsByName = func() map[string]datePart {
	index := map[string]datePart{}
	for part := range dateParts {
		for _, name := range strings.Fields(dateParts[part].names) {
			index[name] = datePart(part)
		}
	}
	return index
}()

// datePartOf reads the name of a part; case does not matter.
func datePartOf(v datum.Value) datePart { return partsByName[strings.ToLower(v.Text())] }

// ticks is how long the part is, or 0 if that varies or is less than a tick.
func (p datePart) ticks() int64 { return dateParts[p].ticks }

const (
	monthsPerYear = 12
	maxMonths     = 9999 * monthsPerYear // that lie between two points
)

// addMonths moves a point by whole months. A day that the month does not have
// becomes its last.
func addMonths(ticks, months int64) (int64, bool) {
	if months < -maxMonths || months > maxMonths {
		return 0, false
	}
	c := civilOf(ticks)
	index := int64(c.year)*monthsPerYear + int64(c.month-1) + months
	year, month := int(floorDiv(index, monthsPerYear)), int(floorMod(index, monthsPerYear))+1
	if year < 1 || year > 9999 {
		return 0, false
	}
	date, ok := dateTicks(year, month, min(c.day, daysIn(year, month)))
	return date + floorMod(ticks, day), ok
}

// addPart moves a point by n parts.
func addPart(ticks int64, part datePart, n int64) (int64, bool) {
	switch part {
	case partYear: // so many years as there are months at most are too many, and fit an int64
		return addMonths(ticks, max(min(n, maxMonths), -maxMonths)*monthsPerYear)
	case partMonth:
		return addMonths(ticks, n)
	case partNanosecond:
		n /= nanosecondsPerTick
	default:
		unit := part.ticks()
		if n > (maxTicks-minTicks)/unit || n < -(maxTicks-minTicks)/unit {
			return 0, false
		}
		n *= unit
	}
	if n > maxTicks-minTicks || n < minTicks-maxTicks {
		return 0, false
	}
	ticks += n
	return ticks, inRange(ticks)
}
