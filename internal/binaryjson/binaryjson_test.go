// SPDX-License-Identifier: MIT

package binaryjson

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/value"
)

const testLimit = 1 << 20

// vector is a text and the document that the .NET SDK makes of it.
type vector struct {
	json     string
	document []byte
}

func readVectors(t testing.TB) (all []vector) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if f[0] == "options" {
			continue
		}
		document, err := hex.DecodeString(f[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, vector{f[1], document})
	}
	if len(all) < 45 {
		t.Fatalf("%d vectors", len(all))
	}
	return all
}

// meaning returns what a text means: integers are exact, other numbers are float64.
func meaning(t testing.TB, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return exact(t, v)
}

func exact(t testing.TB, v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := v.Int64(); err == nil && int64(f) != n {
			return n
		}
		return f
	case []any:
		for i := range v {
			v[i] = exact(t, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(t, v[k])
		}
	}
	return v
}

func TestDocumentsOfTheSDK(t *testing.T) {
	for _, v := range readVectors(t) {
		text, err := Decode(v.document, testLimit)
		if err != nil {
			t.Errorf("%s: %v", v.json, err)
			continue
		}
		want := meaning(t, []byte(v.json))
		if got := meaning(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %s, want %s", text, v.json)
		}
		document, err := Encode([]byte(v.json))
		if err != nil {
			t.Errorf("%s: %v", v.json, err)
			continue
		}
		again, err := Decode(document, testLimit)
		if err != nil || !reflect.DeepEqual(meaning(t, again), want) {
			t.Errorf("%s: encoded and decoded %s, %v", v.json, again, err)
		}
	}
}

// TestSameAsTheSDK encodes what the SDK neither packs nor refers to.
func TestSameAsTheSDK(t *testing.T) {
	same := 0
	for _, v := range readVectors(t) {
		document, err := Encode([]byte(v.json))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(document, v.document) {
			same++
		}
	}
	if same < 30 {
		t.Errorf("%d documents are the same", same)
	}
}

func TestFormsWithoutAVector(t *testing.T) {
	for _, c := range []struct{ hex, want string }{
		{"80c7ffffffffffffffff", "18446744073709551615"},
		{"80cd0000c03f", "1.5"},
		{"80cf003e", "1.5"},
		{"80cf0100", "5.9604645e-08"},
		{"80cf00bc", "-1"},
		{"80f0d70302ff01", "[2,255,1]"},
		{"80f0d80302ff01", "[2,-1,1]"},
		{"80f0dc01ffffffff", "[4294967295]"},
		{"80f1db01000100000000000000", "[1]"},
		{"80f2f0d7020201020304", "[[1,2],[3,4]]"},
		{"80f3f1d902000100" + "01000200", "[[1,2]]"},
		{"80f2f0d70003", "[[],[],[]]"},
		{"80e5020201" + "02", "[1,2]"},
		{"80ed0301" + "816105", `{"a":5}`},
		{"80e182" + "0a22", `["\n\""]`},
		{"80730101" + "fbff", `"-_8="`},
		{"807301fe" + "fbff", `"-_8"`},
		{"80730202ff", "error"},
		{"80710103fb", "error"},
		{"80cc000000000000f07f", "error"},
		{"80cf007c", "error"},
		{"80c302", "error"},
		{"80e203c3038161", "error"},
		{"8040", "error"},
		{"806000", "error"},
		{"8068", "error"},
		{"80d3", "error"},
		{"80dd0141", "error"},
		{"80f4", "error"},
		{"80ff", "error"},
		{"80e9" + "0101", "error"},
		{"80e5020301" + "02", "error"},
		{"80e20301", "error"},
		{"80e4ffffffff", "error"},
		{"80c2ffffffff61", "error"},
		{"8081ff", "error"},
		{"800101", "error"},
		{"80", "error"},
		{"7b7d", "error"},
		{"", "error"},
		{"80f2f1d7020201020304", "error"},
		{"80f2f0d702", "error"},
		{"80f0d002", "error"},
	} {
		document, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Decode(document, testLimit)
		if err != nil {
			if text = []byte("error"); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", c.hex, err)
			}
		}
		if string(text) != c.want {
			t.Errorf("%s: %s, want %s", c.hex, text, c.want)
		}
	}
}

// pack packs a text at so many bits a character, as clients do.
func pack(text string, bits int, lowest byte) (packed []byte) {
	packed = make([]byte, (len(text)*bits+7)/8)
	for i := range len(text) {
		for bit := range bits {
			if (text[i]-lowest)>>bit&1 != 0 {
				at := i*bits + bit
				packed[at/8] |= 1 << (at % 8)
			}
		}
	}
	return packed
}

func TestPackedStrings(t *testing.T) {
	for n := range 40 {
		for bits := 4; bits <= 7; bits++ {
			text := make([]byte, n)
			lowest := byte(0x28)
			if bits == 7 {
				lowest = 0
			}
			for i := range text {
				text[i] = lowest + byte(i*7)&(1<<bits-1)
			}
			document := []byte{first, markPacked4 + byte(bits-4), byte(n)}
			if bits < 7 {
				document = append(document, lowest)
			}
			got, err := Decode(append(document, pack(string(text), bits, lowest)...), testLimit)
			if want := string(value.AppendString(nil, string(text))); err != nil || string(got) != want {
				t.Errorf("%d characters of %d bits: %s, %v, want %s", n, bits, got, err, want)
			}
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	long := append([]byte{markTextL + 1, 0xff, 0xff}, bytes.Repeat([]byte{'a'}, 0xffff)...)
	body := append([]byte{first, markArrayL + 2, 0, 0, 0, 0}, long...)
	for range 100_000 { // three bytes each refer to 64 KiB: 6.5 GB of text
		body = append(body, markReference+1, 6, 0)
	}
	n := len(body) - 6
	copy(body[2:], []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	if _, err := Decode(body, testLimit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if _, err := Decode([]byte{first, markNumberArrays + 1, markNumbers + 1, markItemUint8, 0, 0, 0xff, 0xff}, 1000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("empty arrays of numbers: got %v", err)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := func(n int) []byte {
		return append(append([]byte{first}, bytes.Repeat([]byte{markArray1}, n)...), markNull)
	}
	if _, err := Decode(deep(value.MaxNesting), testLimit); err != nil {
		t.Error(err)
	}
	if _, err := Decode(deep(2<<20), testLimit); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

func TestEncodeRefusesWhatIsNoJSON(t *testing.T) {
	for _, text := range []string{"", "{", `{"a"}`, "1 2", "[1,]", "nul"} {
		if document, err := Encode([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %x, %v", text, document, err)
		}
	}
	long := `{"` + strings.Repeat("n", 300) + `":"` + strings.Repeat("é", 40_000) + `","b":[` + strings.Repeat("7,", 500) + strconv.Itoa(1<<40) + `]}`
	document, err := Encode([]byte(long))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Decode(document, testLimit); err != nil || string(text) != long {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// FuzzDecode decodes foreign bytes. What is decoded is JSON within the limits, and means
// the same once it was encoded.
func FuzzDecode(f *testing.F) {
	for _, v := range readVectors(f) {
		f.Add(v.document)
	}
	f.Add([]byte{first, markNumberArrays, markNumbers, markItemInt8, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, document []byte) {
		const limit = 64 << 10
		text, err := Decode(document, limit)
		if err != nil {
			return
		}
		if len(text) > limit {
			t.Fatalf("%d bytes of text", len(text))
		}
		if !json.Valid(text) {
			t.Fatalf("%x is decoded to %s", document, text)
		}
		again, err := Encode(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := Decode(again, 2*limit+8*len(text)); err != nil || !reflect.DeepEqual(meaning(t, twice), meaning(t, text)) {
			t.Fatalf("%s became %s, %v", text, twice, err)
		}
	})
}

// FuzzEncode encodes foreign texts.
func FuzzEncode(f *testing.F) {
	for _, v := range readVectors(f) {
		f.Add([]byte(v.json))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := Encode(text)
		if err != nil {
			return
		}
		again, err := Decode(document, 10*len(text)+1000)
		if err != nil && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= value.MaxNesting {
			t.Fatalf("%s: %v", text, err)
		}
		if err == nil && !json.Valid(again) {
			t.Fatalf("%s became %s", text, again)
		}
	})
}
