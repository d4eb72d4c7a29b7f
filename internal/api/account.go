// SPDX-License-Identifier: MIT

// The account document: what a client reads first, to learn where to go.

package api

import (
	"cmp"
	"fmt"
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

// Check reads the regions, and says what is wrong.
func (a *Account) Check() error {
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

// Hosts are those of the endpoints that regions have of their own.
func (a *Account) Hosts() (hosts []string) {
	for _, l := range a.locations {
		if l.host != "" {
			hosts = append(hosts, l.host)
		}
	}
	return hosts
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
		return Invalid("The consistency level '" + value.Clip(level) + "' is invalid. Ensure to provide one of " + strings.Join(consistencyLevels, ", ") + ".")
	}
	if asked < slices.Index(consistencyLevels, a.Consistency) {
		return Invalid("ConsistencyLevel " + consistencyLevels[asked] + " specified in the request is invalid when service is configured with consistency level " +
			a.Consistency + ". Ensure the request consistency level is not stronger than the service consistency level.")
	}
	return nil
}

// readAccount answers with what the server says of itself.
func (c *Call) readAccount() error {
	account := c.Service.Account
	c.Answer.Located = true
	c.Answer.extra(MaxMediaMB, maxMediaMB)
	c.Answer.extra(MediaMB, "0")
	return c.Answer.body(statusOK, account.render(cmp.Or(account.Advertise, c.Request.Endpoint)))
}

// maxMediaMB is the quota of attachments that every account is told. There are none.
const maxMediaMB = "10240"

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
