// SPDX-License-Identifier: MIT

// Partition keys that are too long for keys of rows.

package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	longestID = 1023 // the longest id, in bytes
	longestPK = 2048 // the longest partition key
)

// withLong is a container with all kinds of rows. Effective partition keys of version 1 are
// the longest.
const withLong = `{"id":"c","partitionKey":{"paths":["/pk"],"version":1},"defaultTtl":-1,"changeFeedPolicy":{"retentionDuration":1440},
	"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]},{"paths":["/u","/v"]}]},
	"indexingPolicy":{"compositeIndexes":[[{"path":"/a"},{"path":"/b"},{"path":"/c"},{"path":"/d"},{"path":"/e","order":"descending"},{"path":"/f"},{"path":"/g"},{"path":"/h"}]],
	"fullTextIndexes":[{"path":"/t"}],"vectorIndexes":[{"path":"/x","type":"flat"}]},
	"vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/x","dataType":"float32","dimensions":2,"distanceFunction":"euclidean"}]},
	"fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/t","language":"en-US"}]}}`

// of is the write of an item with a partition key. more are its other properties.
func (f *fixture) of(op Op, pk, id string, more map[string]any) Write {
	f.t.Helper()
	item := map[string]any{"id": id, "pk": pk}
	maps.Copy(item, more)
	raw, err := json.Marshal(item)
	f.must(err)
	o, err := value.ParseObject(raw)
	f.must(err)
	return Write{Op: op, Key: f.key(pk, id), Item: o}
}

// wholePK is the longest partition key that keys have whole: 512 bytes with its tag, its
// end and that of its string. Its first hundred characters have three bytes each, which
// makes its effective partition key the longest.
var wholePK = strings.Repeat("\uffff", 100) + strings.Repeat("k", maxPlacedPK-4-300)

// No row exceeds the limits of the store: the longest of every kind is written.
func TestLongestKeys(t *testing.T) {
	f := newFixture(t, withLong)
	properties := map[string]any{"ttl": 1, "u": strings.Repeat("u", 252), "v": strings.Repeat("v", 1000), "t": strings.Repeat("t", 1000), "x": []int{1, 2},
		strings.Repeat("n", 255): map[string]any{strings.Repeat("m", 1000): strings.Repeat("s", 1000)}}
	for _, name := range strings.Split("abcdefgh", "") {
		properties[name] = strings.Repeat(name, 256) // the longest that is not cut
	}
	id := strings.Repeat("i", longestID)
	keys := []string{wholePK, wholePK + "k", strings.Repeat("\uffff", longestPK/3), strings.Repeat("\x00", longestPK)}
	for _, pk := range keys {
		for _, unique := range []string{"a", "b"} {
			more := maps.Clone(properties)
			more["u"] = unique + more["u"].(string)[1:]
			if unique == "b" {
				more["u"], more["ttl"] = strings.Repeat("u", 1000), -1
			}
			_, err := f.write(f.of(Create, pk, id[1:]+unique, more))
			f.must(err)
		}
	}
	lengths := map[byte]int{}
	measure := func() {
		t.Helper()
		for key, row := range f.rows() {
			if len(key) > kv.MaxKeyBytes || len(row) > kv.MaxValueBytes {
				t.Errorf("row %x has a key of %d bytes, and %d bytes", key[:prefixBytes+20], len(key), len(row))
			}
			lengths[key[prefixBytes]] = max(lengths[key[prefixBytes]], len(key))
		}
	}
	measure()
	f.checkClean()
	logical := f.within(wholePK)
	f.must(f.p.removeStep(context.Background(), &removal{logical: logical.appendPlace(nil), begin: true}))
	f.advance(2 * time.Second)
	_, err := f.p.Purge(context.Background(), Purge{MaxItems: 10, Cause: ru.Sweep})
	f.must(err)
	measure()
	lengths[ownerSpace] = len(OwnerKey(f.container.RID, f.index))
	epk := len(value.AppendBytesKey(nil, f.key(wholePK, "").EPK))
	for space, want := range map[byte]int{
		itemSpace: 20, feedSpace: 22, ownSpace: 30, statSpace: 22, eventSpace: eventKeyBytes, logSpace: 24, logStateSpace: 12, metaSpace: 12, ownerSpace: 12,
		idSpace: 12 + epk + maxPlacedPK + longestID, partSpace: 12 + epk + maxPlacedPK, removalSpace: 12 + epk + maxPlacedPK,
		uniqueSpace: 12 + 1 + maxPlacedPK + 1 + maxTupleBytes,
		indexSpace:  12 + generationBytes + 2 + 8*259 + 1 + ordinalBytes,
	} {
		if lengths[space] != want {
			t.Errorf("the longest key in space %c has %d bytes, want %d", space, lengths[space], want)
		}
		delete(lengths, space)
	}
	if len(lengths) > 0 {
		t.Errorf("there are rows in other spaces: %v", lengths)
	}
}

// A long partition key is hashed, one of 512 bytes is not, and no hash can be taken for a
// partition key.
func TestPlaced(t *testing.T) {
	for _, c := range []struct {
		pk     value.PartitionKey
		hashed bool
	}{
		{value.PartitionKey{value.String(strings.Repeat("k", maxPlacedPK-4))}, false},
		{value.PartitionKey{value.String(strings.Repeat("k", maxPlacedPK-3))}, true},
		{value.PartitionKey{value.String(strings.Repeat("k", 300)), value.Null(), value.String(strings.Repeat("k", 300))}, true},
		{value.PartitionKey{}, false},
	} {
		for _, id := range []string{"", "i", strings.Repeat("\x00\xff", 500)} {
			epk := []byte{1, 0, 2}
			identity := appendIdentity(nil, epk, c.pk, id)
			got := placed(identity)
			escaped := len(value.AppendBytesKey(nil, epk))
			if !c.hashed {
				if !bytes.Equal(got, identity) {
					t.Errorf("partition key of %d bytes: got %x, want it whole", c.pk.Size(), got)
				}
				continue
			}
			if want := escaped + 33 + len(id); len(got) != want || got[escaped] != hashedPK || !bytes.HasSuffix(got, []byte(id)) {
				t.Errorf("partition key of %d bytes: got %x, want %d bytes", c.pk.Size(), got, want)
			}
			if _, _, err := value.DecodePartitionKey(got[escaped:]); err == nil {
				t.Errorf("%x can be read as a partition key", got[escaped:])
			}
			if again := placed(got); !bytes.Equal(again, got) {
				t.Errorf("placed twice: got %x, want %x", again, got)
			}
		}
	}
}

// Items with long partition keys are found by all paths, and those of another key that
// begins with the same bytes are not.
func TestLongPartitionKeys(t *testing.T) {
	f := newFixture(t, withLong)
	one, other := strings.Repeat("k", 1500)+"1", strings.Repeat("k", 1500)+"2"
	for _, pk := range []string{one, other} {
		for i, id := range []string{"a", "b", "c"} {
			_, err := f.write(f.of(Create, pk, id, map[string]any{"u": i, "n": pk[1500:]}))
			f.must(err)
		}
	}
	if _, err := f.write(f.of(Create, one, "d", map[string]any{"u": 1})); !errors.Is(err, ErrNotUnique) {
		t.Errorf("a unique key that is taken: got %v", err)
	}
	item, err := f.p.Read(nil, f.key(one, "b"), "", f.clock.Now())
	if f.must(err); !bytes.Contains(item.Body, []byte(`"n":"1"`)) {
		t.Errorf("got the item %.40s… %s", item.Body, item.Body[len(item.Body)-300:])
	}
	_, err = f.write(Write{Op: Delete, Key: f.key(one, "a")})
	f.must(err)
	_, err = f.write(f.of(Create, one, "d", map[string]any{"u": 0}))
	f.must(err)
	logical := f.within(one)
	page, err := f.p.List(context.Background(), List{Within: &logical, MaxItems: 10, MaxBytes: 1 << 20}, f.clock.Now())
	if f.must(err); page.Count != 3 || bytes.Contains(page.Items, []byte(`"n":"2"`)) {
		t.Errorf("the list has %d items: %s", page.Count, page.Items)
	}
	r := f.reader()
	items, err := r.LogicalItems(logical)
	if f.must(err); items != 3 {
		t.Errorf("the logical partition has %d items, want 3", items)
	}
	found, live, err := r.Find(f.key(other, "a"))
	if f.must(err); !live || !bytes.Contains(found.Body, []byte(`"n":"2"`)) {
		t.Errorf("found %v, %s", live, found.Body)
	}
	r.Close()
	pk, id, err := f.p.NameOf(found.Ordinal, f.clock.Now())
	if f.must(err); id != "a" || !pk.Equal(f.key(other, "").PartitionKey) {
		t.Errorf("the item's name is %q of %d bytes of partition key", id, pk.Size())
	}
	f.checkClean()

	// A removal that was interrupted goes on with the key of its row.
	f.must(f.p.removeStep(context.Background(), &removal{logical: logical.appendPlace(nil), begin: true}))
	f.reopen()
	page, err = f.p.List(context.Background(), List{MaxItems: 10, MaxBytes: 1 << 20}, f.clock.Now())
	if f.must(err); page.Count != 3 || bytes.Contains(page.Items, []byte(`"n":"1"`)) {
		t.Errorf("after the removal the list has %d items", page.Count)
	}
	f.checkClean()
}

// faultyCommits is a store whose commits fail after a number of them.
type faultyCommits struct {
	kv.DB
	left int
}

var errCrash = errors.New("crash")

func (f *faultyCommits) Commit(ctx context.Context, b *kv.Batch) error {
	if f.left--; f.left < 0 {
		return errCrash
	}
	return f.DB.Commit(ctx, b)
}

// The step to format 8 gives rows the keys that they have today, whenever it is interrupted
// and repeated.
func TestPlaceLong(t *testing.T) {
	f := newFixture(t, withLong)
	pks := []string{"k", wholePK, wholePK + "k", strings.Repeat("k", 900) + "1", strings.Repeat("k", 900) + "2", strings.Repeat("\x00", 400)}
	whole := map[string][]byte{} // long partition keys, by their form in keys
	for _, pk := range pks {
		for i, id := range []string{"a", "b", "c", "d"} {
			_, err := f.write(f.of(Create, pk, id, map[string]any{"u": i}))
			f.must(err)
		}
		encoded := f.key(pk, "").PartitionKey.AppendKey(nil)
		whole[string(appendPlacedPK(nil, encoded))] = encoded
	}
	removed := f.within(pks[3])
	f.must(f.p.removeStep(context.Background(), &removal{logical: removed.appendPlace(nil), begin: true}))
	f.p.Close()
	today := allRows(t, f.db)
	before := map[string]string{}
	moved := 0
	for key, row := range today {
		old := key
		for place, pk := range whole {
			if place[0] == hashedPK && strings.HasPrefix(key, string(f.p.prefix[:])) && strings.ContainsRune("kbur", rune(key[prefixBytes])) {
				old = strings.Replace(old, place, string(pk), 1)
			}
		}
		if old != key {
			moved++
		}
		before[old] = row
	}
	if want := 4 * (4 + 1 + 8); moved != want+1 { // id rows, part rows, unique keys, and the removal
		t.Fatalf("%d rows have a long partition key, want %d", moved, want+1)
	}
	for crash := 0; ; crash++ {
		db := kvtest.NewModel()
		var b kv.Batch
		for key, row := range before {
			b.Set([]byte(key), []byte(row))
		}
		f.must(db.Commit(context.Background(), &b))
		err := placeLong(&faultyCommits{db, crash}, slog.New(slog.DiscardHandler), 3)
		done := err == nil
		if !done && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		for range 2 { // the second time there is nothing to do
			f.must(placeLong(db, slog.New(slog.DiscardHandler), 3))
		}
		if got := allRows(t, db); !maps.Equal(got, today) {
			t.Fatalf("after a crash at commit %d: the rows differ from those that are written today", crash)
		}
		if done {
			break
		}
	}
	f.open()
	f.checkClean()
}

// allRows returns all rows of a store.
func allRows(t *testing.T, db kv.DB) map[string]string {
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
