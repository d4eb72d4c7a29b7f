// SPDX-License-Identifier: MIT

package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// create returns a write that makes a new resource.
func create(body string) Write { return Write{Body: []byte(body), NowMs: nowMs} }

func TestUserBodies(t *testing.T) {
	db := kvtest.NewModel()
	c := open(t, db)
	d := createDatabase(t, c, "d")
	u, created, err := c.WriteUser(t.Context(), d.RID, create(`{"id":"u","more":1}`))
	if err != nil || !created {
		t.Fatal(created, err)
	}
	want := `{"id":"u","_rid":"AAAAAQAAAAI=","_self":"dbs/AAAAAQ==/users/AAAAAQAAAAI=/","_etag":"\"6553f100-0000-0002-2100-000000000002\"","_ts":1700000000,"_permissions":"permissions/"}`
	if string(u.Body) != want {
		t.Errorf("got  %s\nwant %s", u.Body, want)
	}
	p, created, err := c.WritePermission(t.Context(), d.RID, "u", create(`{"id":"p","permissionMode":"read","resource":"/dbs/d/colls/c/","resourcePartitionKey": [ "x" , 1 ]}`))
	if err != nil || !created {
		t.Fatal(created, err)
	}
	want = `{"id":"p","permissionMode":"read","resource":"/dbs/d/colls/c/","resourcePartitionKey":["x",1],"_rid":"AAAAAQAAAAIDAAAAAAAAAA==",` +
		`"_self":"dbs/AAAAAQ==/users/AAAAAQAAAAI=/permissions/AAAAAQAAAAIDAAAAAAAAAA==/","_etag":"\"6553f100-0000-0003-2200-000000000003\"","_ts":1700000000}`
	if string(p.Body) != want {
		t.Errorf("got  %s\nwant %s", p.Body, want)
	}
	k, created, err := c.WriteEncryptionKey(t.Context(), d.RID, create(`{"_ts":5, "id":"k", "encryptionAlgorithm":"a","keyWrapMetadata":{ "n" : 1.50 },"wrappedDataEncryptionKey":"AA=="}`))
	if err != nil || !created {
		t.Fatal(created, err)
	}
	want = `{"id":"k","encryptionAlgorithm":"a","keyWrapMetadata":{"n":1.50},"wrappedDataEncryptionKey":"AA==","_rid":"AAAAAQAAAAAEAAAAAgAAAA==",` +
		`"_self":"dbs/AAAAAQ==/clientencryptionkeys/AAAAAQAAAAAEAAAAAgAAAA==/","_etag":"\"6553f100-0000-0004-2300-000000000004\"","_ts":1700000000}`
	if string(k.Body) != want {
		t.Errorf("got  %s\nwant %s", k.Body, want)
	}
	// Everything is there after a restart, and gone with the database.
	again, err := open(t, db).Database("d")
	if err != nil {
		t.Fatal(err)
	}
	u2, err := typed[*User](again.find(Users, "AAAAAQAAAAI="))
	if err != nil || string(u2.Body) != string(u.Body) {
		t.Fatalf("after a restart: %v, %v", u2, err)
	}
	p2, err := typed[*Permission](u2.find(Permissions, p.RIDText))
	if err != nil || string(p2.Body) != string(p.Body) || !p2.Key.Equal(p.Key) || p2.Numbers() != p.Numbers() {
		t.Errorf("after a restart: %v, %v", p2, err)
	}
	k2, err := typed[*EncryptionKey](again.find(EncryptionKeys, k.RIDText))
	if err != nil || string(k2.Body) != string(k.Body) {
		t.Errorf("after a restart: %v, %v", k2, err)
	}
	var b kv.Batch
	must(t, c.DeleteDatabase(t.Context(), d.RID, "", &b))
	if rows := rowsOf(t, db); len(rows) != 1 {
		t.Errorf("rows are left behind: %q", rows)
	}
}

func TestPermissionsThatAreRefused(t *testing.T) {
	c := open(t, kvtest.NewModel())
	d := createDatabase(t, c, "d")
	if _, _, err := c.WriteUser(t.Context(), d.RID, create(`{"id":"u"}`)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ body, text string }{
		{`{}`, "'id; permissionMode; resource; ' - are missing"},
		{`[]`, "not a well-formed JSON object"},
		{`{"id":"p","permissionMode":"Read"}`, "'resource; ' - are missing"},
		{`{"id":"a/b","permissionMode":"Read","resource":"dbs/d/colls/c"}`, "'a/b' is invalid"},
		{`{"id":"p","permissionMode":"Write","resource":"dbs/d/colls/c"}`, "Read or All"},
		{`{"id":"p","permissionMode":1,"resource":"dbs/d/colls/c"}`, "'permissionMode' must be a string"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d"}`, "'resource' is 'dbs/d'"},
		{`{"id":"p","permissionMode":"All","resource":""}`, "'resource' is ''"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/users/u"}`, "'resource' is"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c/docs"}`, "'resource' is"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c/pkranges/0"}`, "'resource' is"},
		{`{"id":"p","permissionMode":"All","resource":"dbs//colls/c"}`, "'resource' is"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c/docs/` + strings.Repeat("x", maxResourceLinkBytes) + `"}`, "'resource' is"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":[[1]]}`, "no partition key"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":{"a":1}}`, "no partition key"},
		{`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":["` + strings.Repeat("x", maxPermissionKeyBytes+1) + `"]}`, "no partition key"},
	} {
		_, _, err := c.WritePermission(t.Context(), d.RID, "u", create(tc.body))
		var refused *InvalidError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, tc.text) {
			t.Errorf("%.200s: %v, want %q", tc.body, err, tc.text)
		}
	}
	_, _, err := c.WritePermission(t.Context(), d.RID, "nobody", create(`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c"}`))
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("a permission for a missing user: %v", err)
	}
}

func TestGrants(t *testing.T) {
	for _, tc := range []struct {
		record permissionRecord
		want   string
	}{
		{permissionRecord{Mode: "Read", Resource: "dbs/d/colls/c"}, `false d c "" "" <nil>`},
		{permissionRecord{Mode: "ALL", Resource: "/dbs/d/colls/c/"}, `true d c "" "" <nil>`},
		{permissionRecord{Mode: "all", Resource: "dbs/d/colls/c/docs/a b/c"}, `true d c "docs" "a b/c" <nil>`},
		{permissionRecord{Mode: "all", Resource: "dbs/d/colls/c/sprocs/s", Key: []byte(`"x"`)}, `true d c "sprocs" "s" ["x"]`},
		{permissionRecord{Mode: "all", Resource: "dbs/d/colls/c", Key: []byte(`[]`)}, `true d c "" "" []`},
		{permissionRecord{Mode: "all", Resource: "dbs/d/colls/c", Key: []byte(`["x",null,{}]`)}, `true d c "" "" ["x",null,{}]`},
	} {
		g, err := tc.record.grant()
		key := "<nil>"
		if g.Key != nil {
			key = g.Key.String()
		}
		if got := fmt.Sprintf("%v %s %s %q %q %s", g.All, g.Database, g.Container, g.Kind, g.Child, key); err != nil || got != tc.want {
			t.Errorf("%+v is %s, %v, want %s", tc.record, got, err, tc.want)
		}
	}
}

// FuzzPermission: everything that a client sends is refused, or stored so that it is the
// same after a restart.
func FuzzPermission(f *testing.F) {
	for _, body := range []string{
		`{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}`, `{"id":"p","permissionMode":"all","resource":"/dbs/d/colls/c/docs/a/b/","resourcePartitionKey": "x"}`,
		`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":[1, null, {}]}`, `{"id":"\u2028","permissionMode":"All","resource":"dbs/<&>/colls/c"}`,
		`{"id":"p","permissionMode":"All","resource":"dbs/d/colls/c","resourcePartitionKey":["\ud83d\ude00",1e400]}`, `{}`, `[`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		db := kvtest.NewModel()
		c := open(t, db)
		d := createDatabase(t, c, "d")
		if _, _, err := c.WriteUser(t.Context(), d.RID, create(`{"id":"u"}`)); err != nil {
			t.Fatal(err)
		}
		p, _, err := c.WritePermission(t.Context(), d.RID, "u", Write{Body: body})
		var refused *InvalidError
		switch {
		case errors.As(err, &refused):
			return
		case err != nil:
			t.Fatalf("%q: %v", body, err)
		case !json.Valid(p.Body):
			t.Fatalf("%q is shown as %q", body, p.Body)
		}
		again, err := open(t, db).Permission(p.Numbers())
		if err != nil || string(again.Body) != string(p.Body) || !again.Grant.same(&p.Grant) || again.All != p.All {
			t.Errorf("%q after a restart: %+v, %v, want %+v", body, again, err, p)
		}
	})
}

// TestUsersAgainstTwin makes random changes to the users of a database and their
// permissions, and to a plain list of them, with restarts in between.
func TestUsersAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := kvtest.NewModel()
		w := &usersTwin{db: db}
		w.reopen(t)
		d, err := w.c.CreateDatabase(context.Background(), []byte(`{"id":"d"}`), Throughput{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.rid = d.RID
		t.Repeat(map[string]func(*rapid.T){
			"write user": w.writeUser, "delete user": w.deleteUser,
			"write permission": w.writePermission, "delete permission": w.deletePermission,
			"reopen": w.reopen, "": w.compare,
		})
	})
}

type twinPermission struct{ id, mode, resource string }

type twinUser struct {
	id          string
	permissions []twinPermission
}

type usersTwin struct {
	db    kv.DB
	c     *Catalog
	rid   DatabaseRID
	users []twinUser // the oldest first
}

var (
	twinNames     = rapid.SampledFrom([]string{"a", "b", "c"})
	twinResources = rapid.SampledFrom([]string{"dbs/d/colls/c", "dbs/d/colls/e", "dbs/d/colls/c/docs/i"})
	twinModes     = rapid.SampledFrom([]WriteMode{Create, Upsert, Replace})
)

func (w *usersTwin) reopen(t *rapid.T) {
	c, err := Open(w.db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.c = c
}

func (w *usersTwin) user(id string) int {
	return slices.IndexFunc(w.users, func(u twinUser) bool { return u.id == id })
}

// outcome returns the expected result of a write: its index, or -1 for a new one.
func outcome(mode WriteMode, named, target int) (at int, want error) {
	switch {
	case mode == Create && named >= 0:
		return 0, ErrExists
	case mode == Replace && target < 0:
		return 0, ErrNotFound
	case mode == Replace && named >= 0 && named != target:
		return 0, ErrExists
	case mode == Replace:
		return target, nil
	}
	return named, nil
}

func (w *usersTwin) writeUser(t *rapid.T) {
	id, target, mode := twinNames.Draw(t, "id"), twinNames.Draw(t, "target"), twinModes.Draw(t, "mode")
	at, want := outcome(mode, w.user(id), w.user(target))
	_, created, err := w.c.WriteUser(context.Background(), w.rid, Write{Mode: mode, Address: Address{ID: target}, Body: fmt.Appendf(nil, `{"id":%q}`, id)})
	if !errors.Is(err, want) || err == nil && created != (at < 0) {
		t.Fatalf("user %s over %s, mode %d: created %v, %v, want %v", id, target, mode, created, err, want)
	}
	switch {
	case err != nil:
	case at < 0:
		w.users = append(w.users, twinUser{id: id})
	default:
		w.users[at].id = id
	}
}

func (w *usersTwin) deleteUser(t *rapid.T) {
	id := twinNames.Draw(t, "id")
	at, want := w.user(id), error(nil)
	if at < 0 {
		want = ErrNotFound
	}
	if err := w.c.remove(context.Background(), Address{Kind: Users, Database: w.rid.String(), ID: id}); !errors.Is(err, want) {
		t.Fatalf("delete %s: %v, want %v", id, err, want)
	}
	if at >= 0 {
		w.users = slices.Delete(w.users, at, at+1)
	}
}

func (u *twinUser) permission(id string) int {
	return slices.IndexFunc(u.permissions, func(p twinPermission) bool { return p.id == id })
}

func (w *usersTwin) writePermission(t *rapid.T) {
	owner, id, target, mode := twinNames.Draw(t, "user"), twinNames.Draw(t, "id"), twinNames.Draw(t, "target"), twinModes.Draw(t, "mode")
	next := twinPermission{id, rapid.SampledFrom([]string{"Read", "All"}).Draw(t, "permission"), twinResources.Draw(t, "resource")}
	var u *twinUser
	at, want := 0, ErrNotFound
	if i := w.user(owner); i >= 0 {
		u = &w.users[i]
		at, want = outcome(mode, u.permission(id), u.permission(target))
		for i, p := range u.permissions {
			if want == nil && i != at && p.resource == next.resource {
				want = ErrExists
			}
		}
	}
	body := fmt.Appendf(nil, `{"id":%q,"permissionMode":%q,"resource":%q}`, next.id, next.mode, next.resource)
	_, created, err := w.c.WritePermission(context.Background(), w.rid, owner, Write{Mode: mode, Address: Address{ID: target}, Body: body})
	if !errors.Is(err, want) || err == nil && created != (at < 0) {
		t.Fatalf("permission %+v of %s over %s, mode %d: created %v, %v, want %v", next, owner, target, mode, created, err, want)
	}
	switch {
	case err != nil:
	case at < 0:
		u.permissions = append(u.permissions, next)
	default:
		u.permissions[at] = next
	}
}

func (w *usersTwin) deletePermission(t *rapid.T) {
	owner, id := twinNames.Draw(t, "user"), twinNames.Draw(t, "id")
	at, want := -1, ErrNotFound
	i := w.user(owner)
	if i >= 0 {
		if at = w.users[i].permission(id); at >= 0 {
			want = nil
		}
	}
	if err := w.c.remove(context.Background(), Address{Kind: Permissions, Database: w.rid.String(), User: owner, ID: id}); !errors.Is(err, want) {
		t.Fatalf("delete %s of %s: %v, want %v", id, owner, err, want)
	}
	if at >= 0 {
		w.users[i].permissions = slices.Delete(w.users[i].permissions, at, at+1)
	}
}

func (w *usersTwin) compare(t *rapid.T) {
	d, err := w.c.DatabaseOf(w.rid)
	if err != nil {
		t.Fatal(err)
	}
	var got []twinUser
	etags := map[string]bool{}
	for _, u := range all[*User](&d.Resource, Users) {
		etags[u.ETag] = true
		if byRID, err := d.find(Users, u.RIDText); err != nil || byRID != Any(u) {
			t.Fatalf("user %s by its rid %s: %v, %v", u.ID, u.RIDText, byRID, err)
		}
		tu := twinUser{id: u.ID}
		for _, p := range all[*Permission](&u.Resource, Permissions) {
			etags[p.ETag] = true
			if byRID, err := u.find(Permissions, p.RIDText); err != nil || byRID != Any(p) {
				t.Fatalf("permission %s by its rid %s: %v, %v", p.ID, p.RIDText, byRID, err)
			}
			if now, err := w.c.Permission(p.Numbers()); err != nil || now != p {
				t.Fatalf("permission %s by its numbers: %v, %v", p.ID, now, err)
			}
			tu.permissions = append(tu.permissions, twinPermission{p.ID, p.raw.Mode, p.raw.Resource})
		}
		got = append(got, tu)
	}
	want := 0
	for _, u := range w.users {
		want += 1 + len(u.permissions)
	}
	if fmt.Sprint(got) != fmt.Sprint(w.users) || len(etags) != want {
		t.Fatalf("got  %v with %d etags\nwant %v", got, len(etags), w.users)
	}
}
