// SPDX-License-Identifier: MIT

//go:build !linux

package script

import "os"

// programPath returns the path of this program.
func programPath() (string, error) { return os.Executable() }

// confine does nothing: other systems have no suitable limit. There the guard alone bounds
// memory.
func confine(int64) error { return nil }
