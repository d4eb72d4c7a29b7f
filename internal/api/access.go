// SPDX-License-Identifier: MIT

// Which requests each kind of credential allows. Admit runs when the request's resource
// and verb are known, and before any data is read for it.

package api

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/value"
)

var (
	// ErrMethod refuses a request that has no row, and ErrForbidden a credential that does
	// not allow the request.
	ErrMethod       = Refuse(405, 0, "The requested verb is not supported on this resource.")
	ErrForbidden    = Refuse(403, 0, "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another authorization header.")
	errNotDataPlane = Refuse(403, 5300, "The given request cannot be authorized by AAD token in data plane.")
	errPrincipal    = Refuse(403, 5301, "Request is blocked because the principal does not have the required permissions: it may only read.")
	errRegion       = Refuse(403, 3, "The requested operation cannot be performed at this region: it is only read. Write to the first of the account's writable locations.")
)

// Credential is a kind of proof that a client may make a request.
type Credential int

// The credentials.
const (
	ByKey Credential = iota
	ByReadOnlyKey
	ByPrincipal
	ByReadOnlyPrincipal
	ByToken
)

// Grant is a verified credential. Admit decides whether it allows the request.
type Grant struct {
	By Credential
	// Permission is what a resource token was made for, in the container with this
	// number.
	Permission catalog.PermissionRID
	Container  uint32 // 0 for none
}

// Admit returns nil if the credential allows the request, or the error for the client.
func (c *Call) Admit(g *Grant) error {
	row := c.Row
	if row == nil {
		return ErrMethod
	}
	if err := c.admit(row, g); err != nil {
		return err
	}
	c.by, c.admitted = g.By, true
	return c.Service.Account.admitConsistency(c.Request.Consistency)
}

// reads reports whether a right to read suffices. A read that asks by itself to restart an
// item's countdown is a write. Where the container's definition asks for it, the owner has
// allowed it to every reader.
func (c *Call) reads(row *Row) bool {
	asks := row.Resource == Items && row.Verb == Read && c.Request.SlidingTTL != "" && c.Request.SlidingTTL != engine.SlidingOff
	return row.Reads && !asks
}

// Reads reports whether the request, which has a row, changes nothing.
func (c *Call) Reads() bool { return c.reads(c.Row) }

func (c *Call) admit(row *Row, g *Grant) error {
	if row.Resource == AccountResource {
		return nil // every client reads the account first
	}
	switch g.By {
	case ByKey:
		return nil
	case ByReadOnlyKey:
		// The answer with a permission contains a resource token, which may allow writes.
		if !c.reads(row) || row.Resource == Permissions {
			return ErrForbidden
		}
		return nil
	case ByPrincipal, ByReadOnlyPrincipal:
		switch {
		case !row.DataPlane:
			return errNotDataPlane
		case !c.reads(row) && g.By == ByReadOnlyPrincipal:
			return errPrincipal
		}
		return nil
	case ByToken:
		return c.admitToken(row, g)
	}
	return ErrForbidden
}

// admitToken checks the permission of a resource token as it is now, not as it was when
// the token was made.
func (c *Call) admitToken(row *Row, g *Grant) error {
	if err := c.Service.Engine.Moment(c.Context); err != nil { // another node may have changed it
		return err
	}
	r, known := &c.Request, c.Service.Engine.Catalog()
	p, err := known.Permission(g.Permission)
	if err != nil {
		return ErrForbidden // the permission was deleted
	}
	if r.Container == "" || g.Container == 0 {
		return ErrForbidden
	}
	granted, err := known.Granted(p)
	if err != nil || granted.RID.Container != g.Container {
		return ErrForbidden
	}
	if asked, err := known.Container(r.Database, r.Container); err != nil || asked.RID != granted.RID {
		return ErrForbidden
	}
	if !r.within(row, p) || !c.reads(row) && !p.All {
		return ErrForbidden
	}
	return nil
}

// within reports whether a permission covers a request to its container.
func (r *Request) within(row *Row, p *catalog.Permission) bool {
	switch {
	case row.Reads && (row.Resource == Containers || row.Resource == Ranges):
		return true // SDKs read these first, whatever their token is for
	case row.Resource == Containers:
		return false // a token never changes or deletes its container, see DESIGN.md
	}
	if p.Kind != "" {
		return row.Resource.Word() == p.Kind && r.ID != "" && r.ID == p.Child && r.alike(p) && (p.Key == nil || r.withinKey(p.Key))
	}
	if p.Key == nil {
		return true
	}
	switch {
	case row.Verb == QueryPlan:
		return true // a plan contains no data
	case row.Resource == Items, row.Resource == Conflicts, row.Resource == PartitionKeys, row.Verb == Execute:
		return r.withinKey(p.Key)
	}
	return false
}

// alike reports whether a request and a permission use an id in the same sense. An id in
// the form of a rid is taken as a rid only where the container is named by its rid too.
// Otherwise an item's name could be used as the rid of another item.
func (r *Request) alike(p *catalog.Permission) bool {
	return !catalog.IsRID(r.ID) || r.Container == p.Container
}

// withinKey reports whether the request's partition key equals the granted one or begins
// with it. A request never reaches items outside the partition key that it names.
func (r *Request) withinKey(granted value.PartitionKey) bool {
	if r.PartitionKey == "" {
		return false
	}
	k, err := value.ParsePartitionKey(r.PartitionKey)
	if err != nil {
		return false
	}
	if len(granted) == 0 || len(k) == 0 { // "none" is a partition key, and a prefix of no other
		return len(granted) == len(k)
	}
	return len(k) >= len(granted) && k[:len(granted)].Equal(granted)
}
