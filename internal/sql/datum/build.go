// SPDX-License-Identifier: MIT

// Building arrays and objects.

package datum

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

// ArrayBuilder collects the elements of an array. The zero builder is empty.
type ArrayBuilder struct {
	text     []byte
	count    int
	infinite bool
}

// Add puts v at the end. Undefined is left out.
func (b *ArrayBuilder) Add(v Value) {
	if v.IsUndefined() {
		return
	}
	if b.count == 0 {
		b.text = append(b.text, '[')
	} else {
		b.text = append(b.text, ',')
	}
	b.text = v.AppendJSON(b.text)
	b.count++
	b.infinite = b.infinite || !v.Finite()
}

// Count returns how many elements there are.
func (b *ArrayBuilder) Count() int { return b.count }

// Size returns how many bytes of text there are.
func (b *ArrayBuilder) Size() int { return len(b.text) }

// Value returns the array. The builder is at its end and must not be used again.
func (b *ArrayBuilder) Value() Value {
	if b.count == 0 {
		return fromText("[]")
	}
	return built(append(b.text, ']'), b.infinite)
}

// Snapshot returns the array so far. More elements may be added afterwards.
func (b *ArrayBuilder) Snapshot() Value {
	copied := ArrayBuilder{text: slices.Clone(b.text), count: b.count, infinite: b.infinite}
	return copied.Value()
}

// ObjectBuilder collects the properties of an object. The zero builder is empty.
type ObjectBuilder struct {
	text     []byte
	count    int
	infinite bool
}

// Set adds a property, whose name must not have been added before. Undefined is
// left out.
func (b *ObjectBuilder) Set(name string, v Value) {
	if v.IsUndefined() {
		return
	}
	if b.count == 0 {
		b.text = append(b.text, '{')
	} else {
		b.text = append(b.text, ',')
	}
	b.text = append(value.AppendString(b.text, name), ':')
	b.text = v.AppendJSON(b.text)
	b.count++
	b.infinite = b.infinite || !v.Finite()
}

// Size returns how many bytes of text there are.
func (b *ObjectBuilder) Size() int { return len(b.text) }

// Value returns the object. The builder is at its end and must not be used again.
func (b *ObjectBuilder) Value() Value {
	if b.count == 0 {
		return fromText("{}")
	}
	return built(append(b.text, '}'), b.infinite)
}

func built(text []byte, infinite bool) Value {
	v := Raw(text)
	if infinite {
		v.form = formInfinite
	}
	return v
}
