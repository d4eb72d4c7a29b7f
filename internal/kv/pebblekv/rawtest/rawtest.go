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

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Find returns the files below a directory that hold the text, with its offset for a raw file
// and the first row for a decoded table. Files that disappear meanwhile hold nothing.
func Find(dir string, text []byte) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if at := bytes.Index(raw, text); at >= 0 {
			found = append(found, fmt.Sprintf("%s at %d", name, at))
		}
		if filepath.Ext(path) != ".sst" || len(raw) == 0 {
			return nil
		}
		row, err := findInTable(raw, text)
		if err != nil {
			if _, gone := os.Stat(path); gone != nil { // it was being written
				return nil
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		if row != "" {
			found = append(found, fmt.Sprintf("%s: row %s", name, row))
		}
		return nil
	})
	return found, err
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
