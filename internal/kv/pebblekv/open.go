// SPDX-License-Identifier: MIT

package pebblekv

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

const (
	formatMarker = "format-version"
	memoryDir    = "data"
)

// Open opens the store in o.Dir, and makes one if there is none.
//
// It returns kv.ErrInUse if another DB, of this process or another, has the data open,
// kv.ErrNewerFormat, kv.ErrCorrupt or kv.ErrDiskFull. The engine cannot be stopped while it
// replays the log. If it fails then, its goroutines stay behind, and the data stays locked,
// until the process ends.
func Open(o Options) (*DB, error) {
	o = o.withDefaults()
	if o.Dir == "" {
		return nil, errNoDir
	}
	db, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, translate(err))
	}
	return db, nil
}

// OpenMemory opens an empty store that ends with the process, or with Close. It
// ignores o.Dir, o.FS and o.NoSync.
func OpenMemory(o Options) (*DB, error) {
	o.Dir, o.FS = memoryDir, vfs.NewMem()
	o.NoSync, o.withoutLog = true, true
	if o.CacheBytes <= 0 {
		o.CacheBytes = memoryCacheBytes
	}
	return Open(o)
}

func open(o Options) (*DB, error) {
	watch := newWatcher(o.Logger)
	inner, stop := o.FS, func() error { return nil }
	if inner == nil {
		fs, closer := vfs.WithDiskHealthChecks(privateFS{vfs.Default}, diskSlowThreshold, nil, watch.diskSlow)
		inner, stop = fs, closer.Close
	}
	fs := &logFS{FS: inner, watch: watch, reserves: o.reserves}
	dir, err := makeDir(fs, o)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	lock, err := lockDir(fs, dir)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	release := func() error { return errors.Join(fs.inventory.release(), lock.Close(), stop()) }
	if err := removeAside(inner, dir); err != nil {
		return nil, errors.Join(err, release())
	}
	options := o.pebbleOptions(fs, lock, watch)
	pdb, err := openPebble(dir, options, fs)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	fs.open.Store(true)
	return &DB{
		pebble: pdb, fs: fs, watch: watch, dir: dir, durable: !o.NoSync, withoutLog: o.withoutLog, release: release,
		memTableBytes: options.MemTableSize,
		pointReads:    pebble.IterOptions{UseL6Filters: true},
		erasing:       make(chan struct{}, 1),
		checkpointing: make(chan struct{}, 1),
	}, nil
}

// makeDir makes the directory, durably, and returns its absolute name without symbolic links:
// within a process the engine's lock is by name.
func makeDir(fs vfs.FS, o Options) (string, error) {
	dir := o.Dir
	if o.FS == nil {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		dir = abs
	}
	var parents []string
	for child := dir; ; child = fs.PathDir(child) {
		_, err := fs.Stat(child)
		if err == nil {
			break
		}
		if parent := fs.PathDir(child); parent == child || !errors.Is(err, iofs.ErrNotExist) {
			return "", err
		}
		parents = append(parents, fs.PathDir(child))
	}
	if err := fs.MkdirAll(dir, privateDir); err != nil {
		return "", err
	}
	for _, parent := range parents {
		if err := syncDir(fs, parent); err != nil {
			return "", err
		}
	}
	if o.FS == nil {
		return filepath.EvalSymlinks(dir)
	}
	return dir, nil
}

func syncDir(fs vfs.FS, name string) error {
	d, err := fs.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockDir takes the lock of the directory. Errors of the file system are PathErrors; any other
// error means that another DB has the lock.
func lockDir(fs vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	var ofFile *iofs.PathError
	if err == nil || errors.As(err, &ofFile) {
		return lock, err
	}
	return nil, fmt.Errorf("%w: %w", kv.ErrInUse, err)
}

// openPebble inspects the store and opens the engine, in a goroutine of its own, because
// the engine can fail in two ways besides returning an error: it panics at some kinds of
// broken data, and it never returns if it cannot flush what it recovered.
func openPebble(dir string, o *pebble.Options, fs *logFS) (*pebble.DB, error) {
	type result struct {
		db  *pebble.DB
		err error
	}
	stuck := fs.watch.startOpening()
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				cause, ok := p.(error)
				if !ok {
					cause = fmt.Errorf("%v", p)
				}
				r = result{err: fmt.Errorf("the engine gave up: %w", cause)}
			}
			fs.watch.doneOpening()
			done <- r
		}()
		if r.err = fs.inspect(dir, o.DisableWAL); r.err == nil {
			r.db, r.err = pebble.Open(dir, o)
		}
		if r.err != nil && strings.Contains(r.err.Error(), "name from file") {
			// The old options end within a name that the engine compares.
			r.err = fmt.Errorf("%w: the newest of %s*, which can be removed: %w", kv.ErrCorrupt, optionsPrefix, r.err)
		}
		if errors.Is(r.err, iofs.ErrNotExist) {
			// The directory exists, so a file of the store is missing.
			r.err = fmt.Errorf("%w: %w", kv.ErrCorrupt, r.err)
		}
	}()
	select {
	case err := <-stuck:
		return nil, err
	case r := <-done:
		select {
		case err := <-stuck: // from a background job, which never returns
			return nil, err
		default:
			return r.db, r.err
		}
	}
}

// inspect refuses a damaged store before the engine opens it: the engine deletes files that it
// does not know.
func (fs *logFS) inspect(dir string, withoutLog bool) error {
	if err := checkFormat(dir, fs.FS); err != nil || withoutLog {
		return err
	}
	// The engine reads its old options, without need, and its error does not name the file.
	if _, err := pebble.GetVersion(dir, fs.FS); err != nil {
		return fmt.Errorf("%w: the newest of %s*, which can be removed: %w", kv.ErrCorrupt, optionsPrefix, err)
	}
	var err error
	fs.inventory, err = openInventory(fs.FS, dir)
	return err
}

// checkFormat refuses data of a format that this version does not know. It marks a new store
// with the newest format: the engine alone would begin with its oldest format and upgrade step
// by step, with two syncs each, which takes longer than all the rest of opening. An old store
// without the marker has lost it.
func checkFormat(dir string, fs vfs.FS) error {
	files, err := fs.List(dir)
	if err != nil {
		return err
	}
	marker, value, err := atomicfs.LocateMarkerInListing(fs, dir, formatMarker, files)
	if err != nil {
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	if value == "" {
		if i := slices.IndexFunc(files, ofOldStore); i >= 0 {
			return errors.Join(lost("marker.%s.* is missing, although %s exists", formatMarker, files[i]), marker.Close())
		}
		return errors.Join(marker.Move(formatVersion.String()), marker.Close())
	}
	if err := marker.Close(); err != nil {
		return err
	}
	version, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: format %q", kv.ErrCorrupt, value)
	}
	if version > uint64(formatVersion) {
		return fmt.Errorf("%w: format %d, at most %d", kv.ErrNewerFormat, version, formatVersion)
	}
	return nil
}
