// SPDX-License-Identifier: MIT

package transfer

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// appender is a file that is written from a position on, or standard output.
type appender struct {
	f      *os.File
	stdout bool
}

// standard is the name of standard input or output.
const standard = "-"

// open opens the file, if it is not open, and cuts what is after the position.
func (a *appender) open(name string, at int64) error {
	if a.f != nil {
		return nil
	}
	if name == standard {
		a.f, a.stdout = os.Stdout, true
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, privateFile)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		if info.Size() < at {
			err = fmt.Errorf("%s has %d bytes, and had %d: it was changed since", name, info.Size(), at)
		} else {
			err = f.Truncate(at)
		}
	}
	if err == nil && info.Mode().IsRegular() {
		_, err = f.Seek(at, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.f = f
	return nil
}

func (a *appender) write(b []byte) error {
	_, err := a.f.Write(b)
	return err
}

func (a *appender) sync() error {
	if a.f == nil || a.stdout {
		return nil
	}
	if err := a.f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		if info, failed := a.f.Stat(); failed == nil && info.Mode().IsRegular() {
			return err // a pipe or a device cannot be synced
		}
	}
	return nil
}

func (a *appender) close() error {
	if a.f == nil || a.stdout {
		return nil
	}
	return a.f.Close()
}
