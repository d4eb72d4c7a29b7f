// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store"
)

func TestItemRoundTrip(t *testing.T) {
	w := newWorld(t)
	c := w.container("c", "null", 1)
	r, err := w.write(store.Create, "c", "k", "a/b ü", `"v":1`)
	if err != nil || !r.Created || r.LSN != 1 || r.ItemLSN != 1 || r.Container.RID != c.RID || r.Charge < 5 {
		t.Errorf("create: got %+v, %v", r, err)
	}
	got, err := w.read("c", "k", "a/b ü")
	if err != nil || string(got.Body) != string(r.Body) || got.ETag != r.ETag || got.Charge < 1 {
		t.Errorf("read: got %+v, %v, want %s", got, err, r.Body)
	}
	same, err := w.e.ReadItem(&Request{Target: item("c", "k", "a/b ü"), IfNoneMatch: r.ETag})
	if !errors.Is(err, store.ErrNotModified) || same.Body != nil || same.ETag != r.ETag {
		t.Errorf("read of what is known: got %+v, %v, want ErrNotModified", same, err)
	}
	if r, err := w.write(store.Upsert, "c", "k", "a/b ü", ""); err != nil || r.Created || r.LSN != 2 {
		t.Errorf("upsert: got %+v, %v", r, err)
	}
	if r, err := w.write(store.Replace, "c", "k", "a/b ü", ""); err != nil || r.Created || r.LSN != 3 {
		t.Errorf("replace: got %+v, %v", r, err)
	}
	if r, err := w.write(store.Delete, "c", "k", "a/b ü", ""); err != nil || r.Body != nil || r.LSN != 4 || r.Charge < 5 {
		t.Errorf("delete: got %+v, %v", r, err)
	}
	if r, err := w.read("c", "k", "a/b ü"); !errors.Is(err, store.ErrNotFound) || r.LSN != 4 || r.Container == nil {
		t.Errorf("read of what is gone: got %+v, %v, want ErrNotFound with the lsn", r, err)
	}
}

// What is refused before it reaches a partition, and how.
func TestItemRefusals(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	_, err := w.e.CreateContainer(t.Context(), "d", []byte(`{"id":"v1","partitionKey":{"paths":["/pk"]}}`), partitions(1))
	w.must(err)
	_, err = w.e.CreateContainer(t.Context(), "d", []byte(`{"id":"levels","partitionKey":{"paths":["/a","/b/c"],"kind":"MultiHash"}}`), partitions(1))
	w.must(err)
	const required = "The input content is invalid because the required properties - 'id; ' - are missing"
	const name = "Ensure to provide a unique non-empty string less than '1024' characters."
	for _, c := range []struct {
		what, container, key, body string
		want                       any // an error, or the text of a refusal
	}{
		{"no JSON", "c", "", `{`, "not a well-formed JSON object"},
		{"no object", "c", "", `[]`, "not a well-formed JSON object"},
		{"no id", "c", "", `{"pk":"k"}`, required},
		{"id null", "c", "", `{"pk":"k","id":null}`, name},
		{"id a number", "c", "", `{"pk":"k","id":1}`, name},
		{"id empty", "c", "", `{"pk":"k","id":""}`, name},
		{"id too long", "c", "", `{"pk":"k","id":"` + strings.Repeat("x", 1024) + `"}`, name},
		{"id of the greatest length", "c", "", `{"pk":"k","id":"` + strings.Repeat("x", 1023) + `"}`, nil},
		{"too large", "c", "", `{"pk":"k","id":"a","x":"` + strings.Repeat("x", MaxItemBytes) + `"}`, ErrTooLarge},
		{"no such container", "none", "", `{"id":"a"}`, ErrOwnerNotFound},

		{"key of the body alone", "c", "", `{"id":"1","pk":"k"}`, nil},
		{"key of both", "c", `["k"]`, `{"id":"2","pk":"k"}`, nil},
		{"key that differs", "c", `["j"]`, `{"id":"a","pk":"k"}`, ErrKeyMismatch},
		{"key of another type", "c", `["1"]`, `{"id":"a","pk":1}`, ErrKeyMismatch},
		{"key null", "c", `[null]`, `{"id":"3","pk":null}`, nil},
		{"key null, property missing", "c", `[null]`, `{"id":"a"}`, ErrKeyMismatch},
		{"key undefined", "c", `[{}]`, `{"id":"4"}`, nil},
		{"no key", "c", `[]`, `{"id":"5"}`, nil},
		{"no key, but the item has one", "c", `[]`, `{"id":"a","pk":"k"}`, ErrKeyMismatch},
		{"too many levels", "c", `["k","l"]`, `{"id":"a","pk":"k"}`, ErrKeyForm},
		{"key no JSON", "c", `k`, `{"id":"a","pk":"k"}`, "Partition key k is invalid"},
		{"key an object", "c", `["x"]`, `{"id":"a","pk":{"b":1}}`, ErrKeyMismatch},
		{"key an array", "c", `[{}]`, `{"id":"a","pk":[1]}`, nil},
		{"key too long", "c", "", `{"id":"a","pk":"` + strings.Repeat("x", 2049) + `"}`, "more than the 2048 bytes that it may have"},
		{"key of the greatest length", "c", "", `{"id":"6","pk":"` + strings.Repeat("x", 2048) + `"}`, nil},
		{"key too long for version 1", "v1", "", `{"id":"a","pk":"` + strings.Repeat("x", 2049) + `"}`, "more than the 2048 bytes that it may have"},
		{"key of the greatest length in version 1", "v1", "", `{"id":"1","pk":"` + strings.Repeat("x", 101) + `"}`, nil},

		{"all levels", "levels", `["x",1]`, `{"id":"1","a":"x","b":{"c":1}}`, nil},
		{"levels with one missing", "levels", `["x",{}]`, `{"id":"2","a":"x"}`, nil},
		{"a prefix", "levels", `["x"]`, `{"id":"a","a":"x","b":{"c":1}}`, ErrKeyForm},
	} {
		_, err := w.e.WriteItem(t.Context(), &Request{
			Target: Target{Database: "d", Container: c.container, PartitionKey: c.key}, Op: store.Create, Body: []byte(c.body),
		})
		var bad *InvalidError
		switch want := c.want.(type) {
		case nil:
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", c.what, err, want)
			}
		case string:
			if !errors.As(err, &bad) || !strings.Contains(bad.Message, want) || len(bad.Message) > 1000 {
				t.Errorf("%s: got %.400v, want %q", c.what, err, want)
			}
		}
	}
}

// Requests that name an item need its partition key.
func TestTargets(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 1)
	w.put("c", "k", "a", "")
	noKey := item("c", "k", "a")
	noKey.PartitionKey = ""
	if _, err := w.e.ReadItem(&Request{Target: noKey}); !errors.Is(err, ErrNoKey) {
		t.Errorf("read without a key: got %v, want a refusal", err)
	}
	if _, err := w.e.WriteItem(t.Context(), &Request{Target: noKey, Op: store.Delete}); !errors.Is(err, ErrNoKey) {
		t.Errorf("delete without a key: got %v, want a refusal", err)
	}
	if _, err := w.e.WriteItem(t.Context(), &Request{Target: noKey, Op: store.Replace, Body: body("k", "a", "")}); err != nil {
		t.Errorf("replace without a key, which the body has: %v", err)
	}
	if _, err := w.read("c", "other", "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("read with another key: got %v, want ErrNotFound", err)
	}
	if _, err := w.read("none", "k", "a"); !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("read in no container: got %v, want ErrOwnerNotFound", err)
	}
	if _, err := w.e.ReadItem(&Request{Target: Target{Database: "none", Container: "c", ID: "a", PartitionKey: `["k"]`}}); !errors.Is(err, ErrOwnerNotFound) {
		t.Errorf("read in no database: got %v, want ErrOwnerNotFound", err)
	}
}

// Every key leads to the same partition again, and lists by key and by range agree.
func TestKeysFindTheirPartition(t *testing.T) {
	w := newWorld(t)
	w.container("c", "null", 5)
	count := map[int]int{}
	for i := range 200 {
		pk := fmt.Sprint("key ", i)
		r := w.put("c", pk, "a", "")
		count[r.Partition]++
		if got, err := w.read("c", pk, "a"); err != nil || got.Partition != r.Partition {
			t.Errorf("key %q: written in partition %d, read in %d, %v", pk, r.Partition, got.Partition, err)
		}
	}
	for i := range 5 {
		if n := len(strings.Fields(strings.Join(w.all(&Request{Range: fmt.Sprint(i)}), " "))); n != count[i] || n == 0 {
			t.Errorf("partition %d: a list has %d items, want %d, and some", i, n, count[i])
		}
	}
}
