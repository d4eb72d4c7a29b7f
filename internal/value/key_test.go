// SPDX-License-Identifier: MIT

package value

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// Keys are on disk: these bytes must not change.
func TestKeyFormat(t *testing.T) {
	f := func(v Scalar, want string) {
		t.Helper()
		if got := hex.EncodeToString(AppendKey(nil, v)); got != want {
			t.Errorf("AppendKey(%v) = %s, want %s", v, got, want)
		}
	}
	f(Scalar{}, "10")
	f(Null(), "20")
	f(Bool(false), "30")
	f(Bool(true), "31")
	f(Number(0), "408000000000000000")
	f(Number(1), "40bff0000000000000")
	f(Number(-1), "40400fffffffffffff")
	f(String(""), "500001")
	f(String("a\x00b"), "506100ff620001")
	f(String("é"), "50c3a90001")
}

func TestKeyRoundTrip(t *testing.T) {
	for _, v := range ascending() {
		key := append(AppendKey(nil, v), "rest"...)
		got, rest, err := DecodeKey(key)
		if err != nil || got != v || string(rest) != "rest" {
			t.Errorf("DecodeKey(%x) = %v, %q, %v; want %v", key, got, rest, err, v)
		}
	}
}

func TestKeyKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyScalar().Draw(t, "a"), anyScalar().Draw(t, "b")
		// What follows a value in a key must not matter while values differ.
		tailA, tailB := rapid.SliceOf(rapid.Byte()).Draw(t, "tailA"), rapid.SliceOf(rapid.Byte()).Draw(t, "tailB")
		keyA, keyB := append(AppendKey(nil, a), tailA...), append(AppendKey(nil, b), tailB...)
		want := Compare(a, b)
		if want == 0 {
			want = bytes.Compare(tailA, tailB)
		}
		if got := bytes.Compare(keyA, keyB); got != want {
			t.Fatalf("keys of %v and %v compare as %d, want %d", a, b, got, want)
		}
		got, rest, err := DecodeKey(keyA)
		if err != nil || got != a || !bytes.Equal(rest, tailA) {
			t.Fatalf("DecodeKey of %v = %v, %x, %v", a, got, rest, err)
		}
	})
}

func TestBytesKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOf(rapid.SampledFrom([]byte{0x00, 0x01, 0x02, 0xFE, 0xFF}))
		a, b := few.Draw(t, "a"), few.Draw(t, "b")
		tail := few.Draw(t, "tail")
		keyA, keyB := AppendBytesKey([]byte("p"), a), AppendBytesKey([]byte("p"), b)
		if got, want := bytes.Compare(keyA, keyB), bytes.Compare(a, b); got != want {
			t.Fatalf("keys of %x and %x compare as %d, want %d", a, b, got, want)
		}
		got, rest, err := DecodeBytesKey(append(keyA, tail...)[1:])
		if err != nil || !bytes.Equal(got, a) || !bytes.Equal(rest, tail) {
			t.Fatalf("DecodeBytesKey of %x = %x, %x, %v", a, got, rest, err)
		}
	})
}

func TestDecodeKeyRefuses(t *testing.T) {
	for _, src := range []string{
		"", "00", "0f", "32", "51", "60", "ff", "40", "4080000000000000",
		"407fffffffffffffff",           // -0
		"40fff0000000000000",           // +Inf
		"40000fffffffffffff",           // -Inf
		"40fff8000000000000",           // NaN
		"50", "5061", "506100", "5000", // no end
		"506100026200", "500002", // unknown escape
	} {
		key, err := hex.DecodeString(src)
		if err != nil {
			t.Fatal(err)
		}
		if v, _, err := DecodeKey(key); !errors.Is(err, ErrKey) {
			t.Errorf("DecodeKey(%s) = %v, %v; want ErrKey", src, v, err)
		}
	}
}

func FuzzKey(f *testing.F) {
	for _, v := range ascending() {
		f.Add(AppendKey(nil, v))
	}
	f.Add(AppendKey(AppendKey(nil, String("a")), Number(1)))
	f.Add([]byte("\x50a\x00"))
	f.Add([]byte("\x50\x00\x02"))
	f.Add([]byte("\x40\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		before := string(src)
		v, rest, err := DecodeKey(src)
		if err == nil {
			if again := append(AppendKey(nil, v), rest...); string(again) != before {
				t.Fatalf("%x is decoded to %v, which is encoded as %x", before, v, again)
			}
		} else if !errors.Is(err, ErrKey) {
			t.Fatalf("DecodeKey(%x): %v", src, err)
		}
		b, rest, err := DecodeBytesKey(src)
		if err == nil {
			if again := append(AppendBytesKey(nil, b), rest...); string(again) != before {
				t.Fatalf("%x is decoded to %x, which is encoded as %x", before, b, again)
			}
		} else if !errors.Is(err, ErrKey) {
			t.Fatalf("DecodeBytesKey(%x): %v", src, err)
		}
		pk, rest, err := DecodePartitionKey(src)
		if err == nil {
			if again := append(pk.AppendKey(nil), rest...); string(again) != before {
				t.Fatalf("%x is decoded to %v, which is encoded as %x", before, pk, again)
			}
		} else if !errors.Is(err, ErrKey) {
			t.Fatalf("DecodePartitionKey(%x): %v", src, err)
		}
	})
}

func BenchmarkAppendKey(b *testing.B) {
	v := String("customer-000000000042")
	room := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		AppendKey(room, v)
	}
}
