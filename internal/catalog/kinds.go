// SPDX-License-Identifier: MIT

// The kinds of resources, a row for each: its owner, how many there may be, the keys of
// its rows and the form of its rid. A new kind is a row here and a type with the methods
// of Any.

package catalog

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Kind is a kind of resource.
type Kind int

// The kinds, each after its owner. The kinds of scripts keep this order, since rows store
// it.
const (
	account Kind = iota // there is one, which owns the databases
	Databases
	Containers
	Users
	Permissions
	EncryptionKeys
	UDFs
	Procedures
	Triggers
	// Offers are derived from the throughput of databases and containers, and not stored.
	Offers
	kindCount
)

// kind describes a kind of resource.
type kind struct {
	name, link string // in reports of Check, and in links
	owner      Kind
	depth      int // how many numbers lead to it, its own included
	// missing is the error if the owner does not exist.
	missing error
	// most is how many an owner may have, and tooMany the error for more.
	most    int
	tooMany error
	// prefix begins the keys of its rows, whose last number has numberBytes. names begins
	// the keys of the rows that hold names, if there are any.
	prefix, names string
	numberBytes   int
	rid           ridTail
	// etags are bits above every number, so that no two resources have the same etag.
	etags uint64
	// first is its first revision, which grows by one with every replace. dated means
	// that a revision is the count of the change that made it instead.
	first uint64
	dated bool
	// clashes says that a replace which takes the name of another resource is a conflict.
	// Other kinds cannot be renamed, so there a replace with another name is refused as
	// such.
	clashes bool
	// parse makes a resource from a write, and decode from a row.
	parse  func(w *Write) (Any, error)
	decode func(row []byte) (Any, error)
	copied func(Any) Any // for kinds that own others
}

var kinds = [kindCount]kind{
	Databases: {
		name: "database", link: "dbs", owner: account, depth: 1, missing: ErrNotFound, most: maxDatabases, tooMany: ErrTooMany,
		prefix: "cd", names: "cn", numberBytes: 4, parse: parseDatabase, decode: decodeDatabase, copied: copied[Database],
	},
	Containers: {
		name: "container", link: "colls", owner: Databases, depth: 2, missing: ErrNotFound, most: maxContainers, tooMany: ErrTooMany,
		prefix: "cc", names: "cm", numberBytes: 4, rid: ridTail{mark: containerBit, mask: containerBit}, first: 1,
		parse: parseContainer, decode: decodeContainer, copied: copied[Container],
	},
	Users: {
		name: "user", link: "users", owner: Databases, depth: 2, missing: ErrNotFound, most: maxUsers, tooMany: ErrTooMany,
		prefix: "cw", numberBytes: 8, rid: ridTail{mask: containerBit}, etags: 1<<61 | 1<<56, dated: true, clashes: true,
		parse: parseUser, decode: decodeUser, copied: copied[User],
	},
	Permissions: {
		name: "permission", link: "permissions", owner: Users, depth: 3, missing: ErrNotFound, most: maxPermissions, tooMany: ErrTooMany,
		prefix: "cp", numberBytes: 8, rid: ridTail{wide: true}, etags: 1<<61 | 2<<56, dated: true, clashes: true,
		parse: parsePermission, decode: decodePermission,
	},
	EncryptionKeys: {
		name: "client encryption key", link: "clientencryptionkeys", owner: Databases, depth: 2, missing: ErrNotFound,
		most: maxEncryptionKeys, tooMany: ErrTooMany, prefix: "ck", numberBytes: 8,
		rid:   ridTail{zeros: 4, wide: true, mark: 2 << 32, mask: math.MaxUint32 << 32},
		etags: 1<<61 | 3<<56, dated: true, clashes: true, parse: parseEncryptionKey, decode: decodeEncryptionKey,
	},
	UDFs:       scriptKind("udfs", 6, 50),
	Procedures: scriptKind("sprocs", 8, 100),
	Triggers:   scriptKind("triggers", 7, 50),
	Offers:     {name: "offer", link: "offers", owner: account, depth: 1, etags: 1 << 63},
}

// scriptKind returns the row of a kind of scripts. The kinds share a prefix; rows store
// the kind.
func scriptKind(link string, nibble uint64, most int) kind {
	return kind{
		name: "script", link: link, owner: Containers, depth: 3, missing: ErrOwnerNotFound, most: most, tooMany: ErrTooManyScripts,
		prefix: scriptPrefix, numberBytes: 8, rid: ridTail{wide: true, mark: nibble << kindShift, mask: 0xF << kindShift},
		etags: 1 << 62, first: 1, parse: parseScript, decode: decodeScript,
	}
}

const scriptPrefix = "cu"

// Max returns how many resources of the kind an owner may have.
func (k Kind) Max() int { return kinds[k].most }

func copied[T any, P interface {
	*T
	Any
}](r Any) Any {
	c := *r.(P)
	return P(&c)
}

// path leads to a resource: the numbers of its owners, outermost first, and its own.
// Numbers are never reused.
type path [3]uint64

// key returns the key of the row of the resource at a path.
func (k Kind) key(p path) []byte { return k.appendPath([]byte(kinds[k].prefix), p) }

// nameKey returns the key of the row which holds a resource's name.
func (k Kind) nameKey(p path, name string) []byte {
	return append(kinds[k].owner.appendPath([]byte(kinds[k].names), p), name...)
}

func (k Kind) appendPath(dst []byte, p path) []byte {
	if k == account {
		return dst
	}
	return k.appendNumber(kinds[k].owner.appendPath(dst, p), p)
}

// appendNumber appends the last number of a path in the form of keys.
func (k Kind) appendNumber(dst []byte, p path) []byte {
	number := binary.BigEndian.AppendUint64(nil, p[kinds[k].depth-1])
	return append(dst, number[8-kinds[k].numberBytes:]...)
}

// parsePath parses what follows the prefix of a key.
func (k Kind) parsePath(raw []byte) (p path, ok bool) {
	if k == account {
		return p, len(raw) == 0
	}
	own := len(raw) - kinds[k].numberBytes
	if own < 0 {
		return p, false
	}
	p, ok = kinds[k].owner.parsePath(raw[:own])
	for _, b := range raw[own:] {
		p[kinds[k].depth-1] = p[kinds[k].depth-1]<<8 | uint64(b)
	}
	return p, ok
}

// ridTail describes how the rid of a kind continues its owner's: zeros, then the number
// in four bytes, big-endian, or in eight, little-endian. The bits of mask are not part of
// the number, and equal those of mark.
type ridTail struct {
	zeros      int
	wide       bool
	mark, mask uint64
}

func (t *ridTail) append(dst []byte, number uint64) []byte {
	dst = append(dst, make([]byte, t.zeros)...)
	if t.wide {
		return binary.LittleEndian.AppendUint64(dst, t.mark|number)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(t.mark|number))
}

// number parses a tail.
func (t *ridTail) number(tail []byte) (uint64, bool) {
	if len(tail) < t.zeros || bytes.ContainsFunc(tail[:t.zeros], func(r rune) bool { return r != 0 }) {
		return 0, false
	}
	var marked uint64
	switch tail = tail[t.zeros:]; {
	case t.wide && len(tail) == 8:
		marked = binary.LittleEndian.Uint64(tail)
	case !t.wide && len(tail) == 4:
		marked = uint64(binary.BigEndian.Uint32(tail))
	default:
		return 0, false
	}
	return marked &^ t.mask, marked&t.mask == t.mark
}

// last returns the highest number that has a rid.
func (t *ridTail) last() uint64 {
	if t.wide {
		return math.MaxUint64 &^ t.mask
	}
	return math.MaxUint32 &^ t.mask
}
