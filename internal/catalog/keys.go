// SPDX-License-Identifier: MIT

// Every key outside of the partitions. Those of a partition, which begin with
// 'p', are listed in package store.
//
//	'c' 'd' {db}              -> record of a database (JSON)
//	'c' 'n' {name}            -> {db}, the name's holder
//	'c' 'c' {db}{container}   -> record of a container (JSON)
//	'c' 'm' {db}{name}        -> {container}, the name's holder
//	'c' 'w' {db}{number}      -> record of a user (JSON), numbered in eight bytes
//	'c' 'p' {db}{user}{number} -> record of a permission (JSON), both in eight bytes
//	'c' 'k' {db}{number}      -> record of a client encryption key (JSON), in eight bytes
//	'c' 'u' {db}{container}{number, 8 bytes} -> record of a script (JSON)
//	'c' 's'                   -> the last database and container numbers given, count of changes
//	's' 'f'                   -> format of the data
//	's' 'c'                   -> state of the clock
//	's' 'p'                   -> what operators want of purge (JSON)
//	's' 'r'                   -> how far a rewind of the clock is, only while one is under way
//
// Numbers are big-endian, and four bytes unless something else is said.

package catalog

import "encoding/binary"

// Keys of the system's own rows.
var (
	FormatKey = []byte("sf")
	ClockKey  = []byte("sc")
	PurgeKey  = []byte("sp")
	RewindKey = []byte("sr")
)

var (
	databasePrefix      = []byte("cd")
	databaseNamePrefix  = []byte("cn")
	containerPrefix     = []byte("cc")
	containerNamePrefix = []byte("cm")
	userPrefix          = []byte("cw")
	permissionPrefix    = []byte("cp")
	encryptionKeyPrefix = []byte("ck")
	scriptPrefix        = []byte("cu")
	sequenceKey         = []byte("cs")
)

// Lengths of the keys of users and client encryption keys, and of permissions.
const (
	resourceKeyBytes   = 14
	permissionKeyBytes = 22
)

func databaseKey(r DatabaseRID) []byte {
	return binary.BigEndian.AppendUint32([]byte("cd"), uint32(r))
}

func databaseNameKey(name string) []byte { return append([]byte("cn"), name...) }

func containerKey(r ContainerRID) []byte {
	k := binary.BigEndian.AppendUint32([]byte("cc"), uint32(r.Database))
	return binary.BigEndian.AppendUint32(k, r.Container)
}

func containerNameKey(db DatabaseRID, name string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte("cm"), uint32(db)), name...)
}

func userKey(db DatabaseRID, number uint64) []byte { return resourceKey("cw", db, number) }

func permissionKey(db DatabaseRID, user, number uint64) []byte {
	return binary.BigEndian.AppendUint64(resourceKey("cp", db, user), number)
}

func encryptionKeyKey(db DatabaseRID, number uint64) []byte { return resourceKey("ck", db, number) }

func resourceKey(prefix string, db DatabaseRID, number uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte(prefix), uint32(db)), number)
}

// scriptKeyBytes is the length of a script's key.
const scriptKeyBytes = 18

func scriptKey(r ContainerRID, number uint64) []byte {
	k := binary.BigEndian.AppendUint32([]byte("cu"), uint32(r.Database))
	k = binary.BigEndian.AppendUint32(k, r.Container)
	return binary.BigEndian.AppendUint64(k, number)
}

// prefixEnd returns the first key after all that begin with p.
func prefixEnd(p []byte) []byte {
	end := append([]byte(nil), p...)
	end[len(end)-1]++ // no prefix here ends in 0xFF
	return end
}
