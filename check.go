// SPDX-License-Identifier: MIT

package mayfly

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/mayflydb/mayfly/internal/engine"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/kv/pebblekv"
	"github.com/mayflydb/mayfly/internal/memory"
)

// CheckReport is the result of Check.
type CheckReport struct {
	Items, Bytes int64
	// Problems has a sentence for each of the first maxProblems problems.
	Problems []string
	// Found counts all problems.
	Found int
}

// maxProblems bounds CheckReport.Problems.
const maxProblems = 1000

// CheckProgress says how far a check is.
type CheckProgress = engine.CheckProgress

// Check reads every row of the data in dir, which no server may have open. It verifies
// that every item has all its derived rows, that every derived row has its item, and that
// the counters agree. It calls progress now and then, which may be nil.
func Check(dir string, progress func(CheckProgress)) (CheckReport, error) {
	var report CheckReport
	o := Options{Dir: dir}
	if !exists(o.dataDir()) {
		return report, fmt.Errorf("there is no data in %s", dir)
	}
	d := memory.Divide(AvailableMemory(), 0)
	db, err := pebblekv.Open(pebblekv.Options{
		Dir: o.dataDir(), CacheBytes: d.Blocks, MemTableBytes: d.MemTable, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return report, fmt.Errorf("open the data in %s: %w", dir, err)
	}
	defer db.Close()
	err = report.check(db, progress)
	return report, err
}

// CheckCluster is Check for the data in a shared storage engine. Nodes may be running: it
// checks the rows of one moment.
func CheckCluster(db kv.DB, progress func(CheckProgress)) (CheckReport, error) {
	var report CheckReport
	err := hasData(db)
	if err == nil {
		err = report.check(db, progress)
	}
	return report, err
}

func (report *CheckReport) check(db kv.DB, progress func(CheckProgress)) error {
	totals, err := engine.Check(db, progress, func(problem string) {
		report.Found++
		if len(report.Problems) < maxProblems {
			report.Problems = append(report.Problems, problem)
		}
	})
	report.Items, report.Bytes = totals.Items, totals.Bytes
	return err
}
