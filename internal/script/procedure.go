// SPDX-License-Identifier: MIT

// Stored procedures and triggers: functions that reach items through a host.

package script

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
)

const (
	// MaxProcedureTime is how long a stored procedure or a trigger may take.
	MaxProcedureTime = 5 * time.Second
	// acceptShare is the part of its time in which operations are accepted, so that
	// there is some left to end in good order.
	acceptShare = 0.8
	// maxPending is how many operations may wait.
	maxPending = 10_000
	// maxLogBytes is how much of what a script logs is kept: it goes into a header.
	maxLogBytes = 4 << 10
)

//go:embed api.js
var apiText string

var api = sync.OnceValue(func() *goja.Program { return goja.MustCompile("api.js", apiText, strict) })

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
func (s *Sandbox) Run(ctx context.Context, f *Function, h *Host, args ...[]byte) (out Outcome, err error) {
	m := newMachine(&s.o)
	s.m = m
	p := &procedure{m: m, host: h, began: time.Now(), limit: s.o.CallTime}
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithTimeout(ctx, s.o.CallTime)
	defer cancel()
	err = s.watched(ctx, func() error { return p.run(f, args) })
	p.out.Log = p.log.String()
	if err != nil {
		return Outcome{Log: p.out.Log}, err
	}
	return p.out, nil
}

// procedure is a call under way.
type procedure struct {
	m       *machine
	host    *Host
	ctx     context.Context
	began   time.Time
	limit   time.Duration
	pending []goja.Callable
	log     strings.Builder
	out     Outcome
}

func (p *procedure) run(f *Function, args [][]byte) error {
	m := p.m
	v, err := m.RunProgram(api())
	if err != nil {
		return err
	}
	install, _ := goja.AssertFunction(v)
	v, err = install(m.undefined, p.object())
	if err != nil {
		return m.thrown(err)
	}
	bodies := v.(*goja.Object)
	if _, err := m.invoke(f, args); err != nil {
		return err
	}
	for len(p.pending) > 0 {
		next := p.pending[0]
		p.pending = p.pending[1:]
		if _, err := next(m.undefined); err != nil {
			return m.thrown(err)
		}
	}
	p.out.Request, p.out.Response = p.text(bodies, "requestBody"), p.text(bodies, "responseBody")
	if len(p.out.Request) > maxResultBytes || len(p.out.Response) > maxResultBytes {
		return ErrResult
	}
	return nil
}

// text calls a method that returns a text, or nothing.
func (p *procedure) text(o *goja.Object, method string) string {
	f, _ := goja.AssertFunction(o.Get(method))
	v, err := f(p.m.undefined)
	if err != nil || goja.IsUndefined(v) {
		return ""
	}
	return v.String()
}

// object is what the JavaScript side knows of the host.
func (p *procedure) object() *goja.Object {
	m := p.m
	o := m.NewObject()
	set := func(name string, v any) { must(o.Set(name, v)) }
	set("selfLink", p.host.SelfLink)
	set("altLink", p.host.AltLink)
	set("operation", p.host.Operation)
	set("hasResponse", p.host.HasResponse)
	set("maxBody", maxResultBytes)
	for name, body := range map[string]string{"requestBody": p.host.Request, "responseBody": p.host.Response} {
		if body != "" {
			set(name, body)
		}
	}
	m.put(o, "accepts", 0, func(goja.FunctionCall) goja.Value {
		return m.ToValue(len(p.pending) < maxPending && !p.late() && !p.host.Full())
	})
	m.put(o, "later", 1, func(call goja.FunctionCall) goja.Value {
		f, _ := goja.AssertFunction(call.Argument(0))
		p.pending = append(p.pending, f)
		return m.undefined
	})
	m.put(o, "operate", 2, func(call goja.FunctionCall) goja.Value {
		m.checkStopped()
		return m.ToValue(p.host.Operate(p.ctx, call.Argument(0).String(), call.Argument(1).String()))
	})
	m.put(o, "log", 1, func(call goja.FunctionCall) goja.Value {
		p.note(m.chars(call.Argument(0)).String())
		return m.undefined
	})
	return o
}

// late reports whether there is little time left.
func (p *procedure) late() bool {
	return time.Since(p.began) > time.Duration(acceptShare*float64(p.limit))
}

// note adds a line to the log, as far as there is room.
func (p *procedure) note(line string) {
	if p.log.Len() > 0 {
		line = "\n" + line
	}
	if room := maxLogBytes - p.log.Len(); len(line) > room {
		line = strings.ToValidUTF8(line[:room], "")
	}
	p.log.WriteString(line)
}

// Refused reports whether an error is that of a script: that it threw, or was stopped.
func Refused(err error) bool {
	var thrown *ThrownError
	return errors.As(err, &thrown) || errors.Is(err, ErrTime) || errors.Is(err, ErrMemory) || errors.Is(err, ErrDepth) || errors.Is(err, ErrResult)
}
