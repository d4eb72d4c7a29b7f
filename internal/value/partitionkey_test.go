// SPDX-License-Identifier: MIT

package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestParsePartitionKey(t *testing.T) {
	f := func(header, canonical string, want ...Scalar) {
		t.Helper()
		got, err := ParsePartitionKey(header)
		if err != nil || !got.Equal(want) || got == nil {
			t.Fatalf("ParsePartitionKey(%q) = %v, %v; want %v", header, got, err, PartitionKey(want))
		}
		if got.String() != canonical {
			t.Errorf("ParsePartitionKey(%q).String() = %s, want %s", header, got, canonical)
		}
	}
	f(`[]`, `[]`)
	f(" [ \t] ", `[]`)
	f(`["a"]`, `["a"]`, String("a"))
	f(`[ "a" , 1.50 , null ]`, `["a",1.5,null]`, String("a"), Number(1.5), Null())
	f(`[{}]`, `[{}]`, Scalar{})
	f(`[{ },true,false]`, `[{},true,false]`, Scalar{}, Bool(true), Bool(false))
	f(`["\u00e9\ud83d\ude00],\"["]`, `["é😀],\"["]`, String(`é😀],"[`))
	f(`["é"]`, `["é"]`, String("é"))
	f(`[-0]`, `[0]`, Number(0))
	f(`[1e2]`, `[100]`, Number(100))
	f(`[""]`, `[""]`, String(""))
}

func TestParsePartitionKeyRefuses(t *testing.T) {
	for _, header := range []string{
		``, ` `, `a`, `"a"`, `{}`, `null`, `[`, `["a"`, `["a",`, `["a",]`, `[,]`, `[,"a"]`, `["a" "b"]`, `["a"]]`, `["a"]x`, `[1,2,3,4]`,
		`[[]]`, `[["a"]]`, `[{"a":1}]`, `[{]`, `[{`, `[{}`, `["a]`, `["\ud800"]`, `["\x"]`, "[\"\xff\"]", "[\"\n\"]", `[01]`, `[1e400]`, `[NaN]`, `[undefined]`, `[True]`,
		"[\x00]", "\x00",
	} {
		pk, err := ParsePartitionKey(header)
		if !errors.Is(err, ErrPartitionKey) || pk != nil {
			t.Errorf("ParsePartitionKey(%q) = %v, %v; want ErrPartitionKey", header, pk, err)
		}
	}
}

func TestPartitionKeyEqual(t *testing.T) {
	a, b := PartitionKey{String("1"), Scalar{}}, PartitionKey{String("1"), Null()}
	if a.Equal(b) || !a.Equal(PartitionKey{String("1"), Scalar{}}) || a.Equal(a[:1]) || (PartitionKey{String("1")}).Equal(PartitionKey{Number(1)}) {
		t.Error("Equal is not equality of values")
	}
}

func TestPartitionKeySize(t *testing.T) {
	f := func(want int, pk ...Scalar) {
		t.Helper()
		if got := PartitionKey(pk).Size(); got != want {
			t.Errorf("%v has size %d, want %d", PartitionKey(pk), got, want)
		}
	}
	f(0)
	f(0, String(""))
	f(2, String("é"))
	f(2048, String(strings.Repeat("x", 2048)))
	f(11, Number(1), Null(), Bool(true), Scalar{})
}

func anyPartitionKey() *rapid.Generator[PartitionKey] {
	return rapid.Map(rapid.SliceOfN(anyScalar(), 0, MaxPartitionKeyPaths), func(v []Scalar) PartitionKey { return v })
}

func TestPartitionKeyKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyPartitionKey().Draw(t, "a"), anyPartitionKey().Draw(t, "b")
		tail := rapid.SliceOf(rapid.Byte()).Draw(t, "tail")
		keyA, keyB := a.AppendKey(nil), b.AppendKey(nil)
		if got, want := bytes.Compare(keyA, keyB), slices.CompareFunc(a, b, Compare); got != want {
			t.Fatalf("keys of %v and %v compare as %d, want %d", a, b, got, want)
		}
		got, rest, err := DecodePartitionKey(append(keyA, tail...))
		if err != nil || !got.Equal(a) || !bytes.Equal(rest, tail) {
			t.Fatalf("DecodePartitionKey of %v = %v, %x, %v", a, got, rest, err)
		}
		if again, err := ParsePartitionKey(a.String()); err != nil || !again.Equal(a) {
			t.Fatalf("%v is written as %s and read as %v, %v", []Scalar(a), a, again, err)
		}
	})
}

func TestDecodePartitionKeyRefuses(t *testing.T) {
	long := PartitionKey{Null(), Null(), Null(), Null()}.AppendKey(nil)
	for _, src := range [][]byte{nil, {tagNull}, {tagString, 'a', 0}, {0x01}, long} {
		if pk, _, err := DecodePartitionKey(src); !errors.Is(err, ErrKey) {
			t.Errorf("DecodePartitionKey(%x) = %v, %v; want ErrKey", src, pk, err)
		}
	}
}

func FuzzPartitionKey(f *testing.F) {
	for _, seed := range []string{`[]`, `["a"]`, ` [ "a" , 1.5 ,{ }] `, `[null,true,false]`, `["\ud83d\ude00"]`, `[{}]`, `[{"a":1}]`, `[1,2,3,4]`, `["a"`, `[[]]`, `["\`, `[1,]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		pk, err := ParsePartitionKey(header)
		if err != nil && !errors.Is(err, ErrPartitionKey) {
			t.Fatalf("ParsePartitionKey(%q): %v", header, err)
		}
		naive, accepts := naivePartitionKey(header)
		if accepts != (err == nil) || !naive.Equal(pk) {
			t.Fatalf("ParsePartitionKey(%q) = %v, %v; encoding/json reads %v, %v", header, pk, err, naive, accepts)
		}
		if err != nil {
			return
		}
		if again, err := ParsePartitionKey(pk.String()); err != nil || !again.Equal(pk) {
			t.Fatalf("%v is read again as %v, %v", pk, again, err)
		}
		if got, rest, err := DecodePartitionKey(pk.AppendKey(nil)); err != nil || len(rest) > 0 || !got.Equal(pk) {
			t.Fatalf("%v is decoded as %v, %x, %v", pk, got, rest, err)
		}
		for _, epk := range [][]byte{AppendEPKV1(nil, pk), AppendEPKV2(nil, pk), AppendEPKMultiHash(nil, pk)} {
			if len(epk) > 0 && epk[0] == 0xFF {
				t.Fatalf("%v lies at %x, beyond the key space", pk, epk)
			}
		}
	})
}

// naivePartitionKey reads a header with encoding/json.
func naivePartitionKey(header string) (PartitionKey, bool) {
	var list []any
	if json.Unmarshal([]byte(header), &list) != nil || list == nil || len(list) > MaxPartitionKeyPaths ||
		!utf8.ValidString(header) || loneSurrogate([]byte(header)) {
		return nil, false
	}
	pk := PartitionKey{}
	for _, element := range list {
		switch element := element.(type) {
		case nil:
			pk = append(pk, Null())
		case bool:
			pk = append(pk, Bool(element))
		case float64:
			pk = append(pk, Number(element))
		case string:
			pk = append(pk, String(element))
		case map[string]any:
			if len(element) > 0 {
				return nil, false
			}
			pk = append(pk, Scalar{})
		default:
			return nil, false
		}
	}
	return pk, true
}

func BenchmarkParsePartitionKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePartitionKey(`["customer-000000000042"]`); err != nil {
			b.Fatal(err)
		}
	}
}
