// SPDX-License-Identifier: MIT

package clock

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// DurationRule says which texts ParseDuration takes.
const DurationRule = "a duration such as 90s, 1h, 3d or 1d12h, or a number of seconds"

// errDuration: the text is not a duration, or a longer one than 292 years.
var errDuration = errors.New("not " + DurationRule)

// ParseDuration reads a duration as people write it: as time.ParseDuration does, with days
// before the other units, or a whole number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return times(seconds, time.Second)
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errDuration
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil {
		return 0, errDuration
	}
	d, err := times(int64(n), 24*time.Hour)
	if err != nil || rest == "" {
		return d, err
	}
	more, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest, "+-") || more > math.MaxInt64-d {
		return 0, errDuration
	}
	return d + more, nil
}

func times(n int64, unit time.Duration) (time.Duration, error) {
	if most := math.MaxInt64 / int64(unit); n > most || n < -most {
		return 0, errDuration
	}
	return time.Duration(n) * unit, nil
}
