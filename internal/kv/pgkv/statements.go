// SPDX-License-Identifier: MIT

package pgkv

import (
	"context"
	"encoding/binary"
	"strconv"
)

// statement is a prepared statement. Each connection prepares it when it first needs it.
type statement int

const (
	getRow statement = iota
	getRows
	lookRows
	sweepBound
	// The first of the eight statements of pages. The bits of the number that is added say
	// what they do.
	firstPage
	statementCount = firstPage + 8
)

const (
	pageAfter   = 1 << iota // begin after the lower bound instead of at it
	pageBounded             // there is an upper bound
	pageReverse
)

// timeNow is the server's time in whole milliseconds.
const timeNow = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

func (s statement) text() string {
	switch s {
	case getRow:
		return "SELECT v FROM kv WHERE k = $1::bytea"
	case getRows:
		return "SELECT k, v FROM kv WHERE k = ANY($1::bytea[])"
	case lookRows:
		// The time comes with the rows of one statement, which sees one state of the store.
		return "SELECT " + timeNow + ", NULL::bytea, NULL::bytea UNION ALL SELECT 0, k, v FROM kv WHERE k = ANY($1::bytea[])"
	}
	if s == sweepBound {
		return "SELECT k FROM kv WHERE k >= $1::bytea AND k < $2::bytea ORDER BY k LIMIT 1 OFFSET " + strconv.Itoa(sweepRows)
	}
	kind := s - firstPage
	from, upper, order := ">=", "", ""
	if kind&pageAfter != 0 {
		from = ">"
	}
	if kind&pageBounded != 0 {
		upper = " AND k < $3::bytea"
	}
	if kind&pageReverse != 0 {
		order = " DESC"
	}
	return "SELECT k, v FROM kv WHERE k " + from + " $1::bytea" + upper + " ORDER BY k" + order + " LIMIT $2::bigint"
}

var binaryFormat = []int16{1}

// query runs a prepared statement and calls row with the values of each row, which are valid
// until it returns. After an error of row, no more rows are passed.
func (c *conn) query(s statement, row func(values [][]byte) error, params ...[]byte) error {
	c.limit()
	if c.statements[s] == nil {
		d, err := c.pg.Prepare(context.Background(), "mayfly"+strconv.Itoa(int(s)), s.text(), nil)
		if err != nil {
			return err
		}
		c.statements[s] = d
	}
	r := c.pg.ExecStatement(context.Background(), c.statements[s], params, binaryFormat, binaryFormat)
	var failed error
	for r.NextRow() {
		if failed == nil {
			failed = row(r.Values())
		}
	}
	if _, err := r.Close(); err != nil {
		return err
	}
	return failed
}

// byteaOID is the number of the type bytea.
const byteaOID = 17

// byteaArray encodes an array of bytea, in the binary format of the protocol.
func byteaArray(values [][]byte) []byte {
	size := 20
	for _, v := range values {
		size += 4 + len(v)
	}
	b := make([]byte, 0, size)
	if len(values) == 0 {
		b = binary.BigEndian.AppendUint32(b, 0) // dimensions
		b = binary.BigEndian.AppendUint32(b, 0)
		return binary.BigEndian.AppendUint32(b, byteaOID)
	}
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 0) // no NULLs
	b = binary.BigEndian.AppendUint32(b, byteaOID)
	b = binary.BigEndian.AppendUint32(b, uint32(len(values)))
	b = binary.BigEndian.AppendUint32(b, 1) // the first index
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	return b
}

func bigint(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// nonNil returns v, or an empty slice instead of nil: nil would be NULL.
func nonNil(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}
