// SPDX-License-Identifier: MIT

package ru

import (
	"sync"
	"testing"
)

// Concurrent Adds all count, each under its own cause, and Total never shows half of an
// Add.
func TestLedger(t *testing.T) {
	const workers, adds = 4, 1000
	var l Ledger
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range adds {
				for cause := range causes {
					l.Add(cause, Units(cause)+0.5, 1, 1024)
					if e := l.Total(cause); e.Bytes != 1024*e.Items || e.Units != (Units(cause)+0.5)*Units(e.Items) {
						t.Errorf("%v: %+v is no sum of whole additions", cause, e)
					}
				}
			}
		})
	}
	wg.Wait()
	for cause := range causes {
		want := Entry{(Units(cause) + 0.5) * workers * adds, workers * adds, 1024 * workers * adds}
		if got := l.Total(cause); got != want {
			t.Errorf("%v: got %+v, want %+v", cause, got, want)
		}
	}
}

// Every cause has a label, and no two have the same.
func TestCauseLabels(t *testing.T) {
	seen := map[string]Cause{}
	for cause := range causes {
		label := cause.String()
		if other, ok := seen[label]; ok || label == causes.String() {
			t.Errorf("cause %d is called %q, as is %d", cause, label, other)
		}
		seen[label] = cause
	}
}

func BenchmarkLedger(b *testing.B) {
	var l Ledger
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Add(Sweep, 5.8, 1, 1024)
		}
	})
}
