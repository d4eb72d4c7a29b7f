// SPDX-License-Identifier: MIT

package query

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/mayflydb/mayfly/internal/value"
)

// An index has the items of all partition keys. One key's first rows are found along
// it, unless they lie behind too many of others: then all of the key's items are read
// instead, and the rows are the same.
func TestWalkAmongOtherPartitionKeys(t *testing.T) {
	const mine, others = 300, 6000
	f := newFixture(t, `"indexingPolicy":{"compositeIndexes":[[{"path":"/x"},{"path":"/y"}]]}`)
	f.fillWith(others, func(i int) string { return fmt.Sprintf(`"x":%d,"y":1`, i) })
	for i := range mine {
		f.put("l", strconv.Itoa(i), fmt.Sprintf(`"x":%d,"y":%d`, others+i, i%2))
	}
	up, down := make([]string, mine), make([]string, mine)
	for i := range mine {
		up[i] = strconv.Itoa(others + i)
		down[mine-1-i] = up[i]
	}
	odd := slices.DeleteFunc(slices.Clone(down), func(x string) bool { return (x[len(x)-1]-'0')%2 == 0 })
	for _, c := range []struct {
		text, plan string
		want       []string
		mostRows   int64
	}{
		{"SELECT VALUE c.x FROM c ORDER BY c.x DESC", "ordered /x descending", down, mine + 1},
		{"SELECT VALUE c.x FROM c WHERE c.x > 0 ORDER BY c.x DESC OFFSET 2 LIMIT 5", "ordered /x descending > 0", down[2:7], 8},
		{"SELECT VALUE c.x FROM c WHERE c.y + 0 = 1 ORDER BY c.x DESC OFFSET 0 LIMIT 5", "ordered /x descending", odd[:5], 11},
		{"SELECT VALUE c.x FROM c ORDER BY c.x DESC, c.y DESC OFFSET 0 LIMIT 5", "composite ordered /x, /y, backwards", down[:5], 6},
		{"SELECT VALUE c.x FROM c ORDER BY c.x", "scan, sort", up, passedPerItem * (mine + 1)},
		{"SELECT VALUE c.x FROM c ORDER BY c.x OFFSET 2 LIMIT 5", "scan, sort", up[2:7], passedPerItem * (mine + 1)},
		{"SELECT VALUE c.x FROM c ORDER BY c.x, c.y OFFSET 0 LIMIT 5", "scan, sort", up[:5], passedPerItem * (mine + 1)},
		{"SELECT DISTINCT VALUE c.x FROM c ORDER BY c.x OFFSET 0 LIMIT 5", "scan, sort", up[:5], passedPerItem * (mine + 1)},
		{"SELECT VALUE c.x FROM c WHERE c.x > 0 OFFSET 2 LIMIT 5", "scan", up[2:7], passedPerItem * (mine + 1)},
		{fmt.Sprintf("SELECT VALUE COUNT(1) FROM c WHERE c.x >= %d", others-100), fmt.Sprintf("count /x >= %d", others-100), []string{strconv.Itoa(mine)}, 100 + mine},
	} {
		q := f.request(c.text)
		q.Scope.Logical = f.logical("l")
		page := f.page(q)
		if got := rowsOf(t, page); page.Plan() != c.plan || !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %s: %s\nwant %s: %s", c.text, page.Plan(), got, c.plan, c.want)
		}
		if again := f.page(q); again.Work != page.Work {
			t.Errorf("%s: with rows in memory %+v, at first %+v", c.text, again.Work, page.Work)
		}
		if page.Work.IndexRows > c.mostRows {
			t.Errorf("%s: read %d index rows, want at most %d", c.text, page.Work.IndexRows, c.mostRows)
		}
		for _, q.MaxRows = range []int{1, 3, 100} {
			if q.MaxRows == 1 && len(c.want) > 100 {
				continue // each page reads all items
			}
			if got := f.all(q); !slices.Equal(got, c.want) {
				t.Errorf("%s, %d at a time: got %s", c.text, q.MaxRows, got)
			}
		}
	}
}

// Of very many partition keys with one beginning only the first are counted: the walk
// does not end when it has met as many.
func TestWalkAmongManyKeysWithOneBeginning(t *testing.T) {
	const mine, others = 1200, 3000
	f := newFixture(t, `"partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}`)
	put := func(a string, i, x int) {
		k := value.PartitionKey{value.String(a), value.Number(float64(i))}
		f.putAs(keyIn(f.under(k), "i"), fmt.Appendf(nil, `{"id":"i","a":%q,"b":%d,"x":%d}`, a, i, x))
	}
	want := make([]string, mine)
	for i := range mine {
		put("mine", i, 2*i)
		want[i] = strconv.Itoa(2 * i)
	}
	put("other", 0, 2*1000-1) // after the thousandth
	for i := range others {
		put("other", 1+i, 2*mine+i)
	}
	q := f.request("SELECT VALUE c.x FROM c ORDER BY c.x")
	q.Scope.Logical = f.under(value.PartitionKey{value.String("mine")})
	q.MaxRows = 2 * mine
	page := f.page(q)
	if got := rowsOf(t, page); !slices.Equal(got, want) {
		t.Errorf("%s: got %d rows, want %d", page.Plan(), len(got), len(want))
	}
}

// A set that is far behind the others looks up where they are, also where what it has
// on the way is of other partition keys.
func TestSetsLookUpPastOtherPartitionKeys(t *testing.T) {
	const mine, first, between = 300, 1000, 500
	f := newFixture(t, "")
	f.fillWith(first, func(int) string { return `"a":1` })
	for i := range mine {
		f.put("l", strconv.Itoa(i), `"a":1,"b":2`)
		for n := range between {
			if i < 4 {
				f.put("m", fmt.Sprint(i, n), `"b":2`)
			}
		}
	}
	q := f.request("SELECT TOP 3 VALUE c.id FROM c WHERE c.a = 1 AND c.b = 2")
	q.Scope.Logical = f.logical("l")
	page := f.page(q)
	if got, want := rowsOf(t, page), []string{`"0"`, `"1"`, `"2"`}; page.Plan() != "intersection of seek /a = 1, seek /b = 2" || !slices.Equal(got, want) {
		t.Errorf("got %s: %s, want %s", page.Plan(), got, want)
	}
	if most := int64(first + 10*skipRows); page.Work.IndexRows > most {
		t.Errorf("read %d index rows, want at most %d", page.Work.IndexRows, most)
	}
}
