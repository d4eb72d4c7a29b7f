// SPDX-License-Identifier: MIT

// The functions of date and time. A string that is no point in time, and a part that is not
// known, make them undefined.

package function

import (
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func dateFunctions() []Function {
	return []Function{
		{Name: "AGO", Args: "si", Eval: ago, NonDeterministic: true},
		{Name: "DATETIMEADD", Args: "sis", Eval: dateTimeAdd},
		{Name: "DATETIMEBIN", Args: "ss|is", Eval: dateTimeBin},
		{Name: "DATETIMEDIFF", Args: "sss", Eval: dateTimeDiff},
		{Name: "DATETIMEFORMAT", Args: "ss", Eval: dateTimeFormat},
		{Name: "DATETIMEFROMPARTS", Args: "iii|iiii", Eval: dateTimeFromParts},
		{Name: "DATETIMEPART", Args: "ss", Eval: dateTimePart},
		{Name: "DATETIMETOTICKS", Args: "s", Eval: ofPoint(datum.Int)},
		{Name: "DATETIMETOTIMESTAMP", Args: "s", Eval: ofPoint(toTimestamp)},
		{Name: "DAY", Args: "s", Eval: ofPoint(func(ticks int64) datum.Value { return partOfPoint(ticks, partDay) })},
		{Name: "GETCURRENTDATETIME", Eval: currentDateTime, NonDeterministic: true},
		{Name: "GETCURRENTDATETIMESTATIC", Eval: currentDateTime, NonDeterministic: true},
		{Name: "GETCURRENTTICKS", Eval: currentTicks, NonDeterministic: true},
		{Name: "GETCURRENTTICKSSTATIC", Eval: currentTicks, NonDeterministic: true},
		{Name: "GETCURRENTTIMESTAMP", Eval: currentTimestamp, NonDeterministic: true},
		{Name: "GETCURRENTTIMESTAMPSTATIC", Eval: currentTimestamp, NonDeterministic: true},
		{Name: "MONTH", Args: "s", Eval: ofPoint(func(ticks int64) datum.Value { return partOfPoint(ticks, partMonth) })},
		{Name: "NOW", Args: "|si", Eval: now, NonDeterministic: true},
		{Name: "TICKSTODATETIME", Args: "i", Eval: ticksToDateTime},
		{Name: "TIMESTAMPTODATETIME", Args: "i", Eval: timestampToDateTime},
		{Name: "YEAR", Args: "s", Eval: ofPoint(func(ticks int64) datum.Value { return partOfPoint(ticks, partYear) })},
	}
}

// nowTicks is the moment of the execution: the same for every call and every item, so that
// a filter by time treats all items alike.
func (cx *Context) nowTicks() int64 { return cx.NowMs * millisecond }

func currentDateTime(cx *Context, _ []datum.Value) datum.Value { return formatDateTime(cx.nowTicks()) }

func currentTicks(cx *Context, _ []datum.Value) datum.Value { return datum.Int(cx.nowTicks()) }

func currentTimestamp(cx *Context, _ []datum.Value) datum.Value { return datum.Int(cx.NowMs) }

// now returns the current time, or one that many parts later.
func now(cx *Context, args []datum.Value) datum.Value {
	switch len(args) {
	case 0:
		return currentDateTime(cx, nil)
	case 1:
		return datum.Undefined()
	}
	return moved(cx.nowTicks(), args[0], integer(args[1]), true)
}

// ago returns the time that many parts before the current one.
func ago(cx *Context, args []datum.Value) datum.Value {
	n := integer(args[1])
	return moved(cx.nowTicks(), args[0], -n, n != math.MinInt64)
}

// moved writes a point moved by n parts if all of it is valid.
func moved(ticks int64, part datum.Value, n int64, ok bool) datum.Value {
	p := datePartOf(part)
	if !ok || p == noPart {
		return datum.Undefined()
	}
	if ticks, ok = addPart(ticks, p, n); !ok {
		return datum.Undefined()
	}
	return formatDateTime(ticks)
}

// pointOf reads an argument that is a point in time.
func pointOf(v datum.Value) (ticks int64, ok bool) {
	s, ok := v.AsString()
	if !ok {
		return 0, false
	}
	return parseDateTime(s)
}

// dateTimeAdd moves a point by a number of parts, which may be negative.
func dateTimeAdd(_ *Context, args []datum.Value) datum.Value {
	ticks, ok := pointOf(args[2])
	return moved(ticks, args[0], integer(args[1]), ok)
}

// dateTimeDiff counts the boundaries between two points: from 23:59 to 00:01 is
// one day.
func dateTimeDiff(_ *Context, args []datum.Value) datum.Value {
	part := datePartOf(args[0])
	start, okStart := pointOf(args[1])
	end, okEnd := pointOf(args[2])
	if part == noPart || !okStart || !okEnd {
		return datum.Undefined()
	}
	switch part {
	case partYear:
		return datum.Int(int64(civilOf(end).year - civilOf(start).year))
	case partMonth:
		return datum.Int(monthIndex(end) - monthIndex(start))
	case partNanosecond:
		n, ok := intMul(end-start, nanosecondsPerTick)
		if !ok {
			return datum.Float(float64(end-start) * nanosecondsPerTick)
		}
		return datum.Int(n)
	}
	unit := part.ticks()
	return datum.Int(floorDiv(end, unit) - floorDiv(start, unit))
}

// monthIndex counts months since the year 0, for differences.
func monthIndex(ticks int64) int64 {
	c := civilOf(ticks)
	return int64(c.year)*monthsPerYear + int64(c.month)
}

// dateTimePart reads the part's name for every call: it may come from the item.
func dateTimePart(_ *Context, args []datum.Value) datum.Value {
	ticks, ok := pointOf(args[1])
	if !ok {
		return datum.Undefined()
	}
	return partOfPoint(ticks, datePartOf(args[0]))
}

// partOfPoint returns a part as a clock shows it.
func partOfPoint(ticks int64, part datePart) datum.Value {
	if part == noPart {
		return datum.Undefined()
	}
	return datum.Int(int64(dateParts[part].shown(civilOf(ticks))))
}

// dateTimeBin rounds down to the beginning of a bin of some parts, counted from
// an origin, which is 1970 unless given.
func dateTimeBin(_ *Context, args []datum.Value) datum.Value {
	ticks, ok := pointOf(args[0])
	part := datePartOf(args[1])
	if !ok || part == noPart {
		return datum.Undefined()
	}
	size, origin := int64(1), int64(0)
	if len(args) > 2 {
		size = integer(args[2])
	}
	if size <= 0 {
		return datum.Undefined()
	}
	if len(args) > 3 {
		if origin, ok = pointOf(args[3]); !ok || origin < year1601 {
			return datum.Undefined()
		}
	}
	switch part {
	case partYear:
		// One bin from the origin on, as for every size as large.
		return monthBin(ticks, origin, min(size, maxMonths)*monthsPerYear)
	case partMonth:
		return monthBin(ticks, origin, size)
	case partNanosecond:
		return nanosecondBin(ticks, origin, size)
	}
	width, ok := intMul(size, part.ticks())
	if !ok || width > maxTicks-minTicks {
		width = maxTicks - minTicks // one bin from the origin on
	}
	return formatDateTime(origin + floorDiv(ticks-origin, width)*width)
}

// monthBin bins by months, which do not all have the same length.
func monthBin(ticks, origin, size int64) datum.Value {
	months := monthIndex(ticks) - monthIndex(origin)
	if start, ok := addMonths(origin, months); ok && start > ticks {
		months-- // the month that is counted from the origin's day is not over
	}
	start, ok := addMonths(origin, floorDiv(months, min(size, maxMonths))*min(size, maxMonths))
	if !ok {
		return datum.Undefined()
	}
	return formatDateTime(start)
}

// nanosecondBin bins by nanoseconds, of which there are too many for an int64.
func nanosecondBin(ticks, origin, size int64) datum.Value {
	perTick, width := big.NewInt(nanosecondsPerTick), big.NewInt(size)
	elapsed := new(big.Int).Mul(big.NewInt(ticks-origin), perTick)
	// Div and Mod of big numbers round down for a positive divisor.
	elapsed.Sub(elapsed, new(big.Int).Mod(elapsed, width))
	start := elapsed.Div(elapsed, perTick)
	if !start.IsInt64() || start.Int64() < minTicks-maxTicks {
		return datum.Undefined()
	}
	return formatDateTime(origin + start.Int64())
}

// dateTimeFromParts puts a point together from year, month, day, hour, minute,
// second and ticks.
func dateTimeFromParts(_ *Context, args []datum.Value) datum.Value {
	highest := [...]int64{9999, 12, 31, 23, 59, 59, second - 1}
	var parts [len(highest)]int64
	for i, a := range args {
		if parts[i] = integer(a); parts[i] < 0 || parts[i] > highest[i] {
			return datum.Undefined()
		}
	}
	date, ok := dateTicks(int(parts[0]), int(parts[1]), int(parts[2]))
	if !ok {
		return datum.Undefined()
	}
	return formatDateTime(date + parts[3]*hour + parts[4]*minute + parts[5]*second + parts[6])
}

// ofPoint is a function of a point in time.
func ofPoint(f func(ticks int64) datum.Value) func(*Context, []datum.Value) datum.Value {
	return func(_ *Context, args []datum.Value) datum.Value {
		ticks, ok := pointOf(args[0])
		if !ok {
			return datum.Undefined()
		}
		return f(ticks)
	}
}

// toTimestamp rounds down: a moment before 1970 belongs to the millisecond that it is in.
func toTimestamp(ticks int64) datum.Value { return datum.Int(floorDiv(ticks, millisecond)) }

// ticksToDateTime is undefined for what the calendar does not reach: see formatDateTime.
func ticksToDateTime(_ *Context, args []datum.Value) datum.Value {
	return formatDateTime(integer(args[0]))
}

// timestampToDateTime checks the range first: ticks of a larger number would wrap around.
func timestampToDateTime(_ *Context, args []datum.Value) datum.Value {
	ms := integer(args[0])
	if ms < minTicks/millisecond || ms > maxTicks/millisecond {
		return datum.Undefined()
	}
	return formatDateTime(ms * millisecond)
}

// dateTimeFormat checks the size afterwards: a format makes a few times its own length at
// most.
func dateTimeFormat(cx *Context, args []datum.Value) datum.Value {
	ticks, ok := pointOf(args[0])
	if !ok {
		return datum.Undefined()
	}
	dst := civilOf(ticks).appendFormat(nil, args[1].Text())
	if len(dst) > MaxResultBytes {
		return cx.Fail(ErrResultTooLarge)
	}
	return datum.Str(string(dst))
}

// appendFormat writes a point in time by a format of .NET: runs of one of its
// letters stand for a part, a backslash takes the next character as it is, and
// so is every other character.
func (c civil) appendFormat(dst []byte, format string) []byte {
	for i := 0; i < len(format); {
		letter := format[i]
		if letter == '\\' && i+1 < len(format) {
			dst = append(dst, format[i+1])
			i += 2
			continue
		}
		run := 1
		for i+run < len(format) && format[i+run] == letter {
			run++
		}
		if part, ok := c.appendRun(dst, letter, run); ok {
			dst = part
		} else {
			dst = append(dst, format[i:i+run]...)
		}
		i += run
	}
	return dst
}

// longestRun is the longest run of one letter that means something.
const longestRun = 7

// appendRun writes the part that a run of a letter stands for. It reports false
// if the letter stands for none.
func (c civil) appendRun(dst []byte, letter byte, run int) ([]byte, bool) {
	width := min(run, 2)
	switch letter {
	case 'y':
		if run <= 2 {
			return appendNumber(dst, c.year%100, run), true
		}
		return appendNumber(dst, c.year, min(run, longestRun)), true
	case 'M':
		if run >= 3 {
			return appendName(dst, time.Month(c.month).String(), run), true
		}
		return appendNumber(dst, c.month, width), true
	case 'd':
		if run >= 3 {
			return appendName(dst, c.weekday.String(), run), true
		}
		return appendNumber(dst, c.day, width), true
	case 'H':
		return appendNumber(dst, c.hour, width), true
	case 'h':
		return appendNumber(dst, (c.hour+11)%12+1, width), true
	case 'm':
		return appendNumber(dst, c.minute, width), true
	case 's':
		return appendNumber(dst, c.second, width), true
	case 't':
		return append(dst, [...]string{"AM", "PM"}[c.hour/12][:width]...), true
	case 'f', 'F':
		if run > longestRun {
			return nil, false
		}
		digits := string(appendDigits(nil, c.fraction, 7)[:run])
		if letter == 'F' {
			digits = strings.TrimRight(digits, "0")
		}
		return append(dst, digits...), true
	}
	return nil, false
}

// appendNumber appends n with at least width digits; a width never cuts a number.
func appendNumber(dst []byte, n, width int) []byte {
	digits := 1
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	return appendDigits(dst, n, max(width, digits))
}

// appendName appends a name, or with three letters its abbreviation.
func appendName(dst []byte, name string, run int) []byte {
	if run == 3 {
		name = name[:3]
	}
	return append(dst, name...)
}
