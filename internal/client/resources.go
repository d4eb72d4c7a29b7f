// SPDX-License-Identifier: MIT

// The resources of the protocol: databases, containers and what is in them.

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/mayflydb/mayfly/internal/value"
)

// The kinds of resources, as signatures and paths name them, and the property that a list of
// each has them under.
const (
	Databases  = "dbs"
	Containers = "colls"
	Items      = "docs"
	Procedures = "sprocs"
	Triggers   = "triggers"
	Functions  = "udfs"
	Ranges     = "pkranges"
	Offers     = "offers"
	Keys       = "clientencryptionkeys"
)

var listNames = map[string]string{
	Databases: "Databases", Containers: "DocumentCollections", Items: "Documents", Procedures: "StoredProcedures", Triggers: "Triggers",
	Functions: "UserDefinedFunctions", Ranges: "PartitionKeyRanges", Offers: "Offers", Keys: "ClientEncryptionKeys",
}

// The headers of the protocol that the tools use.
const (
	headerKey          = "X-Ms-Documentdb-Partitionkey"
	headerRange        = "X-Ms-Documentdb-Partitionkeyrangeid"
	headerContinuation = "X-Ms-Continuation"
	headerMaxItems     = "X-Ms-Max-Item-Count"
	headerIsQuery      = "X-Ms-Documentdb-Isquery"
	headerCross        = "X-Ms-Documentdb-Query-Enablecrosspartition"
	headerMerge        = "X-Mayfly-Merge"
	headerUpsert       = "X-Ms-Documentdb-Is-Upsert"
	headerMinimal      = "Prefer"
	headerThroughput   = "X-Ms-Offer-Throughput"
	headerAutoscale    = "X-Ms-Cosmos-Offer-Autopilot-Settings"
	minimal            = "return=minimal"
)

// Name is the names of a database and a container. The container is empty for a database,
// and both are for the account.
type Name struct{ Database, Container string }

func (n Name) String() string {
	if n.Container == "" {
		return n.Database
	}
	return n.Database + "/" + n.Container
}

// link returns what the signature names, and path the path of the URL.
func (n Name) link() string {
	switch {
	case n.Database == "":
		return ""
	case n.Container == "":
		return "dbs/" + n.Database
	}
	return "dbs/" + n.Database + "/colls/" + n.Container
}

func (n Name) path() string {
	switch {
	case n.Database == "":
		return ""
	case n.Container == "":
		return "/dbs/" + escape(n.Database)
	}
	return "/dbs/" + escape(n.Database) + "/colls/" + escape(n.Container)
}

// escape escapes a name in a path. Dots alone would be taken for directories.
func escape(name string) string {
	switch name {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(name)
}

// feed returns a request for the list of a kind in n.
func (n Name) feed(method, kind string) *Request {
	return &Request{Method: method, Path: n.path() + "/" + kind, Kind: kind, Link: n.link(), Header: map[string]string{}}
}

// of returns a request for one resource of a kind in n.
func (n Name) of(method, kind, id string) *Request {
	link := n.link()
	if link != "" {
		link += "/"
	}
	return &Request{Method: method, Path: n.path() + "/" + kind + "/" + escape(id), Kind: kind, Link: link + kind + "/" + id, Header: map[string]string{}}
}

// maxListed bounds how many resources other than items are listed.
const maxListed = 100_000

// List returns all resources of a kind in n, other than items.
func (c *Client) List(ctx context.Context, n Name, kind string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for continuation := ""; ; {
		r := n.feed(http.MethodGet, kind)
		r.Header[headerMaxItems] = "1000"
		if continuation != "" {
			r.Header[headerContinuation] = continuation
		}
		a, err := c.Do(ctx, r)
		if err != nil {
			return nil, err
		}
		rows, err := a.Rows(kind)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if continuation = a.Header.Get(headerContinuation); continuation == "" {
			return all, nil
		}
		if len(all) > maxListed {
			return nil, fmt.Errorf("there are more than %d %s", maxListed, listNames[kind])
		}
	}
}

// Names returns the ids of all resources of a kind in n, in order.
func (c *Client) Names(ctx context.Context, n Name, kind string) ([]string, error) {
	rows, err := c.List(ctx, n, kind)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, row := range rows {
		names = append(names, ID(row))
	}
	slices.Sort(names)
	return names, nil
}

// Rows returns the resources in an answer that is a list of a kind.
func (a *Answer) Rows(kind string) ([]json.RawMessage, error) {
	if len(bytes.TrimSpace(a.Body)) == 0 {
		return nil, nil
	}
	o, err := value.ParseObject(a.Body)
	if err != nil {
		return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	raw, ok := o.Lookup(listNames[kind])
	elements, list := value.Elements(raw)
	if !ok || !list {
		return nil, fmt.Errorf("the server's answer is no list of %s", listNames[kind])
	}
	rows := make([]json.RawMessage, len(elements))
	for i, e := range elements {
		rows[i] = e
	}
	return rows, nil
}

// ID returns the id of a resource; empty if it has none.
func ID(raw []byte) string { return text(raw, "id") }

// text returns a property that is a string.
func text(raw []byte, name string) string {
	o, err := value.ParseObject(raw)
	if err != nil {
		return ""
	}
	found, _ := o.Lookup(name)
	v, _ := value.FromJSON(found)
	s, _ := v.Text()
	return s
}

// Read returns one resource of a kind in n.
func (c *Client) Read(ctx context.Context, n Name, kind, id string) ([]byte, error) {
	a, err := c.Do(ctx, n.of(http.MethodGet, kind, id))
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}

// Create creates a resource of a kind in n.
func (c *Client) Create(ctx context.Context, n Name, kind string, body []byte, header map[string]string) error {
	r := n.feed(http.MethodPost, kind)
	r.Body = body
	for name, value := range header {
		r.Header[name] = value
	}
	_, err := c.Do(ctx, r)
	return err
}

// Replace replaces a resource of a kind in n.
func (c *Client) Replace(ctx context.Context, n Name, kind, id string, body []byte) error {
	r := n.of(http.MethodPut, kind, id)
	r.Body = body
	_, err := c.Do(ctx, r)
	return err
}

// Delete deletes one resource of a kind in n.
func (c *Client) Delete(ctx context.Context, n Name, kind, id string) error {
	_, err := c.Do(ctx, n.of(http.MethodDelete, kind, id))
	return err
}

// ReadItem returns an item.
func (c *Client) ReadItem(ctx context.Context, n Name, id string, key value.PartitionKey) (*Answer, error) {
	r := n.of(http.MethodGet, Items, id)
	r.Header[headerKey] = ASCII(key.String())
	return c.Do(ctx, r)
}

// Usage returns what a container holds, as the server words it.
func (c *Client) Usage(ctx context.Context, n Name) (string, error) {
	r := Name{Database: n.Database}.of(http.MethodGet, Containers, n.Container)
	r.Header["X-Ms-Documentdb-Populatequotainfo"] = "True"
	a, err := c.Do(ctx, r)
	if err != nil {
		return "", err
	}
	return a.Header.Get("X-Ms-Resource-Usage"), nil
}

// Write is how an item is written.
type Write int

// The ways to write an item.
const (
	Upsert Write = iota
	Create
)

// operation names the write in a bulk request.
func (w Write) operation() string {
	if w == Create {
		return "Create"
	}
	return "Upsert"
}

// WriteItem writes an item.
func (c *Client) WriteItem(ctx context.Context, n Name, item []byte, key value.PartitionKey, w Write) (*Answer, error) {
	r := n.feed(http.MethodPost, Items)
	r.Body = item
	r.Header[headerKey] = ASCII(key.String())
	r.Header[headerMinimal] = minimal
	if w == Upsert {
		r.Header[headerUpsert] = "True"
	}
	return c.Do(ctx, r)
}

// DeleteItem deletes an item.
func (c *Client) DeleteItem(ctx context.Context, n Name, id string, key value.PartitionKey) (*Answer, error) {
	r := n.of(http.MethodDelete, Items, id)
	r.Header[headerKey] = ASCII(key.String())
	return c.Do(ctx, r)
}

// Page says which page of items is asked for.
type Page struct {
	// Range is the physical partition; empty for all.
	Range string
	// Key is the partition key; nil for all.
	Key          value.PartitionKey
	Continuation string
	MaxItems     int
	// Merge has the server merge the rows of several partitions, for queries that need it.
	Merge bool
}

func (p *Page) set(r *Request) {
	r.Header[headerMaxItems] = fmt.Sprint(p.MaxItems)
	if p.Continuation != "" {
		r.Header[headerContinuation] = p.Continuation
	}
	if p.Range != "" {
		r.Header[headerRange] = p.Range
	}
	if p.Key != nil {
		r.Header[headerKey] = ASCII(p.Key.String())
	}
}

// ReadItems returns a page of the list of items.
func (c *Client) ReadItems(ctx context.Context, n Name, p Page) (*Answer, error) {
	r := n.feed(http.MethodGet, Items)
	p.set(r)
	return c.Do(ctx, r)
}

// Query returns a page of a query, whose body is that of the protocol.
func (c *Client) Query(ctx context.Context, n Name, body []byte, p Page) (*Answer, error) {
	r := n.feed(http.MethodPost, Items)
	p.set(r)
	r.Body = body
	r.Header["Content-Type"] = "application/query+json"
	r.Header[headerIsQuery] = "True"
	if p.Key == nil {
		r.Header[headerCross] = "True"
	}
	if p.Merge {
		r.Header[headerMerge] = "True"
	}
	return c.Do(ctx, r)
}

// Continuation returns where the next page begins; empty after the last.
func (a *Answer) Continuation() string { return a.Header.Get(headerContinuation) }

// Charge returns the request units that the answer took.
func (a *Answer) Charge() float64 { return a.Number("X-Ms-Request-Charge") }

// Feed is which changes are read.
type Feed int

// The feeds.
const (
	Latest      Feed = iota // the latest version of each item
	AllVersions             // all versions and deletes
)

// feedNow asks for the changes from now on.
const feedNow = "*"

// Changes returns a page of the change feed of a physical partition, after a position that an
// earlier page named; empty for the beginning. If there are no changes, the status is 304.
func (c *Client) Changes(ctx context.Context, n Name, feed Feed, rangeID, position string, maxItems int) (*Answer, error) {
	r := n.feed(http.MethodGet, Items)
	r.Header[headerRange] = rangeID
	r.Header[headerMaxItems] = fmt.Sprint(maxItems)
	r.Header["A-Im"] = "Incremental feed"
	if feed == AllVersions {
		r.Header["A-Im"] = "Full-Fidelity Feed"
		r.Header["X-Ms-Cosmos-Changefeed-Wire-Format-Version"] = "2021-09-15"
	}
	if position != "" {
		r.Header["If-None-Match"] = position
	}
	return c.Do(ctx, r)
}

// Now returns the position of a change feed as it is now.
func (c *Client) Now(ctx context.Context, n Name, feed Feed, rangeID string) (string, error) {
	a, err := c.Changes(ctx, n, feed, rangeID, feedNow, 1)
	if err != nil {
		return "", err
	}
	return a.Position(), nil
}

// Position returns the position after a page of a change feed.
func (a *Answer) Position() string { return a.Header.Get("Etag") }

// ASCII returns JSON in ASCII, as headers need it.
func ASCII(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x7f }) < 0 {
		return text
	}
	var b []byte
	for _, r := range text {
		switch {
		case r < 0x7f:
			b = append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return string(b)
}
