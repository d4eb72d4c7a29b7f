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
	// assumedBytes is what a process has of memory before any script if the kernel does
	// not say.
	assumedBytes = 64 << 20
	// spareBytes is for what the Go runtime maps beyond what it counts.
	spareBytes = 16 << 20
)

// programPath returns the path of this program, also if its file has been replaced.
func programPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// confine has the kernel refuse memory beyond a bound, whatever asks for it: the Go
// runtime ends the process then. Nor can the process open a file from now on. If the
// machine itself runs out of memory, this process is the first to go.
func confine(memory int64) error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o200) // as good as it can be: /proc may not be there
	bound := uint64(dataBytes() + memory + spareBytes)
	const processes = 3 // standard input, output and error
	for resource, limit := range map[int]uint64{syscall.RLIMIT_DATA: bound, syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_NOFILE: processes} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	return nil
}

// dataBytes returns how much the process has of what RLIMIT_DATA bounds.
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
