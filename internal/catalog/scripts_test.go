// SPDX-License-Identifier: MIT

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func createUDF(t testing.TB, c *Catalog, ct *Container, name, text string) *Script {
	t.Helper()
	u, err := c.writeUDF(t.Context(), Create, ct.RID, name, text, nowMs)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The exact answer, and its row.
func TestUDFBody(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	ct := createContainer(t, c, createDatabase(t, c, "d"), named("c"), Throughput{})
	u := createUDF(t, c, ct, "f", "function(){ return \"é\" }")
	if got, want := string(u.Body), `{"body":"function(){ return \"é\" }","id":"f","_rid":"AAAAAYAAAAEDAAAAAAAAYA==",`+
		`"_self":"dbs/AAAAAQ==/colls/AAAAAYAAAAE=/udfs/AAAAAYAAAAEDAAAAAAAAYA==/","_etag":"\"6553f100-0000-0001-4000-000000000003\"","_ts":1700000000}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := rowsOf(t, db)[string(scriptKey(ct.RID, 3))], `{"v":1,"id":"f","text":"function(){ return \"é\" }","revision":1,"ts":1700000000}`; got != want {
		t.Errorf("kept as %s, want %s", got, want)
	}
	if read := read(ct.RID, u.RIDText); read != nil || !IsRID(u.RIDText) || !IsRID(ct.RIDText) || IsRID("f") {
		t.Errorf("%s is the rid of a function and of nothing else", u.RIDText)
	}
}

// A record may be longer than the request that it came with: a line separator has three
// bytes there, and six in the record. One that is too long is refused, and nothing is
// written.
func TestScriptTooLargeToStore(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	ct := createContainer(t, c, createDatabase(t, c, "d"), named("c"), Throughput{})
	before := rowsOf(t, db)
	var refused *InvalidError
	_, err := c.writeUDF(t.Context(), Create, ct.RID, "f", strings.Repeat("\u2028", 2<<20/3), nowMs)
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "too large to be stored") {
		t.Errorf("got %v", err)
	}
	if !maps.Equal(before, rowsOf(t, db)) {
		t.Error("a write that was refused has changed rows")
	}
	createUDF(t, c, ct, "f", strings.Repeat("\u2028", 1<<20/3))
}

func TestParseScript(t *testing.T) {
	f := func(body, id, text, refusal string) {
		t.Helper()
		parsed, err := parseScript(&Write{Address: Address{Kind: UDFs}, Body: []byte(body)})
		d, _ := parsed.(*Script)
		var refused *InvalidError
		switch {
		case refusal == "" && (err != nil || d.ID != id || d.Text != text || d.Type+d.Operation != ""):
			t.Errorf("%s: %v, %v", body, d, err)
		case refusal != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Message, refusal)):
			t.Errorf("%s: %v, want %s", body, err, refusal)
		}
	}
	f(`{"id":"f","body":"x","_rid":"z","other":1}`, "f", "x", "")
	f(`{"id":"f","body":""}`, "f", "", "")
	f(`{`, "", "", "well-formed")
	f(`[]`, "", "", "well-formed")
	f(`{}`, "", "", "'id; body; '")
	f(`{"id":"f","body":null}`, "", "", "'body; '")
	f(`{"body":"x"}`, "", "", "'id; '")
	f(`{"id":1,"body":"x"}`, "", "", "'id' must be a string")
	f(`{"id":"f","body":{}}`, "", "", "'body' must be a string")
	f(`{"id":"a#","body":"x"}`, "", "", "must not contain")
	f(`{"id":"`+strings.Repeat("a", 256)+`","body":"x"}`, "", "", "'255'")
}

// Functions are found by name before rid, and a continuation with a deleted function's
// rid still works.
func TestFindUDFs(t *testing.T) {
	c := open(t, kvtest.NewModel())
	ct := createContainer(t, c, createDatabase(t, c, "d"), named("c"), Throughput{})
	a, b := createUDF(t, c, ct, "a", "1"), createUDF(t, c, ct, "b", "2")
	odd := createUDF(t, c, ct, b.RIDText, "3")
	ct, err := c.Current(ct.RID)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]*Script{"a": a, a.RIDText: a, "b": b, b.RIDText: odd, odd.RIDText: odd} {
		if got, err := ct.Script(UDFs, name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, found := ct.ScriptNamed(UDFs, a.RIDText); found {
		t.Error("a query calls functions by name alone")
	}
	if err := c.remove(t.Context(), udfAt(ct.RID, "b")); err != nil {
		t.Fatal(err)
	}
	ct, _ = c.Current(ct.RID)
	list, err := c.List(udfAt(ct.RID, ""))
	if err != nil {
		t.Fatal(err)
	}
	for rid, want := range map[string]int{a.RIDText: 1, b.RIDText: 1, odd.RIDText: 2} {
		if i, ok := list.After(rid); !ok || i != want {
			t.Errorf("after %s: %d, %v, want %d", rid, i, ok, want)
		}
	}
	if _, ok := list.After(ct.RIDText); ok {
		t.Error("a container's rid is no continuation of a list of functions")
	}
}

// udfHistory is a catalog with one container, and the expected functions.
type udfHistory struct {
	db    *kvtest.Model
	c     *Catalog
	rid   ContainerRID
	want  map[string]string
	rids  map[string]bool
	etags map[string]bool
}

// Functions behave like a map under any changes and restarts. Neither a rid nor an etag
// is ever reused.
func TestUDFHistories(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := &udfHistory{db: kvtest.NewModel(), want: map[string]string{}, rids: map[string]bool{}, etags: map[string]bool{}}
		h.c = open(t, h.db)
		d := createDatabase(t, h.c, "d")
		h.rid = createContainer(t, h.c, d, named("c"), Throughput{}).RID
		name := rapid.SampledFrom([]string{"f", "g", "é"})
		now := int64(nowMs)
		r.Repeat(map[string]func(*rapid.T){
			"create": func(r *rapid.T) {
				n := name.Draw(r, "name")
				u, err := h.c.writeUDF(t.Context(), Create, h.rid, n, fmt.Sprint(now), now)
				if _, exists := h.want[n]; exists {
					if !errors.Is(err, ErrExists) {
						r.Fatalf("create %s again: %v", n, err)
					}
					return
				}
				h.made(r, u, err)
				if h.rids[u.RIDText] {
					r.Fatalf("the rid %s was given before", u.RIDText)
				}
				h.rids[u.RIDText] = true
			},
			"replace": func(r *rapid.T) {
				n := name.Draw(r, "name")
				u, err := h.c.writeUDF(t.Context(), Replace, h.rid, n, fmt.Sprint(now), now)
				if _, exists := h.want[n]; !exists {
					if !errors.Is(err, ErrNotFound) {
						r.Fatalf("replace %s: %v", n, err)
					}
					return
				}
				h.made(r, u, err)
			},
			"delete": func(r *rapid.T) {
				n := name.Draw(r, "name")
				err := h.c.remove(t.Context(), udfAt(h.rid, n))
				if _, exists := h.want[n]; exists != (err == nil) || err != nil && !errors.Is(err, ErrNotFound) {
					r.Fatalf("delete %s: %v", n, err)
				}
				delete(h.want, n)
			},
			"container": func(r *rapid.T) {
				if _, err := h.c.ReplaceContainer(t.Context(), h.rid, named("c"), "", now); err != nil {
					r.Fatal(err)
				}
			},
			"restart": func(*rapid.T) { h.c = open(t, h.db) },
			"time":    func(*rapid.T) { now += 700 },
			"":        h.check,
		})
		if err := h.c.DeleteContainer(t.Context(), h.rid, "", &kv.Batch{}); err != nil {
			r.Fatal(err)
		}
		for key := range rowsOf(t, h.db) {
			if strings.HasPrefix(key, scriptPrefix) {
				r.Fatalf("row %q is left of a container that is gone", key)
			}
		}
	})
}

func (h *udfHistory) made(r *rapid.T, u *Script, err error) {
	if err != nil {
		r.Fatal(err)
	}
	if h.etags[u.ETag] {
		r.Fatalf("the etag %s was given before", u.ETag)
	}
	h.etags[u.ETag] = true
	h.want[u.ID] = u.Text
}

func (h *udfHistory) check(r *rapid.T) {
	ct, err := h.c.Current(h.rid)
	if err != nil {
		r.Fatal(err)
	}
	got := map[string]string{}
	for _, u := range all[*Script](&ct.Resource, UDFs) {
		got[u.ID] = u.Text
	}
	if !maps.Equal(got, h.want) {
		r.Fatalf("the functions are %v, want %v", got, h.want)
	}
}

// No more than the maximum are made, even by concurrent creates.
func TestTooManyUDFs(t *testing.T) {
	c := open(t, kvtest.NewModel())
	ct := createContainer(t, c, createDatabase(t, c, "d"), named("c"), Throughput{})
	var all sync.WaitGroup
	errs := make([]error, UDFs.Max()+5)
	for i := range errs {
		all.Go(func() {
			_, errs[i] = c.writeUDF(t.Context(), Create, ct.RID, fmt.Sprint(i), "", nowMs)
		})
	}
	all.Wait()
	refused := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(refused) != 5 || slices.ContainsFunc(refused, func(err error) bool { return !errors.Is(err, ErrTooManyScripts) }) {
		t.Errorf("refused: %v", refused)
	}
}

func TestDamagedUDFRows(t *testing.T) {
	for name, damage := range map[string]func(b *kv.Batch, ct *Container){
		"no JSON":            func(b *kv.Batch, ct *Container) { b.Set(scriptKey(ct.RID, 3), []byte("{")) },
		"newer":              func(b *kv.Batch, ct *Container) { b.Set(scriptKey(ct.RID, 3), []byte(`{"v":9}`)) },
		"of no container":    func(b *kv.Batch, ct *Container) { b.Set(scriptKey(ContainerRID{1, 9}, 3), []byte(`{"v":1,"id":"x"}`)) },
		"twice":              func(b *kv.Batch, ct *Container) { b.Set(scriptKey(ct.RID, 9), []byte(`{"v":1,"id":"f"}`)) },
		"with another's key": func(b *kv.Batch, ct *Container) { b.Set([]byte("cux"), []byte(`{"v":1,"id":"x"}`)) },
	} {
		db := kvtest.NewModel()
		c := open(t, db)
		ct := createContainer(t, c, createDatabase(t, c, "d"), named("c"), Throughput{})
		createUDF(t, c, ct, "f", "x")
		var b kv.Batch
		damage(&b, ct)
		if err := db.Commit(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(db, Options{}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
