// SPDX-License-Identifier: MIT

// The account document, which a client reads first to learn the endpoints.

package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/value"
)

// Account is the server's description of itself.
type Account struct {
	// Regions are the names of the advertised regions, in the order in which clients fall
	// back on them; at least one. Writes go to the first. A name may be followed by an
	// endpoint, as in West US=http://localhost:8081/. Either all regions have one or none
	// has, unless Advertise is set. Requests by the endpoint of any region but the first
	// may only read, unless MultiWrite is set. The regions of a cluster, and whether all of
	// them take writes, are in its catalog, and Regions has that of this node.
	Regions []string
	// MultiWrite lets clients write in every region. All regions are one engine, so two
	// writes never conflict.
	MultiWrite bool
	// Consistency is the default level.
	Consistency string
	// Advertise is the endpoint that the account document names; empty for the endpoint
	// that the client used.
	Advertise string
	// ContinuousBackup says that older versions of items are kept for a while.
	ContinuousBackup bool

	given catalog.Regions // Regions and MultiWrite
}

// consistencyLevels are ordered from the strongest to the weakest.
var consistencyLevels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

const accountID = "mayfly"

// Check parses the regions and validates the settings.
func (a *Account) Check() error {
	if len(a.Regions) == 0 {
		return fmt.Errorf("there is no region")
	}
	a.given = catalog.Regions{MultiWrite: a.MultiWrite}
	for _, text := range a.Regions {
		r, err := catalog.ParseRegion(text)
		if err != nil {
			return err
		}
		a.given.List = append(a.given.List, r)
	}
	if a.given.Mixed() && a.Advertise == "" {
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

// Hosts returns the hosts of the regions that have an endpoint of their own.
func (a *Account) Hosts() (hosts []string) {
	for _, r := range a.given.List {
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	return hosts
}

// regions returns the regions of the account as they are now.
func (s *Service) regions() *catalog.Regions {
	if s.Engine != nil {
		if shared := s.Engine.Regions(); shared != nil {
			return shared
		}
	}
	return &s.Account.given
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
	return c.Answer.body(statusOK, account.render(c.Service.regions(), cmp.Or(account.Advertise, c.Request.Endpoint)))
}

// maxMediaMB is the service's quota of attachments. There are no attachments here.
const maxMediaMB = "10240"

func (a *Account) render(r *catalog.Regions, endpoint string) []byte {
	return fmt.Appendf(nil, `{"id":"%s","_rid":"%s.mayfly","_self":"","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/",`+
		`"writableLocations":[%s],"readableLocations":[%s],`+
		`"enableMultipleWriteLocations":%t,"continuousBackupEnabled":%t,"enableNRegionSynchronousCommit":false,`+
		`"enablePerPartitionFailoverBehavior":false,"disableCrossRegionalHedging":false,`+
		`"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":1,"maxReplicasetSize":1},`+
		`"userConsistencyPolicy":{"defaultConsistencyLevel":"%s"},`+
		`"systemReplicationPolicy":{"minReplicaSetSize":1,"maxReplicasetSize":1},`+
		`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},`+
		`"queryEngineConfiguration":%s}`,
		accountID, accountID, renderRegions(r.Writable(), endpoint), renderRegions(r.List, endpoint), r.MultiWrite, a.ContinuousBackup, a.Consistency, value.AppendString(nil, queryEngine))
}

// renderRegions returns regions, joined by commas. Those without an endpoint of their own get
// the given one.
func renderRegions(all []catalog.Region, endpoint string) (list []byte) {
	for i, r := range all {
		if i > 0 {
			list = append(list, ',')
		}
		list = value.AppendString(append(list, `{"name":`...), r.Name)
		list = value.AppendString(append(list, `,"databaseAccountEndpoint":`...), cmp.Or(r.Endpoint, endpoint))
		list = append(list, '}')
	}
	return list
}

// queryEngine is JSON in a string, as .NET's native query engine reads it.
const queryEngine = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":500,` +
	`"maxLogicalOrPerSqlQuery":500,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,` +
	`"queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,` +
	`"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,` +
	`"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,` +
	`"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}`
