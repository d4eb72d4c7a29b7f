// SPDX-License-Identifier: MIT

package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	benchItems = 10_000
	benchPad   = 720 // makes a body of 1 KiB
)

// benchWrite is the upsert of one of n items of 1 KiB, prepared as a request's goroutine
// would before it calls the store.
func (f *fixture) benchWrite(n int) Write {
	return f.item(Upsert, fmt.Sprint("item ", n), `"ttl":3600,"pad":"`+strings.Repeat("x", benchPad)+`"`)
}

func benchFixture(b *testing.B) *fixture {
	f := makeFixture(b, inMemory(b), setup{definition: withTTL("3600"), nowMs: startMs})
	b.Cleanup(f.p.Close)
	return f
}

// BenchmarkWrite creates items, from 1 and from 16 clients at once. The engine is
// in memory, so that it measures the partition and not a disk.
func BenchmarkWrite(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f := benchFixture(b)
			r := f.benchWrite(0)
			b.SetBytes(int64(f.put("size", `"pad":"`+strings.Repeat("x", benchPad)+`"`).Work.Bytes))
			b.ReportAllocs()
			work := make(chan int)
			var failed atomic.Pointer[error]
			var clientsDone sync.WaitGroup
			for range clients {
				clientsDone.Go(func() {
					w := r
					for n := range work {
						w.Key.ID = fmt.Sprint(n)
						if _, err := f.write(w); err != nil {
							failed.Store(&err)
						}
					}
				})
			}
			for n := 0; b.Loop(); n++ {
				work <- n
			}
			close(work)
			clientsDone.Wait()
			if err := failed.Load(); err != nil {
				b.Fatal(*err)
			}
		})
	}
}

// BenchmarkRead reads items that exist, and one that does not.
func BenchmarkRead(b *testing.B) {
	f := benchFixture(b)
	var keys []Key
	for n := range benchItems {
		w := f.benchWrite(n)
		if _, err := f.write(w); err != nil {
			b.Fatal(err)
		}
		keys = append(keys, w.Key)
	}
	now := f.clock.Now()
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if _, err := f.p.Read(nil, keys[n%benchItems], "", now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("miss", func(b *testing.B) {
		b.ReportAllocs()
		key := f.key("k", "none")
		for b.Loop() {
			if _, err := f.p.Read(nil, key, "", now); err == nil {
				b.Fatal("it is there")
			}
		}
	})
}

// BenchmarkList takes pages of 100 items, of the whole partition and of one
// logical partition of a thousand.
func BenchmarkList(b *testing.B) {
	f := benchFixture(b)
	for n := range benchItems {
		w := f.benchWrite(n)
		if n%10 == 0 {
			w.Key = f.key("tenth", fmt.Sprint(n))
			o, err := value.ParseObject(fmt.Appendf(nil, `{"id":"%d","pk":"tenth"}`, n))
			if err != nil {
				b.Fatal(err)
			}
			w.Item = o
		}
		if _, err := f.write(w); err != nil {
			b.Fatal(err)
		}
	}
	k := f.key("tenth", "")
	for name, within := range map[string]*LogicalPartition{"all": nil, "partition key": {EPK: k.EPK, PartitionKey: k.PartitionKey}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			q := List{Within: within, MaxItems: 100, MaxBytes: 4 << 20}
			for b.Loop() {
				page, err := f.p.List(context.Background(), q, f.clock.Now())
				if err != nil || page.Count != q.MaxItems {
					b.Fatalf("got %d items, %v", page.Count, err)
				}
				if q.After = page.Last; !page.More {
					q.After = 0
				}
			}
		})
	}
}
