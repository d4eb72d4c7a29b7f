// SPDX-License-Identifier: MIT

package value

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The vectors come from the JavaScript SDK's own functions.
func TestEPKVectors(t *testing.T) {
	f := func(header, v1, v2 string) {
		t.Helper()
		pk, err := ParsePartitionKey(header)
		if err != nil {
			t.Fatal(err)
		}
		if got := EPKText(AppendEPKV1(nil, pk)); got != v1 {
			t.Errorf("V1 of %s = %s, want %s", header, got, v1)
		}
		if got := EPKText(AppendEPKV2(nil, pk)); got != v2 {
			t.Errorf("V2 of %s = %s, want %s", header, got, v2)
		}
	}
	f(`["a"]`, `05C1D78593652C086200`, `3A5381E1114EB8D3FCC90795045B49B7`)
	f(`[""]`, `05C1CF33970FF80800`, `32E9366E637A71B4E710384B2F4970A0`)
	f(`["redmond"]`, `05C1EFE313830C087366656E706F6500`, `22E342F38A486A088463DFF7838A5963`)
	f(`["é"]`, `05C1B3CD91912008C4AA00`, `007199F104E04116EE25AF912CA4889B`)
	f(`[null]`, `05C1ED45D7475601`, `378867E4430E67857ACE5C908374FE16`)
	f(`[{}]`, `05C1D529E345DC00`, `11622DAA78F835834610ABE56EFF5CB5`)
	f(`[true]`, `05C1D7C5A903D803`, `0E711127C5B5A8E4726AC6DD306A3E59`)
	f(`[false]`, `05C1DB857D857C02`, `2FE1BE91E90A3439635E0E9E37361EF2`)
	f(`[0]`, `05C1BF6DA115600580`, `155B95BEDAC4B1E9EC1CDC9BB0DDDE58`)
	f(`[-0]`, `05C1BF6DA115600580`, `155B95BEDAC4B1E9EC1CDC9BB0DDDE58`)
	f(`[1]`, `05C1ED172B6B2605BFF0`, `20CD98B339BA78A5D0CF6953B87070B0`)
	f(`[-1]`, `05C1D1A5BDDF9C054010`, `19938E7A936C1C5B9E3AE842BBC16839`)
	f(`[1.5]`, `05C1E9694167A805BFF8`, `35C5DDEB6C795D16A9963C73C54E97BC`)
	f(`[100]`, `05C1E30371BF2005C05980`, `34235CFA9F2448C372F53E4119DBB9AB`)
	f(`[9007199254740991]`, `05C1B3FBA771A005C33FFFFFFFFFFFFFFE`, `12C221C7032CED1F9E6693CE1428E6CF`)
	f(`[]`, ``, ``)
}

func TestEPKMultiHash(t *testing.T) {
	pk := PartitionKey{String("a"), String("b"), Number(1)}
	want := "3A5381E1114EB8D3FCC90795045B49B7" + "195644569A78B1E22D200348AF9416CE" + "20CD98B339BA78A5D0CF6953B87070B0"
	if got := EPKText(AppendEPKMultiHash(nil, pk)); got != want {
		t.Errorf("EPKMultiHash(%v) = %s, want %s", pk, got, want)
	}
	for n := range pk {
		if got := EPKText(AppendEPKMultiHash(nil, pk[:n])); got != want[:32*n] {
			t.Errorf("EPKMultiHash(%v) = %s, want the first %d digits", pk[:n], got, 32*n)
		}
	}
}

func TestEPKAppendsWhereItIsTold(t *testing.T) {
	pk := PartitionKey{String("redmond")}
	for name, got := range map[string][]byte{
		"V1":        AppendEPKV1([]byte("p"), pk)[1:],
		"V2":        AppendEPKV2([]byte("p"), pk)[1:],
		"MultiHash": AppendEPKMultiHash([]byte("p"), pk)[1:],
	} {
		want := map[string][]byte{"V1": AppendEPKV1(nil, pk), "V2": AppendEPKV2(nil, pk), "MultiHash": AppendEPKMultiHash(nil, pk)}[name]
		if !bytes.Equal(got, want) {
			t.Errorf("%s appended = %x, want %x", name, got, want)
		}
	}
	room := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(10, func() { AppendEPKV1(room, pk); AppendEPKMultiHash(room, pk) }); n != 0 {
		t.Errorf("appending into room allocates %v times", n)
	}
}

// Version 1 looks at 100 UTF-16 units of a string.
func TestEPKV1Truncates(t *testing.T) {
	epk := func(s string) string { return string(AppendEPKV1(nil, PartitionKey{String(s)})) }
	same := func(a, b string) {
		t.Helper()
		if epk(a) != epk(b) {
			t.Errorf("%q and %q differ", a, b)
		}
	}
	differ := func(a, b string) {
		t.Helper()
		if epk(a) == epk(b) {
			t.Errorf("%q and %q are the same", a, b)
		}
	}
	hundred := strings.Repeat("x", 100)
	same(hundred, hundred+"y")
	differ(hundred[:99], hundred)
	accents := strings.Repeat("é", 100) // 200 bytes
	same(accents, accents+"é")
	differ(accents[:99*2], accents)
	faces := strings.Repeat("😀", 50) // two units each
	same(faces, faces+"😀")
	differ(faces[:49*4], faces)
	// The cut through a pair leaves half of it, which is written as U+FFFD.
	same("x"+faces, "x"+faces[:49*4]+"\uFFFD")

	long := AppendEPKV2(nil, PartitionKey{String(hundred + "y")})
	if bytes.Equal(long, AppendEPKV2(nil, PartitionKey{String(hundred)})) {
		t.Error("version 2 truncates too")
	}
}

func TestNumbersOfVersion1KeepOrder(t *testing.T) {
	number := rapid.OneOf(
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
		rapid.Map(rapid.Int64Range(-5, 5), func(n int64) float64 { return float64(n) }),
		rapid.Map(rapid.Uint32(), func(n uint32) float64 { return float64(n) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		got, want := bytes.Compare(appendOrdered(nil, a), appendOrdered(nil, b)), Compare(Number(a), Number(b))
		if got != want {
			t.Fatalf("%v and %v compare as %d, want %d", a, b, got, want)
		}
	})
}

func TestBoundaries(t *testing.T) {
	f := func(name string, boundaries [][]byte, want ...string) {
		t.Helper()
		var got []string
		for _, b := range boundaries {
			got = append(got, EPKText(b))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("V1 of 0", BoundariesV1(0))
	f("V1 of 1", BoundariesV1(1))
	f("V1 of 2", BoundariesV1(2), "05C1DFFFFFFFFC")
	f("V1 of 4", BoundariesV1(4), "05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA")
	f("V1 of 5", BoundariesV1(5), "05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398")
	f("V2 of 1", BoundariesV2(1))
	f("V2 of 2", BoundariesV2(2), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF")
	f("V2 of 4", BoundariesV2(4), "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE", "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD")
	f("V2 of 5", BoundariesV2(5), "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", "19999999999999999999999999999998",
		"26666666666666666666666666666664", "33333333333333333333333333333330")
}

// Hashes spread over the partitions that the boundaries make.
func TestBoundariesDivideKeysEvenly(t *testing.T) {
	const partitions, keys = 7, 7000
	for _, c := range []struct {
		name       string
		epk        func([]byte, PartitionKey) []byte
		boundaries [][]byte
	}{{"V1", AppendEPKV1, BoundariesV1(partitions)}, {"V2", AppendEPKV2, BoundariesV2(partitions)}, {"MultiHash", AppendEPKMultiHash, BoundariesV2(partitions)}} {
		var count [partitions]int
		for i := range keys {
			epk := c.epk(nil, PartitionKey{Number(float64(i))})
			at := 0
			for at < len(c.boundaries) && bytes.Compare(c.boundaries[at], epk) <= 0 {
				at++
			}
			count[at]++
		}
		for _, n := range count {
			if n < keys/partitions*8/10 || n > keys/partitions*12/10 {
				t.Errorf("%s: %d keys fall into partitions as %v", c.name, keys, count)
				break
			}
		}
	}
}

func BenchmarkEPK(b *testing.B) {
	pk := PartitionKey{String("customer-000000000042")}
	room := make([]byte, 0, 64)
	b.Run("V1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			AppendEPKV1(room, pk)
		}
	})
	b.Run("V2", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			AppendEPKV2(room, pk)
		}
	})
}
