// SPDX-License-Identifier: MIT

package binaryjson

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

// Decode returns the text of a document, of at most limit bytes.
func Decode(document []byte, limit int) ([]byte, error) {
	if !Is(document) {
		return nil, ErrMalformed
	}
	d := decoder{all: document, limit: limit, out: make([]byte, 0, min(2*len(document), limit))}
	rest, err := d.value(document[1:], 0)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, ErrMalformed
	}
	return d.out, d.room()
}

type decoder struct {
	all   []byte // the document, for references
	out   []byte
	limit int
}

// room checks that the text is within the limit. One value without its elements cannot be
// much longer than the document, so checking before each and at the end is enough.
func (d *decoder) room() error {
	if len(d.out) > d.limit {
		return ErrTooLarge
	}
	return nil
}

// value appends the value at the start of b, and returns what follows it.
func (d *decoder) value(b []byte, depth int) (rest []byte, err error) {
	if err := d.room(); err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, ErrMalformed
	}
	switch mark := b[0]; {
	case mark < markSystem:
		d.out = strconv.AppendUint(d.out, uint64(mark), 10)
		return b[1:], nil
	case mark < markUint64:
		return d.text(b)
	case mark == markNull:
		d.out = append(d.out, "null"...)
		return b[1:], nil
	case mark == markFalse:
		d.out = append(d.out, "false"...)
		return b[1:], nil
	case mark == markTrue:
		d.out = append(d.out, "true"...)
		return b[1:], nil
	case mark < markArray0:
		return d.number(mark, b[1:])
	case depth == value.MaxNesting:
		return nil, ErrMalformed
	case mark < markObject0:
		return d.container(b, markArray0, '[', ']', depth+1)
	case mark < markNumbers:
		return d.container(b, markObject0, '{', '}', depth+1)
	case mark < markEnd:
		return d.numbers(b)
	}
	return nil, ErrMalformed
}

// container appends an array or an object. base is the marker of the empty one, which the
// others follow.
func (d *decoder) container(b []byte, base byte, open, end byte, depth int) (rest []byte, err error) {
	kind := b[0] - base
	b = b[1:]
	d.out = append(d.out, open)
	switch {
	case kind == 0:
		rest = b
	case kind == 1:
		rest, err = d.element(b, open, depth)
	case kind < 2+widths:
		var inner []byte
		if inner, rest, err = cut(b, kind-2); err == nil {
			_, err = d.elements(inner, open, depth)
		}
	default:
		width := kind - 2 - widths
		var inner []byte
		var count uint64
		if inner, rest, count, err = cutCounted(b, width); err == nil {
			var n uint64
			if n, err = d.elements(inner, open, depth); err == nil && n != count {
				err = ErrMalformed
			}
		}
	}
	d.out = append(d.out, end)
	return rest, err
}

// elements appends all values of b, with commas between them.
func (d *decoder) elements(b []byte, open byte, depth int) (n uint64, err error) {
	for ; len(b) > 0; n++ {
		if n > 0 {
			d.out = append(d.out, ',')
		}
		if b, err = d.element(b, open, depth); err != nil {
			return n, err
		}
	}
	return n, nil
}

// element appends an element of an array, or a member of an object.
func (d *decoder) element(b []byte, open byte, depth int) (rest []byte, err error) {
	if open == '{' {
		if b, err = d.text(b); err != nil {
			return nil, err
		}
		d.out = append(d.out, ':')
	}
	return d.value(b, depth)
}

// cut takes a length of 1<<width bytes off b, and as many bytes.
func cut(b []byte, width byte) (inner, rest []byte, err error) {
	n, b, err := prefix(b, width)
	if err != nil || n > uint64(len(b)) {
		return nil, nil, ErrMalformed
	}
	return b[:n], b[n:], nil
}

// cutCounted is cut for a length that a count follows.
func cutCounted(b []byte, width byte) (inner, rest []byte, count uint64, err error) {
	n, b, err := prefix(b, width)
	if err != nil {
		return nil, nil, 0, err
	}
	if count, b, err = prefix(b, width); err != nil || n > uint64(len(b)) {
		return nil, nil, 0, ErrMalformed
	}
	return b[:n], b[n:], count, nil
}

// prefix takes a number of 1<<width bytes off b.
func prefix(b []byte, width byte) (n uint64, rest []byte, err error) {
	size := 1 << width
	if len(b) < size {
		return 0, nil, ErrMalformed
	}
	return little(b[:size]), b[size:], nil
}

// little returns up to eight bytes as a number.
func little(b []byte) (n uint64) {
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	return n
}

// numberSizes are the lengths of numbers by their markers; 0 for a marker of none.
var numberSizes = [256]int{
	markUint64: 8, markUint8: 1, markInt16: 2, markInt32: 4, markInt64: 8, markDouble: 8, markFloat32: 4, markFloat64: 8, markFloat16: 2,
	markItemUint8: 1, markItemInt8: 1, markItemInt16: 2, markItemInt32: 4, markItemInt64: 8, markItemUint32: 4,
}

// number appends the number at the start of b, which follows its marker.
func (d *decoder) number(mark byte, b []byte) (rest []byte, err error) {
	size := numberSizes[mark]
	if size == 0 || len(b) < size {
		return nil, ErrMalformed
	}
	bits := little(b[:size])
	switch mark {
	case markUint64, markUint8, markItemUint8, markItemUint32:
		d.out = strconv.AppendUint(d.out, bits, 10)
	case markItemInt8:
		d.out = strconv.AppendInt(d.out, int64(int8(bits)), 10)
	case markInt16, markItemInt16:
		d.out = strconv.AppendInt(d.out, int64(int16(bits)), 10)
	case markInt32, markItemInt32:
		d.out = strconv.AppendInt(d.out, int64(int32(bits)), 10)
	case markInt64, markItemInt64:
		d.out = strconv.AppendInt(d.out, int64(bits), 10)
	case markFloat16:
		err = d.float(float16(uint16(bits)), 32)
	case markFloat32:
		err = d.float(float64(math.Float32frombits(uint32(bits))), 32)
	default:
		err = d.float(math.Float64frombits(bits), 64)
	}
	return b[size:], err
}

// float appends a number in its shortest form. JSON has neither infinity nor NaN.
func (d *decoder) float(f float64, bits int) error {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return ErrMalformed
	}
	form := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		form = 'e'
	}
	d.out = strconv.AppendFloat(d.out, f, form, -1, bits)
	return nil
}

// float16 returns the value of a number of half precision (IEEE 754).
func float16(bits uint16) float64 {
	const fractionBits, exponentBias = 10, 15
	sign, exponent, fraction := 1.0, int(bits>>fractionBits&0x1f), float64(bits&0x3ff)
	if bits&0x8000 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, 1-exponentBias-fractionBits)
	case 0x1f:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(fraction+1<<fractionBits, exponent-exponentBias-fractionBits)
}

// numbers appends an array of numbers of one type, or an array of such arrays.
func (d *decoder) numbers(b []byte) (rest []byte, err error) {
	kind := b[0] - markNumbers
	width := kind & 1
	nested := kind >= markNumberArrays-markNumbers
	b = b[1:]
	if nested { // the marker of the inner arrays follows
		if len(b) == 0 || b[0] != markNumbers+width {
			return nil, ErrMalformed
		}
		b = b[1:]
	}
	if len(b) == 0 {
		return nil, ErrMalformed
	}
	mark := b[0]
	each, b, err := prefix(b[1:], width)
	if err != nil || numberSizes[mark] == 0 {
		return nil, ErrMalformed
	}
	if !nested {
		return d.numberArray(mark, each, b)
	}
	count, b, err := prefix(b, width)
	if err != nil {
		return nil, err
	}
	d.out = append(d.out, '[')
	for i := range count {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		if b, err = d.numberArray(mark, each, b); err != nil {
			return nil, err
		}
		if err := d.room(); err != nil { // empty arrays take no bytes of the document
			return nil, err
		}
	}
	d.out = append(d.out, ']')
	return b, nil
}

func (d *decoder) numberArray(mark byte, count uint64, b []byte) (rest []byte, err error) {
	d.out = append(d.out, '[')
	for i := range count {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		if b, err = d.number(mark, b); err != nil {
			return nil, err
		}
	}
	d.out = append(d.out, ']')
	return b, nil
}

// reference returns the document from the string on that a reference's offset names.
func (d *decoder) reference(b []byte) (target, rest []byte, err error) {
	size := int(b[0]-markReference) + 1
	if len(b) < 1+size {
		return nil, nil, ErrMalformed
	}
	var wide [8]byte
	copy(wide[:], b[1:1+size])
	at := binary.LittleEndian.Uint64(wide[:])
	if at >= uint64(len(d.all)) {
		return nil, nil, ErrMalformed
	}
	target = d.all[at:]
	if mark := target[0]; mark < markSystem || mark >= markReference {
		return nil, nil, ErrMalformed // a reference to a reference could be endless
	}
	return target, b[1+size:], nil
}
