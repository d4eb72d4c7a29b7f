// SPDX-License-Identifier: MIT

package api

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/store"
)

// unhex parses bytes in hex, with white space between them.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const hybridSegment = "81 F0D8FF7F 01 0A000000"

// hybridStream puts rows into records. It computes lengths and checksums itself, so that
// the reader is not tested against the writer's code.
func hybridStream(t testing.TB, rows ...string) []byte {
	t.Helper()
	stream := unhex(t, hybridSegment)
	for _, text := range rows {
		row := unhex(t, text)
		stream = append(stream, unhex(t, "81 F1D8FF7F")...)
		stream = binary.LittleEndian.AppendUint32(stream, uint32(len(row)))
		stream = binary.LittleEndian.AppendUint32(stream, crc32.ChecksumIEEE(row))
		stream = append(stream, row...)
	}
	return stream
}

// Rows of operations, checked by hand against the layout.
const (
	// Create, item type, body {"id":"1"}.
	rowCreate = `81 7054E17F 43  00000000 02000000  0A 7B226964223A2231227D`
	// Read, key ["a"], id é, ifNoneMatch "e", with quotes.
	rowRead = `81 7054E17F 17  02000000 02000000  05 5B2261225D  02 C3A9  14 0A 03 226522`
	// Patch, id 1, body [], ifMatch *, minimalReturnPreference true.
	rowPatch = `81 7054E17F 53  01000000 02000000  01 31  02 5B5D  14 09 01 2A  03 0C`
	// Upsert, with an effective key, a binary id, indexingDirective Include,
	// minimalReturnPreference false.
	rowUpsert = `81 7054E17F 6B  14000000 02000000  02 0102  01 FF  02 7B7D  14 08 07 496E636C756465  02 0C`
	// Delete and Replace, of id 1.
	rowDelete  = `81 7054E17F 13  04000000 02000000  01 31`
	rowReplace = `81 7054E17F 53  05000000 02000000  01 31  02 7B7D`
)

func TestHybridOperations(t *testing.T) {
	ops, err := parseHybridBatch(hybridStream(t, rowCreate, rowRead, rowPatch, rowUpsert, rowDelete, rowReplace))
	if err != nil {
		t.Fatal(err)
	}
	want := []batchOp{
		{engine.ItemOp{Op: store.Create, Body: []byte(`{"id":"1"}`)}, false},
		{engine.ItemOp{Op: store.Read, PartitionKey: `["a"]`, ID: "é", IfNoneMatch: `"e"`}, false},
		{engine.ItemOp{Op: store.Update, ID: "1", Body: []byte("[]"), IfMatch: "*"}, true},
		{engine.ItemOp{Op: store.Upsert, Body: []byte("{}")}, false},
		{engine.ItemOp{Op: store.Delete, ID: "1"}, false},
		{engine.ItemOp{Op: store.Replace, ID: "1", Body: []byte("{}")}, false},
	}
	if len(ops) != len(want) {
		t.Fatalf("got %d operations, want %d", len(ops), len(want))
	}
	for i := range want {
		if fmt.Sprintf("%+v", ops[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("operation %d:\ngot  %+v\nwant %+v", i, ops[i], want[i])
		}
	}
}

// A segment header may have more fields, and a stream several segments.
func TestHybridSegments(t *testing.T) {
	longer := unhex(t, "81 F0D8FF7F 03 0D000000 020203")
	records := hybridStream(t, rowCreate)[segmentBytes:]
	ops, err := parseHybridBatch(bytes.Join([][]byte{longer, records, unhex(t, hybridSegment), records}, nil))
	if err != nil || len(ops) != 2 {
		t.Errorf("got %d operations, %v, want 2", len(ops), err)
	}
}

func TestHybridFaults(t *testing.T) {
	good := hybridStream(t, rowCreate)
	altered := func(at int, b byte) []byte {
		s := bytes.Clone(good)
		s[at] = b
		return s
	}
	for name, c := range map[string]struct {
		stream []byte
		want   string
	}{
		"cut in the segment":    {good[:7], "ends too early"},
		"cut in the record":     {good[:segmentBytes+7], "ends too early"},
		"cut in the row":        {good[:len(good)-1], "ends too early"},
		"short segment":         {altered(6, 9), "segment without a length"},
		"segment past the end":  {altered(9, 0x7F), "ends too early"},
		"segment with no bits":  {altered(5, 0), "segment without a length"},
		"another record":        {altered(segmentBytes+1, 0), "another kind"},
		"negative length":       {altered(segmentBytes+8, 0xFF), "negative length"},
		"checksum":              {altered(len(good)-1, '!'), "checksum"},
		"another row":           {hybridStream(t, "82 7054E17F 03 00000000 00000000"), "another kind"},
		"empty row":             {hybridStream(t, ""), "ends too early"},
		"unknown operation":     {hybridStream(t, "81 7054E17F 03 03000000 00000000"), "operation that is not"},
		"no operation":          {hybridStream(t, "81 7054E17F 02 00000000 00000000"), "operation that is not"},
		"length past the end":   {hybridStream(t, "81 7054E17F 43 00000000 00000000 FF01 7B"), "ends too early"},
		"length without an end": {hybridStream(t, "81 7054E17F 43 00000000 00000000 FFFFFFFFFFFFFFFFFFFF01"), "malformed length"},
		"text not UTF-8":        {hybridStream(t, "81 7054E17F 13 02000000 00000000 01 FF"), "UTF-8"},
		"unknown type":          {hybridStream(t, "81 7054E17F 03 02000000 00000000 63 09"), "unknown type"},
		"sparse field cut":      {hybridStream(t, "81 7054E17F 03 02000000 00000000 07 63 0000"), "ends too early"},
		"ttl beside the item":   {hybridStream(t, "81 7054E17F 03 00000000 00000000 07 0B 05000000"), "time to live"},
	} {
		t.Run(name, func(t *testing.T) {
			ops, err := parseHybridBatch(c.stream)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", ops, err, c.want)
			}
		})
	}
}

// Rows of results, checked by hand against the layout.
func TestHybridResults(t *testing.T) {
	results := []batchResult{
		{status: 201, charge: 5.5, etag: `"e"`, body: []byte(`{}`)},
		{status: 404, subStatus: 1003, charge: 1, message: "m", failure: []byte(`[]`)},
		{status: 424},
	}
	got := appendHybridResults([]byte("before"), results)
	want := append([]byte("before"), hybridStream(t,
		`81 7154E17F 0F  C9000000 00000000  03 226522  02 7B7D  10 06 0000000000001640`,
		`81 7154E17F 0B  94010000 EB030000  02 5B5D  10 06 000000000000F03F`,
		`81 7154E17F 03  A8010000 00000000  10 06 0000000000000000`)...)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	if math.Float64frombits(0x4016000000000000) != 5.5 {
		t.Error("the charge of the first row is not as it is written down here")
	}
}

// FuzzHybridBatch reads arbitrary bytes: no panic, and no more operations than fit into
// the body.
func FuzzHybridBatch(f *testing.F) {
	for _, row := range []string{rowCreate, rowRead, rowPatch, rowUpsert, rowDelete, rowReplace} {
		f.Add(hybridStream(f, row))
	}
	f.Add(unhex(f, hybridSegment))
	f.Fuzz(func(t *testing.T, body []byte) {
		ops, err := parseHybridBatch(body)
		if err != nil && ops != nil || len(ops)*(recordBytes+rowHeaderBytes) > len(body) {
			t.Errorf("%d operations of %d bytes, %v", len(ops), len(body), err)
		}
		// Also read the bytes as a row, which the fuzzer cannot reach past the checksum.
		row := hybridReader{rest: body}
		op := row.operation()
		if row.fault == "" && (op.Op == 0 || len(row.rest) > 0) {
			t.Errorf("an operation %+v, with %x left", op, row.rest)
		}
	})
}
