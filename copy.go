// SPDX-License-Identifier: MIT

package mayfly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// Place is where data is: in a directory, or in a storage engine that several servers share.
type Place struct {
	Dir string
	DB  kv.DB // nil for a directory; the caller closes it
}

// CopyProgress says how far a copy is.
type CopyProgress = engine.CopyProgress

// Copy copies all data to an empty place, and calls report about once a second and at the
// end. No server may have a directory open. The copy has the data as it was when Copy began.
// A copy that was interrupted cannot be opened; another Copy to the same place starts over.
// It writes what an operator should know to w.
func Copy(ctx context.Context, from, to Place, report func(CopyProgress), w io.Writer) (done CopyProgress, err error) {
	if from.DB == nil && !exists(Options{Dir: from.Dir}.dataDir()) {
		return done, fmt.Errorf("there is no data in %s", from.Dir)
	}
	for _, p := range []*Place{&from, &to} {
		if p.DB != nil {
			continue
		}
		o := Options{Dir: p.Dir, Logger: slog.New(slog.DiscardHandler)}
		db, failed := openData(o, memory.Divide(AvailableMemory(), 0))
		if failed != nil {
			return done, failed
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		p.DB = db
		if p == &to {
			return runCopy(ctx, from.DB, db, false, report, w)
		}
	}
	return runCopy(ctx, from.DB, to.DB, true, report, w)
}

func runCopy(ctx context.Context, from, to kv.DB, shared bool, report func(CopyProgress), w io.Writer) (CopyProgress, error) {
	began := time.Now()
	done, err := engine.Copy(ctx, engine.CopyOptions{
		From: from, To: to, Shared: shared, Report: report,
		Restarted: func() { fmt.Fprintln(w, "the target has an interrupted copy, which is removed: starting over") },
		Alive: func() {
			fmt.Fprintf(w, "servers use the source: what they write from %s on is not copied\n", began.UTC().Format(time.RFC3339))
		},
	})
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: the target cannot be opened; repeat the copy, which starts over", err)
	}
	return done, err
}
