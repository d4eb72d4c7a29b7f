//go:build !linux

// SPDX-License-Identifier: MIT

package scripttest

import "syscall"

// mortal is for Linux. Elsewhere a process that a test leaves behind goes on.
func mortal() *syscall.SysProcAttr { return nil }
