// SPDX-License-Identifier: MIT

package catalog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

func TestPartitionCounts(t *testing.T) {
	for _, c := range []struct {
		throughput Throughput
		want       int
	}{
		{Throughput{}, 1},
		{Throughput{Manual: 400}, 1},
		{Throughput{Manual: 10_000}, 1},
		{Throughput{Manual: 10_100}, 2},
		{Throughput{Manual: 11_000}, 2},
		{Throughput{Manual: 12_000}, 2},
		{Throughput{Manual: 12_100}, 3},
		{Throughput{Manual: 21_000}, 4},
		{Throughput{Manual: 25_100}, 5},
		{Throughput{AutoscaleMax: 1_000}, 1},
		{Throughput{AutoscaleMax: 10_000}, 1},
		{Throughput{AutoscaleMax: 11_000}, 2},
		{Throughput{AutoscaleMax: 20_000}, 2},
		{Throughput{AutoscaleMax: 21_000}, 3},
		{Throughput{Manual: MaxPartitions * 6_000}, MaxPartitions},
		{Throughput{AutoscaleMax: MaxPartitions * 10_000}, MaxPartitions},
	} {
		if got, err := c.throughput.partitions(); err != nil || got != c.want {
			t.Errorf("%+v: got %d, %v, want %d", c.throughput, got, err, c.want)
		}
	}
	for _, most := range []Throughput{{Manual: MaxPartitions*6_000 + 1}, {AutoscaleMax: MaxPartitions*10_000 + 1}, {Manual: 1 << 40}} {
		if _, err := most.partitions(); !refusedWith(err, "more than the 256 that a container can have") {
			t.Errorf("%+v: got %v, want a refusal", most, err)
		}
	}
}

// The boundaries that the SDKs' test suites expect.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		key  string
		n    int
		want string
	}{
		{`{"paths":["/pk"]}`, 1, ""},
		{`{"paths":["/pk"]}`, 2, "05C1DFFFFFFFFC"},
		{`{"paths":["/pk"]}`, 4, "05C1CFFFFFFFF8 05C1DFFFFFFFF8 05C1E7FFFFFFFA"},
		{`{"paths":["/pk"]}`, 5, "05C1C9CD673398 05C1D9CD673398 05C1E399CD6732 05C1E9CD673398"},
		{`{"paths":["/pk"],"version":2}`, 2, "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"},
		{`{"paths":["/pk"],"version":2}`, 4, "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF 1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE 2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD"},
		{`{"paths":["/a","/b"],"kind":"MultiHash"}`, 2, "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"},
	} {
		rs := parse(t, withKey(c.key)).PartitionKey.ranges(c.n)
		var cuts []string
		for i := range rs {
			if i > 0 {
				cuts = append(cuts, strings.ToUpper(hex.EncodeToString(rs[i].Min)))
				if !bytes.Equal(rs[i].Min, rs[i-1].Max) {
					t.Errorf("%s in %d: range %d does not begin where the one before it ends", c.key, c.n, i)
				}
			}
		}
		if got := strings.Join(cuts, " "); got != c.want || len(rs) != c.n || rs[0].Min != nil || rs[c.n-1].Max != nil {
			t.Errorf("%s in %d: got %s (%v), want %s", c.key, c.n, got, rs, c.want)
		}
	}
}

// Every effective partition key is in one range: a boundary in the range that it begins,
// and the key just below it in the range before.
func TestPartitionOfEPK(t *testing.T) {
	for _, key := range []string{`{"paths":["/pk"]}`, `{"paths":["/pk"],"version":2}`, `{"paths":["/a","/b"],"kind":"MultiHash"}`} {
		for _, n := range []int{1, 2, 3, 4, 5, 7, MaxPartitions} {
			d := parse(t, withKey(key))
			c := &Container{Definition: *d, Ranges: d.PartitionKey.ranges(n)}
			f := func(what string, epk []byte, want int) {
				t.Helper()
				if got := c.Partition(epk); got != want {
					t.Errorf("%s in %d, %s, %X: got partition %d, want %d", key, n, what, epk, got, want)
				}
			}
			f("the lowest", nil, 0)
			f("empty", []byte{}, 0)
			f("the highest", bytes.Repeat([]byte{0xff}, 16), n-1)
			for i := 1; i < n; i++ {
				cut := c.Ranges[i].Min
				f("a boundary", cut, i)
				f("just after it", append(slices.Clone(cut), 0), i)
				below := slices.Clone(cut)
				below[len(below)-1]--
				f("just before it", append(below, 0xff), i-1)
				f("a prefix of it", cut[:len(cut)-1], i-1)
			}
		}
	}
}

func TestPartitionAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom([]string{`{"paths":["/pk"]}`, `{"paths":["/pk"],"version":2}`}).Draw(t, "key")
		d, err := ParseDefinition([]byte(withKey(key)))
		if err != nil {
			t.Fatal(err)
		}
		c := &Container{Definition: *d, Ranges: d.PartitionKey.ranges(rapid.IntRange(1, 40).Draw(t, "n"))}
		epk := c.PartitionKey.AppendEPK(nil, value.PartitionKey{value.String(rapid.String().Draw(t, "pk"))})
		want := -1
		for i, r := range c.Ranges {
			if bytes.Compare(epk, r.Min) >= 0 && (r.Max == nil || bytes.Compare(epk, r.Max) < 0) {
				want = i
			}
		}
		if got := c.Partition(epk); got != want {
			t.Errorf("%X: got partition %d, want %d", epk, got, want)
		}
	})
}

// The effective partition key depends on the definition's kind and version.
func TestEPKByDefinition(t *testing.T) {
	a, b := value.String("a"), value.String("b")
	for _, c := range []struct {
		key  string
		pk   value.PartitionKey
		want string
	}{
		{`{"paths":["/pk"]}`, value.PartitionKey{a}, "05C1D78593652C086200"},
		{`{"paths":["/pk"],"version":1}`, value.PartitionKey{a}, "05C1D78593652C086200"},
		{`{"paths":["/pk"],"version":2}`, value.PartitionKey{a}, "3A5381E1114EB8D3FCC90795045B49B7"},
		{`{"paths":["/a","/b"],"kind":"MultiHash"}`, value.PartitionKey{a, b}, "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE"},
	} {
		d := parse(t, withKey(c.key))
		if got := fmt.Sprintf("%X", d.PartitionKey.AppendEPK([]byte("x"), c.pk)); got != "78"+c.want {
			t.Errorf("%s: got %s, want x and %s", c.key, got, c.want)
		}
	}
}

func TestRangeID(t *testing.T) {
	if got := RangeID(0) + " " + RangeID(255); got != "0 255" {
		t.Errorf("got %s", got)
	}
}
