// SPDX-License-Identifier: MIT

// Looking into arrays and objects.

package datum

import "github.com/mayflydb/mayfly/internal/value"

// Member returns an object's property, or undefined if there is none or v is no
// object.
func (v Value) Member(name string) Value {
	if v.kind != KindObject {
		return Value{}
	}
	i := value.MemberAt(v.text, name)
	if i < 0 {
		return Value{}
	}
	return v.projected(i)
}

// Index returns the element of an array, counted from zero, or undefined if
// there is none or v is no array.
func (v Value) Index(i int) Value {
	if i < 0 {
		return Value{}
	}
	for element := range v.Elements {
		if i == 0 {
			return element
		}
		i--
	}
	return Value{}
}

// Len returns how many elements an array or properties an object has, and -1
// for every other value.
func (v Value) Len() int {
	n := 0
	switch v.kind {
	case KindArray:
		for i := 1; i < len(v.text)-1; n++ {
			i = value.ValueEnd(v.text, i) + 1
		}
	case KindObject:
		for i := 1; i < len(v.text)-1; n++ {
			i = value.ValueEnd(v.text, value.StringEnd(v.text, i)+1) + 1
		}
	default:
		return -1
	}
	return n
}

// FirstElement is where the first element of an array begins: see [Value.ElementAt].
const FirstElement = 1

// ElementAt returns the element that begins at a byte of an array's text, and where the one
// after it begins; ok is false at the end, and if v is no array. It is for loops that run
// for every row; others are easier to read with Elements.
func (v Value) ElementAt(i int) (element Value, next int, ok bool) {
	if v.kind != KindArray || i >= len(v.text)-1 {
		return Value{}, i, false
	}
	end := value.ValueEnd(v.text, i)
	return v.part(v.text[i:end]), end + 1, true
}

// Elements calls yield for the elements of an array, in order, until it returns
// false. Other values have none.
func (v Value) Elements(yield func(Value) bool) {
	element, i, ok := v.ElementAt(FirstElement)
	for ok && yield(element) {
		element, i, ok = v.ElementAt(i)
	}
}

// Properties calls yield for the properties of an object, in the order they are
// written, until it returns false. Other values have none.
func (v Value) Properties(yield func(name string, property Value) bool) {
	if v.kind != KindObject {
		return
	}
	for i := 1; i < len(v.text)-1; {
		colon := value.StringEnd(v.text, i)
		end := value.ValueEnd(v.text, colon+1)
		if !yield(fromText(v.text[i:colon]).Text(), v.part(v.text[colon+1:end])) {
			return
		}
		i = end + 1
	}
}

// part returns a value inside v. Where v holds a number that is not finite, an
// array or object inside it might.
func (v Value) part(text string) Value {
	p := fromText(text)
	if p.kind == KindArray || p.kind == KindObject {
		p.form = formSent
		if v.form == formInfinite {
			p.form = formInfinite
		}
	}
	return p
}

// projected returns the part that begins at v.text[i]. Most paths lead to what is put into
// a result: whether its numbers have to be written anew is seen on the way to its end, at
// little cost, and not when it is written.
func (v Value) projected(i int) Value {
	if i < len(v.text) && (v.text[i] == '{' || v.text[i] == '[') {
		end, shortest := value.ShortestEnd(v.text, i)
		p := v.part(v.text[i:end])
		if p.form == formSent && shortest {
			p.form = formPlain
		}
		return p
	}
	return fromText(v.text[i:value.ValueEnd(v.text, i)])
}
