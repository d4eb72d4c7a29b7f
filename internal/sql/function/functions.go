// SPDX-License-Identifier: MIT

// Package function is the built-in functions: which there are, how they are spelled, how
// many arguments they take, and what they make of them. It knows values, and nothing of
// expressions, queries or items.
//
// Rules for all of them, which the functions' own comments do not repeat:
//
//  1. An argument of a wrong type, and undefined, make the result undefined, not
//     an error. The exceptions say so.
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

// maxResultBytes bounds the text that one expression makes. An item has at most
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

	// Metric measures vectors in calls that name none: that of the container's
	// policy.
	Metric Metric

	// Interrupted, if set, is asked now and then; an error ends the execution.
	Interrupted func() error
	// Every is how many steps of work pass between two questions to Interrupted; 0 is
	// ticksPerCheck.
	Every int

	err     error // the first failure of a function
	left    int   // steps until the next question; 0 if they are still to be counted
	regexes map[regexKey]*regex
	terms   map[string][]string // of full-text search, taken apart
	vectors [2]vectorReader
}

// fail notes why the execution cannot go on. The function that calls it returns
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
	// ticksPerCheck is how many steps of work pass between two questions to
	// Interrupted.
	ticksPerCheck = 256
	// tickBytes is how much text a function reads or makes in a step of work.
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

// spend is so many steps at once: whoever is about to do work that cannot be
// interrupted says how much it is.
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

// read is the work of reading a text, in which so much is done with every byte. It
// reports whether to go on.
func (cx *Context) Read(bytes, perByte int) bool {
	if bytes*perByte < TickBytes {
		return true
	}
	return cx.spend(bytes*perByte/TickBytes) == nil
}

// anyNumber as a Function's Max means that there is no upper bound.
const anyNumber = -1

// Function is one built-in function.
type Function struct {
	Name string // canonical: upper case
	Min  int    // of arguments
	Max  int    // of arguments, or -1 for any number

	// Eval computes a call. It is nil for aggregates and for functions that only
	// ORDER BY RANK knows, which are no functions of one item.
	Eval func(cx *Context, args []datum.Value) datum.Value
	// Planar, if set, computes a call where places are on a plane.
	Planar func(cx *Context, args []datum.Value) datum.Value

	// Check, if set, looks at the arguments that are known before the execution
	// (the others are undefined) and refuses what can never work.
	Check func(args []datum.Value) *syntax.Error
	// CheckedArgument is the argument that Check is about, if it is not the call.
	CheckedArgument int

	NonDeterministic bool // may differ from call to call: not folded, not cached
	AggregateOnly    bool
	RankOnly         bool // allowed in ORDER BY RANK alone
}

// Arity returns the message for a call with n arguments, or "" if n is right.
func (f *Function) Arity(n int) string {
	switch {
	case n >= f.Min && (n <= f.Max || f.Max == anyNumber):
		return ""
	case f.Max == anyNumber:
		return fmt.Sprintf("The %s function requires at least %d argument(s).", f.Name, f.Min)
	case f.Min != f.Max:
		return fmt.Sprintf("The %s function requires %d to %d argument(s).", f.Name, f.Min, f.Max)
	}
	return fmt.Sprintf("The %s function requires %d argument(s).", f.Name, f.Min)
}

// lookupFunction finds a function by any of its spellings, in any case.
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
	aggregateFunctions(),
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

func indexFunctions(list []Function) map[string]*Function {
	index := make(map[string]*Function, 2*len(list))
	for i := range list {
		index[list[i].Name] = &list[i]
	}
	for spelling, name := range alternativeSpellings() {
		f := index[name]
		if f == nil || index[spelling] != nil {
			panic("sql: alternative spelling " + spelling + " of " + name)
		}
		index[spelling] = f
	}
	return index
}

// alternativeSpellings lists the other names that the service accepts.
func alternativeSpellings() map[string]string {
	return map[string]string{
		"_TRY_ARRAY_CONTAINS":   "ARRAY_CONTAINS",
		"ARRAYAVG":              "ARRAY_AVG",
		"ARRAYCONCAT":           "ARRAY_CONCAT",
		"ARRAYCONTAINS":         "ARRAY_CONTAINS",
		"ARRAYCONTAINSALL":      "ARRAY_CONTAINS_ALL",
		"ARRAYCONTAINSANY":      "ARRAY_CONTAINS_ANY",
		"ARRAYLENGTH":           "ARRAY_LENGTH",
		"ARRAYMAX":              "ARRAY_MAX",
		"ARRAYMEDIAN":           "ARRAY_MEDIAN",
		"ARRAYMIN":              "ARRAY_MIN",
		"ARRAYSLICE":            "ARRAY_SLICE",
		"ARRAYSUM":              "ARRAY_SUM",
		"CONTAINSALLCI":         "CONTAINS_ALL_CI",
		"CONTAINSALLCS":         "CONTAINS_ALL_CS",
		"CONTAINSANYCI":         "CONTAINS_ANY_CI",
		"CONTAINSANYCS":         "CONTAINS_ANY_CS",
		"FULLTEXT_CONTAINS":     "FULLTEXTCONTAINS",
		"FULLTEXT_CONTAINS_ALL": "FULLTEXTCONTAINSALL",
		"FULLTEXT_CONTAINS_ANY": "FULLTEXTCONTAINSANY",
		"INDEXOF":               "INDEX_OF",
		"INTBITWISEAND":         "INTBITAND",
		"INTBITWISELEFTSHIFT":   "INTBITLEFTSHIFT",
		"INTBITWISENOT":         "INTBITNOT",
		"INTBITWISEOR":          "INTBITOR",
		"INTBITWISERIGHTSHIFT":  "INTBITRIGHTSHIFT",
		"INTBITWISEXOR":         "INTBITXOR",
		"INTMULTIPLY":           "INTMUL",
		"ISARRAY":               "IS_ARRAY",
		"ISBOOL":                "IS_BOOL",
		"IS_BOOLEAN":            "IS_BOOL",
		"ISDATETIME":            "IS_DATETIME",
		"ISDEFINED":             "IS_DEFINED",
		"ISFINITENUMBER":        "IS_FINITE_NUMBER",
		"ISINTEGER":             "IS_INTEGER",
		"ISNULL":                "IS_NULL",
		"ISNUMBER":              "IS_NUMBER",
		"ISOBJECT":              "IS_OBJECT",
		"ISPRIMITIVE":           "IS_PRIMITIVE",
		"ISSTRING":              "IS_STRING",
		"OBJECT_TO_ARRAY":       "OBJECTTOARRAY",
		"SET_DIFFERENCE":        "SETDIFFERENCE",
		"SET_EQUAL":             "SETEQUAL",
		"SET_INTERSECT":         "SETINTERSECT",
		"SET_UNION":             "SETUNION",
		"STRING_EQUALS":         "STRINGEQUALS",
		"STRING_JOIN":           "STRINGJOIN",
		"STRING_SPLIT":          "STRINGSPLIT",
		"STRING_TO_ARRAY":       "STRINGTOARRAY",
		"STRING_TO_BOOLEAN":     "STRINGTOBOOLEAN",
		"STRING_TO_NULL":        "STRINGTONULL",
		"STRING_TO_NUMBER":      "STRINGTONUMBER",
		"STRING_TO_OBJECT":      "STRINGTOOBJECT",
		"TO_STRING":             "TOSTRING",
	}
}

// aggregateFunctions are here for their names and arity alone.
func aggregateFunctions() []Function {
	var list []Function
	for _, name := range []string{"AVG", "COUNT", "COUNTIF", "MAKELIST", "MAKESET", "MAX", "MIN", "SUM"} {
		list = append(list, Function{Name: name, Min: 1, Max: 1, AggregateOnly: true})
	}
	return list
}

// optional returns the i-th argument, or undefined if the call has fewer.
func optional(args []datum.Value, i int) datum.Value {
	if i < len(args) {
		return args[i]
	}
	return datum.Undefined()
}

// truth is the result of a comparison that may be undecided.
type truth uint8

const (
	unknown truth = iota
	isFalse
	isTrue
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// anyOf joins the tests of terms as OR does: one that holds decides, and one that
// is unknown leaves the rest open.
func anyOf(terms []datum.Value, test func(datum.Value) truth) datum.Value {
	open := false
	for _, term := range terms {
		switch test(term) {
		case isTrue:
			return datum.Bool(true)
		case unknown:
			open = true
		}
	}
	if open {
		return datum.Undefined()
	}
	return datum.Bool(false)
}

// allOf joins the tests of terms as AND does.
func allOf(terms []datum.Value, test func(datum.Value) truth) datum.Value {
	open := false
	for _, term := range terms {
		switch test(term) {
		case isFalse:
			return datum.Bool(false)
		case unknown:
			open = true
		}
	}
	if open {
		return datum.Undefined()
	}
	return datum.Bool(true)
}
