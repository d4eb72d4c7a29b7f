// SPDX-License-Identifier: MIT

package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/kv"
)

// This file compares an engine with the Model over random histories. Every step is drawn in
// advance and can be printed, so a failing history is shown whole, shrunk to the steps that
// matter.

const (
	minSteps         = 20
	maxSteps         = 60
	maxOpsPerBatch   = 6
	maxOpenSnapshots = 4
)

type stepKind int

const (
	stepNothing stepKind = iota // what a step shrinks to when it does not matter
	stepCommit
	stepSnapshot
	stepRelease
	stepGet
	stepScan
	stepWarm
	stepLook
	stepSweep
)

// step is one step of a history. Its snapshot is any number, taken modulo the number of open
// snapshots.
type step struct {
	kind         stepKind
	ops          []kv.Op
	snapshot     int
	key          []byte
	keys         [][]byte
	lower, upper []byte
	order        kv.Order
	limit        int
}

// String implements fmt.Stringer.
func (s step) String() string {
	switch s.kind {
	case stepNothing:
		return "nothing"
	case stepCommit:
		var ops []string
		for _, op := range s.ops {
			ops = append(ops, formatOp(op))
		}
		return "commit " + strings.Join(ops, ", ")
	case stepSnapshot:
		return "snapshot"
	case stepRelease:
		return fmt.Sprintf("release #%d", s.snapshot)
	case stepGet:
		return fmt.Sprintf("get #%d %q", s.snapshot, s.key)
	case stepWarm:
		return fmt.Sprintf("warm #%d %q", s.snapshot, s.keys)
	case stepLook:
		return fmt.Sprintf("look %q", s.keys)
	case stepSweep:
		return fmt.Sprintf("sweep [%q, %q), after all snapshots are released", s.lower, s.upper)
	default:
		return fmt.Sprintf("scan #%d [%s, %s) order %d limit %d",
			s.snapshot, formatBound(s.lower), formatBound(s.upper), s.order, s.limit)
	}
}

func formatOp(op kv.Op) string {
	switch op.Kind {
	case kv.OpSet:
		return fmt.Sprintf("set %q = %s", op.Key, formatValue(op.Value))
	case kv.OpDelete:
		return fmt.Sprintf("delete %q hint %d", op.Key, op.SizeHint)
	case kv.OpDeleteRange:
		return fmt.Sprintf("delete range [%q, %q)", op.Key, op.Value)
	case kv.OpRequire:
		return fmt.Sprintf("require %q = %s", op.Key, formatValue(op.Value))
	default:
		return fmt.Sprintf("require absent %q", op.Key)
	}
}

func formatBound(b []byte) string {
	if b == nil {
		return "open"
	}
	return fmt.Sprintf("%q", b)
}

// formatValue shows a value of this suite, which is one byte repeated.
func formatValue(v []byte) string {
	if len(v) == 0 {
		return `""`
	}
	return fmt.Sprintf("%d x %q", len(v), v[:1])
}

func testHistory(t *testing.T, open func(t *testing.T) kv.DB) {
	steps := rapid.SliceOfN(stepGenerator(), minSteps, maxSteps)
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{engine: open(t), model: NewModel(), steps: steps.Draw(rt, "steps")}
		err := h.run()
		h.release()
		if err := errors.Join(err, h.engine.Close()); err != nil {
			rt.Fatalf("%v\n%s", err, h)
		}
	})
}

// history runs the same steps on an engine and on the model.
type history struct {
	engine, model   kv.DB
	steps           []step
	engineSnapshots []kv.Snapshot
	modelSnapshots  []kv.Snapshot
}

// String implements fmt.Stringer.
func (h *history) String() string {
	var b strings.Builder
	for i, s := range h.steps {
		if s.kind != stepNothing {
			fmt.Fprintf(&b, "%3d %s\n", i, s)
		}
	}
	return b.String()
}

func (h *history) run() error {
	for i, s := range h.steps {
		if err := h.step(s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if err := h.takeSnapshot(); err != nil {
		return err
	}
	last := len(h.engineSnapshots) - 1
	return compareScan(h.engineSnapshots[last], h.modelSnapshots[last], step{})
}

func (h *history) release() {
	for i := range h.engineSnapshots {
		h.engineSnapshots[i].Close()
		h.modelSnapshots[i].Close()
	}
	h.engineSnapshots, h.modelSnapshots = nil, nil
}

func (h *history) look(s step) error {
	got, _, err := h.engine.Look(context.Background(), s.keys...)
	if err != nil {
		return err
	}
	want, _, err := h.model.Look(context.Background(), s.keys...)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(got, want, func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }) {
		return fmt.Errorf("%s: got %q, want %q", s, got, want)
	}
	return nil
}

func (h *history) step(s step) error {
	switch s.kind {
	case stepNothing:
		return nil
	case stepCommit:
		return h.commit(s)
	case stepSnapshot:
		if len(h.engineSnapshots) == maxOpenSnapshots {
			return nil
		}
		return h.takeSnapshot()
	case stepLook:
		return h.look(s)
	case stepSweep:
		// Snapshots may show or lose what is swept.
		h.release()
		return errors.Join(h.engine.Sweep(context.Background(), s.lower, s.upper),
			h.model.Sweep(context.Background(), s.lower, s.upper))
	}
	if len(h.engineSnapshots) == 0 {
		return nil
	}
	n := s.snapshot % len(h.engineSnapshots)
	engine, model := h.engineSnapshots[n], h.modelSnapshots[n]
	switch s.kind {
	case stepRelease:
		engine.Close()
		model.Close()
		h.engineSnapshots = slices.Delete(h.engineSnapshots, n, n+1)
		h.modelSnapshots = slices.Delete(h.modelSnapshots, n, n+1)
		return nil
	case stepGet:
		return compareGet(engine, model, s.key)
	case stepWarm:
		if err := engine.Warm(s.keys); err != nil {
			return err
		}
		for _, key := range s.keys {
			if err := compareGet(engine, model, key); err != nil {
				return err
			}
		}
		return nil
	default:
		return compareScan(engine, model, s)
	}
}

func (h *history) commit(s step) error {
	var b kv.Batch
	for _, op := range s.ops {
		switch op.Kind {
		case kv.OpSet:
			b.Set(op.Key, op.Value)
		case kv.OpDelete:
			b.Delete(op.Key, int(op.SizeHint))
		case kv.OpDeleteRange:
			b.DeleteRange(op.Key, op.Value)
		case kv.OpRequire:
			b.Require(op.Key, op.Value)
		case kv.OpRequireAbsent:
			b.RequireAbsent(op.Key)
		}
	}
	got := h.engine.Commit(context.Background(), &b)
	want := h.model.Commit(context.Background(), &b)
	if !errors.Is(got, want) {
		return fmt.Errorf("%s: the engine says %v, the model %v", s, got, want)
	}
	return nil
}

func (h *history) takeSnapshot() error {
	engine, err := h.engine.Snapshot()
	if err != nil {
		return err
	}
	model, err := h.model.Snapshot()
	if err != nil {
		return err
	}
	h.engineSnapshots = append(h.engineSnapshots, engine)
	h.modelSnapshots = append(h.modelSnapshots, model)
	return nil
}

func compareGet(engine, model kv.Snapshot, key []byte) error {
	got, gotFound, err := engine.Get(key)
	if err != nil {
		return err
	}
	want, wantFound, err := model.Get(key)
	if err != nil {
		return err
	}
	if gotFound != wantFound || !bytes.Equal(got, want) {
		return fmt.Errorf("get %q: got %s, %v, want %s, %v", key, formatValue(got), gotFound, formatValue(want), wantFound)
	}
	const before = "before"
	got, gotFound, err = engine.GetInto([]byte(before), key)
	if err != nil {
		return err
	}
	if gotFound != wantFound || string(got) != before+string(want) {
		return fmt.Errorf("get %q into memory: got %s, %v, want %s after %q, %v", key, formatValue(got), gotFound, formatValue(want), before, wantFound)
	}
	return nil
}

func compareScan(engine, model kv.Snapshot, s step) error {
	got, err := collect(engine, s)
	if err != nil {
		return err
	}
	want, err := collect(model, s)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s:\ngot  %q\nwant %q", s, got, want)
	}
	return nil
}

// collect returns the entries of a scan as text; a limit of 0 is no limit.
func collect(s kv.Snapshot, by step) ([]string, error) {
	var rows []string
	for e, err := range s.Scan(by.lower, by.upper, by.order) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, fmt.Sprintf("%q = %s", e.Key, formatValue(e.Value)))
		if len(rows) == by.limit {
			break
		}
	}
	return rows, nil
}

// The generators draw from few keys, so that operations meet the same keys, and from values
// of very different sizes, so that an engine's buffers fill and are flushed.
func stepGenerator() *rapid.Generator[step] {
	keys := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 1, 3)
	bounds := rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), keys)
	sets := rapid.SliceOfN(keys, 0, 5)
	ops := rapid.SliceOfN(opGenerator(keys), 0, maxOpsPerBatch)
	// Commits and reads come more often than the rest.
	kinds := rapid.SampledFrom([]stepKind{
		stepNothing, stepCommit, stepCommit, stepCommit, stepCommit,
		stepSnapshot, stepRelease, stepGet, stepGet, stepScan, stepScan,
		stepWarm, stepLook, stepSweep,
	})
	return rapid.Custom(func(t *rapid.T) step {
		s := step{kind: kinds.Draw(t, "kind")}
		switch s.kind {
		case stepCommit:
			s.ops = ops.Draw(t, "ops")
			return s
		case stepNothing, stepSnapshot:
			return s
		case stepLook:
			s.keys = sets.Draw(t, "keys")
			return s
		case stepSweep:
			s.lower = keys.Draw(t, "lower")
			s.upper = keys.Draw(t, "upper")
			return s
		}
		s.snapshot = rapid.IntRange(0, maxOpenSnapshots-1).Draw(t, "snapshot")
		switch s.kind {
		case stepGet:
			s.key = keys.Draw(t, "key")
		case stepWarm:
			s.keys = sets.Draw(t, "keys")
		case stepScan:
			s.lower = bounds.Draw(t, "lower")
			s.upper = bounds.Draw(t, "upper")
			s.order = rapid.SampledFrom([]kv.Order{kv.Forward, kv.Reverse}).Draw(t, "order")
			s.limit = rapid.IntRange(0, 5).Draw(t, "limit")
		}
		return s
	})
}

func opGenerator(keys *rapid.Generator[[]byte]) *rapid.Generator[kv.Op] {
	kinds := rapid.SampledFrom([]kv.OpKind{
		kv.OpSet, kv.OpSet, kv.OpSet, kv.OpDelete, kv.OpDeleteRange, kv.OpRequire, kv.OpRequireAbsent,
	})
	sizes := rapid.SampledFrom([]int{0, 1, 40, 1300, 5000})
	values := rapid.Custom(func(t *rapid.T) []byte {
		return bytes.Repeat([]byte{byte(rapid.IntRange('a', 'd').Draw(t, "byte"))}, sizes.Draw(t, "size"))
	})
	return rapid.Custom(func(t *rapid.T) kv.Op {
		op := kv.Op{Kind: kinds.Draw(t, "op"), Key: keys.Draw(t, "key")}
		switch op.Kind {
		case kv.OpSet, kv.OpRequire:
			op.Value = values.Draw(t, "value")
		case kv.OpDelete:
			op.SizeHint = uint32(sizes.Draw(t, "hint"))
		case kv.OpDeleteRange:
			op.Value = keys.Draw(t, "upper")
		}
		return op
	})
}
