// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// breakableDB is an engine whose snapshots the test can break.
type breakableDB struct {
	kv.DB
	unreachable atomic.Bool  // no snapshot can be taken or read
	life        atomic.Int64 // snapshots of an earlier life are broken
}

type breakableSnapshot struct {
	kv.Snapshot
	db   *breakableDB
	life int64
}

func (db *breakableDB) Snapshot() (kv.Snapshot, error) {
	if db.unreachable.Load() {
		return nil, kv.ErrUnavailable
	}
	snap, err := db.DB.Snapshot()
	return &breakableSnapshot{snap, db, db.life.Load()}, err
}

// breakSnapshots breaks all snapshots that are open.
func (db *breakableDB) breakSnapshots() { db.life.Add(1) }

func (s *breakableSnapshot) broken() error {
	if s.life != s.db.life.Load() || s.db.unreachable.Load() {
		return fmt.Errorf("connection reset: %w", kv.ErrUnavailable)
	}
	return nil
}

func (s *breakableSnapshot) Get(key []byte) ([]byte, bool, error) {
	if err := s.broken(); err != nil {
		return nil, false, err
	}
	return s.Snapshot.Get(key)
}

func (s *breakableSnapshot) GetInto(dst, key []byte) ([]byte, bool, error) {
	if err := s.broken(); err != nil {
		return dst, false, err
	}
	return s.Snapshot.GetInto(dst, key)
}

func (s *breakableSnapshot) Warm(keys [][]byte) error {
	if err := s.broken(); err != nil {
		return err
	}
	return s.Snapshot.Warm(keys)
}

func (s *breakableSnapshot) Scan(lower, upper []byte, o kv.Order) iter.Seq2[kv.Entry, error] {
	return func(yield func(kv.Entry, error) bool) {
		if err := s.broken(); err != nil {
			yield(kv.Entry{}, err)
			return
		}
		for e, err := range s.Snapshot.Scan(lower, upper, o) {
			if !yield(e, err) {
				return
			}
			if err := s.broken(); err != nil {
				yield(kv.Entry{}, err)
				return
			}
		}
	}
}

// owned is a fixture whose partition is on a shared engine.
type owned struct {
	*fixture
	engine *breakableDB
	epoch  int
	lost   chan error
	// noRenew makes Renew fail.
	noRenew atomic.Bool
}

func newOwned(t *testing.T, definition string) *owned {
	engine := &breakableDB{DB: kvtest.NewModel()}
	f := newFixtureOn(t, engine, definition)
	f.p.Close()
	o := &owned{fixture: f, engine: engine}
	o.claim()
	return o
}

// lease changes the owner row, as another claim does.
func (o *owned) lease() *Lease {
	o.t.Helper()
	o.epoch++
	l := &Lease{Key: OwnerKey(o.container.RID, o.index), Fence: fmt.Appendf(nil, "owner %d", o.epoch), OpenedMs: o.clock.Now()}
	o.must(kv.Set(context.Background(), o.engine, l.Key, l.Fence))
	return l
}

// claim opens the partition under a new lease. Whichever was open before is not closed.
func (o *owned) claim() {
	o.t.Helper()
	o.must(o.tryOpen(o.lease()))
}

func (o *owned) tryOpen(l *Lease) error {
	lost := make(chan error, 1)
	p, err := Open(Options{
		DB: o.db, Clock: o.clock, Container: o.container, Index: o.index, Cache: o.budget, Quotas: o.quotas, Ledger: &o.ledger,
		Failed: func(error) { o.failures.Add(1) },
		Lease:  l,
		Renew: func(context.Context) (*Lease, error) {
			if o.noRenew.Load() {
				return nil, errBroken
			}
			return o.lease(), nil
		},
		Lost: func(err error) { lost <- err },
	})
	if err == nil {
		o.p, o.lost = p, lost
	}
	return err
}

// mustBeLost checks that the partition is closed, and that its owner knows.
func (o *owned) mustBeLost() {
	o.t.Helper()
	if err := <-o.lost; err == nil {
		o.t.Error("Lost was called without a reason")
	}
	if _, err := o.write(o.item(Upsert, "a", "")); !errors.Is(err, ErrClosed) {
		o.t.Errorf("a write after the loss: got %v, want ErrClosed", err)
	}
	if _, err := o.read("a"); !errors.Is(err, ErrClosed) {
		o.t.Errorf("a read after the loss: got %v, want ErrClosed", err)
	}
}

// An owner that was replaced writes nothing, whatever it tries: it finds its owner row
// changed, and closes.
func TestStaleOwner(t *testing.T) {
	for name, try := range map[string]func(*owned, *Partition) error{
		"writes": func(o *owned, p *Partition) error {
			_, err := p.Write(context.Background(), o.item(Upsert, "a", `"v":"stale"`))
			return err
		},
		"reconfigures": func(o *owned, p *Partition) error {
			return p.Reconfigure(context.Background(), o.redefine(withTTL("7")))
		},
		"removes": func(o *owned, p *Partition) error {
			_, err := p.Remove(context.Background(), o.logical("k"))
			return err
		},
		"purges": func(o *owned, p *Partition) error {
			o.advance(10_000_000_000)
			_, err := p.Purge(context.Background(), Purge{MaxItems: 10})
			return err
		},
		"reads without a snapshot": func(o *owned, p *Partition) error {
			p.ReleaseIdle()
			p.ReleaseIdle()
			_, err := p.Usage(o.clock.Now())
			return err
		},
		"reads with a broken snapshot": func(o *owned, p *Partition) error {
			o.engine.breakSnapshots()
			_, err := p.Usage(o.clock.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwned(t, withTTL("5"))
			o.put("a", `"v":1`)
			stale, lost := o.p, o.lost
			defer stale.Close()
			o.claim()
			defer o.p.Close()
			o.put("b", "")
			rows := o.rows()
			if err := try(o, stale); !errors.Is(err, ErrClosed) {
				t.Errorf("the stale owner: got %v, want ErrClosed", err)
			}
			if err := <-lost; err == nil {
				t.Error("Lost without a reason")
			}
			if got := o.rows(); !sameRows(got, rows) {
				t.Error("the stale owner has changed rows")
			}
			o.checkClean()
			if len(o.lost) > 0 {
				t.Error("the new owner was told that it is lost")
			}
		})
	}
}

// logical returns the logical partition of a partition key.
func (f *fixture) logical(pk string) LogicalPartition {
	k := f.key(pk, "")
	return LogicalPartition{EPK: k.EPK, PartitionKey: k.PartitionKey}
}

func sameRows(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}

// A partition cannot be opened with a lease that is no more.
func TestOpenWithStaleLease(t *testing.T) {
	o := newOwned(t, withTTL("null"))
	o.p.Close()
	stale := o.lease()
	o.claim()
	p := o.p
	if err := o.tryOpen(stale); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	p.Close()
	o.p.Close()
}

// The engine cannot be reached for a while: writes fail with an error that says that nothing
// was written, and the partition goes on as if they had not been tried.
func TestUnavailableEngine(t *testing.T) {
	o := newOwned(t, withTTL("100"))
	o.put("a", `"v":1`)
	before, counted := o.rows(), o.p.now().meta
	o.db.play(func(func() error) error { return fmt.Errorf("no route: %w", kv.ErrUnavailable) })
	for i := range 3 {
		if _, err := o.write(o.item(Upsert, "a", `"v":2,"ttl":7`)); !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("upsert: got %v, want ErrUnavailable", err)
		}
		if _, err := o.write(o.item(Create, fmt.Sprint("b", i), "")); !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("create: got %v, want ErrUnavailable", err)
		}
		o.mustSee(`"v":1`, "while the engine cannot be reached")
	}
	if !sameRows(before, o.rows()) || o.p.now().meta != counted {
		t.Error("something was written")
	}
	o.db.stopPlaying()
	o.put("a", `"v":3`)
	o.mustSee(`"v":3`, "afterwards")
	if r := o.put("c", ""); r.LSN != 3 {
		t.Errorf("the third write has lsn %d: a refused one left a gap", r.LSN)
	}
	o.checkClean()
	if len(o.lost) > 0 {
		t.Error("the partition was lost")
	}
}

// Without snapshots nothing can be read that is not in memory, and nothing be written; later
// everything goes on.
func TestUnreachableSnapshots(t *testing.T) {
	o := newOwned(t, withTTL("100"))
	o.put("a", `"v":1`)
	o.engine.unreachable.Store(true)
	if _, err := o.p.Usage(o.clock.Now()); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("usage: got %v, want ErrUnavailable", err)
	}
	if _, err := o.write(o.item(Upsert, "a", `"v":2`)); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("write: got %v, want ErrUnavailable", err)
	}
	o.engine.unreachable.Store(false)
	o.mustSee(`"v":1`, "with new snapshots")
	// The commit is done, and then the connection breaks.
	o.db.play(func(commit func() error) error {
		err := commit()
		o.engine.unreachable.Store(true)
		return err
	})
	if _, err := o.write(o.item(Upsert, "a", `"v":3`)); err != nil {
		t.Errorf("a write that was done: got %v", err)
	}
	o.db.stopPlaying()
	if _, err := o.p.Usage(o.clock.Now()); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("usage: got %v, want ErrUnavailable", err)
	}
	o.engine.unreachable.Store(false)
	o.mustSee(`"v":3`, "with a snapshot that was taken later")
	o.checkClean()
}

// A snapshot breaks under a reader in the middle of a walk. It goes on with another one of
// the same state, but not with one of another state.
func TestBrokenSnapshot(t *testing.T) {
	o := newOwned(t, withTTL("100"))
	for i := range 20 {
		o.put(fmt.Sprintf("%02d", i), "")
	}
	walk := func(order kv.Order, during func(n int)) (n int, err error) {
		r, err := o.p.NewReader(o.clock.Now())
		o.must(err)
		defer r.Close()
		lower, upper := o.p.prefix.space(itemSpace)
		var last []byte
		for e, err := range r.v.snap.Scan(lower, upper, order) {
			if err != nil {
				return n, err
			}
			if c := bytes.Compare(e.Key, last); last != nil && (c > 0) != (order == kv.Forward) || c == 0 {
				t.Fatalf("row %x after %x", e.Key, last)
			}
			last = bytes.Clone(e.Key)
			n++
			during(n)
		}
		return n, nil
	}
	for _, order := range []kv.Order{kv.Forward, kv.Reverse} {
		n, err := walk(order, func(n int) {
			if n == 7 || n == 8 {
				o.engine.breakSnapshots()
			}
		})
		if n != 20 || err != nil {
			t.Errorf("order %d: got %d rows, %v, want all 20", order, n, err)
		}
	}
	n, err := walk(kv.Forward, func(n int) {
		if n == 7 {
			o.put("new", "")
			o.engine.breakSnapshots()
		}
	})
	if n != 7 || !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a snapshot of an earlier state broke: got %d rows, %v, want 7 and ErrUnavailable", n, err)
	}
}

// While a commit is under way, no snapshot may take the place of a broken one: it could show
// what is not acknowledged.
func TestBrokenSnapshotDuringCommit(t *testing.T) {
	o := newOwned(t, withTTL("null"))
	o.put("a", `"v":1`)
	g := o.db.holdAfterApplying()
	done := o.start(o.item(Upsert, "a", `"v":2`))
	<-g.entered
	o.engine.breakSnapshots()
	if _, err := o.p.Usage(o.clock.Now()); err != nil { // all of it is in memory
		t.Error(err)
	}
	k := o.logical("k")
	page, err := o.p.List(context.Background(), List{Within: &k, MaxItems: 10, MaxBytes: 10_000}, o.clock.Now())
	if !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a list during the commit: got %s, %v, want ErrUnavailable", page.Items, err)
	}
	o.db.stopPlaying()
	g.open <- struct{}{}
	if a := <-done; a.err != nil {
		t.Error(a.err)
	}
	o.mustSee(`"v":2`, "after the commit")
}

// A commit has an unknown outcome. The partition renews its lease and finds out, or closes.
func TestUnknownCommit(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens bool
		late    bool // the engine does it after it was given up
		noRenew bool
		stolen  bool // another owner comes before the lease is renewed
		err     error
		want    string
	}{
		{name: "that happened", happens: true, want: `"v":2`},
		{name: "that did not happen", err: kv.ErrUnavailable, want: `"v":1`},
		{name: "that comes late", late: true, err: kv.ErrUnavailable, want: `"v":1`},
		{name: "and no lease", happens: true, noRenew: true, err: ErrUnknown, want: `"v":2`},
		{name: "and another owner", happens: true, stolen: true, err: ErrUnknown, want: `"v":2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOwned(t, withTTL("100"))
			o.put("a", `"v":1`)
			o.noRenew.Store(c.noRenew)
			var late kv.Batch
			keep := func(b *kv.Batch) { copyBatch(&late, b) }
			o.db.onBatch.Store(&keep)
			first := true
			o.db.play(func(commit func() error) error {
				if !first {
					return commit()
				}
				first = false
				if c.happens {
					o.must(commit())
				}
				if c.stolen {
					o.noRenew.Store(true)
					o.lease()
				}
				return fmt.Errorf("no answer: %w", kv.ErrUnknown)
			})
			_, err := o.write(o.item(Upsert, "a", `"v":2`))
			if c.err == nil && err != nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("the write: got %v, want %v", err, c.err)
			}
			if errors.Is(err, ErrClosed) {
				t.Errorf("the write would be repeated: %v", err)
			}
			o.db.onBatch.Store(nil)
			if c.late {
				if err := o.engine.Commit(context.Background(), &late); !errors.Is(err, kv.ErrConflict) {
					t.Errorf("the late commit: got %v, want ErrConflict", err)
				}
			}
			if c.err == ErrUnknown {
				o.mustBeLost()
				o.p.Close()
				o.noRenew.Store(false)
				o.claim()
			}
			o.mustSee(c.want, "after it was found out")
			o.put("a", `"v":3`)
			o.mustSee(`"v":3`, "later")
			o.checkClean()
		})
	}
}

func copyBatch(to, from *kv.Batch) {
	to.Reset()
	for op := range from.Ops {
		switch op.Kind {
		case kv.OpSet:
			to.Set(op.Key, op.Value)
		case kv.OpDelete:
			to.Delete(op.Key, int(op.SizeHint))
		case kv.OpDeleteRange:
			to.DeleteRange(op.Key, op.Value)
		case kv.OpRequire:
			to.Require(op.Key, op.Value)
		case kv.OpRequireAbsent:
			to.RequireAbsent(op.Key)
		}
	}
}

// Groups without an lsn of their own, such as the steps of a delete by partition key and
// purges, are found out too.
func TestUnknownCommitWithoutLSN(t *testing.T) {
	o := newOwned(t, withTTL("100"))
	for i := range 5 {
		o.put(fmt.Sprint(i), "")
	}
	n := 0
	faults := func(commit func() error) error {
		n++
		switch n % 3 {
		case 0:
			o.must(commit())
			return kv.ErrUnknown
		case 1:
			return kv.ErrUnknown
		}
		return commit()
	}
	o.db.play(faults)
	k := o.logical("k")
	for {
		_, err := o.p.Remove(context.Background(), k)
		if err == nil {
			break
		}
		if !errors.Is(err, kv.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	o.db.stopPlaying()
	o.put("b", `"ttl":1`)
	o.advance(2_000_000_000)
	o.db.play(faults)
	for {
		done, err := o.p.Purge(context.Background(), Purge{MaxItems: 10})
		if err != nil && !errors.Is(err, kv.ErrUnavailable) {
			t.Fatal(err)
		}
		if err == nil && !done.More {
			break
		}
	}
	o.db.stopPlaying()
	if u, err := o.p.Usage(o.clock.Now()); err != nil || u != (Usage{}) {
		t.Errorf("got %+v, %v, want nothing", u, err)
	}
	o.checkClean()
}

// A partition never looks at its items before its opening moment: what an earlier owner has
// seen expire stays expired, though the clock is behind.
func TestOpeningMoment(t *testing.T) {
	o := newOwned(t, withTTL("null"))
	o.reconfigure(withTTL("10"))
	o.put("a", "")
	o.p.Close()
	l := o.lease()
	l.OpenedMs += 10_000
	o.must(o.tryOpen(l))
	if _, err := o.read("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("read: got %v, want ErrNotFound", err)
	}
	if page, err := o.p.List(context.Background(), List{MaxItems: 10, MaxBytes: 10_000}, o.clock.Now()); err != nil || page.Count > 0 {
		t.Errorf("list: got %s, %v", page.Items, err)
	}
	if u, err := o.p.Usage(o.clock.Now()); err != nil || u.Live.Items != 0 || u.Expired.Items != 1 {
		t.Errorf("usage: got %+v, %v", u, err)
	}
	if r, err := o.write(o.item(Create, "a", "")); err != nil || !r.Created {
		t.Errorf("create: got %+v, %v", r, err)
	}
	_, err := o.read("a")
	o.must(err)
	o.checkClean()
}

// Two nodes claim one partition in turn, over an engine that refuses, loses and delays
// commits and breaks snapshots. A map says what each item must be.
func TestOwnersInTurn(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			o := newOwned(t, withTTL("50"))
			want, open := map[string]int{}, []*Partition{o.p}
			var late []*kv.Batch
			fault := 0
			var last kv.Batch
			keep := func(b *kv.Batch) { copyBatch(&last, b) }
			o.db.onBatch.Store(&keep)
			o.db.play(func(commit func() error) error {
				was := fault
				fault = 0
				switch was {
				case 1:
					return kv.ErrUnavailable
				case 2:
					if err := commit(); err != nil {
						return err
					}
					return kv.ErrUnknown
				case 3:
					b := &kv.Batch{}
					copyBatch(b, &last)
					late = append(late, b)
					return kv.ErrUnknown
				}
				return commit()
			})
			for step := range 200 {
				id := fmt.Sprint(r.IntN(5))
				switch r.IntN(10) {
				case 0:
					o.claim()
					open = append(open, o.p)
				case 1:
					o.engine.breakSnapshots()
				case 2: // a stale owner tries
					p := open[r.IntN(len(open))]
					if p != o.p {
						if _, err := p.Write(context.Background(), o.item(Upsert, id, `"v":-1`)); !errors.Is(err, ErrClosed) {
							t.Fatalf("step %d: a stale owner: got %v, want ErrClosed", step, err)
						}
					}
				case 3: // a late commit arrives
					if len(late) > 0 {
						if err := o.engine.Commit(context.Background(), late[len(late)-1]); !errors.Is(err, kv.ErrConflict) {
							t.Fatalf("step %d: a late commit: got %v, want ErrConflict", step, err)
						}
					}
				default:
					fault = r.IntN(6)
					_, err := o.write(o.item(Upsert, id, fmt.Sprintf(`"v":%d`, step)))
					switch {
					case err == nil:
						want[id] = step
					case !errors.Is(err, kv.ErrUnavailable):
						t.Fatalf("step %d: %v", step, err)
					}
					fault = 0
				}
				for id, v := range want {
					item, err := o.read(id)
					if err != nil || !bytes.Contains(item.Body, fmt.Appendf(nil, `"v":%d,`, v)) {
						t.Fatalf("step %d: item %s is %s, %v, want %d", step, id, item.Body, err, v)
					}
				}
			}
			o.checkClean()
			for _, p := range open {
				p.Close()
			}
		})
	}
}
