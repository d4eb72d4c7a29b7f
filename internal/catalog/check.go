// SPDX-License-Identifier: MIT

package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/mayflydb/mayfly/internal/kv"
)

// Check compares the rows that hold names with the databases and containers, and
// the numbers given with those in use. It calls report for each problem.
func (c *Catalog) Check(snap kv.Snapshot, report func(problem string)) error {
	s := c.state.Load()
	names := map[string][]byte{} // what the name rows should be
	for _, d := range s.byName {
		names[string(databaseNameKey(d.ID))] = binary.BigEndian.AppendUint32(nil, uint32(d.RID))
		if uint32(d.RID) > s.last.database {
			report(fmt.Sprintf("database %q has number %d, and the last one given was %d", d.ID, d.RID, s.last.database))
		}
		d.checkResources(s.last.changes, report)
		for _, ct := range d.byName {
			names[string(containerNameKey(d.RID, ct.ID))] = binary.BigEndian.AppendUint32(nil, ct.RID.Container)
			if ct.RID.Container > s.last.container {
				report(fmt.Sprintf("container %q of database %q has number %d, and the last one given was %d", ct.ID, d.ID, ct.RID.Container, s.last.container))
			}
			for _, u := range ct.scripts {
				if u.number > s.last.changes {
					report(fmt.Sprintf("script %q of container %q has number %d, and there were %d changes", u.ID, ct.Path, u.number, s.last.changes))
				}
			}
		}
	}
	for _, prefix := range [][]byte{databaseNamePrefix, containerNamePrefix} {
		for e, err := range snap.Scan(prefix, prefixEnd(prefix), kv.Forward) {
			if err != nil {
				return err
			}
			if want, ok := names[string(e.Key)]; !ok || string(want) != string(e.Value) {
				report(fmt.Sprintf("catalog row %q says %x, want %x", e.Key, e.Value, want))
			}
			delete(names, string(e.Key))
		}
	}
	for key := range names {
		report(fmt.Sprintf("catalog row %q is missing", key))
	}
	return nil
}
