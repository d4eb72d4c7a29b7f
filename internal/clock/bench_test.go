// SPDX-License-Identifier: MIT

package clock

import (
	"testing"
	"time"
)

func openBench(b *testing.B, o Options) *Clock {
	o.Save = func(State) error { return nil }
	c, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

func BenchmarkNow(b *testing.B) {
	frozen := func(b *testing.B) *Clock {
		c := openBench(b, Options{Test: true})
		if err := c.Freeze(); err != nil {
			b.Fatal(err)
		}
		return c
	}
	clocks := []struct {
		name string
		open func(b *testing.B) *Clock
	}{
		{"wall", func(b *testing.B) *Clock { return openBench(b, Options{}) }},
		{"test", func(b *testing.B) *Clock { return openBench(b, Options{Test: true}) }},
		{"test-frozen", frozen},
	}
	for _, bench := range clocks {
		b.Run(bench.name, func(b *testing.B) {
			c := bench.open(b)
			b.ReportAllocs()
			for b.Loop() {
				c.Now()
			}
		})
		b.Run(bench.name+"-parallel", func(b *testing.B) {
			c := bench.open(b)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.Now()
				}
			})
		})
	}
}

// BenchmarkMachine measures the two clock readings alone: the least that Now can take.
func BenchmarkMachine(b *testing.B) {
	read := machine()
	for b.Loop() {
		read()
	}
}

func BenchmarkHorizon(b *testing.B) {
	c := openBench(b, Options{State: State{FloorMs: time.Now().UnixMilli()}})
	b.ReportAllocs()
	for b.Loop() {
		c.Horizon()
	}
}
