// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Operations are sorted by key between one range delete and the next, and those of one key
// keep their order; earlier uses of the ordering have no effect.
func TestOrdering(t *testing.T) {
	o := new(ordering)
	rapid.Check(t, func(t *rapid.T) {
		var b kv.Batch
		prefix := rapid.SampledFrom([]string{"", "p", "partition"}).Draw(t, "prefix")
		var ranges []int
		for i := range rapid.SampledFrom([]int{0, 1, 5, 30, 2 * manyKeys}).Draw(t, "operations") {
			key := prefix + rapid.StringOfN(rapid.SampledFrom([]rune("\x00ab")), 1, 12, -1).Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				b.DeleteRange([]byte(key), []byte(key+"c"))
				ranges = append(ranges, i)
			case 1, 2:
				b.Delete([]byte(key), 0)
			default:
				b.Set([]byte(key), fmt.Append(nil, i))
			}
		}
		want := slices.Collect(b.Ops)
		from := 0
		for _, to := range append(ranges, len(want)) {
			slices.SortStableFunc(want[from:to], func(x, y kv.Op) int { return bytes.Compare(x.Key, y.Key) })
			from = to + 1
		}
		keys := o.of(&b)
		if len(keys) != len(want) {
			t.Fatalf("%d keys of %d operations", len(keys), len(want))
		}
		for i, p := range keys {
			if got := o.ops[p.op]; got.Kind != want[i].Kind || !bytes.Equal(got.Key, want[i].Key) || !bytes.Equal(got.Value, want[i].Value) {
				t.Fatalf("operation %d is %v of %q, want %v of %q", i, got.Kind, got.Key, want[i].Kind, want[i].Key)
			}
		}
		o.reset()
	})
}

// BenchmarkOrdering orders the writes of creates and purges with ten indexed properties.
// Half of these have few values.
func BenchmarkOrdering(b *testing.B) {
	for _, items := range []int{1, 8, 512} {
		b.Run(fmt.Sprintf("items=%d", items), func(b *testing.B) {
			var batch kv.Batch
			for item := range items {
				for path := range 14 {
					value := rand.Uint64()
					if path%2 > 0 {
						value %= 10
					}
					batch.Set(fmt.Appendf(nil, "part0001i%cpath%016x%08d", 'a'+path, value, item), []byte("row"))
				}
			}
			o := new(ordering)
			b.ReportAllocs()
			for b.Loop() {
				o.of(&batch)
				o.reset()
			}
		})
	}
}
