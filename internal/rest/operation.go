// SPDX-License-Identifier: MIT

// What requests ask for, as the metrics name it.

package rest

import (
	"cmp"
	"net/http"
)

// operation is what a request asks for, as a metric's label tells it.
type operation int

// The operations. The first is of a request that addresses nothing, or is refused
// before it is known what it addresses.
const (
	opUnknown operation = iota
	opAdmin
	opAccountRead
	opDatabaseCreate
	opDatabaseRead
	opDatabaseDelete
	opDatabaseList
	opDatabaseQuery
	opContainerCreate
	opContainerRead
	opContainerReplace
	opContainerDelete
	opContainerList
	opContainerQuery
	opItemCreate
	opItemUpsert
	opItemRead
	opItemReplace
	opItemPatch
	opItemDelete
	opItemList
	opItemQuery
	opItemQueryPlan
	opItemBatch
	opItemBulk
	opItemChanges
	opPartitionKeyDelete
	opRangeList
	opOfferRead
	opOfferReplace
	opOfferList
	opOfferQuery
	opUDFCreate
	opUDFRead
	opUDFReplace
	opUDFDelete
	opUDFList
	opUDFQuery
	opProcedureCreate
	opProcedureRead
	opProcedureReplace
	opProcedureDelete
	opProcedureList
	opProcedureQuery
	opProcedureExecute
	opTriggerCreate
	opTriggerRead
	opTriggerReplace
	opTriggerDelete
	opTriggerList
	opTriggerQuery
	opUserCreate
	opUserUpsert
	opUserRead
	opUserReplace
	opUserDelete
	opUserList
	opUserQuery
	opPermissionCreate
	opPermissionUpsert
	opPermissionRead
	opPermissionReplace
	opPermissionDelete
	opPermissionList
	opPermissionQuery
	opEncryptionKeyCreate
	opEncryptionKeyRead
	opEncryptionKeyReplace
	opEncryptionKeyList
	opEncryptionKeyQuery
	opConflictRead
	opConflictDelete
	opConflictList
	opConflictQuery
	opAddressResolve
	// opOther is what no resource of the type can be asked for.
	opOther

	operations
)

var operationNames = [operations]string{
	"unknown", "admin", "account_read",
	"database_create", "database_read", "database_delete", "database_list", "database_query",
	"container_create", "container_read", "container_replace", "container_delete", "container_list", "container_query",
	"item_create", "item_upsert", "item_read", "item_replace", "item_patch", "item_delete", "item_list", "item_query", "item_query_plan",
	"item_batch", "item_bulk", "item_changes", "partition_key_delete",
	"range_list", "offer_read", "offer_replace", "offer_list", "offer_query",
	"udf_create", "udf_read", "udf_replace", "udf_delete", "udf_list", "udf_query",
	"procedure_create", "procedure_read", "procedure_replace", "procedure_delete", "procedure_list", "procedure_query", "procedure_execute",
	"trigger_create", "trigger_read", "trigger_replace", "trigger_delete", "trigger_list", "trigger_query",
	"user_create", "user_upsert", "user_read", "user_replace", "user_delete", "user_list", "user_query",
	"permission_create", "permission_upsert", "permission_read", "permission_replace", "permission_delete", "permission_list", "permission_query",
	"encryption_key_create", "encryption_key_read", "encryption_key_replace", "encryption_key_list", "encryption_key_query",
	"conflict_read", "conflict_delete", "conflict_list", "conflict_query", "address_resolve",
	"other",
}

// verbs are the operations on one resource type; those that it has not are 0. Without
// an upsert of its own a type takes that for a create.
type verbs struct {
	create, upsert, read, replace, patch, remove, list, query operation
}

var verbsOf = map[string]verbs{
	typeAccount:   {read: opAccountRead},
	typeDatabases: {create: opDatabaseCreate, read: opDatabaseRead, remove: opDatabaseDelete, list: opDatabaseList, query: opDatabaseQuery},
	typeContainers: {
		create: opContainerCreate, read: opContainerRead, replace: opContainerReplace, remove: opContainerDelete,
		list: opContainerList, query: opContainerQuery,
	},
	typeItems: {
		create: opItemCreate, upsert: opItemUpsert, read: opItemRead, replace: opItemReplace, patch: opItemPatch, remove: opItemDelete,
		list: opItemList, query: opItemQuery,
	},
	typeRanges: {list: opRangeList},
	typeOffers: {read: opOfferRead, replace: opOfferReplace, list: opOfferList, query: opOfferQuery},
	typeUDFs: {
		create: opUDFCreate, read: opUDFRead, replace: opUDFReplace, remove: opUDFDelete, list: opUDFList, query: opUDFQuery,
	},
	typeProcedures: {
		create: opProcedureCreate, read: opProcedureRead, replace: opProcedureReplace, remove: opProcedureDelete,
		list: opProcedureList, query: opProcedureQuery,
	},
	typeTriggers: {
		create: opTriggerCreate, read: opTriggerRead, replace: opTriggerReplace, remove: opTriggerDelete,
		list: opTriggerList, query: opTriggerQuery,
	},
	typeUsers: {
		create: opUserCreate, upsert: opUserUpsert, read: opUserRead, replace: opUserReplace, remove: opUserDelete,
		list: opUserList, query: opUserQuery,
	},
	typePermissions: {
		create: opPermissionCreate, upsert: opPermissionUpsert, read: opPermissionRead, replace: opPermissionReplace, remove: opPermissionDelete,
		list: opPermissionList, query: opPermissionQuery,
	},
	typeEncryptionKeys: {
		create: opEncryptionKeyCreate, read: opEncryptionKeyRead, replace: opEncryptionKeyReplace,
		list: opEncryptionKeyList, query: opEncryptionKeyQuery,
	},
	typeConflicts: {read: opConflictRead, remove: opConflictDelete, list: opConflictList, query: opConflictQuery},
}

// operationOf tells what a request asks for.
func (x *exchange) operationOf(rt *route) operation {
	v, method := verbsOf[rt.kind], x.r.Method
	asked := opOther
	switch {
	case rt.operation != "":
		if method == http.MethodPost {
			asked = opPartitionKeyDelete
		}
	case rt.feed && method == http.MethodGet:
		asked = v.list
	case rt.feed && method == http.MethodPost:
		asked = x.postOperation(rt, v)
	case rt.feed:
	case method == http.MethodGet:
		asked = v.read
	case method == http.MethodPost && rt.kind == typeProcedures:
		asked = opProcedureExecute
	case method == http.MethodPut:
		asked = v.replace
	case method == http.MethodPatch:
		asked = v.patch
	case method == http.MethodDelete:
		asked = v.remove
	}
	return cmp.Or(asked, opOther)
}

// postOperation tells what a POST to a list asks for.
func (x *exchange) postOperation(rt *route, v verbs) operation {
	switch {
	case x.isQueryPlan(rt):
		return opItemQueryPlan
	case x.isQuery():
		return v.query
	case rt.kind == typeItems && x.flag("X-Ms-Cosmos-Is-Batch-Request") && x.flag("X-Ms-Cosmos-Batch-Atomic"):
		return opItemBatch
	case rt.kind == typeItems && x.flag("X-Ms-Cosmos-Is-Batch-Request"):
		return opItemBulk
	case x.flag("X-Ms-Documentdb-Is-Upsert"):
		return cmp.Or(v.upsert, v.create)
	}
	return v.create
}
