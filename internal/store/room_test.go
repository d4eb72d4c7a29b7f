// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/value"
)

// arrayOf is an array of n different numbers, as a property.
func arrayOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i*7)
	}
	return `"a":[` + b.String()[1:] + `]`
}

// An item takes memory for its index rows too, which may be many times as large as the
// item, and returns it when it is written.
func TestIndexRowsTakeMemory(t *testing.T) {
	const elements = 20_000
	f := newFixture(t, withTTL("null"))
	budget := memory.NewBudget(1 << 30)
	for name, write := range map[string]func(Write) error{
		"one":  func(w Write) error { _, err := f.p.Write(t.Context(), w); return err },
		"all":  func(w Write) error { _, err := f.p.WriteAll(t.Context(), []Write{w}); return err },
		"each": func(w Write) error { _, err := f.p.WriteEach(t.Context(), []Write{w}, EachOptions{}); return err },
	} {
		share := budget.Share()
		w := f.item(Upsert, name, arrayOf(elements))
		w.Memory = &share
		large, err := prepare(w, f.p.Container(), memory.RoomIn(t.Context(), &share))
		f.must(err)
		made := large.batchBytes()
		if least := int64(elements * 24); share.Used() < least || made < elements*batchRowBytes {
			t.Errorf("%s: %d entries take %d bytes, and %d in batches", name, large.entries.Len(), share.Used(), made)
		}
		share.Close()
		f.must(write(w))
		if share.Used() > memory.FreeBytes || budget.Use().Held > 2*64<<10 {
			t.Errorf("%s: after the write %d bytes are used, %+v", name, share.Used(), budget.Use())
		}
		share.Close()
	}
	if use := budget.Use(); use.Held != 0 {
		t.Errorf("at the end: %+v", use)
	}
}

// A write without enough memory changes nothing, whether it fails before the loop, where it
// waits, or in it. Small writes succeed meanwhile.
func TestWritesWithoutMemory(t *testing.T) {
	f := newFixture(t, withTTL("null"))
	f.put("large", arrayOf(2_000))
	budget := memory.NewBudget(256 << 10)
	budget.Wait = time.Millisecond
	others := budget.Share()
	defer others.Close()
	if !others.TryTake(256 << 10) {
		t.Fatal("refused")
	}
	replace := f.item(Replace, "large", arrayOf(2_001))
	update := Write{Op: Update, Key: replace.Key, Change: func([]byte) (*value.Object, error) { return replace.Item, nil }}
	before, err := f.read("large")
	f.must(err)
	for name, w := range map[string]Write{
		"before the loop": replace, "in the loop": update, "the rows of the old one": {Op: Delete, Key: replace.Key},
	} {
		share := budget.Share()
		w.Memory = &share
		if _, err := f.p.Write(context.Background(), w); !errors.Is(err, memory.ErrFull) {
			t.Errorf("%s: %v, want %v", name, err, memory.ErrFull)
		}
		if _, err := f.p.WriteAll(context.Background(), []Write{f.item(Create, "beside", ""), w}); !errors.Is(err, memory.ErrFull) {
			t.Errorf("%s, with another: %v, want %v", name, err, memory.ErrFull)
		}
		if share.Used() != 0 {
			t.Errorf("%s: %d bytes are used", name, share.Used())
		}
		share.Close()
	}
	after, err := f.read("large")
	f.must(err)
	if string(after.Body) != string(before.Body) {
		t.Error("the item has changed")
	}
	small := f.item(Create, "small", "")
	share := budget.Share()
	small.Memory = &share
	_, err = f.p.Write(context.Background(), small)
	f.must(err)
	share.Close()
	f.checkClean()
}
