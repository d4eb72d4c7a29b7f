// SPDX-License-Identifier: MIT

package kv_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
)

func ops(b *kv.Batch) []string {
	var got []string
	for op := range b.Ops {
		got = append(got, fmt.Sprintf("%d %q %q %d", op.Kind, op.Key, op.Value, op.SizeHint))
	}
	return got
}

func TestBatchKeepsOrderAndCopies(t *testing.T) {
	var b kv.Batch
	key, value := []byte("k1"), []byte("v1")
	b.Set(key, value)
	copy(key, "XX")
	copy(value, "XX")
	b.Delete([]byte("k2"), 7)
	b.DeleteRange([]byte("a"), []byte("b"))
	b.Require([]byte("k3"), []byte("v3"))
	b.RequireAbsent([]byte("k4"))
	b.Set([]byte("k5"), nil)
	want := []string{
		`1 "k1" "v1" 0`, `2 "k2" "" 7`, `3 "a" "b" 0`, `4 "k3" "v3" 0`, `5 "k4" "" 0`, `1 "k5" "" 0`,
	}
	if got := ops(&b); !slices.Equal(got, want) {
		t.Errorf("operations: got %v, want %v", got, want)
	}
	if b.Len() != 6 || b.Bytes() != len("k1v1k2abk3v3k4k5") {
		t.Errorf("Len %d, Bytes %d", b.Len(), b.Bytes())
	}

	b.Reset()
	if b.Len() != 0 || b.Bytes() != 0 || ops(&b) != nil {
		t.Errorf("a reset batch holds %v", ops(&b))
	}
	b.Set([]byte("x"), []byte("y"))
	if got := ops(&b); !slices.Equal(got, []string{`1 "x" "y" 0`}) {
		t.Errorf("a reused batch holds %v", got)
	}
}

// An engine that appends to the slices of an Op must not reach its neighbours.
func TestBatchSlicesDoNotOverlap(t *testing.T) {
	var b kv.Batch
	b.Set([]byte("aa"), []byte("bb"))
	b.Set([]byte("cc"), []byte("dd"))
	for op := range b.Ops {
		_ = append(op.Key, 'X')
		_ = append(op.Value, 'X')
	}
	want := []string{`1 "aa" "bb" 0`, `1 "cc" "dd" 0`}
	if got := ops(&b); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBatchClampsSizeHint(t *testing.T) {
	for hint, want := range map[int]uint32{-5: 0, 0: 0, 12: 12, 1 << 40: kv.MaxValueBytes} {
		var b kv.Batch
		b.Delete([]byte("k"), hint)
		for op := range b.Ops {
			if op.SizeHint != want {
				t.Errorf("hint %d: got %d, want %d", hint, op.SizeHint, want)
			}
		}
	}
}

func TestBatchCheck(t *testing.T) {
	longKey := []byte(strings.Repeat("k", kv.MaxKeyBytes+1))
	longValue := make([]byte, kv.MaxValueBytes+1)
	for _, c := range []struct {
		name string
		fill func(*kv.Batch)
		ok   bool
	}{
		{"empty batch", func(*kv.Batch) {}, true},
		{"longest key", func(b *kv.Batch) { b.Set(longKey[1:], nil) }, true},
		{"longest value", func(b *kv.Batch) { b.Set([]byte("k"), longValue[1:]) }, true},
		{"open range", func(b *kv.Batch) { b.DeleteRange(nil, longKey[1:]) }, true},
		{"empty key", func(b *kv.Batch) { b.Set(nil, nil) }, false},
		{"empty deleted key", func(b *kv.Batch) { b.Delete(nil, 0) }, false},
		{"empty required key", func(b *kv.Batch) { b.RequireAbsent(nil) }, false},
		{"long key", func(b *kv.Batch) { b.Set(longKey, nil) }, false},
		{"long required key", func(b *kv.Batch) { b.Require(longKey, nil) }, false},
		{"long value", func(b *kv.Batch) { b.Set([]byte("k"), longValue) }, false},
		{"long range bound", func(b *kv.Batch) { b.DeleteRange([]byte("a"), longKey) }, false},
		{"second operation", func(b *kv.Batch) { b.Set([]byte("k"), nil); b.Set(longKey, nil) }, false},
	} {
		var b kv.Batch
		c.fill(&b)
		if err := b.Check(); (err == nil) != c.ok || (err != nil && !errors.Is(err, kv.ErrLimit)) {
			t.Errorf("%s: got %v, want ok=%v", c.name, err, c.ok)
		}
	}
}

func TestTruncateTakesBackTheLast(t *testing.T) {
	var b kv.Batch
	for n := range 4 {
		b.Set([]byte{'k', byte(n)}, []byte{'v', byte(n)})
	}
	for _, n := range []int{4, 2, 0} {
		b.Truncate(n)
		if b.Len() != n || b.Bytes() != 4*n {
			t.Errorf("after Truncate(%d): got %d operations, %d bytes", n, b.Len(), b.Bytes())
		}
	}
	b.Delete([]byte("d"), 7)
	for op := range b.Ops {
		if op.Kind != kv.OpDelete || string(op.Key) != "d" || len(op.Value) != 0 {
			t.Errorf("after all was taken back: got %+v", op)
		}
	}
}
