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
//	's' 'm'                   -> the format before, and who migrates, only while a migration is under way
//	's' 'c'                   -> state of the clock
//	's' 'p'                   -> what operators want of purge (JSON)
//	's' 'e'                   -> when the store was at which position, for erasure (JSON)
//	's' 'n' {name}            -> a node of a shared engine (package cluster)
//	's' 'k'                   -> root of the certificates of a shared engine's nodes (JSON)
//	's' 'a'                   -> the regions of a shared engine's nodes, in order (JSON)
//	's' 't'                   -> the clock row of a shared engine (clock.Shared)
//	's' 'w' {lower}           -> upper, of a range of rows to be swept (package store)
//	's' 'r'                   -> how far a rewind of the clock is, only while one is under way
//
// Numbers are big-endian, and four bytes unless something else is said.

package catalog

// Keys of the system's own rows.
var (
	FormatKey = []byte("sf")
	// MigrationKey is the row of a migration that is under way.
	MigrationKey = []byte("sm")
	ClockKey     = []byte("sc")
	PurgeKey     = []byte("sp")
	EraseKey     = []byte("se")
	RewindKey    = []byte("sr")
	RootKey      = []byte("sk")
	TimeKey      = []byte("st")
	RegionsKey   = []byte("sa")
	// NodePrefix is the start of all node rows, and SweepPrefix of all sweep rows.
	NodePrefix  = []byte("sn")
	SweepPrefix = []byte("sw")
)

// SequenceKey is the row that changes with every change of the catalog.
var SequenceKey = []byte("cs")

// prefixEnd returns the first key after all that begin with p.
func prefixEnd(p []byte) []byte {
	end := append([]byte(nil), p...)
	end[len(end)-1]++ // no prefix here ends with 0xFF
	return end
}
