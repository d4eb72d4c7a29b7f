// SPDX-License-Identifier: MIT

// Package rawtest searches the files of a store for bytes, as a person with the disk could:
// each file as it is, and each table decoded, with the versions that no reader sees. It is for
// tests of erasure.
package rawtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// A table that the store has not finished is read this often, with a pause in between: for
// ten seconds.
const (
	readings = 1000
	pause    = 10 * time.Millisecond
)

// Find returns the files below a directory that hold the text, with its offset for a raw file
// and the first row for a decoded table. Files that disappear meanwhile hold nothing. A table
// without its end is being written, if the store is open: it is read again until it is whole.
func Find(dir string, text []byte) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		for reading := 1; ; reading++ {
			in, err := findInFile(path, text)
			if err == nil {
				for _, place := range in {
					found = append(found, name+place)
				}
				return nil
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if filepath.Ext(path) != ".sst" || reading == readings {
				return fmt.Errorf("%s: %w", name, err)
			}
			time.Sleep(pause)
		}
	})
	return found, err
}

// findInFile returns where in a file the text is.
func findInFile(path string, text []byte) (places []string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if at := bytes.Index(raw, text); at >= 0 {
		places = append(places, fmt.Sprintf(" at %d", at))
	}
	if filepath.Ext(path) != ".sst" || len(raw) == 0 {
		return places, nil
	}
	row, err := findInTable(raw, text)
	if err != nil {
		return nil, err
	}
	if row != "" {
		places = append(places, ": row "+row)
	}
	return places, nil
}

// findInTable returns the first row of a table that has the text in its key or its value.
func findInTable(raw, text []byte) (row string, err error) {
	var o pebble.Options
	o.EnsureDefaults()
	r, err := sstable.NewMemReader(raw, o.MakeReaderOptions())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for kv := it.First(); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return "", err
		}
		if bytes.Contains(kv.K.UserKey, text) || bytes.Contains(value, text) {
			return fmt.Sprintf("%q", kv.K.UserKey), nil
		}
	}
	return "", it.Error()
}
