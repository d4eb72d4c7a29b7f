// SPDX-License-Identifier: MIT

package script

import (
	"math/big"
	"reflect"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
)

// checkTree refuses what the compiler or the runtime would take without a bound: a
// tree that is too high, regular expressions that are too long, and big integers,
// whose arithmetic cannot be interrupted. Its own recursion ends at maxHeight.
//
// The tree has some eighty kinds of nodes and no walker; going over the fields of
// each by reflection cannot forget one.
func checkTree(tree *ast.Program) error {
	return checkNode(reflect.ValueOf(tree.Body), 0)
}

var (
	fileType    = reflect.TypeFor[*file.File]()
	bigIntType  = reflect.TypeFor[*big.Int]()
	patternType = reflect.TypeFor[ast.RegExpLiteral]()
)

// stepsPerLevel is how many values lie between a node and one below it: a slice, an
// interface, a pointer and a struct at most, and a binding between some.
const stepsPerLevel = 8

func checkNode(v reflect.Value, steps int) error {
	if steps > maxHeight*stepsPerLevel {
		return refused("the body is nested too deep")
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() || v.Type() == fileType {
			return nil
		}
		if v.Type() == bigIntType {
			return refused("SyntaxError: big integers are not supported")
		}
		return checkNode(v.Elem(), steps+1)
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkNode(v.Index(i), steps+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkFields(v, steps)
	}
	return nil
}

func checkFields(v reflect.Value, steps int) error {
	if v.Type() == patternType && len(v.Interface().(ast.RegExpLiteral).Pattern) > maxPatternBytes {
		return refused("SyntaxError: a regular expression has more than %d bytes", maxPatternBytes)
	}
	for i := range v.NumField() {
		// The list of a function's variables repeats nodes of its body: visiting
		// both would double the work with every function within another.
		if v.Type().Field(i).Name == "DeclarationList" {
			continue
		}
		if err := checkNode(v.Field(i), steps+1); err != nil {
			return err
		}
	}
	return nil
}
