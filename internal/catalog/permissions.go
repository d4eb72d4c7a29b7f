// SPDX-License-Identifier: MIT

// Permissions: what the holder of a resource token may do, and where. Package rest makes
// and checks tokens. The permission is looked up whenever a token is used, so a change
// takes effect at once, also for existing tokens.

package catalog

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxPermissions         = 10_000 // of one user
	maxResourceLinkBytes   = 4 << 10
	maxPermissionKeyBytes  = 2048
	containerLinkSegments  = 4
	containerChildSegments = 6
)

// Permission is a permission at one moment.
type Permission struct {
	Resource
	Grant

	raw permissionRecord
}

// Grant is what a permission allows.
type Grant struct {
	// All allows changes, and not only reads.
	All bool
	// Database and Container are names or rids. Kind and Child name a resource in the
	// container, such as docs and an item's id. They are empty if the grant is for the
	// whole container.
	Database, Container, Kind, Child string
	// Key narrows the grant to items with this partition key, or with keys that begin
	// with it. It is nil if the grant is for all keys.
	Key value.PartitionKey
}

// PermissionRID identifies a permission. It is never reused.
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

// Permission returns the permission with the given rid as it is now.
func (c *Catalog) Permission(rid PermissionRID) (*Permission, error) {
	return now[*Permission](c, Permissions, path{uint64(rid.Database), rid.User, rid.Permission})
}

// Numbers returns the permission's identity.
func (p *Permission) Numbers() PermissionRID {
	return PermissionRID{DatabaseRID(p.path[0]), p.path[1], p.path[2]}
}

// Granted returns the container of a permission. It must be in the database of the
// permission's user.
func (c *Catalog) Granted(p *Permission) (*Container, error) {
	d, err := c.Database(p.Database)
	if err != nil {
		return nil, err
	}
	if d.RID != p.Numbers().Database {
		return nil, ErrNotFound
	}
	return d.Container(p.Container)
}

// follow refuses a user's second permission for the same resource.
func (p *Permission) follow(owner, was Any) error {
	for _, other := range all[*Permission](owner.Common(), Permissions) {
		if Any(other) != was && other.same(&p.Grant) {
			return ErrExists
		}
	}
	return nil
}

// parsePermission parses the body of a permission. Its resource need not exist: the SDKs'
// own tests make permissions for nothing.
func parsePermission(w *Write) (Any, error) {
	o, r, err := parseResource(w.Body, "id", "permissionMode", "resource")
	if err != nil {
		return nil, err
	}
	p := &Permission{Resource: r}
	if p.raw.Mode, err = stringMember(o, "permissionMode"); err != nil {
		return nil, err
	}
	if p.raw.Resource, err = stringMember(o, "resource"); err != nil {
		return nil, err
	}
	if raw, ok := o.Lookup("resourcePartitionKey"); !absent(raw, ok) {
		p.raw.Key = compact(raw)
	}
	p.Grant, err = p.raw.grant()
	return p, err
}

// grant parses the record's mode, link and key.
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
	if text[0] != '[' { // some clients send a key of one value without brackets
		text = "[" + text + "]"
	}
	if g.Key, err = value.ParsePartitionKey(text); err != nil || g.Key.Size() > maxPermissionKeyBytes {
		return g, invalid("The input content is invalid because 'resourcePartitionKey' is no partition key: %s.", value.Clip(string(r.Key)))
	}
	return g, nil
}

// grantable are the kinds of resources in a container that a permission can be for.
var grantable = []string{"docs", "sprocs", "triggers", "udfs", "conflicts"}

// parseLink parses dbs/{db}/colls/{container} or a link to something below it. Only an
// item's id, which comes last, can contain a slash.
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

// same reports whether two grants are for the same resource.
func (g *Grant) same(other *Grant) bool {
	return g.Database == other.Database && g.Container == other.Container && g.Kind == other.Kind && g.Child == other.Child &&
		(g.Key == nil) == (other.Key == nil) && g.Key.Equal(other.Key)
}

func decodePermission(row []byte) (Any, error) {
	var r permissionRecord
	if err := decodeRecord(row, &r, &r.Version); err != nil {
		return nil, err
	}
	g, err := r.grant()
	return &Permission{Resource: r.resource(), Grant: g, raw: r}, err
}

func (p *Permission) record() any {
	return permissionRecord{p.row(), p.raw.Mode, p.raw.Resource, p.raw.Key}
}

func (p *Permission) render(Any, Options) {
	b := value.AppendString([]byte(`{"id":`), p.ID)
	b = value.AppendString(append(b, `,"permissionMode":`...), p.raw.Mode)
	b = value.AppendString(append(b, `,"resource":`...), p.raw.Resource)
	if p.raw.Key != nil {
		b = append(append(b, `,"resourcePartitionKey":`...), p.raw.Key...)
	}
	p.Body = append(p.appendSystem(b), '}')
}
