// SPDX-License-Identifier: MIT

// Package rawtest searches the files of a store for bytes, as a person with the disk could:
// each file as it is, and each table decoded: its rows, with the versions that no reader sees,
// and all its blocks, uncompressed. Blocks of indexes have keys as boundaries, and those of
// range deletes have keys that may be in no row. It is for tests of erasure.
package rawtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
)

// A table that the store has not finished is read this often, with a pause in between: for
// ten seconds.
const (
	readings = 1000
	pause    = 10 * time.Millisecond
)

// Find returns the files below a directory that hold the text, with its offset for a raw file,
// and for a decoded table the first row and the kinds of blocks. Files that disappear meanwhile hold nothing. A table
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
	in, err := findInTable(raw, text)
	return append(places, in...), err
}

// findInTable returns where in a decoded table the text is.
func findInTable(raw, text []byte) (places []string, err error) {
	var o pebble.Options
	o.EnsureDefaults()
	r, err := sstable.NewMemReader(raw, o.MakeReaderOptions())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	row, err := findInRows(r, text)
	if err != nil {
		return nil, err
	}
	if row != "" {
		places = append(places, ": row "+row)
	}
	kinds, err := findInBlocks(r, text)
	for _, kind := range kinds {
		places = append(places, ": block of "+kind)
	}
	return places, err
}

// findInBlocks returns the kinds of blocks that have the text when they are uncompressed.
func findInBlocks(r *sstable.Reader, text []byte) (kinds []string, err error) {
	l, err := r.Layout()
	if err != nil {
		return nil, err
	}
	data := make([]block.Handle, len(l.Data))
	for i := range l.Data {
		data[i] = l.Data[i].Handle
	}
	filters := make([]block.Handle, len(l.Filter))
	for i := range l.Filter {
		filters[i] = l.Filter[i].Handle
	}
	for _, of := range []struct {
		name   string
		kind   block.Kind
		blocks []block.Handle
	}{
		{"rows", blockkind.SSTableData, data},
		{"values", blockkind.SSTableValue, l.ValueBlock},
		{"the index", blockkind.Index, append(l.Index, l.TopIndex)},
		{"filters", blockkind.Filter, filters},
		{"range deletes", blockkind.RangeDel, []block.Handle{l.RangeDel}},
		{"range keys", blockkind.RangeKey, []block.Handle{l.RangeKey}},
		{"the table", blockkind.Metadata, []block.Handle{l.Properties, l.MetaIndex, l.ValueIndex, l.BlobReferenceIndex}},
	} {
		for _, handle := range of.blocks {
			if handle.Length == 0 {
				continue // there is none
			}
			b, err := r.BlockReader().Read(context.Background(), block.NoReadEnv, nil, handle, of.kind, func(*block.Metadata, []byte) error { return nil })
			if err != nil {
				return nil, err
			}
			found := bytes.Contains(b.BlockData(), text)
			b.Release()
			if found {
				kinds = append(kinds, of.name)
				break
			}
		}
	}
	return kinds, nil
}

// findInRows returns the first row of a table that has the text in its key or its value. Rows
// share what their keys have in common, so that no block may have the text where a key does.
func findInRows(r *sstable.Reader, text []byte) (row string, err error) {
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
