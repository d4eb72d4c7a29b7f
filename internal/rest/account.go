// SPDX-License-Identifier: MIT

// The account document: what a client reads first, to learn where to go.

package rest

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Account is what the server says of itself.
type Account struct {
	// Regions are the names of the regions that are advertised, in the order in which
	// clients fall back on them; at least one. The first is the one that is written
	// to. A name may have an endpoint behind it, as in West US=http://localhost:8081/:
	// then all have, unless there is one to advertise, and what comes by the endpoint
	// of another region than the first may only read.
	Regions []string
	// Consistency is the default level.
	Consistency string
	// Advertise is the endpoint that clients are told to use; empty for the one
	// that they came by.
	Advertise string
	// ContinuousBackup says that all versions of items are kept for a while.
	ContinuousBackup bool

	locations []location // of Regions
}

// location is a region as clients are told of it.
type location struct {
	name string
	// endpoint and the host in it are empty for where the client came by.
	endpoint, host string
}

// consistencyLevels are in order, the strongest first.
var consistencyLevels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

const accountID = "mayfly"

func (a *Account) check() error {
	if len(a.Regions) == 0 {
		return fmt.Errorf("no region is given")
	}
	var ownEndpoints int
	a.locations = nil
	for _, text := range a.Regions {
		l, err := parseLocation(text)
		if err != nil {
			return err
		}
		if l.endpoint != "" {
			ownEndpoints++
		}
		a.locations = append(a.locations, l)
	}
	if ownEndpoints > 0 && ownEndpoints < len(a.Regions) && a.Advertise == "" {
		return fmt.Errorf("some regions have an endpoint and others have none: give all of them one, or say what to advertise")
	}
	if !slices.Contains(consistencyLevels, a.Consistency) {
		return fmt.Errorf("the consistency level %q is not one of %s", a.Consistency, strings.Join(consistencyLevels, ", "))
	}
	return nil
}

func parseLocation(text string) (location, error) {
	name, endpoint, given := strings.Cut(text, "=")
	l := location{name: strings.TrimSpace(name)}
	if l.name == "" {
		return l, fmt.Errorf("the region %q has no name", text)
	}
	if !given {
		return l, nil
	}
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return l, fmt.Errorf("the endpoint of the region %q is not of the form http://host:port/", text)
	}
	l.endpoint, l.host = u.Scheme+"://"+u.Host+"/", u.Host
	return l, nil
}

// writable reports whether a client that came by a host may write: not by that of a
// region which is only read.
func (a *Account) writable(host string) bool {
	for _, l := range a.locations {
		if l.host != "" && strings.EqualFold(l.host, host) {
			return l.name == a.locations[0].name
		}
	}
	return true
}

// admitConsistency refuses a level that is none, or stronger than the account's.
func (a *Account) admitConsistency(level string) error {
	if level == "" {
		return nil
	}
	asked := slices.IndexFunc(consistencyLevels, func(l string) bool { return strings.EqualFold(l, level) })
	if asked < 0 {
		return &badRequestError{"The consistency level '" + value.Clip(level) + "' is invalid. Ensure to provide one of " + strings.Join(consistencyLevels, ", ") + "."}
	}
	if asked < slices.Index(consistencyLevels, a.Consistency) {
		return &badRequestError{"ConsistencyLevel " + consistencyLevels[asked] + " specified in the request is invalid when service is configured with consistency level " +
			a.Consistency + ". Ensure the request consistency level is not stronger than the service consistency level."}
	}
	return nil
}

func (x *exchange) serveAccount() error {
	if x.r.Method != http.MethodGet {
		return errMethod
	}
	x.setLocation()
	x.set("X-Ms-Max-Media-Storage-Usage-Mb", maxMediaMB)
	x.set("X-Ms-Media-Storage-Usage-Mb", "0")
	x.write(http.StatusOK, x.h.account.render(cmp.Or(x.h.account.Advertise, x.address("/"))))
	return nil
}

// maxMediaMB is the quota of attachments that every account is told. There are none.
const maxMediaMB = "10240"

// setLocation tells the address of what is answered: of the account, of what it keeps
// of itself, and of an item that is read.
func (x *exchange) setLocation() {
	x.located = true
	x.set("Content-Location", x.address(x.r.URL.EscapedPath()))
}

// address is that of a path, with the scheme and the host by which the client came.
func (x *exchange) address(path string) string {
	scheme, host := "http", x.r.Host
	if x.r.TLS != nil {
		scheme = "https"
	}
	if host == "" { // HTTP/1.0 lets a client leave it out
		if a, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = a.String()
		}
	}
	return scheme + "://" + host + path
}

func (a *Account) render(endpoint string) []byte {
	writable, readable := a.locations[0].append(nil, endpoint), []byte(nil)
	for i, l := range a.locations {
		if i > 0 {
			readable = append(readable, ',')
		}
		readable = l.append(readable, endpoint)
	}
	return fmt.Appendf(nil, `{"id":"%s","_rid":"%s.mayfly","_self":"","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/",`+
		`"writableLocations":[%s],"readableLocations":[%s],`+
		`"enableMultipleWriteLocations":false,"continuousBackupEnabled":%t,"enableNRegionSynchronousCommit":false,`+
		`"enablePerPartitionFailoverBehavior":false,"disableCrossRegionalHedging":false,`+
		`"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":"%s"},`+
		`"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},`+
		`"queryEngineConfiguration":%s}`,
		accountID, accountID, writable, readable, a.ContinuousBackup, a.Consistency, value.AppendString(nil, queryEngine))
}

func (l location) append(dst []byte, otherwise string) []byte {
	dst = value.AppendString(append(dst, `{"name":`...), l.name)
	dst = value.AppendString(append(dst, `,"databaseAccountEndpoint":`...), cmp.Or(l.endpoint, otherwise))
	return append(dst, '}')
}

// queryEngine is JSON in a string, as .NET's native query engine wants it.
const queryEngine = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,` +
	`"queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,` +
	`"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,` +
	`"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,` +
	`"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}`
