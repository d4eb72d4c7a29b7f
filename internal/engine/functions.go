// SPDX-License-Identifier: MIT

// User-defined functions that queries call.

package engine

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// CompileError refuses a function that does not compile.
type CompileError struct {
	Message string
}

func (e *CompileError) Error() string { return e.Message }

// compileFailure reports why a text is no function, in the service's words.
func compileFailure(err error) error {
	var refused *script.CompileError
	if errors.As(err, &refused) {
		return &CompileError{"Encountered exception while compiling Javascript. Exception = " + value.Clip(refused.Reason)}
	}
	return err
}

// udfCalls calls the functions that a query names, in one sandbox. It is for one
// goroutine.
type udfCalls struct {
	e       *Engine
	sandbox *script.Sandbox // from bind on
	byName  map[string]*calledUDF
	args    [][]byte
}

// calledUDF is a function that a query calls.
type calledUDF struct {
	*catalog.Script
	function script.Function
}

// udfCalls finds the functions that a query calls; nil if it calls none. A function that
// the container does not have fails only when it is called, and not if the query finds no
// items.
func (e *Engine) udfCalls(c *catalog.Container, p *sql.Program) *udfCalls {
	names := p.UDFs()
	if len(names) == 0 {
		return nil
	}
	calls := &udfCalls{e: e, byName: map[string]*calledUDF{}}
	for _, name := range names {
		if u, found := c.ScriptNamed(catalog.UDFs, name); found {
			calls.byName[name] = &calledUDF{u, script.Function{Name: u.ID, Text: u.Text}}
		}
	}
	return calls
}

// bind returns the function by which a query calls user-defined functions, in a seat, at
// one moment and until ctx ends; nil if it calls none.
func (u *udfCalls) bind(ctx context.Context, seat *script.Seat, nowMs int64) func(name string, args []datum.Value) (datum.Value, error) {
	if u == nil {
		return nil
	}
	u.sandbox = seat.NewSandbox(script.Options{NowMs: nowMs})
	return func(name string, args []datum.Value) (datum.Value, error) { return u.call(ctx, name, args) }
}

func (u *udfCalls) call(ctx context.Context, name string, args []datum.Value) (datum.Value, error) {
	called, found := u.byName[name]
	if !found {
		return datum.Undefined(), invalid("'udf.%s' is not a user-defined function of the container.", value.Clip(name))
	}
	u.args = u.args[:0]
	for _, arg := range args {
		if arg.IsUndefined() || !arg.Finite() {
			return datum.Undefined(), nil // JSON has no undefined, so the function is not called
		}
		u.args = append(u.args, arg.AppendJSON(nil))
	}
	if err := u.e.strikes.check(called.Script); err != nil {
		return datum.Undefined(), err
	}
	result, err := u.sandbox.Call(ctx, &called.function, u.args...)
	u.e.judge(called.Script, err)
	if err == nil {
		return datum.Raw(result), nil
	}
	var thrown *script.ThrownError
	switch {
	case errors.As(err, &thrown):
		err = &ScriptError{Message: "Encountered exception while executing the user-defined function '" + value.Clip(name) + "'. Exception = " + thrown.Text, Number: thrown.Number}
	case script.Stopped(err):
		err = &ScriptError{Message: "The user-defined function '" + value.Clip(name) + "' was stopped: " + err.Error() + ".", TooLong: errors.Is(err, script.ErrTime)}
	default:
		err = scriptFailure(err)
	}
	return datum.Undefined(), err
}
