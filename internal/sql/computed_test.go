// SPDX-License-Identifier: MIT

package sql

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// A path into a computed property leaves the property itself as it is.
func TestPathIntoComputedProperty(t *testing.T) {
	definition, err := syntax.Parse("SELECT VALUE {x: c.n} FROM c")
	if err != nil {
		t.Fatal(err)
	}
	q, err := syntax.Parse("SELECT c.cp.x, c.cp FROM c")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(q, CompileOptions{Computed: []Computed{{Name: "cp", Query: definition}}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Evaluate(p, [][]byte{[]byte(`{"n":1}`)}, &function.Context{})
	if err != nil || len(rows) != 1 || string(rows[0]) != `{"x":1,"cp":{"x":1}}` {
		t.Errorf("got %q, %v", rows, err)
	}
}
