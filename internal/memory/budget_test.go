// SPDX-License-Identifier: MIT

package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const mib = mebi

// taker is a share that takes and waits in a goroutine of its own.
type taker struct {
	Share
	err chan error
}

func (b *Budget) taker(t *testing.T, held int64) *taker {
	t.Helper()
	k := &taker{b.Share(), make(chan error, 1)}
	if held > 0 && !k.TryTake(held) {
		t.Fatalf("there is no room for %d bytes: %+v", held, b.Use())
	}
	return k
}

func (k *taker) take(bytes int64) {
	go func() { k.err <- k.Take(context.Background(), bytes) }()
	synctest.Wait()
}

func (k *taker) answered() (ok bool, err error) {
	synctest.Wait()
	select {
	case err := <-k.err:
		return true, err
	default:
		return false, nil
	}
}

func (k *taker) want(t *testing.T, name string, want error) {
	t.Helper()
	if ok, err := k.answered(); !ok || !errors.Is(err, want) {
		t.Errorf("%s: answered %v with %v, want %v", name, ok, err, want)
	}
}

func (k *taker) waiting(t *testing.T, name string) {
	t.Helper()
	if ok, err := k.answered(); ok {
		t.Errorf("%s does not wait: %v", name, err)
	}
}

func TestSmallRequestsTakeNothing(t *testing.T) {
	b := NewBudget(mib)
	s := b.Share()
	for range FreeBytes / 1024 {
		if !s.TryTake(1024) {
			t.Fatal("a small request is refused")
		}
	}
	if held := b.Use().Held; held != 0 {
		t.Errorf("a small request holds %d bytes", held)
	}
	if !s.TryTake(1) || b.Use().Held != chunkBytes {
		t.Errorf("a byte more: %+v, want a chunk", b.Use())
	}
	s.Close()
	if use := b.Use(); use.Held != 0 {
		t.Errorf("after the end: %+v", use)
	}
}

// A share that takes and gives by turns asks the budget once.
func TestAShareGivesBackWhatItDoesNotNeed(t *testing.T) {
	b := NewBudget(16 * mib)
	s := b.Share()
	defer s.Close()
	if !s.TryTake(8 * mib) {
		t.Fatal("refused")
	}
	s.Give(8*mib - chunkBytes)
	if held := b.Use().Held; held > 2*chunkBytes {
		t.Errorf("a share that uses a chunk holds %d bytes", held)
	}
	before := b.Use().Held
	for range 100 {
		s.Give(chunkBytes / 2)
		if b.Use().Held != before || !s.TryTake(chunkBytes/2) {
			t.Fatalf("holds %d bytes, before %d", b.Use().Held, before)
		}
	}
}

// Waiting shares are served when there is room, the oldest first, and a later share does
// not pass them.
func TestTheOldestComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		holder := b.taker(t, 7*mib)
		old, young := b.taker(t, 0), b.taker(t, 0)
		old.take(4 * mib)
		young.take(mib)
		old.waiting(t, "the older")
		young.waiting(t, "the younger, for which there is room")
		if late := b.Share(); late.TryTake(mib) {
			t.Error("a later share passed those that wait")
		}
		holder.Give(4 * mib)
		old.want(t, "the older", nil)
		young.waiting(t, "the younger")
		old.Close()
		young.want(t, "the younger", nil)
		young.Close()
		holder.Close()
		if use := b.Use(); use.Held != 0 || use.Waiting != 0 {
			t.Errorf("at the end: %+v", use)
		}
	})
}

// A share that holds memory and needs more passes younger ones, and is served as soon as
// there is room.
func TestGrowthPassesTheYounger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		old, holder := b.taker(t, mib), b.taker(t, 6*mib)
		young := b.taker(t, 0)
		young.take(4 * mib)
		young.waiting(t, "the younger")
		if !old.TryTake(mib / 2) {
			t.Error("an older share waits for a younger one")
		}
		old.take(4 * mib)
		old.waiting(t, "the older")
		holder.Close()
		old.want(t, "the older", nil)
		young.waiting(t, "the younger")
		old.Close()
		young.want(t, "the younger", nil)
		young.Close()
	})
}

// Shares that hold all memory and all want more: the youngest is refused at once, so that
// the others go on.
func TestSharesInEachOthersWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		var all []*taker
		for range 4 {
			all = append(all, b.taker(t, 2*mib))
		}
		began := time.Now()
		for _, k := range all[:3] {
			k.take(mib)
			k.waiting(t, "one while another runs")
		}
		all[3].take(mib)
		all[3].want(t, "the youngest", ErrFull)
		all[3].Close()
		for _, k := range all[:2] { // for which the memory of the refused one is enough
			k.want(t, "the older", nil)
			all[2].waiting(t, "the third")
		}
		all[0].Close()
		all[2].want(t, "the third", nil)
		all[1].Close()
		all[2].Close()
		if took := time.Since(began); took != 0 || b.Use().Held != 0 || b.Use().Refused != 1 {
			t.Errorf("after %v: %+v", took, b.Use())
		}
	})
}

// Memory held by requests that wait for their clients does not come back soon, so the
// other requests must go on without it.
func TestSlowClientsAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		slow := b.taker(t, 3*mib)
		slow.AwaitClient(true)
		old, young := b.taker(t, 3*mib), b.taker(t, 2*mib)
		old.take(mib)
		old.waiting(t, "the older, while the younger runs")
		young.take(mib)
		young.want(t, "the younger", ErrFull)
		young.Close()
		old.want(t, "the older", nil)
		old.Close()
		slow.AwaitClient(false)
		slow.Close()
		if use := b.Use(); use.Held != 0 || b.mu.resting != 0 {
			t.Errorf("at the end: %+v, %d", use, b.mu.resting)
		}
	})
}

// A share that needs more than the budget gets it when it is the only one.
func TestOneThatIsAloneHasWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(mib)
		other, large := b.taker(t, mib/2), b.taker(t, 0)
		large.take(100 * mib)
		large.waiting(t, "the large one")
		other.Close()
		large.want(t, "the large one", nil)
		if !large.TryTake(mib) {
			t.Error("the only share must not grow")
		}
		large.Close()
	})
}

func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(mib)
		holder := b.taker(t, mib)
		began := time.Now()
		s := b.Share()
		if err := s.Take(t.Context(), mib); !errors.Is(err, ErrFull) || time.Since(began) != MaxWait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Take(ctx, mib); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that leaves: %v", err)
		}
		if err := s.Take(ctx, mib); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that has left: %v", err)
		}
		if _, err := b.Reserve(ctx, mib); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Reserve: %v", err)
		}
		holder.Close()
		if use := b.Use(); s.Used() != 0 || use.Held != 0 || use.Waiting != 0 {
			t.Errorf("refused shares hold something: %d, %+v", s.Used(), use)
		}
	})
}

// A nil budget has no bounds.
func TestWithoutABudget(t *testing.T) {
	for _, s := range []*Share{nil, {}} {
		if err := s.Take(t.Context(), 1<<50); err != nil || !s.TryTake(1<<50) {
			t.Errorf("refused: %v", err)
		}
		s.AwaitClient(true)
		s.Give(1 << 50)
		s.Close()
	}
}

// Many shares that take, grow, wait for clients and give back, at random: together they
// never hold more than the budget, all of them end, and nothing stays held.
func TestManyShares(t *testing.T) {
	const total, most = 16 * mib, 6 * mib
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(total)
		var held, refused, served atomic.Int64
		var wg sync.WaitGroup
		for i := range uint64(64) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, i))
				for range 50 {
					s := b.Share()
					want, mine := r.Int64N(most), int64(0)
					for mine < want {
						n := min(1+r.Int64N(mib), want-mine)
						s.AwaitClient(r.IntN(4) == 0)
						time.Sleep(time.Duration(r.IntN(int(100 * time.Millisecond))))
						if s.Take(t.Context(), n) != nil {
							refused.Add(1)
							break
						}
						mine += n
						if all := held.Add(n); all > total+64*FreeBytes {
							t.Errorf("%d bytes are used, of %d", all, total)
						}
						if r.IntN(3) == 0 {
							back := r.Int64N(mine + 1)
							held.Add(-back) // before another can have it
							s.Give(back)
							mine, want = mine-back, want-back
						}
					}
					if mine >= want {
						served.Add(1)
					}
					held.Add(-mine)
					s.Close()
				}
			})
		}
		wg.Wait()
		if use := b.Use(); use.Held != 0 || use.Waiting != 0 || b.mu.resting != 0 {
			t.Errorf("at the end: %+v, %d", use, b.mu.resting)
		}
		// How many are served depends on their order; about half are.
		if served.Load() < refused.Load()/2 {
			t.Errorf("%d were served, %d refused", served.Load(), refused.Load())
		}
	})
}

func BenchmarkShare(b *testing.B) {
	budget := NewBudget(1 << 30)
	for name, bytes := range map[string]int64{"small": 4 << 10, "large": 256 << 10} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s := budget.Share()
					s.TryTake(bytes)
					s.Close()
				}
			})
		})
	}
}
