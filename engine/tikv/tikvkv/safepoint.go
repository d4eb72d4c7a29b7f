// SPDX-License-Identifier: MIT

// TiKV keeps the versions of rows from the cluster's safe point on. Nobody moves that but its
// users, so one of the handles on a store does: the one whose name is in a row.

package tikvkv

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"

	"github.com/mayflydb/mayfly/internal/kv"
)

// collection says how old versions are collected.
type collection struct {
	every time.Duration // between two rounds
	keep  time.Duration // versions are kept for so long at least
	// settle is how long a safe point is known before it is used. Clients look for it every
	// ten seconds, and refuse to read if they could not for a hundred.
	settle time.Duration
	// sweepPieces is how many pieces of a range a sweep removes before it has the cluster
	// destroy the rest.
	sweepPieces int
}

var defaultCollection = collection{every: time.Minute, keep: 10 * time.Minute, settle: 110 * time.Second, sweepPieces: 250}

// wait is about how long it takes until the safe point has passed a moment.
func (c collection) wait() time.Duration { return c.keep + c.settle + 2*c.every }

const (
	// leaderRow has the handle that moves the safe point, and when it was last seen, in
	// milliseconds.
	leaderRow = "collector"
	// leaderRounds is how many rounds a leader may miss.
	leaderRounds = 3
	// longestSnapshot is how long a snapshot is kept readable. Checks and copies of large
	// stores take hours.
	longestSnapshot = 24 * time.Hour
	// collectorService is the name under which the one who collects is known to PD. Its
	// claim does not expire.
	collectorService = "gc_worker"
)

// published is a safe point that clients were told.
type published struct {
	at    time.Time
	point uint64
}

// keepSafePoint keeps what this handle's snapshots show, and moves the safe point if that is
// this handle's job, until the handle is closed.
func (db *DB) keepSafePoint() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db.background.Go(func() {
		<-db.stop
		cancel()
	})
	ticker := time.NewTicker(db.collect.every)
	defer ticker.Stop()
	var told []published
	var held bool
	for {
		select {
		case <-db.stop:
			return
		case <-ticker.C:
		}
		var err error
		if held, err = db.holdSnapshots(ctx, held); err == nil {
			told, err = db.moveSafePoint(ctx, told)
		}
		if err != nil && ctx.Err() == nil {
			db.log.Warn("old versions of rows are not collected at present", "error", err.Error())
		}
	}
}

// service is the name under which PD knows the claim of this handle.
func (db *DB) service() string { return "mayfly-" + db.id }

// holdSnapshots has PD keep what the oldest snapshot shows, if there is one that is not short.
// The claim of a handle that ends without a word expires.
func (db *DB) holdSnapshots(ctx context.Context, held bool) (bool, error) {
	oldest := uint64(math.MaxUint64)
	db.open.Lock()
	for s := range db.open.snapshots {
		if age := time.Since(s.taken); age >= db.collect.every && age < longestSnapshot {
			oldest = min(oldest, s.ts)
		}
	}
	db.open.Unlock()
	if oldest == math.MaxUint64 && !held {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	ttl := int64(math.Ceil((5 * db.collect.every).Seconds()))
	if oldest == math.MaxUint64 {
		ttl, oldest = 0, 0 // which takes the claim back
	}
	_, err := db.store.GetPDClient().UpdateServiceGCSafePoint(ctx, db.service(), ttl, oldest)
	return ttl != 0, err
}

// moveSafePoint moves the safe point, in two steps: clients are told first, and the cluster
// when they must know. told has what this handle has told.
func (db *DB) moveSafePoint(ctx context.Context, told []published) ([]published, error) {
	ctx, cancel := context.WithTimeout(ctx, db.collect.wait())
	defer cancel()
	now, leads, err := db.lead(ctx)
	if err != nil || !leads {
		return nil, err
	}
	target := oracle.ComposeTS(now-db.collect.keep.Milliseconds(), 0)
	least, err := db.store.GetPDClient().UpdateServiceGCSafePoint(ctx, collectorService, math.MaxInt64, target)
	if err != nil {
		return told, err
	}
	point := min(target, least)
	if err := db.store.GetSafePointKV().Put(tikv.GcSavedSafePoint, strconv.FormatUint(point, 10)); err != nil {
		return told, err
	}
	told = append(told, published{time.Now(), point})
	settled := 0
	for settled < len(told) && time.Since(told[settled].at) >= db.collect.settle {
		settled++
	}
	if settled == 0 {
		return told, nil
	}
	// GC resolves the locks of all transactions before the point, and then moves it.
	if _, err := db.store.GC(ctx, told[settled-1].point); err != nil {
		return told, fmt.Errorf("move the safe point: %w", err)
	}
	return told[settled-1:], nil
}

// lead reports whether this handle moves the safe point, and the time. It takes the place of a
// leader that was not seen for some rounds. Should two handles believe that they lead, no harm
// is done: safe points never go back, and each tells clients before it moves one.
func (db *DB) lead(ctx context.Context) (now int64, leads bool, err error) {
	values, now, err := db.look(ctx, db.own, [][]byte{[]byte(leaderRow)})
	if err != nil {
		return 0, false, err
	}
	var b kv.Batch
	if was := values[0]; was == nil {
		b.RequireAbsent([]byte(leaderRow))
	} else {
		name, seen, _ := bytes.Cut(was, []byte{' '})
		ms, err := strconv.ParseInt(string(seen), 10, 64)
		if err == nil && string(name) != db.id && now-ms < (leaderRounds*db.collect.every).Milliseconds() {
			return now, false, nil
		}
		b.Require([]byte(leaderRow), was)
	}
	b.Set([]byte(leaderRow), fmt.Appendf(nil, "%s %d", db.id, now))
	if err := db.commit(ctx, db.own, &b); err != nil {
		if isConflict(err) {
			err = nil
		}
		return now, false, err
	}
	return now, true, nil
}
