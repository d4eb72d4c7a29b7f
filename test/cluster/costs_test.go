// SPDX-License-Identifier: MIT

package main

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
)

// A message that PostgreSQL answers is counted once, however the stream is cut into pieces,
// and whatever bytes are in the bodies of messages.
func TestQuestions(t *testing.T) {
	message := func(kind string, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte(kind), uint32(4+len(body))), body...)
	}
	var stream []byte
	for _, m := range [][]byte{
		message("", "\x00\x03\x00\x00user\x00postgres\x00\x00"), // the first has no kind
		message("Q", "SELECT 'SQSQ'\x00"),
		message("P", "S\x00SELECT Q\x00\x00\x00"), message("D", "SS\x00"), message("S", ""),
		message("B", "\x00Q\x00\x00"), message("E", "\x00\x00\x00\x00\x00"), message("S", ""),
		message("X", ""),
	} {
		stream = append(stream, m...)
	}
	for size := 1; size <= len(stream); size++ {
		q := &questions{count: new(atomic.Int64)}
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			if got, err := q.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("%d of %d bytes were taken: %v", got, n, err)
			}
			rest = rest[n:]
		}
		if got := q.count.Load(); got != 3 {
			t.Errorf("in pieces of %d bytes: %d round trips, want 3", size, got)
		}
	}
}
