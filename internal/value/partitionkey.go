// SPDX-License-Identifier: MIT

// Partition keys: what a request or an item gives for a container's partition
// key paths.

package value

import (
	"errors"
	"fmt"
	"slices"
)

// ErrPartitionKey is returned for a partition key header that cannot be read.
var ErrPartitionKey = errors.New("invalid partition key")

// MaxPartitionKeyPaths is how many levels a hierarchical partition key may have.
const MaxPartitionKeyPaths = 3

// endOfPartitionKey ends the key encoding. It is below every tag, so that a key
// sorts before the longer ones that it is a prefix of.
const endOfPartitionKey byte = 0x00

// PartitionKey has one value per partition key path, or fewer when it names a
// prefix of a hierarchical key. An undefined value stands for a property that
// is absent. The empty key, "none", belongs to items of containers that were
// made without a partition key.
type PartitionKey []Scalar

// ParsePartitionKey reads a partition key header: a JSON array of strings,
// numbers, booleans and nulls, with {} for undefined. The result for [] is
// empty and not nil. The error is [ErrPartitionKey].
func ParsePartitionKey(header string) (PartitionKey, error) {
	rest := skipSpace([]byte(header))
	if len(rest) == 0 || rest[0] != '[' {
		return nil, fmt.Errorf("%w: expected a JSON array", ErrPartitionKey)
	}
	rest = skipSpace(rest[1:])
	pk := make(PartitionKey, 0, MaxPartitionKeyPaths)
	for more := firstByte(rest) != ']'; more; {
		if len(pk) == MaxPartitionKeyPaths {
			return nil, fmt.Errorf("%w: more than %d components", ErrPartitionKey, MaxPartitionKeyPaths)
		}
		v, after, fault := component(rest)
		if fault != "" {
			return nil, fmt.Errorf("%w: component %d %s", ErrPartitionKey, len(pk)+1, fault)
		}
		pk = append(pk, v)
		rest = skipSpace(after)
		switch firstByte(rest) {
		case ']':
			more = false
		case ',':
			rest = skipSpace(rest[1:])
		default:
			return nil, fmt.Errorf("%w: expected ',' or ']' after component %d", ErrPartitionKey, len(pk))
		}
	}
	if len(skipSpace(rest[1:])) > 0 {
		return nil, fmt.Errorf("%w: text after the array", ErrPartitionKey)
	}
	return pk, nil
}

// component reads the value that src begins with. The fault, empty when all is
// well, completes a sentence that begins with the component.
func component(src []byte) (v Scalar, rest []byte, fault string) {
	var end int
	switch firstByte(src) {
	case 0, ',', ']':
		return Scalar{}, nil, "is missing"
	case '[':
		return Scalar{}, nil, "is an array"
	case '{':
		if rest = skipSpace(src[1:]); firstByte(rest) != '}' {
			return Scalar{}, nil, "is an object; only {} is allowed, for a property that is absent"
		}
		return Scalar{}, rest[1:], ""
	case '"':
		end = StringEnd(view(src), 0)
	default:
		end = literalEnd(view(src), 0)
	}
	v, ok := FromJSON(src[:end])
	if !ok {
		return Scalar{}, nil, "is not a string, number, boolean or null in valid JSON"
	}
	return v, src[end:], ""
}

// String returns the canonical header text, with {} for undefined.
func (pk PartitionKey) String() string {
	b := []byte{'['}
	for i, v := range pk {
		if i > 0 {
			b = append(b, ',')
		}
		if v.Defined() {
			b = v.AppendJSON(b)
		} else {
			b = append(b, "{}"...)
		}
	}
	return string(append(b, ']'))
}

// Equal reports whether both keys have the same values.
func (pk PartitionKey) Equal(other PartitionKey) bool { return slices.Equal(pk, other) }

// Size returns the bytes that count towards the limit on partition key values:
// those of strings in UTF-8, eight for a number, one for anything else.
func (pk PartitionKey) Size() int {
	size := 0
	for _, v := range pk {
		switch v.kind {
		case KindString:
			size += len(v.str)
		case KindNumber:
			size += numberBytes
		default:
			size++
		}
	}
	return size
}

// AppendKey appends the key encoding, which knows its own end and sorts by the
// first value, then by the second.
func (pk PartitionKey) AppendKey(dst []byte) []byte {
	for _, v := range pk {
		dst = AppendKey(dst, v)
	}
	return append(dst, endOfPartitionKey)
}

// DecodePartitionKey reads the partition key that src begins with and returns
// what follows it. The error is [ErrKey].
func DecodePartitionKey(src []byte) (pk PartitionKey, rest []byte, err error) {
	pk = PartitionKey{}
	for len(src) == 0 || src[0] != endOfPartitionKey {
		if len(pk) == MaxPartitionKeyPaths {
			return nil, nil, fmt.Errorf("%w: partition key has no end", ErrKey)
		}
		var v Scalar
		if v, src, err = DecodeKey(src); err != nil {
			return nil, nil, err
		}
		pk = append(pk, v)
	}
	return pk, src[1:], nil
}

// SkipPartitionKey returns what follows the partition key that src begins with.
// It checks no more than it needs to find the end. The error is [ErrKey].
func SkipPartitionKey(src []byte) (rest []byte, err error) {
	for n := 0; len(src) == 0 || src[0] != endOfPartitionKey; n++ {
		if n == MaxPartitionKeyPaths {
			return nil, fmt.Errorf("%w: partition key has no end", ErrKey)
		}
		if src, err = skipKey(src); err != nil {
			return nil, err
		}
	}
	return src[1:], nil
}
