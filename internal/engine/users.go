// SPDX-License-Identifier: MIT

// Users, permissions and client encryption keys: resources of a database beside its
// containers. They hold no items and cost no throughput.

package engine

import (
	"context"

	"github.com/mayflydb/mayfly/internal/catalog"
)

// User returns a user by names or rids.
func (e *Engine) User(database, user string) (*catalog.User, error) {
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, err
	}
	return d.User(user)
}

// Users returns a database and its users, the oldest first.
func (e *Engine) Users(database string) (*catalog.Database, []*catalog.User, error) {
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, nil, err
	}
	return d, d.Users(), nil
}

// WriteUser creates, upserts or replaces a user.
func (e *Engine) WriteUser(ctx context.Context, database string, w catalog.ResourceWrite) (u *catalog.User, created bool, err error) {
	d, err := e.changes(database, &w)
	if err != nil {
		return nil, false, err
	}
	u, created, err = e.catalog.WriteUser(ctx, d.RID, w)
	return u, created, e.commitFailed(err)
}

// DeleteUser removes a user and its permissions.
func (e *Engine) DeleteUser(ctx context.Context, database, user, ifMatch string) error {
	d, err := e.catalog.Database(database)
	if err != nil {
		return err
	}
	return e.commitFailed(e.catalog.DeleteUser(ctx, d.RID, user, ifMatch))
}

// Permission returns a permission by names or rids.
func (e *Engine) Permission(database, user, permission string) (*catalog.Permission, error) {
	u, err := e.User(database, user)
	if err != nil {
		return nil, err
	}
	return u.Permission(permission)
}

// PermissionNow returns the permission with the given rid as it is now.
func (e *Engine) PermissionNow(rid catalog.PermissionRID) (*catalog.Permission, error) {
	return e.catalog.Permission(rid)
}

// Granted returns the container that a permission is for. It must be in the database
// of the permission's user.
func (e *Engine) Granted(p *catalog.Permission) (*catalog.Container, error) {
	d, err := e.catalog.Database(p.Database)
	if err != nil {
		return nil, err
	}
	if d.RID != p.Numbers().Database {
		return nil, catalog.ErrNotFound
	}
	return d.Container(p.Container)
}

// WritePermission creates, upserts or replaces a permission of a user.
func (e *Engine) WritePermission(ctx context.Context, database, user string, w catalog.ResourceWrite) (p *catalog.Permission, created bool, err error) {
	d, err := e.changes(database, &w)
	if err != nil {
		return nil, false, err
	}
	p, created, err = e.catalog.WritePermission(ctx, d.RID, user, w)
	return p, created, e.commitFailed(err)
}

// DeletePermission removes a permission: its tokens open nothing from then on.
func (e *Engine) DeletePermission(ctx context.Context, database, user, permission, ifMatch string) error {
	d, err := e.catalog.Database(database)
	if err != nil {
		return err
	}
	return e.commitFailed(e.catalog.DeletePermission(ctx, d.RID, user, permission, ifMatch))
}

// EncryptionKey returns a client encryption key by names or rids.
func (e *Engine) EncryptionKey(database, key string) (*catalog.EncryptionKey, error) {
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, err
	}
	return d.EncryptionKey(key)
}

// EncryptionKeys returns a database and its client encryption keys, the oldest first.
func (e *Engine) EncryptionKeys(database string) (*catalog.Database, []*catalog.EncryptionKey, error) {
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, nil, err
	}
	return d, d.EncryptionKeys(), nil
}

// WriteEncryptionKey creates or replaces a client encryption key.
func (e *Engine) WriteEncryptionKey(ctx context.Context, database string, w catalog.ResourceWrite) (k *catalog.EncryptionKey, created bool, err error) {
	d, err := e.changes(database, &w)
	if err != nil {
		return nil, false, err
	}
	k, created, err = e.catalog.WriteEncryptionKey(ctx, d.RID, w)
	return k, created, e.commitFailed(err)
}

// changes finds the database that a write is about, and takes the time.
func (e *Engine) changes(database string, w *catalog.ResourceWrite) (*catalog.Database, error) {
	if err := e.writable(); err != nil {
		return nil, err
	}
	w.NowMs = e.clock.Now()
	return e.catalog.Database(database)
}
