// SPDX-License-Identifier: MIT

// Building arrays and objects.

package datum

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

// builder is the text of an array or object without its end.
type builder struct {
	text     []byte
	infinite bool
}

// begin goes to where the next element or property is put.
func (b *builder) begin(open byte) {
	if len(b.text) == 0 {
		b.text = append(b.text, open)
	} else {
		b.text = append(b.text, ',')
	}
}

func (b *builder) put(v Value) {
	b.text = v.AppendJSON(b.text)
	b.infinite = b.infinite || !v.Finite()
}

// Size returns how many bytes of text there are.
func (b *builder) Size() int { return len(b.text) }

// value returns what was built, or what is empty.
func (b *builder) value(end byte, empty string) Value {
	if len(b.text) == 0 {
		return fromText(empty)
	}
	v := Raw(append(b.text, end))
	if b.infinite {
		v.form = formInfinite
	}
	return v
}

// ArrayBuilder collects the elements of an array. The zero builder is empty.
type ArrayBuilder struct{ builder }

// Add puts v at the end. Undefined is left out.
func (b *ArrayBuilder) Add(v Value) {
	if v.IsUndefined() {
		return
	}
	b.begin('[')
	b.put(v)
}

// Value returns the array. The builder is at its end and must not be used again.
func (b *ArrayBuilder) Value() Value { return b.value(']', "[]") }

// Snapshot returns the array so far. More elements may be added afterwards.
func (b *ArrayBuilder) Snapshot() Value {
	copied := builder{slices.Clone(b.text), b.infinite}
	return copied.value(']', "[]")
}

// ObjectBuilder collects the properties of an object. The zero builder is empty.
type ObjectBuilder struct{ builder }

// Set adds a property, whose name must not have been added before. Undefined is
// left out.
func (b *ObjectBuilder) Set(name string, v Value) {
	if v.IsUndefined() {
		return
	}
	b.begin('{')
	b.text = append(value.AppendString(b.text, name), ':')
	b.put(v)
}

// Value returns the object. The builder is at its end and must not be used again.
func (b *ObjectBuilder) Value() Value { return b.value('}', "{}") }
