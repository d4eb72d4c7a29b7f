// SPDX-License-Identifier: MIT

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/store"
	"github.com/mayflydb/mayfly/internal/value"
)

// recover opens the disk that a crash left and compares it with the history. What it then
// writes must survive a second crash.
func (r *crashRun) recover(ctx context.Context, c crash) error {
	var again *vfs.MemFS
	var fresh []Answer
	err := r.opened(c.disk, func(e *Engine) error {
		v := &recovered{r: r, e: e, crash: c}
		if err := v.time(); err != nil {
			return err
		}
		if err := v.catalog(); err != nil {
			return err
		}
		for _, ct := range v.containers {
			more, err := v.container(ctx, ct)
			if err != nil {
				return fmt.Errorf("container %s: %w", ct.ID, err)
			}
			fresh = append(fresh, more...)
		}
		again = c.disk.CrashClone(vfs.CrashCloneCfg{})
		return nil
	})
	if err != nil {
		return err
	}
	return r.opened(again, func(e *Engine) error {
		for _, f := range fresh {
			got, err := e.ReadItem(&Request{Target: item(f.Container.ID, r.keys[f.Partition], "fresh")})
			if err != nil || string(got.Body) != string(f.Body) {
				return fmt.Errorf("after a second crash: got %s, %v, want %s", got.Body, err, f.Body)
			}
		}
		return nil
	})
}

// opened checks a disk and opens the engine on it.
func (r *crashRun) opened(disk *vfs.MemFS, use func(e *Engine) error) (err error) {
	db, err := pebblekv.Open(r.options(disk))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var problems []error
	_, err = Check(db, nil, func(problem string) { problems = append(problems, errors.New(problem)) })
	if err := errors.Join(append(problems, err)...); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	e, err := Open(Options{DB: db, TestClock: true, ClockSource: atStart, PurgePaused: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return use(e)
}

// recovered is an engine after a crash.
type recovered struct {
	r          *crashRun
	e          *Engine
	crash      crash
	containers []*catalog.Container
}

// time checks that the clock is at an acknowledged move, or at one in progress.
func (v *recovered) time() error {
	least, most := at(v.crash, v.r.moves, func(m crashMove) span { return m.span })
	now := v.e.Clock().Now()
	if low, high := v.r.moves[least].ms, v.r.moves[most].ms; now < low || now > high {
		return fmt.Errorf("it is %d, want from %d to %d", now, low, high)
	}
	return nil
}

// catalog checks that the catalog is as after an acknowledged change, or after one in
// progress.
func (v *recovered) catalog() error {
	least, most := at(v.crash, v.r.changes, func(c crashChange) span { return c.span })
	_, containers, err := v.e.Containers("d")
	if err != nil {
		return err
	}
	v.containers = containers
	got := map[catalog.ContainerRID]string{}
	for _, ct := range containers {
		got[ct.RID] = string(ct.Body)
	}
	for _, want := range v.r.changes[least : most+1] {
		if maps.Equal(got, want.containers) {
			return nil
		}
	}
	return fmt.Errorf("containers are %v, want those after a change from %d to %d", got, least, most)
}

// container checks that each partition has all writes up to an LSN and none after it, and
// continues from there.
func (v *recovered) container(ctx context.Context, c *catalog.Container) (fresh []Answer, err error) {
	kept := make([][]crashWrite, len(c.Ranges))
	for i := range kept {
		if kept[i], err = v.kept(ctx, c, i); err == nil {
			err = v.items(ctx, c, i, kept[i])
		}
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", i, err)
		}
	}
	// With TTL off, every item that is still stored is visible, and can be compared.
	off, err := v.e.ReplaceContainer(ctx, "d", c.ID, definition(c.ID, "null"), "")
	if err != nil {
		return nil, err
	}
	for i := range kept {
		if err := v.items(ctx, off, i, kept[i]); err != nil {
			return nil, fmt.Errorf("partition %d, with TTL off: %w", i, err)
		}
		more, err := v.goOn(ctx, off, i, kept[i])
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", i, err)
		}
		fresh = append(fresh, more)
	}
	return fresh, nil
}

// kept returns the writes that a partition has: all that were acknowledged before the
// crash, and none that began after it.
func (v *recovered) kept(ctx context.Context, c *catalog.Container, index int) ([]crashWrite, error) {
	history, err := v.r.history(c.RID, index)
	if err != nil {
		return nil, err
	}
	page, err := v.e.ListItems(ctx, &Request{Target: Target{Database: "d", Container: c.ID}, Range: catalog.RangeID(index)})
	if err != nil {
		return nil, err
	}
	if page.LSN > uint64(len(history)) {
		return nil, fmt.Errorf("lsn %d, but there were %d writes", page.LSN, len(history))
	}
	for _, w := range history {
		if w.lsn > page.LSN && w.end < v.crash.begin {
			return nil, fmt.Errorf("lsn %d, but %d was acknowledged", page.LSN, w.lsn)
		}
		if w.lsn <= page.LSN && w.begin > v.crash.end {
			return nil, fmt.Errorf("lsn %d, but %d was not yet begun", page.LSN, w.lsn)
		}
	}
	return history[:page.LSN], nil
}

// items compares a partition's items with the result of its writes.
func (v *recovered) items(ctx context.Context, c *catalog.Container, index int, kept []crashWrite) error {
	last := map[crashItem]crashWrite{}
	for _, w := range kept {
		last[w.item] = w
	}
	now, alive := v.e.Clock().Now(), 0
	for _, id := range []string{"a", "b", "c"} {
		it := crashItem{v.r.keys[index], id}
		got, err := v.e.ReadItem(&Request{Target: item(c.ID, it.pk, it.id)})
		w, found := last[it]
		if !found || w.deleted || w.expired(c, now) {
			if !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("item %v: got %s, %v, want it gone", it, got.Body, err)
			}
			continue
		}
		alive++
		if err != nil || string(got.Body) != w.body || got.ETag != w.etag || got.ItemLSN != w.lsn {
			return fmt.Errorf("item %v: got %s, %v, want %s", it, got.Body, err, w.body)
		}
	}
	page, err := v.e.ListItems(ctx, &Request{Target: Target{Database: "d", Container: c.ID}, Range: catalog.RangeID(index)})
	if err != nil || page.Count != alive {
		return fmt.Errorf("a list has %d items, %v, want %d", page.Count, err, alive)
	}
	return nil
}

// expired reports whether the item of a write has expired, by the definition of TTL.
func (w *crashWrite) expired(c *catalog.Container, nowMs int64) bool {
	ttl := int64(w.ttl)
	if w.ttl == catalog.TTLAbsent {
		ttl = int64(c.DefaultTTL)
	}
	return c.DefaultTTL != catalog.TTLAbsent && ttl > 0 && (w.ts+ttl)*1000 <= nowMs
}

// goOn writes an item. Its numbers must follow the present ones, and must never have been
// used.
func (v *recovered) goOn(ctx context.Context, c *catalog.Container, index int, kept []crashWrite) (Answer, error) {
	fresh, err := v.e.WriteItem(ctx, &Request{
		Target: item(c.ID, v.r.keys[index], "fresh"), Op: store.Create, Body: body(v.r.keys[index], "fresh", ""),
	})
	if err != nil {
		return fresh, err
	}
	rid, _ := systemProperties(fresh.Body)
	if fresh.LSN != uint64(len(kept))+1 {
		return fresh, fmt.Errorf("the next write has lsn %d, want %d", fresh.LSN, len(kept)+1)
	}
	for _, w := range kept {
		if w.etag == fresh.ETag || w.rid == rid {
			return fresh, fmt.Errorf("the next write has etag %s and rid %s, as lsn %d had", fresh.ETag, rid, w.lsn)
		}
	}
	return fresh, nil
}

// systemProperties returns the _rid and the _ts of an item.
func systemProperties(body []byte) (rid string, ts int64) {
	o, err := value.ParseObject(body)
	if err != nil {
		return "", -1
	}
	raw, _ := o.Lookup("_rid")
	number, _ := o.Lookup("_ts")
	if ts, err = strconv.ParseInt(string(number), 10, 64); err != nil {
		ts = -1
	}
	return strings.Trim(string(raw), `"`), ts
}
