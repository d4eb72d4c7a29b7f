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
		switch shortestSteps[json[i]] {
		case stepOver:
			i++
		case stepString:
			i = textEnd(json, i)
		case stepNumber:
			if json[i] == 'e' && (i == 0 || json[i-1] < '0' || json[i-1] > '9') { // of true or false
				i++
				continue
			}
			start, end := numberAround(json, i)
			if number := json[start:end]; !isShortest(number) {
				dst = append(dst, json[from:start]...)
				dst = appendNumber(dst, number)
				from = end
			}
			i = end
		}
	}
	return append(dst, json[from:]...)
}

// How AppendShortest goes on at a byte outside of strings.
const (
	stepOver = iota
	stepString
	stepNumber // in which this is a point or an exponent, or in a word
)

var shortestSteps = [256]byte{'"': stepString, '.': stepNumber, 'e': stepNumber, 'E': stepNumber}

// textEnd returns what follows the string that begins at json[i].
func textEnd(json string, i int) int {
	for i++; i < len(json); i++ {
		switch json[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(json)
}

// numberAround returns where the number begins and ends of which json[i] is a part.
func numberAround(json string, i int) (start, end int) {
	for start = i; start > 0 && (json[start-1] >= '0' && json[start-1] <= '9' || json[start-1] == '-'); start-- {
	}
	for end = i; end < len(json) && json[end] != ',' && json[end] != '}' && json[end] != ']'; end++ {
	}
	return start, end
}

// smallestPlain is how numbers begin that JavaScript writes with an exponent.
const smallestPlain = "0.000000"

// isShortest reports whether a number with a point or an exponent is certainly in the
// shortest form: a decimal fraction of so few digits is the shortest one of its float64,
// unless it ends with zeros.
func isShortest(number string) bool {
	if len(number) > maxExactDigits || number[len(number)-1] == '0' || strings.ContainsAny(number, "eE") {
		return false
	}
	return !strings.HasPrefix(strings.TrimPrefix(number, "-"), smallestPlain)
}

// appendNumber appends a number as JavaScript writes it.
func appendNumber(dst []byte, number string) []byte {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return append(dst, number...) // which no valid item has
	}
	return jsontext.AppendFloat(dst, f, 64)
}
