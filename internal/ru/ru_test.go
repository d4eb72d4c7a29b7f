// SPDX-License-Identifier: MIT

package ru

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

const kibs100 = 100 * kib

// The service's known points, and what follows from them.
func TestCharges(t *testing.T) {
	for _, c := range []struct {
		name string
		got  Units
		want float64
	}{
		{"read nothing", Read(0), 1},
		{"read 1 KiB", Read(kib), 1},
		{"read 100 KiB", Read(kibs100), 10},
		{"write 1 KiB", Write(kib), 5.29},
		{"write 100 KiB", Write(kibs100), 50},
		{"no work", WriteWork{}.Charge(), 0},
		{"create 1 byte", WriteWork{Bytes: 1}.Charge(), 5},
		{"create 1 KiB", WriteWork{Bytes: kib}.Charge(), 5},
		{"create a byte more", WriteWork{Bytes: kib + 1}.Charge(), 5 + 45.0/99},
		{"create 1 KiB, ten rows", WriteWork{Bytes: kib, IndexRows: 10}.Charge(), 6.2},
		{"create 100 KiB", WriteWork{Bytes: kibs100}.Charge(), 50},
		{"delete 1 KiB", WriteWork{OldBytes: kib}.Charge(), 5},
		{"delete 1 KiB, ten rows", WriteWork{OldBytes: kib, OldIndexRows: 10}.Charge(), 5.8},
		{"delete 100 KiB", WriteWork{OldBytes: kibs100}.Charge(), 50},
		{"replace 1 KiB", WriteWork{kib, 0, kib, 0}.Charge(), 7.5},
		{"replace 1 KiB, ten rows", WriteWork{kib, 10, kib, 10}.Charge(), 9.1},
		{"replace 100 KiB", WriteWork{kibs100, 0, kibs100, 0}.Charge(), 75},
		{"shrink 100 KiB to 1", WriteWork{kib, 0, kibs100, 0}.Charge(), 52.5},
		{"grow 1 KiB to 100", WriteWork{kibs100, 0, kib, 0}.Charge(), 52.5},
	} {
		if math.Abs(float64(c.got)-c.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

// More bytes never cost less.
func TestChargesGrowWithBytes(t *testing.T) {
	for n := 0; n < 2<<20; n += 333 {
		if Read(n+333) < Read(n) || Write(n+333) < Write(n) {
			t.Fatalf("%d bytes cost more than %d", n, n+333)
		}
	}
}

// More of anything never costs less, work is never free, and one write of both
// versions costs less than a delete and a create.
func TestWriteWorkIsMonotone(t *testing.T) {
	size := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 3*kib), rapid.IntRange(0, 4<<20))
	rows := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 20), rapid.IntRange(0, 100_000))
	rapid.Check(t, func(t *rapid.T) {
		w := WriteWork{
			Bytes: size.Draw(t, "bytes"), IndexRows: rows.Draw(t, "rows"),
			OldBytes: size.Draw(t, "old bytes"), OldIndexRows: rows.Draw(t, "old rows"),
		}
		charge := w.Charge()
		if free := w == (WriteWork{}); (charge == 0) != free || charge != 0 && charge < writeBase {
			t.Fatalf("%+v costs %v", w, charge)
		}
		more := rapid.IntRange(1, 2<<20).Draw(t, "more")
		for name, grow := range map[string]func(*WriteWork){
			"Bytes":        func(w *WriteWork) { w.Bytes += more },
			"IndexRows":    func(w *WriteWork) { w.IndexRows += more },
			"OldBytes":     func(w *WriteWork) { w.OldBytes += more },
			"OldIndexRows": func(w *WriteWork) { w.OldIndexRows += more },
		} {
			larger := w
			grow(&larger)
			if got := larger.Charge(); got < charge {
				t.Fatalf("%+v costs %v, and with %d more %s %v", w, charge, more, name, got)
			}
		}
		created := WriteWork{Bytes: w.Bytes, IndexRows: w.IndexRows}.Charge()
		deleted := WriteWork{OldBytes: w.OldBytes, OldIndexRows: w.OldIndexRows}.Charge()
		if charge > created+deleted {
			t.Fatalf("%+v costs %v, and apart %v + %v", w, charge, created, deleted)
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	b.ReportAllocs()
	var sum Units
	for n := 0; b.Loop(); n++ {
		sum += WriteWork{Bytes: n, IndexRows: 10, OldBytes: kib, OldIndexRows: 10}.Charge()
	}
	if sum == 0 {
		b.Fatal("nothing was charged")
	}
}
