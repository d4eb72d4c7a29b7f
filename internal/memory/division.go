// SPDX-License-Identifier: MIT

package memory

const (
	mebi = 1 << 20

	// unknown stands for the memory of a system that does not report it.
	unknown = 2048 * mebi

	// The caches of data that was read have this part of the memory, within bounds. They
	// fill as data is read: a small database never takes that much.
	cacheShare = 8
	leastCache = 32 * mebi
	mostCache  = 4096 * mebi
	// Half of that is for single items, and half for the blocks that they come from.
	itemRowShare = 2
	// Rows of indexes, and items that are read often, have some more. mostIndexRows is
	// enough for about three million rows of indexes.
	indexRowShare = 8
	mostIndexRows = 128 * mebi
	itemShare     = 4
	mostItems     = 32 * mebi

	// The storage engine has up to four memtables.
	memTableShare = 64
	leastMemTable = 4 * mebi
	mostMemTable  = 32 * mebi

	// The last hour of containers, for plots, has a little: 8 MiB of 2 GiB, which is enough
	// for some 360 containers. It fills as containers are used.
	historyShare = 256
	leastHistory = 1 * mebi
	mostHistory  = 16 * mebi

	// Requests under way have a quarter. Together with the parts above that is less than
	// half. As much again is left for garbage that is not yet collected, for connections,
	// for the engine's work in the background and for the system.
	requestShare = 4
	leastRequest = 16 * mebi
	mostRequest  = 4096 * mebi

	// Scripts take their memory from the requests' part, each in a process of its own.
	// Together they take no more than half of it, so that other requests can always run.
	scriptShare  = 4
	leastScript  = 32 * mebi
	mostScript   = 128 * mebi
	scriptsShare = 2
	mostScripts  = 8
)

// Division is what each part of a server may take.
type Division struct {
	Blocks    int64 // the cache of blocks, as they are on disk
	ItemRows  int64 // the cache of items
	IndexRows int64 // the cache of index rows that queries pass over
	MemTable  int64 // one memtable
	History   int64 // the last hour of all containers
	Requests  int64 // all requests under way together
	Script    int64 // one script
	Scripts   int   // how many scripts may run at once
}

// Divide divides the available memory, 0 if that is not known. cache is how much of it is
// for caches of data that was read; 0 means an eighth, within bounds.
func Divide(available, cache int64) Division {
	if available <= 0 {
		available = unknown
	}
	if cache <= 0 {
		cache = min(max(available/cacheShare, leastCache), mostCache)
	}
	rows := cache / itemRowShare
	requests := min(max(available/requestShare, leastRequest), mostRequest)
	script := min(max(requests/scriptShare, leastScript), mostScript)
	return Division{
		Blocks: cache - rows, ItemRows: rows + min(cache/itemShare, mostItems),
		IndexRows: min(cache/indexRowShare, mostIndexRows),
		MemTable:  min(max(available/memTableShare, leastMemTable), mostMemTable),
		History:   min(max(available/historyShare, leastHistory), mostHistory),
		Requests:  requests,
		Script:    script,
		Scripts:   int(min(max(requests/scriptsShare/script, 1), mostScripts)),
	}
}
