// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Options are the parameters of a sandbox.
type Options struct {
	// NowMs is the time at which JavaScript's clock begins, in milliseconds since 1970.
	NowMs int64
	// CallTime bounds each call; 0 is the time of a function.
	CallTime time.Duration

	grace time.Duration // added to CallTime before the worker is killed, in tests only
}

// Sandbox calls functions in one JavaScript runtime. Globals that one call sets are visible
// to later calls in the same sandbox, until a call fails. It is for one goroutine, and must
// not be used after another sandbox of the same seat was used.
type Sandbox struct {
	seat   *Seat
	o      Options
	worker *process // in which this sandbox has the number below
	number uint64
	watch  watch
	spent  int // ticks that calls have taken
}

// NewSandbox returns a sandbox. It need not be closed.
func (s *Seat) NewSandbox(o Options) *Sandbox {
	if o.CallTime == 0 {
		o.CallTime = s.pool.share(callShare)
	}
	return &Sandbox{seat: s, o: o}
}

// open returns the worker, and gives the sandbox a number in it.
func (s *Sandbox) open() (*process, error) {
	p, err := s.seat.process()
	if err != nil {
		return nil, err
	}
	if s.worker != p {
		p.sandboxes++
		s.worker, s.number = p, p.sandboxes
	}
	return p, nil
}

// Compile checks that a text is a function that can be called, without running it.
// Otherwise the error is a *[CompileError].
func (s *Seat) Compile(ctx context.Context, f *Function) error {
	return s.compile(ctx, f, maxCompileTime)
}

func (s *Seat) compile(ctx context.Context, f *Function, limit time.Duration) error {
	switch {
	case len(f.Text) > MaxBodyBytes:
		return &CompileError{fmt.Sprintf("the body has more than %d bytes", MaxBodyBytes)}
	case !utf8.ValidString(f.Text):
		return &CompileError{"SyntaxError: the body is not valid UTF-8"}
	}
	err := s.NewSandbox(Options{CallTime: limit}).talk(ctx, func(p *process) error {
		n := p.number(f)
		p.ask.begin(askCompile)
		p.ask.number(n)
		p.ask.number(uint64(limit / time.Millisecond))
		p.ask.end()
		return p.answer(sayCompiled, func(*fields) error { return nil })
	})
	if Stopped(err) {
		return &CompileError{"the body is too complex to be read: " + err.Error()}
	}
	return err
}

// Call calls a function. Arguments and result are compact JSON; an empty one is undefined. The
// error is one of this package, or the context's.
func (s *Sandbox) Call(ctx context.Context, f *Function, args ...[]byte) (result []byte, err error) {
	err = s.talk(ctx, func(p *process) error {
		n := p.number(f)
		p.ask.begin(askCall)
		s.head(p, n)
		p.ask.number(s.number)
		addArgs(p, args)
		return p.answer(sayValue, func(f *fields) error {
			raw := f.bytes()
			if !f.whole() {
				return errFrame
			}
			result, err = checked(raw)
			return err
		})
	})
	return result, err
}

// head writes the fields with which every request to run a function begins.
func (s *Sandbox) head(p *process, function uint64) {
	p.ask.number(function)
	p.ask.number(uint64(s.o.NowMs))
	p.ask.number(uint64(s.o.CallTime / time.Millisecond))
}

func addArgs(p *process, args [][]byte) {
	p.ask.number(uint64(len(args)))
	for _, arg := range args {
		p.ask.bytes(arg)
	}
	p.ask.end()
}

// talk lets do exchange frames with the worker, within the sandbox's limits. An error that
// is not an answer of the worker ends the worker.
func (s *Sandbox) talk(ctx context.Context, do func(p *process) error) error {
	p, err := s.open()
	if err != nil {
		return err
	}
	s.watch.start(watchedCall{ctx: ctx, worker: p, began: time.Now(), limit: s.o.CallTime + s.o.grace, total: s.seat.pool.share(totalShare), spent: s.spent})
	err = do(p)
	ticks, stopped := s.watch.end()
	s.spent += ticks
	var refused *CompileError
	switch {
	case stopped != nil:
		_ = s.seat.lost(p) // it ended for the same reason
		return stopped
	case err == nil, errors.As(err, &refused):
		return err
	case Refused(err):
		s.worker = nil // the worker has dropped the runtime, so the next call needs a new number
		return err
	}
	return s.seat.lost(p)
}

// answer sends the request and reads the answer.
func (p *process) answer(want byte, read func(f *fields) error) error {
	if err := p.send(); err != nil {
		return err
	}
	kind, f, err := p.receive()
	if err != nil {
		return err
	}
	if kind != want {
		return refusal(kind, &f)
	}
	return read(&f)
}

// Host is the environment of a procedure or a trigger.
type Host struct {
	// SelfLink and AltLink are the links of the container.
	SelfLink, AltLink string
	// Operate does an operation. Its arguments and the reply are JSON.
	Operate func(ctx context.Context, name, args string) (reply string)
	// Full reports whether no more operations are accepted.
	Full func() bool
	// Request and Response are the bodies that the function gets, as JSON; empty is none.
	// HasResponse is false for a trigger that runs before the operation.
	Request, Response string
	HasResponse       bool
	// Operation is the operation for which a trigger is called.
	Operation string
}

// Outcome is the result of a procedure or a trigger: the bodies as JSON, empty for none,
// and the log.
type Outcome struct {
	Request, Response string
	Log               string
}

// Run calls a function with a host, and then the callbacks of its operations. The
// function's own result is ignored. The outcome has the log even if there is an error.
func (s *Sandbox) Run(ctx context.Context, f *Function, h *Host, args ...[]byte) (Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, s.o.CallTime)
	defer cancel()
	r := run{host: h}
	err := s.talk(ctx, func(p *process) error {
		n := p.number(f)
		p.ask.begin(askProcedure)
		s.head(p, n)
		for _, text := range []string{h.SelfLink, h.AltLink, h.Operation, h.Request, h.Response} {
			p.ask.text(text)
		}
		p.ask.flag(h.HasResponse)
		p.ask.flag(h.Full())
		addArgs(p, args)
		return r.converse(limited, p)
	})
	log := r.log.String()
	if err != nil {
		return Outcome{Log: log}, err
	}
	r.out.Log = log
	return r.out, nil
}

// run is a procedure or a trigger under way.
type run struct {
	host *Host
	log  strings.Builder
	out  Outcome
}

// converse does the operations that the worker asks for, until the script has ended. While an
// operation is under way, it may have the worker call functions.
func (r *run) converse(ctx context.Context, p *process) error {
	for {
		if err := p.send(); err != nil {
			return err
		}
		kind, f, err := p.receive()
		for err == nil && kind == sayLog {
			r.note(f.text())
			kind, f, err = p.receive()
		}
		if err != nil {
			return err
		}
		switch kind {
		case sayDone:
			return r.done(&f)
		case sayOperate:
			name, args := f.text(), f.text()
			if !f.whole() {
				return errFrame
			}
			reply := r.host.Operate(ctx, name, args)
			p.ask.begin(askReply)
			p.ask.flag(r.host.Full())
			p.ask.text(reply)
			p.ask.end()
		default:
			return refusal(kind, &f)
		}
	}
}

func (r *run) done(f *fields) error {
	request, response := f.bytes(), f.bytes()
	if !f.whole() {
		return errFrame
	}
	for raw, text := range map[*[]byte]*string{&request: &r.out.Request, &response: &r.out.Response} {
		b, err := checked(*raw)
		if err != nil {
			return err
		}
		*text = string(b)
	}
	return nil
}

// note adds a line to the log, as far as there is room.
func (r *run) note(line string) {
	if r.log.Len() > 0 {
		line = "\n" + line
	}
	r.log.WriteString(clip(line, maxLogBytes-r.log.Len()))
}
