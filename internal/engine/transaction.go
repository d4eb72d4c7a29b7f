// SPDX-License-Identifier: MIT

// Transactions of scripts. A script runs against a draft of its logical partition,
// outside of the partition's loop, and the draft is committed when it has ended. If
// another request has written to the logical partition meanwhile, the script runs again.

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/script"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// maxScriptRuns is how many times a script runs before conflicting writes make it fail.
const maxScriptRuns = 10

// ErrScriptsBusy: too many scripts are running, and this one has waited for its longest
// time.
var ErrScriptsBusy = script.ErrBusy

// ScriptLoad returns how many scripts are running, and how many requests wait to run one.
func (e *Engine) ScriptLoad() (running, waiting int) { return e.scripts.Load() }

// ErrContended: other requests kept writing to the logical partition while a script ran.
var ErrContended = errors.New("conflicting writes")

// ScriptError is the failure of a script.
type ScriptError struct {
	Message string
	// Number is the number of the script's exception; 0 for none.
	Number int
	// TooLong says that the script was stopped. Barred says that it was stopped too
	// often, and did not run.
	TooLong, Barred bool
}

func (e *ScriptError) Error() string { return e.Message }

// transaction is one run of scripts.
type transaction struct {
	Answer
	e      *Engine
	p      *store.Partition
	key    value.PartitionKey
	seat   *script.Seat // while it runs
	draft  *store.Draft
	memory *memory.Share // the request's share
	nowMs  int64
	endsAt time.Duration // in the meters' time

	results []store.Result // of the draft's writes, once it is committed
}

// transact calls do with a draft of a logical partition and commits the draft. keyOf
// returns the partition key, for the current version of the container. With an error, the
// transaction's answer has what is known.
func (e *Engine) transact(ctx context.Context, r *Request, keyOf func(*catalog.Container) (value.PartitionKey, error), do func(context.Context, *transaction) error) (x *transaction, err error) {
	defer e.observe(e.begin())
	endsAt, log := e.meters.elapsed()+e.scripts.Time(), ""
	for range maxScriptRuns {
		x = &transaction{Answer: Answer{Log: log}, e: e, memory: r.Memory, endsAt: endsAt}
		if _, err = e.lookUp(r, &x.Answer, ru.Refused); err != nil {
			return x, err
		}
		if x.key, err = keyOf(x.Container); err != nil {
			return x, err
		}
		if err = x.attempt(ctx, do); !errors.Is(err, store.ErrChanged) {
			return x, err
		}
		if endsAt, log = x.endsAt, x.Log; e.meters.elapsed() > endsAt {
			break
		}
	}
	return x, ErrContended
}

// attempt is one run.
func (x *transaction) attempt(ctx context.Context, do func(context.Context, *transaction) error) (err error) {
	l := store.LogicalPartition{EPK: x.Container.PartitionKey.AppendEPK(nil, x.key), PartitionKey: x.key}
	if x.p, err = x.e.admit(&x.Answer, x.Container.Partition(l.EPK)); err != nil {
		return err
	}
	defer x.e.settle(&x.Answer, &err)
	err = x.drafted(ctx, l, do)
	if x.draft != nil {
		defer x.draft.Close()
	}
	if err != nil {
		return err
	}
	if x.results, err = x.commit(ctx); err != nil {
		return err
	}
	for i := range x.results {
		x.Charge += x.results[i].Work.Charge()
		x.LSN = x.results[i].LSN
	}
	return nil
}

// drafted makes a draft and calls do with it, once there is a free seat for a script. The
// commit needs no seat.
func (x *transaction) drafted(ctx context.Context, l store.LogicalPartition, do func(context.Context, *transaction) error) error {
	began := x.e.meters.elapsed()
	var err error
	if x.seat, err = x.e.scripts.Enter(ctx); err != nil {
		x.Charge = 0
		return err
	}
	defer x.seat.Leave()
	x.nowMs = x.e.clock.Now()
	x.endsAt += x.e.meters.elapsed() - began // waiting does not count as the script's time
	if x.draft, err = x.p.NewDraft(l, x.nowMs); err != nil {
		return err
	}
	x.draft.Memory = x.memory
	x.LSN = x.draft.Reader().LSN()
	return do(ctx, x)
}

func (x *transaction) commit(ctx context.Context) ([]store.Result, error) {
	if x.draft.Empty() {
		return nil, nil
	}
	admitted := x.e.writable
	if x.draft.OnlyDeletes() {
		admitted = x.e.removable
	}
	if err := admitted(); err != nil {
		return nil, err
	}
	x.e.removed() // harmless if nothing was deleted
	return x.draft.Commit(ctx)
}

// run calls a script's function.
func (x *transaction) run(ctx context.Context, s *catalog.Script, h script.Host, args ...[]byte) (script.Outcome, error) {
	if err := x.e.strikes.check(s); err != nil {
		return script.Outcome{}, err
	}
	h.SelfLink, h.AltLink = selfLink(x.Container), x.Container.Path
	h.Operate, h.Full = x.operate, x.draft.Full
	left := max(x.endsAt-x.e.meters.elapsed(), time.Millisecond)
	sandbox := x.seat.NewSandbox(script.Options{NowMs: x.nowMs, CallTime: left})
	out, err := sandbox.Run(ctx, &script.Function{Name: s.ID, Text: s.Text}, &h, args...)
	x.Log = out.Log
	x.e.judge(s, err)
	return out, scriptFailure(err)
}

// judge records whether a script exceeded its time.
func (e *Engine) judge(s *catalog.Script, err error) {
	switch {
	case errors.Is(err, script.ErrTime):
		e.strikes.add(s)
	case err == nil:
		e.strikes.clear(s)
	}
}

// scriptFailure returns the error of a failed script, in the service's words where there
// are some.
func scriptFailure(err error) error {
	var thrown *script.ThrownError
	switch {
	case errors.As(err, &thrown) && thrown.Object:
		return &ScriptError{Message: "Encountered exception while executing function. Exception = " + thrown.Text, Number: thrown.Number}
	case errors.As(err, &thrown):
		return &ScriptError{Message: thrown.Text}
	case errors.Is(err, script.ErrTime):
		return &ScriptError{Message: "The script was stopped: " + err.Error() + ".", TooLong: true}
	case script.Refused(err):
		return &ScriptError{Message: "The script was stopped: " + err.Error() + "."}
	case errors.Is(err, script.ErrNoWorker):
		return invalid("%s.", err)
	case errors.Is(err, script.ErrClosed):
		return ErrStopping
	}
	return compileFailure(err)
}

func selfLink(c *catalog.Container) string {
	return "dbs/" + c.RID.Database.String() + "/colls/" + c.RIDText + "/"
}
