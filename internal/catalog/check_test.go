// SPDX-License-Identifier: MIT

package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// Every damage to a name row, and to the numbers given, is reported.
func TestCheckNamesTheDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*kv.Batch)
		want   []string
	}{
		{"none", func(*kv.Batch) {}, nil},
		{"a database's name is gone", func(b *kv.Batch) { b.Delete(databaseNameKey("d"), 0) }, []string{`catalog row "cnd" is missing`}},
		{"a container's name is gone", func(b *kv.Batch) { b.Delete(containerNameKey(1, "c"), 0) }, []string{`is missing`}},
		{"a name of no database", func(b *kv.Batch) { b.Set(databaseNameKey("x"), []byte{0, 0, 0, 9}) }, []string{`catalog row "cnx" says 00000009, want `}},
		{"another's number", func(b *kv.Batch) { b.Set(databaseNameKey("d"), []byte{0, 0, 0, 9}) }, []string{`catalog row "cnd" says 00000009, want 00000001`}},
		{"numbers that were not given", func(b *kv.Batch) { b.Set(SequenceKey, sequence{changes: 9}.encode()) },
			[]string{`container "c" of database "d" has number 1`, `database "d" has number 1`}},
		{"a script's number that was not given", func(b *kv.Batch) { b.Set(scriptKey(ContainerRID{1, 1}, 99), []byte(`{"v":1,"id":"f"}`)) },
			[]string{`script "f" of container "dbs/d/colls/c" has number 99, and there were 2 changes`}},
	} {
		problems := checkAfter(t, c.damage)
		if len(problems) != len(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, problems, c.want)
			continue
		}
		for i := range problems {
			if !strings.Contains(problems[i], c.want[i]) {
				t.Errorf("%s: got %q, want %q", c.name, problems, c.want)
			}
		}
	}
}

// checkAfter damages a catalog with database d and container c, and checks it.
func checkAfter(t *testing.T, damage func(*kv.Batch)) []string {
	t.Helper()
	db := kvtest.NewModel()
	c, err := Open(db, Options{})
	must(t, err)
	d, err := c.CreateDatabase(context.Background(), []byte(`{"id":"d"}`), Throughput{}, 0)
	must(t, err)
	_, err = c.CreateContainer(context.Background(), d.RID, named("c"), Throughput{}, 0)
	must(t, err)
	var b kv.Batch
	damage(&b)
	must(t, db.Commit(context.Background(), &b))
	c, err = Open(db, Options{})
	must(t, err)
	snap, err := db.Snapshot()
	must(t, err)
	defer snap.Close()
	var problems []string
	must(t, c.Check(snap, func(p string) { problems = append(problems, p) }))
	slices.Sort(problems)
	return problems
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A malformed row keeps the catalog from opening.
func TestCorruptResources(t *testing.T) {
	for name, row := range map[string][2]string{
		"a user that is no JSON":               {string(userKey(1, 7)), "{"},
		"a user of no database":                {string(userKey(9, 7)), `{"v":1,"id":"u"}`},
		"a user of another version":            {string(userKey(1, 7)), `{"v":2,"id":"u"}`},
		"a user whose key is short":            {"cw\x00\x00\x00\x01", `{"v":1,"id":"u"}`},
		"a permission of no user":              {string(permissionKey(1, 7, 8)), `{"v":1,"id":"p","mode":"All","resource":"dbs/d/colls/c"}`},
		"a key without a definition":           {string(encryptionKeyKey(1, 7)), `{"v":1,"id":"k"}`},
		"a key that is a permission by length": {string(encryptionKeyKey(1, 7)) + "12345678", `{"v":1,"id":"k","definition":{}}`},
	} {
		db := kvtest.NewModel()
		createDatabase(t, open(t, db), "d")
		var b kv.Batch
		b.Set([]byte(row[0]), []byte(row[1]))
		must(t, db.Commit(t.Context(), &b))
		if _, err := Open(db, Options{}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: %v, want corruption", name, err)
		}
	}
}
