// SPDX-License-Identifier: MIT

package pebblekv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// manifest is what can be read of the engine's manifest without opening the store. Its
// records are edits of the state before them. An edit begins with the fields that are read
// here; the tables that it adds and removes follow, and are not read.
type manifest struct {
	number uint64 // 0 if the store is new
	bytes  int64
	// firstLog is the first log with rows that may not be in tables yet.
	firstLog uint64
}

const (
	manifestPrefix = "MANIFEST-"
	optionsPrefix  = "OPTIONS-"
	tableSuffix    = ".sst"

	// The first fields of an edit. Each is a number, except the name of the comparer.
	tagComparer    = 1
	tagFirstLog    = 2
	tagNextFile    = 3
	tagPreviousLog = 9
)

// readManifest finds the manifest that is in use and reads it. It refuses a store
// without one: the engine would begin a new store in its place.
func readManifest(fs vfs.FS, dir string, files []string) (manifest, error) {
	value, err := atomicfs.ReadMarker(fs, dir, strings.TrimSuffix(strings.TrimPrefix(manifestMarker, "marker."), "."))
	if err != nil {
		return manifest{}, err
	}
	if value == "" {
		if i := slices.IndexFunc(files, ofOldStore); i >= 0 {
			return manifest{}, lost("%s* is missing, although %s exists", manifestMarker, files[i])
		}
		return manifest{}, nil
	}
	digits, ok := strings.CutPrefix(value, manifestPrefix)
	number, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil {
		return manifest{}, lost("%s* names %q, which is no manifest", manifestMarker, value)
	}
	m := manifest{number: number}
	if m.bytes, err = sizeOf(fs, dir, value); err != nil {
		return m, err
	}
	f, err := fs.Open(fs.PathJoin(dir, value))
	if err != nil {
		return m, err
	}
	err = m.read(f)
	return m, errors.Join(err, f.Close())
}

// ofOldStore reports whether a file is one that the engine makes only after the manifest.
func ofOldStore(name string) bool {
	_, isLog := logNumber(name)
	return isLog || strings.HasPrefix(name, optionsPrefix) || strings.HasSuffix(name, tableSuffix)
}

func manifestName(n uint64) string { return fmt.Sprintf("%s%06d", manifestPrefix, n) }

// read reads the edits as the engine does, for which an unreadable edit is the end of the
// manifest. There must be a first edit: it is durable before the manifest is in use.
func (m *manifest) read(r io.Reader) error {
	records := record.NewReader(r, 0)
	for n := 0; ; n++ {
		next, err := records.Next()
		var edit []byte
		if err == nil {
			edit, err = io.ReadAll(next)
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF) && !record.IsInvalidRecord(err):
			return err
		case n == 0:
			return lost("%s does not begin with an edit: %v", manifestName(m.number), err)
		default:
			return nil
		}
		if err := m.take(edit); err != nil {
			return err
		}
	}
}

// take reads the first fields of an edit.
func (m *manifest) take(edit []byte) error {
	for len(edit) > 0 {
		tag, n := binary.Uvarint(edit)
		if n <= 0 || !slices.Contains([]uint64{tagComparer, tagFirstLog, tagNextFile, tagPreviousLog}, tag) {
			return nil // the tables follow
		}
		edit = edit[n:]
		value, n := binary.Uvarint(edit)
		if tag == tagComparer {
			n += int(value)
		}
		if n <= 0 || n > len(edit) {
			return lost("%s has an edit that ends early", manifestName(m.number))
		}
		edit = edit[n:]
		if tag == tagFirstLog {
			m.firstLog = value
		}
	}
	return nil
}
