// SPDX-License-Identifier: MIT

package cli

import (
	"os"
	"runtime"
)

// backgroundProcessors is how many processors the runtime has beyond those of the machine:
// for the work of a purge and of a compaction. The runtime looks for requests that have
// arrived when a processor has nothing to do, and otherwise every 10 ms. With these two,
// background work cannot keep all processors busy, and the system's scheduler, which
// prefers threads that have waited, shares the machine between it and requests.
const backgroundProcessors = 2

// addProcessors adds processors for background work, unless the environment says how many
// there are.
func addProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + backgroundProcessors)
	}
}
