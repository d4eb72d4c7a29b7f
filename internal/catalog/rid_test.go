// SPDX-License-Identifier: MIT

package catalog

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The layouts that SDKs parse.
func TestRIDBytes(t *testing.T) {
	c := ContainerRID{Database: 0x01020304, Container: 0x05060708}
	for _, v := range []struct {
		name, text string
		chars      int
		want       string
	}{
		{"database", c.Database.String(), 8, "01020304"},
		{"container", c.String(), 12, "01020304" + "85060708"},
		{"item", c.ItemRID(0x0102030405060708), 24, "01020304" + "85060708" + "0807060504030201"},
		{"item of the highest ordinal", c.ItemRID(MaxOrdinal), 24, "01020304" + "85060708" + "ffffffffffffff0f"},
		{"partition key range", c.RangeRID(3), 24, "01020304" + "85060708" + "0300000000000050"},
	} {
		raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(v.text, "-", "/"))
		if err != nil || hex.EncodeToString(raw) != v.want || len(v.text) != v.chars {
			t.Errorf("%s: %s is %x, %v, want %d characters for %s", v.name, v.text, raw, err, v.chars, v.want)
		}
		// SDKs read the kind of a resource from the high nibble of the last byte.
		if len(raw) == itemRIDBytes {
			kind := map[string]byte{"partition key range": 5}[v.name]
			if got := raw[15] >> 4; got != kind {
				t.Errorf("%s: kind %d, want %d", v.name, got, kind)
			}
		}
	}
}

// Rids are used in paths, so they contain no slash.
func TestRIDHasNoSlash(t *testing.T) {
	c := ContainerRID{Database: 0xffffffff, Container: 0x7fffffff}
	if got := c.ItemRID(MaxOrdinal); got != "--------------------Dw==" {
		t.Errorf("got %s", got)
	}
}

func TestRIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ContainerRID{
			Database:  DatabaseRID(rapid.Uint32().Draw(t, "database")),
			Container: rapid.Uint32Max(1<<31-1).Draw(t, "container"),
		}
		ordinal := rapid.Uint64Max(MaxOrdinal).Draw(t, "ordinal")
		if got, ok := Databases.numberOf(&Resource{}, c.Database.String()); !ok || got != uint64(c.Database) {
			t.Errorf("database %s: got %d, %v", c.Database, got, ok)
		}
		if got, ok := Containers.numberOf(databaseOf(c), c.String()); !ok || got != uint64(c.Container) {
			t.Errorf("container %s: got %d, %v", c, got, ok)
		}
		if got, ok := c.Ordinal(c.ItemRID(ordinal)); !ok || got != ordinal {
			t.Errorf("item %s: got %d, %v", c.ItemRID(ordinal), got, ok)
		}
		text := make([]byte, ItemRIDChars+2)
		c.PutItemRID(text[1:], ordinal)
		if string(text[1:ItemRIDChars+1]) != c.ItemRID(ordinal) || text[0] != 0 || text[ItemRIDChars+1] != 0 {
			t.Errorf("put: got %q, want %s", text, c.ItemRID(ordinal))
		}
	})
}

// databaseOf returns the database of a container, with only its rid.
func databaseOf(c ContainerRID) *Resource {
	return &Resource{rid: string(binary.BigEndian.AppendUint32(nil, uint32(c.Database)))}
}

// read parses a rid as that of a database, of a container of c's database, and of an item
// of c. It returns what each successful parse writes.
func read(c ContainerRID, text string) (written []string) {
	if n, ok := Databases.numberOf(&Resource{}, text); ok {
		written = append(written, DatabaseRID(n).String())
	}
	if n, ok := Containers.numberOf(databaseOf(c), text); ok {
		written = append(written, ContainerRID{c.Database, uint32(n)}.String())
	}
	if n, ok := c.Ordinal(text); ok {
		written = append(written, c.ItemRID(n))
	}
	return written
}

func TestParseRIDRefuses(t *testing.T) {
	c := ContainerRID{Database: 1, Container: 1}
	for name, text := range map[string]string{
		"nothing":                  "",
		"a name":                   "container",
		"an offer":                 "AAAA",
		"no padding":               "AAAAAQ",
		"too much padding":         "AAAAAQ===",
		"other bits in the end":    "AAAAAR==",
		"a slash":                  "//////==",
		"a line break":             "AAAA\nAQ==",
		"a user":                   "AAAAAQAAAAE=",
		"six bytes":                "AAAAAYAA",
		"a partition key range":    c.RangeRID(0),
		"an item that is too long": c.ItemRID(1) + "AAAA",
		"an item and a line break": c.ItemRID(1)[:23] + "\n=",
		"an item of a user":        "AAAAAQAAAAEBAAAAAAAAAA==",
		"another's item":           ContainerRID{Database: 1, Container: 2}.ItemRID(1),
		"another's container":      ContainerRID{Database: 2, Container: 1}.String(),
	} {
		if got := read(c, text); got != nil {
			t.Errorf("%s, %q: got %q, want nothing", name, text, got)
		}
	}
}

func FuzzParseRID(f *testing.F) {
	c := ContainerRID{Database: 1, Container: 2}
	for _, text := range []string{"", "x", c.Database.String(), c.String(), c.ItemRID(7), c.ItemRID(MaxOrdinal), c.RangeRID(1), "AAAAAR==", "--------"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if again := read(c, text); len(again) > 1 || len(again) == 1 && again[0] != text {
			t.Errorf("%q is read as %q", text, again)
		}
	})
}

func TestETag(t *testing.T) {
	for _, c := range []struct {
		high, low uint64
		want      string
	}{
		{0, 0, `"00000000-0000-0000-0000-000000000000"`},
		{0x0123456789abcdef, 0xfedcba9876543210, `"01234567-89ab-cdef-fedc-ba9876543210"`},
		{1<<64 - 1, 1<<64 - 1, `"ffffffff-ffff-ffff-ffff-ffffffffffff"`},
		{0, 1, `"00000000-0000-0000-0000-000000000001"`},
		{1 << 32, 0, `"00000001-0000-0000-0000-000000000000"`},
	} {
		if got := ETag(c.high, c.low); got != c.want {
			t.Errorf("etag of %x, %x: got %s, want %s", c.high, c.low, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	etag := ETag(1, 2)
	for condition, want := range map[string]bool{
		"": true, "*": true, etag: true, strings.Trim(etag, `"`): true,
		ETag(1, 3): false, `"*"`: false, `""`: false, `"`: false, etag + "x": false, strings.ToUpper(ETag(10, 2)): false,
	} {
		if got := Matches(condition, etag); got != want {
			t.Errorf("condition %q: got %v, want %v", condition, got, want)
		}
	}
}

func TestParseTTL(t *testing.T) {
	for text, want := range map[string]TTL{"-1": TTLForever, "1": 1, "2147483647": 2147483647, "7.0": 7, "70e-1": 7} {
		if got, ok := ParseTTL([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "0", "-0", "0.0", "-2", "-1.5", "0.5", "2147483648", "1e99", "null", `"1"`, "true", "[]", "{}", "NaN"} {
		if got, ok := ParseTTL([]byte(text)); ok || got != TTLAbsent {
			t.Errorf("%s: got %d, %v, want it refused", text, got, ok)
		}
	}
}

// A rid of each kind is parsed as what it is, and as no other kind of the same owner.
func TestRIDTails(t *testing.T) {
	const database, below = "\x00\x00\x00\x01", "\x80\x00\x00\x02"
	rapid.Check(t, func(t *rapid.T) {
		for rid, kin := range map[string][]Kind{
			"": {Databases}, database: {Containers, Users, EncryptionKeys}, database + below: {UDFs, Procedures, Triggers}, database + database: {Permissions},
		} {
			owner := &Resource{rid: rid}
			for _, k := range kin {
				n := rapid.Uint64Max(kinds[k].rid.last()).Draw(t, kinds[k].link)
				text := ridText.EncodeToString(kinds[k].rid.append([]byte(rid), n))
				for _, other := range kin {
					if got, ok := other.numberOf(owner, text); ok != (k == other) || ok && got != n {
						t.Errorf("number %d of %s is %s, and %s reads %d, %v", n, kinds[k].link, text, kinds[other].link, got, ok)
					}
				}
			}
		}
	})
	// Only the bytes before the number distinguish it from the rid of a key.
	if n, ok := EncryptionKeys.numberOf(&Resource{rid: database}, "AAAAAQAAAAIEAAAAAgAAAA=="); ok {
		t.Errorf("the rid of a permission is read as that of key %d", n)
	}
}
