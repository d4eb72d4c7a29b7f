// SPDX-License-Identifier: MIT

// The commands export and import.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/transfer"
)

// sourcePatience is how long a source or target that does not answer is waited for.
const sourcePatience = 5 * time.Minute

type exportCommand struct {
	running
	Database    string   `arg:"" optional:"" help:"The database. Default: all of them."`
	Container   string   `arg:"" optional:"" help:"The container. Default: all of the database."`
	To          string   `default:"-" placeholder:"PLACE" help:"The file for the items of a container, standard output (${default}), or the directory for containers with their definitions and scripts: one that is there, or a name that ends with a slash."`
	Format      string   `enum:",jsonl,json,csv" default:"" placeholder:"FORMAT" help:"The form of a file: jsonl (an item on each line), json (one array) or csv. Default: what its name says, or jsonl."`
	TTL         string   `name:"ttl" enum:"full,remaining" default:"full" placeholder:"WHICH" help:"The ttl of items: as they have it, with the time of the last write beside it (full), or what is left of it now (remaining). Default: ${default}."`
	System      bool     `help:"Keep the server's properties, such as _etag and _rid."`
	Columns     []string `placeholder:"NAME,…" help:"The columns of csv. Default: the properties of the first items."`
	Connections int      `default:"8" placeholder:"N" help:"How many connections read (${default})."`
	State       string   `placeholder:"FILE" help:"Where an interrupted export notes how far it is. Default: beside the place, with .state at its end."`
}

// Help is shown below the usage.
func (*exportCommand) Help() string {
	return `An export that was interrupted goes on when the same command runs again: nothing is
lost, and nothing is there twice. Items that are written while it runs may be in it as
they were before or after.

Examples:

  mayfly export shop carts --to carts.jsonl        the items of a container
  mayfly export shop carts --to carts.csv --columns id,customer,total
  mayfly export shop carts | gzip > carts.jsonl.gz
  mayfly export shop --to shop/                    a database, with definitions and scripts
  mayfly export --to everything/`
}

// Run exports.
func (e *exportCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := e.open(e.Connections)
	if err != nil {
		return err
	}
	info, statErr := os.Stat(e.To)
	directory := strings.HasSuffix(e.To, "/") || statErr == nil && info.IsDir()
	if e.Container == "" && !directory {
		return errors.New("several containers are exported to a directory: name it with --to, with a slash at its end")
	}
	o := transfer.ExportOptions{
		From: c, Name: client.Name{Database: e.Database, Container: e.Container}, Place: e.To, Directory: directory, Format: transfer.Format(e.Format),
		TTL: transfer.TTL(e.TTL), System: e.System, Columns: e.Columns, Connections: e.Connections, Progress: &transfer.Progress{},
	}
	if e.To != "-" {
		o.State = cmp.Or(e.State, strings.TrimRight(e.To, "/")+".state")
	}
	end := showProgress(moving{o.Progress, "exported"})
	err = transfer.Export(ctx, o)
	end()
	return transferred(ctx, err, o.State)
}

type importCommand struct {
	running
	Database    string `arg:"" optional:"" help:"The database. Default: all that the source has."`
	Container   string `arg:"" optional:"" help:"The container."`
	From        string `required:"" env:"MAYFLY_FROM" placeholder:"PLACE" help:"A file with items (JSONL, a JSON array, or CSV), - for standard input, a directory that an export made, or the connection string of another account."`
	FromCA      string `name:"from-ca" placeholder:"FILE" help:"Certificate to trust of another account."`
	Format      string `enum:",jsonl,json,csv" default:"" placeholder:"FORMAT" help:"The form of a file: jsonl, json or csv. Default: what it looks like."`
	TTL         string `name:"ttl" enum:",full,remaining" default:"" placeholder:"WHICH" help:"How long items live: as long as if they were written now (full), or only what is left (remaining), by the time of their last write. Default: full for files, remaining for another account."`
	Create      bool   `help:"Reject items that are there. Default: replace them."`
	Follow      bool   `help:"Go on with what is written to another account, until interrupted."`
	Connections int    `default:"8" placeholder:"N" help:"How many connections write (${default})."`
	Rejected    string `placeholder:"FILE" help:"Where rows go that are rejected. Default: DATABASE-CONTAINER-rejected.jsonl."`
	MaxRejected int64  `default:"1000" placeholder:"N" help:"How many rows may be rejected before the import stops (${default})."`
	State       string `placeholder:"FILE" help:"Where an interrupted import notes how far it is. Default: beside the file, or mayfly-import.state."`
}

// Help is shown below the usage.
func (*importCommand) Help() string {
	return `An import that was interrupted goes on when the same command runs again: nothing is lost,
and nothing is there twice. Rows without an id get one.

From another account, databases and containers come with their definitions, scripts,
throughput and items, and items keep the time that they have left. With --follow, what
is written there is written here, too. Deletes follow where the container has a change
feed of all versions and deletes.

Examples:

  mayfly import shop carts --from carts.jsonl
  mayfly import shop carts --from carts.csv --rejected bad.jsonl
  zcat carts.jsonl.gz | mayfly import shop carts --from -
  mayfly import --from everything/                 what an export has, with definitions
  mayfly import --from 'AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=…;'
  MAYFLY_FROM='AccountEndpoint=…' mayfly import shop --follow`
}

// Run imports.
func (i *importCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	to, err := i.open(i.Connections)
	if err != nil {
		return err
	}
	o := transfer.ImportOptions{
		To: to, Name: client.Name{Database: i.Database, Container: i.Container}, Place: i.From, Format: transfer.Format(i.Format),
		TTL: transfer.TTL(i.TTL), Connections: i.Connections, MaxRejected: i.MaxRejected, Rejected: i.rejected, Progress: &transfer.Progress{},
	}
	if i.Create {
		o.Write = client.Create
	}
	if client.IsConnection(i.From) {
		err = i.move(ctx, &o)
	} else {
		err = i.file(ctx, &o)
	}
	if n := o.Progress.Rejected.Load(); err == nil && n > 0 {
		rows, reasons := grouped(n)+" rows were", "them with the reasons"
		if n == 1 {
			rows, reasons = "1 row was", "it with the reason"
		}
		err = fmt.Errorf("%s rejected: %s has %s", rows, i.rejectedPlace(), reasons)
	}
	return transferred(ctx, err, o.State)
}

// rejected returns the name of the file for rejected rows of a container.
func (i *importCommand) rejected(n client.Name) string {
	return cmp.Or(i.Rejected, url.PathEscape(n.Database)+"-"+url.PathEscape(n.Container)+"-rejected.jsonl")
}

// rejectedPlace says where rejected rows are.
func (i *importCommand) rejectedPlace() string {
	if i.Rejected == "" && i.Container == "" {
		return "of each container DATABASE-CONTAINER-rejected.jsonl"
	}
	return i.rejected(client.Name{Database: i.Database, Container: i.Container})
}

func (i *importCommand) file(ctx context.Context, o *transfer.ImportOptions) error {
	if i.Follow {
		return errors.New("--follow is for another account: name it with --from and its connection string")
	}
	o.TTL = cmp.Or(o.TTL, transfer.Full)
	if i.From != "-" {
		o.State = cmp.Or(i.State, filepath.Clean(i.From)+".import.state")
	}
	end := showProgress(moving{o.Progress, "imported"})
	defer end()
	return transfer.Import(ctx, *o)
}

func (i *importCommand) move(ctx context.Context, o *transfer.ImportOptions) error {
	endpoint, key, err := client.ParseConnection(i.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	from, err := dial(client.Options{Endpoint: endpoint, Key: key, Connections: i.Connections, Patience: sourcePatience}, i.FromCA)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if from.Endpoint() == o.To.Endpoint() {
		return errors.New("--from and the server are the same")
	}
	o.TTL, o.State = cmp.Or(o.TTL, transfer.Remaining), cmp.Or(i.State, "mayfly-import.state")
	end := showProgress(moving{o.Progress, "moved"})
	defer end()
	return transfer.Move(ctx, transfer.MoveOptions{ImportOptions: *o, From: from, Follow: i.Follow, Report: func(text string) {
		fmt.Fprintln(os.Stderr, "mayfly:", text)
	}})
}

// transferred returns the error of a transfer for people.
func transferred(ctx context.Context, err error, state string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && state != "":
		return fmt.Errorf("interrupted: run the same command again to go on (%s says where)", state)
	case ctx.Err() != nil:
		return errors.New("interrupted")
	}
	return explained(err, "")
}
