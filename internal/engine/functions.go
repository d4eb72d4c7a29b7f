// SPDX-License-Identifier: MIT

// The functions of scripts, compiled; and those that queries call.

package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/value"
)

// CompileError refuses a function that does not compile.
type CompileError struct {
	Message string
}

func (e *CompileError) Error() string { return e.Message }

const (
	// maxFunctionBytes bounds the texts of the functions that are kept compiled. A
	// compiled function takes some ten times its text.
	maxFunctionBytes = 8 << 20
	// maxCompileWait is how long a request waits for others to compile theirs. One
	// alone may take most of it.
	maxCompileWait = 10 * time.Second
)

// functions keeps functions compiled, by name and text.
type functions struct {
	// compiling lets one in, who compiles a text: a hostile one takes much memory and
	// time, and should take neither twice. Who runs a script may enter it, but who is
	// in runs none.
	compiling *script.Gate

	mu struct {
		sync.Mutex
		byText map[functionText]*script.Function
		bytes  int
	}
}

type functionText struct {
	name, text string
}

func newFunctions() *functions {
	return &functions{compiling: script.NewGate(script.GateOptions{Places: 1, Queue: script.MaxWaiting, Wait: maxCompileWait})}
}

// compile returns a function.
func (f *functions) compile(ctx context.Context, name, text string) (*script.Function, error) {
	key := functionText{name, text}
	if fn := f.known(key); fn != nil {
		return fn, nil
	}
	if err := f.compiling.Enter(ctx); err != nil {
		return nil, err
	}
	defer f.compiling.Leave()
	if fn := f.known(key); fn != nil {
		return fn, nil
	}
	fn, err := script.Compile(name, text)
	var refused *script.CompileError
	if errors.As(err, &refused) {
		return nil, &CompileError{"Encountered exception while compiling Javascript. Exception = " + value.Clip(refused.Reason)}
	}
	if err != nil {
		return nil, err
	}
	f.keep(key, fn)
	return fn, nil
}

// known returns a function that has been compiled before, nil if it has not.
func (f *functions) known(key functionText) *script.Function {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.byText[key]
}

// keep keeps a function, and lets go of all others when they have become too many.
func (f *functions) keep(key functionText, fn *script.Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.byText == nil || f.mu.bytes+len(key.text) > maxFunctionBytes {
		f.mu.byText, f.mu.bytes = map[functionText]*script.Function{}, 0
	}
	f.mu.byText[key] = fn
	f.mu.bytes += len(key.text)
}

// udfCalls calls the functions that a query names, in a sandbox of its own. It is for
// one goroutine.
type udfCalls struct {
	sandbox *script.Sandbox // from bind on
	byName  map[string]*script.Function
	args    [][]byte
}

// udfCalls finds the functions that a query calls; nil if it calls none.
func (e *Engine) udfCalls(ctx context.Context, c *catalog.Container, p *sql.Program) (*udfCalls, error) {
	names := p.UDFs()
	if len(names) == 0 {
		return nil, nil
	}
	calls := &udfCalls{byName: map[string]*script.Function{}}
	for _, name := range names {
		u, found := c.ScriptNamed(catalog.UDF, name)
		if !found {
			return nil, invalid("'udf.%s' is not a user-defined function of the container.", value.Clip(name))
		}
		fn, err := e.functions.compile(ctx, u.ID, u.Text)
		if err != nil {
			return nil, err
		}
		calls.byName[name] = fn
	}
	return calls, nil
}

// bind returns the function by which a query calls others, at one moment and until ctx
// ends; nil if it calls none.
func (u *udfCalls) bind(ctx context.Context, nowMs int64) func(name string, args []sql.Value) (sql.Value, error) {
	if u == nil {
		return nil
	}
	u.sandbox = script.NewSandbox(script.Options{NowMs: nowMs, Random: rand.Float64})
	return func(name string, args []sql.Value) (sql.Value, error) { return u.call(ctx, name, args) }
}

func (u *udfCalls) call(ctx context.Context, name string, args []sql.Value) (sql.Value, error) {
	u.args = u.args[:0]
	for _, arg := range args {
		if !arg.Finite() {
			return sql.Undefined(), nil // JSON has no number for it
		}
		u.args = append(u.args, arg.AppendJSON(nil))
	}
	result, err := u.sandbox.Call(ctx, u.byName[name], u.args...)
	if err == nil {
		return sql.Raw(result), nil
	}
	var thrown *script.ThrownError
	switch {
	case errors.As(err, &thrown):
		return sql.Undefined(), invalid("Encountered exception while executing the user-defined function '%s'. Exception = %s", value.Clip(name), thrown.Text)
	case errors.Is(err, script.ErrTime), errors.Is(err, script.ErrMemory), errors.Is(err, script.ErrDepth), errors.Is(err, script.ErrResult):
		return sql.Undefined(), invalid("The user-defined function '%s' was stopped: %v.", value.Clip(name), err)
	}
	return sql.Undefined(), err
}
