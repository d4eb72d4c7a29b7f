// SPDX-License-Identifier: MIT

//go:build unix

package script

import (
	"os"
	"syscall"
)

// newPipe returns a pipe that blocks the thread that reads from it. That costs a thread for
// each script that runs, but avoids the runtime's poller: a call takes 9 µs instead of 14.
func newPipe() (r, w *os.File, err error) {
	var ends [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(ends[:]); err != nil {
		return nil, nil, err
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	return os.NewFile(uintptr(ends[0]), "|0"), os.NewFile(uintptr(ends[1]), "|1"), nil
}
