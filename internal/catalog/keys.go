// SPDX-License-Identifier: MIT

// Every key outside of the partitions. Those of a partition, which begin with
// 'p', are listed in package store.
//
//	'c' 'd' {db}              -> record of a database (JSON)
//	'c' 'n' {name}            -> {db}, the name's holder
//	'c' 'c' {db}{container}   -> record of a container (JSON)
//	'c' 'm' {db}{name}        -> {container}, the name's holder
//	'c' 's'                   -> the last database and container numbers given, count of changes
//	's' 'f'                   -> format of the data
//	's' 'c'                   -> state of the clock
//	's' 'p'                   -> what operators want of purge (JSON)
//
// Numbers are four bytes, big-endian.

package catalog

import "encoding/binary"

// Keys of the system's own rows.
var (
	FormatKey = []byte("sf")
	ClockKey  = []byte("sc")
	PurgeKey  = []byte("sp")
)

var (
	databasePrefix      = []byte("cd")
	databaseNamePrefix  = []byte("cn")
	containerPrefix     = []byte("cc")
	containerNamePrefix = []byte("cm")
	sequenceKey         = []byte("cs")
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

// prefixEnd returns the first key after all that begin with p.
func prefixEnd(p []byte) []byte {
	end := append([]byte(nil), p...)
	end[len(end)-1]++ // no prefix here ends in 0xFF
	return end
}
