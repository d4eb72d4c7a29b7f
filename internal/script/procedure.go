// SPDX-License-Identifier: MIT

// Stored procedures and triggers in a worker: functions that reach items through a host, which
// is in the server's process.

package script

import (
	_ "embed"
	"os"
	"sync"
	"time"

	"github.com/dop251/goja"
)

const (
	// acceptShare is the part of a script's time in which operations are accepted, so that
	// some time is left to end properly.
	acceptShare = 0.8
	// maxPending is how many operations may wait.
	maxPending = 10_000
	// tooLarge is the reply to an operation that is too large to be sent.
	tooLarge = `{"status":413,"text":"Request size is too large"}`
)

//go:embed api.js
var apiText string

var api = sync.OnceValue(func() *goja.Program { return goja.MustCompile("api.js", apiText, strict) })

// procedure is a call under way.
type procedure struct {
	m                            *machine
	selfLink, altLink, operation string
	request, response            string
	hasResponse, full            bool
	began                        time.Time
	limit                        time.Duration
	pending                      []goja.Callable
	logged                       int // bytes
}

// procedure runs a procedure or a trigger and writes the answer.
func (w *worker) procedure(f *fields) {
	r := readRequest(f)
	w.makeRoom()
	p := &procedure{
		m: newMachine(w, r.nowMs), selfLink: f.text(), altLink: f.text(), operation: f.text(), request: f.text(), response: f.text(),
		hasResponse: f.flag(), full: f.flag(), began: time.Now(), limit: r.limit,
	}
	args := arguments(f)
	w.guard.begin(r.limit, w.memory)
	defer w.guard.end()
	var request, response string
	err := p.m.protect(func() (err error) {
		request, response, err = p.run(r.function, args)
		return err
	})
	if err != nil {
		w.sayError(err)
		return
	}
	w.say.begin(sayDone)
	w.say.bytes(wellFormed(request))
	w.say.bytes(wellFormed(response))
}

// run calls the function and then its callbacks, and returns the bodies of request and
// response.
func (p *procedure) run(function uint64, args [][]byte) (request, response string, err error) {
	m := p.m
	if err := m.numberErrors(); err != nil {
		return "", "", err
	}
	v, err := m.RunProgram(api())
	if err != nil {
		return "", "", err
	}
	install, _ := goja.AssertFunction(v)
	v, err = install(goja.Undefined(), p.object())
	if err != nil {
		return "", "", m.thrown(err)
	}
	bodies := v.(*goja.Object)
	if _, err := m.invoke(function, args); err != nil {
		return "", "", err
	}
	for len(p.pending) > 0 {
		next := p.pending[0]
		p.pending = p.pending[1:]
		if _, err := next(goja.Undefined()); err != nil {
			return "", "", m.thrown(err)
		}
	}
	p.full = true // a toJSON of a body must not begin operations
	if request, err = p.text(bodies, "requestBody"); err != nil {
		return "", "", err
	}
	if response, err = p.text(bodies, "responseBody"); err != nil {
		return "", "", err
	}
	if len(request) > maxResultBytes || len(response) > maxResultBytes {
		return "", "", ErrResult
	}
	return request, response, nil
}

// text calls a method that returns a string or undefined, which gives "".
func (p *procedure) text(o *goja.Object, method string) (string, error) {
	f, _ := goja.AssertFunction(o.Get(method))
	v, err := f(goja.Undefined())
	if err != nil {
		return "", p.m.thrown(err)
	}
	if goja.IsUndefined(v) {
		return "", nil
	}
	return v.String(), nil
}

// object returns the host object that api.js gets.
func (p *procedure) object() *goja.Object {
	m := p.m
	o := m.NewObject()
	set := func(name string, v any) { must(o.Set(name, v)) }
	set("selfLink", p.selfLink)
	set("altLink", p.altLink)
	set("operation", p.operation)
	set("hasResponse", p.hasResponse)
	set("maxBody", maxResultBytes)
	for name, body := range map[string]string{"requestBody": p.request, "responseBody": p.response} {
		if body != "" {
			set(name, body)
		}
	}
	set("accepts", func() bool { return len(p.pending) < maxPending && !p.late() && !p.full })
	set("later", func(call goja.FunctionCall) goja.Value {
		f, _ := goja.AssertFunction(call.Argument(0))
		p.pending = append(p.pending, f)
		return goja.Undefined()
	})
	set("operate", func(call goja.FunctionCall) goja.Value {
		return m.ToValue(p.operate(call.Argument(0).String(), call.Argument(1).String()))
	})
	set("log", func(call goja.FunctionCall) goja.Value {
		p.note(call.Argument(0).String())
		return goja.Undefined()
	})
	return o
}

// late reports whether there is little time left.
func (p *procedure) late() bool {
	return time.Since(p.began) > time.Duration(acceptShare*float64(p.limit))
}

// operate has the server do an operation. Before it replies, the server may ask this worker to
// call functions.
func (p *procedure) operate(name, args string) string {
	w := p.m.w
	if len(args) > maxResultBytes {
		return tooLarge
	}
	w.say.begin(sayOperate)
	w.say.text(name)
	w.say.text(args)
	w.send()
	for {
		kind, f := w.next()
		switch kind {
		case askReply:
			p.full = f.flag()
			return f.text()
		case askDefine, askForget, askCall:
			w.answer(kind, &f)
		default:
			os.Exit(exitRefused)
		}
	}
}

// note sends a line of the log to the server, as long as there is room. The server keeps
// the log, so that it survives the end of this process.
func (p *procedure) note(line string) {
	if p.logged >= maxLogBytes {
		return
	}
	line = clip(line, maxLogBytes)
	p.logged += len(line)
	w := p.m.w
	w.say.begin(sayLog)
	w.say.text(line)
	w.send()
}
