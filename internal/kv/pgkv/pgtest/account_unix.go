//go:build unix

// SPDX-License-Identifier: MIT

package pgtest

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account returns how to run the server, which refuses to run as root, and how to give it a
// directory.
func account() (attr *syscall.SysProcAttr, owner func(dir string) error, err error) {
	if os.Getuid() != 0 {
		return nil, func(string) error { return nil }, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: it does not run as root, and there is no user postgres", errAbsent)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return attr, func(dir string) error { return os.Chown(dir, uid, gid) }, nil
}
