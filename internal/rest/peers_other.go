// SPDX-License-Identifier: MIT

//go:build !linux

package rest

import (
	"net"
	"syscall"
)

// limitUnacked does nothing: other systems notice later that a node is cut off.
func limitUnacked(net.Conn) {}

// isQuiet returns true: whether an idle connection is still open shows when it is used.
func isQuiet(syscall.RawConn) bool { return true }
