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

// errNoDir: the options of Open have no Dir.
var errNoDir = errors.New("no directory is given")

// translate wraps an error of the engine in the matching error of package kv, if there is
// one.
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
