// SPDX-License-Identifier: MIT

package tikvkv_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/tikv/client-go/v2/txnkv"

	"github.com/mayflydb/mayfly/engine/tikv/tikvtest"
	"github.com/mayflydb/mayfly/internal/kv/kvtest"
)

// A scan of an old snapshot shows each row once and as it was then, however often the rows are
// rewritten meanwhile. The test speaks to the store with TiKV's client alone, so what fails here
// is the store that engine/tikv/run builds.
func TestScansOfOldSnapshotsAreWhole(t *testing.T) {
	const (
		rows  = 30
		scans = 200 // of each snapshot
		// behind is how many commits come between the snapshot and its first scan.
		behind = 3
	)
	snapshots := 10 * kvtest.LongFactor(t)
	at, err := url.Parse(tikvtest.NewSmall(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := txnkv.NewClient([]string{at.Host})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	prefix := []byte("z" + at.Path + "/")
	end := append(prefix[:len(prefix)-1:len(prefix)-1], '/'+1)
	var commits atomic.Int64
	committed := make(chan struct{})
	// commit writes all rows with the number of the commit.
	commit := func() error {
		txn, err := client.Begin()
		if err != nil {
			return err
		}
		value := fmt.Appendf(nil, "%d", commits.Load())
		for i := range rows {
			if err := txn.Set(fmt.Appendf(bytes.Clone(prefix), "%02d", i), value); err != nil {
				return err
			}
		}
		if err := txn.Commit(context.Background()); err != nil {
			return err
		}
		commits.Add(1)
		select {
		case committed <- struct{}{}:
		default:
		}
		return nil
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := commit(); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	torn := 0
	for range snapshots {
		ts, err := client.CurrentTimestamp("global")
		if err != nil {
			t.Fatal(err)
		}
		for range behind {
			select {
			case <-committed:
			case err := <-written:
				t.Fatal(err)
			}
		}
		for n := range scans {
			seen, last := 0, ""
			reads := client.GetSnapshot(ts)
			reads.SetScanBatchSize(2 * rows)
			walk, err := reads.Iter(prefix, end)
			if n%2 == 1 {
				walk, err = reads.IterReverse(end)
			}
			if err != nil {
				t.Fatal(err)
			}
			for walk.Valid() && bytes.HasPrefix(walk.Key(), prefix) {
				if seen++; seen > 1 && string(walk.Value()) != last {
					t.Errorf("one snapshot shows the commits %s and %s", last, walk.Value())
				}
				last = string(walk.Value())
				if err := walk.Next(); err != nil {
					t.Fatal(err)
				}
			}
			walk.Close()
			if seen != rows {
				if torn++; torn <= 5 {
					t.Errorf("a scan of commit %s, while commit %d is written, shows %d of %d rows", last, commits.Load(), seen, rows)
				}
			}
		}
	}
	stop()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if torn > 0 {
		t.Errorf("%d of %d scans are torn", torn, snapshots*scans)
	}
}
