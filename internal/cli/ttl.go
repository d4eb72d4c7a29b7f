// SPDX-License-Identifier: MIT

// The command ttl shows what expires in a running server, when and why, and controls
// purge.

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/mayflydb/mayfly/internal/engine"
)

type ttlCommand struct {
	running
	JSON bool `name:"json" help:"Print the server's answer unchanged, for programs."`

	Status   ttlStatus   `cmd:"" default:"withargs" help:"Show how many items are live, how many have expired, and how far purge is behind."`
	Whatif   ttlWhatif   `cmd:"" help:"Show the effect of another default TTL. Changes nothing."`
	Forecast ttlForecast `cmd:"" help:"Show how much expires when, if nothing is written."`
	Explain  ttlExplain  `cmd:"" help:"Show when an item expires, or that it does not, and why."`
	History  ttlHistory  `cmd:"" help:"Show the last hour of a container: live, expired, and how far purge was behind."`
	Undelete ttlUndelete `cmd:"" help:"Bring back an expired item that is not purged yet, or list such items."`
	Events   ttlEvents   `cmd:"" help:"Show which items have expired, or follow them as they expire."`
	Pause    ttlPause    `cmd:"" help:"Pause purge, everywhere or in one container. A restart does not resume it."`
	Resume   ttlResume   `cmd:"" help:"Resume purge."`
	Limit    ttlLimit    `cmd:"" help:"Limit the number of items that are purged per second in a container."`
	Purge    ttlPurge    `cmd:"" help:"Purge all expired items at once."`
	Erase    ttlErase    `cmd:"" help:"Purge all expired items, and erase the bytes of all that was deleted from the disk at once."`
}

// Help is shown below the usage.
func (*ttlCommand) Help() string {
	return `An expired item is gone for every client at its deadline. Purge only frees its space.

Examples:

  mayfly ttl                                          all containers of the server
  mayfly ttl status shop                              those of a database
  mayfly ttl status shop carts                        one container, with its partitions
  mayfly ttl whatif shop carts --ttl=1h               what if items lived for an hour?
  mayfly ttl whatif shop carts --ttl=off
  mayfly ttl forecast shop carts                      how much expires when
  mayfly ttl forecast shop carts --interval=1h --count=24
  mayfly ttl explain shop carts 1 ada                 the item "1" with the partition key "ada"
  mayfly ttl explain shop carts 1 '["ada",7]'         a partition key of two parts
  mayfly ttl history shop carts                       the last hour
  mayfly ttl undelete shop carts                      list the expired items that can come back
  mayfly ttl undelete shop carts 1 ada --ttl=1h       bring one back, for an hour
  mayfly ttl events shop carts --follow --json        a line for each item as it expires
  mayfly ttl pause shop carts
  mayfly ttl limit shop carts 500                     at most 500 items per second; 0 for no limit
  mayfly ttl purge shop carts
  mayfly ttl erase                                    returns when no file holds a deleted item`
}

// anyContainer names a container, or all containers if it is empty.
type anyContainer struct {
	Database  string `arg:"" optional:"" help:"Its database. Default: all containers of the server."`
	Container string `arg:"" optional:"" help:"The container."`
}

func (c anyContainer) query() url.Values {
	q := url.Values{}
	if c.Database != "" {
		q.Set("database", c.Database)
	}
	if c.Container != "" {
		q.Set("container", c.Container)
	}
	return q
}

// oneContainer names a container.
type oneContainer struct {
	Database  string `arg:"" help:"Its database."`
	Container string `arg:"" help:"The container."`
}

func (c oneContainer) query() url.Values {
	return url.Values{"database": {c.Database}, "container": {c.Container}}
}

type (
	ttlStatus struct{ anyContainer }
	ttlWhatif struct {
		oneContainer
		TTL string `name:"ttl" required:"" placeholder:"DURATION" help:"The default TTL: for example 90s, 1h, 3d or a number of seconds, -1 for items that never expire by default, or off."`
	}
	ttlForecast struct {
		oneContainer
		Interval string `placeholder:"DURATION" help:"How long each interval is: for example 90s, 1h, 3d. Default: chosen so that all intervals together cover the container's TTL."`
		Count    int    `default:"24" placeholder:"N" help:"How many intervals (${default})."`
	}
	ttlExplain struct {
		oneContainer
		ID           string `arg:"" name:"id" help:"The item's id."`
		PartitionKey string `arg:"" help:"Its partition key: plain text, or a JSON array."`
	}
	ttlHistory  struct{ oneContainer }
	ttlUndelete struct {
		oneContainer
		ID           string `arg:"" name:"id" optional:"" help:"The item's id. Default: list the items that can come back."`
		PartitionKey string `arg:"" optional:"" help:"Its partition key: plain text, or a JSON array."`
		TTL          string `name:"ttl" placeholder:"DURATION" help:"How long the item lives from now on: for example 90s, 1h, 3d or a number of seconds, or -1 for ever."`
		Count        int    `default:"100" placeholder:"N" help:"How many items to list, of each partition (${default})."`
	}
	ttlEvents struct {
		oneContainer
		From   string `enum:"kept,now" default:"kept" placeholder:"WHEN" help:"Where to begin: ${enum} (${default}). Events are kept for an hour."`
		Cursor string `placeholder:"CURSOR" help:"Begin where an earlier call ended, in place of --from."`
		Follow bool   `help:"Print events as they happen, until interrupted."`
	}
	ttlPause  struct{ anyContainer }
	ttlResume struct{ anyContainer }
	ttlLimit  struct {
		oneContainer
		ItemsPerSecond string `arg:"" help:"The limit; 0 for none."`
	}
	ttlPurge struct{ anyContainer }
	ttlErase struct{ anyContainer }
)

func (s ttlStatus) Run(c *commands) error {
	return show(&c.TTL, "status", s.query(), func(w io.Writer, a *engine.TTLReport) {
		if s.Container == "" {
			printStatuses(w, a)
			return
		}
		printStatus(w, a)
	})
}

func (s ttlWhatif) Run(c *commands) error {
	q := s.query()
	q.Set("ttl", s.TTL)
	return show(&c.TTL, "whatif", q, printWhatIf)
}

func (s ttlForecast) Run(c *commands) error {
	q := s.query()
	if s.Interval != "" {
		q.Set("interval", s.Interval)
	}
	q.Set("count", fmt.Sprint(s.Count))
	return show(&c.TTL, "forecast", q, printForecast)
}

func (s ttlExplain) Run(c *commands) error {
	q := s.query()
	q.Set("id", s.ID)
	q.Set("partitionKey", s.PartitionKey)
	return show(&c.TTL, "explain", q, printExplanation)
}

func (s ttlHistory) Run(c *commands) error {
	return show(&c.TTL, "history", s.query(), printHistory)
}

func (s ttlUndelete) Run(c *commands) error {
	q := s.query()
	switch {
	case s.ID == "":
		q.Set("count", fmt.Sprint(s.Count))
		return show(&c.TTL, "undeletable", q, printUndeletable)
	case s.PartitionKey == "" || s.TTL == "":
		return errors.New("give the item's partition key, and with --ttl how long the item lives from now on")
	}
	q.Set("id", s.ID)
	q.Set("partitionKey", s.PartitionKey)
	q.Set("ttl", s.TTL)
	return post(&c.TTL, "undelete", q, printExplanation)
}

func (s ttlPause) Run(c *commands) error {
	return post(&c.TTL, "pause", s.query(), func(w io.Writer, _ *engine.PurgeSetting) {
		fmt.Fprintf(w, "Purge is paused %s. Expired items stay hidden, and still take space.\n", s.scope())
	})
}

func (s ttlResume) Run(c *commands) error {
	return post(&c.TTL, "resume", s.query(), func(w io.Writer, a *engine.PurgeSetting) {
		if a.Paused { // the container's own pause is over
			fmt.Fprintf(w, "Purge is no longer paused %s alone, but it is paused everywhere: mayfly ttl resume\n", s.scope())
			return
		}
		fmt.Fprintf(w, "Purge goes on %s.\n", s.scope())
	})
}

func (s ttlLimit) Run(c *commands) error {
	q := s.query()
	q.Set("itemsPerSecond", s.ItemsPerSecond)
	return post(&c.TTL, "limit", q, func(w io.Writer, a *engine.PurgeSetting) {
		limit := "has no limit"
		if a.Limit != 0 {
			limit = fmt.Sprintf("removes at most %g items/s", a.Limit)
		}
		fmt.Fprintf(w, "Purge %s in %s of %s.\n", limit, s.Container, s.Database)
	})
}

func (s ttlPurge) Run(c *commands) error {
	return post(&c.TTL, "purge", s.query(), func(w io.Writer, a *engine.PurgeResult) {
		fmt.Fprintf(w, "Purged %s: %s, %s.\n", s.scope(), itemCount(a.Purged.Items), byteCount(a.Purged.Bytes))
	})
}

func (s ttlErase) Run(c *commands) error {
	if !c.TTL.JSON {
		defer s.progress(&c.TTL)()
	}
	return post(&c.TTL, "erase", s.query(), func(w io.Writer, a *engine.ErasureResult) {
		fmt.Fprintf(w, "Erased %s in %.1f s, and rewrote %s for it. No file of the data holds what was deleted before.\n", s.scope(), a.Seconds, byteCount(int64(a.RewrittenBytes)))
		for _, name := range a.Paused {
			fmt.Fprintf(w, "Purge is paused in %s: items that have expired are still there.\n", plain(name))
		}
	})
}

// progressEvery is how often the progress of an erasure is printed.
const progressEvery = time.Second

// progress prints what is left to erase, on standard error, until the returned function is
// called.
func (s ttlErase) progress(c *ttlCommand) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			// Without an answer there is no progress to print: the erasure itself reports errors.
			_ = c.ask(http.MethodGet, "erasure", url.Values{}, func(body []byte) error {
				var a engine.ErasureStatus
				if err := json.Unmarshal(body, &a); err != nil {
					return err
				}
				switch {
				case a.Backup:
					fmt.Fprintln(os.Stderr, "waiting for the end of a backup, which has links to old tables")
				case a.Working:
					fmt.Fprintf(os.Stderr, "%d tables of %s are left to rewrite\n", a.LeftTables, byteCount(int64(a.LeftBytes)))
				}
				return nil
			})
		}
	}()
	return func() { close(done); <-ended }
}

// scope returns the containers that a command is for, as in a sentence.
func (c anyContainer) scope() string {
	if c.Database == "" {
		return "everywhere"
	}
	return "in " + c.Container + " of " + c.Database
}

// show gets a page and prints it.
func show[T any](c *ttlCommand, page string, q url.Values, print func(io.Writer, *T)) error {
	return c.ask(http.MethodGet, page, q, func(body []byte) error { return printAnswer(c, body, print) })
}

// post posts to a page and prints the answer.
func post[T any](c *ttlCommand, page string, q url.Values, print func(io.Writer, *T)) error {
	return c.ask(http.MethodPost, page, q, func(body []byte) error { return printAnswer(c, body, print) })
}

func printAnswer[T any](c *ttlCommand, body []byte, print func(io.Writer, *T)) error {
	if c.JSON {
		_, err := fmt.Fprintln(os.Stdout, string(body))
		return err
	}
	var a T
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("cannot read the server's answer, it may be of another version; --json prints it unchanged: %w", err)
	}
	w := bufio.NewWriter(os.Stdout)
	print(w, &a)
	return w.Flush()
}

const (
	// ttlTimeout is for all requests but those that follow or purge, which have no limit.
	ttlTimeout = 2 * time.Minute
	// maxTTLBytes bounds an answer: a status has a few hundred bytes for each
	// partition.
	maxTTLBytes = 256 << 20
)

// ask sends a request and calls then with the body of the answer.
func (c *ttlCommand) ask(method, page string, q url.Values, then func([]byte) error) error {
	timeout := ttlTimeout
	if page == "purge" || page == "erase" {
		timeout = 0
	}
	res, err := c.send(method, "ttl/"+page, q, nil, timeout)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxTTLBytes))
	if err != nil {
		return fmt.Errorf("cannot read all of the server's answer: %w", err)
	}
	return then(body)
}
