// SPDX-License-Identifier: MIT

package scripttest

import "syscall"

// mortal has a process end with this one, in whatever way this one ends.
func mortal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
