// SPDX-License-Identifier: MIT

package tikvkv

import "time"

// OpenCollecting has Open make handles that collect old versions so often, and destroy what is
// longer than a piece, until the test ends.
func OpenCollecting(every, keep, settle time.Duration) (restore func(), sweptAtOnce int) {
	was := defaultCollection
	defaultCollection = collection{every: every, keep: keep, settle: settle, sweepPieces: 1}
	return func() { defaultCollection = was }, sweepRows
}
