// SPDX-License-Identifier: MIT

// What requests ask for, as the metrics name it.

package rest

import "net/http"

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
	opItemBatch
	opItemChanges
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
	opOther

	operations
)

var operationNames = [operations]string{
	"unknown", "admin", "account_read",
	"database_create", "database_read", "database_delete", "database_list", "database_query",
	"container_create", "container_read", "container_replace", "container_delete", "container_list", "container_query",
	"item_create", "item_upsert", "item_read", "item_replace", "item_patch", "item_delete", "item_list", "item_query", "item_batch", "item_changes",
	"range_list", "offer_read", "offer_replace", "offer_list", "offer_query",
	"udf_create", "udf_read", "udf_replace", "udf_delete", "udf_list", "udf_query",
	"procedure_create", "procedure_read", "procedure_replace", "procedure_delete", "procedure_list", "procedure_query", "procedure_execute",
	"trigger_create", "trigger_read", "trigger_replace", "trigger_delete", "trigger_list", "trigger_query", "other",
}

// verbs are the operations on one resource type; those that it has not are
// opOther.
type verbs struct {
	create, read, replace, patch, remove, list, query operation
}

var verbsOf = map[string]verbs{
	typeAccount:    {opOther, opAccountRead, opOther, opOther, opOther, opOther, opOther},
	typeDatabases:  {opDatabaseCreate, opDatabaseRead, opOther, opOther, opDatabaseDelete, opDatabaseList, opDatabaseQuery},
	typeContainers: {opContainerCreate, opContainerRead, opContainerReplace, opOther, opContainerDelete, opContainerList, opContainerQuery},
	typeItems:      {opItemCreate, opItemRead, opItemReplace, opItemPatch, opItemDelete, opItemList, opItemQuery},
	typeRanges:     {opOther, opOther, opOther, opOther, opOther, opRangeList, opOther},
	typeOffers:     {opOther, opOfferRead, opOfferReplace, opOther, opOther, opOfferList, opOfferQuery},
	typeUDFs:       {opUDFCreate, opUDFRead, opUDFReplace, opOther, opUDFDelete, opUDFList, opUDFQuery},
	typeProcedures: {opProcedureCreate, opProcedureRead, opProcedureReplace, opOther, opProcedureDelete, opProcedureList, opProcedureQuery},
	typeTriggers:   {opTriggerCreate, opTriggerRead, opTriggerReplace, opOther, opTriggerDelete, opTriggerList, opTriggerQuery},
}

// operationOf tells what a request asks for.
func (x *exchange) operationOf(rt *route) operation {
	v, known := verbsOf[rt.kind]
	if !known || rt.operation != "" {
		return opOther
	}
	switch x.r.Method {
	case http.MethodGet:
		if rt.feed {
			return v.list
		}
		return v.read
	case http.MethodPost:
		return x.postOperation(rt, v)
	case http.MethodPut:
		return v.replace
	case http.MethodPatch:
		return v.patch
	case http.MethodDelete:
		return v.remove
	}
	return opOther
}

func (x *exchange) postOperation(rt *route, v verbs) operation {
	switch {
	case !rt.feed && rt.kind == typeProcedures:
		return opProcedureExecute
	case !rt.feed:
		return opOther
	case x.isQuery() || x.flag("X-Ms-Cosmos-Is-Query-Plan-Request"):
		return v.query
	case rt.kind == typeItems && x.flag("X-Ms-Cosmos-Is-Batch-Request"):
		return opItemBatch
	case rt.kind == typeItems && x.flag("X-Ms-Documentdb-Is-Upsert"):
		return opItemUpsert
	}
	return v.create
}
