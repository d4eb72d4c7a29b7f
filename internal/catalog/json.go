// SPDX-License-Identifier: MIT

// Parsing parts of a definition: each function takes the JSON text of one property and
// its name for error messages.

package catalog

import (
	"iter"
	"math"

	"github.com/mayflydb/mayfly/internal/value"
)

func asObject(what string, raw []byte) (*value.Object, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, invalid("One of the specified inputs is invalid: '%s' must be an object.", what)
	}
	return value.ParseObject(raw)
}

// objectMember parses a property that is an object; nil if it is missing.
func objectMember(o *value.Object, name string) (*value.Object, error) {
	raw, ok := o.Lookup(name)
	if absent(raw, ok) {
		return nil, nil
	}
	return asObject(name, raw)
}

// objects parses a property of o that is a list of objects; what is the name of o itself.
// If either is missing there are none.
func objects(o *value.Object, what, name string) iter.Seq2[*value.Object, error] {
	return func(yield func(*value.Object, error) bool) {
		if o == nil {
			return
		}
		raw, ok := o.Lookup(name)
		if absent(raw, ok) {
			return
		}
		list, err := asArray(what+"."+name, raw)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, raw := range list {
			each, err := asObject(what+"."+name+"[]", raw)
			if !yield(each, err) || err != nil {
				return
			}
		}
	}
}

func asArray(what string, raw []byte) ([][]byte, error) {
	list, ok := value.Elements(raw)
	if !ok {
		return nil, invalid("One of the specified inputs is invalid: '%s' must be an array.", what)
	}
	return list, nil
}

func asString(what string, raw []byte) (string, error) {
	v, _ := value.FromJSON(raw)
	if s, ok := v.Text(); ok {
		return s, nil
	}
	return "", invalid("One of the specified inputs is invalid: '%s' must be a string.", what)
}

// stringMember parses a property that must be a string.
func stringMember(o *value.Object, name string) (string, error) {
	raw, _ := o.Lookup(name)
	return asString(name, raw)
}

func asBool(what string, raw []byte) (bool, error) {
	v, _ := value.FromJSON(raw)
	if b, ok := v.Bool(); ok {
		return b, nil
	}
	return false, invalid("One of the specified inputs is invalid: '%s' must be true or false.", what)
}

// asInt accepts any number that equals an integer, 2.0 and 2e0 included: JSON has one
// kind of number.
func asInt(what string, raw []byte, lowest, highest int) (int, error) {
	v, _ := value.FromJSON(raw)
	if f, ok := v.Number(); ok && f == math.Trunc(f) && f >= float64(lowest) && f <= float64(highest) {
		return int(f), nil
	}
	return 0, invalid("One of the specified inputs is invalid: '%s' must be an integer from %d to %d.", what, lowest, highest)
}

// absent reports whether a property is missing or null, which mean the same in a
// container's definition.
func absent(raw []byte, found bool) bool {
	return !found || string(raw) == "null"
}
