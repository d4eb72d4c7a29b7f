// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

const (
	// The cache may take this part of the memory that the process has, within bounds.
	// It is taken as data is read: a small database never takes that much.
	cacheShare      = 8
	leastCacheBytes = 32 << 20
	mostCacheBytes  = 4 << 30
	// unknownCacheBytes is for systems that do not tell how much memory there is.
	unknownCacheBytes = 128 << 20
	// memoryCacheBytes is for data that is in memory as it is: the cache only saves
	// decompressing it.
	memoryCacheBytes = 32 << 20
)

// DefaultCacheBytes is how large a cache is of which nothing was said.
func DefaultCacheBytes() int64 { return cacheBytesFor(MemoryBytes()) }

// MemoryBytes is how much memory the machine has, or the container if that is less; 0 if
// it is not known.
func MemoryBytes() int64 { return memoryBytes(os.DirFS("/")) }

func cacheBytesFor(memory int64) int64 {
	if memory <= 0 {
		return unknownCacheBytes
	}
	return min(max(memory/cacheShare, leastCacheBytes), mostCacheBytes)
}

// memoryBytes is MemoryBytes as Linux tells it, in files.
func memoryBytes(root fs.FS) int64 {
	least := int64(0)
	for _, found := range []int64{
		totalMemory(root),
		memoryLimit(root, "sys/fs/cgroup/memory.max"),
		memoryLimit(root, "sys/fs/cgroup/memory/memory.limit_in_bytes"),
	} {
		if found > 0 && (least == 0 || found < least) {
			least = found
		}
	}
	return least
}

// totalMemory reads the line "MemTotal: 24682416 kB".
func totalMemory(root fs.FS) int64 {
	raw, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kB, _ := strconv.ParseInt(fields[1], 10, 50) // so that it can be multiplied
			return kB << 10
		}
	}
	return 0
}

// memoryLimit reads a file with a number of bytes, or a word if there is no limit.
func memoryLimit(root fs.FS, path string) int64 {
	raw, err := fs.ReadFile(root, path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return n
}
