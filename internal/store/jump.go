// SPDX-License-Identifier: MIT

package store

import (
	"fmt"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/kv"
)

// RestoredLSNs is by how much the lsn of a partition grows when it is restored from a backup:
// more than it can have grown between the backup and the restore. So every position and
// session token of before is below the first lsn that is given from now on, those of the time
// after the backup too, and none of them can be taken for one of the new history: a reader at
// such a position gets all that is written from now on, a session does not wait, and no etag
// is given twice.
const RestoredLSNs = 1 << 36

// maxLSN bounds lsns: etags have 48 bits for them.
const maxLSN = 1 << 47

// JumpLSN adds to a batch that the lsn of a partition at rest grows by RestoredLSNs.
func JumpLSN(b *kv.Batch, snap kv.Snapshot, c *catalog.Container, index int) error {
	x := partitionPrefix(c.RID, index)
	s := stored{snap, &x}
	m, found, err := s.readMeta(index)
	if err != nil || !found {
		return err
	}
	if m.LSN += RestoredLSNs; m.LSN > maxLSN {
		return fmt.Errorf("partition %d of container %q was restored too often", index, c.ID)
	}
	b.Set(x.metaKey(), m.encode())
	return nil
}
