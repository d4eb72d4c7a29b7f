// SPDX-License-Identifier: MIT

// How much memory there is, read from Linux's files: the least of the machine's memory
// and the limits of the process's control group and of all groups around it. Containers
// and services are control groups.

package memory

import (
	"bufio"
	"bytes"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Available returns how much memory the process may take; 0 if that is not known. The files
// are read once: parts that divide the memory should not see two sizes.
var Available = sync.OnceValue(func() int64 { return available(os.DirFS("/")) })

func available(root fs.FS) int64 {
	least := totalMemory(root)
	for limit := range groupLimits(root) {
		if limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// totalMemory reads the line "MemTotal: 24682416 kB".
func totalMemory(root fs.FS) int64 {
	for fields := range lines(root, "proc/meminfo") {
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kB, _ := strconv.ParseInt(fields[1], 10, 50) // 50 bits, so that the shift cannot overflow
			return kB << 10
		}
	}
	return 0
}

// lines yields the fields of each line of a file, and nothing if it cannot be read.
func lines(root fs.FS, name string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		raw, err := fs.ReadFile(root, name)
		if err != nil {
			return
		}
		for text := bufio.NewScanner(bytes.NewReader(raw)); text.Scan(); {
			if !yield(strings.Fields(text.Text())) {
				return
			}
		}
	}
}

// limitFiles hold the limits of a group's memory, in both versions of control groups.
// Above memory.high a process is not killed, but slowed down until it hardly runs.
var limitFiles = []string{"memory.max", "memory.high", "memory.limit_in_bytes"}

// groupLimits yields the limits of the process's group and of the groups around it. Some
// are 0, for none, or larger than any machine.
func groupLimits(root fs.FS) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, m := range groupMounts(root) {
			// From the group itself up to the root of the mount.
			for dir := m.group; ; dir = path.Dir(dir) {
				for _, name := range limitFiles {
					raw, _ := fs.ReadFile(root, strings.TrimPrefix(path.Join(m.point, dir, name), "/"))
					// "max", which is no limit, gives 0.
					limit, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
					if !yield(limit) {
						return
					}
				}
				if dir == "/" {
					break
				}
			}
		}
	}
}

// groupMount is where control groups are mounted, and the path of the process's group
// below that.
type groupMount struct {
	point, group string
}

// groupMounts finds the process's memory groups of version 2 and of version 1.
func groupMounts(root fs.FS) []groupMount {
	var unified, memory string // the process's groups, "" for none
	for fields := range lines(root, "proc/self/cgroup") {
		// 0::/system.slice/mayfly.service, or 4:memory:/docker/0123456789ab
		parts := strings.SplitN(strings.Join(fields, " "), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[1] == "":
			unified = parts[2]
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			memory = parts[2]
		}
	}
	var mounts []groupMount
	for fields := range lines(root, "proc/self/mountinfo") {
		// 35 31 0:32 /docker/0123456789ab /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory
		kind := slices.Index(fields, "-")
		if len(fields) < 5 || kind < 0 || len(fields) < kind+4 {
			continue
		}
		switch options := strings.Split(fields[kind+3], ","); {
		case fields[kind+1] == "cgroup2" && unified != "":
			mounts = append(mounts, groupMount{fields[4], below(unified, fields[3])})
		case fields[kind+1] == "cgroup" && memory != "" && slices.Contains(options, "memory"):
			mounts = append(mounts, groupMount{fields[4], below(memory, fields[3])})
		}
	}
	return mounts
}

// below returns a group's path below the mounted group. In a container the process's
// group may not be below it: then the mounted group is the process's own.
func below(group, mounted string) string {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(mounted, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "/"
	}
	return path.Clean("/" + rest)
}
