// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	double = &Function{"double", `x => 2 * x`}
	spin   = &Function{"spin", `function() { for (;;); }`}
)

// workers returns how many workers a pool has.
func (p *Pool) workers() (idle, busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.idle), len(p.mu.busy)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this never happened: %s", what)
		}
	}
}

func mustCall(t *testing.T, s *Seat) {
	t.Helper()
	if got, err := s.sandbox(Options{}).Call(t.Context(), double, []byte("21")); err != nil || string(got) != "42" {
		t.Fatalf("%s, %v", got, err)
	}
}

// A worker is started when the first script runs, serves one request after another, and
// ends when there are no more.
func TestWorkersComeAndGo(t *testing.T) {
	o := testPool()
	o.Idle = 20 * time.Millisecond
	p := NewPool(o)
	defer p.Close()
	s, err := p.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if idle, busy := p.workers(); idle+busy != 0 {
		t.Errorf("there are workers before the first script: %d, %d", idle, busy)
	}
	mustCall(t, s)
	first := s.worker
	s.Leave()
	if s, err = p.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCall(t, s)
	if idle, _ := p.workers(); s.worker == first && idle != 0 {
		t.Errorf("a worker is idle and busy")
	}
	s.Leave()
	eventually(t, "no worker is left", func() bool { idle, busy := p.workers(); return idle+busy == 0 })
	s = enter(t, p)
	mustCall(t, s)
}

// Each worker serves one slot at a time.
func TestWorkersAreNotShared(t *testing.T) {
	p := NewPool(testPool())
	defer p.Close()
	var all sync.WaitGroup
	for range 3 * MaxAtOnce {
		all.Go(func() {
			s, err := p.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Leave()
			mustCall(t, s)
			if idle, busy := p.workers(); idle+busy > MaxAtOnce {
				t.Errorf("there are %d workers", idle+busy)
			}
		})
	}
	all.Wait()
}

// A script that runs when the pool is closed ends, and so do all workers.
func TestClosedPool(t *testing.T) {
	p := NewPool(testPool())
	s := enter(t, p)
	idle, err := p.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustCall(t, s)
	mustCall(t, idle)
	workers := []*process{s.worker, idle.worker}
	idle.Leave()
	ended := make(chan error)
	go func() {
		_, err := s.sandbox(Options{}).Call(t.Context(), spin)
		ended <- err
	}()
	p.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("a script that ran: %v", err)
	}
	if _, err := s.sandbox(Options{}).Call(t.Context(), double); !errors.Is(err, ErrClosed) {
		t.Errorf("the next one: %v", err)
	}
	for _, worker := range workers {
		if err := worker.cmd.Process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a worker is left: %v", err)
		}
	}
}

// A worker whose server has died ends by itself: at once if it waits, and soon after its
// limit if it is busy.
func TestOrphans(t *testing.T) {
	for name, f := range map[string]*Function{"idle": nil, "busy": spin} {
		t.Run(name, func(t *testing.T) {
			worker, err := startProcess(DefaultMemory)
			if err != nil {
				t.Fatal(err)
			}
			if f != nil {
				s := &Sandbox{o: Options{CallTime: tick}}
				n := worker.number(f)
				worker.ask.begin(askCall)
				s.head(worker, n)
				worker.ask.number(1)
				addArgs(worker, nil)
				if err := worker.send(); err != nil {
					t.Fatal(err)
				}
			}
			worker.close()
			_ = worker.cmd.Wait() // for ever, if it does not end
			if code := worker.cmd.ProcessState.ExitCode(); code != 0 && code != exitTime {
				t.Errorf("it ended with %d: %s", code, worker.complaint.text())
			}
		})
	}
}

// A program that does not call RunWorker starts no processes: they would not be workers.
func TestProgramsWithoutWorkers(t *testing.T) {
	available.Store(false)
	defer available.Store(true)
	p := NewPool(testPool())
	defer p.Close()
	s := enter(t, p)
	if _, err := s.sandbox(Options{}).Call(t.Context(), double); !errors.Is(err, ErrNoWorker) || !strings.Contains(err.Error(), "mayfly.RunScriptWorker") {
		t.Errorf("a call: %v", err)
	}
	if err := s.Compile(t.Context(), double); !errors.Is(err, ErrNoWorker) {
		t.Errorf("a check: %v", err)
	}
}

// The memory of a script is reserved while it runs, until its worker is at rest or gone.
func TestReservations(t *testing.T) {
	reserved, refuse := int64(0), errors.New("no memory")
	o := testPool()
	o.Memory = smallMemory
	o.Reserve = func(_ context.Context, bytes int64) (func(), error) {
		if reserved > 0 {
			return nil, refuse
		}
		reserved += bytes
		return func() { reserved -= bytes }, nil
	}
	p := NewPool(o)
	defer p.Close()
	s, err := p.Enter(t.Context())
	if err != nil || reserved != smallMemory {
		t.Fatalf("%d bytes are reserved, %v", reserved, err)
	}
	if _, err := p.Enter(t.Context()); !errors.Is(err, refuse) {
		t.Errorf("without memory: %v", err)
	}
	if running, _ := p.Load(); running != 1 {
		t.Errorf("%d scripts are running", running)
	}
	if _, err := s.sandbox(Options{CallTime: tick}).Call(t.Context(), spin); !errors.Is(err, ErrTime) {
		t.Error(err)
	}
	s.Leave()
	if reserved != 0 {
		t.Errorf("%d bytes are still reserved", reserved)
	}
}

// An operation of a procedure may call functions, as queries do, in the same worker.
func TestFunctionsWithinProcedures(t *testing.T) {
	s := enter(t, pool)
	h := silent()
	inner := double
	h.Operate = func(ctx context.Context, _, _ string) string {
		f := s.sandbox(Options{CallTime: soon, grace: longest})
		if inner == spin {
			f = s.sandbox(Options{CallTime: soon})
		}
		got, err := f.Call(ctx, inner, []byte("21"))
		return fmt.Sprintf(`{"resource":[%s,"%v"]}`, got, err)
	}
	asks := &Function{"asks", `function() { let all = []; const done = (err, v) => { all.push(v); __.response.setBody(all) }; for (let i = 0; i < 3; i++) __.readDocument("x", done) }`}
	out, err := s.sandbox(Options{}).Run(t.Context(), asks, h)
	if want := `[[42,"<nil>"],[42,"<nil>"],[42,"<nil>"]]`; err != nil || out.Response != want {
		t.Errorf("%s, %v; want %s", out.Response, err, want)
	}
	// When a function is stopped, the procedure ends too, since it is in the same worker.
	inner = spin
	if _, err := s.sandbox(Options{}).Run(t.Context(), asks, h); !errors.Is(err, ErrTime) {
		t.Errorf("of a procedure whose function was stopped: %v", err)
	}
	mustCall(t, s)
}

// Workers drop functions before those become too many, and get them again when needed.
func TestFunctionsAreForgotten(t *testing.T) {
	s := enter(t, pool)
	filler := strings.Repeat(" ", MaxBodyBytes-100)
	box := s.sandbox(Options{})
	for round := range 2 {
		for i := range 2 * maxKnownBytes / MaxBodyBytes {
			f := &Function{"f", fmt.Sprintf("function() { return %d }%s", i, filler)}
			if got, err := box.Call(t.Context(), f); err != nil || string(got) != fmt.Sprint(i) {
				t.Fatalf("round %d, function %d: %s, %v", round, i, got, err)
			}
			if s.worker.knownBytes > maxKnownBytes {
				t.Fatalf("a worker knows %d bytes of functions", s.worker.knownBytes)
			}
		}
	}
}

// A script that was stopped has a log. On a busy machine it takes longer until there is one.
func TestLogOfAStoppedScript(t *testing.T) {
	for limit := soon; limit < longest; limit *= 2 {
		out, err := runProcedure(t, Options{CallTime: limit}, `function() { console.log("begun"); for (;;); }`, silent())
		if !errors.Is(err, ErrTime) {
			t.Fatal(err)
		}
		if out.Log == "begun" {
			return
		}
	}
	t.Error("there is no log")
}

// JavaScript's clock goes on from the time that the caller gave.
func TestClockGoesOn(t *testing.T) {
	got, err := call(t, Options{NowMs: 1000}, &Function{"f", `function() {
		const began = Date.now();
		while (Date.now() < began + 20);
		return [began >= 1000, new Date().getTime() >= 1020, new Date(0).getTimezoneOffset()];
	}`})
	if err != nil || string(got) != "[true,true,0]" {
		t.Errorf("%s, %v", got, err)
	}
}

// Garbage of one script does not reduce the memory of the next in the same process.
func TestEachScriptHasItsMemory(t *testing.T) {
	o := testPool()
	o.Memory = smallMemory
	p := NewPool(o)
	defer p.Close()
	s, err := p.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Leave()
	most := &Function{"most", fmt.Sprintf(`function() {
		globalThis.kept = [];
		for (let i = 0; i < %d; i++) kept.push(new Uint8Array(1 << 20).fill(1));
		for (const end = Date.now() + 50; Date.now() < end;);
		return kept.length
	}`, smallMemory*3/4>>20)}
	for i := range 8 {
		if got, err := s.NewSandbox(Options{CallTime: longest}).Call(t.Context(), most); err != nil {
			t.Fatalf("call %d: %s, %v", i, got, err)
		}
	}
}
