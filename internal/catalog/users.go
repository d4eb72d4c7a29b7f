// SPDX-License-Identifier: MIT

// Users: the owners of permissions. Nobody logs in as one.

package catalog

import (
	"context"
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const maxUsers = 10_000 // of one database

// User is a user as it is at one moment.
type User struct {
	Resource
	permissions family[*Permission]
}

// User finds a user of the database by its name or by its rid.
func (d *Database) User(nameOrRID string) (*User, error) { return d.users.find(nameOrRID) }

// Users returns all users of the database, the oldest first.
func (d *Database) Users() []*User { return d.users.all() }

// WriteUser creates, upserts or replaces a user. A replace may give it another name.
func (c *Catalog) WriteUser(ctx context.Context, db DatabaseRID, w ResourceWrite) (u *User, created bool, err error) {
	_, id, err := parseResource(w.Body, "id")
	if err != nil {
		return nil, false, err
	}
	err = c.changeDatabase(ctx, db, func(d *Database, change uint64, b *kv.Batch) error {
		was, found, err := standing(d.users, &w, id, maxUsers)
		if err != nil {
			return err
		}
		d.users = d.users.clone()
		u, created = &User{}, !found
		if found {
			*u = *was
			u.Resource = w.next(id, &was.Resource, change)
			d.users.remove(was)
		} else if u.Resource = w.next(id, nil, change); u.number > maxUserNumber {
			return ErrTooMany
		}
		u.render(d.RID)
		d.users.put(u)
		b.Set(userKey(d.RID, u.number), mustJSON(u.record()))
		return nil
	})
	return u, created, err
}

// DeleteUser removes a user and its permissions.
func (c *Catalog) DeleteUser(ctx context.Context, db DatabaseRID, nameOrRID, ifMatch string) error {
	return c.changeDatabase(ctx, db, func(d *Database, _ uint64, b *kv.Batch) error {
		u, err := d.users.find(nameOrRID)
		if err != nil {
			return err
		}
		if !Matches(ifMatch, u.ETag) {
			return ErrPrecondition
		}
		d.users = d.users.clone()
		d.users.remove(u)
		u.deleteRows(d.RID, b)
		return nil
	})
}

// render makes the rid, the etag and the response out of the rest.
func (u *User) render(db DatabaseRID) {
	u.RID = ridText.EncodeToString(userRID(db, u.number))
	u.ETag = u.etag(userETags)
	b := value.AppendString([]byte(`{"id":`), u.ID)
	b = u.appendSystem(b, u.self(db))
	u.Body = append(b, `,"_permissions":"permissions/"}`...)
}

func (u *User) self(db DatabaseRID) string { return "dbs/" + db.String() + "/users/" + u.RID + "/" }

func (u *User) deleteRows(db DatabaseRID, b *kv.Batch) {
	b.Delete(userKey(db, u.number), 0)
	for _, p := range u.permissions.byName {
		b.Delete(permissionKey(db, u.number, p.number), 0)
	}
}

// loadUser reads the row of a user. It reports false for one that makes no sense.
func (d *Database) loadUser(e kv.Entry) bool {
	var r resourceRecord
	if len(e.Key) != resourceKeyBytes || !decodeRecord(e.Value, &r, &r) || d.users.byName[r.ID] != nil {
		return false
	}
	u := &User{Resource: r.resource(binary.BigEndian.Uint64(e.Key[6:]))}
	u.render(d.RID)
	if d.users.byName == nil {
		d.users = d.users.clone()
	}
	d.users.put(u)
	return true
}
