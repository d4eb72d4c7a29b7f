// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/erase"
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
				_, err := s.e.PausePurge(context.Background(), nil, false)
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

// BenchmarkEraseSteady measures what erasure rewrites in a container in which as many items are
// created as expire, over one whole TTL. In that time all items leave that were there at its
// begin, so erased is their size when all is compacted. Rewritten is all that was compacted, to
// erase or otherwise: with erasure off, it is the engine's own work.
func BenchmarkEraseSteady(b *testing.B) {
	for _, c := range []struct {
		name      string
		deadlines int // in a TTL
	}{{"off", 0}, {"a tenth of the TTL", 10}, {"a 24th of the TTL", 24}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				s := newStorm(b, true)
				_, err := s.e.PausePurge(context.Background(), nil, false)
				s.must(err)
				var within time.Duration
				if c.deadlines > 0 {
					within = stormTTL * time.Second / time.Duration(c.deadlines)
				}
				work := &steady{erasable: &erasable{Engine: s.e}, within: within}
				eraser, err := erase.New(erase.Options{
					Database: work, Rows: s.db, Clock: s.e.Clock(), Logger: slog.New(slog.DiscardHandler),
				})
				s.must(err)
				// Looks are a sixteenth of the time apart.
				steps := 16 * max(c.deadlines, 10)
				turn := func(first, i int) {
					s.must(s.e.Clock().Advance(stormTTL * time.Second / time.Duration(steps)))
					s.fill(first+i*s.n/steps, (i+1)*s.n/steps-i*s.n/steps, "")
					_, err := s.e.PurgeNow(context.Background(), nil)
					s.must(err)
					eraser.Turn(context.Background())
				}
				for i := range steps {
					turn(0, i)
				}
				s.settled()
				had, before := s.tableBytes(), s.db.Health()
				work.passes = 0
				for i := range steps {
					turn(s.n, i)
				}
				if now, err := eraser.Status(); err != nil || now.Failure != "" {
					b.Fatal(now.Failure, err)
				}
				after := s.db.Health()
				rewritten := float64(after.BytesCompacted - before.BytesCompacted)
				b.ReportMetric(rewritten/had, "rewritten/erased")
				b.ReportMetric(had/1e6, "erased-MB")
				b.ReportMetric(float64(after.BytesFlushed-before.BytesFlushed)/1e6, "flushed-MB")
				b.ReportMetric(rewritten/1e6, "rewritten-MB")
				b.ReportMetric(float64(work.passes), "passes")
				s.close()
			}
		})
	}
}

// steady has one span for all data, and counts passes.
type steady struct {
	*erasable
	within time.Duration
	passes int
}

func (s *steady) Spans() []erase.Span { return []erase.Span{{Name: "all", Within: s.within}} }

func (s *steady) Settle(ctx context.Context, spans []erase.Span, beforeMs int64) error {
	s.passes++
	return s.erasable.Settle(ctx, spans, beforeMs)
}
