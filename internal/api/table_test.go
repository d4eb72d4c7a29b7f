// SPDX-License-Identifier: MIT

package api

import (
	"slices"
	"strings"
	"testing"
)

// Each row is found under its resource and verb, and only verbs that read are open to
// read-only credentials.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i, row := range Rows {
		if row.Number != i || Lookup(row.Resource, row.Verb) != row {
			t.Errorf("%s has the number %d, and is at %d", row.Name, row.Number, i)
		}
		if seen[row.Name] {
			t.Errorf("two rows are called %s", row.Name)
		}
		seen[row.Name] = true
		verb := strings.TrimPrefix(row.Name, names[row.Resource]+"_")
		if reading := slices.Contains([]string{"read", "list", "query", "query_plan", "changes", "position"}, verb); row.Reads != reading {
			t.Errorf("%s only reads: got %v, want %v", row.Name, row.Reads, reading)
		}
	}
	for _, c := range []struct {
		r    Resource
		v    Verb
		want string
	}{
		{Databases, Upsert, "database_create"}, {Users, Upsert, "user_upsert"}, {Items, Changes, "item_changes"},
		{PartitionKeys, Delete, "partition_key_delete"}, {Databases, Replace, ""}, {Ranges, Create, ""}, {Items, None, ""}, {EncryptionKeys, Delete, ""},
	} {
		if row := Lookup(c.r, c.v); (row == nil) != (c.want == "") || row != nil && row.Name != c.want {
			t.Errorf("%s of %s is %v, want %q", verbNames[c.v], words[c.r], row, c.want)
		}
	}
}
