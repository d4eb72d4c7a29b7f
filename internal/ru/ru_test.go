// SPDX-License-Identifier: MIT

package ru

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// The service's known charges, to the hundredth. Charges of items are from its
// documentation, from traces of its REST API, and from what the tests of its SDKs rely on:
// an item of an id, a partition key and a property has three index terms of its own.
func TestKnownCharges(t *testing.T) {
	small := func(rows int) WriteWork { return WriteWork{Bytes: 300, IndexRows: rows, Indexed: rows > 0} }
	gone := func(rows int) WriteWork { return WriteWork{OldBytes: 300, IndexRows: rows, Indexed: rows > 0} }
	replaced := func(rows int) WriteWork {
		return WriteWork{Bytes: 300, OldBytes: 300, IndexRows: rows, Indexed: true}
	}
	for _, c := range []struct {
		name string
		got  Units
		want string
	}{
		{"read nothing", Read(0), "1.00"},
		{"read 1 KiB", Read(kib), "1.00"},
		{"read 8 KiB", Read(8 * kib), "1.33"},
		{"read 64 KiB", Read(64 * kib), "4.76"},
		{"read 128 KiB", Read(128 * kib), "9.95"},
		{"read 2 MiB", Read(2048 * kib), "291.80"},
		{"no work", WriteWork{}.Charge(), "0.00"},
		{"create, no index", small(0).Charge(), "4.95"},
		{"create 64 KiB, no index", WriteWork{Bytes: 64 * kib}.Charge(), "22.67"},
		{"create 2 MiB, no index", WriteWork{Bytes: 2048 * kib}.Charge(), "1250.00"},
		{"create {id, pk}", small(2).Charge(), "6.10"},
		{"create {id, pk, prop}", small(3).Charge(), "6.29"},
		{"delete {id, pk, prop}", gone(3).Charge(), "6.29"},
		{"replace, nothing but _ts changed", replaced(0).Charge(), "10.29"},
		{"replace, a property changed", replaced(2).Charge(), "10.67"},
		{"a write that was refused", Refused, "1.24"},
		{"a trivial query", QueryWork{}.Charge(), "2.30"},
	} {
		if got := strconv.FormatFloat(float64(c.got), 'f', 2, 64); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	// Documented: 60,951 items of 399,998,938 bytes were read for a row of 510.
	scan := QueryWork{Items: 60_951, Bytes: 399_998_938, RowBytes: 510}.Charge()
	if math.Abs(float64(scan)/4059.95-1) > 0.01 {
		t.Errorf("a scan costs %v, want about 4059.95", scan)
	}
}

// More bytes never cost less.
func TestChargesGrowWithBytes(t *testing.T) {
	for n := 0; n < 2<<20; n += 333 {
		if Read(n+333) < Read(n) || (WriteWork{Bytes: n + 333}).Charge() < (WriteWork{Bytes: n}).Charge() {
			t.Fatalf("%d bytes cost more than %d", n, n+333)
		}
	}
}

// More work never costs less, work is never free, and a replace costs no more than a delete
// and a create.
func TestWriteWorkIsMonotone(t *testing.T) {
	size := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 3*kib), rapid.IntRange(0, 4<<20))
	rows := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 20), rapid.IntRange(0, 100_000))
	rapid.Check(t, func(t *rapid.T) {
		w := WriteWork{
			Bytes: size.Draw(t, "bytes"), IndexRows: rows.Draw(t, "rows"),
			OldBytes: size.Draw(t, "old bytes"), Indexed: rapid.Bool().Draw(t, "indexed"),
		}
		charge := w.Charge()
		if charge < 0 || (w.Bytes > 0 || w.OldBytes > 0) && charge < hundredths(writePoints[0].charge) {
			t.Fatalf("%+v costs %v", w, charge)
		}
		more := rapid.IntRange(1, 2<<20).Draw(t, "more")
		for name, grow := range map[string]func(*WriteWork){
			"Bytes":     func(w *WriteWork) { w.Bytes += more },
			"IndexRows": func(w *WriteWork) { w.IndexRows += more },
			"OldBytes":  func(w *WriteWork) { w.OldBytes += more },
		} {
			larger := w
			grow(&larger)
			if got := larger.Charge(); got < charge {
				t.Fatalf("%+v costs %v, and with %d more %s %v", w, charge, more, name, got)
			}
		}
		created := WriteWork{Bytes: w.Bytes, IndexRows: w.IndexRows, Indexed: w.Indexed}.Charge()
		deleted := WriteWork{OldBytes: w.OldBytes, Indexed: w.Indexed}.Charge()
		if charge > created+deleted+0.011 {
			t.Fatalf("%+v costs %v, and apart %v + %v", w, charge, created, deleted)
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	b.ReportAllocs()
	var sum Units
	for n := 0; b.Loop(); n++ {
		sum += WriteWork{Bytes: n, IndexRows: 10, OldBytes: kib, Indexed: true}.Charge()
	}
	if sum == 0 {
		b.Fatal("nothing was charged")
	}
}
