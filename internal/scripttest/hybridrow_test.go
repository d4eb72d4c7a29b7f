// SPDX-License-Identifier: MIT

// Batches as .NET sends them, in HybridRow, and their answers. This file encodes and
// decodes the bytes independently of the code under test, whose layout is in rest's
// hybridrow.go.

package scripttest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
)

const (
	hybridVersion = 0x81

	hybridSegment   = 0x7FFFD8F0
	hybridRecord    = 0x7FFFD8F1
	hybridOperation = 0x7FE15470
	hybridResult    = 0x7FE15471

	hybridSegmentBytes = 10
	hybridRecordBytes  = 13

	// Types of sparse fields, and the tokens of their names.
	hybridTrue, hybridFloat, hybridText                       = 3, 16, 20
	tokenIfMatch, tokenIfNoneMatch, tokenMinimal, tokenCharge = 9, 10, 12, 6
)

// hybridKinds are the numbers of operations.
var hybridKinds = map[string]uint32{"Create": 0, "Patch": 1, "Read": 2, "Delete": 4, "Replace": 5, "Upsert": 20}

// isHybrid reports whether an answer is in HybridRow.
func (a *answer) isHybrid() bool { return len(a.body) > 0 && a.body[0] == hybridVersion }

// hybridBatch writes operations, given as JSON, in HybridRow.
func (d *directive) hybridBatch(ops []string) []byte {
	stream := binary.LittleEndian.AppendUint32(append(hybridHead(hybridSegment), 1), hybridSegmentBytes)
	for _, text := range ops {
		var op struct {
			OperationType, ID, PartitionKey, IfMatch, IfNoneMatch string
			ResourceBody                                          json.RawMessage
			MinimalReturnPreference                               bool
		}
		if err := json.Unmarshal([]byte(text), &op); err != nil {
			d.fatalf("%s: %v", text, err)
		}
		row, present := hybridHead(hybridOperation), byte(3)
		var fields, sparse []byte
		for _, f := range []struct {
			bit   int
			value string
		}{{2, op.PartitionKey}, {4, op.ID}, {6, string(op.ResourceBody)}} {
			if f.value != "" {
				present |= 1 << f.bit
				fields = appendHybridText(fields, f.value)
			}
		}
		for _, f := range []struct {
			token byte
			value string
		}{{tokenIfMatch, op.IfMatch}, {tokenIfNoneMatch, op.IfNoneMatch}} {
			if f.value != "" {
				sparse = appendHybridText(append(sparse, hybridText, f.token), f.value)
			}
		}
		if op.MinimalReturnPreference {
			sparse = append(sparse, hybridTrue, tokenMinimal)
		}
		row = binary.LittleEndian.AppendUint32(append(row, present), hybridKinds[op.OperationType])
		row = binary.LittleEndian.AppendUint32(row, 2) // an item
		row = append(append(row, fields...), sparse...)
		stream = append(stream, hybridHead(hybridRecord)...)
		stream = binary.LittleEndian.AppendUint32(stream, uint32(len(row)))
		stream = binary.LittleEndian.AppendUint32(stream, crc32.ChecksumIEEE(row))
		stream = append(stream, row...)
	}
	return stream
}

func hybridHead(schema uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{hybridVersion}, schema)
}

func appendHybridText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// hybridResults decodes results in HybridRow, and returns them as JSON.
func (d *directive) hybridResults(a answer) [][]byte {
	d.Helper()
	stream := a.body
	var results [][]byte
	for rest := stream[min(hybridSegmentBytes, len(stream)):]; len(rest) > 0; {
		if len(rest) < hybridRecordBytes {
			d.fatalf("the answer ends in a record: %x", stream)
		}
		n := binary.LittleEndian.Uint32(rest[5:])
		sum := binary.LittleEndian.Uint32(rest[9:])
		if binary.LittleEndian.Uint32(rest[1:]) != hybridRecord || uint64(n) > uint64(len(rest)-hybridRecordBytes) {
			d.fatalf("not a record: %x", rest)
		}
		row := rest[hybridRecordBytes : hybridRecordBytes+n]
		if crc32.ChecksumIEEE(row) != sum {
			d.fatalf("a record with another checksum: %x", rest)
		}
		results = append(results, d.hybridResult(row, a.framed))
		rest = rest[hybridRecordBytes+n:]
	}
	return results
}

// hybridResult returns a row as JSON.
func (d *directive) hybridResult(row []byte, framed bool) []byte {
	d.Helper()
	const fixed = 1 + 4 + 1 + 4 + 4
	if len(row) < fixed || binary.LittleEndian.Uint32(row[1:]) != hybridResult {
		d.fatalf("not a result: %x", row)
	}
	present, rest := row[5], row[fixed:]
	out := fmt.Sprintf(`{"statusCode":%d,"subStatusCode":%d`, binary.LittleEndian.Uint32(row[6:]), binary.LittleEndian.Uint32(row[10:]))
	text := func() string {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			d.fatalf("the result ends too early: %x", row)
		}
		value := string(rest[size : size+int(n)])
		rest = rest[size+int(n):]
		return value
	}
	if present&(1<<2) != 0 {
		out += `,"eTag":` + quoted(text())
	}
	if present&(1<<3) != 0 {
		if body := text(); binary.LittleEndian.Uint32(row[6:]) >= 400 {
			out += `,"message":` + quoted(d.hybridFailure(body, framed))
		} else {
			out += `,"resourceBody":` + body
		}
	}
	if len(rest) != 10 || rest[0] != hybridFloat || rest[1] != tokenCharge {
		d.fatalf("the result has no charge: %x", row)
	}
	charge := math.Float64frombits(binary.LittleEndian.Uint64(rest[2:]))
	return fmt.Appendf(nil, `%s,"requestCharge":%v}`, out, charge)
}

// hybridFailure returns the message of an operation's error. Its body is that of a single
// request's error: over direct mode the backend's, and over HTTP the gateway's.
func (d *directive) hybridFailure(body string, framed bool) string {
	d.Helper()
	if framed {
		said, err := refusalText([]byte(body))
		if err != nil {
			d.fatalf("%v", err)
		}
		return said
	}
	var e struct{ Message string }
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		d.fatalf("%s: %v", body, err)
	}
	inner, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "Message: "), "\r\n")
	said, err := refusalText([]byte(inner))
	if err != nil {
		d.fatalf("%v", err)
	}
	return said
}
