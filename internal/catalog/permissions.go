// SPDX-License-Identifier: MIT

// Permissions: what the holder of a token may do, and where. Tokens are made and
// checked elsewhere; a permission is looked up when one is used, so that what it
// says holds at once, also for tokens that are under way.

package catalog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxPermissions         = 10_000 // of one user
	maxResourceLinkBytes   = 4 << 10
	maxPermissionKeyBytes  = 2048
	containerLinkSegments  = 4
	containerChildSegments = 6
)

// Permission is a permission as it is at one moment.
type Permission struct {
	Resource
	Grant
	// Holder is the rid of its user.
	Holder string

	raw permissionRecord
}

// Grant is what a permission gives.
type Grant struct {
	// All says that it may be changed, not only read.
	All bool
	// Database and Container are the names or rids of where it is for; Kind and
	// Child name what in the container it is for, such as docs and an item's id.
	// They are empty if it is for the whole container.
	Database, Container, Kind, Child string
	// Key narrows the grant to items with this partition key, or with keys that
	// begin with it. It is nil if it is for all.
	Key value.PartitionKey
}

// PermissionRID tells permissions apart for ever.
type PermissionRID struct {
	Database         DatabaseRID
	User, Permission uint64
}

type permissionRecord struct {
	resourceRecord
	Mode     string          `json:"mode"`
	Resource string          `json:"resource"`
	Key      json.RawMessage `json:"key,omitempty"`
}

// Permission finds a permission of the user by its name or by its rid.
func (u *User) Permission(nameOrRID string) (*Permission, error) {
	return u.permissions.find(nameOrRID)
}

// Permissions returns all permissions of the user, the oldest first.
func (u *User) Permissions() []*Permission { return u.permissions.all() }

// Permission returns the permission with the given rid as it is now.
func (c *Catalog) Permission(rid PermissionRID) (*Permission, error) {
	if d := c.state.Load().byRID[rid.Database]; d != nil {
		if u := d.users.byNumber[rid.User]; u != nil && u.permissions.byNumber[rid.Permission] != nil {
			return u.permissions.byNumber[rid.Permission], nil
		}
	}
	return nil, ErrNotFound
}

// Numbers returns what tells the permission apart.
func (p *Permission) Numbers() PermissionRID {
	raw, _ := ridBytes(p.RID)
	return PermissionRID{
		DatabaseRID(binary.BigEndian.Uint32(raw)),
		uint64(binary.BigEndian.Uint32(raw[databaseRIDBytes:])),
		binary.LittleEndian.Uint64(raw[containerRIDBytes:]),
	}
}

// WritePermission creates, upserts or replaces a permission of a user.
func (c *Catalog) WritePermission(ctx context.Context, db DatabaseRID, user string, w ResourceWrite) (p *Permission, created bool, err error) {
	id, parsed, err := parsePermission(w.Body)
	if err != nil {
		return nil, false, err
	}
	err = c.changeUser(ctx, db, user, func(u *User, change uint64, b *kv.Batch) error {
		was, found, err := standing(u.permissions, &w, id, maxPermissions)
		if err != nil {
			return err
		}
		p, created = &Permission{Grant: parsed.Grant, raw: parsed.raw}, !found
		if found {
			p.Resource = w.next(id, &was.Resource, change)
			u.permissions.remove(was)
		} else {
			p.Resource = w.next(id, nil, change)
		}
		for _, other := range u.permissions.byName {
			if other.Grant.same(&p.Grant) {
				return ErrExists
			}
		}
		p.render(db, u)
		u.permissions.put(p)
		b.Set(permissionKey(db, u.number, p.number), mustJSON(p.raw))
		return nil
	})
	return p, created, err
}

// DeletePermission removes a permission. Its tokens open nothing from then on.
func (c *Catalog) DeletePermission(ctx context.Context, db DatabaseRID, user, nameOrRID, ifMatch string) error {
	return c.changeUser(ctx, db, user, func(u *User, _ uint64, b *kv.Batch) error {
		p, err := u.permissions.find(nameOrRID)
		if err != nil {
			return err
		}
		if !Matches(ifMatch, p.ETag) {
			return ErrPrecondition
		}
		u.permissions.remove(p)
		b.Delete(permissionKey(db, u.number, p.number), 0)
		return nil
	})
}

// changeUser lets a function alter the permissions of a copy of a user.
func (c *Catalog) changeUser(ctx context.Context, db DatabaseRID, user string, alter func(u *User, change uint64, b *kv.Batch) error) error {
	return c.changeDatabase(ctx, db, func(d *Database, change uint64, b *kv.Batch) error {
		was, err := d.users.find(user)
		if err != nil {
			return err
		}
		u := *was
		u.permissions = was.permissions.clone()
		if err := alter(&u, change, b); err != nil {
			return err
		}
		d.users = d.users.clone()
		d.users.put(&u)
		return nil
	})
}

// parsePermission reads what a client says of a permission. What it is for need not
// exist: clients' own tests make permissions for nothing.
func parsePermission(body []byte) (id string, p Permission, err error) {
	o, id, err := parseResource(body, "id", "permissionMode", "resource")
	if err != nil {
		return "", p, err
	}
	raw, _ := o.Lookup("permissionMode")
	if p.raw.Mode, err = asString("permissionMode", raw); err != nil {
		return "", p, err
	}
	raw, _ = o.Lookup("resource")
	if p.raw.Resource, err = asString("resource", raw); err != nil {
		return "", p, err
	}
	if raw, ok := o.Lookup("resourcePartitionKey"); !absent(raw, ok) {
		p.raw.Key = compact(raw)
	}
	p.Grant, err = p.raw.grant()
	return id, p, err
}

// grant makes sense of what was said.
func (r *permissionRecord) grant() (g Grant, err error) {
	switch {
	case strings.EqualFold(r.Mode, "All"):
		g.All = true
	case !strings.EqualFold(r.Mode, "Read"):
		return g, invalid("The input content is invalid because 'permissionMode' is '%s'. Ensure to provide Read or All.", value.Clip(r.Mode))
	}
	if err := g.parseLink(r.Resource); err != nil {
		return g, err
	}
	if r.Key == nil {
		return g, nil
	}
	text := string(r.Key)
	if text[0] != '[' { // some clients give a key of one value without brackets
		text = "[" + text + "]"
	}
	if g.Key, err = value.ParsePartitionKey(text); err != nil || g.Key.Size() > maxPermissionKeyBytes {
		return g, invalid("The input content is invalid because 'resourcePartitionKey' is no partition key: %s.", value.Clip(string(r.Key)))
	}
	return g, nil
}

// grantable are the kinds of what a permission can be for, within a container.
var grantable = []string{"docs", "sprocs", "triggers", "udfs", "conflicts"}

// parseLink takes apart dbs/{db}/colls/{container} or a link to something below it.
// Only an item's id, which comes last, can hold a slash.
func (g *Grant) parseLink(link string) error {
	refused := invalid("The input content is invalid because 'resource' is '%s'. Ensure to provide the link of a container, or of something in it, such as dbs/db/colls/container.", value.Clip(link))
	if len(link) > maxResourceLinkBytes {
		return refused
	}
	s := strings.SplitN(strings.Trim(link, "/"), "/", containerChildSegments)
	if len(s) != containerLinkSegments && len(s) != containerChildSegments || s[0] != "dbs" || s[2] != "colls" || slices.Contains(s, "") {
		return refused
	}
	g.Database, g.Container = s[1], s[3]
	if len(s) == containerChildSegments {
		if g.Kind, g.Child = s[4], s[5]; !slices.Contains(grantable, g.Kind) {
			return refused
		}
	}
	return nil
}

// same reports whether two grants are for the same.
func (g *Grant) same(other *Grant) bool {
	return g.Database == other.Database && g.Container == other.Container && g.Kind == other.Kind && g.Child == other.Child &&
		(g.Key == nil) == (other.Key == nil) && g.Key.Equal(other.Key)
}

// render makes the rid, the etag, the response and the record out of the rest.
func (p *Permission) render(db DatabaseRID, u *User) {
	p.Holder = u.RID
	p.RID = ridText.EncodeToString(permissionRID(db, u.number, p.number))
	p.ETag = p.etag(permissionETags)
	p.raw.resourceRecord = p.record()
	b := value.AppendString([]byte(`{"id":`), p.ID)
	b = value.AppendString(append(b, `,"permissionMode":`...), p.raw.Mode)
	b = value.AppendString(append(b, `,"resource":`...), p.raw.Resource)
	if p.raw.Key != nil {
		b = append(append(b, `,"resourcePartitionKey":`...), p.raw.Key...)
	}
	p.Body = append(p.appendSystem(b, u.self(db)+"permissions/"+p.RID+"/"), '}')
}

// loadPermission reads the row of a permission, whose user has been read before. It
// reports false for one that makes no sense.
func (d *Database) loadPermission(e kv.Entry) bool {
	if len(e.Key) != permissionKeyBytes {
		return false
	}
	u := d.users.byNumber[binary.BigEndian.Uint64(e.Key[6:])]
	var r permissionRecord
	if u == nil || !decodeRecord(e.Value, &r, &r.resourceRecord) || u.permissions.byName[r.ID] != nil {
		return false
	}
	g, err := r.grant()
	if err != nil {
		return false
	}
	p := &Permission{Resource: r.resource(binary.BigEndian.Uint64(e.Key[14:])), Grant: g, raw: r}
	p.render(d.RID, u)
	if u.permissions.byName == nil {
		u.permissions = u.permissions.clone()
	}
	u.permissions.put(p)
	return true
}
