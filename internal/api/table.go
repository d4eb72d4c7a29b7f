// SPDX-License-Identifier: MIT

// The table of requests: which there are, and what is known of each.

package api

import "github.com/mayflydb/mayfly/internal/engine"

// Resource is a type of resource.
type Resource uint8

// The types of resources. PartitionKeys are keys of items, all of which can be deleted.
const (
	AccountResource Resource = iota
	Databases
	Containers
	Items
	Ranges
	Offers
	Users
	Permissions
	EncryptionKeys
	Conflicts
	Procedures
	UDFs
	Triggers
	PartitionKeys

	resources
)

// words are what paths and signatures call the types. The keys of a container are signed
// as if they were the container.
var words = [resources]string{
	"", "dbs", "colls", "docs", "pkranges", "offers", "users", "permissions", "clientencryptionkeys", "conflicts", "sprocs", "udfs", "triggers", "colls",
}

// Word is what paths and signatures call the type.
func (r Resource) Word() string { return words[r] }

// names are what metrics call the types.
var names = [resources]string{
	"account", "database", "container", "item", "range", "offer", "user", "permission", "encryption_key", "conflict", "procedure", "udf", "trigger",
	"partition_key",
}

// Verb is what is to be done with a resource, or with the list of those of a type.
type Verb uint8

// The verbs. None is what cannot be done with anything.
const (
	None Verb = iota
	Create
	Upsert
	Read
	Replace
	Patch
	Delete
	List
	Query
	QueryPlan
	Batch
	Bulk
	Changes
	Execute

	verbs
)

var verbNames = [verbs]string{
	"none", "create", "upsert", "read", "replace", "patch", "delete", "list", "query", "query_plan", "batch", "bulk", "changes", "execute",
}

// reads tells which verbs only look.
var reads = [verbs]bool{Read: true, List: true, Query: true, QueryPlan: true, Changes: true}

// Row is what is known of a request.
type Row struct {
	Resource Resource
	Verb     Verb
	// Name is what metrics call it, and Number its place in the table.
	Name   string
	Number int
	// Reads says that it changes nothing. A read-only credential opens it.
	Reads bool
	// DataPlane says that a principal can have a right to it: the service knows rights
	// to items, to run stored procedures and to read what there is. Everything else wants
	// a key.
	DataPlane bool
	// MaxBody is how long its body may be; 0 for none.
	MaxBody int
	// Handle answers it.
	Handle func(*Call) error
}

// family is what can be done with a type of resource.
type family struct {
	handlers handlers
	// principal tells which of it a principal can have a right to; nil for nothing.
	principal func(Verb) bool
}

type handlers map[Verb]func(*Call) error

func anything(Verb) bool    { return true }
func looking(v Verb) bool   { return reads[v] }
func executing(v Verb) bool { return v == Execute }

// table has a row for every request that there is.
var table = func() (all [resources][verbs]*Row) {
	n := 0
	for r, f := range families() {
		for v := range verbs {
			handle, ok := f.handlers[v]
			if !ok {
				continue
			}
			all[r][v] = &Row{
				Resource: Resource(r), Verb: v, Name: names[r] + "_" + verbNames[v], Number: n,
				Reads: reads[v], DataPlane: f.principal != nil && f.principal(v), MaxBody: maxBodies[v], Handle: handle,
			}
			n++
		}
	}
	return all
}()

// Rows are those of the table, by their numbers.
var Rows = func() (rows []*Row) {
	for r := range table {
		for _, row := range table[r] {
			if row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows
}()

// maxBodies is how long the bodies of requests may be: an item, a definition, a query or
// a batch.
var maxBodies = [verbs]int{
	Create: engine.MaxItemBytes, Upsert: engine.MaxItemBytes, Replace: engine.MaxItemBytes, Patch: engine.MaxItemBytes,
	Query: engine.MaxItemBytes, QueryPlan: engine.MaxItemBytes, Execute: engine.MaxItemBytes, Batch: engine.MaxBatchBytes, Bulk: engine.MaxBatchBytes,
}

var resourceHandlers = handlers{
	Create: (*Call).writeResource, Upsert: (*Call).writeResource, Read: (*Call).readResource, Replace: (*Call).writeResource,
	Delete: (*Call).deleteResource, List: (*Call).listResources, Query: (*Call).queryResource,
}

// families are what can be done with each type.
func families() [resources]family {
	metadata := func(verbs ...Verb) handlers {
		h := handlers{}
		for _, v := range verbs {
			h[v] = resourceHandlers[v]
		}
		return h
	}
	procedures := metadata(Create, Read, Replace, Delete, List, Query)
	procedures[Execute] = (*Call).execute
	return [resources]family{
		AccountResource: {handlers{Read: (*Call).readAccount}, looking},
		Databases:       {metadata(Create, Read, Delete, List, Query), looking},
		Containers:      {metadata(Create, Read, Replace, Delete, List, Query), looking},
		Items: {handlers{
			Create: (*Call).writeItem, Upsert: (*Call).writeItem, Read: (*Call).readItem, Replace: (*Call).writeItem,
			Patch: (*Call).writeItem, Delete: (*Call).writeItem, List: (*Call).listItems, Query: (*Call).queryItems,
			QueryPlan: (*Call).planQuery, Batch: (*Call).batch, Bulk: (*Call).batch, Changes: (*Call).readChanges,
		}, anything},
		Ranges:         {handlers{List: (*Call).listRanges}, looking},
		Offers:         {metadata(Read, Replace, List, Query), nil},
		Users:          {metadata(Create, Upsert, Read, Replace, Delete, List, Query), nil},
		Permissions:    {metadata(Create, Upsert, Read, Replace, Delete, List, Query), nil},
		EncryptionKeys: {metadata(Create, Read, Replace, List, Query), looking},
		Conflicts: {handlers{
			Read: (*Call).readConflict, Delete: (*Call).readConflict, List: (*Call).listConflicts, Query: (*Call).queryConflicts,
		}, anything},
		Procedures:    {procedures, executing},
		UDFs:          {metadata(Create, Read, Replace, Delete, List, Query), nil},
		Triggers:      {metadata(Create, Read, Replace, Delete, List, Query), nil},
		PartitionKeys: {handlers{Delete: (*Call).deletePartitionKey}, anything},
	}
}

// Lookup returns the row of a request, or nil if there is no such request. Where there is
// no upsert of its own, it is a create.
func Lookup(r Resource, verb Verb) *Row {
	if verb == Upsert && table[r][verb] == nil {
		verb = Create
	}
	return table[r][verb]
}
