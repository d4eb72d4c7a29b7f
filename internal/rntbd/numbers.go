// SPDX-License-Identifier: MIT

// The numbers that stand for resources, operations and settings.

package rntbd

// Resource is a type of resource.
type Resource uint16

// The types of resources.
const (
	Connection          Resource = 0x00
	Database            Resource = 0x01
	Collection          Resource = 0x02
	Document            Resource = 0x03
	Attachment          Resource = 0x04
	User                Resource = 0x05
	Permission          Resource = 0x06
	StoredProcedure     Resource = 0x07
	Conflict            Resource = 0x08
	Trigger             Resource = 0x09
	UserDefinedFunction Resource = 0x0a
	Offer               Resource = 0x0f
	DatabaseAccount     Resource = 0x14
	PartitionKeyRange   Resource = 0x16
	PartitionKey        Resource = 0x20
	ClientEncryptionKey Resource = 0x23
)

// Operation is what to do with a resource.
type Operation uint16

// The operations. Opening a channel is Connect, of the resource Connection.
const (
	Connect           Operation = 0x00
	Create            Operation = 0x01
	Patch             Operation = 0x02
	Read              Operation = 0x03
	ReadFeed          Operation = 0x04
	Delete            Operation = 0x05
	Replace           Operation = 0x06
	ExecuteJavaScript Operation = 0x08
	SQLQuery          Operation = 0x09
	Query             Operation = 0x0f
	Head              Operation = 0x11
	HeadFeed          Operation = 0x12
	Upsert            Operation = 0x13
	Batch             Operation = 0x25
	QueryPlan         Operation = 0x42
)

// Method returns the HTTP method of an operation, which signatures cover; empty for an
// operation that clients have no use for.
func (op Operation) Method() string {
	switch op {
	case Create, ExecuteJavaScript, SQLQuery, Query, Upsert, Batch, QueryPlan:
		return "POST"
	case Patch:
		return "PATCH"
	case Read, ReadFeed:
		return "GET"
	case Delete:
		return "DELETE"
	case Replace:
		return "PUT"
	case Head, HeadFeed:
		return "HEAD"
	}
	return ""
}

// OnFeed reports whether an operation is on the list of a type, not on one resource.
func (op Operation) OnFeed() bool {
	switch op {
	case Create, Upsert, ReadFeed, SQLQuery, Query, HeadFeed, Batch, QueryPlan:
		return true
	}
	return false
}

// The consistency levels.
const (
	Strong byte = iota
	BoundedStaleness
	Session
	Eventual
	ConsistentPrefix
)

// What a read is to see, in RequestReadConsistencyStrategy. A client names the level that
// comes nearest, too, in RequestConsistencyLevel: BoundedStaleness for the latest committed.
const (
	ReadEventual byte = iota + 1
	ReadSession
	ReadLatestCommitted
	ReadGlobalStrong
)

// Kinds of range of a feed, in RequestReadFeedKeyType. Only the last has texts in StartEpk
// and EndEpk.
const (
	ByResourceID byte = iota + 1
	ByEffectivePartitionKey
	ByEffectivePartitionKeyRange
)

// ReturnMinimal, in RequestReturnPreference, leaves the item out of the answer to a write.
const ReturnMinimal byte = 1

// BinaryContent, in RequestContentSerializationFormat, says that a payload, or the answer
// that is asked for, is in Cosmos's binary JSON.
const BinaryContent byte = 1

// Formats of answers that a client accepts, in RequestSupportedSerializationFormats: a
// sum of these.
const (
	AcceptsText   byte = 1
	AcceptsBinary byte = 2
)

// AllItems, in RequestPageSize, asks for as many items as fit.
const AllItems uint32 = 0xffffffff
