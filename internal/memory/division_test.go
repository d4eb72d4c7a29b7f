// SPDX-License-Identifier: MIT

package memory

import "testing"

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name             string
		available, cache int64 // in MiB, as all that follow
		want             Division
	}{
		{"a machine of 24 GiB", 24 << 10, 0, Division{1536, 1536, 128, 32, 32, 4096, 128, 8}},
		{"a large machine", 1 << 20, 0, Division{2048, 2048, 128, 32, 32, 4096, 128, 8}},
		{"a container", 2 << 10, 0, Division{128, 128, 32, 32, 32, 512, 128, 2}},
		{"a small container", 512, 0, Division{32, 32, 8, 16, 8, 128, 32, 2}},
		{"the smallest", 64, 0, Division{16, 16, 4, 8, 4, 16, 32, 1}},
		{"another system", 0, 0, Division{128, 128, 32, 32, 32, 512, 128, 2}},
		{"a cache of one's own", 512, 100, Division{50, 50, 12, 25, 8, 128, 32, 2}},
	} {
		got := Divide(c.available*mebi, c.cache*mebi)
		inMiB := Division{got.Blocks / mebi, got.ItemRows / mebi, got.IndexRows / mebi, got.Items / mebi, got.MemTable / mebi, got.Requests / mebi, got.Script / mebi, got.Scripts}
		if inMiB != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, inMiB, c.want)
		}
	}
}
