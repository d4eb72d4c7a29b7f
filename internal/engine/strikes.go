// SPDX-License-Identifier: MIT

package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
)

const (
	// maxStrikes is how many times in a row a script may exceed its time before it is
	// barred.
	maxStrikes = 6
	// barTime is how long a script is barred, from its last strike on.
	barTime = 10 * time.Minute
	// maxStruck is how many scripts are remembered.
	maxStruck = 1000
)

// strikes bars scripts that exceed their time again and again. A script that is replaced
// or created again starts without strikes.
type strikes struct {
	elapsed func() time.Duration
	struck  atomic.Int32 // the number of entries: calls need no lock while it is 0

	mu struct {
		sync.Mutex
		of map[string]strike // by version of a script
	}
}

type strike struct {
	count int
	last  time.Duration
}

func versionOf(s *catalog.Script) string { return s.RIDText + s.ETag }

// check refuses a script that is barred.
func (k *strikes) check(s *catalog.Script) error {
	if k.struck.Load() == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := k.mu.of[versionOf(s)]; at.count < maxStrikes || k.elapsed()-at.last > barTime {
		return nil
	}
	return &ScriptError{Message: "The script with id '" + s.ID + "' is blocked for execution because it has violated its allowed resource limit several times.", Barred: true}
}

// add records that a script exceeded its time.
func (k *strikes) add(s *catalog.Script) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.of == nil {
		k.mu.of = map[string]strike{}
	}
	version := versionOf(s)
	at, now := k.mu.of[version], k.elapsed()
	if now-at.last > barTime {
		at.count = 0
	}
	if at.count == 0 && len(k.mu.of) >= maxStruck {
		k.forgetOldestLocked()
	}
	k.mu.of[version] = strike{at.count + 1, now}
	k.struck.Store(int32(len(k.mu.of)))
}

func (k *strikes) forgetOldestLocked() {
	oldest := ""
	for version, at := range k.mu.of {
		if oldest == "" || at.last < k.mu.of[oldest].last {
			oldest = version
		}
	}
	delete(k.mu.of, oldest)
}

// clear records that a script ended in time.
func (k *strikes) clear(s *catalog.Script) {
	if k.struck.Load() == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.mu.of, versionOf(s))
	k.struck.Store(int32(len(k.mu.of)))
}
