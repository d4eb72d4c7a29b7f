// SPDX-License-Identifier: MIT

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
)

// A hint is noted by the first read, and used by the next: an id row that is gone
// from the engine shows it.
func TestHintSavesTheIDRow(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", "")
	identity := appendIdentity(nil, f.key("k", "a").EPK, f.key("k", "a").PartitionKey, "a")
	if f.p.hints().ordinal(identity) != 0 {
		t.Error("there is a hint before the first read")
	}
	if _, err := f.read("a"); err != nil {
		t.Fatal(err)
	}
	if got, want := f.p.hints().ordinal(identity), FirstOrdinal(0)+1; got != want {
		t.Errorf("the hint says %d, want %d", got, want)
	}
	var b kv.Batch
	b.Delete(f.p.prefix.appendIDKey(nil, identity), 0)
	f.must(f.db.Commit(t.Context(), &b))
	f.p.ReleaseIdle()
	f.p.ReleaseIdle()
	if _, err := f.read("a"); err != nil {
		t.Errorf("a read with a hint: %v", err)
	}
}

// Whatever a slot holds, a read answers as the id row says: hints of items that
// were deleted, made again, or never were theirs.
func TestWrongHintsAreNotBelieved(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	for i := range 10 {
		f.put(fmt.Sprint(i), fmt.Sprintf(`"n":%d`, i))
	}
	for i := range 10 {
		id := fmt.Sprint(i)
		identity := appendIdentity(nil, f.key("k", id).EPK, f.key("k", id).PartitionKey, id)
		for wrong := range uint64(12) {
			f.p.hints().note(identity, FirstOrdinal(0)+wrong)
			item, err := f.read(id)
			f.must(err)
			if want := f.p.Container().RID.ItemRID(FirstOrdinal(0) + uint64(i) + 1); !strings.Contains(string(item.Body), want) {
				t.Errorf("read %s with hint %d: %s", id, wrong, item.Body)
			}
		}
	}
	_, err := f.write(Write{Op: Delete, Key: f.key("k", "3")})
	f.must(err)
	if _, err := f.read("3"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted item with a hint: %v", err)
	}
	again := f.put("3", `"n":33`)
	item, err := f.read("3")
	f.must(err)
	if string(item.Body) != string(again.Body) {
		t.Errorf("made again: read %s, want %s", item.Body, again.Body)
	}
}

// An id row that leads nowhere is still a corruption, not a missing item.
func TestIDRowToNowhereIsCorrupt(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("a", "")
	key := f.p.prefix.appendIDKey(nil, appendIdentity(nil, f.key("k", "a").EPK, f.key("k", "a").PartitionKey, "a"))
	var b kv.Batch
	b.Set(key, binary.BigEndian.AppendUint64(nil, 999))
	f.must(f.db.Commit(t.Context(), &b))
	f.p.ReleaseIdle()
	f.p.ReleaseIdle()
	if _, err := f.read("a"); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("got %v, want a corruption", err)
	}
}
