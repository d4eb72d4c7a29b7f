// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
)

// textPolicy indexes the words of three paths.
const textPolicy = `{"fullTextIndexes":[{"path":"/t"},{"path":"/o/t"},{"path":"/_etag"}]}`

// The rows of a text are written and removed with its item, and a check reports damaged
// ones.
func TestTextRows(t *testing.T) {
	f := newFixture(t, strings.TrimSuffix(withTTL("100"), "}")+`,"indexingPolicy":`+textPolicy+`}`)
	f.put("a", `"t":"red house"`)
	f.put("b", `"t":"red red"`)
	f.put("c", `"t":"green","ttl":10`)
	f.checkClean()
	f.put("a", `"t":"blue house"`)
	f.checkClean()
	r, err := f.p.NewReader(f.clock.Now())
	f.must(err)
	var found []string
	for _, kind := range []IndexScan{
		{Kind: index.Words, Values: index.Word("red")}, {Kind: index.Words, Values: index.Word("hous")}, {Kind: index.Words, Values: index.LongTexts()},
		{Kind: index.Texts, Values: index.EveryItem(), Order: kv.Reverse},
	} {
		kind.Path = index.Path{index.Property("t")}
		for hit, err := range r.Index(kind) {
			f.must(err)
			if kind.Kind == index.Texts {
				size, err := index.DecodeTextSize(hit.Carried)
				f.must(err)
				found = append(found, fmt.Sprint(hit.Ordinal, size))
				continue
			}
			n, err := index.DecodeOccurrences(hit.Carried)
			f.must(err)
			found = append(found, fmt.Sprint(hit.Ordinal, "x", n))
		}
	}
	r.Close()
	want := []string{"2x2", "1x1", "3 {true 1 false}", "2 {true 2 false}", "1 {true 2 false}"}
	f.check(slices.Equal(found, want), "got %q, want %q", found, want)

	key := partitionPrefix(f.container.RID, 0).textRow("red", 2)
	var batch kv.Batch
	batch.Set(key, bytes.Replace([]byte(f.rows()[string(key)]), []byte{1, 2}, []byte{1, 3}, 1))
	f.must(f.db.Commit(t.Context(), &batch))
	f.check(len(f.problems()) == 1, "got %q, want one problem", f.problems())
}

// textRow is the key of the row of a word in /t.
func (p prefix) textRow(word string, ordinal uint64) []byte {
	entry := append(index.AppendStart(nil, index.Words, index.Path{index.Property("t")}), index.Word(word).PlaceOf(0).Value.Bytes()...)
	return p.appendIndexKey(nil, 1, entry, ordinal)
}

// The data that a row carries is validated.
func TestDamagedTextRows(t *testing.T) {
	for _, carried := range [][]byte{{0x80}, {1, 1}, bytes.Repeat([]byte{0xff}, 9), binary.AppendUvarint(nil, 1<<63)} {
		if _, err := index.DecodeTextSize(carried); err == nil {
			t.Errorf("%x is the size of a text", carried)
		}
		if _, err := index.DecodeOccurrences(carried); err == nil {
			t.Errorf("%x is a number of words", carried)
		}
	}
}
