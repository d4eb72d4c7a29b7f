// SPDX-License-Identifier: MIT

package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dop251/goja"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// maxCallTime is how long one call may take, and maxTotalTime all calls in a
	// sandbox together. Time is counted in ticks: calls that end within one are not
	// counted.
	maxCallTime  = time.Second
	maxTotalTime = 10 * time.Second
	// maxCallDepth bounds calls within calls. To leave them all at once takes a
	// time that grows with the square of their number.
	maxCallDepth = 2000
	// maxThrownBytes is how much of an exception's text is kept.
	maxThrownBytes = 2 << 10
)

// Options are the parameters of a sandbox.
type Options struct {
	// NowMs is the moment that new Date() gives, in milliseconds since 1970.
	NowMs int64
	// Random returns numbers in [0, 1) for Math.random.
	Random func() float64
	// CallTime bounds each call; 0 is the default of a second.
	CallTime time.Duration

	limits limits // smaller in tests alone
}

// limits bound what builtins work on and make.
type limits struct {
	elements int // of an array
	chars    int // of a text
	// growth is how much the memory in use may grow while a call is under way,
	// counted from its first tick. The runtime does not tell how much of that is
	// the call's: one that takes longer than a tick while others take so much ends
	// too.
	growth uint64
}

var defaultLimits = limits{elements: 1 << 20, chars: 4 << 20, growth: 256 << 20}

// Sandbox is where functions are called. It makes its runtime at the first call and
// keeps it for the next ones. It is for one goroutine.
type Sandbox struct {
	o     Options
	m     *machine // nil before the first call, and after one that was stopped
	spent int      // ticks that calls have taken
}

// NewSandbox returns a sandbox. It holds nothing that must be closed.
func NewSandbox(o Options) *Sandbox {
	if o.CallTime == 0 {
		o.CallTime = maxCallTime
	}
	if o.limits == (limits{}) {
		o.limits = defaultLimits
	}
	return &Sandbox{o: o}
}

// machine is a runtime, prepared, with the functions that were called in it.
type machine struct {
	*goja.Runtime
	limits    limits
	watch     *watch
	functions map[*Function]goja.Callable
	parse     native // JSON.parse
	undefined goja.Value

	// For guard.go: builtins as they were, how many are under way within each
	// other, and the arrays of which texts are being made.
	rangeErrors *goja.Object
	patterns    *goja.Object // RegExp
	descriptor  native
	nested      int
	joining     []*goja.Object
}

// Call calls a function with arguments that are compact JSON; an empty one is
// undefined. So is the result if it is empty. Beside the errors of this package it
// returns the context's.
func (s *Sandbox) Call(ctx context.Context, f *Function, args ...[]byte) (result []byte, err error) {
	if s.m == nil {
		s.m = newMachine(&s.o)
	}
	err = s.watched(ctx, func() (err error) {
		result, err = s.m.call(f, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// watched does something in the runtime within its limits.
func (s *Sandbox) watched(ctx context.Context, do func() error) (err error) {
	w := s.m.watch
	w.start(ctx, s.spent)
	defer func() {
		p := recover()
		ticks, stopped := w.end()
		s.spent += ticks
		var deep *goja.StackOverflowError
		switch {
		case stopped != nil:
			err = stopped
		case p != nil:
			err = &ThrownError{Text: value.Clip(fmt.Sprintf("InternalError: %v", p))}
		case errors.As(err, &deep):
			err = ErrDepth
		}
		if err != nil {
			s.m = nil // what was cut short may have left anything behind
		}
	}()
	return do()
}

func (m *machine) call(f *Function, args [][]byte) ([]byte, error) {
	v, err := m.invoke(f, args)
	if err != nil {
		return nil, err
	}
	var result []byte
	if thrown := m.Try(func() { result, err = m.encode(v) }); thrown != nil {
		return nil, m.thrown(thrown)
	}
	return result, err
}

// invoke calls a function.
func (m *machine) invoke(f *Function, args [][]byte) (goja.Value, error) {
	callee := m.functions[f]
	if callee == nil {
		v, err := m.RunProgram(f.program)
		if err != nil {
			return nil, err
		}
		if callee, _ = goja.AssertFunction(v); callee == nil { // it is an object with one method
			o := v.(*goja.Object)
			callee, _ = goja.AssertFunction(o.Get(o.Keys()[0]))
		}
		m.functions[f] = callee
	}
	values := make([]goja.Value, len(args))
	for i, raw := range args {
		values[i] = m.decode(raw)
	}
	v, err := callee(m.undefined, values...)
	if err != nil {
		return nil, m.thrown(err)
	}
	return v, nil
}

// decode makes an argument.
func (m *machine) decode(raw []byte) goja.Value {
	if len(raw) == 0 {
		return m.undefined
	}
	switch raw[0] {
	case '{', '[':
		return m.parse(goja.FunctionCall{This: m.undefined, Arguments: []goja.Value{m.ToValue(string(raw))}})
	}
	v, _ := value.FromJSON(raw)
	switch v.Kind() {
	case value.KindBool:
		b, _ := v.Bool()
		return m.ToValue(b)
	case value.KindNumber:
		f, _ := v.Number()
		return m.ToValue(f)
	case value.KindString:
		text, _ := v.Text()
		return m.ToValue(text)
	}
	return goja.Null()
}

// thrown tells an exception by its text. The function may have thrown any value,
// whose text is made by the function's own code.
func (m *machine) thrown(err error) error {
	var e *goja.Exception
	if !errors.As(err, &e) {
		return err
	}
	thrown := &ThrownError{Text: "an exception without text"}
	again := m.Try(func() {
		v := e.Value()
		o, isObject := v.(*goja.Object)
		thrown.Object = isObject
		thrown.Text = v.String()
		if isObject {
			if n := o.Get("number"); n != nil {
				thrown.Number = int(n.ToInteger())
			}
		}
	})
	if again == nil && len(thrown.Text) > maxThrownBytes {
		thrown.Text = value.Clip(thrown.Text)
	}
	return thrown
}
