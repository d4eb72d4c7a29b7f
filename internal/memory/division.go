// SPDX-License-Identifier: MIT

package memory

const (
	mebi = 1 << 20

	// unknown is what is taken for the memory of systems that do not tell.
	unknown = 2048 * mebi

	// Data that was read is kept in this part of the memory, within bounds. It is taken
	// as data is read: a small database never takes that much.
	cacheShare = 8
	leastCache = 32 * mebi
	mostCache  = 4096 * mebi
	// Half of it is for items, one by one, and half for the blocks that they come from.
	itemRowShare = 2
	// Rows of indexes, and items that are read again and again, take some besides. The
	// most is for about three million rows of indexes.
	indexRowShare = 8
	mostIndexRows = 128 * mebi
	itemShare     = 4
	mostItems     = 32 * mebi

	// The storage engine has up to four memtables.
	memTableShare = 64
	leastMemTable = 4 * mebi
	mostMemTable  = 32 * mebi

	// Requests under way have a quarter. With the rest above it is less than half, and
	// as much again is for what is no longer in use and not yet collected, for
	// connections, for the engine's work in the background and for the system.
	requestShare = 4
	leastRequest = 16 * mebi
	mostRequest  = 4096 * mebi

	// Scripts take what they may of that, each in a process of its own, and together no
	// more than half, so that they never keep everything else out.
	scriptShare  = 4
	leastScript  = 32 * mebi
	mostScript   = 128 * mebi
	scriptsShare = 2
	mostScripts  = 8
)

// Division is what each part of a server may take.
type Division struct {
	Blocks    int64 // as they are on disk
	ItemRows  int64 // that were read
	IndexRows int64 // that queries pass over
	MemTable  int64 // each
	Requests  int64 // under way, together
	Script    int64 // each that runs
	Scripts   int   // that run at once
}

// Divide divides the memory that is available, 0 if that is not known. cache is how much
// of it is for data that was read; 0 for an eighth.
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
		Requests:  requests,
		Script:    script,
		Scripts:   int(min(max(requests/scriptsShare/script, 1), mostScripts)),
	}
}
