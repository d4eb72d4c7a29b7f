// SPDX-License-Identifier: MIT

package value

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendShortest appends valid, compact JSON with its numbers in the shortest form: those
// with a point or an exponent are written as JavaScript writes them, so that 1.0, -2.50
// and 1E2 become 1, -2.5 and 100. Numbers of digits alone keep all of them.
func AppendShortest(dst []byte, json string) []byte {
	from := 0 // what has been appended
	for i := 0; i < len(json); {
		end, shortest := i+1, true
		switch marks[json[i]] {
		case markQuote:
			end = StringEnd(json, i)
		case markPoint:
			end, shortest = fractionEnd(json, i)
		case markExponent:
			shortest = i == 0 || !isDigit(json[i-1]) // it is of true or false
		}
		if !shortest {
			start := i
			for start > from && (isDigit(json[start-1]) || json[start-1] == '-') {
				start--
			}
			end = literalEnd(json, i)
			dst = appendNumber(append(dst, json[from:start]...), json[start:end])
			from = end
		}
		i = end
	}
	return append(dst, json[from:]...)
}

// ShortestEnd returns what follows the array or object that begins at json[i], and whether
// all numbers in it are certainly in the shortest form: then AppendShortest would copy it.
func ShortestEnd(json string, i int) (end int, shortest bool) {
	shortest = true
	for depth := 0; i < len(json); {
		switch marks[json[i]] {
		case markQuote:
			i = StringEnd(json, i)
			continue
		case markOpens:
			depth++
		case markCloses:
			if depth--; depth == 0 {
				return i + 1, shortest
			}
		case markPoint:
			var certain bool
			i, certain = fractionEnd(json, i)
			shortest = shortest && certain
			continue
		case markExponent:
			shortest = shortest && !isDigit(json[i-1])
		}
		i++
	}
	return i, shortest
}

// What a byte outside of strings is.
const (
	markQuote = iota + 1
	markOpens
	markCloses
	markPoint
	markExponent // or of a word
)

var marks = [256]byte{'"': markQuote, '{': markOpens, '[': markOpens, '}': markCloses, ']': markCloses,
	'.': markPoint, 'e': markExponent, 'E': markExponent}

// smallestPlain is how numbers begin that JavaScript writes with an exponent.
const smallestPlain = "0.000000"

// fractionEnd returns what follows the fraction that begins with the given point, and
// whether its number is certainly in the shortest form: a decimal fraction of so few digits
// is the shortest one of its float64, unless it ends with zeros.
func fractionEnd(json string, point int) (end int, shortest bool) {
	for end = point + 1; end < len(json) && isDigit(json[end]); end++ {
	}
	if json[end-1] == '0' || end < len(json) && json[end]|0x20 == 'e' {
		return end, false
	}
	// Most numbers are short, and need no look at their beginning.
	if end-point <= fewDigits && (point < fewDigits || !isDigit(json[point-fewDigits])) {
		return end, true
	}
	start := point
	for start > 0 && isDigit(json[start-1]) {
		start--
	}
	return end, end-start-1 <= maxExactDigits && !strings.HasPrefix(json[start:end], smallestPlain)
}

// fewDigits are so few that as many before the point and after it are not too many.
const fewDigits = 7

// appendNumber appends a number as JavaScript writes it.
func appendNumber(dst []byte, number string) []byte {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return append(dst, number...) // which no valid item has
	}
	return jsontext.AppendFloat(dst, f, 64)
}
