// SPDX-License-Identifier: MIT

// The table of requests.

package api

import "github.com/mayflydb/mayfly/internal/engine"

// Resource is a type of resource.
type Resource uint8

// The types of resources. PartitionKeys stands for deleting all items with a partition
// key.
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

// words are the types' names in paths and signatures. A partition key's requests are
// signed like the container's.
var words = [resources]string{
	AccountResource: "", Databases: "dbs", Containers: "colls", Items: "docs", Ranges: "pkranges", Offers: "offers", Users: "users",
	Permissions: "permissions", EncryptionKeys: "clientencryptionkeys", Conflicts: "conflicts", Procedures: "sprocs", UDFs: "udfs",
	Triggers: "triggers", PartitionKeys: "colls",
}

// Word returns the type's name in paths and signatures.
func (r Resource) Word() string { return words[r] }

// names are the types' names in metrics.
var names = [resources]string{
	AccountResource: "account", Databases: "database", Containers: "container", Items: "item", Ranges: "range", Offers: "offer", Users: "user",
	Permissions: "permission", EncryptionKeys: "encryption_key", Conflicts: "conflict", Procedures: "procedure", UDFs: "udf",
	Triggers: "trigger", PartitionKeys: "partition_key",
}

// Verb is what to do with a resource, or with the list of a type.
type Verb uint8

// The verbs. None has no row in the table. Position asks for nothing but the position of a
// partition, or of the metadata.
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
	Position

	verbs
)

var verbNames = [verbs]string{
	None: "none", Create: "create", Upsert: "upsert", Read: "read", Replace: "replace", Patch: "patch", Delete: "delete", List: "list",
	Query: "query", QueryPlan: "query_plan", Batch: "batch", Bulk: "bulk", Changes: "changes", Execute: "execute",
	Position: "position",
}

// reads marks the verbs that change nothing.
var reads = [verbs]bool{Read: true, List: true, Query: true, QueryPlan: true, Changes: true, Position: true}

// Row describes a request.
type Row struct {
	Resource Resource
	Verb     Verb
	// Name is its name in metrics, and Number its index in Rows.
	Name   string
	Number int
	// Reads says that it changes nothing: a read-only credential suffices.
	Reads bool
	// DataPlane says that a principal can have a right to it. As in the service, these
	// are the rights to items, to run stored procedures and to read metadata. All else
	// needs a key.
	DataPlane bool
	// MaxBody is the largest length of its body; 0 if it has none.
	MaxBody int
	// Audited says that the log gets a line about it: it changes who may do what.
	Audited bool
	// Handle answers it.
	Handle func(*Call) error
}

// family is the set of requests for a type of resource.
type family struct {
	handlers handlers
	// principal reports whether a principal can have a right to the verb; nil for no
	// verb.
	principal func(Verb) bool
}

type handlers map[Verb]func(*Call) error

func anything(Verb) bool    { return true }
func looking(v Verb) bool   { return reads[v] }
func executing(v Verb) bool { return v == Execute }

// table has a row for every request.
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
				Audited: !reads[v] && (Resource(r) == Users || Resource(r) == Permissions || Resource(r) == EncryptionKeys),
			}
			n++
		}
	}
	return all
}()

// Rows lists the table's rows by their numbers.
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

// maxBodies is the largest length of each verb's body: an item, a definition, a query or
// a batch.
var maxBodies = [verbs]int{
	Create: engine.MaxItemBytes, Upsert: engine.MaxItemBytes, Replace: engine.MaxItemBytes, Patch: engine.MaxItemBytes,
	Query: engine.MaxItemBytes, QueryPlan: engine.MaxItemBytes, Execute: engine.MaxItemBytes, Batch: engine.MaxBatchBytes, Bulk: engine.MaxBatchBytes,
}

var resourceHandlers = handlers{
	Create: (*Call).writeResource, Upsert: (*Call).writeResource, Read: (*Call).readResource, Replace: (*Call).writeResource,
	Delete: (*Call).deleteResource, List: (*Call).listResources, Query: (*Call).queryResource,
}

// families lists the requests for each type.
func families() [resources]family {
	metadata := func(verbs ...Verb) handlers {
		h := handlers{}
		for _, v := range verbs {
			h[v] = resourceHandlers[v]
		}
		return h
	}
	databases := metadata(Create, Read, Delete, List, Query)
	databases[Position] = (*Call).readPosition
	containers := metadata(Create, Read, Replace, Delete, List, Query)
	containers[Position] = (*Call).readPosition
	procedures := metadata(Create, Read, Replace, Delete, List, Query)
	procedures[Execute] = (*Call).execute
	return [resources]family{
		AccountResource: {handlers{Read: (*Call).readAccount}, looking},
		Databases:       {databases, looking},
		Containers:      {containers, looking},
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

// Lookup returns the row of a request, or nil if there is no such request. An upsert of a
// type that has none is a create.
func Lookup(r Resource, verb Verb) *Row {
	if verb == Upsert && table[r][verb] == nil {
		verb = Create
	}
	return table[r][verb]
}
