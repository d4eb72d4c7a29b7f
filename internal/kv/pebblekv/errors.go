// SPDX-License-Identifier: MIT

package pebblekv

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// errNoDir: Open was not told where the data is.
var errNoDir = errors.New("no directory is given")

// translate turns an error of the engine into one of package kv, where there is
// one for it, and keeps what the engine said.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrClosed):
		return kv.ErrClosed
	case vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", kv.ErrDiskFull, err)
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	return err
}
