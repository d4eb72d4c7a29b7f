// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/value"
)

// step moves the twin to the next lsn, or to the next n within a bundle.
func (t *twin) step() {
	if t.n <= 0 {
		t.lsn++
	}
	if t.n >= 0 {
		t.n++
	}
}

// copy returns an independent twin.
func (t *twin) copy() *twin {
	c := *t
	copies := map[*twinItem]*twinItem{}
	of := func(i *twinItem) *twinItem {
		if copies[i] == nil {
			twinItem := *i
			copies[i] = &twinItem
		}
		return copies[i]
	}
	c.items, c.versions, c.etags = map[string]*twinItem{}, map[twinVersion]*twinItem{}, maps.Clone(t.etags)
	for name, i := range t.items {
		c.items[name] = of(i)
	}
	for v, i := range t.versions {
		c.versions[v] = of(i)
	}
	return &c
}

// look returns the expected outcome of an operation that changes nothing.
func (t *twin) look(w twinWrite) (outcome, bool) {
	i := t.items[w.name()]
	if !t.isLive(i) {
		switch {
		case w.op == Read:
			return outcome{err: ErrNotFound}, false
		case w.ifMatch != "":
			return outcome{err: ErrPrecondition}, false
		}
		return outcome{lsn: t.lsn}, false
	}
	matches := w.ifNoneMatch == "*" || w.ifNoneMatch == i.etag
	switch {
	case w.op == Read && matches:
		return outcome{etag: i.etag, lsn: t.lsn}, true
	case w.op == Read:
		return outcome{body: i.body, etag: i.etag, lsn: t.lsn}, false
	case matches || w.ifMatch != "" && w.ifMatch != "*" && w.ifMatch != i.etag:
		return outcome{err: ErrPrecondition}, false
	}
	return outcome{etag: i.etag, lsn: t.lsn}, false
}

// bundleCase is a job of a group: one write, or a bundle.
type bundleCase struct {
	alone bool
	ops   []twinWrite
}

// bundled is the outcome of a bundle.
type bundled struct {
	results []Result
	err     error
}

// writeBundles lets bundles and single writes wait while a first write is committed, so
// that they share a group. A bundle that fails must not affect the jobs after it.
func (h *history) writeBundles(t *rapid.T) {
	cases := make([]bundleCase, rapid.IntRange(1, 4).Draw(t, "jobs"))
	for i := range cases {
		cases[i] = h.drawCase(t)
	}
	g := h.f.db.holdAfterApplying()
	head := twinWrite{op: Upsert, pk: h.keys[0], id: "head", u: `"head"`, v: `"head"`}
	first := h.f.start(h.asked(t, head))
	<-g.entered
	done := make([]chan bundled, len(cases))
	for i, c := range cases {
		done[i] = make(chan bundled, 1)
		ops := h.askedAll(t, c.ops)
		go func() {
			if c.alone {
				r, err := h.f.write(ops[0])
				done[i] <- bundled{[]Result{r}, err}
				return
			}
			results, err := h.f.p.WriteAll(context.Background(), ops)
			done[i] <- bundled{results, err}
		}()
		h.f.queued(i + 1)
	}
	h.f.db.stopPlaying()
	g.open <- struct{}{}
	a := <-first
	h.compare(t, head, a.result, a.err)
	for i, c := range cases {
		b := <-done[i]
		if c.alone {
			h.compare(t, c.ops[0], b.results[0], b.err)
		} else {
			h.compareBundle(t, c.ops, b)
		}
	}
}

func (h *history) drawCase(t *rapid.T) bundleCase {
	if rapid.IntRange(0, 3).Draw(t, "alone") == 0 {
		w := h.draw(t)
		if h.refusedUnseen(w) {
			w.ttl = ""
		}
		return bundleCase{true, []twinWrite{w}}
	}
	c := bundleCase{ops: make([]twinWrite, rapid.IntRange(1, 6).Draw(t, "ops"))}
	for i := range c.ops {
		w := h.draw(t)
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			w.op = Read
		case 1:
			w.op = Verify
		case 2:
			w.op = Update
		case 3: // usually succeeds
			w.op, w.ifMatch, w.ifNoneMatch, w.ttl = Upsert, "", "", "2"
		}
		if w.op != Replace {
			w.newID = ""
		}
		c.ops[i] = w
	}
	return c
}

func (h *history) askedAll(t *rapid.T, ops []twinWrite) []Write {
	asked := make([]Write, len(ops))
	for i, w := range ops {
		switch w.op {
		case Read, Verify:
			asked[i] = Write{Op: w.op, Key: h.f.key(w.pk, w.id), IfMatch: w.ifMatch, IfNoneMatch: w.ifNoneMatch}
		case Update:
			asked[i] = Write{Op: w.op, Key: h.f.key(w.pk, w.id), IfMatch: w.ifMatch, IfNoneMatch: w.ifNoneMatch, Change: h.changed(w)}
		default:
			asked[i] = h.asked(t, w)
		}
	}
	return asked
}

// changed returns a Change that checks the item it is given and replaces it.
func (h *history) changed(w twinWrite) func([]byte) (*value.Object, error) {
	return func(body []byte) (*value.Object, error) {
		if !bytes.Contains(body, fmt.Appendf(nil, `{"id":%q,"pk":%q`, w.id, w.pk)) {
			return nil, fmt.Errorf("asked to change %s", body)
		}
		return value.ParseObject([]byte(w.text()))
	}
}

// compareBundle does a bundle on the twin too, all of it or none, and compares.
func (h *history) compareBundle(t *rapid.T, ops []twinWrite, got bundled) {
	was := h.twin
	now := was.copy()
	now.n = 0
	var failed *WriteError
	for i, w := range ops {
		want, notModified := outcome{}, false
		if w.op == Read || w.op == Verify {
			want, notModified = now.look(w)
		} else {
			want = now.write(w)
		}
		var bad *TTLError
		var late *DeadlineError
		switch {
		case want.past && (!errors.As(got.err, &failed) || failed.Index != i || !errors.As(got.err, &late)),
			want.badTTL && (!errors.As(got.err, &failed) || failed.Index != i || !errors.As(got.err, &bad)),
			want.err != nil && (!errors.As(got.err, &failed) || failed.Index != i || !errors.Is(got.err, want.err)):
			t.Fatalf("bundle %+v: got %v, want operation %d refused: %+v", ops, got.err, i, want)
		case want.past || want.badTTL || want.err != nil:
			return
		case got.err != nil:
			if errors.As(got.err, &failed) && failed.Index > i {
				continue // it fails later, if the twin agrees
			}
			t.Fatalf("bundle %+v: got %v, want operation %d done", ops, got.err, i)
		}
		r := got.results[i]
		if string(r.Body) != want.body || r.Created != want.created || r.LSN != want.lsn || r.ETag != want.etag || r.NotModified != notModified {
			t.Fatalf("bundle %+v, operation %d:\ngot  %+v, %s\nwant %+v", ops, i, r, r.Body, want)
		}
	}
	if got.err != nil || len(got.results) != len(ops) {
		t.Fatalf("bundle %+v: got %d results, %v, want all done", ops, len(got.results), got.err)
	}
	now.n = -1
	h.twin = now
}
