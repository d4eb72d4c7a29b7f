// SPDX-License-Identifier: MIT

package tikvkv

import (
	"time"

	"github.com/tikv/client-go/v2/tikvrpc"
)

// OpenCollecting has Open make handles that collect old versions so often, and destroy what is
// longer than a piece, until the test ends.
func OpenCollecting(every, keep, settle time.Duration) (restore func(), sweptAtOnce int) {
	was := defaultCollection
	defaultCollection = collection{every: every, keep: keep, settle: settle, sweepPieces: 1}
	return func() { defaultCollection = was }, sweepRows
}

// LoseOneAnswer has the next answer to a second phase be lost.
func (db *DB) LoseOneAnswer() {
	client := db.store.GetTiKVClient().(witness)
	lossy := &faulty{Client: client.Client}
	lossy.meet(tikvrpc.CmdCommit, func(send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
		lossy.meet(tikvrpc.CmdCommit, nil)
		return loseAnswer(send)
	})
	db.store.SetTiKVClient(witness{lossy})
}
