// SPDX-License-Identifier: MIT

package script

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

const (
	// assumedBytes is the assumed memory of a process before any script, if the kernel does
	// not report it.
	assumedBytes = 64 << 20
	// spareBytes is for memory that the Go runtime maps beyond what it counts.
	spareBytes = 16 << 20
)

// programPath returns a path that leads to this program even if its file has been replaced.
func programPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// confine makes the kernel refuse memory beyond a bound: the Go runtime then ends the
// process. From now on the process cannot open a file either. If the machine itself runs
// out of memory, the kernel kills this process first.
func confine(memory int64) error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o200) // not required: /proc may be missing
	bound := uint64(dataBytes() + memory + spareBytes)
	const processes = 3 // standard input, output and error
	for resource, limit := range map[int]uint64{syscall.RLIMIT_DATA: bound, syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_NOFILE: processes} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	return nil
}

// dataBytes returns how much memory that RLIMIT_DATA bounds the process has now.
func dataBytes() int64 {
	const field = 5
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return assumedBytes
	}
	numbers := bytes.Fields(raw)
	if len(numbers) <= field {
		return assumedBytes
	}
	pages, err := strconv.ParseInt(string(numbers[field]), 10, 64)
	if err != nil {
		return assumedBytes
	}
	return pages * int64(os.Getpagesize())
}
