// SPDX-License-Identifier: MIT

//go:build !unix

package script

import "os"

func newPipe() (r, w *os.File, err error) { return os.Pipe() }
