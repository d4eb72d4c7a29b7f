// SPDX-License-Identifier: MIT

package mayfly

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/mayflydb/mayfly/internal/rest"
)

// privateDir is the mode of directories that hold data: only their owner has access.
const privateDir fs.FileMode = 0o700

// restrict closes existing directories of the data to other users: an older version may
// have left their modes to the umask, or the operator may have made them. A directory
// that also holds other files, such as a home, stays as it is: what the server keeps in
// it is closed anyway.
func (o Options) restrict() error {
	if err := o.restrictDir(o.dataDir()); err != nil {
		return err
	}
	entries, err := os.ReadDir(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ours := append(rest.CertificateFiles(), "db")
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(ours, e.Name()) }) {
		return nil
	}
	return errors.Join(err, o.restrictDir(o.Dir))
}

// restrictDir closes a directory to other users, and logs it. If the directory belongs to
// another user, it only warns.
func (o Options) restrictDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode().Perm()&^privateDir == 0 {
		return err
	}
	err = os.Chmod(dir, privateDir)
	if errors.Is(err, fs.ErrPermission) {
		o.Logger.Warn("other users have access to the data's directory", "dir", dir, "mode", info.Mode().Perm().String())
		return nil
	}
	if err == nil {
		o.Logger.Info("closed the data's directory to other users", "dir", dir, "mode", info.Mode().Perm().String())
	}
	return err
}
