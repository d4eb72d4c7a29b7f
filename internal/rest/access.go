// SPDX-License-Identifier: MIT

// What each kind of credential opens. A request is let in here, after its path is
// read and before anything is looked at on its behalf.

package rest

import (
	"errors"
	"net/http"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

var (
	errForbidden    = errors.New("the credential does not open this")
	errTokenExpired = errors.New("the resource token has expired")
	errNotDataPlane = errors.New("a principal may not do this in the data plane")
	errPrincipal    = errors.New("the principal may only read")
)

// credential is a kind of proof that a request may be made.
type credential int

const (
	byKey credential = iota
	byReadOnlyKey
	byPrincipal
	byReadOnlyPrincipal
	byToken
)

// grant is a credential that was verified. Whether it opens what is asked for is not
// said yet.
type grant struct {
	by    credential
	token token // with byToken
}

// need is what a request does to what it is about.
type need int

const (
	toChange need = iota
	toRead
)

// need tells whether a request only looks. What dispatches a request must agree:
// nothing that is called a read here may change anything.
func (x *exchange) need(rt *route) need {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		return toRead
	case http.MethodPost:
		if rt.feed && (x.isQuery() || x.isQueryPlan(rt)) {
			return toRead
		}
	}
	return toChange
}

// isQueryPlan reports whether a POST asks how a query would be run.
func (x *exchange) isQueryPlan(rt *route) bool {
	return rt.kind == typeItems && x.flag("X-Ms-Cosmos-Is-Query-Plan-Request")
}

// admit lets a request in, or says why not.
func (x *exchange) admit(rt *route, g *grant) error {
	n := x.need(rt)
	if rt.kind == typeAccount && n == toRead {
		return nil // every client begins with it
	}
	switch g.by {
	case byKey:
		return nil
	case byReadOnlyKey:
		// A permission's answer has a token in it, which may open more.
		if n != toRead || rt.kind == typePermissions {
			return errForbidden
		}
		return nil
	case byPrincipal, byReadOnlyPrincipal:
		switch {
		case !dataPlane(x.r.Method, rt, n):
			return errNotDataPlane
		case n != toRead && g.by == byReadOnlyPrincipal:
			return errPrincipal
		}
		return nil
	case byToken:
		return x.admitToken(rt, &g.token, n)
	}
	return errForbidden
}

// dataPlane reports whether a principal can have a right to do this at all: the
// service knows rights to items, to run stored procedures and to read what there
// is. Everything else wants a key.
func dataPlane(method string, rt *route, n need) bool {
	switch rt.kind {
	case typeItems:
		return true
	case typeConflicts:
		return n == toRead || method == http.MethodDelete
	case typeDatabases, typeRanges, typeEncryptionKeys:
		return n == toRead
	case typeContainers:
		return n == toRead || rt.operation == operationDeleteKey
	case typeProcedures:
		return executes(method, rt)
	}
	return false
}

// executes reports whether a request runs a stored procedure.
func executes(method string, rt *route) bool {
	return rt.kind == typeProcedures && !rt.feed && method == http.MethodPost
}

// admitToken lets in what the permission of a token allows, as it is now.
func (x *exchange) admitToken(rt *route, t *token, n need) error {
	p, err := x.h.engine.Catalog().Permission(t.permission)
	if err != nil {
		return errForbidden // it was deleted
	}
	if rt.container == "" || t.container == 0 {
		return errForbidden
	}
	granted, err := x.h.engine.Catalog().Granted(p)
	if err != nil || granted.RID.Container != t.container {
		return errForbidden
	}
	if c, err := x.h.engine.Catalog().Container(rt.database, rt.container); err != nil || c.RID != granted.RID {
		return errForbidden
	}
	if !x.within(rt, p, n) || n != toRead && !p.All {
		return errForbidden
	}
	return nil
}

// within reports whether a request stays within what a permission is for. The
// request is about the permission's container.
func (x *exchange) within(rt *route, p *catalog.Permission, n need) bool {
	switch itself := rt.kind == typeContainers && rt.operation == ""; {
	case n == toRead && (itself || rt.kind == typeRanges):
		return true // SDKs read these before they do anything else, whatever they have a token for
	case itself:
		return false // the container is its owner's, whatever may be done to what is in it
	}
	if p.Kind != "" {
		return rt.kind == p.Kind && !rt.feed && rt.id == p.Child && alike(rt, p) && (p.Key == nil || x.withinKey(p.Key))
	}
	if p.Key == nil {
		return true
	}
	switch {
	case n == toRead && x.isQueryPlan(rt):
		return true // it has no data in it
	case rt.kind == typeItems, rt.kind == typeConflicts, rt.operation == operationDeleteKey, executes(x.r.Method, rt):
		return x.withinKey(p.Key)
	}
	return false
}

// alike reports whether a request and a permission mean the same by an id. One that
// has the form of a rid is one only where the container is named by its rid too, so
// that an item's name cannot be used as the rid of another.
func alike(rt *route, p *catalog.Permission) bool {
	return !catalog.IsRID(rt.id) || rt.container == p.Container
}

// withinKey reports whether a request names a partition key that is, or begins with,
// the one given. What is done for it never leaves the key that its header names.
func (x *exchange) withinKey(granted value.PartitionKey) bool {
	header := x.header(headerPartitionKey)
	if header == "" {
		return false
	}
	k, err := value.ParsePartitionKey(header)
	if err != nil {
		return false
	}
	if len(granted) == 0 || len(k) == 0 { // "none" is a key of its own
		return len(granted) == len(k)
	}
	return len(k) >= len(granted) && k[:len(granted)].Equal(granted)
}
