// SPDX-License-Identifier: MIT

package memory

import (
	"testing"
	"testing/fstest"
)

// The available memory, as machines, services and containers show it in their files.
func TestAvailable(t *testing.T) {
	const (
		meminfo = "proc/meminfo"
		group   = "proc/self/cgroup"
		mounts  = "proc/self/mountinfo"
		machine = "MemTotal:       24682416 kB\nMemFree:         1187416 kB\n"
		all     = 24682416 << 10
		unified = "24 1 259:1 / / rw - ext4 /dev/root rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		older   = "34 31 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"a machine", map[string]string{meminfo: machine}, all},
		{"a login without a limit", map[string]string{meminfo: machine, mounts: unified, group: "0::/user.slice/session-1.scope\n",
			"sys/fs/cgroup/user.slice/session-1.scope/memory.max": "max\n", "sys/fs/cgroup/user.slice/memory.high": "max\n"}, all},
		{"a service", map[string]string{meminfo: machine, mounts: unified, group: "0::/system.slice/mayfly.service\n",
			"sys/fs/cgroup/system.slice/mayfly.service/memory.max": "536870912\n"}, 512 << 20},
		{"a service that is slowed down", map[string]string{meminfo: machine, mounts: unified, group: "0::/system.slice/mayfly.service\n",
			"sys/fs/cgroup/system.slice/mayfly.service/memory.max": "536870912\n", "sys/fs/cgroup/system.slice/mayfly.service/memory.high": "402653184\n"}, 384 << 20},
		{"a service in a slice with a limit", map[string]string{meminfo: machine, mounts: unified, group: "0::/db.slice/mayfly.service\n",
			"sys/fs/cgroup/db.slice/mayfly.service/memory.max": "2147483648\n", "sys/fs/cgroup/db.slice/memory.max": "1073741824\n"}, 1 << 30},
		{"another service's limit", map[string]string{meminfo: machine, mounts: unified, group: "0::/system.slice/mayfly.service\n",
			"sys/fs/cgroup/system.slice/other.service/memory.max": "536870912\n"}, all},
		{"a container with its own view", map[string]string{meminfo: machine, mounts: unified, group: "0::/\n",
			"sys/fs/cgroup/memory.max": "2147483648\n"}, 2 << 30},
		{"a container that sees where it is", map[string]string{meminfo: machine, group: "0::/../../kubepods/pod1/c1\n",
			mounts: unified, "sys/fs/cgroup/memory.max": "2147483648\n"}, 2 << 30},
		{"a pod", map[string]string{meminfo: machine, mounts: unified, group: "0::/kubepods.slice/pod1.slice/c1.scope\n",
			"sys/fs/cgroup/kubepods.slice/pod1.slice/c1.scope/memory.max": "max\n", "sys/fs/cgroup/kubepods.slice/pod1.slice/memory.max": "805306368\n"}, 768 << 20},
		{"an older container, mounted as it is", map[string]string{meminfo: machine, group: "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n",
			mounts: "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n"}, 2 << 30},
		{"an older container, with all mounted", map[string]string{meminfo: machine, mounts: older, group: "4:memory:/docker/ab\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes": "2147483648\n"}, 2 << 30},
		{"an older one without a limit", map[string]string{meminfo: machine, mounts: older, group: "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, all},
		{"both versions", map[string]string{meminfo: machine, group: "4:memory:/a/b\n0::/\n",
			mounts: older + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "536870912\n"}, 512 << 20},
		{"another system", nil, 0},
		{"nonsense", map[string]string{meminfo: "MemTotal: much kB\nMemTotal:\n", group: ":\n0\nx:memory\n4:memory:../..\n", mounts: "- cgroup2\n1 2 3 4 5 - cgroup2\n" + older,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "-1\n"}, 0},
	} {
		files := fstest.MapFS{}
		for path, text := range c.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := available(files); got != c.want {
			t.Errorf("%s: got %d bytes, want %d", c.name, got, c.want)
		}
	}
}
