// SPDX-License-Identifier: MIT

package catalog

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

// TTL is a time to live in seconds, of a container or an item: a positive number,
// TTLForever, or TTLAbsent if there is none.
type TTL int32

// The values of a TTL that are no number of seconds. Clients cannot write zero, so it can
// mean "absent".
const (
	TTLAbsent  TTL = 0
	TTLForever TTL = -1
)

// MaxTTL is the longest TTL.
const MaxTTL = math.MaxInt32

// MarshalJSON writes a TTL as in definitions; null if it is absent.
func (t TTL) MarshalJSON() ([]byte, error) {
	if t == TTLAbsent {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(t), 10), nil
}

// TTLRule is the service's sentence that follows the refused value.
const TTLRule = "Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire."

// ParseTTL parses the JSON text of a `ttl` or `defaultTtl`. It returns false for anything
// but -1 and 1 to 2147483647. JSON has one kind of number, so 5.0 and 5e0 are 5.
func ParseTTL(raw []byte) (TTL, bool) {
	v, _ := value.FromJSON(raw)
	f, ok := v.Number()
	if !ok || f != math.Trunc(f) || f < -1 || f > MaxTTL || f == 0 {
		return TTLAbsent, false
	}
	return TTL(f), true
}

// DeadlineRule is the sentence that follows a refused deadline.
const DeadlineRule = "Ensure to provide whole seconds since 1970-01-01T00:00:00Z, up to '253402300799', or an instant such as '2030-01-31T12:00:00Z'."

// lastDeadlineSeconds is the end of the year 9999, the last that ISO 8601 writes with four
// digits. Milliseconds in place of seconds are beyond it.
const lastDeadlineSeconds = 253402300799

// instant is what ISO 8601 calls a date and time of day with its offset from UTC, in the
// form of RFC 3339.
var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)

// ParseDeadline parses the JSON text of a deadline, and returns its millisecond: whole
// seconds since 1970, in any form of an integer, or an instant. A part of a millisecond
// counts as a whole one, so that nothing expires early. A deadline before 1970 counts as
// the first millisecond: all of them have passed.
func ParseDeadline(raw []byte) (ms int64, ok bool) {
	v, _ := value.FromJSON(raw)
	if f, ok := v.Number(); ok {
		if f != math.Trunc(f) || f > lastDeadlineSeconds || f < -lastDeadlineSeconds {
			return 0, false
		}
		return max(1, 1000*int64(f)), true
	}
	text, ok := v.Text()
	if !ok || !instant.MatchString(text) {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Unix() > lastDeadlineSeconds {
		return 0, false
	}
	ms = at.UnixMilli()
	if at.Nanosecond()%int(time.Millisecond) > 0 {
		ms++
	}
	return max(1, ms), true
}
