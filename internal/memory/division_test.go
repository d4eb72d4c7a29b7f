// SPDX-License-Identifier: MIT

package memory

import "testing"

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name             string
		available, cache int64 // in MiB, as are the sizes in the division
		want             Division
	}{
		{"a machine of 24 GiB", 24 << 10, 0, Division{1536, 1568, 128, 32, 16, 4096, 128, 8}},
		{"a large machine", 1 << 20, 0, Division{2048, 2080, 128, 32, 16, 4096, 128, 8}},
		{"a container", 2 << 10, 0, Division{128, 160, 32, 32, 8, 512, 128, 2}},
		{"a small container", 512, 0, Division{32, 48, 8, 8, 2, 128, 32, 2}},
		{"the smallest", 64, 0, Division{16, 24, 4, 4, 1, 16, 32, 1}},
		{"another system", 0, 0, Division{128, 160, 32, 32, 8, 512, 128, 2}},
		{"a given cache size", 512, 100, Division{50, 75, 12, 8, 2, 128, 32, 2}},
	} {
		got := Divide(c.available*mebi, c.cache*mebi)
		inMiB := Division{got.Blocks / mebi, got.ItemRows / mebi, got.IndexRows / mebi, got.MemTable / mebi, got.History / mebi, got.Requests / mebi, got.Script / mebi, got.Scripts}
		if inMiB != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, inMiB, c.want)
		}
	}
}
