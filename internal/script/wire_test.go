// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"os"
	"testing"
	"unicode/utf8"
)

// saying returns a worker that sends the given bytes and ends.
func saying(t testing.TB, said []byte) *process {
	t.Helper()
	in, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, theirs, err := newPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = theirs.Write(said) // the other end may be closed before all was read
		_ = theirs.Close()
	}()
	p := newProcess(in, out)
	t.Cleanup(func() { _ = p.end() })
	return p
}

// seatWith returns a seat with a worker.
func seatWith(p *process) *Seat {
	o := NewPool(testPool())
	o.mu.busy[p] = struct{}{}
	return &Seat{pool: o, worker: p, release: func() {}}
}

// frame returns a frame of fields that are numbers or texts.
func frame(kind byte, values ...any) []byte {
	var f frames
	f.begin(kind)
	for _, v := range values {
		switch v := v.(type) {
		case int:
			f.number(uint64(v))
		case string:
			f.text(v)
		}
	}
	f.end()
	return f.buf
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// Whatever a worker sends, the server goes on, with an error or with JSON.
func FuzzWorkers(f *testing.F) {
	for _, said := range [][]byte{
		nil, {0}, {0, 0, 0, 0}, {255, 255, 255, 255, 'v'}, {1, 0, 0, 0, 'v'}, {9, 0, 0, 0, 'v'},
		frame(sayValue, "1"), frame(sayValue, `{"a":[1]}`), frame(sayValue, `[1, 2]`), frame(sayValue, `{"a":1}{`), frame(sayValue, `[1],"w":[2]`), frame(sayValue, "nul"), frame(sayValue, `"`), frame(sayValue, `"\ud800"`),
		frame(sayValue, "1", "2"), frame(sayValue, 1<<40), frame(sayThrown, 7, 1, "x\xff"), frame(sayThrown, 1, 2, "x"), frame(sayThrown), frame(sayRefused, "no"), frame(sayDeep), frame(sayLarge), frame(sayLarge, 1), frame('?'),
		frame(sayDone, `{}`, ``), frame(sayDone, `{`, `}`), join(frame(sayLog, "a\xff"), frame(sayLog, "b"), frame(sayDone, "", "[]")), join(frame(sayOperate, "read", "{}"), frame(sayDone, "", "")),
		join(frame(sayOperate, "read"), frame(sayDone, "", "")), frame(sayOperate, 1<<40), frame(sayRested, 1), frame(sayCompiled),
	} {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		known := func(err error) {
			var refused *CompileError
			if !Refused(err) && !errors.As(err, &refused) {
				t.Errorf("%q: %v", said, err)
			}
		}
		got, err := seatWith(saying(t, said)).NewSandbox(Options{}).Call(t.Context(), double, []byte("1"))
		if err != nil {
			known(err)
		} else if again, err := checked(got); err != nil || string(again) != string(got) {
			t.Errorf("%q gave %s, %v", said, got, err)
		}
		operations := 0
		h := silent()
		h.Operate = func(context.Context, string, string) string { operations++; return "{}" }
		out, err := seatWith(saying(t, said)).NewSandbox(Options{}).Run(t.Context(), double, h)
		if err != nil {
			known(err)
		}
		if len(out.Log) > maxLogBytes || !utf8.ValidString(out.Log) || operations > len(said) {
			t.Errorf("%q: a log of %d bytes, %d operations", said, len(out.Log), operations)
		}
		_ = saying(t, said).rest()
	})
}

// The length of a frame is bounded before the frame is read.
func TestFramesAreBounded(t *testing.T) {
	for _, n := range []int{maxSayBytes + 1, 1 << 31, 1<<32 - 1} {
		header := []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), sayValue}
		p := saying(t, header)
		if _, _, err := p.receive(); !errors.Is(err, errFrame) || len(p.scratch) > keptBytes {
			t.Errorf("a frame of %d bytes: %v, with a buffer of %d", n, err, len(p.scratch))
		}
	}
	large := make([]byte, maxResultBytes+1)
	for i := range large {
		large[i] = '1'
	}
	if _, err := checked(large); !errors.Is(err, ErrResult) {
		t.Errorf("a large result: %v", err)
	}
}
