// SPDX-License-Identifier: MIT

package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// This file removes a file of a store, or a part of one. Then either the store is complete
// nevertheless, or it is refused with the name of the file and not a byte of it is changed.

// loss is a way to damage a file.
type loss struct {
	name string
	do   func(content []byte) []byte // returns the content that is left; nil removes the file
}

var (
	removed   = loss{"removed", func([]byte) []byte { return nil }}
	emptied   = loss{"emptied", func([]byte) []byte { return []byte{} }}
	halved    = loss{"cut to half", func(b []byte) []byte { return b[:len(b)/2] }}
	shortened = loss{"one byte short", func(b []byte) []byte { return b[:max(len(b)-1, 0)] }}
)

// lostRows is how many rows these tests write between two flushes, each of which begins a new
// log.
const lostRows = 40

const lostDir = "d"

func TestLostFile(t *testing.T) {
	for _, stops := range []int{0, 2} {
		dir := t.TempDir()
		rows := map[string]string{}
		for range stops {
			db := mustOpen(t, Options{Dir: dir})
			writeLostRows(t, db, rows)
			mustClose(t, db)
		}
		db := mustOpen(t, Options{Dir: dir})
		writeLostRows(t, db, rows)
		killed := readFiles(t, vfs.Default, dir)
		mustClose(t, db)
		stopped := readFiles(t, vfs.Default, dir)
		t.Run(fmt.Sprintf("killed after %d stops", stops), func(t *testing.T) {
			loseEach(t, killed, rows, removed, emptied)
		})
		t.Run(fmt.Sprintf("stopped %d times", stops+1), func(t *testing.T) {
			loseEach(t, stopped, rows, removed, emptied, halved, shortened)
		})
	}
}

// A crash of the machine keeps fewer bytes than the end of a process, but all that the checks
// need.
func TestLostFileAfterCrash(t *testing.T) {
	disk := vfs.NewCrashableMem()
	rows := map[string]string{}
	for range 2 {
		db := mustOpen(t, Options{Dir: lostDir, FS: disk})
		writeLostRows(t, db, rows)
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, db)
		disk = crashed
		loseEach(t, readFiles(t, disk, lostDir), rows, removed, emptied)
	}
}

// While a flush is slow there are several logs, and all are needed.
func TestLostLogOfSeveral(t *testing.T) {
	flush := make(chan struct{})
	f := &fault{ext: ".sst", err: syscall.EIO, from: 1, once: true, held: flush}
	disk := vfs.NewCrashableMem()
	db := mustOpen(t, Options{Dir: lostDir, FS: errorfs.Wrap(disk, f), tune: smallTables})
	f.on.Store(true)
	rows := map[string]string{}
	for db.watch.queued.Load() < memTablesQueued-1 {
		key, value := fmt.Sprintf("row%04d", len(rows)), strings.Repeat("v", 1000)
		commitRow(t, db, key, value)
		rows[key] = value
	}
	files := readFiles(t, disk.CrashClone(vfs.CrashCloneCfg{}), lostDir)
	close(flush)
	mustClose(t, db)
	logs := slices.DeleteFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return !strings.HasSuffix(name, logSuffix) })
	if len(logs) < 3 {
		t.Fatalf("there are only the logs %v", logs)
	}
	loseEach(t, files, rows, removed, emptied)
}

// writeLostRows writes rows to tables and to logs, both new and overwritten ones.
func writeLostRows(t *testing.T, db *DB, rows map[string]string) {
	t.Helper()
	for range 4 {
		if err := db.pebble.Flush(); err != nil {
			t.Fatal(err)
		}
		for range lostRows {
			key, value := fmt.Sprintf("row%04d", len(rows)), strings.Repeat(fmt.Sprint(len(rows)), 100)
			commitRow(t, db, key, value)
			rows[key] = value
		}
	}
}

// loseEach loses each file in each way, one at a time.
func loseEach(t *testing.T, files map[string][]byte, rows map[string]string, losses ...loss) {
	refused := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		ways := losses
		if strings.HasPrefix(name, optionsPrefix) { // a truncated text may still be readable
			for n := 0; n < len(files[name]); n += 97 {
				ways = append(ways[:len(ways):len(ways)], loss{fmt.Sprintf("cut to %d bytes", n), func(b []byte) []byte { return b[:n] }})
			}
		}
		for _, l := range ways {
			left := maps.Clone(files)
			if left[name] = l.do(files[name]); left[name] == nil {
				delete(left, name)
			}
			disk := vfs.NewMem() // a copy in memory, where no operation fails by itself
			writeFiles(t, disk, left)
			db, err := Open(Options{Dir: lostDir, FS: disk, Logger: quiet()})
			if err == nil {
				checkLostRows(t, db, rows, name+" "+l.name)
				mustClose(t, db)
				continue
			}
			refused++
			if !strings.Contains(err.Error(), nameInMessages(name)) {
				t.Errorf("%s %s: Open says %v, and does not name it", name, l.name, err)
			}
			if after := readFiles(t, disk, lostDir); !maps.EqualFunc(left, after, bytes.Equal) {
				t.Errorf("%s %s: Open has refused the store and changed it", name, l.name)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// nameInMessages returns the part of a file's name that an error message must contain: the end
// of a lost marker's name is not known, options are named as the newest of their kind, and the
// engine names tables by their number.
func nameInMessages(name string) string {
	if kind, ok := strings.CutPrefix(name, "marker."); ok {
		kind, _, _ = strings.Cut(kind, ".")
		return "marker." + kind
	}
	if strings.HasPrefix(name, optionsPrefix) {
		return optionsPrefix
	}
	return strings.TrimSuffix(name, ".sst")
}

func checkLostRows(t *testing.T, db *DB, rows map[string]string, what string) {
	t.Helper()
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lost := 0
	for key, want := range rows {
		if got, found, err := s.Get([]byte(key)); err != nil || !found || string(got) != want {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%s: Open accepts the store, without %d of %d rows", what, lost, len(rows))
	}
}

// readFiles returns the files in dir, but for the lock, which has no content.
func readFiles(t *testing.T, fs vfs.FS, dir string) map[string][]byte {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		files[name] = content
	}
	return files
}

func writeFiles(t *testing.T, fs vfs.FS, files map[string][]byte) {
	t.Helper()
	if err := fs.MkdirAll(lostDir, privateDir); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		f, err := fs.Create(fs.PathJoin(lostDir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(content)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// A store that lost its inventory and another file is like one that never had an inventory: it
// is refused if the engine itself notices.
func TestOpenWithoutInventory(t *testing.T) {
	dir := t.TempDir()
	rows := map[string]string{}
	db := mustOpen(t, Options{Dir: dir})
	writeLostRows(t, db, rows)
	killed := readFiles(t, vfs.Default, dir)
	mustClose(t, db)
	for name, files := range map[string]map[string][]byte{"killed": killed, "stopped": readFiles(t, vfs.Default, dir)} {
		delete(files, inventoryFile)
		disk := vfs.NewMem()
		writeFiles(t, disk, files)
		db := mustOpen(t, Options{Dir: lostDir, FS: disk})
		checkLostRows(t, db, rows, name)
		commitRow(t, db, "row", "v")
		mustClose(t, db)
		if _, err := disk.Stat(lostDir + "/" + inventoryFile); err != nil {
			t.Errorf("%s: the next run has not made an inventory: %v", name, err)
		}
	}
}

// An outdated inventory does not refuse a store: it is what remains when a version without
// inventories has written to the store meanwhile.
func TestStaleInventory(t *testing.T) {
	disk := vfs.NewMem()
	rows := map[string]string{}
	var stale []byte
	for range 2 {
		db := mustOpen(t, Options{Dir: lostDir, FS: disk})
		writeLostRows(t, db, rows)
		mustClose(t, db)
		if stale == nil {
			stale = readFiles(t, disk, lostDir)[inventoryFile]
		}
	}
	writeFiles(t, disk, map[string][]byte{inventoryFile: stale})
	db := mustOpen(t, Options{Dir: lostDir, FS: disk})
	checkLostRows(t, db, rows, "with a stale inventory")
	mustClose(t, db)
}

// A last line that a crash has torn is ignored, and any other damage is refused.
func TestParseInventory(t *testing.T) {
	content := appendFact(appendFact(appendFact(nil, inventoryForm), "log 12"), "closed 7 163 12 4711")
	second := bytes.IndexByte(content, '\n') + 1
	for n := range len(content) {
		k, err := parseInventory(content[:n])
		switch {
		case n < second && err == nil:
			t.Errorf("%q is accepted", content[:n])
		case n >= second && (err != nil || k.closed || k.torn == bytes.HasSuffix(content[:n], []byte("\n"))):
			t.Errorf("%q: %+v, %v", content[:n], k, err)
		}
	}
	k, err := parseInventory(content)
	if err != nil || !k.closed || k.manifest != 7 || k.manifestBytes != 163 || k.kept[12] != 4711 || !slices.Equal(k.logs, []uint64{12}) || k.bytes != int64(len(content)) {
		t.Errorf("%q: %+v, %v", content, k, err)
	}
	// Without the end of the line before it, the last one is torn.
	for i := range bytes.LastIndexByte(content[:len(content)-1], '\n') {
		damaged := bytes.Clone(content)
		damaged[i] ^= 1
		if k, err := parseInventory(damaged); err == nil {
			t.Errorf("%q is accepted: %+v", damaged, k)
		}
	}
}

func FuzzParseInventory(f *testing.F) {
	f.Add(string(appendFact(appendFact(nil, inventoryForm), "closed 7 163 12 4711")))
	f.Add(string(appendFact(appendFact(nil, inventoryForm), "log 12")) + "torn")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := parseInventory([]byte(text))
		if err == nil && (k.bytes > int64(len(text)) || k.torn != (k.bytes < int64(len(text)))) {
			t.Errorf("%q has %d bytes, torn %v", text, k.bytes, k.torn)
		}
		_, _ = parseInventory(appendFact(appendFact(nil, inventoryForm), strings.ReplaceAll(text, "\n", " ")))
	})
}
