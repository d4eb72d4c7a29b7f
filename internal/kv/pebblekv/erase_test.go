// SPDX-License-Identifier: MIT

package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv/rawtest"
)

// uncompressed makes tables small and readable.
func uncompressed(p *pebble.Options) {
	p.MemTableSize = 64 << 10
	p.LBaseMaxBytes = 128 << 10
	for i := range p.TargetFileSizes {
		p.TargetFileSizes[i] = 16 << 10
	}
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
}

// secretsIn returns which files of a directory hold the text.
func secretsIn(t *testing.T, dir, secret string) []string {
	t.Helper()
	found, err := rawtest.Find(dir, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func everything() []kv.Range { return []kv.Range{{}} }

func goOn(kv.Remains) error { return nil }

func TestEraseLeavesNoDeletedBytes(t *testing.T) {
	dir := t.TempDir()
	open := func() *DB {
		db, err := Open(Options{Dir: dir, tune: uncompressed})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	const secret = "the-secret-of-"
	random := rand.New(rand.NewPCG(1, 2))
	commit := func(fill func(b *kv.Batch)) {
		var b kv.Batch
		fill(&b)
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	key := func(i int) []byte { return fmt.Appendf(nil, "row %06d", i) }
	pad := strings.Repeat("x", 300)
	const rows = 4000
	for i := 0; i < rows; i += 50 {
		commit(func(b *kv.Batch) {
			for j := i; j < i+50; j++ {
				value := fmt.Sprintf("public %d %s", j, pad)
				if j%7 < 3 {
					value = fmt.Sprintf("%s%d %s", secret, j, pad)
				}
				b.Set(key(j), []byte(value))
				if j%7 == 0 {
					b.Set(fmt.Appendf(nil, "index %s%d", secret, random.IntN(1e9)), nil)
				}
			}
		})
	}
	old, err := db.Snapshot() // which keeps rows that are deleted now
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < rows; i++ {
		commit(func(b *kv.Batch) {
			switch i % 7 {
			case 0, 1:
				b.Delete(key(i), 300)
			case 2:
				b.Delete(key(i), 300)
				b.Set(key(i), fmt.Appendf(nil, "public again %d", i))
			}
		})
	}
	commit(func(b *kv.Batch) { b.DeleteRange([]byte("index "), []byte("index!")) })
	if err := db.Compact(context.Background(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(secretsIn(t, dir, secret)) == 0 {
		t.Fatal("there is nothing to erase: the test tests nothing")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	if err := db.Erase(ctx, everything(), goOn); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Erase beside a snapshot of the deleted rows: got %v", err)
	}
	cancel()
	old.Close()

	position, left, err := db.Remains(everything())
	if err != nil || left[0].Oldest == 0 || left[0].Oldest > position || left[0].Tables == 0 {
		t.Errorf("before: got %+v at %d, %v", left, position, err)
	}
	if err := db.Erase(context.Background(), everything(), goOn); err != nil {
		t.Fatal(err)
	}
	if found := secretsIn(t, dir, secret); len(found) > 0 {
		t.Errorf("after Erase, found in %v", found)
	}
	if _, left, err := db.Remains(everything()); err != nil || left[0] != (kv.Remains{}) {
		t.Errorf("after: got %+v, %v", left, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if found := secretsIn(t, dir, secret); len(found) > 0 {
		t.Errorf("after Close, found in %v", found)
	}
	db = open()
	defer func() { _ = db.Close() }()
	for i := range rows {
		want := fmt.Sprintf("public %d", i)
		if i%7 == 2 {
			want = fmt.Sprintf("public again %d", i)
		}
		value, found, err := kv.Get(db, key(i))
		if err != nil || found != (i%7 > 1) || found && !strings.HasPrefix(string(value), want) {
			t.Fatalf("row %d: got %.30q, %v, %v", i, value, found, err)
		}
	}
	if now, _, _ := db.Remains(nil); now < position {
		t.Errorf("the position fell from %d to %d", position, now)
	}
}

// A row that is replaced twice, with compactions between, is erased too: the second
// replacement must not hide the first.
func TestEraseFindsReplacedRows(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, Options{Dir: dir, tune: uncompressed})
	defer func() { _ = db.Close() }()
	for round, value := range []string{"the first secret", "the second secret", "public"} {
		var b kv.Batch
		for i := range 100 {
			b.Delete(fmt.Appendf(nil, "row %03d", i), 20)
			b.Set(fmt.Appendf(nil, "row %03d", i), []byte(value))
		}
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		if round == 0 { // to the last level
			if err := db.Erase(context.Background(), everything(), goOn); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.pebble.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Erase(context.Background(), everything(), goOn); err != nil {
		t.Fatal(err)
	}
	if found := secretsIn(t, dir, "secret"); len(found) > 0 {
		t.Errorf("found in %v", found)
	}
}

// Only what is asked for is erased, and the rest is still known to be left.
func TestEraseOfARange(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, Options{Dir: dir, tune: uncompressed})
	defer func() { _ = db.Close() }()
	for _, kind := range []string{"a", "b"} {
		var set, remove kv.Batch
		for i := range 2000 {
			key := fmt.Appendf(nil, "%s %04d", kind, i)
			set.Set(key, fmt.Appendf(nil, "secret of %s %s", kind, strings.Repeat("x", 100)))
			if i%2 == 0 {
				remove.Delete(key, 100)
			}
		}
		for _, b := range []*kv.Batch{&set, &remove} {
			if err := db.Commit(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			if err := db.pebble.Flush(); err != nil { // each kind has tables of its own
				t.Fatal(err)
			}
		}
	}
	ranges := []kv.Range{{Upper: []byte("b")}, {Lower: []byte("b")}}
	if err := db.Erase(context.Background(), ranges[:1], goOn); err != nil {
		t.Fatal(err)
	}
	_, left, err := db.Remains(ranges)
	if err != nil || left[0] != (kv.Remains{}) || left[1].Tables == 0 {
		t.Errorf("after the first range was erased: got %+v, %v", left, err)
	}
}

// A checkpoint has links to old tables. Erase is not done before it is closed, and until then
// what was deleted counts as left, whenever that was.
func TestEraseWaitsForTheCheckpoint(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, Options{Dir: filepath.Join(dir, "db"), tune: uncompressed})
	defer func() { _ = db.Close() }()
	// fill writes rows of a kind, and deletes them if asked to.
	fill := func(kind string, remove bool) {
		t.Helper()
		var b kv.Batch
		for i := range 500 {
			if key := fmt.Appendf(nil, "%s %03d", kind, i); remove {
				b.Delete(key, 50)
			} else {
				b.Set(key, fmt.Appendf(nil, "secret of %s", kind))
			}
		}
		if err := db.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		if err := db.pebble.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	ranges := []kv.Range{{Upper: []byte("b")}, {Lower: []byte("b")}}
	oldest := func() (position uint64, a, b uint64) {
		t.Helper()
		position, left, err := db.Remains(ranges)
		if err != nil {
			t.Fatal(err)
		}
		return position, left[0].Oldest, left[1].Oldest
	}
	fill("a", false)
	fill("b", false)
	fill("a", true)
	if err := db.Erase(context.Background(), ranges[1:], goOn); err != nil { // so that logs have no deletes
		t.Fatal(err)
	}
	_, first, _ := oldest()
	c, err := db.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	at, a, b := oldest()
	if a != first || b != 0 {
		t.Errorf("with a checkpoint %d and %d are left, want %d and nothing", a, b, first)
	}
	fill("b", true)
	waits, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		ended <- db.Erase(context.Background(), everything(), func(left kv.Remains) error {
			if left.InCheckpoint {
				once.Do(func() { close(waits) })
			}
			return nil
		})
	}()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("Erase has ended beside a checkpoint: %v", err)
	}
	// All has been erased, but for the links.
	if found := secretsIn(t, dir, "secret of b"); len(found) == 0 || slices.ContainsFunc(found, func(name string) bool { return !strings.HasPrefix(name, "db"+asideSuffix) }) {
		t.Errorf("while Erase waits, found in %v", found)
	}
	if _, a, b := oldest(); a != first || b != at {
		t.Errorf("while Erase waits %d and %d are left, want %d and %d", a, b, first, at)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if found := secretsIn(t, dir, "secret"); len(found) > 0 {
		t.Errorf("after Erase, found in %v", found)
	}
	if _, a, b := oldest(); a != 0 || b != 0 {
		t.Errorf("after Erase %d and %d are left", a, b)
	}

	// What a checkpoint left behind that could not be removed goes too.
	fill("c", false)
	if c, err = db.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.fs.FS.MkdirAll(filepath.Join(dir, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Files() {
		if err := os.Link(filepath.Join(dir, "db"+asideSuffix, f.Name), filepath.Join(dir, "kept", f.Name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "kept"), filepath.Join(dir, "db"+asideSuffix)); err != nil {
		t.Fatal(err)
	}
	fill("c", true)
	if err := db.Erase(context.Background(), everything(), goOn); err != nil {
		t.Fatal(err)
	}
	if found := secretsIn(t, dir, "secret"); len(found) > 0 {
		t.Errorf("after Erase, found in %v", found)
	}
}
