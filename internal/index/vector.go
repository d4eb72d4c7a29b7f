// SPDX-License-Identifier: MIT

// Vector entries. Every item has one for each path with a vector index:
//
//	{path} 01    carries the vector: how it is stored, and its numbers, of four bytes each
//
// So these rows list all items in the order of their ordinals, and a query for the nearest
// vectors reads the rows, and then only the items that it returns. Numbers are stored with
// the service's default precision. The row notes whether any was rounded: a query may ask
// for less precision, and rounding twice can give another number than rounding once.

package index

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// How a vector is stored. The row of a value that is not a vector carries nothing.
const (
	vectorExact   byte = iota
	vectorRounded      // some numbers have more digits in the item
	vectorOnItem       // only in the item: it is too long, or has a number that is too large
)

const (
	// maxVectorNumbers is the most numbers that a vector in a row has.
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

// appendPathOf appends the encoding of a path in an entry.
func appendPathOf(dst []byte, p value.Path) []byte {
	var steps [value.MaxPathSegments]step
	for i, name := range p {
		steps[i] = step{name: name}
	}
	return appendTermPath(dst, steps[:len(p)]...)
}

// appendVector appends the data that the row of an array carries.
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

// Vector is the data in the row of a vector.
type Vector struct {
	// Numbers is empty if the item has no vector, and if OnItem is set.
	Numbers []float32
	Rounded bool // some have more digits in the item
	// OnItem means that the vector is only in the item.
	OnItem bool
}

// DecodeVector decodes the data that the row of a vector carries. The numbers are written
// to memory, which the caller may reuse.
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
