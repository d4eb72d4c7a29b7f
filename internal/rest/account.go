// SPDX-License-Identifier: MIT

// The account document: what a client reads first, to learn where to go.

package rest

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Account is what the server says of itself.
type Account struct {
	// Regions are the names of the regions that are advertised; at least one.
	Regions []string
	// Consistency is the default level.
	Consistency string
	// Advertise is the endpoint that clients are told to use; empty for the one
	// that they came by.
	Advertise string
}

// consistencyLevels are in order, the strongest first.
var consistencyLevels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

const accountID = "mayfly"

func (a *Account) check() error {
	if len(a.Regions) == 0 {
		return fmt.Errorf("no region is given")
	}
	if !slices.Contains(consistencyLevels, a.Consistency) {
		return fmt.Errorf("the consistency level %q is not one of %s", a.Consistency, strings.Join(consistencyLevels, ", "))
	}
	return nil
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
		return &badRequestError{"The requested consistency level '" + value.Clip(level) + "' is stronger than the account's, '" + a.Consistency + "'."}
	}
	return nil
}

func (x *exchange) serveAccount() error {
	if x.r.Method != http.MethodGet {
		return errMethod
	}
	endpoint := x.h.account.Advertise
	if endpoint == "" {
		endpoint = x.endpoint()
	}
	x.write(http.StatusOK, x.h.account.render(endpoint))
	return nil
}

// endpoint is the address by which the client came.
func (x *exchange) endpoint() string {
	scheme, host := "http", x.r.Host
	if x.r.TLS != nil {
		scheme = "https"
	}
	if host == "" { // HTTP/1.0 lets a client leave it out
		if a, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = a.String()
		}
	}
	return scheme + "://" + host + "/"
}

func (a *Account) render(endpoint string) []byte {
	// The first region is the one that is written to.
	writable, readable := location(nil, a.Regions[0], endpoint), []byte(nil)
	for i, region := range a.Regions {
		if i > 0 {
			readable = append(readable, ',')
		}
		readable = location(readable, region, endpoint)
	}
	return fmt.Appendf(nil, `{"id":"%s","_rid":"%s.mayfly","_self":"","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/",`+
		`"writableLocations":[%s],"readableLocations":[%s],`+
		`"enableMultipleWriteLocations":false,"continuousBackupEnabled":false,"enableNRegionSynchronousCommit":false,`+
		`"enablePerPartitionFailoverBehavior":false,"disableCrossRegionalHedging":false,`+
		`"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":"%s"},`+
		`"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":4},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},`+
		`"queryEngineConfiguration":%s}`,
		accountID, accountID, writable, readable, a.Consistency, value.AppendString(nil, queryEngine))
}

func location(dst []byte, region, endpoint string) []byte {
	dst = value.AppendString(append(dst, `{"name":`...), region)
	dst = value.AppendString(append(dst, `,"databaseAccountEndpoint":`...), endpoint)
	return append(dst, '}')
}

// queryEngine is JSON in a string, as .NET's native query engine wants it.
const queryEngine = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,` +
	`"queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,` +
	`"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,` +
	`"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,` +
	`"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}`
