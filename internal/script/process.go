// SPDX-License-Identifier: MIT

// A worker, as seen from the server.

package script

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// workerArgument is the argument that makes this program a worker. Its memory in bytes
	// follows.
	workerArgument = "mayfly-script-worker"
	// maxKnownBytes bounds the texts of the functions that a worker keeps compiled. A
	// compiled function takes some ten times its text.
	maxKnownBytes = 1 << 20
	// maxComplaintBytes is how much is kept of a worker's standard error.
	maxComplaintBytes = 4 << 10
	// maxRestTime is how long a worker may take to prepare for the next client, and
	// maxRestingBytes how much memory it may have then: a worker with more is replaced.
	maxRestTime     = time.Second
	maxRestingBytes = 32 << 20
	// exitRefused is the exit status of a worker that did not understand its arguments or a
	// request, exitMemory of one that took too much memory, and exitTime of one that took too
	// much time. The Go runtime exits with 2, or with higher numbers.
	exitRefused = 1
	exitMemory  = 3
	exitTime    = 4
)

// workerEnvironment lets a script use one processor at most, and keeps the Go runtime from
// opening files to count processors.
var workerEnvironment = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,updatemaxprocs=0", "GOTRACEBACK=none"}

// available says that this program calls RunWorker, so that it becomes a worker when it is
// started again. It belongs to the program, not to a pool.
var available atomic.Bool

// process is a worker. One goroutine talks to it; any goroutine may kill it.
type process struct {
	cmd       *exec.Cmd
	in, out   *os.File
	reader    *bufio.Reader
	scratch   []byte
	ask       frames
	complaint *head

	// The numbers of the functions that the worker knows, by name and text, and of those of
	// the present client by pointer, which is faster.
	known      map[Function]uint64
	knownBytes int
	recent     map[*Function]uint64
	functions  uint64
	sandboxes  uint64

	mu struct {
		sync.Mutex
		why   error // the reason why it was ended
		ended bool
	}
}

// startProcess starts a worker, with pipes as its only files, and without the server's
// arguments and environment.
func startProcess(memory int64) (*process, error) {
	if !available.Load() {
		return nil, ErrNoWorker
	}
	program, err := programPath()
	if err != nil {
		return nil, err
	}
	theirIn, in, err := newPipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := newPipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	p := newProcess(in, out)
	p.cmd = &exec.Cmd{
		Path: program, Args: []string{os.Args[0], workerArgument, strconv.FormatInt(memory, 10)},
		Env: workerEnvironment, Dir: string(filepath.Separator),
		Stdin: theirIn, Stdout: theirOut, Stderr: p.complaint,
	}
	err = p.cmd.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// newProcess returns a process that communicates over two pipes.
func newProcess(in, out *os.File) *process {
	return &process{
		in: in, out: out, reader: bufio.NewReaderSize(out, 4<<10), complaint: &head{},
		known: map[Function]uint64{}, recent: map[*Function]uint64{},
	}
}

func (p *process) close() {
	_ = p.in.Close()
	_ = p.out.Close()
}

// kill ends the worker, for a reason. Reads from it then return the end of the file.
func (p *process) kill(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.ended {
		return
	}
	if p.mu.why == nil {
		p.mu.why = why
	}
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
	}
}

// end ends the worker if it has not ended by itself, waits until it is gone, and returns
// why it ended.
func (p *process) end() error {
	p.kill(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.ended {
		return p.mu.why
	}
	p.mu.ended = true
	p.close()
	if p.cmd != nil {
		_ = p.cmd.Wait() // its status is read below
	}
	if p.mu.why == nil {
		p.mu.why = p.cause()
	}
	return p.mu.why
}

// cause finds the reason for a worker's end from its exit status and its standard error.
// When the kernel refuses memory, the Go runtime ends the process in one of several ways,
// and there is hardly another reason for them.
func (p *process) cause() error {
	if p.cmd == nil {
		return ErrEnded
	}
	said, state := p.complaint.text(), p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return ErrDepth
	case state.ExitCode() == exitTime:
		return ErrTime
	case state.ExitCode() > exitRefused:
		return ErrMemory
	case status.Signaled() && status.Signal() == syscall.SIGKILL: // the kernel is out of memory
		return ErrMemory
	}
	return ErrEnded
}

// number returns the number of a function in the worker. A function that the worker does
// not know is defined first.
func (p *process) number(f *Function) uint64 {
	if n, ok := p.recent[f]; ok {
		return n
	}
	n, ok := p.known[*f]
	if !ok {
		if p.knownBytes+len(f.Text) > maxKnownBytes {
			p.ask.begin(askForget)
			p.ask.end()
			clear(p.known)
			clear(p.recent)
			p.knownBytes = 0
		}
		p.functions++
		n = p.functions
		p.known[*f] = n
		p.knownBytes += len(f.Text)
		p.ask.begin(askDefine)
		p.ask.number(n)
		p.ask.text(f.Name)
		p.ask.text(f.Text)
		p.ask.end()
	}
	p.recent[f] = n
	return n
}

// send sends the frames in the buffer.
func (p *process) send() error {
	if len(p.ask.buf) > maxAskBytes {
		return errFrame
	}
	return p.ask.send(p.in)
}

// receive reads the next frame of the worker.
func (p *process) receive() (byte, fields, error) {
	return readFrame(p.reader, &p.scratch, maxSayBytes)
}

// refusal returns the error that an answer contains; errFrame if it contains none.
func refusal(kind byte, f *fields) error {
	var err error
	switch kind {
	case sayThrown:
		thrown := &ThrownError{Number: int(int64(f.number())), Object: f.flag()}
		thrown.Text = clip(f.text(), maxThrownBytes)
		err = thrown
	case sayRefused:
		err = &CompileError{clip(f.text(), maxThrownBytes)}
	case sayDeep:
		err = ErrDepth
	case sayLarge:
		err = ErrResult
	}
	if err == nil || !f.whole() {
		return errFrame
	}
	return err
}

// clip makes a text from outside valid UTF-8, and shortens it.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// rest ends the work for a client, and reports whether the worker can serve the next one:
// whether it answers soon, and has not grown large.
func (p *process) rest() bool {
	defer time.AfterFunc(maxRestTime, func() { p.kill(ErrTime) }).Stop()
	clear(p.recent)
	p.ask.begin(askRest)
	p.ask.end()
	if p.send() != nil {
		return false
	}
	kind, f, err := p.receive()
	if err != nil || kind != sayRested {
		return false
	}
	bytes := f.number()
	return f.whole() && bytes <= maxRestingBytes
}

// checked returns a copy of a result as compact JSON, or an error if it is not JSON within the
// limits. Later code relies on this check.
func checked(raw []byte) ([]byte, error) {
	const name = "v"
	switch {
	case len(raw) == 0:
		return nil, nil
	case len(raw) > maxResultBytes:
		return nil, ErrResult
	case raw[0] == '{':
		o, err := value.ParseObject(raw)
		if err != nil {
			return nil, ErrResult
		}
		return o.Bytes(), nil
	case raw[0] == '[':
		o, err := value.ParseObject(append(append([]byte(`{"`+name+`":`), raw...), '}'))
		if err != nil || len(o.Members()) != 1 {
			return nil, ErrResult
		}
		text, _ := o.Lookup(name)
		return text, nil
	}
	if _, ok := value.FromJSON(raw); !ok {
		return nil, ErrResult
	}
	return append([]byte(nil), raw...), nil
}

// head keeps the beginning of what is written to it.
type head struct {
	mu struct {
		sync.Mutex
		kept []byte
	}
}

func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := min(len(b), maxComplaintBytes-len(h.mu.kept))
	h.mu.kept = append(h.mu.kept, b[:room]...)
	return len(b), nil
}

func (h *head) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.mu.kept)
}
