// SPDX-License-Identifier: MIT

package engine

import (
	"strconv"
	"strings"
	"testing"
)

// TestQueriesAreKept parses more queries than are kept: those in use stay, and there
// are never more than twice as many as should be.
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

// TestQueriesThatAreNotKept: what does not parse, and what is long, is parsed anew.
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
