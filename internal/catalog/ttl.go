// SPDX-License-Identifier: MIT

package catalog

import (
	"math"
	"strconv"

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
	if !ok || f != math.Trunc(f) || f < -1 || f > math.MaxInt32 || f == 0 {
		return TTLAbsent, false
	}
	return TTL(f), true
}
