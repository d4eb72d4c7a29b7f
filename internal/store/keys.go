// SPDX-License-Identifier: MIT

// Every key of a partition. All begin with its prefix
//
//	p = 'p' {db}{container}{index}    4, 4 and 2 bytes
//
// so that one range delete drops a container or a whole database.
//
//	item : p 'd' {ordinal}             -> header | exact response bytes        (header.go)
//	id   : p 'k' {epk}{pk}{id}         -> ordinal
//	feed : p 'f' {lsn}{n}              -> {ordinal, ms, ttlKind, size}         one per item, at its latest write, and one at its latest touch (orders.go)
//	own  : p 'x' {expiryMs}{lsn}{n}    -> {ordinal, size}                      only items with ttl > 0 or a deadline that they name (orders.go)
//	uniq : p 'u' {policy}{pk}{tuple}   -> ordinal                              (unique.go)
//	idx  : p 'i' {generation}{kind}{entry}{ordinal} -> {ms, ttl, epk}         (index.go, package index)
//	part : p 'b' {epk}{pk}             -> {items, bytes}                       (parts.go)
//	stat : p 's' {class}{level}{start} -> {items, bytes, first lsn}            (counters.go)
//	log  : p 'v' {lsn}{number}         -> kind of change, and the item           (versions.go)
//	logs : p 'l'                       -> which lsns the log covers              (versions.go)
//	gone : p 'e' {goneMs}{deadlineMs}{lsn}{n} -> {ordinal, writtenMs, ttl, identity} (events.go)
//	rm   : p 'r' {epk}{pk}             -> lsn                                  only of deletes under way (removal.go)
//	meta : p 'm'                       -> lsn, totals, settings, marks           (meta.go)
//	own. : p 'o'                       -> the owner, only on a shared engine     (lease.go, package cluster)
//
// Numbers are big-endian, so that they sort as numbers: ordinal, lsn, expiryMs, deadlineMs,
// goneMs and start have eight bytes, generation and number four, n two, class, level and
// kind one. {epk} is escaped to be self-delimiting, {pk} is so by itself, and {id} ends the
// key.
//
// A {pk} of more than maxPlacedPK bytes is its hash in keys: 01 {SHA-256}. No partition key
// begins with 01. The item's header has it whole, and so have log rows and gone rows. So no
// key exceeds kv.MaxKeyBytes, and whatever needs a partition key reads it there.
//
// Items are in the order of their ordinals. An ordinal is the number in the _rid: it is
// given at creation, and a replace keeps it. The feed is in write order, which is also the
// expiry order of the items that inherit the container's TTL. The own rows are in expiry
// order.
//
// {generation} counts the indexing policies of the container. {kind} is that of the index,
// and {entry} what the index holds of the item. {number} counts the changes of one lsn.

package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	partitionTag = 'p'

	itemSpace     = 'd'
	idSpace       = 'k'
	feedSpace     = 'f'
	ownSpace      = 'x'
	uniqueSpace   = 'u'
	indexSpace    = 'i'
	partSpace     = 'b'
	eventSpace    = 'e'
	statSpace     = 's'
	metaSpace     = 'm'
	ownerSpace    = 'o'
	logSpace      = 'v'
	logStateSpace = 'l'
	removalSpace  = 'r'

	prefixBytes = 11

	// maxPlacedPK is the length of the longest {pk} that keys have whole.
	maxPlacedPK = 512
	// hashedPK is the first byte of the hash of a longer one.
	hashedPK = 0x01
)

// prefix is the start of all keys of one partition.
type prefix [prefixBytes]byte

func partitionPrefix(c catalog.ContainerRID, index int) prefix {
	var p prefix
	p[0] = partitionTag
	binary.BigEndian.PutUint32(p[1:], uint32(c.Database))
	binary.BigEndian.PutUint32(p[5:], c.Container)
	binary.BigEndian.PutUint16(p[9:], uint16(index))
	return p
}

// IsIndexKey reports whether a key is that of an index row. Those rows are scanned, and
// never looked up one by one.
func IsIndexKey(key []byte) bool {
	return len(key) > prefixBytes && key[0] == partitionTag && key[prefixBytes] == indexSpace
}

// DropContainer adds to b the removal of all rows of the container. If the engine is far,
// they are swept later, but for the owner rows, so that no owner can write any more.
func DropContainer(b *kv.Batch, far bool, c *catalog.Container) {
	dropOwners(b, far, c)
	drop(b, far, c.RID, catalog.ContainerRID{Database: c.RID.Database, Container: c.RID.Container + 1})
}

// DropDatabase adds to b the removal of all rows of the database, as DropContainer does.
func DropDatabase(b *kv.Batch, far bool, d *catalog.Database) {
	for _, c := range d.Containers() {
		dropOwners(b, far, c)
	}
	drop(b, far, catalog.ContainerRID{Database: d.RID}, catalog.ContainerRID{Database: d.RID + 1})
}

func dropOwners(b *kv.Batch, far bool, c *catalog.Container) {
	for i := range c.Ranges {
		if far {
			b.Delete(OwnerKey(c.RID, c.Ranges[i].ID), 0)
		}
	}
}

func drop(b *kv.Batch, far bool, from, to catalog.ContainerRID) {
	first, end := partitionPrefix(from, 0), partitionPrefix(to, 0)
	removeRange(b, far, first[:], end[:])
}

// space returns the bounds of all keys of one kind.
func (p *prefix) space(kind byte) (lower, upper []byte) {
	return append(p[:prefixBytes:prefixBytes], kind), append(p[:prefixBytes:prefixBytes], kind+1)
}

// appendKey appends the prefix, the kind and the rest of a key.
func (p *prefix) appendKey(dst []byte, kind byte, rest []byte) []byte {
	return append(append(append(dst, p[:]...), kind), rest...)
}

func (p *prefix) appendItemKey(dst []byte, ordinal uint64) []byte {
	return binary.BigEndian.AppendUint64(p.appendKey(dst, itemSpace, nil), ordinal)
}

func (p *prefix) appendFeedKey(dst []byte, at position) []byte {
	return p.appendOrderKey(dst, kindInherits, mark{At: at})
}

func (p *prefix) appendStatKey(dst []byte, b bucketKey) []byte {
	dst = append(p.appendKey(dst, statSpace, nil), byte(b.class), byte(b.level))
	return binary.BigEndian.AppendUint64(dst, uint64(b.start))
}

func (p *prefix) appendEventKey(dst []byte, e EventKey) []byte {
	dst = binary.BigEndian.AppendUint64(p.appendKey(dst, eventSpace, nil), uint64(e.GoneMs))
	return mark{e.DeadlineMs, position{e.LSN, e.N}}.append(dst)
}

// appendIndexStart appends the start of all index rows of one generation.
func (p *prefix) appendIndexStart(dst []byte, generation uint32) []byte {
	return binary.BigEndian.AppendUint32(p.appendKey(dst, indexSpace, nil), generation)
}

func (p *prefix) appendLogKey(dst []byte, lsn uint64, n uint32) []byte {
	dst = binary.BigEndian.AppendUint64(p.appendKey(dst, logSpace, nil), lsn)
	return binary.BigEndian.AppendUint32(dst, n)
}

func (p *prefix) logStateKey() []byte { return append(p[:prefixBytes:prefixBytes], logStateSpace) }

func (p *prefix) metaKey() []byte { return append(p[:prefixBytes:prefixBytes], metaSpace) }

// appendIDKey appends the key of the id row of the item with an identity.
func (p *prefix) appendIDKey(dst, identity []byte) []byte {
	return append(append(append(dst, p[:]...), idSpace), placed(identity)...)
}

// placed returns an identity, or the {epk}{pk} that it begins with, as it is in keys. The
// result shares its memory if nothing in it is hashed.
func placed(identity []byte) []byte {
	if len(identity) <= maxPlacedPK {
		return identity
	}
	_, rest, err := value.DecodeBytesKey(identity)
	if err != nil {
		return identity // of a damaged row
	}
	after, err := value.SkipPartitionKey(rest)
	if err != nil || len(rest)-len(after) <= maxPlacedPK {
		return identity
	}
	place := make([]byte, 0, len(identity)-len(rest)+1+sha256.Size+len(after))
	place = append(place, identity[:len(identity)-len(rest)]...)
	return append(appendPlacedPK(place, rest[:len(rest)-len(after)]), after...)
}

// appendPlacedPK appends an encoded partition key as it is in keys.
func appendPlacedPK(dst, pk []byte) []byte {
	if len(pk) <= maxPlacedPK {
		return append(dst, pk...)
	}
	sum := sha256.Sum256(pk)
	return append(append(dst, hashedPK), sum[:]...)
}

// appendIdentity appends {epk}{pk}{id}, which identifies an item in its container.
func appendIdentity(dst, epk []byte, pk value.PartitionKey, id string) []byte {
	return append(pk.AppendKey(value.AppendBytesKey(dst, epk)), id...)
}

// logicalOf returns {epk}{pk}, the start of an identity, which all items of the logical
// partition share, as it is in keys.
func logicalOf(identity []byte) ([]byte, error) {
	_, rest, err := value.DecodeBytesKey(identity)
	if err != nil {
		return nil, err
	}
	if rest, err = value.SkipPartitionKey(rest); err != nil {
		return nil, err
	}
	return placed(identity[:len(identity)-len(rest)]), nil
}

// identity is what appendIdentity encodes.
type identity struct {
	epk []byte
	pk  value.PartitionKey
	id  string
}

func parseIdentity(raw []byte) (identity, error) {
	epk, rest, err := value.DecodeBytesKey(raw)
	if err != nil {
		return identity{}, err
	}
	pk, rest, err := value.DecodePartitionKey(rest)
	if err != nil {
		return identity{}, err
	}
	return identity{epk, pk, string(rest)}, nil
}

// corrupt returns an error that names a damaged row.
func corrupt(key []byte, why string) error {
	return fmt.Errorf("%w: row %x: %s", kv.ErrCorrupt, key, why)
}
