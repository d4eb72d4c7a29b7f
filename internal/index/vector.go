// SPDX-License-Identifier: MIT

// Vector entries. Every item has one for each path that has a vector index:
//
//	{path} 01    carries the vector: how it is kept, and its numbers, of four bytes each
//
// So these rows are all items in the order of their ordinals, and whoever wants the
// nearest to a vector walks along them and reads no item but those. A vector's numbers
// are kept as the service keeps them by default; that they are rounded is noted, since
// a query may ask for less precision, which is another number if it is rounded twice.

package index

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// How a vector is kept. What is no vector is not kept at all.
const (
	vectorExact   byte = iota
	vectorRounded      // some numbers have more digits in the item
	vectorOnItem       // too long, or with a number that is too large: it is not here
)

const (
	// maxVectorNumbers is how many numbers a vector in a row has at most.
	maxVectorNumbers = 4096
	vectorNumber     = 4 // bytes
)

// vectors adds the entries of the vectors of o.
func (w *entryWriter) vectors(paths []value.Path, o *value.Object) error {
	for _, p := range paths {
		start := w.open(entryVector, appendPathOf(nil, p), tagEvery)
		end := len(w.buf)
		if raw, ok := o.At(p); ok && raw[0] == '[' {
			w.buf = appendVector(w.buf, raw)
		}
		if err := w.endCarrying(start, end); err != nil {
			return err
		}
	}
	return nil
}

// appendPathOf appends a path as entries have it.
func appendPathOf(dst []byte, p value.Path) []byte {
	var steps [value.MaxPathSegments]step
	for i, name := range p {
		steps[i] = step{name: name}
	}
	return appendTermPath(dst, steps[:len(p)]...)
}

// appendVector appends what the row of an array carries.
func appendVector(dst, array []byte) []byte {
	start := len(dst)
	dst = append(dst, vectorExact)
	c := value.CursorAt(array)
	if !c.Enter() {
		return dst[:start]
	}
	for n := 1; ; n++ {
		if b := c.Next(); b != '-' && (b < '0' || b > '9') {
			return dst[:start]
		}
		f, _ := c.Literal().Number()
		number := float32(f)
		switch {
		case n > maxVectorNumbers || math.IsInf(float64(number), 0):
			return append(dst[:start], vectorOnItem)
		case float64(number) != f:
			dst[start] = vectorRounded
		}
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(number))
		if !c.More() {
			return dst
		}
	}
}

// Vector is what the row of a vector says of it.
type Vector struct {
	// Numbers are none if there is no vector.
	Numbers []float32
	Rounded bool // some have more digits in the item
	// OnItem: it is not in the row.
	OnItem bool
}

// DecodeVector reads what the row of a vector carries. The numbers are put into memory
// that the caller may have from before.
func DecodeVector(carried []byte, memory []float32) (Vector, error) {
	v := Vector{Numbers: memory[:0]}
	if len(carried) == 0 {
		return v, nil
	}
	raw := carried[1:]
	switch how := carried[0]; {
	case how == vectorOnItem && len(raw) == 0:
		v.OnItem = true
		return v, nil
	case how > vectorRounded || len(raw) == 0 || len(raw)%vectorNumber != 0:
		return Vector{}, fmt.Errorf("%w: an index row carries no vector", kv.ErrCorrupt)
	case how == vectorRounded:
		v.Rounded = true
	}
	for ; len(raw) > 0; raw = raw[vectorNumber:] {
		v.Numbers = append(v.Numbers, math.Float32frombits(binary.BigEndian.Uint32(raw)))
	}
	return v, nil
}
