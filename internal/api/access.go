// SPDX-License-Identifier: MIT

// What each kind of credential opens. A request is let in here, when it is known what it
// asks for and before anything is looked at on its behalf.

package api

import (
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

var (
	errMethod       = Refuse(405, 0, "The requested verb is not supported on this resource.")
	errForbidden    = Refuse(403, 0, "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another authorization header.")
	errNotDataPlane = Refuse(403, 5300, "The given request cannot be authorized by AAD token in data plane.")
	errPrincipal    = Refuse(403, 5301, "Request is blocked because the principal does not have the required permissions: it may only read.")
	errRegion       = Refuse(403, 3, "The requested operation cannot be performed at this region: it is only read. Write to the first of the account's writable locations.")
)

// Credential is a kind of proof that a request may be made.
type Credential int

// The credentials.
const (
	ByKey Credential = iota
	ByReadOnlyKey
	ByPrincipal
	ByReadOnlyPrincipal
	ByToken
)

// Grant is a credential that was verified. Whether it opens what is asked for is not
// said yet.
type Grant struct {
	By Credential
	// Permission is what a token is for, in the container with this number.
	Permission catalog.PermissionRID
	Container  uint32 // 0 for none
}

// Admit lets a request in, or says why not.
func (c *Call) Admit(g *Grant) error {
	row := c.Row
	if row == nil {
		return errMethod
	}
	if err := c.admit(row, g); err != nil {
		return err
	}
	if !row.Reads && !c.Service.Account.writable(c.Request.Host) {
		return errRegion
	}
	return c.Service.Account.admitConsistency(c.Request.Consistency)
}

func (c *Call) admit(row *Row, g *Grant) error {
	if row.Resource == AccountResource {
		return nil // every client begins with it
	}
	switch g.By {
	case ByKey:
		return nil
	case ByReadOnlyKey:
		// A permission's answer has a token in it, which may open more.
		if !row.Reads || row.Resource == Permissions {
			return errForbidden
		}
		return nil
	case ByPrincipal, ByReadOnlyPrincipal:
		switch {
		case !row.DataPlane:
			return errNotDataPlane
		case !row.Reads && g.By == ByReadOnlyPrincipal:
			return errPrincipal
		}
		return nil
	case ByToken:
		return c.admitToken(row, g)
	}
	return errForbidden
}

// admitToken lets in what the permission of a token allows, as it is now.
func (c *Call) admitToken(row *Row, g *Grant) error {
	r, known := &c.Request, c.Service.Engine.Catalog()
	p, err := known.Permission(g.Permission)
	if err != nil {
		return errForbidden // it was deleted
	}
	if r.Container == "" || g.Container == 0 {
		return errForbidden
	}
	granted, err := known.Granted(p)
	if err != nil || granted.RID.Container != g.Container {
		return errForbidden
	}
	if asked, err := known.Container(r.Database, r.Container); err != nil || asked.RID != granted.RID {
		return errForbidden
	}
	if !r.within(row, p) || !row.Reads && !p.All {
		return errForbidden
	}
	return nil
}

// within reports whether a request stays within what a permission is for. The
// request is about the permission's container.
func (r *Request) within(row *Row, p *catalog.Permission) bool {
	switch {
	case row.Reads && (row.Resource == Containers || row.Resource == Ranges):
		return true // SDKs read these before they do anything else, whatever they have a token for
	case row.Resource == Containers:
		return false // the container is its owner's, whatever may be done to what is in it
	}
	if p.Kind != "" {
		return row.Resource.Word() == p.Kind && r.ID != "" && r.ID == p.Child && r.alike(p) && (p.Key == nil || r.withinKey(p.Key))
	}
	if p.Key == nil {
		return true
	}
	switch {
	case row.Verb == QueryPlan:
		return true // it has no data in it
	case row.Resource == Items, row.Resource == Conflicts, row.Resource == PartitionKeys, row.Verb == Execute:
		return r.withinKey(p.Key)
	}
	return false
}

// alike reports whether a request and a permission mean the same by an id. One that
// has the form of a rid is one only where the container is named by its rid too, so
// that an item's name cannot be used as the rid of another.
func (r *Request) alike(p *catalog.Permission) bool {
	return !catalog.IsRID(r.ID) || r.Container == p.Container
}

// withinKey reports whether a request names a partition key that is, or begins with,
// the one given. What is done for it never leaves the key that it names.
func (r *Request) withinKey(granted value.PartitionKey) bool {
	if r.PartitionKey == "" {
		return false
	}
	k, err := value.ParsePartitionKey(r.PartitionKey)
	if err != nil {
		return false
	}
	if len(granted) == 0 || len(k) == 0 { // "none" is a key of its own
		return len(granted) == len(k)
	}
	return len(k) >= len(granted) && k[:len(granted)].Equal(granted)
}
