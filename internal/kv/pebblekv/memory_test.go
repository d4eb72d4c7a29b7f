// SPDX-License-Identifier: MIT

package pebblekv

import (
	"testing"
	"testing/fstest"
)

// The cache is a part of what memory there is: of the machine's, or of a container's.
func TestCacheFollowsMemory(t *testing.T) {
	const (
		meminfo = "proc/meminfo"
		limit   = "sys/fs/cgroup/memory.max"
		older   = "sys/fs/cgroup/memory/memory.limit_in_bytes"
		machine = "MemTotal:       24682416 kB\nMemFree:         1187416 kB\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"a machine", map[string]string{meminfo: machine}, 24682416 << 10 / 8},
		{"a container", map[string]string{meminfo: machine, limit: "2147483648\n"}, 256 << 20},
		{"an older container", map[string]string{meminfo: machine, older: "2147483648\n"}, 256 << 20},
		{"a container without a limit", map[string]string{meminfo: machine, limit: "max\n"}, 24682416 << 10 / 8},
		{"an older one without", map[string]string{meminfo: machine, older: "9223372036854771712\n"}, 24682416 << 10 / 8},
		{"a small machine", map[string]string{meminfo: "MemTotal: 131072 kB\n"}, 32 << 20},
		{"a large machine", map[string]string{meminfo: "MemTotal: 1073741824 kB\n"}, 4 << 30},
		{"another system", nil, 128 << 20},
		{"nonsense", map[string]string{meminfo: "MemTotal: much kB\nMemTotal:\n", limit: "-1\n", older: ""}, 128 << 20},
	} {
		files := fstest.MapFS{}
		for path, text := range c.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cacheBytesFor(memoryBytes(files)); got != c.want {
			t.Errorf("%s: got %d bytes, want %d", c.name, got, c.want)
		}
	}
}
