// SPDX-License-Identifier: MIT

package rest

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"
)

// hybridStream puts rows, which are in hexadecimal, into a batch in HybridRow.
func hybridStream(t testing.TB, rows ...string) string {
	t.Helper()
	unhex := func(text string) []byte {
		b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	stream := unhex("81 F0D8FF7F 01 0A000000")
	for _, text := range rows {
		row := unhex(text)
		stream = append(stream, unhex("81 F1D8FF7F")...)
		stream = binary.LittleEndian.AppendUint32(stream, uint32(len(row)))
		stream = binary.LittleEndian.AppendUint32(stream, crc32.ChecksumIEEE(row))
		stream = append(stream, row...)
	}
	return string(stream)
}

// hybridResult is the result of an operation.
type hybridResult struct {
	status, subStatus int32
	etag, body        string
}

// hybridResults reads the answer to a batch in HybridRow, by the layout of its rows.
func hybridResults(t testing.TB, stream []byte) (all []hybridResult) {
	t.Helper()
	take := func(b *[]byte, n int) []byte {
		if n > len(*b) {
			t.Fatalf("the answer ends in the middle of a row: %x", stream)
		}
		out := (*b)[:n]
		*b = (*b)[n:]
		return out
	}
	variable := func(b *[]byte) string {
		n, size := binary.Uvarint(*b)
		take(b, size)
		return string(take(b, int(n)))
	}
	take(&stream, 10) // the segment
	for len(stream) > 0 {
		head := take(&stream, 13)
		row := take(&stream, int(binary.LittleEndian.Uint32(head[5:])))
		if binary.LittleEndian.Uint32(head[9:]) != crc32.ChecksumIEEE(row) {
			t.Fatal("a row has a wrong checksum")
		}
		if schema := hex.EncodeToString(take(&row, 5)); schema != "817154e17f" {
			t.Fatalf("a row has the schema %s", schema)
		}
		present := take(&row, 1)[0]
		fixed := take(&row, 8)
		r := hybridResult{status: int32(binary.LittleEndian.Uint32(fixed)), subStatus: int32(binary.LittleEndian.Uint32(fixed[4:]))}
		if present&4 != 0 {
			r.etag = variable(&row)
		}
		if present&8 != 0 {
			r.body = variable(&row)
		}
		if charge := take(&row, 10); charge[0] != 0x10 || charge[1] != 6 || len(row) != 0 {
			t.Fatalf("a row ends with %x%x", charge, row)
		}
		all = append(all, r)
	}
	return all
}
