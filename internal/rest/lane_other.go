// SPDX-License-Identifier: MIT

//go:build !linux

package rest

import (
	"net"
	"syscall"
)

// descriptor returns nil: only Linux tells that a client has left while bytes of it are
// unread. So net/http serves all connections.
func descriptor(net.Conn) syscall.RawConn { return nil }

func hasLeft(syscall.RawConn) bool { return false }
