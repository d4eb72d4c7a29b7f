// SPDX-License-Identifier: MIT

package rest

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unackedTimeout is how long the other end of a connection to a node may leave bytes without
// an acknowledgement before the connection is given up: it is cut off.
const unackedTimeout = 5 * time.Second

// limitUnacked sets unackedTimeout.
func limitUnacked(c net.Conn) {
	if file := descriptor(c); file != nil {
		_ = file.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unackedTimeout.Milliseconds()))
		})
	}
}

// isQuiet reports whether the other end of an idle connection is still there: it has sent
// nothing and has not closed it.
func isQuiet(file syscall.RawConn) bool {
	quiet := false
	err := file.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		quiet = err == nil && n == 0
	})
	return err == nil && quiet
}
