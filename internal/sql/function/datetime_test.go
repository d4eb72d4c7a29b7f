// SPDX-License-Identifier: MIT

package function

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/sql/datum"
)

func TestDateTimeForms(t *testing.T) {
	sheet(t, `
IS_DATETIME("2024-02-29") => true
IS_DATETIME("2024-02-29Z") => true
IS_DATETIME("2024-02-29T12:34:56") => true
IS_DATETIME("2024-02-29 12:34:56Z") => true
IS_DATETIME("2024-02-29T12:34:56.1") => true
IS_DATETIME("2024-02-29T12:34:56.1234567Z") => true
IS_DATETIME("0001-01-01") => true
IS_DATETIME("9999-12-31T23:59:59.9999999Z") => true
IS_DATETIME("2023-02-29") => false
IS_DATETIME("1900-02-29") => false
IS_DATETIME("2000-02-29") => true
IS_DATETIME("2024-13-01") => false
IS_DATETIME("2024-00-01") => false
IS_DATETIME("2024-04-31") => false
IS_DATETIME("0000-01-01") => false
IS_DATETIME("2024-1-1") => false
IS_DATETIME("24-01-01") => false
IS_DATETIME("2024-02-29T") => false
IS_DATETIME("2024-02-29T12") => false
IS_DATETIME("2024-02-29T12:34") => false
IS_DATETIME("2024-02-29t12:34:56") => false
IS_DATETIME("2024-02-29T24:00:00") => false
IS_DATETIME("2024-02-29T12:60:00") => false
IS_DATETIME("2024-02-29T12:00:60") => false
IS_DATETIME("2024-02-29T12:34:56.") => false
IS_DATETIME("2024-02-29T12:34:56.12345678") => false
IS_DATETIME("2024-02-29T12:34:56+01:00") => false
IS_DATETIME("2024-02-29T12:34:56ZZ") => false
IS_DATETIME(" 2024-02-29") => false
IS_DATETIME("") => false
`)
}

func TestDateTimeFunctions(t *testing.T) {
	sheet(t, `
DATETIMEADD("year", 1, "2020-02-29") => "2021-02-28T00:00:00.0000000Z"
DATETIMEADD("yy", -4, "2020-02-29") => "2016-02-29T00:00:00.0000000Z"
DATETIMEADD("month", 1, "2020-01-31T10:20:30.1234567Z") => "2020-02-29T10:20:30.1234567Z"
DATETIMEADD("m", -13, "2020-01-15") => "2018-12-15T00:00:00.0000000Z"
DATETIMEADD("day", 1, "2019-12-31") => "2020-01-01T00:00:00.0000000Z"
DATETIMEADD("hh", -1, "1970-01-01") => "1969-12-31T23:00:00.0000000Z"
DATETIMEADD("n", 90, "2020-01-01") => "2020-01-01T01:30:00.0000000Z"
DATETIMEADD("s", 86400, "2020-02-28") => "2020-02-29T00:00:00.0000000Z"
DATETIMEADD("ms", 1, "2020-01-01T00:00:00.9999999") => "2020-01-01T00:00:01.0009999Z"
DATETIMEADD("mcs", 7, "2020-01-01") => "2020-01-01T00:00:00.0000070Z"
DATETIMEADD("ns", 100, "2020-01-01") => "2020-01-01T00:00:00.0000001Z"
DATETIMEADD("ns", 99, "2020-01-01") => "2020-01-01T00:00:00.0000000Z"
DATETIMEADD("DAY", 1, "2020-01-01") => "2020-01-02T00:00:00.0000000Z"
DATETIMEADD("week", 1, "2020-01-01") => undefined
DATETIMEADD("day", 1.5, "2020-01-01") => undefined
DATETIMEADD("day", 1, "tomorrow") => undefined
DATETIMEADD("year", 9999, "2020-01-01") => undefined
DATETIMEADD("year", -2019, "2020-01-01") => "0001-01-01T00:00:00.0000000Z"
DATETIMEADD("year", -2020, "2020-01-01") => undefined
DATETIMEADD("s", 9223372036854775807, "2020-01-01") => undefined
DATETIMEADD("month", -9223372036854775808, "2020-01-01") => undefined
DATETIMEADD("ns", 9223372036854775807, "2020-01-01") => "2312-04-11T23:47:16.8547758Z"

DATETIMEDIFF("year", "2019-12-31T23:59:59", "2020-01-01") => 1
DATETIMEDIFF("month", "2020-01-31", "2020-02-01") => 1
DATETIMEDIFF("month", "2020-02-01", "2019-11-30") => -3
DATETIMEDIFF("day", "2020-01-01T23:59:59", "2020-01-02T00:00:01") => 1
DATETIMEDIFF("day", "2020-01-01T00:00:01", "2020-01-01T23:59:59") => 0
DATETIMEDIFF("day", "1969-12-31T23:59:59", "1970-01-01T00:00:00") => 1
DATETIMEDIFF("hour", "1969-12-31T22:30:00", "1970-01-01T00:30:00") => 2
DATETIMEDIFF("mi", "2020-01-01T00:00:59", "2020-01-01T00:01:00") => 1
DATETIMEDIFF("ss", "2020-01-02", "2020-01-01") => -86400
DATETIMEDIFF("ms", "2020-01-01T00:00:00.0009999", "2020-01-01T00:00:00.0010000") => 1
DATETIMEDIFF("mcs", "2020-01-01", "2020-01-01T00:00:00.0000019") => 1
DATETIMEDIFF("ns", "2020-01-01", "2020-01-01T00:00:00.0000019") => 1900
DATETIMEDIFF("ns", "0001-01-01", "9999-01-01") => 315506361600000000000
DATETIMEDIFF("eon", "2020-01-01", "2020-01-01") => undefined
DATETIMEDIFF("day", "2020-01-01", "x") => undefined

DATETIMEPART("yyyy", "2020-03-04T05:06:07.8901234Z") => 2020
DATETIMEPART("mm", "2020-03-04T05:06:07.8901234Z") => 3
DATETIMEPART("d", "2020-03-04T05:06:07.8901234Z") => 4
DATETIMEPART("hour", "2020-03-04T05:06:07.8901234Z") => 5
DATETIMEPART("mi", "2020-03-04T05:06:07.8901234Z") => 6
DATETIMEPART("ss", "2020-03-04T05:06:07.8901234Z") => 7
DATETIMEPART("ms", "2020-03-04T05:06:07.8901234Z") => 890
DATETIMEPART("mcs", "2020-03-04T05:06:07.8901234Z") => 890123
DATETIMEPART("ns", "2020-03-04T05:06:07.8901234Z") => 890123400
DATETIMEPART("ms", "1969-12-31T23:59:59.9") => 900
DATETIMEPART("q", "2020-03-04") => undefined
YEAR("2020-03-04") => 2020
MONTH("2020-03-04") => 3
DAY("2020-03-04T23:00:00Z") => 4
DAY("2020") => undefined

DATETIMEFROMPARTS(2020, 2, 29) => "2020-02-29T00:00:00.0000000Z"
DATETIMEFROMPARTS(2020, 2, 29, 1, 2, 3, 4) => "2020-02-29T01:02:03.0000004Z"
DATETIMEFROMPARTS(2020, 2, 30) => undefined
DATETIMEFROMPARTS(0, 1, 1) => undefined
DATETIMEFROMPARTS(2020, 1, 1, 24) => undefined
DATETIMEFROMPARTS(2020, 1, 1, 0, 0, 0, 10000000) => undefined
DATETIMEFROMPARTS(2020, 1, 1.5) => undefined

DATETIMETOTICKS("1970-01-01") => 0
DATETIMETOTICKS("1970-01-01T00:00:00.0000001Z") => 1
DATETIMETOTICKS("1969-12-31T23:59:59") => -10000000
DATETIMETOTICKS("2020-01-02T03:04:05.6789123Z") => 15779342456789123
TICKSTODATETIME(15779342456789123) => "2020-01-02T03:04:05.6789123Z"
TICKSTODATETIME(-1) => "1969-12-31T23:59:59.9999999Z"
TICKSTODATETIME(0.5) => undefined
TICKSTODATETIME(9223372036854775807) => undefined
DATETIMETOTIMESTAMP("2020-01-02T03:04:05.6789Z") => 1577934245678
DATETIMETOTIMESTAMP("1969-12-31T23:59:59.9999") => -1
TIMESTAMPTODATETIME(-62135596800000) => "0001-01-01T00:00:00.0000000Z"
TIMESTAMPTODATETIME(253402300799999) => "9999-12-31T23:59:59.9990000Z"
TIMESTAMPTODATETIME(253402300800000) => undefined
TIMESTAMPTODATETIME(1.5) => undefined

GETCURRENTDATETIME() => "2023-11-14T22:13:20.0000000Z"
GETCURRENTDATETIMESTATIC() => "2023-11-14T22:13:20.0000000Z"
GETCURRENTTIMESTAMP() => 1700000000000
GETCURRENTTIMESTAMPSTATIC() => 1700000000000
GETCURRENTTICKS() => 17000000000000000
GETCURRENTTICKSSTATIC() => 17000000000000000
NOW() => "2023-11-14T22:13:20.0000000Z"
NOW("dd", 1) => "2023-11-15T22:13:20.0000000Z"
NOW("ms", -1) => "2023-11-14T22:13:19.9990000Z"
NOW("dd") => undefined
NOW("x", 1) => undefined
AGO("hh", 1) => "2023-11-14T21:13:20.0000000Z"
AGO("yyyy", -1) => "2024-11-14T22:13:20.0000000Z"
AGO("hh", 0) => "2023-11-14T22:13:20.0000000Z"
AGO("ss", -9223372036854775808) => undefined
`)
}

func TestDateTimeBin(t *testing.T) {
	sheet(t, `
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "year") => "2021-01-01T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "month") => "2021-06-01T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "day") => "2021-06-28T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "hour", 6) => "2021-06-28T12:00:00.0000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "minute", 15) => "2021-06-28T17:15:00.0000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "second", 10) => "2021-06-28T17:24:20.0000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "ms", 100) => "2021-06-28T17:24:29.2000000Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "mcs") => "2021-06-28T17:24:29.2991230Z"
DATETIMEBIN("2021-06-28T17:24:29.2991234Z", "ns", 300) => "2021-06-28T17:24:29.2991232Z"
DATETIMEBIN("1970-01-01T00:00:00.0000004Z", "ns", 150) => "1970-01-01T00:00:00.0000003Z"
DATETIMEBIN("1969-12-31T23:00:00", "day") => "1969-12-31T00:00:00.0000000Z"
DATETIMEBIN("1969-12-31T23:00:00", "day", 2) => "1969-12-30T00:00:00.0000000Z"
DATETIMEBIN("1969-12-31", "month", 3) => "1969-10-01T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28", "year", 2, "2000-03-01") => "2020-03-01T00:00:00.0000000Z"
DATETIMEBIN("2021-02-28", "month", 1, "2021-01-31") => "2021-02-28T00:00:00.0000000Z"
DATETIMEBIN("2021-03-30", "month", 1, "2021-01-31") => "2021-02-28T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28", "day", 7, "2021-06-27") => "2021-06-27T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28", "day", 9223372036854775807) => "1970-01-01T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28", "year", 9223372036854775807) => "1970-01-01T00:00:00.0000000Z"
DATETIMEBIN("1960-06-28", "day", 9223372036854775807) => undefined
DATETIMEBIN("1960-06-28", "ns", 9223372036854775807) => "1677-09-21T00:12:43.1452241Z"
DATETIMEBIN("2021-06-28", "day", 0) => undefined
DATETIMEBIN("2021-06-28", "day", -5) => undefined
DATETIMEBIN("2021-06-28", "day", 1.5) => undefined
DATETIMEBIN("2021-06-28", "fortnight") => undefined
DATETIMEBIN("2021-06-28", "day", 1, "1601-01-01") => "2021-06-28T00:00:00.0000000Z"
DATETIMEBIN("2021-06-28", "day", 1, "1600-12-31T23:59:59") => undefined
DATETIMEBIN("2021-06-28", "day", 1, "x") => undefined
DATETIMEBIN("x", "day") => undefined
`)
}

func TestDateTimeFormat(t *testing.T) {
	sheet(t, `
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "yyyy-MM-dd HH:mm:ss") => "2024-03-05 14:07:09"
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "y yy yyy yyyyy") => "24 24 2024 02024"
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "M/d H:m:s") => "3/5 14:7:9"
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "MMM MMMM ddd dddd") => "Mar March Tue Tuesday"
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "hh:mm tt h t") => "02:07 PM 2 P"
DATETIMEFORMAT("2024-03-05T00:07:09", "h tt") => "12 AM"
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "ss.f ff fff fffffff") => "09.0 04 045 0450000"
DATETIMEFORMAT("2024-03-05T14:07:09.0450000Z", "ss.F FF FFF FFFFFFF") => "09. 04 045 045"
DATETIMEFORMAT("2024-03-05", "\\d\\a\\y: dd") => "day: 05"
DATETIMEFORMAT("2024-03-05", "[dd] é") => "[05] é"
DATETIMEFORMAT("2024-03-05", "") => ""
DATETIMEFORMAT("0007-03-05", "yyyy y") => "0007 7"
DATETIMEFORMAT("soon", "yyyy") => undefined
`)
}

// TestDateTimeModel compares with package time, which has no ticks.
func TestDateTimeModel(t *testing.T) {
	point := rapid.Int64Range(minTicks, maxTicks)
	rapid.Check(t, func(t *rapid.T) {
		ticks := point.Draw(t, "ticks")
		text, ok := formatDateTime(ticks).AsString()
		want := time.Unix(floorDiv(ticks, second), floorMod(ticks, second)*nanosecondsPerTick).UTC()
		if written := want.Format("2006-01-02T15:04:05.0000000Z"); !ok || text != written {
			t.Fatalf("%d: got %s, want %s", ticks, text, written)
		}
		if back, ok := parseDateTime(text); !ok || back != ticks {
			t.Fatalf("%s is read as %d, not %d", text, back, ticks)
		}
		unit := rapid.SampledFrom([]datePart{partDay, partHour, partMinute, partSecond, partMillisecond, partMicrosecond}).Draw(t, "unit")
		n := rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "n")
		moved, ok := addPart(ticks, unit, n)
		if ok && moved != ticks+n*unit.ticks() {
			t.Fatalf("%s moved by %d of %d: %d", text, n, unit, moved)
		}
		if ok && floorDiv(moved, unit.ticks())-floorDiv(ticks, unit.ticks()) != n {
			t.Fatalf("%s moved by %d of %d: other number of boundaries", text, n, unit)
		}
		months := rapid.Int64Range(-5000, 5000).Draw(t, "months")
		if later, ok := addMonths(ticks, months); ok && monthIndex(later)-monthIndex(ticks) != months {
			t.Fatalf("%s moved by %d months is in another", text, months)
		}
	})
}

// TestBinsDoNotOverlap checks that a bin begins at or before its point, that its
// beginning is in it, and that it is no longer than its size.
func TestBinsDoNotOverlap(t *testing.T) {
	point := rapid.Int64Range(year1601+1000*365*day, maxTicks)
	parts := []string{"year", "month", "day", "hour", "minute", "second", "ms", "mcs", "ns"}
	rapid.Check(t, func(t *rapid.T) {
		args := []datum.Value{
			formatDateTime(point.Draw(t, "ticks")), datum.Str(rapid.SampledFrom(parts).Draw(t, "part")),
			datum.Int(rapid.Int64Range(1, 1000).Draw(t, "size")), formatDateTime(rapid.Int64Range(year1601, 0).Draw(t, "origin")),
		}
		bin := dateTimeBin(nil, args)
		if bin.IsUndefined() || datum.Compare(bin, args[0]) > 0 {
			t.Fatalf("%v is in bin %s", args, bin)
		}
		// A bin of nanoseconds may begin between two ticks.
		again := dateTimeBin(nil, []datum.Value{bin, args[1], args[2], args[3]})
		if part, _ := args[1].AsString(); part != "ns" && !datum.Equal(again, bin) {
			t.Fatalf("%v is in bin %s, and that in %s", args, bin, again)
		}
	})
}

func FuzzDateTime(f *testing.F) {
	for _, seed := range []string{"", "2020-01-01", "2020-01-01Z", "2020-02-30", "2020-01-01T00:00:00.1234567Z", "2020-01-01 23:59:59", "9999-12-31T23:59:59.9999999", "0001-01-01", "20\xff0-01-01"} {
		f.Add(seed, "yyyy\\dMMM")
	}
	f.Fuzz(func(t *testing.T, text, format string) {
		ticks, ok := parseDateTime(text)
		if !ok {
			return
		}
		canonical, ok := formatDateTime(ticks).AsString()
		if !ok {
			t.Fatalf("%q is %d, which cannot be written", text, ticks)
		}
		if again, ok := parseDateTime(canonical); !ok || again != ticks {
			t.Errorf("%q is %d, written %s, read again %d", text, ticks, canonical, again)
		}
		civilOf(ticks).appendFormat(nil, format)
	})
}
