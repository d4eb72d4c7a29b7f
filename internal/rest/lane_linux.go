// SPDX-License-Identifier: MIT

package rest

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptor returns the socket of a connection, or nil if it has none that hasLeft can
// look at.
func descriptor(c net.Conn) syscall.RawConn {
	if tcp, ok := c.(*net.TCPConn); ok {
		if file, err := tcp.SyscallConn(); err == nil {
			return file
		}
	}
	return nil
}

// hasLeft reports whether the client has closed the connection, or its half of it. Bytes
// that were sent before that do not hide it.
func hasLeft(file syscall.RawConn) bool {
	left := false
	err := file.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		left = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return err != nil || left
}
