// SPDX-License-Identifier: MIT

package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes, as flags take it: a number, or one with a unit such as KiB, MB
// or GiB.
type size int64

// sizeUnits are the units of sizes; the first that a text ends with counts.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// UnmarshalText parses a size.
func (s *size) UnmarshalText(text []byte) error {
	for _, u := range sizeUnits {
		number, is := cutSuffixFold(string(text), u.name)
		if !is {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		bytes := n * u.bytes
		if err != nil || !(bytes >= 1 && bytes < math.MaxInt64) {
			break
		}
		*s = size(bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size: give a number of bytes above 0, or one with a unit, such as 64MiB or 1.5GB", text)
}

// limit is a size that may be 0, for none or for the default.
type limit int64

// UnmarshalText parses a limit.
func (l *limit) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseFloat(string(text), 64); err == nil && n == 0 {
		*l = 0
		return nil
	}
	return (*size)(l).UnmarshalText(text)
}

// cutSuffixFold is strings.CutSuffix without regard to case.
func cutSuffixFold(s, suffix string) (before string, found bool) {
	if at := len(s) - len(suffix); at >= 0 && strings.EqualFold(s[at:], suffix) {
		return s[:at], true
	}
	return s, false
}
