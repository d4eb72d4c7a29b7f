// SPDX-License-Identifier: MIT

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly"
)

type copyCommand struct {
	From string `required:"" placeholder:"PLACE" help:"Where the data is: a directory that no server has open, or the URL of a storage engine, as in ${engines}."`
	To   string `required:"" placeholder:"PLACE" help:"Where to copy it: an empty or new directory, or the URL of a storage engine without data. A copy that was interrupted cannot be opened: repeat it, and it starts over."`
}

// Help is shown below the usage.
func (*copyCommand) Help() string {
	return `A copy that was interrupted cannot be opened: run the same command again, which starts
over.`
}

// Run copies the data and prints the progress.
func (c *copyCommand) Run() error {
	paceCollector(0)
	if c.From == c.To {
		return errors.New("--from and --to are the same place")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	from, err := openPlace(c.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer closePlace(from)
	to, err := openPlace(c.To)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer closePlace(to)
	began := time.Now()
	w := &work{}
	w.begin("counting", "rows", 0)
	end := showProgress(w)
	counting := true
	done, err := mayfly.Copy(ctx, from, to, func(p mayfly.CopyProgress) {
		switch {
		case p.Counting:
			w.reach(p.Rows)
			return
		case counting:
			counting = false
			w.begin("copying", "", p.AllBytes)
		}
		w.reach(p.Bytes)
	}, os.Stderr)
	end()
	if err != nil {
		return openFailed(err)
	}
	fmt.Printf("copied %d rows, %d bytes in %v\n", done.Rows, done.Bytes, time.Since(began).Round(time.Millisecond))
	return nil
}

func openPlace(text string) (mayfly.Place, error) {
	if !strings.Contains(text, "://") {
		return mayfly.Place{Dir: text}, nil
	}
	db, err := (&engineFlag{Engine: text}).tool()
	return mayfly.Place{DB: db}, err
}

func closePlace(p mayfly.Place) {
	if p.DB != nil {
		_ = p.DB.Close()
	}
}
