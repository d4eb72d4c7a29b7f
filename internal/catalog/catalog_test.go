// SPDX-License-Identifier: MIT

package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

const nowMs = 1_700_000_000_999

func open(t testing.TB, db kv.DB) *Catalog {
	t.Helper()
	c, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func createDatabase(t testing.TB, c *Catalog, name string) *Database {
	t.Helper()
	d, err := c.CreateDatabase(t.Context(), fmt.Appendf(nil, `{"id":%q}`, name), Throughput{}, nowMs)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func createContainer(t testing.TB, c *Catalog, d *Database, body string, throughput Throughput) *Container {
	t.Helper()
	ct, err := c.CreateContainer(t.Context(), d.RID, body, throughput, nowMs)
	if err != nil {
		t.Fatal(err)
	}
	return ct
}

// named returns a valid definition with this id.
func named(id string) string { return fmt.Sprintf(`{"id":%q,"partitionKey":{"paths":["/pk"]}}`, id) }

// bodies returns all that a catalog shows, in order.
func bodies(c *Catalog) []string {
	var all []string
	for _, d := range c.Databases() {
		all = append(all, string(d.Body))
		for _, ct := range d.Containers() {
			all = append(all, fmt.Sprintf("%s %s %+v %v %d", ct.Body, ct.DatabaseID, ct.Throughput, ct.Ranges, ct.Epoch))
		}
	}
	return all
}

func rowsOf(t testing.TB, db kv.DB) map[string]string {
	t.Helper()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	rows := map[string]string{}
	for e, err := range snap.Scan(nil, nil, kv.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		rows[string(e.Key)] = string(e.Value)
	}
	return rows
}

// The exact answers, and their rows.
func TestBodies(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, "d<é>")
	if want := `{"id":"d<é>","_rid":"AAAAAQ==","_self":"dbs/AAAAAQ==/","_etag":"\"6553f100-0000-0000-0000-000000000001\"",` +
		`"_colls":"colls/","_users":"users/","_ts":1700000000}`; string(d.Body) != want {
		t.Errorf("database:\ngot  %s\nwant %s", d.Body, want)
	}
	ct := createContainer(t, c, d, with(`"defaultTtl":5`), Throughput{})
	if want := `{"id":"c",` + filledIndexing + "," + filledKey + "," + filled + `,"defaultTtl":5,"_rid":"AAAAAYAAAAE=","_ts":1700000000,` +
		`"_self":"dbs/AAAAAQ==/colls/AAAAAYAAAAE=/","_etag":"\"6553f100-0000-0001-0000-000000000001\"",` +
		`"_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"}`; string(ct.Body) != want {
		t.Errorf("container:\ngot  %s\nwant %s", ct.Body, want)
	}
	rows := rowsOf(t, db)
	for key, want := range map[string]string{
		"cnd<é>":              "\x00\x00\x00\x01",
		"cm\x00\x00\x00\x01c": "\x00\x00\x00\x01",
		"cd\x00\x00\x00\x01":  `{"v":1,"id":"d<é>","ts":1700000000}`,
		"cs":                  "\x00\x00\x00\x01" + "\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x02",
		"cc\x00\x00\x00\x01\x00\x00\x00\x01": `{"v":1,"epoch":1,"generation":1,"ts":1700000000,"partitions":1,"throughput":{"manual":400,"highest":400,"revision":1,"ts":1700000000},"definition":{"id":"c",` +
			filledIndexing + "," + filledKey + "," + filled + `,"defaultTtl":5}}`,
	} {
		if rows[key] != want {
			t.Errorf("row %q: got %q, want %q", key, rows[key], want)
		}
		delete(rows, key)
	}
	if len(rows) > 0 {
		t.Errorf("there are other rows: %q", rows)
	}
}

func TestLookups(t *testing.T) {
	c := open(t, kvtest.NewModel())
	first, second := createDatabase(t, c, "first"), createDatabase(t, c, "second")
	a := createContainer(t, c, first, named("a"), Throughput{})
	b := createContainer(t, c, second, named("b"), Throughput{})
	// A name that looks like a rid takes precedence over the rid.
	trap := createDatabase(t, c, first.RID.String())

	for name, want := range map[string]DatabaseRID{
		"first": first.RID, "second": second.RID, second.RID.String(): second.RID, first.RID.String(): trap.RID,
		"third": 0, "First": 0, "": 0, a.RID.String(): 0, DatabaseRID(99).String(): 0,
	} {
		d, err := c.Database(name)
		if want == 0 && !errors.Is(err, ErrNotFound) || want != 0 && (err != nil || d.RID != want) {
			t.Errorf("database %q: got %v, %v, want %v", name, d, err, want)
		}
	}
	for _, look := range []struct {
		database, container string
		want                *Container
	}{
		{"first", "a", a}, {"second", "b", b}, {"second", b.RID.String(), b}, {second.RID.String(), b.RID.String(), b},
		{"first", "b", nil}, {"first", b.RID.String(), nil}, {"first", first.RID.String(), nil}, {"first", "A", nil},
		{"first", a.RID.ItemRID(1), nil}, {"third", "a", nil},
	} {
		ct, err := c.Container(look.database, look.container)
		if look.want == nil && !errors.Is(err, ErrNotFound) || look.want != nil && (err != nil || ct.RID != look.want.RID) {
			t.Errorf("container %s of %s: got %v, %v, want %v", look.container, look.database, ct, err, look.want)
		}
	}
	if ct, err := c.Current(b.RID); err != nil || ct.RID != b.RID {
		t.Errorf("current: got %v, %v", ct, err)
	}
	for _, rid := range []ContainerRID{{}, {Database: 1, Container: 99}, {Database: 99, Container: 1}} {
		if _, err := c.Current(rid); !errors.Is(err, ErrNotFound) {
			t.Errorf("current of %v: got %v, want ErrNotFound", rid, err)
		}
	}
}

func TestNamesAreTakenOnce(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d, other := createDatabase(t, c, "d"), createDatabase(t, c, "other")
	createContainer(t, c, d, named("x"), Throughput{})
	if _, err := c.CreateDatabase(t.Context(), []byte(`{"id":"d"}`), Throughput{}, nowMs); !errors.Is(err, ErrExists) {
		t.Errorf("database: got %v, want ErrExists", err)
	}
	if _, err := c.CreateContainer(t.Context(), d.RID, named("x"), Throughput{}, nowMs); !errors.Is(err, ErrExists) {
		t.Errorf("container: got %v, want ErrExists", err)
	}
	createContainer(t, c, other, named("x"), Throughput{})
	createContainer(t, c, d, named("X"), Throughput{})
	if _, err := c.CreateContainer(t.Context(), 99, named("x"), Throughput{}, nowMs); !errors.Is(err, ErrNotFound) {
		t.Errorf("container of no database: got %v, want ErrNotFound", err)
	}
	for body, want := range map[string]string{
		"": "not a well-formed JSON object", "[]": "not a well-formed JSON object", "{}": "'id; ' - are missing", `{"id":null}`: "'id; ' - are missing",
		`{"id":1}`: "'id' must be a string", `{"id":""}`: "less than '255' characters", `{"id":"a/b"}`: "less than '255' characters",
	} {
		if _, err := c.CreateDatabase(t.Context(), []byte(body), Throughput{}, nowMs); !refusedWith(err, want) {
			t.Errorf("database %s: got %v, want %q", body, err, want)
		}
	}
	if _, err := c.CreateContainer(t.Context(), d.RID, named("y"), Throughput{Manual: 1 << 40}, nowMs); !refusedWith(err, "physical partitions") {
		t.Errorf("too much throughput: got %v", err)
	}
}

func TestReplaceContainer(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d := createDatabase(t, c, "d")
	old := createContainer(t, c, d, with(""), Throughput{Manual: 11_000})
	if _, err := c.ReplaceContainer(t.Context(), old.RID, with(`"defaultTtl":5`), `"x"`, nowMs); !errors.Is(err, ErrPrecondition) {
		t.Errorf("another etag: got %v, want ErrPrecondition", err)
	}
	if _, err := c.ReplaceContainer(t.Context(), old.RID, named("other"), "", nowMs); !refusedWith(err, "The id of a container cannot be changed") {
		t.Errorf("another id: got %v", err)
	}
	if _, err := c.ReplaceContainer(t.Context(), ContainerRID{d.RID, 99}, with(""), "", nowMs); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such container: got %v, want ErrNotFound", err)
	}
	if now, _ := c.Current(old.RID); now != old {
		t.Errorf("a refused replace has changed the container to %s", now.Body)
	}
	fresh, err := c.ReplaceContainer(t.Context(), old.RID, with(`"defaultTtl":5`), old.ETag, nowMs)
	if err != nil {
		t.Fatal(err)
	}
	// The second one has the same definition: only the epoch changes the etag.
	if fresh.Epoch != old.Epoch+1 || fresh.ETag == old.ETag || fresh.RID != old.RID || len(fresh.Ranges) != 2 || fresh.DefaultTTL != 5 ||
		!strings.Contains(string(fresh.Body), `"_etag":"\"`+fresh.ETag[1:37]) {
		t.Errorf("got %+v, %s", fresh, fresh.Body)
	}
	if byName, _ := c.Container("d", "c"); byName != fresh || old.DefaultTTL != TTLAbsent {
		t.Errorf("the container is %s, and the old one has become %s", byName.Body, old.Body)
	}
	if d, _ := c.Database("d"); len(d.Containers()) != 1 {
		t.Errorf("there are %d containers, want 1", len(d.Containers()))
	}
}

func TestDelete(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d, other := createDatabase(t, c, "d"), createDatabase(t, c, "other")
	a := createContainer(t, c, d, named("a"), Throughput{})
	createContainer(t, c, d, named("b"), Throughput{})
	kept := createContainer(t, c, other, named("kept"), Throughput{})
	mark := func() *kv.Batch {
		var b kv.Batch
		b.Delete([]byte("mark"), 0)
		return &b
	}
	setMark := func() {
		var b kv.Batch
		b.Set([]byte("mark"), nil)
		if err := db.Commit(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	setMark()
	for _, refused := range []error{
		c.DeleteContainer(t.Context(), a.RID, `"x"`, mark()), c.DeleteDatabase(t.Context(), d.RID, `"x"`, mark()),
	} {
		if !errors.Is(refused, ErrPrecondition) {
			t.Errorf("another etag: got %v, want ErrPrecondition", refused)
		}
	}
	for _, missing := range []error{
		c.DeleteContainer(t.Context(), ContainerRID{d.RID, 99}, "", mark()), c.DeleteContainer(t.Context(), ContainerRID{99, 1}, "", mark()),
		c.DeleteDatabase(t.Context(), 99, "", mark()),
	} {
		if !errors.Is(missing, ErrNotFound) {
			t.Errorf("missing: got %v, want ErrNotFound", missing)
		}
	}
	if _, found := rowsOf(t, db)["mark"]; !found {
		t.Error("a refused delete has committed the caller's batch")
	}
	if err := c.DeleteContainer(t.Context(), a.RID, a.ETag, mark()); err != nil {
		t.Fatal(err)
	}
	if _, found := rowsOf(t, db)["mark"]; found {
		t.Error("a delete has not committed the caller's batch with its own")
	}
	if _, err := c.Container("d", "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the deleted container: got %v, want ErrNotFound", err)
	}
	if _, err := c.Container("d", a.RID.String()); !errors.Is(err, ErrNotFound) {
		t.Errorf("the deleted container by rid: got %v, want ErrNotFound", err)
	}
	if err := c.DeleteDatabase(t.Context(), d.RID, d.ETag, mark()); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for key := range rowsOf(t, db) {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want := []string{string(containerKey(kept.RID)), string(databaseKey(other.RID)), string(containerNameKey(other.RID, "kept")), string(databaseNameKey("other")), "cs"}
	if !slices.Equal(keys, want) {
		t.Errorf("rows left: got %q, want %q", keys, want)
	}
}

// A rid is never reused, whatever is deleted, and after restarts.
func TestRIDsAreNeverReused(t *testing.T) {
	db := kvtest.NewModel()
	databases, containers := map[DatabaseRID]bool{}, map[uint32]bool{}
	for round := range 4 {
		c := open(t, db)
		d := createDatabase(t, c, "d")
		for range 3 {
			ct := createContainer(t, c, d, with(""), Throughput{})
			if databases[d.RID] || containers[ct.RID.Container] {
				t.Errorf("round %d: %v is given again", round, ct.RID)
			}
			containers[ct.RID.Container] = true
			var b kv.Batch
			if err := c.DeleteContainer(t.Context(), ct.RID, "", &b); err != nil {
				t.Fatal(err)
			}
		}
		databases[d.RID] = true
		var b kv.Batch
		if err := c.DeleteDatabase(t.Context(), d.RID, "", &b); err != nil {
			t.Fatal(err)
		}
	}
}

// After a restart, everything that was committed is there, byte for byte.
func TestPersistence(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, `<&>"é`+"\u2028")
	for i, v := range validDefinitions {
		body := strings.Replace(v.body, `"c"`, fmt.Sprintf(`"c%d"`, i), 1)
		createContainer(t, c, d, body, Throughput{Manual: 6_000 * i, AutoscaleMax: 0})
	}
	odd := with(`"x":"<&>\u2028` + "\u2028" + `é\/","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a&b"]}]}`)
	ct := createContainer(t, c, d, odd, Throughput{AutoscaleMax: 35_000})
	if _, err := c.ReplaceContainer(t.Context(), ct.RID, odd, "", nowMs+5000); err != nil {
		t.Fatal(err)
	}
	again := open(t, db)
	if got, want := bodies(again), bodies(c); !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("opened again:\ngot  %s\nwant %s", got[i], want[i])
			}
		}
	}
	ct, err := again.Container(d.ID, "c")
	if err != nil || len(ct.Ranges) != 4 || ct.Epoch != 2 {
		t.Fatalf("got %+v, %v", ct, err)
	}
	if _, err := again.ReplaceContainer(t.Context(), ct.RID, odd, ct.ETag, nowMs); err != nil {
		t.Errorf("replace by the same after a restart: %v", err)
	}
}

// A change that did not commit is not published.
func TestFailedChangeIsNotShown(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d := createDatabase(t, c, "d")
	ct := createContainer(t, c, d, with(""), Throughput{})
	before := bodies(c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var b, e kv.Batch
	_, create := c.CreateDatabase(ctx, []byte(`{"id":"e"}`), Throughput{}, nowMs)
	_, createContainer := c.CreateContainer(ctx, d.RID, named("x"), Throughput{}, nowMs)
	_, replace := c.ReplaceContainer(ctx, ct.RID, with(`"defaultTtl":5`), "", nowMs)
	for name, err := range map[string]error{
		"create database": create, "create container": createContainer, "replace": replace,
		"delete container": c.DeleteContainer(ctx, ct.RID, "", &b), "delete database": c.DeleteDatabase(ctx, d.RID, "", &e),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	if after := bodies(c); !slices.Equal(before, after) {
		t.Errorf("got %q, want %q", after, before)
	}
	createDatabase(t, c, "e") // the next change succeeds
}

func TestLimits(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, "d")
	full := d.below[Containers].clone()
	for i := range maxContainers {
		full.byName[fmt.Sprint(i)] = &Container{}
	}
	s := *c.state.Load()
	s.altered(Databases, d.path).Common().below[Containers] = full
	c.state.Store(&s)
	if _, err := c.CreateContainer(t.Context(), d.RID, with(""), Throughput{}, nowMs); !errors.Is(err, ErrTooMany) {
		t.Errorf("one container too many: got %v, want ErrTooMany", err)
	}
	s = *c.state.Load()
	for i := range maxDatabases - 1 {
		s.account.below[Databases].byName[fmt.Sprint(i)] = d
	}
	if _, err := c.CreateDatabase(t.Context(), []byte(`{"id":"x"}`), Throughput{}, nowMs); !errors.Is(err, ErrTooMany) {
		t.Errorf("one database too many: got %v, want ErrTooMany", err)
	}
	delete(full.byName, "0")
	if _, err := c.CreateContainer(t.Context(), d.RID, with(""), Throughput{}, nowMs); err != nil {
		t.Errorf("the last container: %v", err)
	}
}

func TestCorruptRows(t *testing.T) {
	good := kvtest.NewModel()
	c := open(t, good)
	ct := createContainer(t, c, createDatabase(t, c, "d"), with(""), Throughput{})
	database, container := string(databaseKey(1)), string(containerKey(ct.RID))
	for name, row := range map[string][2]string{
		"sequence cut":                {"cs", "\x00"},
		"database no JSON":            {database, "{"},
		"database of a later version": {database, `{"v":2,"id":"d","ts":1}`},
		"database key too long":       {database + "x", `{"v":1,"id":"d","ts":1}`},
		"container no JSON":           {container, "{"},
		"container version":           {container, strings.Replace(rowsOf(t, good)[container], `"v":1`, `"v":2`, 1)},
		"container key too long":      {container + "x", rowsOf(t, good)[container]},
		"container without partition": {container, strings.Replace(rowsOf(t, good)[container], `"partitions":1`, `"partitions":0`, 1)},
		"container with too many":     {container, strings.Replace(rowsOf(t, good)[container], `"partitions":1`, `"partitions":257`, 1)},
		"container not valid":         {container, strings.Replace(rowsOf(t, good)[container], `"/pk"`, `"pk"`, 1)},
		"container of no database":    {string(containerKey(ContainerRID{9, 1})), rowsOf(t, good)[container]},
	} {
		db := kvtest.NewModel()
		var b kv.Batch
		for key, value := range rowsOf(t, good) {
			b.Set([]byte(key), []byte(value))
		}
		b.Set([]byte(row[0]), []byte(row[1]))
		if err := db.Commit(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(db, Options{}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

// Changes of many clients happen one after the other, and a concurrent reader sees a
// whole state.
func TestConcurrentChanges(t *testing.T) {
	const clients, each = 8, 12
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, "d")
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := range each {
				ct, err := c.CreateContainer(t.Context(), d.RID, named(fmt.Sprint(client, "-", i)), Throughput{}, nowMs)
				if err != nil {
					t.Error(err)
					return
				}
				now, err := c.Database("d")
				if f := now.below[Containers]; err != nil || len(f.byName) != len(f.byNumber) || f.byName[ct.ID] != Any(ct) || f.byNumber[ct.number()] != Any(ct) {
					t.Errorf("after its creation %s is not there: %v", ct.ID, err)
				}
				if i%3 == 0 {
					var b kv.Batch
					if err := c.DeleteContainer(t.Context(), ct.RID, ct.ETag, &b); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if got, want := len(bodies(c)), 1+clients*each*2/3; got != want {
		t.Errorf("there are %d resources, want %d", got, want)
	}
	if got, want := bodies(open(t, db)), bodies(c); !slices.Equal(got, want) {
		t.Errorf("opened again: got %q, want %q", got, want)
	}
}
