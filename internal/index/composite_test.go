// SPDX-License-Identifier: MIT

package index

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

// compositePolicy returns the definition of a container with a composite index: "/x /y-"
// is ascending by x, then descending by y.
func compositePolicy(composite string) string {
	var paths []string
	for _, p := range strings.Fields(composite) {
		path, descending := strings.CutSuffix(p, "-")
		order := map[bool]string{false: "ascending", true: "descending"}[descending]
		paths = append(paths, fmt.Sprintf(`{"path":%q,"order":%q}`, path, order))
	}
	return `{"id":"c","partitionKey":{"paths":["/pk"]},"indexingPolicy":{"compositeIndexes":[[` + strings.Join(paths, ",") + `]]}}`
}

// Entries are on disk: these bytes must not change.
func TestCompositeBytes(t *testing.T) {
	long := strings.Repeat("s", 300)
	for _, c := range []struct{ composite, item, want string }{
		{"/x /y", `{"x":1,"y":"a"}`, "0200" + "40bff0000000000000" + "50610001" + "00"},
		{"/x- /y", `{"x":1,"y":"a"}`, "0200" + "bf400fffffffffffff" + "50610001" + "02"},
		{"/x /y-", `{"x":true,"y":"a"}`, "0200" + "31" + "af9efffe" + "00"},
		{"/x /y", `{"y":null}`, "0200" + "10" + "20" + "00"},
		{"/x- /y-", `{"y":null}`, "0200" + "ef" + "df" + "02"},
		{"/x /y", `{"x":[1],"y":null}`, "0200" + "60" + "01"},
		{"/x- /y", `{"x":{},"y":null}`, "0200" + "8f" + "03"},
		{"/x /y", `{"x":"` + long + `","y":null}`, "0200" + "50" + strings.Repeat("73", 256) + "0002" + "01"},
		{"/x /y", `{"x":"\uffff","y":"\u0000"}`, "0200" + "50f6bfbf0001" + "5000ff0001" + "00"},
		{"/x/a /_ts-", `{"x":{"a":false},"_ts":"not this"}`, "0200" + "30" + "bf" + hex.EncodeToString(inverted(value.Number(1700000000))) + "00"},
		{"/_ts /x", `{"x":2}`, "0200" + hex.EncodeToString(value.AppendKey(nil, value.Number(1700000000))) + "40c000000000000000" + "00"},
	} {
		d, err := catalog.ParseDefinition([]byte(compositePolicy(c.composite)))
		if err != nil {
			t.Fatal(err)
		}
		list, err := Append(Entries{}, d, objectOf(t, c.item), memory.Room{})
		if err != nil {
			t.Fatal(err)
		}
		list.Stamp(1_700_000_000_000)
		if got := hex.EncodeToString(list.At(list.Len() - 1)); got != c.want {
			t.Errorf("%s, %.60s: got %s, want %s", c.composite, c.item, got, c.want)
		}
	}
}

// inverted returns the bytes of a number in a descending path, after the tag.
func inverted(v value.Scalar) []byte {
	raw := value.AppendKey(nil, v)[1:]
	complement(raw)
	return raw
}
