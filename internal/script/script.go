// SPDX-License-Identifier: MIT

// Package script runs the functions that clients write in JavaScript: JSON goes in, JSON
// comes out. It never reads a file or an item, and does not know where a function is stored
// or why it is called.
//
// JavaScript runs in worker processes: this program, started again by [Pool] and taken over
// by [RunWorker]. The one invariant: whatever a function does, it ends within its limits of
// time and memory, because its process is killed; and the server bounds and checks
// everything that it reads from a worker.
package script

import (
	"errors"
	"time"
)

const (
	// MaxBodyBytes is the longest text of a function.
	MaxBodyBytes = 256 << 10
	// DefaultTime is how long a stored procedure or a trigger may take.
	DefaultTime = 5 * time.Second
	// DefaultMemory is what a worker may take, in bytes.
	DefaultMemory = 128 << 20

	// maxCompileTime is how long compiling a text may take.
	maxCompileTime = 2 * time.Second
	// callShare is the time of one call of a function, as a part of a procedure's time, and
	// totalShare that of all calls in a sandbox together. The sum is counted in ticks: calls
	// that end within one tick do not count.
	callShare  = 0.2
	totalShare = 2.0
	// maxResultBytes is the longest result of a function, and the longest body that a
	// procedure or a trigger sets.
	maxResultBytes = 4 << 20
	// maxThrownBytes is how much of an exception's text is kept.
	maxThrownBytes = 2 << 10
	// maxLogBytes is how much of a script's log is kept: it is sent in a header.
	maxLogBytes = 4 << 10
)

var (
	// ErrTime: the call took too long, or all calls in the sandbox together did.
	ErrTime = errors.New("the function took too long")
	// ErrMemory: the worker needed more memory than it may have.
	ErrMemory = errors.New("the function used too much memory")
	// ErrDepth: calls were nested too deep.
	ErrDepth = errors.New("the function's calls were nested too deep")
	// ErrResult: the result is too large, or nested too deep.
	ErrResult = errors.New("the function's result was too large")
	// ErrEnded: the worker ended, or sent a frame that no worker sends.
	ErrEnded = errors.New("the function ended its process")
	// ErrClosed: the pool was closed while the function ran.
	ErrClosed = errors.New("the server is stopping")
	// ErrNoWorker: no worker can be started.
	ErrNoWorker = errors.New("this program runs no scripts: it has to call mayfly.RunScriptWorker at the start of its main or TestMain")
)

// CompileError says why a text is not a function that can be called.
type CompileError struct {
	Reason string
}

func (e *CompileError) Error() string { return e.Reason }

// ThrownError is an exception that a function did not catch.
type ThrownError struct {
	Text string // like "TypeError: x is not a function"
	// Number is the exception's property number, 0 if it has none. Object says that the
	// exception is an object, and not a primitive value.
	Number int
	Object bool
}

func (e *ThrownError) Error() string { return e.Text }

// Refused reports whether an error is the script's own: it threw an exception, or was stopped.
func Refused(err error) bool {
	var thrown *ThrownError
	return errors.As(err, &thrown) || Stopped(err)
}

// Stopped reports whether a script was stopped.
func Stopped(err error) bool {
	for _, reason := range []error{ErrTime, ErrMemory, ErrDepth, ErrResult, ErrEnded} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// Function is a function of a client. Its text is one expression, function(…){…} or an
// arrow function, or a method as in an object literal, name(…){…}. Workers keep functions
// compiled, by name and text.
type Function struct {
	Name, Text string
}
