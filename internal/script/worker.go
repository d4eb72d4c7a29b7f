// SPDX-License-Identifier: MIT

// A worker, from within: a process that reads requests from its standard input, runs
// scripts and answers on its standard output, until its input ends.

package script

import (
	"bufio"
	"errors"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/dop251/goja"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxStackBytes bounds the stack of nested builtins, which maxCallDepth does not count:
	// the text of arrays in arrays, or the parsing of brackets in brackets.
	maxStackBytes = 32 << 20
	// orphanTime is how much longer than its limit a script runs if the server, which
	// should end it, has died.
	orphanTime = 2 * time.Second
	// collectShare is the part of its memory from which on a worker collects garbage all
	// the time.
	collectShare = 0.9
)

// RunWorker makes this process a worker if it was started as one, and then does not return.
// Otherwise it records that workers can be started. A program calls it before anything else.
func RunWorker() {
	if len(os.Args) != 3 || os.Args[1] != workerArgument {
		available.Store(true)
		return
	}
	memory, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		os.Exit(exitRefused)
	}
	// The server decides when this process ends, even if a signal was sent to both.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	time.Local = time.UTC
	debug.SetMaxStack(maxStackBytes)
	debug.SetMemoryLimit(int64(collectShare * float64(memory)))
	if err := confine(memory); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(exitRefused)
	}
	w := &worker{
		reader: bufio.NewReaderSize(os.Stdin, 4<<10), memory: memory,
		texts: map[uint64]Function{}, functions: map[uint64]*compiled{},
	}
	w.serve()
}

// worker is this process.
type worker struct {
	reader    *bufio.Reader
	scratch   []byte
	say       frames
	memory    int64
	texts     map[uint64]Function
	functions map[uint64]*compiled
	udfs      *machine // of the last sandbox in which functions were called
	sandbox   uint64   // its number
	guard     guard
}

// compiled is a compiled function, or the error of its compilation.
type compiled struct {
	program *goja.Program
	err     error
}

// serve answers requests until there are no more.
func (w *worker) serve() {
	for {
		kind, f := w.next()
		w.answer(kind, &f)
	}
}

// next reads a request. If its input has ended, the process exits: the server is gone.
func (w *worker) next() (byte, fields) {
	kind, f, err := readFrame(w.reader, &w.scratch, maxAskBytes)
	if err != nil {
		os.Exit(0)
	}
	return kind, f
}

// send ends and sends the frame in the buffer.
func (w *worker) send() {
	w.say.end()
	if w.say.send(os.Stdout) != nil {
		os.Exit(0)
	}
}

func (w *worker) answer(kind byte, f *fields) {
	switch kind {
	case askDefine:
		n := f.number()
		w.texts[n] = Function{Name: f.text(), Text: f.text()}
		return
	case askForget:
		clear(w.texts)
		clear(w.functions)
		return
	case askCompile:
		n, limit := f.number(), time.Duration(f.number())*time.Millisecond
		w.guard.begin(limit, w.memory)
		_, err := w.function(n)
		w.guard.end()
		if err != nil {
			w.sayError(err)
			break
		}
		w.say.begin(sayCompiled)
	case askCall:
		w.call(f)
	case askProcedure:
		w.procedure(f)
	case askRest:
		w.udfs = nil
		w.say.begin(sayRested)
		w.say.number(uint64(memoryInUse()))
	}
	w.send()
}

// request has the fields with which every request to run a function begins.
type request struct {
	function uint64
	nowMs    int64
	limit    time.Duration
}

func readRequest(f *fields) request {
	return request{f.number(), int64(f.number()), time.Duration(f.number()) * time.Millisecond}
}

// arguments reads arguments. They share memory with the frame.
func arguments(f *fields) [][]byte {
	args := make([][]byte, f.number())
	for i := range args {
		args[i] = f.bytes()
	}
	return args
}

// call calls a function in a sandbox and writes the answer.
func (w *worker) call(f *fields) {
	r := readRequest(f)
	sandbox := f.number()
	args := arguments(f)
	if w.sandbox != sandbox {
		w.udfs = nil
	}
	if w.udfs == nil {
		w.makeRoom()
	}
	w.guard.begin(r.limit, w.memory)
	defer w.guard.end()
	if w.udfs == nil {
		w.udfs, w.sandbox = newMachine(w, r.nowMs), sandbox
	}
	var result []byte
	err := w.udfs.protect(func() (err error) {
		result, err = w.udfs.call(r.function, args)
		return err
	})
	if err != nil {
		w.udfs = nil // a call that was cut short may have left the runtime in any state
		w.sayError(err)
		return
	}
	w.say.begin(sayValue)
	w.say.bytes(result)
}

// makeRoom frees the garbage of earlier scripts, if it is much, so that every script has
// the whole limit of memory.
func (w *worker) makeRoom() {
	if memoryInUse() > w.memory/2 {
		debug.FreeOSMemory()
	}
}

// sayError writes an error as the answer.
func (w *worker) sayError(err error) {
	var refused *CompileError
	var thrown *ThrownError
	switch {
	case errors.As(err, &refused):
		w.say.begin(sayRefused)
		w.say.text(refused.Reason)
	case errors.Is(err, ErrDepth):
		w.say.begin(sayDeep)
	case errors.Is(err, ErrResult):
		w.say.begin(sayLarge)
	default:
		if !errors.As(err, &thrown) {
			thrown = &ThrownError{Text: value.Clip("InternalError: " + err.Error())}
		}
		w.say.begin(sayThrown)
		w.say.number(uint64(int64(thrown.Number)))
		w.say.flag(thrown.Object)
		w.say.text(thrown.Text)
	}
}

// guard ends the process when a script has taken more memory than it may, or more time than
// the server would allow. On Linux the kernel bounds memory too (confine).
type guard struct {
	mu struct {
		sync.Mutex
		timer  *time.Timer
		depth  int // of nested requests
		endsAt time.Time
		memory int64
	}
}

func (g *guard) begin(limit time.Duration, memory int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.depth++; g.mu.depth > 1 {
		return
	}
	g.mu.endsAt, g.mu.memory = time.Now().Add(limit+orphanTime), memory
	if g.mu.timer == nil {
		g.mu.timer = time.AfterFunc(tick, g.look)
		return
	}
	g.mu.timer.Reset(tick)
}

func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.depth--; g.mu.depth == 0 {
		g.mu.timer.Stop()
	}
}

// look checks the limits at every tick.
func (g *guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.mu.depth == 0: // the request has ended
		return
	case memoryInUse() > g.mu.memory:
		os.Exit(exitMemory)
	case time.Now().After(g.mu.endsAt):
		os.Exit(exitTime)
	}
	g.mu.timer.Reset(tick)
}

// memoryInUse returns how much memory the process has from the system, in bytes.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(min(samples[0].Value.Uint64()-samples[1].Value.Uint64(), math.MaxInt64))
}
