// SPDX-License-Identifier: MIT

// Batches from .NET, and the answers to them, are records in HybridRow, Cosmos DB's
// binary row format. A stream of records is
//
//	segment   81 | F0 D8 FF 7F | 01 | int32: bytes up to the first record
//	record    81 | F1 D8 FF 7F | int32: bytes of the row | uint32: CRC-32 of the row
//	row       81 | int32: schema | presence byte | fixed fields | variable fields | sparse fields
//
// repeated, in little-endian. The presence byte has a bit for each fixed and each
// variable field, from the lowest bit on. A fixed field takes its bytes whether it is
// present or not. A variable field that is present is its length and its bytes. A sparse
// field is its type, the token of its name, and its value. Lengths and tokens are
// varints, seven bits in a byte, the lowest first.
//
//	schema          fixed                       variable                     sparse, with its token
//	operation       operationType               partitionKey, effective-     8 indexingDirective, 9 ifMatch,
//	70 54 E1 7F     resourceType                PartitionKey, id, binaryId,  10 ifNoneMatch, 11 timeToLiveInSeconds,
//	                                            resourceBody                 12 minimalReturnPreference
//	result          statusCode                  eTag, resourceBody           5 retryAfterMilliseconds,
//	71 54 E1 7F     subStatusCode                                            6 requestCharge
//
// Fixed fields are int32; texts are UTF-8, and bodies the bytes of their JSON.

package api

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store"
)

const (
	hybridVersion = 0x81

	schemaSegment   = 2147473648
	schemaRecord    = 2147473649
	schemaOperation = 2145473648
	schemaResult    = 2145473649

	// Sizes of a segment header that has only its length, of a record header, and of a
	// row's version and schema.
	segmentBytes   = 10
	recordBytes    = 13
	rowHeaderBytes = 5

	// maxHybridOps bounds how many operations are read. The engine's limit is lower.
	maxHybridOps = 1000
)

// Variable fields of an operation, by their presence bits.
const (
	fieldPartitionKey = 2
	fieldID           = 4
	fieldResourceBody = 6
	lastField         = 6
)

// Tokens of sparse fields.
const (
	tokenIfMatch     = 9
	tokenIfNoneMatch = 10
	tokenTTL         = 11
	tokenMinimal     = 12

	tokenCharge = 6
)

// Types of sparse fields.
const (
	typeFalse   = 2
	typeTrue    = 3
	typeInt32   = 7
	typeUint32  = 11
	typeFloat64 = 16
	typeText    = 20
	typeBinary  = 21
)

// hybridOps maps the numbers of operations.
var hybridOps = map[int32]store.Op{
	0: store.Create, 1: store.Update, 2: store.Read, 4: store.Delete, 5: store.Replace, 20: store.Upsert,
}

// isHybridRow reports whether a body is in HybridRow. No JSON begins with this byte.
func isHybridRow(body []byte) bool { return len(body) > 0 && body[0] == hybridVersion }

// parseHybridBatch reads a stream of operations.
func parseHybridBatch(body []byte) ([]batchOp, error) {
	r := hybridReader{rest: body}
	var ops []batchOp
	for len(r.rest) > 0 && r.fault == "" && len(ops) < maxHybridOps {
		if r.isSegment() {
			r.segment()
			continue
		}
		row := hybridReader{rest: r.record()}
		if r.fault == "" {
			ops = append(ops, row.operation())
			r.fault = row.fault
		}
	}
	if r.fault != "" {
		return nil, Invalid("The input content is invalid: the batch is no stream of operations in HybridRow: " + r.fault + ".")
	}
	return ops, nil
}

// hybridReader takes bytes apart. After a fault it returns zeros. The fault is its
// message, and empty if there was none.
type hybridReader struct {
	rest  []byte
	fault string
}

func (r *hybridReader) fail(fault string) {
	if r.fault == "" {
		r.fault = fault
	}
	r.rest = nil
}

// take returns the next n bytes.
func (r *hybridReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail("it ends too early")
		return nil
	}
	part := r.rest[:n:n]
	r.rest = r.rest[n:]
	return part
}

func (r *hybridReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *hybridReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *hybridReader) varuint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail("it has a malformed length")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *hybridReader) bytes() []byte { return r.take(r.varuint()) }

func (r *hybridReader) text() string {
	b := r.bytes()
	if !utf8.Valid(b) {
		r.fail("it has a text that is not UTF-8")
		return ""
	}
	return string(b)
}

// schema reads the start of a row, and fails unless the row has the schema that is
// wanted.
func (r *hybridReader) schema(want int32) {
	if version, schema := r.byte(), r.int32(); r.fault == "" && (version != hybridVersion || schema != want) {
		r.fail("it has a row of another kind")
	}
}

func (r *hybridReader) isSegment() bool {
	return len(r.rest) >= rowHeaderBytes && binary.LittleEndian.Uint32(r.rest[1:]) == schemaSegment
}

// segment skips the header of a segment.
func (r *hybridReader) segment() {
	r.schema(schemaSegment)
	present, n := r.byte(), r.int32()
	if present&1 == 0 || n < segmentBytes {
		r.fail("it has a segment without a length")
		return
	}
	r.take(uint64(n - segmentBytes))
}

// record returns the row in a record.
func (r *hybridReader) record() []byte {
	r.schema(schemaRecord)
	n, sum := r.int32(), uint32(r.int32())
	if n < 0 {
		r.fail("it has a record of negative length")
	}
	row := r.take(uint64(n))
	if r.fault == "" && crc32.ChecksumIEEE(row) != sum {
		r.fail("it has a record whose checksum is wrong")
	}
	return row
}

// operation reads the row of an operation to its end.
func (r *hybridReader) operation() (op batchOp) {
	r.schema(schemaOperation)
	present := r.byte()
	kind := r.int32()
	r.int32() // the resource type: always items
	for field := fieldPartitionKey; field <= lastField; field++ {
		if present&(1<<field) == 0 {
			continue
		}
		switch field {
		case fieldPartitionKey:
			op.PartitionKey = r.text()
		case fieldID:
			op.ID = r.text()
		case fieldResourceBody:
			op.Body = r.bytes()
		default:
			r.bytes()
		}
	}
	for len(r.rest) > 0 {
		r.sparse(&op)
	}
	if op.Op = hybridOps[kind]; r.fault == "" && (op.Op == 0 || present&1 == 0) {
		r.fail("it has an operation that is not to create, upsert, replace, patch, delete or read an item")
	}
	return op
}

// sparse reads a sparse field.
func (r *hybridReader) sparse(op *batchOp) {
	kind, token := r.byte(), r.varuint()
	var text string
	switch kind {
	case typeFalse, typeTrue:
	case typeInt32, typeUint32:
		r.take(4)
	case typeFloat64:
		r.take(8)
	case typeText:
		text = r.text()
	case typeBinary:
		r.bytes()
	default:
		r.fail("it has a field of an unknown type")
	}
	switch {
	case token == tokenIfMatch && kind == typeText:
		op.IfMatch = text
	case token == tokenIfNoneMatch && kind == typeText:
		op.IfNoneMatch = text
	case token == tokenMinimal:
		op.minimal = kind == typeTrue
	case token == tokenTTL:
		r.fail("a time to live is given beside an item, and not as its property 'ttl'")
	}
}

// appendHybridResults writes a stream of results.
func appendHybridResults(dst []byte, results []batchResult) []byte {
	dst = appendHybridSchema(dst, schemaSegment)
	dst = binary.LittleEndian.AppendUint32(append(dst, 1), segmentBytes)
	for i := range results {
		start := len(dst)
		dst = append(dst, make([]byte, recordBytes)...)
		dst = appendHybridResult(dst, &results[i])
		row := dst[start+recordBytes:]
		header := appendHybridSchema(dst[:start], schemaRecord)
		header = binary.LittleEndian.AppendUint32(header, uint32(len(row)))
		binary.LittleEndian.AppendUint32(header, crc32.ChecksumIEEE(row))
	}
	return dst
}

func appendHybridSchema(dst []byte, schema uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, hybridVersion), schema)
}

// appendHybridResult writes the row of a result. An error's body takes the place of the
// item.
func appendHybridResult(dst []byte, r *batchResult) []byte {
	dst = appendHybridSchema(dst, schemaResult)
	body := r.body
	if body == nil {
		body = r.failure
	}
	present := byte(1<<0 | 1<<1)
	if r.etag != "" {
		present |= 1 << 2
	}
	if body != nil {
		present |= 1 << 3
	}
	dst = append(dst, present)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.status))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.subStatus))
	if r.etag != "" {
		dst = append(binary.AppendUvarint(dst, uint64(len(r.etag))), r.etag...)
	}
	if body != nil {
		dst = append(binary.AppendUvarint(dst, uint64(len(body))), body...)
	}
	dst = append(dst, typeFloat64, tokenCharge)
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.charge))
}
