// SPDX-License-Identifier: MIT

package pebblekv

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	privateFile iofs.FileMode = 0o600
	privateDir  iofs.FileMode = 0o700
)

// privateFS is the operating system's file system, on which new files and directories are
// accessible to their owner alone, whatever the umask is. The engine leaves modes to the
// umask.
type privateFS struct {
	vfs.FS
}

// own makes a file accessible to its owner alone, after the engine created or opened it.
func own(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return f, err
	}
	if err := os.Chmod(name, privateFile); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Create implements vfs.FS.
func (fs privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return own(name, f, err)
}

// OpenReadWrite implements vfs.FS.
func (fs privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	return own(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (fs privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return own(newname, f, err)
}

// Lock implements vfs.FS.
func (fs privateFS) Lock(name string) (io.Closer, error) {
	lock, err := fs.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, privateFile); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// MkdirAll implements vfs.FS.
func (fs privateFS) MkdirAll(dir string, _ iofs.FileMode) error {
	return fs.FS.MkdirAll(dir, privateDir)
}

// Unwrap implements vfs.FS.
func (fs privateFS) Unwrap() vfs.FS { return fs.FS }
