// SPDX-License-Identifier: MIT

// Throughput: what containers and databases may spend and have spent.
//
// Every physical partition of a container with its own throughput has an equal share of
// it, and a meter. Containers without share the meter of their database. In mode Enforce,
// a meter admits operations on items before they begin. In both modes, charges are
// settled with it afterwards. A request that is refused before its partition is known is
// settled with none, since no partition has worked for it. Operations on databases,
// containers and offers are not limited.

package engine

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/ru"
)

// ThroughputMode says whether provisioned throughput is enforced.
type ThroughputMode string

const (
	// Report counts what is spent, and limits nothing. It is the default.
	Report ThroughputMode = "report"
	// Enforce refuses operations on items beyond what is provisioned.
	Enforce ThroughputMode = "enforce"
)

// ThrottledError refuses an operation because more was spent than is provisioned. Nothing
// was executed, and nothing is charged.
type ThrottledError struct {
	RetryAfter time.Duration // at least a millisecond
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("request rate is large: try again after %v", e.RetryAfter)
}

// meters holds the meters of all partitions and databases that operations have used.
type meters struct {
	mode    ThroughputMode
	catalog *catalog.Catalog
	// elapsed returns monotonic real time: the database's time may stand still.
	elapsed func() time.Duration

	mu struct {
		sync.RWMutex
		byID map[meterID]*ru.Meter
	}
}

// meterID identifies a meter: of a physical partition or, with container 0, of a
// database.
type meterID struct {
	database  catalog.DatabaseRID
	container uint32
	partition int
}

func newMeters(o *Options, c *catalog.Catalog) *meters {
	m := &meters{mode: cmp.Or(o.Throughput, Report), catalog: c, elapsed: o.elapsed}
	if m.elapsed == nil {
		opened := time.Now()
		m.elapsed = func() time.Duration { return time.Since(opened) }
	}
	m.mu.byID = map[meterID]*ru.Meter{}
	return m
}

// meterOf returns the id of a partition's meter. A container either shares its database's
// meter for its whole life or never does, so any version of it will do.
func meterOf(c *catalog.Container, index int) meterID {
	if c.Throughput.None() {
		return meterID{database: c.RID.Database}
	}
	return meterID{c.RID.Database, c.RID.Container, index}
}

// rate returns what a meter may spend in a second, and whether its container or database
// still exists.
func (m *meters) rate(id meterID) (ru.Units, bool) {
	if id.container == 0 {
		d, err := m.catalog.DatabaseOf(id.database)
		if err != nil {
			return 0, false
		}
		return ru.Units(d.Throughput.PerSecond()), true
	}
	c, err := m.catalog.Current(catalog.ContainerRID{Database: id.database, Container: id.container})
	if err != nil {
		return 0, false
	}
	return ru.Units(c.Throughput.PerSecond()) / ru.Units(len(c.Ranges)), true
}

// meter returns a meter, and makes it if necessary; nil if its container or database is
// gone. The rate is read under the lock: a concurrent change either finds the meter or is
// seen here.
func (m *meters) meter(id meterID) *ru.Meter {
	m.mu.RLock()
	meter := m.mu.byID[id]
	m.mu.RUnlock()
	if meter != nil {
		return meter
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if meter := m.mu.byID[id]; meter != nil {
		return meter
	}
	rate, found := m.rate(id)
	if !found {
		return nil
	}
	meter = ru.NewMeter(rate)
	m.mu.byID[id] = meter
	return meter
}

// admit returns nil if an operation on a partition may begin, or a ThrottledError.
func (m *meters) admit(c *catalog.Container, index int) error {
	if m.mode != Enforce {
		return nil
	}
	meter := m.meter(meterOf(c, index))
	if meter == nil {
		return nil // opening the partition will fail
	}
	if retryAfter, ok := meter.Admit(m.elapsed()); !ok {
		return &ThrottledError{retryAfter}
	}
	return nil
}

// settle records the charge of an operation on a partition.
func (m *meters) settle(c *catalog.Container, index int, charge ru.Units) {
	if meter := m.meter(meterOf(c, index)); meter != nil {
		meter.Settle(m.elapsed(), charge)
	}
}

// follow updates the rates of all meters of a database and its containers, and drops
// those whose container or database is gone.
func (m *meters) follow(database catalog.DatabaseRID) {
	m.followThose(func(id meterID) bool { return id.database == database })
}

// followAll is follow for all databases.
func (m *meters) followAll() { m.followThose(func(meterID) bool { return true }) }

func (m *meters) followThose(which func(meterID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, meter := range m.mu.byID {
		if !which(id) {
			continue
		}
		if rate, found := m.rate(id); !found {
			delete(m.mu.byID, id)
		} else if rate != meter.Rate() {
			meter.SetRate(rate)
		}
	}
}

// ThroughputStatus is what a container may spend and has spent, in the last whole second.
type ThroughputStatus struct {
	Mode        ThroughputMode `json:"mode"`
	Provisioned ru.Units       `json:"provisioned"`
	Used        ru.Units       `json:"used"`
	Leftover    ru.Units       `json:"leftover"`
	// Shared says that these are the database's figures, not the container's alone.
	Shared bool `json:"shared"`
}

// throughputOf returns how a container's throughput is used.
func (e *Engine) throughputOf(c *catalog.Container) ThroughputStatus {
	s := ThroughputStatus{Mode: e.meters.mode, Shared: c.Throughput.None()}
	ranges := c.Ranges
	if s.Shared {
		ranges = ranges[:1]
	}
	now := e.meters.elapsed()
	for i := range ranges {
		if meter := e.meters.meter(meterOf(c, ranges[i].ID)); meter != nil {
			s.Provisioned += meter.Rate()
			s.Used += meter.Used(now)
			s.Leftover += meter.Leftover(now)
		}
	}
	return s
}
