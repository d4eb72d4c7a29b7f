// SPDX-License-Identifier: MIT

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

type lsCommand struct {
	running
	Database  string `arg:"" optional:"" help:"The database. Default: list all databases and their containers."`
	Container string `arg:"" optional:"" help:"The container. Default: list the containers."`
	Max       int    `placeholder:"N" help:"How many items to list. Default: 100, and all with --json."`
	JSON      bool   `name:"json" help:"Print a line of JSON for each, for programs."`
}

// Help is shown below the usage.
func (*lsCommand) Help() string {
	return `Examples:

  mayfly ls                        databases and containers
  mayfly ls shop                   the containers of a database
  mayfly ls shop carts             items
  mayfly ls shop carts --json | jq .id`
}

// Run prints the list.
func (l *lsCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := l.open(1)
	if err != nil {
		return err
	}
	if l.Container != "" {
		out := newRowPrinter(os.Stdout, os.Stderr, l.JSON, l.Max)
		if err := runQuery(ctx, c, client.Name{Database: l.Database, Container: l.Container}, everything, "", nil, out); err != nil {
			return explained(err, "")
		}
		return out.end()
	}
	databases := []string{l.Database}
	if l.Database == "" {
		if databases, err = c.Names(ctx, client.Name{}, client.Databases); err != nil {
			return explained(err, "")
		}
	}
	return explained(l.containers(ctx, c, databases), "")
}

func (l *lsCommand) containers(ctx context.Context, c *client.Client, databases []string) error {
	throughputs, err := c.Throughputs(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"DATABASE", "CONTAINER", "PARTITION KEY", "TTL", "THROUGHPUT"}}
	for _, db := range databases {
		definitions, err := c.List(ctx, client.Name{Database: db}, client.Containers)
		if err != nil {
			return err
		}
		if len(definitions) == 0 {
			rows = append(rows, []string{plain(db), "", "", "", ""})
		}
		for _, raw := range definitions {
			if l.JSON {
				if _, err := fmt.Printf("%s\n", raw); err != nil {
					return err
				}
				continue
			}
			of, err := client.ParseContainer(client.Name{Database: db, Container: client.ID(raw)}, raw)
			if err != nil {
				return err
			}
			rows = append(rows, []string{plain(db), plain(of.Name.Container), plain(pathsText(of)), ttlText(defaultTTL(of)), throughputText(throughputs[of.RID])})
		}
	}
	if l.JSON {
		return nil
	}
	if len(rows) == 1 {
		fmt.Fprintln(os.Stderr, "There are no databases. To make one with a container: mayfly put shop carts --key-path /customer")
		return nil
	}
	table(os.Stdout, "llllr", rows)
	return nil
}

func throughputText(t client.Throughput) string {
	switch {
	case t.Autoscale > 0:
		return fmt.Sprintf("up to %d RU/s", t.Autoscale)
	case t.Manual > 0:
		return fmt.Sprintf("%d RU/s", t.Manual)
	}
	return ""
}

// rowPrinter prints the rows of a query: a table for people, or a line of JSON for each.
type rowPrinter struct {
	w, says io.Writer
	json    bool
	most    int // 0 for all
	rows    int
	charge  float64
	took    time.Duration
	more    bool
	// columns and widths are those of the first page; nil for rows that are no objects.
	columns []string
	widths  []int
	begun   bool
}

func newRowPrinter(w, says io.Writer, asJSON bool, most int) *rowPrinter {
	if most <= 0 && !asJSON {
		most = shownRows
	}
	return &rowPrinter{w: w, says: says, json: asJSON, most: most}
}

// page prints a page, and reports whether there are enough rows.
func (p *rowPrinter) page(rows []json.RawMessage, charge float64, took time.Duration) (enough bool, err error) {
	p.charge, p.took = p.charge+charge, p.took+took
	if p.most > 0 && p.rows+len(rows) > p.most {
		rows, p.more = rows[:p.most-p.rows], true
	}
	p.rows += len(rows)
	var b bytes.Buffer
	if p.json {
		for _, row := range rows {
			b.Write(row)
			b.WriteByte('\n')
		}
	} else {
		p.table(&b, rows)
	}
	_, err = p.w.Write(b.Bytes())
	return p.most > 0 && p.rows >= p.most, err
}

// widest is the widest that a column gets, and maxColumns how many there are.
const (
	widest     = 48
	maxColumns = 12
)

func (p *rowPrinter) table(w *bytes.Buffer, rows []json.RawMessage) {
	if len(rows) == 0 {
		return
	}
	objects := make([]*value.Object, len(rows))
	for i, row := range rows {
		o, err := value.ParseObject(row)
		if err != nil && !p.begun {
			p.begun = true // a value and no object
		}
		if objects[i] = o; err != nil {
			objects[i] = nil
		}
	}
	if !p.begun {
		p.begun = true
		p.layOut(objects)
		p.line(w, func(i int) string { return p.columns[i] })
	}
	for i, o := range objects {
		if o == nil || p.columns == nil {
			fmt.Fprintln(w, cell(rows[i], 0))
			continue
		}
		p.line(w, func(at int) string {
			raw, ok := o.Lookup(p.columns[at])
			if !ok {
				return ""
			}
			return cell(raw, widest)
		})
	}
}

// layOut chooses the columns: the properties in the order in which they come, without those
// of the system.
func (p *rowPrinter) layOut(objects []*value.Object) {
	seen := map[string]bool{}
	p.columns = []string{}
	for _, o := range objects {
		for _, m := range o.Members() {
			name := m.Name
			if !seen[name] && !isSystemProperty(name) && len(p.columns) < maxColumns {
				seen[name] = true
				p.columns = append(p.columns, name)
			}
		}
	}
	p.widths = make([]int, len(p.columns))
	for i, name := range p.columns {
		p.widths[i] = utf8.RuneCountInString(name)
		for _, o := range objects {
			if raw, ok := o.Lookup(name); ok {
				p.widths[i] = max(p.widths[i], utf8.RuneCountInString(cell(raw, widest)))
			}
		}
	}
}

func (p *rowPrinter) line(w *bytes.Buffer, text func(i int) string) {
	for i := range p.columns {
		t := text(i)
		w.WriteString(t)
		if i < len(p.columns)-1 {
			w.WriteString(strings.Repeat(" ", max(0, p.widths[i]-utf8.RuneCountInString(t))+2))
		}
	}
	w.WriteByte('\n')
}

// cell returns a value as a cell of a table: text without quotes, anything else as JSON.
func cell(raw []byte, most int) string {
	text := string(raw)
	if v, ok := value.FromJSON(raw); ok {
		if s, ok := v.Text(); ok {
			text = s
		}
	}
	text = plain(text)
	if most > 0 && utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most-1]) + "…"
	}
	return text
}

// isSystemProperty reports whether the server adds a property to items.
func isSystemProperty(name string) bool {
	switch name {
	case "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn":
		return true
	}
	return false
}

// end says how many rows there were.
func (p *rowPrinter) end() error {
	if p.json {
		return nil
	}
	text := fmt.Sprintf("%d rows", p.rows)
	if p.rows == 1 {
		text = "1 row"
	}
	if p.more {
		text += ", and there are more (--max)"
	}
	_, err := fmt.Fprintf(p.says, "%s, %.2f RU, %v\n", text, p.charge, p.took.Round(100*time.Microsecond))
	return err
}
