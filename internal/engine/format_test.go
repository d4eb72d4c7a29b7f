// SPDX-License-Identifier: MIT

package engine

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

func setRow(t *testing.T, db kv.DB, key, row []byte) {
	t.Helper()
	var b kv.Batch
	b.Set(key, row)
	if err := db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
}

func TestFormatOfTheData(t *testing.T) {
	for _, c := range []struct {
		name string
		row  []byte
		want error
	}{
		{"ours", []byte{byte(formatVersion)}, nil},
		{"newer", []byte{byte(formatVersion) + 1}, kv.ErrNewerFormat},
		{"much newer", []byte{255}, kv.ErrNewerFormat},
		{"none", []byte{0}, kv.ErrCorrupt},
		{"empty", nil, kv.ErrCorrupt},
		{"longer", []byte{byte(formatVersion), 0}, kv.ErrCorrupt},
	} {
		db := kvtest.NewModel()
		setRow(t, db, catalog.FormatKey, c.row)
		e, err := Open(Options{DB: db, TestClock: true, ClockSource: atStart})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("open, %s: got %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := Check(db, nil, func(string) {}); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("check, %s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// New data is marked with the current format before anything else is written.
func TestNewDataIsMarked(t *testing.T) {
	w := newWorld(t)
	snap, err := w.db.Snapshot()
	w.must(err)
	defer snap.Close()
	if raw, found, err := snap.Get(catalog.FormatKey); err != nil || !found || len(raw) != 1 || int(raw[0]) != formatVersion {
		t.Errorf("got %x, %v, %v, want %d", raw, found, err, formatVersion)
	}
}

// Data from before the first release is refused with a message that names the formats.
func TestFormatFromBefore(t *testing.T) {
	db := kvtest.NewModel()
	setRow(t, db, catalog.FormatKey, []byte{oldestFormat - 1})
	_, err := Open(Options{DB: db, TestClock: true, ClockSource: atStart})
	if err == nil || !strings.Contains(err.Error(), "has format 4") || !strings.Contains(err.Error(), "reads 5 to") {
		t.Errorf("format 4: got %v, want a refusal that names it", err)
	}
}

// Older data goes through the steps that it has not had, in order. A step that ended
// early runs again, and those before it do not.
func TestMigrations(t *testing.T) {
	db := kvtest.NewModel()
	setRow(t, db, catalog.FormatKey, []byte{oldestFormat})
	var done []string
	broken := errors.New("broken")
	fails := true
	steps := []migration{
		func(kv.DB, *slog.Logger) error { done = append(done, "first"); return nil },
		func(kv.DB, *slog.Logger) error {
			if fails {
				return broken
			}
			done = append(done, "second")
			return nil
		},
	}
	if err := openFormat(db, steps, quiet()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "from format 6 to 7") {
		t.Errorf("a step that fails: got %v", err)
	}
	fails = false
	for range 2 {
		if err := openFormat(db, steps, quiet()); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(done, " "); got != "first second" {
		t.Errorf("done: %s, want each step once", got)
	}
	if got, err := readFormat(db, oldestFormat+len(steps)); got.number != oldestFormat+2 || got.migration != nil || err != nil {
		t.Errorf("the format is %d, with migration %x, %v, want %d", got.number, got.migration, err, oldestFormat+2)
	}
	if err := openFormat(db, steps[:1], quiet()); !errors.Is(err, kv.ErrNewerFormat) {
		t.Errorf("opened by a version that knows one step: got %v", err)
	}
}

// While a step is under way, earlier versions refuse the data, the check does too, and the
// next start of this version does the step again. A process that is replaced in the middle
// of the step cannot write any more.
func TestMigrationUnderWay(t *testing.T) {
	db := kvtest.NewModel()
	setRow(t, db, catalog.FormatKey, []byte{oldestFormat})
	var stale kv.DB
	broken := errors.New("broken")
	step := func(db kv.DB, _ *slog.Logger) error { stale = db; return broken }
	if err := openFormat(db, []migration{step}, quiet()); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if err := openFormat(db, nil, quiet()); !errors.Is(err, kv.ErrNewerFormat) {
		t.Errorf("opened by the version before: got %v", err)
	}
	f, err := readFormat(db, oldestFormat+1)
	if err != nil || f.number != oldestFormat {
		t.Errorf("the format is %d, %v, want %d until the step has ended", f.number, err, oldestFormat)
	}
	again := false
	step = func(db kv.DB, _ *slog.Logger) error {
		again = true
		if err := kv.Set(t.Context(), stale, []byte("x"), nil); !errors.Is(err, kv.ErrConflict) {
			t.Errorf("a write of a process that was replaced: got %v", err)
		}
		return kv.Set(t.Context(), db, []byte("y"), nil)
	}
	if err := openFormat(db, []migration{step}, quiet()); err != nil || !again {
		t.Errorf("the step was done again: %v, %v", again, err)
	}
	if f, err := readFormat(db, oldestFormat+1); err != nil || f.number != oldestFormat+1 || f.migration != nil {
		t.Errorf("after the step: got %+v, %v", f, err)
	}
	if err := kv.Set(t.Context(), stale, []byte("x"), nil); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("a write after the migration: got %v", err)
	}
	for _, row := range []string{"", "\x05", "\x06_number_", "\x04_number_", "\x05_number__"} {
		setRow(t, db, catalog.MigrationKey, []byte(row))
		if _, err := readFormat(db, oldestFormat+1); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("row %q of a migration: got %v", row, err)
		}
	}
}

// Of two processes that begin a migration, or mark new data, at once, one succeeds.
func TestMigrationsAtOnce(t *testing.T) {
	db := kvtest.NewModel()
	setRow(t, db, catalog.FormatKey, []byte{oldestFormat})
	first := func(db kv.DB, _ *slog.Logger) error {
		second := func(kv.DB, *slog.Logger) error { return nil }
		if err := openFormat(db.(fenced).DB, []migration{second}, quiet()); err != nil {
			t.Error(err)
		}
		return kv.Set(t.Context(), db, []byte("x"), nil)
	}
	if err := openFormat(db, []migration{first}, quiet()); !errors.Is(err, errMigrating) {
		t.Errorf("the migration of a process that was overtaken: got %v", err)
	}
	if err := markFormat(db, oldestFormat+1); err != nil {
		t.Errorf("data that another node has just marked: got %v", err)
	}
	if err := markFormat(db, oldestFormat); !errors.Is(err, kv.ErrNewerFormat) {
		t.Errorf("data that another node has just marked with a newer format: got %v", err)
	}
}

// A node refuses data of an older format, which other nodes may be writing, until it is
// finalized. Fresh data gets the present format.
func TestSharedFormat(t *testing.T) {
	db := kvtest.NewModel()
	if err := current().openShared(db); err != nil {
		t.Fatal(err)
	}
	setRow(t, db, catalog.FormatKey, []byte{byte(formatVersion - 1)})
	if err := current().openShared(db); err == nil || !strings.Contains(err.Error(), "mayfly cluster finalize") {
		t.Errorf("got %v, want advice to finalize", err)
	}
	if number, err := Finalize(t.Context(), db, quiet()); err != nil || number != formatVersion {
		t.Errorf("finalized to %d, %v", number, err)
	}
	if err := current().openShared(db); err != nil {
		t.Error(err)
	}
}
