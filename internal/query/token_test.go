// SPDX-License-Identifier: MIT

package query

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// pagedQueries go on in every way that there is.
var pagedQueries = []string{
	"SELECT VALUE c.id FROM c",
	"SELECT VALUE c.id FROM c WHERE c.x >= 0",
	"SELECT VALUE c.id FROM c WHERE c.same IN (1, 2)",
	"SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 1)",
	"SELECT VALUE c.id FROM c JOIN t IN c.tags WHERE t != 2",
	"SELECT VALUE c.id FROM c ORDER BY c.x",
	"SELECT VALUE c.id FROM c ORDER BY c.x DESC",
	"SELECT VALUE c.id FROM c ORDER BY c.same",
	"SELECT VALUE c.id FROM c ORDER BY c.long",
	"SELECT VALUE c.id FROM c ORDER BY c.long DESC",
	"SELECT VALUE c.id FROM c WHERE c.x < 1000 ORDER BY c.x DESC",
	"SELECT VALUE c.id FROM c WHERE c.maybe > 0 ORDER BY c.maybe",
	"SELECT VALUE c.id FROM c ORDER BY c.maybe",
	"SELECT DISTINCT VALUE c.id FROM c",
	"SELECT DISTINCT VALUE c.id FROM c ORDER BY c.long",
	"SELECT VALUE c.id FROM c GROUP BY c.id",
	"SELECT VALUE c.id FROM c ORDER BY c.same, c.x DESC",
	"SELECT VALUE c.id FROM c ORDER BY c.same DESC, c.x",
	"SELECT VALUE c.id FROM c WHERE c.same = 1 ORDER BY c.same, c.x DESC",
	"SELECT VALUE c.id FROM c WHERE c.same = 1 AND c.x >= 0 ORDER BY c.same DESC, c.x",
	"SELECT VALUE c.id FROM c WHERE c.same = 1 AND c.x >= 0",
	"SELECT VALUE c.id FROM c WHERE c.maybe >= 0 ORDER BY c.maybe, c.long",
	"SELECT VALUE c.id FROM c ORDER BY c.long DESC, c.maybe DESC",
	"SELECT VALUE c.id FROM c ORDER BY c.long, c.maybe",
	"SELECT DISTINCT VALUE c.id FROM c ORDER BY c.maybe DESC, c.long DESC",
}

// steady are the members of an item that no test touches: it is in the result of
// every query, once.
func steady(i int) string {
	return fmt.Sprintf(`"ttl":-1,"x":%d,"same":1,"tags":[1],"maybe":%d,"long":"%s%03d"`, i*7%50, 1+i%5, x(300), i*3%40)
}

// Pages go on after whatever happens between them: nothing that was there all the
// time is lost or comes twice, and it is in order.
func TestPagesSurviveChanges(t *testing.T) {
	world := newWorld(t, inMemory(t))
	containers := 0
	for range kvtest.LongFactor(t) {
		rapid.Check(t, func(t *rapid.T) {
			containers++
			f := *world
			f.t = t
			f.create(fmt.Sprint("c", containers), `"defaultTtl":-1,"indexingPolicy":`+composites([]string{"/same /x-", "/maybe /long", "/long- /maybe-"}))
			defer func() { f.p.Close() }()
			n := 2 + uniform(t, "items", 29)
			if chance(t, "many", 5) {
				n = logicalItems + 2
			}
			for i := range n {
				f.put("k", fmt.Sprint("steady", i), steady(i))
				if chance(t, "fleeting", 30) {
					f.put("k", fmt.Sprint("other", i), f.fleeting(t))
				}
			}
			text := pick(t, "query", pagedQueries...)
			q := f.request(text)
			if rapid.Bool().Draw(t, "logical") {
				q.Scope.Logical = f.logical("k")
			}
			q.MaxRows = 1 + uniform(t, "page", 5)
			want := steadyOnly(f.all(f.withRows(q, 1<<20)))
			if len(want) != n {
				t.Fatalf("%s: got %d steady items, want %d", text, len(want), n)
			}
			got := f.pagesWithChanges(t, q, n)
			if !strings.Contains(text, "ORDER BY") {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s", text, difference(got, want))
			}
		})
	}
}

func (f *fixture) withRows(q Request, rows int) Request {
	q.MaxRows = rows
	return q
}

// pagesWithChanges reads all pages and changes something between them. It returns
// the rows of steady items.
func (f *fixture) pagesWithChanges(t *rapid.T, q Request, items int) []string {
	var got []string
	for range maxPages {
		q.Partition, q.NowMs = f.p, f.clock.Now()
		page := f.page(q)
		got = append(got, steadyOnly(rowsOf(t, page))...)
		if q.Token = page.Token; q.Token == "" {
			return got
		}
		if len(q.Token) > 1024 {
			t.Errorf("%s: a token has %d bytes, want at most 1024", q.Program.Query(), len(q.Token))
		}
		if chance(t, "change", 50) {
			f.change(t, items)
		}
	}
	t.Fatalf("more than %d pages", maxPages)
	return nil
}

func steadyOnly(rows []string) []string {
	return slices.DeleteFunc(rows, func(row string) bool { return !strings.HasPrefix(row, `"steady`) })
}

// fleeting draws the members of an item that comes and goes.
func (f *fixture) fleeting(t *rapid.T) string {
	var members []string
	for _, m := range []string{
		fmt.Sprintf(`"x":%d`, -5+uniform(t, "x", 66)), `"same":2`, `"tags":[1,1,2,3]`, `"maybe":3`,
		fmt.Sprintf(`"long":"%s%03d"`, x(300), uniform(t, "long", 61)),
	} {
		if !chance(t, "missing", 10) {
			members = append(members, m)
		}
	}
	return strings.Join(append(members, `"ttl":`+pick(t, "ttl", "1", "5", "-1")), ",")
}

func (f *fixture) change(t *rapid.T, items int) {
	id := fmt.Sprint("other", uniform(t, "which", items+1))
	switch pick(t, "change", "put", "put", "remove", "time", "purge", "restart") {
	case "put":
		f.put("k", id, f.fleeting(t))
	case "remove":
		_, err := f.p.Read(nil, f.key("k", id), "", f.clock.Now())
		if err == nil {
			f.remove("k", id)
		}
	case "time":
		f.advance(time.Duration(1+uniform(t, "ms", 3000)) * time.Millisecond)
	case "purge":
		f.purge()
	case "restart":
		f.reopen()
	}
}

// Whatever becomes of the very item that a page ended with, the next page begins
// with the one after it.
func TestTheItemOfATokenMayGo(t *testing.T) {
	for _, text := range pagedQueries {
		for name, go_ := range map[string]func(f *fixture, id string){
			"stays":    func(f *fixture, id string) {},
			"deleted":  func(f *fixture, id string) { f.remove("k", id) },
			"expired":  func(f *fixture, id string) { f.advance(2 * time.Second) },
			"purged":   func(f *fixture, id string) { f.advance(2 * time.Second); f.purge() },
			"reopened": func(f *fixture, id string) { f.reopen() },
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, `"defaultTtl":-1`)
				for i := range 6 {
					ttl := ""
					if i == 2 {
						ttl = `"ttl":1,`
					}
					f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`%s"x":%d,"same":1,"tags":[1],"maybe":1,"long":"%s%d"`, ttl, i, x(300), i))
				}
				q := f.request(text)
				all := f.all(q)
				q.MaxRows = slices.Index(all, `"i2"`) + 1
				q.Token = f.page(q).Token
				go_(f, "i2")
				q.Partition, q.NowMs, q.MaxRows = f.p, f.clock.Now(), 1000
				if got := f.all(q); !slices.Equal(got, all[slices.Index(all, `"i2"`)+1:]) {
					t.Errorf("%s: the first pages of %q ended with i2; after it: got %q", text, all, got)
				}
			})
		}
	}
}

// An item that has no value to order by, or an index that is no longer there, changes
// how a query is answered; its pages go on.
func TestPagesSurviveAnotherPlan(t *testing.T) {
	const ordered = "SELECT VALUE c.x FROM c ORDER BY c.x"
	for _, c := range []struct {
		name, text, first string
		change            func(f *fixture)
		then              string
		want              string
	}{
		{"an item without the property", ordered, "ordered /x", func(f *fixture) { f.put("k", "none", "") }, "scan, sort", "3 4 5"},
		{"the same, the other way round", ordered + " DESC", "ordered /x descending", func(f *fixture) { f.put("k", "none", "") }, "scan, sort", "2 1 0"},
		{"the property everywhere", "SELECT VALUE c.most FROM c ORDER BY c.most", "scan, sort", func(f *fixture) { f.put("k", "i5", `"most":9`) }, "scan, sort", "3 4 9"},
		{"another policy", ordered, "ordered /x", func(f *fixture) {
			f.reconfigure(`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/?"}]}`)
		}, "scan, sort", "3 4 5"},
		{"another policy, for a seek", "SELECT VALUE c.x FROM c WHERE c.same = 1", "seek /same = 1", func(f *fixture) {
			f.reconfigure(`"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/same/?"}]}`)
		}, "scan", "3 4 5"},
	} {
		f := newFixture(t, "")
		for i := range 6 {
			most := ""
			if i != 5 {
				most = fmt.Sprintf(`"most":%d,`, i)
			}
			f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`%s"x":%d,"same":1`, most, i))
		}
		q := f.request(c.text)
		q.MaxRows = 3
		page := f.page(q)
		if page.Plan() != c.first {
			t.Errorf("%s: got the plan %s, want %s", c.name, page.Plan(), c.first)
		}
		c.change(f)
		q.Token, q.MaxRows = page.Token, 1000
		page = f.page(q)
		if got := strings.Join(rowsOf(t, page), " "); page.Plan() != c.then || got != c.want {
			t.Errorf("%s: got %s, %s, want %s, %s", c.name, page.Plan(), got, c.then, c.want)
		}
	}
}

// A partition key may grow or shrink over the size up to which it is read whole.
func TestPagesSurviveAPartitionKeyThatShrinks(t *testing.T) {
	f := newFixture(t, "")
	for i := range logicalItems + 1 {
		f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"x":%d`, logicalItems-i))
	}
	q := f.request("SELECT VALUE c.x FROM c WHERE c.x >= 5")
	q.Scope.Logical, q.MaxRows = f.logical("k"), 10
	page := f.page(q)
	if want := "gather /x >= 5"; page.Plan() != want {
		t.Fatalf("got the plan %s, want %s", page.Plan(), want)
	}
	f.remove("k", fmt.Sprint("i", logicalItems-5))
	q.Token, q.MaxRows = page.Token, 1000
	rows := append(rowsOf(t, page), f.all(q)...)
	if len(rows) != logicalItems-5 || rows[10] != fmt.Sprint(logicalItems-10) {
		t.Errorf("got %d rows, %q…, want %d in order", len(rows), rows[:11], logicalItems-5)
	}
}

// Long values do not make long tokens, be they found by an index or sorted.
func TestTokensOfLongValues(t *testing.T) {
	f := newFixture(t, "")
	const n = 8
	for i := range n {
		long := fmt.Sprint(x(20_000), i*3%n)
		f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"s":%q,"o":{"p":%q},"a":[%q],"alike":"%s"`, long, long, long, x(20_000)))
	}
	for _, items := range []int{n, n + 1} {
		if items > n {
			f.put("k", "none", "") // so that no index has all items
		}
		for _, key := range []string{"s", "o", "a", "o.p", "alike"} {
			for _, direction := range []string{"", " DESC"} {
				q := f.request("SELECT VALUE c.id FROM c ORDER BY c." + key + direction)
				want := f.all(q)
				q.MaxRows = 1
				if got := f.all(q); !slices.Equal(got, want) || len(got) != items {
					t.Errorf("%s: got %q, want %q", q.Program.Query(), got, want)
				}
				q.MaxRows = items - 1
				if token := f.page(q).Token; token == "" || len(token) > 1024 {
					t.Errorf("%s: a token has %d bytes, want at most 1024", q.Program.Query(), len(token))
				}
			}
		}
	}
}

// clientTokenLimit is what the JavaScript SDK asks for always: 1 KB, less than which
// cannot be asked for. A token goes into it with the number of its partition.
const clientTokenLimit = 1<<10 - len("2147483647.")

// No token is longer than the least limit that a client can set, whatever its values.
func TestNoTokenIsLongerThanAClientTakes(t *testing.T) {
	f := newFixture(t, `"indexingPolicy":{"compositeIndexes":[[{"path":"/c0"},{"path":"/c1"}]]}`)
	long := strings.Repeat("\x01\"\x1f", 300)
	digits := "1." + strings.Repeat("0", 1000) + "1"
	var members []string
	for i := range 8 {
		members = append(members, fmt.Sprintf(`"c%d":%q,"d%d":%s`, i, strings.Repeat("é", 400), i, digits))
	}
	raw, err := json.Marshal(long)
	f.must(err)
	members = append(members, `"controls":`+string(raw))
	for i := range 3 {
		f.put("k", fmt.Sprint("i", i), strings.Join(members, ","))
	}
	keys := func(letter string) string {
		var list []string
		for i := range 8 {
			list = append(list, fmt.Sprint("c.", letter, i))
		}
		return strings.Join(list, ", ")
	}
	longest := 0
	for _, text := range []string{
		"SELECT VALUE c.id FROM c ORDER BY c.controls",
		"SELECT VALUE c.id FROM c WHERE c.controls > '' ORDER BY c.controls",
		"SELECT VALUE c.id FROM c WHERE c.controls > ''",
		"SELECT VALUE c.id FROM c WHERE c.c0 > '' AND c.c1 > ''",
		"SELECT VALUE c.id FROM c WHERE c.c0 = '" + strings.Repeat("é", 400) + "' AND c.c1 > ''",
		"SELECT VALUE c.id FROM c ORDER BY c.c0, c.c1",
		"SELECT VALUE c.id FROM c ORDER BY c.c0 DESC, c.c1 DESC",
		"SELECT VALUE c.id FROM c ORDER BY c.d0",
		"SELECT VALUE c.id FROM c ORDER BY " + keys("c"),
		"SELECT VALUE c.id FROM c ORDER BY " + keys("d"),
		"SELECT VALUE c.id FROM c ORDER BY " + keys("c") + " OFFSET 1 LIMIT 1000",
		"SELECT c.controls, c.id FROM c GROUP BY c.controls, c.id",
		"SELECT c.id, c.c0 FROM c GROUP BY c.c0, c.id",
	} {
		q := f.request(text)
		want := f.all(q)
		q.MaxRows = 1
		if got := f.all(q); !slices.Equal(got, want) || len(got) < 2 {
			t.Errorf("%s: got %q in pages of one row, want %q", text, got, want)
		}
		n := len(f.page(q).Token)
		if longest = max(longest, n); n == 0 || n > clientTokenLimit {
			t.Errorf("%s: a token has %d bytes, want at most %d", text, n, clientTokenLimit)
		}
	}
	if longest < clientTokenLimit/2 {
		t.Errorf("the longest token has %d bytes: these are not the longest ones", longest)
	}
}

// A token is of one query: with other parameters or another scope it is refused.
func TestTokensOfAnotherRequest(t *testing.T) {
	f := newFixture(t, "")
	for i := range 6 {
		f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"x":%d`, i))
	}
	const text = "SELECT VALUE c.x FROM c WHERE c.x >= @x"
	request := func(x string, s Scope) Request {
		q := f.request("SELECT 1")
		parsed, err := syntax.Parse(text)
		f.must(err)
		q.Program, err = sql.Compile(parsed, sql.CompileOptions{Params: map[string]datum.Value{"@x": datum.Raw([]byte(x))}})
		f.must(err)
		q.Scope, q.MaxRows = s, 2
		return q
	}
	l := f.logical("k")
	scopes := map[string]Scope{
		"all":            {},
		"another name":   {Name: "other"},
		"logical":        {Logical: l},
		"from":           {MinEPK: l.EPK},
		"up to":          {MaxEPK: append(slices.Clone(l.EPK), 0)},
		"another key":    {Logical: f.logical("l")},
		"from elsewhere": {MinEPK: l.EPK[:1]},
	}
	for of, s := range scopes {
		token := Begin(request("1", s))
		if page := f.page(request("1", s)); page.Token != "" {
			token = page.Token
		}
		for with, s := range scopes {
			for _, x := range []string{"1", "2", `"1"`} {
				q := request(x, s)
				q.Token = token
				_, err := Run(context.Background(), q)
				if same := of == with && x == "1"; same != (err == nil) || !same && !errors.Is(err, ErrToken) {
					t.Errorf("a token of %s with %s and @x = %s: %v", of, with, x, err)
				}
			}
		}
	}
}

// A token of no item begins anew.
func TestTokenOfTheBeginning(t *testing.T) {
	f := newFixture(t, "")
	for i := range 3 {
		f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"x":%d`, i))
	}
	for _, text := range pagedQueries {
		q := f.request(text)
		want := f.all(q)
		q.Token = Begin(q)
		if got := f.all(q); !slices.Equal(got, want) {
			t.Errorf("%s: got %q from the beginning, want %q", text, got, want)
		}
	}
}

func TestTokensOfNobody(t *testing.T) {
	f := newFixture(t, "")
	for i := range 5 {
		f.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"x":%d`, i))
	}
	token := func(text string) string {
		q := f.request(text)
		q.MaxRows = 2
		page := f.page(q)
		if page.Token == "" {
			t.Fatalf("%s: no token", text)
		}
		return page.Token
	}
	forged := func(text string, change map[string]any) string {
		raw, err := base64.RawURLEncoding.DecodeString(token(text))
		f.must(err)
		var fields map[string]any
		f.must(json.Unmarshal(raw, &fields))
		for name, v := range change {
			fields[name] = v
		}
		raw, err = json.Marshal(fields)
		f.must(err)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	const (
		all     = "SELECT * FROM c"
		ordered = "SELECT * FROM c ORDER BY c.x"
		sorted  = "SELECT * FROM c ORDER BY c.missing"
		groups  = "SELECT c.x FROM c GROUP BY c.x"
		sliced  = "SELECT * FROM c OFFSET 1 LIMIT 4"
		nested  = "SELECT VALUE s FROM (SELECT DISTINCT VALUE c.id FROM c) s"
	)
	for name, c := range map[string]struct{ text, token string }{
		"garbage":                {all, "garbage"},
		"not base64":             {all, "!!"},
		"no token but JSON":      {all, base64.RawURLEncoding.EncodeToString([]byte("{}"))},
		"not JSON":               {all, base64.RawURLEncoding.EncodeToString([]byte("{"))},
		"more behind it":         {all, token(all) + base64.RawURLEncoding.EncodeToString([]byte("{}"))},
		"too long":               {all, strings.Repeat("A", maxTokenBytes+1)},
		"another query":          {all, token(ordered)},
		"another order":          {ordered, token(ordered + " DESC")},
		"no path":                {all, forged(all, map[string]any{"p": ""})},
		"an unknown path":        {all, forged(all, map[string]any{"p": "magic"})},
		"an older field":         {all, forged(all, map[string]any{"m": "scan"})},
		"a value of no index":    {all, forged(all, map[string]any{"v": "eA=="})},
		"a value and keys":       {ordered, forged(ordered, map[string]any{"v": "eA=="})},
		"no position":            {all, forged(all, map[string]any{"o": 0})},
		"an unknown field":       {all, forged(all, map[string]any{"z": 1})},
		"ordered without keys":   {ordered, forged(ordered, map[string]any{"k": nil})},
		"sorted without keys":    {sorted, forged(sorted, map[string]any{"k": nil})},
		"too many keys":          {sorted, forged(sorted, map[string]any{"k": []any{map[string]any{}, map[string]any{}}})},
		"a key that is no value": {ordered, forged(ordered, map[string]any{"k": []any{map[string]any{"j": []any{}}}})},
		"rows below none":        {all, forged(all, map[string]any{"r": -1})},
		"taken below none":       {sliced, forged(sliced, map[string]any{"t": -1})},
		"taken above all":        {sliced, forged(sliced, map[string]any{"t": 5})},
		"skipped above all":      {sliced, forged(sliced, map[string]any{"s": 2})},
		"groups of no groups":    {all, forged(all, map[string]any{"g": "eA=="})},
		"rows of no rows":        {all, forged(all, map[string]any{"w": "MTIzNDU2Nzg="})},
		"a position of groups":   {groups, forged(groups, map[string]any{"o": 1})},
		"groups of a nested one": {nested, forged(nested, map[string]any{"g": "eA==", "w": nil})},
		"one row":                {"SELECT 1", token(all)},
	} {
		q := f.request(c.text)
		q.Token = c.token
		if page, err := Run(context.Background(), q); !errors.Is(err, ErrToken) {
			t.Errorf("%s: got %d rows, %v, want ErrToken", name, page.Count, err)
		}
	}
}

// Whatever a client sends as a token is a page of the query, or refused.
func FuzzToken(f *testing.F) {
	fixture := newFixture(f, "")
	for i := range 8 {
		fixture.put("k", fmt.Sprint("i", i), fmt.Sprintf(`"x":%d,"long":"%s%d","tags":[1,2]`, i, x(300), i))
	}
	for i, text := range pagedQueries {
		q := fixture.request(text)
		q.MaxRows = 2
		raw, err := base64.RawURLEncoding.DecodeString(fixture.page(q).Token)
		fixture.must(err)
		f.Add(i, raw)
	}
	f.Add(0, []byte(`{"q":1,"p":"all","o":18446744073709551615,"r":9223372036854775807}`))
	f.Add(5, []byte(`{"q":1,"p":"ordered","o":1,"k":[{"j":"\ud800"}]}`))
	f.Fuzz(func(t *testing.T, which int, raw []byte) {
		fixture.t = t
		q := fixture.request(pagedQueries[uint(which)%uint(len(pagedQueries))])
		// So that more than the query's hash is tried:
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil && fields != nil {
			query, filter := q.fingerprint()
			fields["q"] = fmt.Append(nil, query)
			if filter != 0 {
				fields["f"] = fmt.Append(nil, filter)
			}
			if again, err := json.Marshal(fields); err == nil {
				raw = again
			}
		}
		q.Token = base64.RawURLEncoding.EncodeToString(raw)
		page, err := Run(context.Background(), q)
		if err != nil && !errors.Is(err, ErrToken) {
			t.Errorf("%s: got %v, want ErrToken", raw, err)
		}
		rowsOf(t, page)
	})
}
