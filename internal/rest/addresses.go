// SPDX-License-Identifier: MIT

// Where clients in direct mode find partitions. A partition that this node owns is at this
// server, by the name that the client used. In a cluster, a partition of another node is at
// the address by which the nodes know that one.

package rest

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// addressesPath is where clients in direct mode look up addresses.
const addressesPath = "addresses"

// masterRange is the range id of the metadata, which is in no partition.
const masterRange = "M"

// maxAddressRanges bounds how many ranges a client may ask for at once. SDKs ask for 50.
const maxAddressRanges = 1024

// isAddresses reports whether a path is that of addresses. The .NET SDK sends two slashes.
func isAddresses(u *url.URL) bool { return strings.Trim(u.Path, "/") == addressesPath }

// serveAddresses answers with the addresses of partitions, or of the metadata.
func (x *exchange) serveAddresses() error {
	x.operation = opAddressResolve
	if connOf(x.r) == nil {
		if omitted, ok := x.h.directModes.Take(time.Now()); ok {
			x.h.logger.Warn("a client wants direct mode, which this server has not, since its program serves HTTP itself", "client", x.r.RemoteAddr,
				"remedy", "set gateway mode in the client: gatewayMode() in Java, ConnectionMode.Gateway in .NET; or let Server.Serve have the port", "omitted", omitted)
		}
		return errDirectMode // the handler is part of another server, which has no channels
	}
	if x.r.Method != http.MethodGet {
		return api.ErrMethod
	}
	resolveFor, ranges := addressQuery(x.r.URL.RawQuery)
	rt, ok := parseRoute(resolveFor)
	if !ok {
		return errNoRoute
	}
	g, err := x.h.authorize(x.r, &rt, x.came())
	if err != nil {
		return x.unauthenticated(err)
	}
	x.known = true
	// The addresses of a container's partitions are as open as their ranges, and those of
	// the metadata as open as the account.
	x.Row = api.Lookup(api.AccountResource, api.Read)
	if rt.container != "" {
		x.Row = api.Lookup(api.Ranges, api.List)
	}
	x.Request.Database, x.Request.Container = rt.database, rt.container
	if err := x.Admit(&g); err != nil {
		return err
	}
	if rt.container == "" {
		x.writeAddresses(catalog.ContainerRID{}, []located{{masterRange, x.ownHost()}})
		return nil
	}
	c, err := x.Service.Engine.Catalog().Container(rt.database, rt.container)
	if err != nil {
		return err
	}
	all, err := x.locate(c, ranges)
	if err != nil {
		return err
	}
	x.writeAddresses(c.RID, all)
	return nil
}

// located is a range, and the host and port at which it is served.
type located struct{ id, host string }

// addressQuery returns the resource and the ranges that a client asks for. A plus sign is
// one: rids contain them, and no SDK writes a space so.
func addressQuery(query string) (resolveFor string, ranges []string) {
	for part := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(part, "=")
		name, err1 := url.PathUnescape(name)
		text, err2 := url.PathUnescape(text)
		if err1 != nil || err2 != nil {
			continue
		}
		switch name {
		case "$resolveFor":
			resolveFor = text
		case "$partitionKeyRangeIds":
			ranges = strings.SplitN(text, ",", maxAddressRanges+1)
		}
	}
	return resolveFor, ranges[:min(len(ranges), maxAddressRanges)]
}

// locate returns where the ranges of a container are that were asked for, or all if none was.
// A client that asks for a range that does not exist gets no address for it, and reads the
// ranges again.
func (x *exchange) locate(c *catalog.Container, asked []string) (all []located, err error) {
	own := x.ownHost()
	for i := range c.Ranges {
		id, host := catalog.RangeID(c.Ranges[i].ID), own
		if asked != nil && !slices.Contains(asked, id) {
			continue
		}
		if x.h.cluster != nil {
			_, address, err := x.h.cluster.Owner(x.r.Context(), c, c.Ranges[i].ID)
			if err == nil && address != "" {
				host, err = hostPort(address)
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, located{id, host})
	}
	return all, nil
}

// ownHost returns the host and port by which the client reaches this server.
func (x *exchange) ownHost() string {
	host := x.address("")
	_, host, _ = strings.Cut(host, "://")
	if _, _, err := net.SplitHostPort(host); err != nil {
		port := "80"
		if x.secure() {
			port = "443"
		}
		host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	return host
}

// Parts of an address that clients echo and nothing reads.
const (
	addressApp     = "/apps/00000000-0000-0000-0000-000000000001"
	addressService = "/services/00000000-0000-0000-0000-000000000002"
)

// replicas are the roles that every partition's address has. Clients read with quorum from
// two replicas in one request if the account has one, and from one alone in two.
var replicas = []struct {
	primary string
	path    string
}{{"true", "/replicas/1p/"}, {"false", "/replicas/2s/"}}

// writeAddresses answers with the addresses of ranges.
func (x *exchange) writeAddresses(of catalog.ContainerRID, all []located) {
	var partition [value.GUIDChars]byte
	value.PutGUID(partition[:], uint64(of.Database)<<32|uint64(of.Container), 0)
	body := []byte(`{"_rid":"","Addresss":[`)
	for i, at := range all {
		for j, r := range replicas {
			if i+j > 0 {
				body = append(body, ',')
			}
			body = append(append(body, `{"isPrimary":`...), r.primary...)
			body = append(body, `,"protocol":"rntbd","partitionKeyRangeId":"`...)
			body = append(append(body, at.id...), `","partitionIndex":"`...)
			body = append(append(body, at.id...), `@0","physcialUri":`...)
			body = value.AppendString(body, "rntbd://"+at.host+addressApp+addressService+"/partitions/"+string(partition[:])+r.path)
			body = append(body, '}')
		}
	}
	body = strconv.AppendInt(append(body, `],"_count":`...), int64(len(all)*len(replicas)), 10)
	x.write(http.StatusOK, append(body, '}'))
}
