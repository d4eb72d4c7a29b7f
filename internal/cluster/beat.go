// SPDX-License-Identifier: MIT

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/kv"
)

// register writes the node row with a new incarnation. An older one of this name is dead by
// that (rule 3).
func (n *Node) register(ctx context.Context) error {
	for range rowTries {
		err := n.tryRegister(ctx)
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknown) {
			return err
		}
	}
	return ErrContended
}

func (n *Node) tryRegister(ctx context.Context) error {
	if err := n.scan(); err != nil {
		return err
	}
	values, ms, err := n.lookAt(ctx, n.key, catalog.TimeKey, catalog.FormatKey)
	if err != nil {
		return err
	}
	if format := values[2]; n.o.Format > 0 && len(format) > 0 && int(format[len(format)-1]) > n.o.Format {
		return ErrNewerData
	}
	var old nodeRow
	if values[0] != nil {
		if old, err = decodeNode(values[0]); err != nil {
			return fmt.Errorf("row of node %s: %w", n.o.Name, err)
		}
	}
	was, err := clock.DecodeShared(values[1])
	if err != nil {
		return err
	}
	floorMs, alone := n.others()
	row := was.JudgeStart(ms, max(floorMs, old.floorMs), alone)
	switch {
	case row.Test && !n.o.TestClock:
		return clock.ErrTestData
	case n.o.TestClock && !row.Test && !alone:
		return ErrTestMix
	}
	row.Test = n.o.TestClock

	n.saver.Lock()
	defer n.saver.Unlock()
	n.mu.Lock()
	reach, state := n.reach(row, max(row.At(ms), n.mu.lastMs)), Serving
	if n.mu.row.state == Draining { // until the process is restarted
		state = Draining
	}
	n.mu.Unlock()
	next := nodeRow{state, rand.Uint64(), 1, min(max(reach, old.floorMs), clock.MaxMs), byte(n.o.Format), n.o.Address, n.o.Region}
	raw := next.encode()
	var b kv.Batch
	require(&b, n.key, values[0])
	b.Set(n.key, raw)
	require(&b, catalog.TimeKey, values[1])
	if n.o.Format > 0 { // no node registers beside a change of the format that it did not see
		require(&b, catalog.FormatKey, values[2])
	}
	if row != was || values[1] == nil {
		b.Set(catalog.TimeKey, row.Encode())
	}
	if err := n.commit(ctx, &b); err != nil {
		return fmt.Errorf("register node %s: %w", n.o.Name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.up, n.mu.why = true, nil
	n.mu.row, n.mu.raw, n.mu.floorMs, n.mu.leastMs = next, raw, next.floorMs, old.floorMs
	n.mu.trail = clock.Trail{}
	n.sawLocked(n.o.Name, next, raw, time.Now())
	n.o.Logger.Info("cluster: node registered", "node", n.o.Name, "incarnation", next.incarnation)
	return nil
}

// others returns the highest floor of the other nodes, and whether none of them is alive.
func (n *Node) others() (floorMs int64, alone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	alone = true
	for name, m := range n.mu.members {
		if name != n.o.Name {
			floorMs = max(floorMs, m.row.floorMs)
			alone = alone && !m.row.alive()
		}
	}
	return floorMs, alone
}

// drop ends an incarnation that raw shows as dead, and returns why the node may not answer.
func (n *Node) drop(incarnation uint64, raw []byte, row nodeRow) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.readyLocked(); err != nil {
		return err
	}
	if n.mu.row.incarnation != incarnation {
		return ErrNotAlive // registered anew meanwhile
	}
	n.mu.up, n.mu.why = false, ErrNotAlive
	if raw != nil && row.alive() {
		n.mu.why = ErrReplaced
	}
	clear(n.mu.owned)
	n.o.Logger.Error("cluster: this node's incarnation is dead; its partitions are dropped", "node", n.o.Name, "incarnation", incarnation, "error", n.mu.why)
	why := n.mu.why
	n.work.Go(func() {
		n.o.Dropped()
		if errors.Is(why, ErrReplaced) {
			return
		}
		for {
			err := n.register(n.ctx)
			if errors.Is(err, ErrNewerData) { // the format was raised while this process was stopped
				n.mu.Lock()
				n.mu.why = err
				n.mu.Unlock()
				n.o.Dropped()
				return
			}
			if err == nil || sleep(n.ctx, n.o.Beat) != nil {
				return
			}
		}
	})
	return why
}

// save writes the node row with a floor that reaches ahead (rule 5). What a save wrote whose
// outcome is unknown is found out by the next look at the row; until then the lower of
// both floors holds.
func (n *Node) save(ctx context.Context, s sight) error {
	return n.change(ctx, func(next *nodeRow) {
		next.floorMs = min(max(n.reach(s.row, max(s.timeMs, n.mu.lastMs)), n.mu.leastMs), clock.MaxMs)
	})
}

// reach returns the floor that is saved at the time t.
func (n *Node) reach(row clock.Shared, t int64) int64 {
	reach := t + n.o.Reserve.Milliseconds()
	if row.StopMs != 0 { // no time is above it: a frozen clock's floor is exact
		reach = max(t, min(reach, row.StopMs))
	}
	return reach
}

// change writes the node row as edit makes it. edit is called with mu held.
func (n *Node) change(ctx context.Context, edit func(*nodeRow)) error {
	n.saver.Lock()
	defer n.saver.Unlock()
	for range rowTries {
		n.mu.Lock()
		if err := n.readyLocked(); err != nil {
			n.mu.Unlock()
			return err
		}
		next, was := n.mu.row, n.mu.raw
		next.beat++
		edit(&next)
		n.mu.floorMs = min(n.mu.floorMs, next.floorMs)
		n.mu.Unlock()
		raw := next.encode()
		err := n.replace(ctx, n.key, was, raw)
		if err == nil {
			n.mu.Lock()
			n.mu.row, n.mu.raw, n.mu.floorMs = next, raw, next.floorMs
			n.sawLocked(n.o.Name, next, raw, time.Now())
			n.mu.Unlock()
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknown) {
			return fmt.Errorf("save the node row: %w", err)
		}
		if err := n.reread(ctx); err != nil {
			return err
		}
	}
	return ErrContended
}

// reread takes the node row as the engine has it: after a save whose outcome is unknown, or
// a change by an operator.
func (n *Node) reread(ctx context.Context) error {
	n.mu.Lock()
	incarnation := n.mu.row.incarnation
	n.mu.Unlock()
	values, _, err := n.lookAt(ctx, n.key)
	if err != nil {
		return err
	}
	row, alive, err := n.isAlive(values[0], incarnation)
	if err != nil {
		return err
	}
	if !alive {
		return n.drop(incarnation, values[0], row)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !bytes.Equal(n.mu.raw, values[0]) {
		n.mu.floorMs = min(n.mu.floorMs, row.floorMs)
		n.mu.row, n.mu.raw = row, values[0]
	}
	return nil
}

// keepBeating saves the floor and takes a moment with every beat, so that the time goes on
// while no request comes, and watches the other nodes.
func (n *Node) keepBeating() {
	for sleep(n.ctx, n.o.Beat) == nil {
		if err := n.beat(n.ctx); err != nil && n.ctx.Err() == nil {
			n.o.Logger.Warn("cluster: a beat failed", "node", n.o.Name, "error", err)
		}
	}
}

func (n *Node) beat(ctx context.Context) error {
	f, err := n.moment(ctx)
	if err != nil {
		return err
	}
	if err := n.save(ctx, f.sight); err != nil {
		return err
	}
	if err := n.scan(); err != nil {
		return err
	}
	for name, m := range n.still(ctx) {
		n.kill(ctx, name, m)
	}
	return nil
}

// scan reads all node rows.
func (n *Node) scan() error {
	snap, err := n.o.DB.Snapshot()
	if err != nil {
		return fmt.Errorf("read the node rows: %w", err)
	}
	defer snap.Close()
	type seen struct {
		row nodeRow
		raw []byte
	}
	all := map[string]seen{}
	lower, upper := nodeKey(""), nodeKey("\xff\xff")
	for e, err := range snap.Scan(lower, upper, kv.Forward) {
		if err != nil {
			return fmt.Errorf("read the node rows: %w", err)
		}
		name := string(e.Key[len(lower):])
		row, err := decodeNode(e.Value)
		if err != nil {
			return fmt.Errorf("row of node %s: %w", name, err)
		}
		all[name] = seen{row, bytes.Clone(e.Value)}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if now.Sub(n.mu.scannedAt) > n.o.Death/2 { // this node, or the engine, stood still: the others' time begins anew
		for _, m := range n.mu.members {
			m.at = now
		}
	}
	n.mu.scannedAt = now
	for name := range n.mu.members {
		if _, ok := all[name]; !ok {
			delete(n.mu.members, name)
			n.mu.settledAt = now
		}
	}
	for name, s := range all {
		if name != n.o.Name || !n.mu.up {
			n.sawLocked(name, s.row, s.raw, now)
		}
	}
	return nil
}

// sawLocked notes a node row.
func (n *Node) sawLocked(name string, row nodeRow, raw []byte, now time.Time) {
	m := n.mu.members[name]
	if m == nil || m.row.incarnation != row.incarnation || m.row.state != row.state || m.row.region != row.region {
		n.mu.settledAt = now
	}
	if m != nil && bytes.Equal(m.raw, raw) {
		return
	}
	n.mu.members[name] = &member{row, raw, now}
}

// still returns the nodes whose beat has stood still for so long that they are to be killed.
func (n *Node) still(ctx context.Context) map[string]member {
	now := time.Now()
	dead, quiet := map[string]member{}, map[string]member{}
	n.mu.Lock()
	for name, m := range n.mu.members {
		switch {
		case name == n.o.Name || !m.row.alive():
		case now.Sub(m.at) >= n.o.Death:
			dead[name] = *m
		case now.Sub(m.at) >= n.o.RefusedDeath:
			quiet[name] = *m
		}
	}
	n.mu.Unlock()
	for name, m := range quiet {
		if n.o.Refuses(ctx, m.row.address) {
			dead[name] = m
		}
	}
	return dead
}

// kill ends the incarnation of another node (rule 3). A beat that comes between makes it
// fail.
func (n *Node) kill(ctx context.Context, name string, m member) {
	next := m.row
	next.state = Dead
	raw := next.encode()
	switch err := n.replace(ctx, nodeKey(name), m.raw, raw); {
	case err == nil:
		n.o.Logger.Warn("cluster: a node stopped beating and was declared dead", "node", name, "incarnation", m.row.incarnation)
		n.mu.Lock()
		n.sawLocked(name, next, raw, time.Now())
		n.mu.Unlock()
	case errors.Is(err, kv.ErrConflict): // it beats
	default:
		n.o.Logger.Warn("cluster: a node stopped beating and could not be declared dead", "node", name, "error", err)
	}
}

// Kill declares a node dead that does not answer this one (rule 3), whether it beats or not.
// It registers anew if it is alive, without its partitions.
func (n *Node) Kill(ctx context.Context, name string) error {
	for range rowTries {
		values, _, err := n.lookAt(ctx, nodeKey(name))
		if err != nil {
			return err
		}
		if values[0] == nil {
			return nil
		}
		row, err := decodeNode(values[0])
		if err != nil {
			return fmt.Errorf("row of node %s: %w", name, err)
		}
		if !row.alive() {
			return nil
		}
		next := row
		next.state = Dead
		raw := next.encode()
		err = n.replace(ctx, nodeKey(name), values[0], raw)
		if err == nil {
			n.o.Logger.Warn("cluster: a node that does not answer was declared dead", "node", name, "incarnation", row.incarnation)
			n.mu.Lock()
			n.sawLocked(name, next, raw, time.Now())
			n.mu.Unlock()
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknown) { // it may beat meanwhile
			return err
		}
	}
	return ErrContended
}

// refuseTimeout bounds the attempt to connect to a node that has stopped beating.
const refuseTimeout = 200 * time.Millisecond

// refuses reports whether an address refuses TCP connections: its process is gone, while a
// machine that is gone, or cut off, does not answer.
func refuses(ctx context.Context, address string) bool {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
		if u.Port() == "" {
			address = net.JoinHostPort(u.Hostname(), map[bool]string{true: "443", false: "80"}[strings.EqualFold(u.Scheme, "https")])
		}
	}
	ctx, cancel := context.WithTimeout(ctx, refuseTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
