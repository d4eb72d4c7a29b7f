// SPDX-License-Identifier: MIT

// Package catalog keeps databases and containers, and their scripts, users, permissions
// and client encryption keys: names, rids and definitions. It never touches items.
// Readers see an immutable state behind one pointer, which is replaced only after a
// change is durable. So no reader sees a change that a crash could undo.
package catalog

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Catalog holds all databases and containers.
type Catalog struct {
	db      kv.DB
	options Options
	state   atomic.Pointer[state]

	// changes is held during a whole change, the commit included: changes happen one
	// after the other.
	changes sync.Mutex
}

// state is the catalog at one moment: an immutable tree. A change copies what it changes
// and the path that leads there.
type state struct {
	account *Resource
	last    sequence
	purge   []byte   // what operators want of purge; nil if they have said nothing
	regions *Regions // of a cluster; nil if no node has entered any
	format  int      // of the data
}

// sequence holds the last numbers given to a database and to a container, and counts the
// changes.
type sequence struct {
	database, container uint32
	changes             uint64
}

// Options are settings for all containers.
type Options struct {
	// Retention is how long the change feed keeps all versions and deletes of a container
	// without a policy of its own; 0 means not at all.
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
	return typed[*Database](c.state.Load().account.find(Databases, nameOrRID))
}

// Databases returns all databases, the oldest first.
func (c *Catalog) Databases() []*Database { return all[*Database](c.state.Load().account, Databases) }

// Container finds a container by the names or rids of its database and itself.
func (c *Catalog) Container(database, nameOrRID string) (*Container, error) {
	d, err := c.Database(database)
	if err != nil {
		return nil, err
	}
	return d.Container(nameOrRID)
}

// Current returns the container with the given rid as it is now.
func (c *Catalog) Current(rid ContainerRID) (*Container, error) {
	return now[*Container](c, Containers, path{uint64(rid.Database), uint64(rid.Container)})
}

// DatabaseOf returns the database with the given rid as it is now.
func (c *Catalog) DatabaseOf(rid DatabaseRID) (*Database, error) {
	return now[*Database](c, Databases, path{uint64(rid)})
}

// Matches reports whether an If-Match condition holds: it is empty, "*", or this etag,
// with or without its quotes.
func Matches(condition, etag string) bool {
	return condition == "" || condition == "*" || SameETag(condition, etag)
}
