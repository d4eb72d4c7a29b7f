// SPDX-License-Identifier: MIT

package tikvkv

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/mayflydb/mayfly/internal/kv"
)

var errLost = errors.New("the answer was lost")

// faulty is a client whose requests of one kind meet a fault.
type faulty struct {
	tikv.Client

	mu    sync.Mutex
	kind  tikvrpc.CmdType
	fault func(send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) // guarded by mu
}

func (f *faulty) SendRequest(ctx context.Context, addr string, r *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	f.mu.Lock()
	fault := f.fault
	if r.Type != f.kind {
		fault = nil
	}
	f.mu.Unlock()
	send := func() (*tikvrpc.Response, error) { return f.Client.SendRequest(ctx, addr, r, timeout) }
	if fault == nil {
		return send()
	}
	return fault(send)
}

func (f *faulty) meet(kind tikvrpc.CmdType, fault func(send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind, f.fault = kind, fault
}

func lose(func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) { return nil, errLost }

func loseAnswer(send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
	_, _ = send()
	return nil, errLost
}

func set(pairs ...string) *kv.Batch {
	var b kv.Batch
	for i := 0; i < len(pairs); i += 2 {
		b.Set([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	return &b
}

func valueOf(t *testing.T, db kv.DB, key string) string {
	t.Helper()
	value, _, err := kv.Get(db, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// A commit whose answer does not come by the caller's deadline says what is known of it.
func TestLostMessages(t *testing.T) {
	for name, c := range map[string]struct {
		kind  tikvrpc.CmdType
		fault func(func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error)
		want  error
		after string // of the row, once the fault is over
	}{
		"no read":                     {tikvrpc.CmdBatchGet, lose, kv.ErrUnavailable, "old"},
		"no first phase":              {tikvrpc.CmdPrewrite, lose, kv.ErrUnavailable, "old"},
		"no answer to the first":      {tikvrpc.CmdPrewrite, loseAnswer, kv.ErrUnavailable, "old"},
		"no second phase":             {tikvrpc.CmdCommit, lose, kv.ErrUnknown, "old"},
		"no answer to the second":     {tikvrpc.CmdCommit, loseAnswer, kv.ErrUnknown, "new"},
		"nothing lost, for scale":     {tikvrpc.CmdCommit, nil, nil, "new"},
		"no scan, which it needs not": {tikvrpc.CmdScan, lose, nil, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, faults := newFaultyMock(t)
			db := open()
			defer db.Close()
			if err := db.Commit(t.Context(), set("fence", "1", "row", "old")); err != nil {
				t.Fatal(err)
			}
			faults.meet(c.kind, c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			b := set("row", "new")
			b.Require([]byte("fence"), []byte("1"))
			began := time.Now()
			err := db.Commit(ctx, b)
			if c.want == nil && err != nil || !errors.Is(err, c.want) && !(c.want == kv.ErrUnavailable && errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			faults.meet(c.kind, nil)
			another := open() // the first one takes the server for dead
			defer another.Close()
			if got := valueOf(t, another, "row"); got != c.after {
				t.Errorf("then the row is %q, want %q", got, c.after)
			}
		})
	}
}

// A read that gets no answer is an error, and the snapshot keeps it.
func TestLostReads(t *testing.T) {
	open, faults := newFaultyMock(t)
	db := open()
	defer db.Close()
	if err := db.Commit(t.Context(), set("row", "old")); err != nil {
		t.Fatal(err)
	}
	s, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	faults.meet(tikvrpc.CmdBatchGet, lose)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := db.Look(ctx, []byte("row")); !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a look without an answer: %v", err)
	}
	lost := kv.ErrUnavailable
	s.(*snapshot).failed.Store(&lost)
	if _, _, err := s.Get([]byte("row")); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("a snapshot that was lost: %v", err)
	}
	for _, err := range s.Scan(nil, nil, kv.Forward) {
		if !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("a scan of a snapshot that was lost: %v", err)
		}
	}
}

// A commit has checked its fence, and is held up before its second phase. Then another moves
// the fence. Whoever sees the new fence must see all that was ever committed under the old one.
func TestSlowCommitStaysBeforeTheNextFence(t *testing.T) {
	open, faults := newFaultyMock(t)
	slowly, quick := open(), open()
	defer slowly.Close()
	defer quick.Close()
	if err := slowly.Commit(t.Context(), set("fence", "1", "row", "old")); err != nil {
		t.Fatal(err)
	}
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	faults.meet(tikvrpc.CmdCommit, func(send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
		first := false
		once.Do(func() { first = true })
		if first {
			close(arrived)
			<-release
		}
		return send()
	})
	slow := make(chan error, 1)
	go func() {
		b := set("row", "new")
		b.Require([]byte("fence"), []byte("1"))
		slow <- slowly.Commit(context.Background(), b)
	}()
	<-arrived
	b := set("fence", "2")
	b.Require([]byte("fence"), []byte("1"))
	if err := quick.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	after := valueOf(t, quick, "row")
	close(release)
	if err := <-slow; err == nil && after != "new" {
		t.Errorf("under the new fence the row was %q, and then the commit under the old one changed it", after)
	} else if err == nil {
		t.Log("the commit came first")
	}
	if got := valueOf(t, quick, "row"); got != after {
		t.Errorf("the row was %q under the new fence, and is %q now", after, got)
	}
}
