// SPDX-License-Identifier: MIT

package mayfly

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/mayflydb/mayfly/internal/rest"
)

// privateDir is the mode of directories that hold data: their owner's alone.
const privateDir fs.FileMode = 0o700

// restrict closes the directories of the data to others, if they are there already: of
// a version that left modes to the umask, or made by hand. A directory with other files
// in it than ours, such as a home, is left as it is: all that we have in it is closed.
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

// restrictDir closes a directory, and says so. Where it belongs to somebody else, who
// lets us in, it is theirs to close.
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
		o.Logger.Warn("the data's directory is open to others", "dir", dir, "mode", info.Mode().Perm().String())
		return nil
	}
	if err == nil {
		o.Logger.Info("the data's directory was open to others and is closed", "dir", dir, "mode", info.Mode().Perm().String())
	}
	return err
}
