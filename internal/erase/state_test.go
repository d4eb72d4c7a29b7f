// SPDX-License-Identifier: MIT

package erase

import (
	"context"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// commit moves the position of the store by one.
func commit(t *testing.T, rows kv.DB) {
	t.Helper()
	if err := kv.Set(context.Background(), rows, []byte("k"), nil); err != nil {
		t.Fatal(err)
	}
}

func position(t *testing.T, rows kv.DB) uint64 {
	t.Helper()
	p, _, err := rows.Remains(nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAgeIsThatOfTheSampleBefore(t *testing.T) {
	hour := Span{Name: "a", Within: time.Hour}
	s := state{Samples: []sample{{1000, 10}, {5000, 20}, {9000, 30}}, Erased: map[string]uint64{"b": 25}}
	for _, c := range []struct {
		what   string
		span   Span
		oldest uint64
		want   time.Duration
	}{
		{"nothing is left", hour, 0, 0},
		{"after the last sample", hour, 31, time.Second},
		{"at a sample", hour, 20, 5 * time.Second},
		{"between two samples", hour, 19, 9 * time.Second},
		{"before all samples", hour, 9, time.Hour},
		{"a range delete in an old table, after an erasure", Span{Name: "b", Within: time.Hour}, 3, 5 * time.Second},
	} {
		if got := s.age(c.span, c.oldest, 10_000); got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
	if got := s.age(hour, 31, 8000); got != 0 {
		t.Errorf("a sample of the future: got %v", got)
	}
}

func TestSamplesAreBoundedAndSurvive(t *testing.T) {
	rows := kvtest.NewModel()
	var s state
	first := position(t, rows)
	for i := range int64(10 * maxSamples) {
		commit(t, rows)
		if err := s.sample(rows, 1000*i, position(t, rows), first); err != nil {
			t.Fatal(err)
		}
		if len(s.Samples) > maxSamples {
			t.Fatalf("%d samples are kept", len(s.Samples))
		}
	}
	if s.Samples[0].Ms != 0 {
		t.Errorf("the sample before the oldest remains is gone: %+v", s.Samples[0])
	}
	n := len(s.Samples)
	if err := s.sample(rows, 1e9, position(t, rows), first); err != nil || len(s.Samples) != n {
		t.Errorf("a sample was taken although nothing was committed: %v", err)
	}
	// What is older than all remains is dropped.
	commit(t, rows)
	now := position(t, rows)
	if err := s.sample(rows, 1e9, now, now); err != nil || len(s.Samples) != 2 {
		t.Errorf("without remains, %d samples are kept, %v", len(s.Samples), err)
	}
	if err := s.erased(rows, []Span{{Name: "a"}, {Name: "gone"}}, []Span{{Name: "a"}, {Name: "b"}}, now); err != nil {
		t.Fatal(err)
	}
	loaded, err := loadState(rows, 2e9)
	if err != nil || len(loaded.Samples) != 2 || len(loaded.Erased) != 2 || loaded.Erased["a"] != now || loaded.Erased["b"] != 0 {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
	// After a rewind of the clock no age is known, so everything is overdue.
	if rewound, err := loadState(rows, 1000); err != nil || len(rewound.Samples) != 0 {
		t.Errorf("after a rewind: %+v, %v", rewound, err)
	}
}

func TestWorkBeginsAsLateAsTheLastPassAllows(t *testing.T) {
	for _, c := range []struct{ took, want time.Duration }{
		{0, 8 * time.Minute}, // there was none
		{time.Second, 12 * time.Minute},
		{time.Minute, 12 * time.Minute},
		{90 * time.Second, 11 * time.Minute},
		{time.Hour, 8 * time.Minute},
	} {
		if got := beginAfter(16*time.Minute, c.took); got != c.want {
			t.Errorf("after a pass of %v: got %v, want %v", c.took, got, c.want)
		}
	}
}
