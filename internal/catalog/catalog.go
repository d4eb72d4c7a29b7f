// SPDX-License-Identifier: MIT

// Package catalog keeps databases and containers, and their scripts, users and
// permissions: names, rids and definitions. It never touches items. What it shows to readers is an immutable
// state behind one pointer, replaced only after the change is durable, so a
// reader sees no change that a crash could take back.
package catalog

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxDatabases  = 10_000
	maxContainers = 10_000 // in one database
)

// Catalog holds all databases and containers.
type Catalog struct {
	db      kv.DB
	options Options
	state   atomic.Pointer[state]

	// changes is held over a whole change, the commit included: changes come one
	// after the other.
	changes sync.Mutex
}

// state is what the catalog holds at one moment. It is never altered.
type state struct {
	byName map[string]*Database
	byRID  map[DatabaseRID]*Database
	last   sequence
}

// sequence holds the last numbers given to a database and to a container, and
// counts the changes.
type sequence struct {
	database, container uint32
	changes             uint64
}

// Database is a database as it is at one moment.
type Database struct {
	ID   string
	RID  DatabaseRID
	ETag string
	Body []byte // the exact response
	// Throughput is shared by the containers that have none of their own.
	Throughput Provision

	TS int64 // of its creation

	byName map[string]*Container
	byRID  map[ContainerRID]*Container

	users          family[*User]
	encryptionKeys family[*EncryptionKey]
}

// Container is a container as it is at one moment. Its Epoch grows with every
// replace.
type Container struct {
	Definition
	RID        ContainerRID
	DatabaseID string
	ETag       string
	Epoch      uint64
	// IndexGeneration grows with every change of what is indexed: the index rows of
	// one policy are kept apart from those of the next.
	IndexGeneration uint32
	// Throughput is the container's own; none if it shares its database's.
	Throughput Provision
	Ranges     []Range
	Body       []byte // the exact response

	// RIDText is the text of RID, Path the container's path by name, and ItemLinks
	// the start of its items' _self: every request needs them.
	RIDText, Path, ItemLinks string

	TS int64 // of the last change

	scripts map[scriptName]*Script
}

// Options say what holds for all containers.
type Options struct {
	// Retention is for how long the change feed keeps all versions and deletes of a
	// container whose own policy does not say; 0 is not at all.
	Retention time.Duration
}

// Open loads the catalog from db.
func Open(db kv.DB, o Options) (*Catalog, error) {
	c := &Catalog{db: db, options: o}
	s, err := load(db, o)
	if err != nil {
		return nil, fmt.Errorf("load the catalog: %w", err)
	}
	c.state.Store(s)
	return c, nil
}

// Database finds a database by its name or, if no such name exists, by its rid.
func (c *Catalog) Database(nameOrRID string) (*Database, error) {
	s := c.state.Load()
	if d := s.byName[nameOrRID]; d != nil {
		return d, nil
	}
	if rid, ok := ParseRID(nameOrRID); ok && rid.Container == (ContainerRID{}) {
		if d := s.byRID[rid.Database]; d != nil {
			return d, nil
		}
	}
	return nil, ErrNotFound
}

// Databases returns all databases, the oldest first.
func (c *Catalog) Databases() []*Database {
	return slices.SortedFunc(maps.Values(c.state.Load().byName), func(a, b *Database) int {
		return cmp.Compare(a.RID, b.RID)
	})
}

// Container finds a container by the names or rids of its database and itself.
func (c *Catalog) Container(database, nameOrRID string) (*Container, error) {
	d, err := c.Database(database)
	if err != nil {
		return nil, err
	}
	return d.Container(nameOrRID)
}

// Container finds a container of the database by its name or by its rid.
func (d *Database) Container(nameOrRID string) (*Container, error) {
	if ct := d.byName[nameOrRID]; ct != nil {
		return ct, nil
	}
	if rid, ok := ParseRID(nameOrRID); ok && !rid.Item {
		if ct := d.byRID[rid.Container]; ct != nil {
			return ct, nil
		}
	}
	return nil, ErrNotFound
}

// Current returns the container with the given rid as it is now.
func (c *Catalog) Current(rid ContainerRID) (*Container, error) {
	if d := c.state.Load().byRID[rid.Database]; d != nil && d.byRID[rid] != nil {
		return d.byRID[rid], nil
	}
	return nil, ErrNotFound
}

// DatabaseOf returns the database with the given rid as it is now.
func (c *Catalog) DatabaseOf(rid DatabaseRID) (*Database, error) {
	if d := c.state.Load().byRID[rid]; d != nil {
		return d, nil
	}
	return nil, ErrNotFound
}

// Containers returns all containers of the database, the oldest first.
func (d *Database) Containers() []*Container {
	return slices.SortedFunc(maps.Values(d.byName), func(a, b *Container) int {
		return cmp.Compare(a.RID.Container, b.RID.Container)
	})
}

// CreateDatabase makes a database out of a create request's body. Its containers
// share t, if it is any.
func (c *Catalog) CreateDatabase(ctx context.Context, body []byte, t Throughput, nowMs int64) (*Database, error) {
	o, err := value.ParseObject(body)
	if err != nil {
		return nil, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	name, err := parseName(o)
	if err != nil {
		return nil, err
	}
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	if old.byName[name] != nil {
		return nil, ErrExists
	}
	if len(old.byName) >= maxDatabases {
		return nil, ErrTooMany
	}
	next := old.clone()
	next.last.database++
	d := newDatabase(name, DatabaseRID(next.last.database), nowMs/1000)
	d.Throughput = provision(t, d.TS)
	next.put(d)
	var b kv.Batch
	b.RequireAbsent(databaseNameKey(name))
	b.Set(databaseNameKey(name), binary.BigEndian.AppendUint32(nil, uint32(d.RID)))
	b.Set(databaseKey(d.RID), d.encode())
	return d, c.commit(ctx, &b, old, next)
}

// DeleteDatabase removes a database and its containers. The caller's batch takes
// away their items in the same commit.
func (c *Catalog) DeleteDatabase(ctx context.Context, rid DatabaseRID, ifMatch string, b *kv.Batch) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d := old.byRID[rid]
	if d == nil {
		return ErrNotFound
	}
	if !Matches(ifMatch, d.ETag) {
		return ErrPrecondition
	}
	next := old.clone()
	delete(next.byName, d.ID)
	delete(next.byRID, d.RID)
	b.Delete(databaseNameKey(d.ID), 0)
	b.Delete(databaseKey(d.RID), 0)
	for _, ct := range d.Containers() {
		ct.deleteRows(b)
	}
	d.deleteResourceRows(b)
	return c.commit(ctx, b, old, next)
}

// CreateContainer makes a container.
func (c *Catalog) CreateContainer(ctx context.Context, database DatabaseRID, def *Definition, t Throughput, nowMs int64) (*Container, error) {
	partitions, err := t.partitions()
	if err != nil {
		return nil, err
	}
	if err := def.checkVectorIndexes(); err != nil {
		return nil, err
	}
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d := old.byRID[database]
	switch {
	case d == nil:
		return nil, ErrNotFound
	case d.byName[def.ID] != nil:
		return nil, ErrExists
	case len(d.byName) >= maxContainers:
		return nil, ErrTooMany
	}
	if err := def.checkEncryption(d); err != nil {
		return nil, err
	}
	def.complete(c.options)
	next := old.clone()
	next.last.container++
	ct := &Container{
		Definition: *def,
		RID:        ContainerRID{d.RID, next.last.container},
		DatabaseID: d.ID,
		Epoch:      1,
		Throughput: provisionContainer(d, t, nowMs/1000),
		Ranges:     def.PartitionKey.ranges(partitions),
		TS:         nowMs / 1000,

		IndexGeneration: 1,
	}
	ct.render()
	next.put(d.with(ct))
	var b kv.Batch
	b.RequireAbsent(containerNameKey(d.RID, ct.ID))
	b.Set(containerNameKey(d.RID, ct.ID), binary.BigEndian.AppendUint32(nil, ct.RID.Container))
	b.Set(containerKey(ct.RID), ct.encode())
	return ct, c.commit(ctx, &b, old, next)
}

// ReplaceContainer gives a container a new definition. The new one is durable
// when it returns, and seen by those who look the container up.
func (c *Catalog) ReplaceContainer(ctx context.Context, rid ContainerRID, def *Definition, ifMatch string, nowMs int64) (*Container, error) {
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d := old.byRID[rid.Database]
	if d == nil || d.byRID[rid] == nil {
		return nil, ErrNotFound
	}
	was := d.byRID[rid]
	if !Matches(ifMatch, was.ETag) {
		return nil, ErrPrecondition
	}
	if err := def.replaces(&was.Definition); err != nil {
		return nil, err
	}
	if err := def.checkVectorIndexes(); err != nil {
		return nil, err
	}
	def.complete(c.options)
	ct := *was
	ct.Definition = *def
	ct.Epoch++
	if !def.indexesLike(&was.Definition) {
		ct.IndexGeneration++
	}
	ct.TS = nowMs / 1000
	ct.render()
	next := old.clone()
	next.put(d.with(&ct))
	var b kv.Batch
	b.Set(containerKey(ct.RID), ct.encode())
	return &ct, c.commit(ctx, &b, old, next)
}

// DeleteContainer removes a container. The caller's batch takes away its items
// in the same commit.
func (c *Catalog) DeleteContainer(ctx context.Context, rid ContainerRID, ifMatch string, b *kv.Batch) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d := old.byRID[rid.Database]
	if d == nil || d.byRID[rid] == nil {
		return ErrNotFound
	}
	ct := d.byRID[rid]
	if !Matches(ifMatch, ct.ETag) {
		return ErrPrecondition
	}
	next := old.clone()
	next.put(d.without(ct))
	ct.deleteRows(b)
	return c.commit(ctx, b, old, next)
}

// commit makes a change durable and then shows it. The sequence row guards
// against a second writer: every change requires it to be as it was read, and
// moves it on.
func (c *Catalog) commit(ctx context.Context, b *kv.Batch, old, next *state) error {
	next.last.changes++
	if old.last == (sequence{}) {
		b.RequireAbsent(sequenceKey)
	} else {
		b.Require(sequenceKey, old.last.encode())
	}
	b.Set(sequenceKey, next.last.encode())
	if err := c.db.Commit(ctx, b); err != nil {
		if errors.Is(err, kv.ErrConflict) {
			return fmt.Errorf("the catalog was changed by another process: %w", err)
		}
		return err
	}
	c.state.Store(next)
	return nil
}

// Matches reports whether an If-Match condition holds: none, any, or this etag,
// with or without its quotes.
func Matches(condition, etag string) bool {
	return condition == "" || condition == "*" || SameETag(condition, etag)
}

func (s *state) clone() *state {
	return &state{maps.Clone(s.byName), maps.Clone(s.byRID), s.last}
}

func (s *state) put(d *Database) {
	s.byName[d.ID] = d
	s.byRID[d.RID] = d
}

func (d *Database) with(ct *Container) *Database {
	n := *d
	n.byName, n.byRID = maps.Clone(d.byName), maps.Clone(d.byRID)
	n.byName[ct.ID] = ct
	n.byRID[ct.RID] = ct
	return &n
}

func (d *Database) without(ct *Container) *Database {
	n := *d
	n.byName, n.byRID = maps.Clone(d.byName), maps.Clone(d.byRID)
	delete(n.byName, ct.ID)
	delete(n.byRID, ct.RID)
	return &n
}
