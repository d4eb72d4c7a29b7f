// SPDX-License-Identifier: MIT

package ru

import (
	"math"
	"testing"
)

// The service's known points, and that more bytes never cost less.
func TestCharges(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int
		got   Units
		want  float64
	}{
		{"read nothing", 0, Read(0), 1},
		{"read 1 KiB", 1 << 10, Read(1 << 10), 1},
		{"read 100 KiB", 100 << 10, Read(100 << 10), 10},
		{"write 1 KiB", 1 << 10, Write(1 << 10), 5.29},
		{"write 100 KiB", 100 << 10, Write(100 << 10), 50},
	} {
		if math.Abs(float64(c.got)-c.want) > 0.001 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	for n := 0; n < 2<<20; n += 333 {
		if Read(n+333) < Read(n) || Write(n+333) < Write(n) {
			t.Fatalf("%d bytes cost more than %d", n, n+333)
		}
	}
}
