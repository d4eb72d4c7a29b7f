// SPDX-License-Identifier: MIT

package engine

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// TestQueriesAreKept parses more queries than are kept: those in use stay, and there are
// never more than twice keptQueries.
func TestQueriesAreKept(t *testing.T) {
	var k queries
	const often = "SELECT * FROM c WHERE c.a = @a"
	first, err := k.parse(often)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * keptQueries {
		if _, err := k.parse("SELECT VALUE " + strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		if i%(keptQueries/2) != 0 {
			continue
		}
		if again, err := k.parse(often); err != nil || again != first {
			t.Fatalf("after %d others it was parsed again (%v)", i, err)
		}
		if n := len(k.mu.recent) + len(k.mu.older); n > 2*keptQueries {
			t.Fatalf("%d are kept", n)
		}
	}
	for range 2 * keptQueries {
		if _, err := k.parse("SELECT VALUE " + strconv.Itoa(keptQueries+len(k.mu.recent)+1000)); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := k.parse(often); err != nil || again == first {
		t.Errorf("what was not asked for is kept for ever (%v)", err)
	}
}

// TestQueriesThatAreNotKept: invalid and long queries are parsed every time.
func TestQueriesThatAreNotKept(t *testing.T) {
	var k queries
	for range 2 {
		if q, err := k.parse("SELECT FROM"); err == nil {
			t.Fatalf("parsed: %v", q)
		}
		if _, err := k.parse("SELECT VALUE '" + strings.Repeat("x", maxKeptQueryBytes) + "'"); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.mu.recent) != 0 {
		t.Errorf("%d are kept", len(k.mu.recent))
	}
}

// TestProgramsAreKept: a program serves other values of its parameters, for the version
// of the container that it was compiled for.
func TestProgramsAreKept(t *testing.T) {
	var k queries
	q, err := k.parse("SELECT * FROM c WHERE c.a = @a")
	if err != nil {
		t.Fatal(err)
	}
	one, other := map[string]datum.Value{"@a": datum.Int(1)}, map[string]datum.Value{"@a": datum.Int(2)}
	container := &catalog.Container{}
	if _, ok := q.bind(container, one); ok {
		t.Error("bound before it was compiled")
	}
	p, err := sql.Compile(q.tree, sql.CompileOptions{Params: one})
	if err != nil {
		t.Fatal(err)
	}
	q.keep(container, p)
	bound, ok := q.bind(container, other)
	if !ok || bound.Params()["@a"] != datum.Int(2) || p.Params()["@a"] != datum.Int(1) {
		t.Errorf("bound: %v, to %v", ok, bound.Params())
	}
	if _, ok := q.bind(&catalog.Container{}, other); ok {
		t.Error("bound in another container")
	}
}
