// SPDX-License-Identifier: MIT

// Filling a request from a frame.

package direct

import (
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/rntbd"
)

// asked holds what only this protocol needs to tell requests apart, and what is checked
// once it is known that the request needs it.
type asked struct {
	payload, atomic, unknown bool
	latest                   bool // the read is to see the latest committed version
	authorization, date      string

	rid                        string // bytes
	item, user, permission     string
	procedure, function        string
	trigger, conflict, key     string
	collectionRID, intendedRID string

	match, changes, since string
	epkBytes              bool // the bounds of a feed are bytes, not their digits
	pageSize, tokenLimit  number
	tokenSeconds          number
}

// number is a number that may be missing.
type number struct {
	value uint32
	given bool
}

// resources are the types of resources that have requests.
var resources = map[rntbd.Resource]api.Resource{
	rntbd.Database: api.Databases, rntbd.Collection: api.Containers, rntbd.Document: api.Items, rntbd.User: api.Users,
	rntbd.Permission: api.Permissions, rntbd.StoredProcedure: api.Procedures, rntbd.Conflict: api.Conflicts, rntbd.Trigger: api.Triggers,
	rntbd.UserDefinedFunction: api.UDFs, rntbd.PartitionKeyRange: api.Ranges, rntbd.ClientEncryptionKey: api.EncryptionKeys,
}

// levels are the names of the consistency levels.
var levels = [...]string{
	rntbd.Strong: "Strong", rntbd.BoundedStaleness: "BoundedStaleness", rntbd.Session: "Session", rntbd.Eventual: "Eventual",
	rntbd.ConsistentPrefix: "ConsistentPrefix",
}

// fill takes the request's fields from its head and tokens. It refuses only what is no
// frame: a wrong value matters only to requests that need it.
func (x *exchange) fill(h *rntbd.RequestHead, tokens string) error {
	s := rntbd.Scan(tokens, rntbd.RequestTokens)
	for s.Next() {
		x.fillToken(&s)
	}
	if s.Err() != nil {
		return errTokens
	}
	r, a := &x.Request, &x.asked
	resource, known := resources[h.Resource]
	x.Activity, x.Method = "", h.Operation.Method()
	if !known || x.Method == "" {
		a.unknown = true
		return nil
	}
	r.Resource, r.CrossPartition = resource, true
	r.Verb = x.verb(h.Operation)
	if !x.address(h.Operation.OnFeed()) {
		a.unknown = true
	}
	if r.IntendedRID = a.intendedRID; r.IntendedRID == "" && r.Container != "" {
		r.IntendedRID = a.collectionRID
	}
	switch {
	case a.latest && r.Consistency == levels[rntbd.BoundedStaleness]:
		r.Consistency = "" // an account of any level has such reads
	case !perItem(resource):
		r.Consistency = "" // clients read metadata with Strong, whatever the account's level is
	}
	switch h.Operation {
	case rntbd.Read, rntbd.ReadFeed:
		r.IfNoneMatch = a.match
	default:
		r.IfMatch = a.match
	}
	x.Row = api.Lookup(r.Resource, r.Verb)
	return nil
}

// perItem reports whether requests for a resource go to the partitions of a container.
func perItem(r api.Resource) bool {
	switch r {
	case api.Items, api.Procedures, api.Conflicts:
		return true
	}
	return false
}

// fillToken stores one token.
func (x *exchange) fillToken(s *rntbd.Scanner) {
	r, a := &x.Request, &x.asked
	switch s.ID {
	case rntbd.RequestTransportRequestID:
		x.transport = s.Uint32()
	case rntbd.RequestPayloadPresent:
		a.payload = s.Flag()
	case rntbd.RequestAuthorizationToken:
		a.authorization = s.Text()
	case rntbd.RequestDate:
		a.date = s.Text()
	case rntbd.RequestPartitionKey:
		r.PartitionKey = s.Text()
	case rntbd.RequestPartitionKeyRangeID:
		r.Range = s.Text()
	case rntbd.RequestSessionToken:
		r.SessionToken = s.Text()
	case rntbd.RequestMatch:
		a.match = s.Text()
	case rntbd.RequestContinuationToken:
		r.Continuation = s.Text()
	case rntbd.RequestPageSize:
		a.pageSize = number{s.Uint32(), true}
	case rntbd.RequestResponseContinuationTokenLimitInKB:
		a.tokenLimit = number{s.Uint32(), true}
	case rntbd.RequestResourceTokenExpiry:
		a.tokenSeconds = number{s.Uint32(), true}
	case rntbd.RequestPreTriggerInclude:
		r.PreTriggers = s.Text()
	case rntbd.RequestPostTriggerInclude:
		r.PostTriggers = s.Text()
	case rntbd.RequestConsistencyLevel:
		if level := int(s.Byte()); level < len(levels) {
			r.Consistency = levels[level]
		} else {
			r.Consistency = strconv.Itoa(level) // refused if it matters
		}
	case rntbd.RequestAIM:
		a.changes = s.Text()
	case rntbd.RequestIfModifiedSince:
		a.since = s.Text()
	case rntbd.RequestStartEpk:
		r.StartEPK = s.Text()
	case rntbd.RequestEndEpk:
		r.EndEPK = s.Text()
	case rntbd.RequestClientVersion:
		r.Version = s.Text()
	case rntbd.RequestSupportedQueryFeatures:
		r.Features = s.Text()
	default:
		x.fillName(s)
	}
}

// fillName stores a token with a name.
func (x *exchange) fillName(s *rntbd.Scanner) {
	r, a := &x.Request, &x.asked
	switch s.ID {
	case rntbd.RequestResourceID:
		a.rid = s.Text()
	case rntbd.RequestDatabaseName:
		r.Database = s.Text()
	case rntbd.RequestCollectionName:
		r.Container = s.Text()
	case rntbd.RequestDocumentName:
		a.item = s.Text()
	case rntbd.RequestUserName:
		a.user = s.Text()
	case rntbd.RequestPermissionName:
		a.permission = s.Text()
	case rntbd.RequestStoredProcedureName:
		a.procedure = s.Text()
	case rntbd.RequestUserDefinedFunctionName:
		a.function = s.Text()
	case rntbd.RequestTriggerName:
		a.trigger = s.Text()
	case rntbd.RequestConflictName:
		a.conflict = s.Text()
	case rntbd.RequestClientEncryptionKeyName:
		a.key = s.Text()
	case rntbd.RequestCollectionRID:
		a.collectionRID = s.Text()
	case rntbd.RequestIntendedCollectionRID:
		a.intendedRID = s.Text()
	case rntbd.RequestChangeFeedWireFormatVersion:
		r.Wrapped = s.Text() != ""
	default:
		x.fillFlag(s)
	}
}

// fillFlag stores a token of one byte that is mostly 0 or 1.
func (x *exchange) fillFlag(s *rntbd.Scanner) {
	r, a := &x.Request, &x.asked
	switch s.ID {
	case rntbd.RequestIsBatchAtomic:
		a.atomic = s.Flag()
	case rntbd.RequestShouldBatchContinueOnError:
		r.ContinueOnError = s.Flag()
	case rntbd.RequestReturnPreference:
		r.Minimal = s.Byte() == rntbd.ReturnMinimal
	case rntbd.RequestPopulateQueryMetrics:
		r.QueryMetrics = s.Flag()
	case rntbd.RequestPopulateIndexMetrics:
		r.IndexMetrics = s.Flag()
	case rntbd.RequestPopulateIndexMetricsV2:
		r.IndexMetricsV2 = s.Flag()
	case rntbd.RequestOptimisticDirectExecute:
		r.Optimistic = s.Flag()
	case rntbd.RequestExcludeSystemProperties:
		r.PlainItem = s.Flag()
	case rntbd.RequestEnableLogging:
		r.ScriptLog = s.Flag()
	case rntbd.RequestPopulateQuotaInfo:
		r.QuotaInfo = s.Flag()
	case rntbd.RequestPopulatePartitionStatistics:
		r.Statistics = s.Flag()
	case rntbd.RequestPopulateAnalyticalMigrationProgress:
		r.AnalyticalProgress = s.Flag()
	case rntbd.RequestSupportedSerializationFormats:
		r.BinaryAnswer = s.Byte()&(rntbd.AcceptsText|rntbd.AcceptsBinary) == rntbd.AcceptsBinary
	case rntbd.RequestReadConsistencyStrategy:
		a.latest = s.Byte() == rntbd.ReadLatestCommitted
	case rntbd.RequestReadFeedKeyType:
		a.epkBytes = s.Byte() == rntbd.ByEffectivePartitionKey
	}
}

// verb returns what an operation does.
func (x *exchange) verb(op rntbd.Operation) api.Verb {
	switch op {
	case rntbd.Create:
		return api.Create
	case rntbd.Upsert:
		return api.Upsert
	case rntbd.Read:
		return api.Read
	case rntbd.Replace:
		return api.Replace
	case rntbd.Patch:
		return api.Patch
	case rntbd.Delete:
		return api.Delete
	case rntbd.ExecuteJavaScript:
		return api.Execute
	case rntbd.Query, rntbd.SQLQuery:
		return api.Query
	case rntbd.QueryPlan:
		return api.QueryPlan
	case rntbd.Batch:
		if x.asked.atomic {
			return api.Batch
		}
		return api.Bulk
	case rntbd.ReadFeed:
		if x.Request.Resource == api.Items && x.asked.changes != "" {
			return api.Changes
		}
		return api.List
	case rntbd.Head, rntbd.HeadFeed: // a barrier: the client waits for a position
		return api.Position
	}
	return api.None
}

// address names the request's target, and its path, which a signature covers: that of the
// resource, or of the owner of the list.
func (x *exchange) address(feed bool) bool {
	r, a := &x.Request, &x.asked
	if r.Database == "" && a.rid != "" && !x.addressRID(feed) {
		return false
	}
	var path [256]byte
	link := path[:0]
	if r.Resource != api.Databases || !feed {
		if link = append(link, "dbs/"...); r.Database == "" {
			return false
		}
		link = append(link, r.Database...)
	}
	switch r.Resource {
	case api.Databases:
		r.ID, x.Path = r.Database, string(link)
		return true
	case api.Permissions:
		r.User = a.user
		link = append(append(link, "/users/"...), a.user...)
	case api.Containers, api.Users, api.EncryptionKeys:
	default:
		link = append(append(link, "/colls/"...), r.Container...)
	}
	if feed {
		x.Path = string(link)
		return true
	}
	r.ID = x.name()
	link = append(append(append(link, '/'), r.Resource.Word()...), '/')
	x.Path = string(append(link, r.ID...))
	return r.ID != ""
}

// name returns the name of the resource below a database or container.
func (x *exchange) name() string {
	a := &x.asked
	switch x.Request.Resource {
	case api.Containers:
		return x.Request.Container
	case api.Items:
		return a.item
	case api.Users:
		return a.user
	case api.Permissions:
		return a.permission
	case api.Procedures:
		return a.procedure
	case api.UDFs:
		return a.function
	case api.Triggers:
		return a.trigger
	case api.Conflicts:
		return a.conflict
	case api.EncryptionKeys:
		return a.key
	}
	return ""
}

// Lengths of rids: of a database, of a container or user in it, and of a resource in that.
const (
	databaseRID = 4
	ownerRID    = 8
	childRID    = 16
)

// addressRID names the target by rids, which begin with those of their owners.
func (x *exchange) addressRID(feed bool) bool {
	r, a := &x.Request, &x.asked
	rid := a.rid
	if len(rid) < databaseRID {
		return false
	}
	r.Database = catalog.RIDText(rid[:databaseRID])
	if len(rid) < ownerRID {
		return r.Resource == api.Databases || feed
	}
	owner := catalog.RIDText(rid[:ownerRID])
	switch r.Resource {
	case api.Users:
		a.user = owner
		return true
	case api.Permissions:
		a.user = owner
	default:
		r.Container = owner
	}
	if len(rid) < childRID {
		return r.Resource == api.Containers || feed
	}
	child := catalog.RIDText(rid[:childRID])
	a.item, a.permission, a.procedure, a.function, a.trigger, a.conflict = child, child, child, child, child, child
	return true
}

// parse checks what the request's row needs.
func (x *exchange) parse() error {
	r, a := &x.Request, &x.asked
	if a.pageSize.given {
		switch r.Verb {
		case api.List, api.Changes, api.Query:
			if a.pageSize.value == rntbd.AllItems {
				r.SetMaxItems(-1)
			} else {
				r.SetMaxItems(int(a.pageSize.value))
			}
		}
	}
	if a.epkBytes {
		r.StartEPK, r.EndEPK = hexText(r.StartEPK), hexText(r.EndEPK)
	}
	switch {
	case r.Verb == api.Query && r.Resource == api.Items && a.tokenLimit.given:
		return r.SetContinuationLimit(int(a.tokenLimit.value))
	case r.Verb == api.Changes:
		return r.SetFeed(a.changes, a.since)
	case r.Resource == api.Permissions:
		seconds := number{api.DefaultTokenSeconds, true}
		if a.tokenSeconds.given {
			seconds = a.tokenSeconds
		}
		return r.SetTokenSeconds(int(seconds.value), strconv.FormatUint(uint64(seconds.value), 10), time.Now())
	}
	return nil
}

// hexText returns bytes in hexadecimal, as bounds of effective partition keys are written.
func hexText(bytes string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(bytes) {
		b.WriteByte(digits[bytes[i]>>4])
		b.WriteByte(digits[bytes[i]&0xf])
	}
	return b.String()
}
