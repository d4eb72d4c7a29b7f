// SPDX-License-Identifier: MIT

package query

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const bySameAndI = `"defaultTtl":-1,"indexingPolicy":{"compositeIndexes":[[{"path":"/same"},{"path":"/i","order":"descending"}]]}`

// A limit reads about as many items as it has rows, whatever the index holds.
func TestCompositeReadsLittle(t *testing.T) {
	f := newFixture(t, bySameAndI)
	f.fillWith(2000, func(i int) string { return fmt.Sprintf(`"same":%d,"i":%d`, i%2, i) })
	for _, c := range []struct {
		text  string
		first string
	}{
		{"SELECT TOP 10 VALUE c.i FROM c ORDER BY c.same, c.i DESC", "1998"},
		{"SELECT TOP 10 VALUE c.i FROM c ORDER BY c.same DESC, c.i", "1"},
		{"SELECT TOP 10 VALUE c.i FROM c WHERE c.same = 1 ORDER BY c.same, c.i DESC", "1999"},
		{"SELECT TOP 10 VALUE c.i FROM c WHERE c.same = 1 AND c.i < 500 ORDER BY c.same, c.i DESC", "499"},
		{"SELECT VALUE c.i FROM c WHERE c.same = 1 AND c.i > 500 ORDER BY c.same DESC, c.i OFFSET 5 LIMIT 5", "511"},
		{"SELECT TOP 1 VALUE c.i FROM c WHERE c.same = 1 AND c.i > 1998", "1999"},
	} {
		page := f.page(f.request(c.text))
		if rows := rowsOf(t, page); len(rows) == 0 || rows[0] != c.first {
			t.Errorf("%s: got %v, want %s first", c.text, rows, c.first)
		}
		if !strings.HasPrefix(page.Plan(), "composite") || page.Work.Items > 12 || page.Work.IndexRows > 12 {
			t.Errorf("%s: %s read %d items and %d index rows", c.text, page.Plan(), page.Work.Items, page.Work.IndexRows)
		}
	}
}

// Between pages items come, go, expire and change, the index goes and comes back: no row
// that was there all along is missed, and none comes twice.
func TestCompositePagesAmongChanges(t *testing.T) {
	long := strings.Repeat("x", 300)
	values := []string{`"same":1,"i":1`, `"same":1,"i":2`, `"same":1,"i":2`, `"same":1`, `"i":5`, `"same":[2],"i":1`, `"same":[1],"i":1`,
		`"same":"` + long + `b"`, `"same":"` + long + `a","i":1`, `"same":"` + long + `a","i":2`, `"same":{},"i":null`, ``}
	for _, text := range []string{
		"SELECT VALUE c.id FROM c ORDER BY c.same, c.i DESC",
		"SELECT VALUE c.id FROM c ORDER BY c.same DESC, c.i",
		`SELECT VALUE c.id FROM c WHERE c.same >= "` + long + `" ORDER BY c.same, c.i DESC`,
		"SELECT VALUE c.id FROM c WHERE c.same = 1 AND c.i > 0",
	} {
		for at := range len(values) {
			f := newFixture(t, bySameAndI)
			for i, v := range values {
				f.put("k", fmt.Sprint("i", i), strings.TrimPrefix(v+`,"ttl":-1`, ","))
			}
			all := f.query(text)
			if at >= len(all) {
				continue
			}
			q := f.request(text)
			var got []string
			q.MaxRows = 1
			for step := 0; ; step++ {
				if step == at {
					f.put("k", "expires", `"same":1,"i":3,"ttl":1`)
					f.put("k", "goes", `"same":1,"i":4`)
					f.remove("k", "goes")
					f.remove("k", strings.Trim(all[at], `"`))
					f.advance(2 * time.Second)
					q.NowMs = f.clock.Now()
				}
				page := f.page(q)
				got = append(got, rowsOf(t, page)...)
				if q.Token = page.Token; q.Token == "" {
					break
				}
			}
			want := slices.Delete(slices.Clone(all), at, at+1)
			if !slices.Equal(got, want) {
				t.Errorf("%s, change at row %d: got %v, want %v", text, at, got, want)
			}
		}
	}
}

// A page goes on in the order of the keys if the index is gone; a place in an index
// means nothing in another.
func TestCompositePagesAfterAChangeOfPolicy(t *testing.T) {
	f := newFixture(t, bySameAndI)
	f.fillWith(20, func(i int) string { return fmt.Sprintf(`"same":%d,"i":%d`, i%2, i) })
	ordered, ranged := f.request("SELECT VALUE c.i FROM c ORDER BY c.same, c.i DESC"), f.request("SELECT VALUE c.i FROM c WHERE c.same = 1 AND c.i > 3")
	all := f.all(ordered)
	ordered.MaxRows, ranged.MaxRows, ranged.gathered = 7, 2, 1
	ordered.Token, ranged.Token = f.page(ordered).Token, f.page(ranged).Token
	f.reconfigure(`"defaultTtl":-1,"indexingPolicy":{"compositeIndexes":[[{"path":"/same"},{"path":"/i"}]]}`)
	if got := f.all(ordered); !slices.Equal(got, all[7:]) {
		t.Errorf("without the index: got %v, want %v", got, all[7:])
	}
	f.reindex(100)
	if _, err := Run(f.context(), ranged); !errors.Is(err, ErrToken) {
		t.Errorf("a place in another index: got %v, want ErrToken", err)
	}
	f.reconfigure(bySameAndI)
	f.reindex(100)
	if got := f.all(ordered); !slices.Equal(got, all[7:]) {
		t.Errorf("with the index built anew: got %v, want %v", got, all[7:])
	}
	if got := f.all(ranged); len(got) != 6 {
		t.Errorf("with the index built anew: got %v, want 6 rows", got)
	}
}

// Tokens are foreign bytes.
func TestCompositeTokensThatAreWrong(t *testing.T) {
	f := newFixture(t, bySameAndI)
	f.fillWith(20, func(i int) string { return fmt.Sprintf(`"same":%d,"i":%d`, i%2, i) })
	for _, text := range []string{"SELECT VALUE c.i FROM c ORDER BY c.same, c.i DESC", "SELECT VALUE c.i FROM c WHERE c.same = 1 AND c.i > 3"} {
		q := f.request(text)
		q.MaxRows, q.gathered = 3, 1
		raw, err := base64.RawURLEncoding.DecodeString(f.page(q).Token)
		f.must(err)
		for _, change := range []map[string]any{
			{"v": ""}, {"v": nil}, {"o": 0}, {"o": -1}, {"f": 7}, {"k": nil}, {"k": []any{1}}, {"k": []any{map[string]any{"j": 1}}}, {"p": "composite:1"}, {"p": "ordered:1"}, {"p": "none"}, {"p": "range:9"}, {"p": "set:9"},
			{"v": "////"}, {"v": "AA=="},
		} {
			var token map[string]any
			f.must(json.Unmarshal(raw, &token))
			for name, v := range change {
				token[name] = v
			}
			wrong, err := json.Marshal(token)
			f.must(err)
			q.Token = base64.RawURLEncoding.EncodeToString(wrong)
			if _, err := Run(f.context(), q); err != nil && !errors.Is(err, ErrToken) {
				t.Errorf("%s: %v", wrong, err)
			}
		}
	}
}
