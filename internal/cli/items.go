// SPDX-License-Identifier: MIT

// The commands that look into a running server and write to it: query, get, put, rm and ls.

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	// shownRows is how many rows people see unless they ask for more.
	shownRows = 100
	// pageRows is how many rows are asked for at once.
	pageRows = 1000
	// maxItemFile bounds a file with one item: the service takes 2 MiB.
	maxItemFile = 8 << 20
)

type queryCommand struct {
	running
	Database  string            `arg:"" help:"The database."`
	Container string            `arg:"" help:"The container."`
	Query     string            `arg:"" optional:"" help:"The query, or - to read it from standard input. Default: all items."`
	PK        string            `name:"pk" placeholder:"KEY" help:"Only items with this partition key: plain text, or a JSON array."`
	Param     map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A parameter of the query, whose value is JSON or else text. Repeat for more."`
	Max       int               `placeholder:"N" help:"How many rows to print. Default: 100, and all with --json."`
	JSON      bool              `name:"json" help:"Print a line of JSON for each row, for programs."`
}

// Help is shown below the usage.
func (*queryCommand) Help() string {
	return `Examples:

  mayfly query shop carts
  mayfly query shop carts 'SELECT c.id, c.total FROM c WHERE c.total > 10 ORDER BY c.total DESC'
  mayfly query shop carts 'SELECT VALUE COUNT(1) FROM c'
  mayfly query shop carts 'SELECT * FROM c WHERE c.total > @least' --param @least=10
  mayfly query shop carts --pk ada --json | jq .id`
}

// Run runs the query and prints its rows.
func (q *queryCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := q.open(1)
	if err != nil {
		return err
	}
	text := q.Query
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxItemFile))
		if err != nil {
			return err
		}
		text = string(raw)
	}
	out := newRowPrinter(os.Stdout, os.Stderr, q.JSON, q.Max)
	name := client.Name{Database: q.Database, Container: q.Container}
	if err := runQuery(ctx, c, name, text, q.PK, q.Param, out); err != nil {
		return explained(err, "")
	}
	return out.end()
}

// everything is the query for all items.
const everything = "SELECT * FROM c"

// runQuery runs a query to its end, or until the printer has enough.
func runQuery(ctx context.Context, c *client.Client, name client.Name, text, pk string, parameters map[string]string, out *rowPrinter) error {
	if strings.TrimSpace(text) == "" {
		text = everything
	}
	body, err := queryBody(text, parameters)
	if err != nil {
		return err
	}
	p := client.Page{MaxItems: pageRows, Merge: true}
	if out.most > 0 {
		p.MaxItems = min(pageRows, out.most)
	}
	if pk != "" {
		of, err := c.Container(ctx, name)
		if err != nil {
			return err
		}
		if p.Key, err = of.ParseKey(pk); err != nil {
			return err
		}
	}
	for {
		began := time.Now()
		a, err := c.Query(ctx, name, body, p)
		if err != nil {
			return err
		}
		rows, err := a.Rows(client.Items)
		if err != nil {
			return err
		}
		enough, err := out.page(rows, a.Charge(), time.Since(began))
		if err != nil {
			return err
		}
		if p.Continuation = a.Continuation(); p.Continuation == "" {
			return nil
		}
		if enough {
			out.more = true
			return nil
		}
	}
}

// queryBody returns the body of a query request.
func queryBody(text string, parameters map[string]string) ([]byte, error) {
	type parameter struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
	body := struct {
		Query      string      `json:"query"`
		Parameters []parameter `json:"parameters"`
	}{text, []parameter{}}
	for name, v := range parameters {
		if !strings.HasPrefix(name, "@") {
			name = "@" + name
		}
		raw := json.RawMessage(v)
		if !json.Valid(raw) {
			raw = value.AppendString(nil, v)
		}
		body.Parameters = append(body.Parameters, parameter{name, raw})
	}
	return json.Marshal(body)
}

type getCommand struct {
	running
	Database     string `arg:"" help:"The database."`
	Container    string `arg:"" optional:"" help:"The container. Default: print the database."`
	ID           string `arg:"" name:"id" optional:"" help:"The item's id. Default: print the container's definition."`
	PartitionKey string `arg:"" optional:"" help:"Its partition key: plain text, or a JSON array. Default: the id."`
	JSON         bool   `name:"json" help:"Print the server's answer unchanged, for programs."`
}

// Help is shown below the usage.
func (*getCommand) Help() string {
	return `Examples:

  mayfly get shop carts 1 ada           the item "1" with the partition key "ada"
  mayfly get shop carts 1 '["ada",7]'   a partition key of two parts
  mayfly get shop carts                 the container's definition`
}

// Run prints the resource.
func (g *getCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := g.open(1)
	if err != nil {
		return err
	}
	body, err := g.read(ctx, c)
	if err != nil {
		return explained(err, "")
	}
	if g.JSON {
		_, err := fmt.Printf("%s\n", body)
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	_, err = fmt.Printf("%s\n", b.Bytes())
	return err
}

func (g *getCommand) read(ctx context.Context, c *client.Client) ([]byte, error) {
	switch {
	case g.Container == "":
		return c.Read(ctx, client.Name{}, client.Databases, g.Database)
	case g.ID == "":
		return c.Read(ctx, client.Name{Database: g.Database}, client.Containers, g.Container)
	}
	of, key, err := itemKey(ctx, c, client.Name{Database: g.Database, Container: g.Container}, g.ID, g.PartitionKey)
	if err != nil {
		return nil, err
	}
	a, err := c.ReadItem(ctx, of.Name, g.ID, key)
	if err != nil {
		return nil, keyHint(err, g.PartitionKey)
	}
	return a.Body, nil
}

// keyHint adds a hint to an error for an item that is not there, if its partition key was given
// as plain text that may have been meant as a number or the like.
func keyHint(err error, text string) error {
	v, scalar := value.FromJSON([]byte(text))
	if _, isText := v.Text(); !client.Is(err, http.StatusNotFound) || !json.Valid([]byte(text)) || !scalar || isText {
		return err
	}
	return fmt.Errorf("%w (the partition key was taken as text: if it is none, write it as '[%s]')", err, text)
}

// itemKey returns the container of an item and the item's partition key, as it was given or
// as the id says.
func itemKey(ctx context.Context, c *client.Client, n client.Name, id, text string) (*client.Container, value.PartitionKey, error) {
	of, err := c.Container(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	if text == "" {
		if paths := of.KeyPaths(); len(paths) != 1 || paths[0].String() != "/id" {
			return nil, nil, fmt.Errorf("give the item's partition key, which is at %s", pathsText(of))
		}
		text = id
	}
	key, err := of.ParseKey(text)
	return of, key, err
}

// pathsText returns the paths of a partition key.
func pathsText(of *client.Container) string {
	var texts []string
	for _, p := range of.KeyPaths() {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}

type putCommand struct {
	running
	printed
	Database   string   `arg:"" help:"The database."`
	Container  string   `arg:"" optional:"" help:"The container. Default: make the database."`
	Item       string   `arg:"" optional:"" help:"The item as JSON, the name of a file that has it, or - for standard input."`
	KeyPath    []string `placeholder:"PATH" help:"Make the container, with this path to its partition key, as in /customer. Repeat for a hierarchical key."`
	TTL        string   `name:"ttl" placeholder:"DURATION" help:"Its default TTL: for example 90s, 1h, 3d or a number of seconds, or -1 if only the items' own ttl counts. Default: nothing expires."`
	Throughput int      `placeholder:"RU" help:"Its throughput, in request units a second."`
	New        bool     `help:"Fail if there is an item with the same id and partition key."`
}

// Help is shown below the usage.
func (*putCommand) Help() string {
	return `It makes a database or container that is not there, and replaces an item that is.

Examples:

  mayfly put shop                                            a database
  mayfly put shop carts --key-path /customer --ttl 1h        a container, and its database
  mayfly put shop carts '{"id":"1","customer":"ada"}'        an item
  mayfly put shop carts cart.json
  curl -s https://example.com/cart | mayfly put shop carts -`
}

// Run writes the resource.
func (p *putCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := p.open(1)
	if err != nil {
		return err
	}
	return explained(p.write(ctx, c), "")
}

func (p *putCommand) write(ctx context.Context, c *client.Client) error {
	if len(p.KeyPath) == 0 && (p.TTL != "" || p.Throughput != 0) {
		return errors.New("--ttl and --throughput are for a container to make, with --key-path: an item's own time to live is its property ttl, in seconds")
	}
	if p.Item == "" || len(p.KeyPath) > 0 {
		if err := p.makeContainer(ctx, c); err != nil {
			return err
		}
	}
	if p.Item == "" {
		return nil
	}
	done, err := p.writeItem(ctx, c)
	if err != nil {
		return err
	}
	return p.say(done)
}

// did is what a command did with a resource.
type did struct {
	Did      string   `json:"did"`
	Resource string   `json:"resource"`
	ID       string   `json:"id"`
	RU       *float64 `json:"requestUnits,omitempty"`
}

func (d did) String() string {
	text := fmt.Sprintf("%s the %s %s", d.Did, d.Resource, plain(d.ID))
	if d.RU != nil {
		text += fmt.Sprintf(", for %.2f RU", *d.RU)
	}
	return text
}

// say says what was done: to people on standard error, and to programs as JSON.
func (p printed) say(d did) error {
	return p.show(func() error {
		_, err := fmt.Fprintln(os.Stderr, d)
		return err
	}, d)
}

// writeItem writes the item, and returns what was done.
func (p *putCommand) writeItem(ctx context.Context, c *client.Client) (done did, err error) {
	raw, err := readItem(p.Item)
	if err != nil {
		return done, err
	}
	o, err := value.ParseObject(raw)
	if err != nil {
		return done, fmt.Errorf("the item is no JSON object: %w", err)
	}
	of, err := c.Container(ctx, client.Name{Database: p.Database, Container: p.Container})
	if err != nil {
		return done, err
	}
	key, err := of.KeyOf(o)
	if err != nil {
		return done, err
	}
	way := client.Upsert
	if p.New {
		way = client.Create
	}
	a, err := c.WriteItem(ctx, of.Name, raw, key, way)
	if err != nil {
		return done, err
	}
	charge := a.Charge()
	done = did{"replaced", "item", client.ID(raw), &charge}
	if a.Status == http.StatusCreated {
		done.Did = "created"
	}
	return done, nil
}

// makeContainer makes the database and the container, if they are not there.
func (p *putCommand) makeContainer(ctx context.Context, c *client.Client) error {
	if p.Container != "" && len(p.KeyPath) == 0 {
		return errors.New("give an item to write, or with --key-path the partition key of a container to make")
	}
	body, err := p.definition() // a fault in it leaves no database behind
	if err != nil {
		return err
	}
	if err := c.Create(ctx, client.Name{}, client.Databases, idBody(p.Database), nil); err == nil {
		if err := p.say(did{Did: "made", Resource: "database", ID: p.Database}); err != nil {
			return err
		}
	} else if !client.Is(err, http.StatusConflict) {
		return err
	}
	if p.Container == "" {
		return nil
	}
	err = c.Create(ctx, client.Name{Database: p.Database}, client.Containers, body, client.Throughput{Manual: p.Throughput}.Header())
	switch {
	case err == nil:
		return p.say(did{Did: "made", Resource: "container", ID: p.Container})
	case client.Is(err, http.StatusConflict):
		return p.container(ctx, c, body)
	}
	return err
}

// container looks at a container that is there already. It may differ from the one to make
// only if that says nothing of the difference.
func (p *putCommand) container(ctx context.Context, c *client.Client, wanted []byte) error {
	n := client.Name{Database: p.Database, Container: p.Container}
	of, err := c.Container(ctx, n)
	if err != nil {
		return err
	}
	want, err := client.ParseContainer(n, wanted)
	if err != nil {
		return err
	}
	has, wants := defaultTTL(of), defaultTTL(want)
	switch {
	case p.TTL != "" && has != wants:
		return fmt.Errorf("there is a container %s already, and put changes none: its default TTL stays %s and is not %s, and nothing was written. The explorer's page Settings of the container changes it, and so does an SDK; mayfly ttl whatif shows the effect before", p.Container, ttlText(has), ttlText(wants))
	case p.Item != "":
		return nil
	}
	return fmt.Errorf("there is a container %s already: mayfly get %s %s prints its definition", p.Container, p.Database, p.Container)
}

// defaultTTL returns the default TTL of a container.
func defaultTTL(of *client.Container) catalog.TTL {
	if of.DefaultTTL == nil {
		return catalog.TTLAbsent
	}
	return catalog.TTL(*of.DefaultTTL)
}

// definition returns the definition of the container.
func (p *putCommand) definition() ([]byte, error) {
	kind := "Hash"
	if len(p.KeyPath) > 1 {
		kind = "MultiHash"
	}
	d := map[string]any{"id": p.Container, "partitionKey": map[string]any{"paths": p.KeyPath, "kind": kind, "version": 2}}
	switch p.TTL {
	case "", "off":
	case "-1":
		d["defaultTtl"] = -1
	default:
		ttl, err := clock.ParseDuration(p.TTL)
		if err != nil || ttl < time.Second || ttl%time.Second != 0 {
			return nil, fmt.Errorf("--ttl is %q: give %s; not less than a second, and whole seconds", p.TTL, clock.DurationRule)
		}
		d["defaultTtl"] = int64(ttl / time.Second)
	}
	return json.Marshal(d)
}

// idBody returns a resource that has only an id.
func idBody(id string) []byte {
	return append(value.AppendString([]byte(`{"id":`), id), '}')
}

// readItem returns the item that an argument is or names.
func readItem(text string) ([]byte, error) {
	switch {
	case text == "-":
		return io.ReadAll(io.LimitReader(os.Stdin, maxItemFile))
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		return []byte(text), nil
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, fmt.Errorf("read the item: %w", err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxItemFile))
}

type rmCommand struct {
	running
	printed
	Database     string `arg:"" help:"The database."`
	Container    string `arg:"" optional:"" help:"The container. Default: delete the database."`
	ID           string `arg:"" name:"id" optional:"" help:"The item's id. Default: delete the container."`
	PartitionKey string `arg:"" optional:"" help:"Its partition key: plain text, or a JSON array. Default: the id."`
	Yes          bool   `help:"Delete a database or a container without asking."`
}

// Help is shown below the usage.
func (*rmCommand) Help() string {
	return `Examples:

  mayfly rm shop carts 1 ada      the item "1" with the partition key "ada"
  mayfly rm shop carts            the container, after a question
  mayfly rm shop --yes            the database, without one`
}

// Run deletes the resource.
func (r *rmCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := r.open(1)
	if err != nil {
		return err
	}
	return explained(r.remove(ctx, c), "")
}

// deleted says to programs what was deleted. People have just named it.
func (r *rmCommand) deleted(resource, id string, err error) error {
	if err != nil {
		return err
	}
	return r.show(func() error { return nil }, did{Did: "deleted", Resource: resource, ID: id})
}

func (r *rmCommand) remove(ctx context.Context, c *client.Client) error {
	n := client.Name{Database: r.Database, Container: r.Container}
	if r.ID != "" {
		of, key, err := itemKey(ctx, c, n, r.ID, r.PartitionKey)
		if err != nil {
			return err
		}
		_, err = c.DeleteItem(ctx, of.Name, r.ID, key)
		return r.deleted("item", r.ID, keyHint(err, r.PartitionKey))
	}
	what := "the database " + r.Database + " with all its containers"
	if r.Container != "" {
		what = "the container " + n.String() + " with all its items"
	}
	if err := confirm(what, r.Yes); err != nil {
		return err
	}
	if r.Container == "" {
		return r.deleted("database", r.Database, c.Delete(ctx, client.Name{}, client.Databases, r.Database))
	}
	return r.deleted("container", r.Container, c.Delete(ctx, client.Name{Database: r.Database}, client.Containers, r.Container))
}

// confirm asks before something is deleted.
func confirm(what string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(os.Stdin) {
		return fmt.Errorf("this would delete %s: give --yes if that is meant", plain(what))
	}
	fmt.Fprintf(os.Stderr, "Delete %s? Type yes: ", plain(what))
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
