//go:build !unix

// SPDX-License-Identifier: MIT

package pgtest

import "syscall"

func account() (*syscall.SysProcAttr, func(dir string) error, error) { return nil, nil, errAbsent }
