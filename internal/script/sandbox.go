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
	// NowMs is the moment at which JavaScript's clock begins, in milliseconds since 1970.
	NowMs int64
	// CallTime bounds each call; 0 is what a function has.
	CallTime time.Duration

	grace time.Duration // by which it is exceeded, in tests alone
}

// Sandbox is where functions are called. What one call leaves behind, the next in the
// same sandbox finds, unless one of them failed. It is for one goroutine, and of no use
// once another sandbox of the same seat was used.
type Sandbox struct {
	seat   *Seat
	o      Options
	worker *process // which has it as number
	number uint64
	watch  watch
	spent  int // ticks that calls have taken
}

// NewSandbox returns a sandbox. It holds nothing that must be closed.
func (s *Seat) NewSandbox(o Options) *Sandbox {
	if o.CallTime == 0 {
		o.CallTime = s.pool.share(callShare)
	}
	return &Sandbox{seat: s, o: o}
}

// open returns the worker, in which the sandbox has a number.
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

// Compile checks that a function can be called. It runs none of it. A text that is none
// gives a *[CompileError].
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

// Call calls a function with arguments that are compact JSON; an empty one is
// undefined. So is the result if it is empty. Beside the errors of this package it
// returns the context's.
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

// head writes what every request to run a function begins with.
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

// talk lets do exchange frames with the worker, within the sandbox's limits. An error
// that is no answer of the worker's ends it.
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
		_ = s.seat.lost(p) // for that reason
		return stopped
	case err == nil, errors.As(err, &refused):
		return err
	case Refused(err):
		s.worker = nil // the worker has let go of what was cut short
		return err
	}
	return s.seat.lost(p)
}

// answer sends what was asked and reads the answer.
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

// Host is what a procedure or a trigger reaches.
type Host struct {
	// SelfLink and AltLink are the container's.
	SelfLink, AltLink string
	// Operate does an operation. Its arguments and the reply are JSON.
	Operate func(ctx context.Context, name, args string) (reply string)
	// Full reports whether no more operations are accepted.
	Full func() bool
	// Request and Response are the bodies that the function finds, as JSON; empty is
	// none. HasResponse is false for what comes before an operation.
	Request, Response string
	HasResponse       bool
	// Operation is what a trigger is called for.
	Operation string
}

// Outcome is what a procedure or a trigger leaves behind: the bodies as JSON, empty for
// none.
type Outcome struct {
	Request, Response string
	Log               string
}

// Run calls a function with a host, and then everything that waits for its operations.
// The result of the function is of no interest. The log is there with an error, too.
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

// converse does what the worker asks for until it is done. While it waits for the reply
// to an operation, which may call functions, it runs those.
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
