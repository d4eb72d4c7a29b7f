// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
)

// BenchmarkSplit splits a partition with a gigabyte of items of 4 KiB, on disk: its time, for
// how long writes wait at its end, and the bytes of the directory before, at the end and after
// a compaction. It is for -benchtime=1x.
func BenchmarkSplit(b *testing.B) {
	const items, batch = 1 << 18, 64
	dir := b.TempDir()
	db, err := pebblekv.Open(pebblekv.Options{Dir: dir, Logger: quiet(), IsIndexKey: store.IsIndexKey})
	if err != nil {
		b.Fatal(err)
	}
	w := &world{t: b, db: db}
	w.open(Options{})
	w.container("c", "-1", 1)
	rng := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 3072) // which cannot be compressed
	for i := 0; i < items; i += batch {
		r := &Request{Target: Target{Database: "d", Container: "c"}, Range: "0", ContinueOnError: true}
		for n := i; n < i+batch; n++ {
			pk := fmt.Sprint("key ", n%10_000)
			t := item("c", pk, "")
			for i := range text {
				text[i] = byte(rng.Uint32())
			}
			more := fmt.Sprintf(`"a":%d,"b":"two","text":%q`, n%100, base64.StdEncoding.EncodeToString(text))
			r.Ops = append(r.Ops, ItemOp{Op: store.Create, ID: fmt.Sprint(n), PartitionKey: t.PartitionKey, Body: body(pk, fmt.Sprint(n), more)})
		}
		a, err := w.e.Batch(context.Background(), r)
		w.must(err)
		for _, op := range a.Ops {
			w.must(op.Err)
		}
	}
	before := bytesIn(b, dir)
	b.ResetTimer()
	w.beginSplit("0")
	w.awaitSplit()
	b.StopTimer()
	s, _, err := w.e.SplitStatus(context.Background(), w.named("c"))
	w.must(err)
	if s.State != SplitDone || s.Copied != items {
		b.Fatalf("the split is %+v", s)
	}
	end := bytesIn(b, dir)
	w.must(w.e.Close())
	w.must(db.Reclaim(context.Background()))
	b.ReportMetric(1000*s.PausedSeconds, "ms-waiting")
	b.ReportMetric(float64(before>>20), "MiB-before")
	b.ReportMetric(float64(end>>20), "MiB-at-end")
	b.ReportMetric(float64(bytesIn(b, dir)>>20), "MiB-compacted")
	w.must(db.Close())
}

func bytesIn(b *testing.B, dir string) (sum int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err == nil {
			sum += i.Size()
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}
