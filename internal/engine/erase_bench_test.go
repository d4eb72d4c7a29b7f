// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkErase measures how many bytes an erasure rewrites for each byte that leaves the
// disk, by what has expired. All data is compacted before, so that nothing else is.
func BenchmarkErase(b *testing.B) {
	for _, c := range []struct {
		name string
		// fill writes the items, and moves the time until those to be erased have expired.
		fill func(*storm)
	}{
		{"oldest half", func(s *storm) {
			s.fill(0, s.n/2, "")
			s.advance(stormTTL / 2)
			s.fill(s.n/2, s.n/2, "")
			s.settled()
			s.advance(stormTTL/2 + 1)
		}},
		{"oldest tenth", func(s *storm) {
			s.fill(0, s.n/10, "")
			s.advance(stormTTL / 2)
			s.fill(s.n/10, s.n-s.n/10, "")
			s.settled()
			s.advance(stormTTL/2 + 1)
		}},
		{"all", func(s *storm) {
			s.fill(0, s.n, "")
			s.settled()
			s.advance(stormTTL + 1)
		}},
		{"one in a hundred", func(s *storm) {
			for i := 0; i < s.n; i += 100 {
				s.fill(i, 99, "")
				s.fill(i+99, 1, `,"ttl":60`)
			}
			s.settled()
			s.advance(61)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				s := newStorm(b, true)
				c.fill(s)
				before, had := s.db.Health(), s.tableBytes()
				_, err := s.e.PausePurge(nil, false)
				s.must(err)
				_, err = s.e.PurgeNow(context.Background(), nil)
				s.must(err)
				began := time.Now()
				_, err = s.e.EraseNow(context.Background(), nil)
				s.must(err)
				took := time.Since(began)
				after := s.db.Health()
				left := s.tableBytes()
				erased := had - left
				rewritten := float64(after.BytesCompacted - before.BytesCompacted)
				b.ReportMetric(rewritten/erased, "rewritten/erased")
				b.ReportMetric(erased/1e6, "erased-MB")
				b.ReportMetric(float64(after.BytesFlushed-before.BytesFlushed)/1e6, "flushed-MB")
				b.ReportMetric(rewritten/1e6, "rewritten-MB")
				b.ReportMetric(left/1e6, "left-MB")
				b.ReportMetric(took.Seconds(), "erase-s")
				s.close()
			}
		})
	}
}

func (s *storm) advance(seconds int) {
	s.must(s.e.Clock().Advance(time.Duration(seconds) * time.Second))
}

// tableBytes returns the size of all tables.
func (s *storm) tableBytes() (bytes float64) {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.sst"))
	s.must(err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil { // unless it is gone by now
			bytes += float64(info.Size())
		}
	}
	return bytes
}

// settled compacts all data.
func (s *storm) settled() {
	s.must(s.db.Compact(context.Background(), nil, nil))
	_, err := s.e.EraseNow(context.Background(), nil)
	s.must(err)
}
