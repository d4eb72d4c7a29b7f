// SPDX-License-Identifier: MIT

package query

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
)

// What a query holds is taken of what requests share, and given back. If there is none,
// one that cannot do without is refused, and another has shorter pages.
func TestQueriesTakeMemory(t *testing.T) {
	f := newFixture(t, "")
	f.fillWith(1000, func(i int) string {
		return fmt.Sprintf(`"x":%d,"pad":"%s%d","tags":[1,2,3,4]`, i, x(400), i)
	})
	const total = 16 << 20
	for _, c := range []struct {
		text  string
		holds bool
	}{
		{"SELECT * FROM c", false},
		{"SELECT c.id, c.pad FROM c WHERE c.x >= 0 ORDER BY c.x", false},
		{"SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE t > 1", false},
		{"SELECT c.id, c.pad FROM c ORDER BY c.y OFFSET 500 LIMIT 500", true},
		{"SELECT DISTINCT c.pad FROM c", false},
		{"SELECT c.pad, COUNT(1) AS n FROM c GROUP BY c.pad", true},
		{"SELECT c.x, MAX(c.pad) AS m FROM c GROUP BY c.x", true},
		{"SELECT c.z, MAKELIST(c.pad) AS m FROM c GROUP BY c.z", true},
		{"SELECT VALUE MAKESET(c.pad) FROM c", true},
		{"SELECT VALUE s.pad FROM (SELECT DISTINCT c.pad FROM c) s", true},
	} {
		for _, taken := range []int64{0, total} {
			budget := memory.NewBudget(total)
			budget.Wait = time.Millisecond
			others, share := budget.Share(), budget.Share()
			if !others.TryTake(taken) {
				t.Fatal("refused")
			}
			q := f.request(c.text)
			q.MaxRows, q.MaxBytes, q.Memory = 1<<20, 4<<20, &share
			page, err := Run(f.context(), q)
			switch {
			case taken > 0 && c.holds:
				if !errors.Is(err, memory.ErrFull) {
					t.Errorf("%s: %v and %d rows, want %v", c.text, err, page.Count, memory.ErrFull)
				}
			case err != nil:
				t.Errorf("%s: %v", c.text, err)
			case taken == 0 && page.Token != "":
				t.Errorf("%s: %d rows and a token", c.text, page.Count)
			}
			if used := share.Used(); used > int64(2*cap(page.Rows)+memory.FreeBytes) {
				t.Errorf("%s: %d bytes are used for a page of %d", c.text, used, len(page.Rows))
			}
			share.Close()
			others.Close()
			if use := budget.Use(); use.Held != 0 {
				t.Errorf("%s: at the end: %+v", c.text, use)
			}
		}
	}
}

// Pages that end early since there is no memory have all rows between them.
func TestPagesWithoutMemory(t *testing.T) {
	f := newFixture(t, "")
	f.fillWith(300, func(i int) string { return fmt.Sprintf(`"x":%d,"pad":"%s"`, i, x(1000)) })
	budget := memory.NewBudget(1 << 20)
	budget.Wait = time.Millisecond
	others := budget.Share()
	defer others.Close()
	if !others.TryTake(1 << 20) {
		t.Fatal("refused")
	}
	for _, text := range []string{"SELECT VALUE c.pad FROM c", "SELECT VALUE c.pad FROM c WHERE c.x >= 0 ORDER BY c.x DESC"} {
		want := f.query(text)
		var got []string
		q := f.request(text)
		q.MaxRows, q.MaxBytes = 1000, 4<<20
		pages := 0
		for ; pages == 0 || q.Token != ""; pages++ {
			share := budget.Share()
			q.Memory = &share
			page, err := Run(f.context(), q)
			if err != nil || page.Count == 0 {
				t.Fatalf("%s: page %d: %d rows, %v", text, pages, page.Count, err)
			}
			share.Close()
			got = append(got, rowsOf(t, page)...)
			q.Token = page.Token
		}
		if !slices.Equal(got, want) || pages < 3 {
			t.Errorf("%s: %d rows in %d pages, want %d", text, len(got), pages, len(want))
		}
	}
}
