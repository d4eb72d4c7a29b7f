// SPDX-License-Identifier: MIT

// Package function is the built-in functions: which there are, how they are spelled, how
// many arguments they take, and what they make of them. It knows values, and nothing of
// expressions, queries or items.
//
// Rules for all of them, which the functions' own comments do not repeat:
//
//  1. An argument of a wrong type, and undefined, make the result undefined, not
//     an error. The caller sees to it for all: [Function.Types].
//  2. The number of arguments has been checked before a function is called.
//  3. A function reads nothing but its arguments and the [Context].
//  4. A result beyond a limit stops the query: see [Context.Fail].
package function

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// ErrResultTooLarge stops a query in which one expression, or one row, has more
// text than a page.
var ErrResultTooLarge = errors.New("sql: a value that the query makes exceeds the size limit")

// MaxResultBytes bounds the text that one expression makes. An item has at most
// 2 MiB, a page of results 4.
const MaxResultBytes = 4 << 20

// Context is what one execution of a query knows besides the items. It belongs
// to that execution alone.
type Context struct {
	// NowMs is the moment of the execution in milliseconds since 1970. All
	// current times in the query are this one.
	NowMs int64

	// Random returns numbers in [0, 1) for RAND.
	Random func() float64

	// UDF calls a user-defined function. Arguments may be undefined.
	UDF func(name string, args []datum.Value) (datum.Value, error)

	// Planar says that geometries lie on a plane, and not on the globe.
	Planar bool

	// Metric measures vectors in calls that name none: that of the container's
	// policy.
	Metric Metric

	// Interrupted, if set, is called every so many steps; an error ends the execution.
	Interrupted func() error
	// Every is how many steps of work pass between two calls of Interrupted; 0 is
	// ticksPerCheck.
	Every int

	err     error // the first failure of a function
	left    int   // steps until the next call of Interrupted; 0 if they are still to be counted
	regexes map[regexKey]*regex
	terms   map[string][]string // of full-text search, taken apart
	vectors [2]vectorReader
}

// Fail notes why the execution cannot go on. The function that calls it returns
// undefined, and the executor asks Err after each item.
func (cx *Context) Fail(err error) datum.Value {
	if cx.err == nil {
		cx.err, cx.left = err, 0
	}
	return datum.Undefined()
}

// Err returns the first failure of a function in this execution.
func (cx *Context) Err() error { return cx.err }

const (
	// ticksPerCheck is how many steps of work pass between two calls of
	// Interrupted.
	ticksPerCheck = 256
	// TickBytes is how much text a function reads or makes in a step of work.
	TickBytes = 8 << 10
)

// Tick counts one step of work and reports whether the execution must end: when
// a function has failed, or when it has been interrupted.
func (cx *Context) Tick() error {
	if cx.left > 1 {
		cx.left--
		return nil
	}
	return cx.spend(1)
}

// spend counts several steps at once, before work of that size which cannot be
// interrupted.
func (cx *Context) spend(steps int) error {
	if cx.err != nil {
		return cx.err
	}
	if cx.left == 0 {
		cx.left = cmp.Or(cx.Every, ticksPerCheck)
	}
	if cx.left -= steps; cx.left > 0 {
		return nil
	}
	cx.left = 0
	if cx.Interrupted != nil {
		cx.err = cx.Interrupted()
	}
	return cx.err
}

// Read counts the steps of reading a text, with so much work for every byte. It reports
// whether the execution may go on.
func (cx *Context) Read(bytes, perByte int) bool {
	if bytes*perByte < TickBytes {
		return true
	}
	return cx.spend(bytes*perByte/TickBytes) == nil
}

// Function is one built-in function.
type Function struct {
	Name string // canonical: upper case
	Also string // other spellings that the service accepts, with spaces between
	// Args has a letter for each argument, which says of what type it must be: see kindsBy.
	// Those behind | may be left out, and * lets the one before it come any number of times.
	Args string

	// Eval computes a call whose arguments are of the right types. It is nil for
	// functions that only ORDER BY RANK knows, which are no functions of one item.
	Eval func(cx *Context, args []datum.Value) datum.Value

	// Check, if set, looks at the arguments that are known before the execution
	// (the others are undefined) and refuses what can never work.
	Check func(args []datum.Value) *syntax.Error
	// CheckedArgument is the argument that Check is about, if it is not the call.
	CheckedArgument int

	NonDeterministic bool // may differ from call to call: not folded, not cached
	RankOnly         bool // allowed in ORDER BY RANK alone

	min, max int // how many arguments
	kinds    []Kinds
}

// anyNumber as a Function's max means that there is no upper bound.
const anyNumber = -1

// Kinds is a set of kinds, by their bits, and perhaps integers.
type Kinds uint8

const (
	defined  Kinds = 1<<datum.KindNull | 1<<datum.KindBool | 1<<datum.KindNumber | 1<<datum.KindString | 1<<datum.KindArray | 1<<datum.KindObject
	integers Kinds = 1 << 7 // of the numbers, those that an int64 holds
)

// kindsBy has what the letters of a Function's Args stand for.
var kindsBy = map[rune]Kinds{
	'.': defined | 1<<datum.KindUndefined, '!': defined, 'b': 1 << datum.KindBool, 'n': 1 << datum.KindNumber,
	'i': 1<<datum.KindNumber | integers, 's': 1 << datum.KindString, 'a': 1 << datum.KindArray, 'o': 1 << datum.KindObject,
}

// readArgs works out what Args says.
func (f *Function) readArgs() {
	optional := false
	for _, letter := range f.Args {
		switch letter {
		case '|':
			optional = true
			continue
		case '*':
			f.max = anyNumber
			continue
		}
		f.kinds = append(f.kinds, kindsBy[letter])
		f.max++
		if !optional {
			f.min++
		}
	}
}

// Types returns what n arguments must be. With one that is not, a call is undefined, and
// Eval is not asked.
func (f *Function) Types(n int) []Kinds {
	types := slices.Clone(f.kinds[:min(n, len(f.kinds))])
	for len(types) < n {
		types = append(types, f.kinds[len(f.kinds)-1])
	}
	return types
}

// Has reports whether an argument is what it must be.
func (k Kinds) Has(v datum.Value) bool {
	return k>>(v.Kind()&7)&1 != 0 && (k&integers == 0 || v.IsInt())
}

// integer returns an argument that is known to be one, as [datum.Value.Number] and
// [datum.Value.Text] return theirs.
func integer(v datum.Value) int64 {
	n, _ := v.AsInt()
	return n
}

// Arity returns the message for a call with n arguments, or "" if n is right.
func (f *Function) Arity(n int) string {
	switch {
	case n >= f.min && (n <= f.max || f.max == anyNumber):
		return ""
	case f.max == anyNumber:
		return fmt.Sprintf("The %s function requires at least %d argument(s).", f.Name, f.min)
	case f.min != f.max:
		return fmt.Sprintf("The %s function requires %d to %d argument(s).", f.Name, f.min, f.max)
	}
	return fmt.Sprintf("The %s function requires %d argument(s).", f.Name, f.min)
}

// Lookup finds a function by any of its spellings, in any case.
func Lookup(name string) (*Function, bool) {
	if f, ok := functions[name]; ok {
		return f, true
	}
	f, ok := functions[strings.ToUpper(name)]
	return f, ok
}

// Of returns the built-in function that a call is of, or nil.
func Of(call *syntax.Call) *Function {
	if call.UDF {
		return nil
	}
	f, _ := Lookup(call.Name)
	return f
}

// functions holds every spelling of every function. It is never written to
// after it has been made.
var functions = indexFunctions(slices.Concat(
	arrayFunctions(),
	typeFunctions(),
	mathFunctions(),
	integerFunctions(),
	stringFunctions(),
	conversionFunctions(),
	regexFunctions(),
	dateFunctions(),
	spatialFunctions(),
	vectorFunctions(),
	fullTextFunctions(),
))

// indexFunctions makes the table of all spellings. Two functions of one spelling are a fault
// of the program, which shows when it starts.
func indexFunctions(list []Function) map[string]*Function {
	index := make(map[string]*Function, 2*len(list))
	for i := range list {
		f := &list[i]
		f.readArgs()
		for _, spelling := range append(strings.Fields(f.Also), f.Name) {
			if index[spelling] != nil {
				panic("sql: two functions are spelled " + spelling)
			}
			index[spelling] = f
		}
	}
	return index
}

// optional returns the i-th argument, or undefined if the call has fewer.
func optional(args []datum.Value, i int) datum.Value {
	if i < len(args) {
		return args[i]
	}
	return datum.Undefined()
}

// anyOf joins the tests of terms as OR does: one that is true decides, and one that
// is undefined leaves the rest open.
func anyOf(terms []datum.Value, test func(datum.Value) datum.Value) datum.Value {
	return joined(terms, test, true)
}

// allOf joins the tests of terms as AND does.
func allOf(terms []datum.Value, test func(datum.Value) datum.Value) datum.Value {
	return joined(terms, test, false)
}

// joined is the boolean that decides if one of the tests has it, and else the other, unless
// a test is undefined.
func joined(terms []datum.Value, test func(datum.Value) datum.Value, decides bool) datum.Value {
	result := datum.Bool(!decides)
	for _, term := range terms {
		switch b, known := test(term).AsBool(); {
		case !known:
			result = datum.Undefined()
		case b == decides:
			return datum.Bool(b)
		}
	}
	return result
}
