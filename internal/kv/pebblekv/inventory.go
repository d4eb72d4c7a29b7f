// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/kv"
)

// inventory is a file beside those of the engine that lists files which must exist and
// which the engine would not miss: the engine treats a lost log as one that never existed,
// and the beginning of a manifest as all of it.
//
// The file has a line for each fact, each with a checksum, and facts are appended:
//
//	inventory 1          its format
//	log 12               something in log 12 was synced
//	closed 7 163 12 4711 the store was closed, with manifest 7 of 163 bytes, and with
//	                     log 12 of 4711 bytes, and so on, of which rows may be needed
//
// A fact is durable before a commit that depends on it is acknowledged. The last line may be
// torn. A fact about a log is void once the manifest no longer needs that log, and a fact
// about a close is void once the engine has begun another manifest, which it does before it
// changes any table. So no fact has to be withdrawn, and nothing is written while a store is
// opened, which may still be refused.
type inventory struct {
	fs  vfs.FS
	dir string

	mu struct {
		sync.Mutex
		file vfs.File // nil until there is something to write
		end  int64    // where the next fact is written
		// anew has the logs of a new inventory that will replace the present one; nil if
		// facts can be appended to that.
		anew []uint64
	}
}

const (
	inventoryFile      = "INVENTORY"
	inventoryTemporary = inventoryFile + ".tmp"
	inventoryForm      = "inventory 1"
	// An inventory that is longer is rewritten after the next start.
	inventoryAnewBytes = 64 << 10
	// inventoryMaxBytes is far more than a store writes in years between two starts.
	inventoryMaxBytes = 16 << 20
)

// facts are the facts of an inventory.
type facts struct {
	logs   []uint64 // in which something was synced
	closed bool     // there is a fact about a close: the next three fields
	// manifest is the number of the manifest in use, and manifestBytes its size.
	manifest      uint64
	manifestBytes int64
	kept          map[uint64]int64 // the sizes of the logs that are needed

	bytes int64 // of whole lines
	torn  bool  // more bytes follow
}

// lost returns the error for a store that has lost a file or a part of one.
func lost(format string, args ...any) error {
	return fmt.Errorf("%w: %s; nothing was changed: put the files back as they were, from a copy of all of them", kv.ErrCorrupt, fmt.Sprintf(format, args...))
}

// openInventory reads the inventory, and refuses a store that has lost something.
func openInventory(fs vfs.FS, dir string) (*inventory, error) {
	files, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	current, err := readManifest(fs, dir, files)
	if err != nil {
		return nil, err
	}
	known, err := readInventory(fs, dir, files)
	if err != nil {
		return nil, err
	}
	if err := known.check(fs, dir, current); err != nil {
		return nil, err
	}
	inv := &inventory{fs: fs, dir: dir}
	inv.mu.end = known.bytes
	if known.bytes == 0 || known.torn || known.bytes > inventoryAnewBytes {
		inv.mu.anew = append([]uint64{}, known.needed(current)...)
	}
	return inv, nil
}

// check compares the facts with the files.
func (k *facts) check(fs vfs.FS, dir string, current manifest) error {
	if k.closed && current.number < k.manifest {
		return lost("the manifest is %s, and was %s", manifestName(current.number), manifestName(k.manifest))
	}
	if k.closed && current.number == k.manifest {
		if current.bytes != k.manifestBytes {
			return lost("%s has %d bytes, and had %d", manifestName(k.manifest), current.bytes, k.manifestBytes)
		}
		for n, want := range k.kept {
			if bytes, err := sizeOf(fs, dir, logName(n)); err != nil {
				return err
			} else if bytes != want {
				return lost("%s has %d bytes, and had %d", logName(n), bytes, want)
			}
		}
	}
	for _, n := range k.needed(current) {
		if bytes, err := sizeOf(fs, dir, logName(n)); err != nil {
			return err
		} else if bytes == 0 {
			return lost("%s is empty, and was not", logName(n))
		}
	}
	return nil
}

// needed returns the logs with rows that may not be in tables yet, by the manifest.
func (k *facts) needed(current manifest) []uint64 {
	return slices.DeleteFunc(slices.Clone(k.logs), func(n uint64) bool { return n < current.firstLog })
}

// sizeOf returns the size of a file that must exist.
func sizeOf(fs vfs.FS, dir, name string) (int64, error) {
	info, err := fs.Stat(fs.PathJoin(dir, name))
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, lost("%s is missing", name)
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// beginLocked opens the file for writing. If a new one is due, it makes that first.
func (inv *inventory) beginLocked() error {
	name := inv.fs.PathJoin(inv.dir, inventoryFile)
	if inv.mu.anew != nil {
		content := appendFact(nil, inventoryForm)
		for _, n := range inv.mu.anew {
			content = appendFact(content, logFact(n))
		}
		temporary := inv.fs.PathJoin(inv.dir, inventoryTemporary)
		f, err := inv.fs.Create(temporary, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := errors.Join(inv.fs.Rename(temporary, name), syncDir(inv.fs, inv.dir)); err != nil {
			return err
		}
		inv.mu.anew, inv.mu.end = nil, int64(len(content))
	}
	f, err := inv.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	inv.mu.file = f
	return nil
}

// append adds a fact, and returns when it is durable.
func (inv *inventory) append(text string) error {
	line := appendFact(nil, text)
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.mu.file == nil {
		if err := inv.beginLocked(); err != nil {
			return err
		}
	}
	if _, err := inv.mu.file.WriteAt(line, inv.mu.end); err != nil {
		return err
	}
	if err := inv.mu.file.SyncData(); err != nil {
		return err
	}
	inv.mu.end += int64(len(line))
	return nil
}

// synced records that something in a log is durable.
func (inv *inventory) synced(log uint64) error {
	return inv.append(logFact(log))
}

// closed records the sizes of the files that the closed engine has left.
func (inv *inventory) closed() error {
	files, err := inv.fs.List(inv.dir)
	if err != nil {
		return err
	}
	current, err := readManifest(inv.fs, inv.dir, files)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("closed %d %d", current.number, current.bytes)
	for _, name := range files {
		if n, ok := logNumber(name); ok && n >= current.firstLog {
			bytes, err := sizeOf(inv.fs, inv.dir, name)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %d", n, bytes)
		}
	}
	return inv.append(text)
}

// release closes the file.
func (inv *inventory) release() error {
	if inv == nil {
		return nil
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.mu.file == nil {
		return nil
	}
	return inv.mu.file.Close()
}

// readInventory returns the facts of the inventory. There are none if it does not exist: the
// store is new, or of a version without an inventory.
func readInventory(fs vfs.FS, dir string, files []string) (*facts, error) {
	if !slices.Contains(files, inventoryFile) {
		return &facts{}, nil
	}
	f, err := fs.Open(fs.PathJoin(dir, inventoryFile))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, inventoryMaxBytes))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	known, err := parseInventory(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; if all other files are as they were, remove it", kv.ErrCorrupt, inventoryFile, err)
	}
	return known, nil
}

var factsTable = crc32.MakeTable(crc32.Castagnoli)

func logFact(log uint64) string { return "log " + strconv.FormatUint(log, 10) }

func appendFact(b []byte, text string) []byte {
	return fmt.Appendf(b, "%s %08x\n", text, crc32.Checksum([]byte(text), factsTable))
}

// parseInventory parses facts. Bytes after the last whole line were torn by a crash.
func parseInventory(content []byte) (*facts, error) {
	k := &facts{}
	for number := 0; ; number++ {
		line, rest, whole := bytes.Cut(content, []byte("\n"))
		at := bytes.LastIndexByte(line, ' ')
		if !whole || at < 0 || !bytes.Equal(appendFact(nil, string(line[:at])), content[:len(line)+1]) {
			if number == 0 || bytes.IndexByte(rest, '\n') >= 0 {
				return nil, fmt.Errorf("line %d is damaged", number+1)
			}
			k.torn = len(content) > 0
			return k, nil
		}
		k.bytes += int64(len(line) + 1)
		content = rest
		if err := k.add(string(line[:at]), number); err != nil {
			return nil, err
		}
	}
}

// add adds a fact.
func (k *facts) add(text string, number int) error {
	if number == 0 {
		if text != inventoryForm {
			return fmt.Errorf("%w: its form is %q", kv.ErrNewerFormat, text)
		}
		return nil
	}
	word, rest, _ := strings.Cut(text, " ")
	var values []uint64
	for _, digits := range strings.Split(rest, " ") {
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil {
			return fmt.Errorf("line %d says %q", number+1, text)
		}
		values = append(values, n)
	}
	switch {
	case word == "log" && len(values) == 1:
		k.logs = append(k.logs, values[0])
	case word == "closed" && len(values)%2 == 0:
		k.closed, k.manifest, k.manifestBytes, k.kept = true, values[0], int64(values[1]), map[uint64]int64{}
		for pair := range slices.Chunk(values[2:], 2) {
			k.kept[pair[0]] = int64(pair[1])
		}
	default:
		return fmt.Errorf("line %d says %q", number+1, text)
	}
	return nil
}

func logName(n uint64) string { return fmt.Sprintf("%06d%s", n, logSuffix) }

// logNumber returns the number in the name of a log.
func logNumber(name string) (uint64, bool) {
	digits, isLog := strings.CutSuffix(name, logSuffix)
	n, err := strconv.ParseUint(digits, 10, 63)
	return n, isLog && err == nil
}
