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
	e         *Engine
	c         *catalog.Container
	partition int
	p         *store.Partition
	key       value.PartitionKey
	seat      *script.Seat // while it runs
	draft     *store.Draft
	memory    *memory.Share // the request's share
	nowMs     int64
	endsAt    time.Duration // in the meters' time

	results []store.Result // of the draft's writes, once it is committed
	charge  ru.Units
	lsn     uint64
	log     string
}

// transact calls do with a draft of a logical partition and commits the draft. keyOf
// returns the partition key, for the current version of the container. With an error, the
// answer and the transaction have what is known.
func (e *Engine) transact(ctx context.Context, r *Request, keyOf func(*catalog.Container) (value.PartitionKey, error), do func(context.Context, *transaction) error) (Answer, *transaction, error) {
	defer e.observe(e.begin())
	if _, err := parseSession(r.SessionToken); err != nil {
		return Answer{Charge: ru.Refused}, nil, err
	}
	x, err := e.attempts(ctx, r, keyOf, do)
	return Answer{Container: x.c, Partition: x.partition, LSN: x.lsn, Charge: x.charge, Log: x.log}, x, err
}

func (e *Engine) attempts(ctx context.Context, r *Request, keyOf func(*catalog.Container) (value.PartitionKey, error), do func(context.Context, *transaction) error) (*transaction, error) {
	endsAt := e.meters.elapsed() + e.scripts.Time()
	x := &transaction{e: e, charge: ru.Refused}
	for range maxScriptRuns {
		c, err := e.target(r.Target)
		if err != nil {
			return x, err
		}
		x = &transaction{e: e, c: c, memory: r.Memory, endsAt: endsAt, charge: ru.Refused, log: x.log}
		if x.key, err = keyOf(c); err != nil {
			return x, err
		}
		if err = x.attempt(ctx, do); !errors.Is(err, store.ErrChanged) {
			return x, err
		}
		if endsAt = x.endsAt; e.meters.elapsed() > endsAt {
			break
		}
	}
	return x, ErrContended
}

// attempt is one run.
func (x *transaction) attempt(ctx context.Context, do func(context.Context, *transaction) error) error {
	l := store.LogicalPartition{EPK: x.c.PartitionKey.AppendEPK(nil, x.key), PartitionKey: x.key}
	x.partition = x.c.Partition(l.EPK)
	if err := x.e.meters.admit(x.c, x.partition); err != nil {
		x.charge = 0
		return err
	}
	defer func() { x.e.meters.settle(x.c, x.partition, x.charge) }()
	err := x.drafted(ctx, l, do)
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
		x.charge += x.results[i].Work.Charge()
		x.lsn = x.results[i].LSN
	}
	return nil
}

// drafted makes a draft and calls do with it, once there is a free seat for a script. The
// commit needs no seat.
func (x *transaction) drafted(ctx context.Context, l store.LogicalPartition, do func(context.Context, *transaction) error) error {
	began := x.e.meters.elapsed()
	var err error
	if x.seat, err = x.e.scripts.Enter(ctx); err != nil {
		x.charge = 0
		return err
	}
	defer x.seat.Leave()
	x.nowMs = x.e.clock.Now()
	x.endsAt += x.e.meters.elapsed() - began // waiting does not count as the script's time
	if x.p, err = x.e.partition(x.c, x.partition); err != nil {
		return err
	}
	if x.draft, err = x.p.NewDraft(l, x.nowMs); err != nil {
		return err
	}
	x.draft.Memory = x.memory
	x.lsn = x.draft.Reader().LSN()
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
	h.SelfLink, h.AltLink = selfLink(x.c), x.c.Path
	h.Operate, h.Full = x.operate, x.draft.Full
	left := max(x.endsAt-x.e.meters.elapsed(), time.Millisecond)
	sandbox := x.seat.NewSandbox(script.Options{NowMs: x.nowMs, CallTime: left})
	out, err := sandbox.Run(ctx, &script.Function{Name: s.ID, Text: s.Text}, &h, args...)
	x.log = out.Log
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
