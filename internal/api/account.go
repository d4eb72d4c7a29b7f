// SPDX-License-Identifier: MIT

// The account document, which a client reads first to learn the endpoints.

package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Account is the server's description of itself.
type Account struct {
	// Regions are the names of the advertised regions, in the order in which clients fall
	// back on them; at least one. Writes go to the first. A name may be followed by an
	// endpoint, as in West US=http://localhost:8081/. Either all regions have one or none
	// has, unless Advertise is set. Requests by the endpoint of any region but the first
	// may only read, unless MultiWrite is set.
	Regions []string
	// MultiWrite lets clients write in every region. All regions are this one engine, so
	// two writes never conflict.
	MultiWrite bool
	// Consistency is the default level.
	Consistency string
	// Advertise is the endpoint that the account document names; empty for the endpoint
	// that the client used.
	Advertise string
	// ContinuousBackup says that older versions of items are kept for a while.
	ContinuousBackup bool

	locations []location // of Regions
}

// location is a region of the account document.
type location struct {
	name string
	// endpoint and its host are empty if the region has no endpoint of its own.
	endpoint, host string
}

// consistencyLevels are ordered from the strongest to the weakest.
var consistencyLevels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

const accountID = "mayfly"

// Check parses the regions and validates the settings.
func (a *Account) Check() error {
	if len(a.Regions) == 0 {
		return fmt.Errorf("there is no region")
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
		return fmt.Errorf("some regions have an endpoint and others have none: give all of them one, or set the endpoint to advertise")
	}
	if !slices.Contains(consistencyLevels, a.Consistency) {
		return fmt.Errorf("the consistency level %q is not one of %s", a.Consistency, strings.Join(consistencyLevels, ", "))
	}
	if a.MultiWrite && a.Consistency == "Strong" {
		return fmt.Errorf("an account that is written to in several regions cannot have the consistency level Strong, as in the service: choose BoundedStaleness or a weaker one")
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

// Hosts returns the hosts of the regions that have an endpoint of their own.
func (a *Account) Hosts() (hosts []string) {
	for _, l := range a.locations {
		if l.host != "" {
			hosts = append(hosts, l.host)
		}
	}
	return hosts
}

// writeLocations returns the regions that take writes.
func (a *Account) writeLocations() []location {
	if a.MultiWrite {
		return a.locations
	}
	return a.locations[:1]
}

// writable reports whether a client that used this host may write. It may not if the host
// is the endpoint of a region that takes no writes.
func (a *Account) writable(host string) bool {
	for _, l := range a.locations {
		if l.host != "" && strings.EqualFold(l.host, host) {
			return slices.ContainsFunc(a.writeLocations(), func(w location) bool { return w.name == l.name })
		}
	}
	return true
}

// admitConsistency refuses a level that is unknown, or stronger than the account's.
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

// readAccount answers with the account document.
func (c *Call) readAccount() error {
	account := c.Service.Account
	c.Answer.Located = true
	c.Answer.extra(MaxMediaMB, maxMediaMB)
	c.Answer.extra(MediaMB, "0")
	return c.Answer.body(statusOK, account.render(cmp.Or(account.Advertise, c.Request.Endpoint)))
}

// maxMediaMB is the service's quota of attachments. There are no attachments here.
const maxMediaMB = "10240"

func (a *Account) render(endpoint string) []byte {
	return fmt.Appendf(nil, `{"id":"%s","_rid":"%s.mayfly","_self":"","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/",`+
		`"writableLocations":[%s],"readableLocations":[%s],`+
		`"enableMultipleWriteLocations":%t,"continuousBackupEnabled":%t,"enableNRegionSynchronousCommit":false,`+
		`"enablePerPartitionFailoverBehavior":false,"disableCrossRegionalHedging":false,`+
		`"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":1},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":"%s"},`+
		`"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":1},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},`+
		`"queryEngineConfiguration":%s}`,
		accountID, accountID, renderLocations(a.writeLocations(), endpoint), renderLocations(a.locations, endpoint), a.MultiWrite, a.ContinuousBackup, a.Consistency, value.AppendString(nil, queryEngine))
}

// renderLocations returns the locations, joined by commas. Those without an endpoint of
// their own get the given one.
func renderLocations(all []location, endpoint string) (list []byte) {
	for i, l := range all {
		if i > 0 {
			list = append(list, ',')
		}
		list = l.append(list, endpoint)
	}
	return list
}

func (l location) append(dst []byte, otherwise string) []byte {
	dst = value.AppendString(append(dst, `{"name":`...), l.name)
	dst = value.AppendString(append(dst, `,"databaseAccountEndpoint":`...), cmp.Or(l.endpoint, otherwise))
	return append(dst, '}')
}

// queryEngine is JSON in a string, as .NET's native query engine reads it.
const queryEngine = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,` +
	`"queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,` +
	`"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,` +
	`"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,` +
	`"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}`
