// SPDX-License-Identifier: MIT

package purge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// Cause is what holds purge back.
type Cause string

// The causes.
const (
	None       Cause = ""
	Paused     Cause = "paused"
	RateLimit  Cause = "rate limit"
	Throughput Cause = "throughput" // requests leave nothing over
	Clock      Cause = "clock"      // a jump of the clock is in doubt
	Engine     Cause = "engine"     // the engine is behind with compactions
	Disk       Cause = "disk"       // the disk is nearly full
	Latency    Cause = "latency"    // requests take longer than without purge
)

var causes = []Cause{Paused, RateLimit, Throughput, Clock, Engine, Disk, Latency}

// MarshalJSON writes None as null.
func (c Cause) MarshalJSON() ([]byte, error) {
	if c == None {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}

// Rate is a number of items per second; 0 is no limit.
type Rate float64

// MarshalJSON writes no limit as null.
func (r Rate) MarshalJSON() ([]byte, error) {
	if r == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(r))
}

// Settings are an operator's settings of purge. They survive a restart: an operator who
// pauses purge to examine the data must be able to rely on it.
type Settings struct {
	// Paused pauses purge in all containers. Containers has the settings of single ones,
	// by RID.
	Paused     bool                         `json:"paused,omitzero"`
	Containers map[string]ContainerSettings `json:"containers,omitempty"`
}

// ContainerSettings are the settings of purge in one container.
type ContainerSettings struct {
	Paused bool `json:"paused,omitzero"`
	// ItemsPerSecond is the most that may be purged; 0 is no limit.
	ItemsPerSecond Rate `json:"itemsPerSecond,omitzero"`
}

func decodeSettings(raw []byte) (s Settings, err error) {
	if raw == nil {
		return s, nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("%w: purge settings: %w", kv.ErrCorrupt, err)
	}
	return s, nil
}

// Work is what purge has done in a container.
type Work struct {
	// ItemsPerSecond is the rate of the last seconds.
	ItemsPerSecond float64 `json:"itemsPerSecond"`
	// The sums since the start. The units are charged to no request.
	PurgedItems int64    `json:"purgedItems"`
	PurgedBytes int64    `json:"purgedBytes"`
	Units       ru.Units `json:"requestUnits"`
}

// Plus returns the sum of both.
func (w Work) Plus(v Work) Work {
	return Work{w.ItemsPerSecond + v.ItemsPerSecond, w.PurgedItems + v.PurgedItems, w.PurgedBytes + v.PurgedBytes, w.Units + v.Units}
}

// Status is the state of purge in a container.
type Status struct {
	Work
	Paused bool `json:"paused"`
	Limit  Rate `json:"limit"`
	// HeldBack is what held purge back when it last had work; None if nothing did.
	HeldBack Cause `json:"heldBack"`
}

// record is what a Purger knows of its work in a container.
type record struct {
	work Work
	// seconds counts the items of the last seconds, second s at s%rateSeconds.
	seconds [rateSeconds]int64
	last    int64 // the second that was last counted in
	held    Cause
	heldAt  time.Duration
	// paid is how many items writes have carried with them. levies has how many each item
	// written takes with it, by partition, where it is not 0.
	paid   int64
	levies map[int]float64
}

// levied records the levy of a partition.
func (r *record) levied(partition int, itemsPerWrite float64) {
	if itemsPerWrite == 0 {
		delete(r.levies, partition)
		return
	}
	if r.levies == nil {
		r.levies = map[int]float64{}
	}
	r.levies[partition] = itemsPerWrite
}

// rateSeconds is how many seconds are counted: the present one, and those over which a
// rate is measured.
const rateSeconds = 10

// count adds items to a second's count, and returns that count.
func (r *record) count(second, items int64) int64 {
	for ; r.last < second; r.last++ {
		r.seconds[(r.last+1)%rateSeconds] = 0
		if second-r.last > rateSeconds {
			r.last = second - rateSeconds
		}
	}
	r.seconds[second%rateSeconds] += items
	return r.seconds[second%rateSeconds]
}

// rate returns the items per second over the last whole seconds.
func (r *record) rate(second int64) float64 {
	total := -r.count(second, 0)
	for _, n := range r.seconds {
		total += n
	}
	return float64(total) / (rateSeconds - 1)
}

func (p *Purger) second() int64 { return int64(p.db.Elapsed() / time.Second) }

// record returns the record of a container, and makes it if there is none; p.mu is held.
func (p *Purger) record(rid catalog.ContainerRID) *record {
	r := p.mu.containers[rid]
	if r == nil {
		r = &record{}
		p.mu.containers[rid] = r
	}
	return r
}

// did records what was purged.
func (p *Purger) did(t Target, done store.Purged) {
	p.pace.spent(t, done)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.record(t.Container.RID)
	r.work.PurgedItems += done.Items
	r.work.PurgedBytes += done.Bytes
	r.work.Units += done.Units
	r.count(p.second(), done.Items)
	r.held = None
}

// held records that purge has work in t, and what holds it back.
func (p *Purger) held(t Target, cause Cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.record(t.Container.RID)
	now := p.db.Elapsed()
	if r.held == cause && now-r.heldAt < time.Second {
		p.mu.throttled[cause] += now - r.heldAt
	}
	r.held, r.heldAt = cause, now
}

// slowed records that a group was delayed, by what, and for how long.
func (p *Purger) slowed(t Target, cause Cause, by time.Duration) {
	if cause == None {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.throttled[cause] += by
	p.record(t.Container.RID).held = cause
}

// Status returns the state of purge in a container.
func (p *Purger) Status(rid catalog.ContainerRID) Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.mu.settings.Containers[rid.String()]
	s := Status{Paused: p.mu.settings.Paused || set.Paused, Limit: set.ItemsPerSecond}
	if r := p.mu.containers[rid]; r != nil {
		s.Work, s.HeldBack = r.work, r.held
		s.ItemsPerSecond = r.rate(p.second())
	}
	if s.Paused {
		s.HeldBack = Paused
	}
	return s
}

// Throttled returns how long each cause has held purge back since the start.
func (p *Purger) Throttled() map[Cause]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.mu.throttled)
}

// Change changes the settings, durably. When it returns, no group under the old settings
// is under way here. change may be called more than once.
func (p *Purger) Change(change func(*Settings)) error {
	err := p.o.Saved.ChangePurge(context.Background(), func(was []byte) ([]byte, error) {
		s, err := decodeSettings(was)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		s.Paused = s.Paused || p.mu.started
		p.mu.Unlock()
		if s.Containers == nil {
			s.Containers = map[string]ContainerSettings{}
		}
		change(&s)
		maps.DeleteFunc(s.Containers, func(_ string, c ContainerSettings) bool { return c == ContainerSettings{} })
		return json.Marshal(s)
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.mu.started = false
	p.mu.Unlock()
	return p.Follow()
}

// Follow applies the settings that are saved now. When it returns, no group under other
// settings is under way.
func (p *Purger) Follow() error {
	p.mu.Lock()
	s, err := decodeSettings(p.o.Saved.PurgeSettings())
	if err == nil {
		s.Paused = s.Paused || p.mu.started
		p.mu.settings = s
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	// A group under way may have checked the old settings: wait for its end.
	p.turns.Lock()
	defer p.turns.Unlock()
	return nil
}

// Forget drops the record and the settings of a container that was deleted.
func (p *Purger) Forget(rid catalog.ContainerRID) error {
	p.mu.Lock()
	delete(p.mu.containers, rid)
	_, set := p.mu.settings.Containers[rid.String()]
	p.mu.Unlock()
	if !set {
		return nil
	}
	return p.Change(func(s *Settings) { delete(s.Containers, rid.String()) })
}
