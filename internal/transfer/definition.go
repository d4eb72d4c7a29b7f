// SPDX-License-Identifier: MIT

// Definitions of databases and containers, with their scripts and their throughput.

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// Definition is all of a container but its items.
type Definition struct {
	Container json.RawMessage `json:"container"`
	client.Throughput
	Procedures []json.RawMessage `json:"storedProcedures,omitempty"`
	Triggers   []json.RawMessage `json:"triggers,omitempty"`
	Functions  []json.RawMessage `json:"userDefinedFunctions,omitempty"`
}

// Database is a database but for its containers.
type Database struct {
	ID string `json:"id"`
	client.Throughput
	// Keys are the client encryption keys, wrapped: without them nobody can read the
	// properties that clients have encrypted.
	Keys []json.RawMessage `json:"clientEncryptionKeys,omitempty"`
}

// readDatabase reads a database.
func readDatabase(ctx context.Context, c *client.Client, id string, throughputs map[string]client.Throughput) (*Database, error) {
	raw, err := c.Read(ctx, client.Name{}, client.Databases, id)
	if err != nil {
		return nil, err
	}
	d := &Database{ID: id, Throughput: throughputs[ridOf(raw)]}
	d.Keys, err = listClean(ctx, c, client.Name{Database: id}, client.Keys)
	return d, ignoreUnknown(err)
}

// readDefinition reads the definition of a container.
func readDefinition(ctx context.Context, c *client.Client, of *client.Container, throughputs map[string]client.Throughput) (*Definition, error) {
	raw, err := clean(of.Definition)
	if err != nil {
		return nil, err
	}
	d := &Definition{Container: raw, Throughput: throughputs[of.RID]}
	for _, s := range d.scripts() {
		if *s.list, err = listClean(ctx, c, of.Name, s.kind); ignoreUnknown(err) != nil {
			return nil, err
		}
	}
	return d, nil
}

// scriptList is the scripts of a kind.
type scriptList struct {
	kind string
	list *[]json.RawMessage
}

func (d *Definition) scripts() []scriptList {
	return []scriptList{{client.Procedures, &d.Procedures}, {client.Triggers, &d.Triggers}, {client.Functions, &d.Functions}}
}

// ignoreUnknown drops the error of a server that does not have a kind of resource: emulators
// lack some.
func ignoreUnknown(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, refused.Status) {
		return nil
	}
	return err
}

func listClean(ctx context.Context, c *client.Client, n client.Name, kind string) ([]json.RawMessage, error) {
	rows, err := c.List(ctx, n, kind)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i], err = clean(rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// clean returns a definition without what its server added.
func clean(raw []byte) (json.RawMessage, error) {
	o, err := value.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	out := o.AppendMembers([]byte{'{'}, func(name string) bool {
		switch name {
		case "_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts", "_colls", "_users", "lastModified", "statistics":
			return true
		}
		return false
	})
	return append(out, '}'), nil
}

func ridOf(raw []byte) string {
	var r struct {
		RID string `json:"_rid"`
	}
	_ = json.Unmarshal(raw, &r) // a server of another kind may have none
	return r.RID
}

// makeDatabase makes a database that is not there.
func makeDatabase(ctx context.Context, c *client.Client, d *Database) error {
	body := append(value.AppendString([]byte(`{"id":`), d.ID), '}')
	if err := created(c.Create(ctx, client.Name{}, client.Databases, body, d.Throughput.Header())); err != nil {
		return fmt.Errorf("make the database %s: %w", d.ID, err)
	}
	for _, key := range d.Keys {
		if err := created(c.Create(ctx, client.Name{Database: d.ID}, client.Keys, key, nil)); err != nil {
			return fmt.Errorf("make the client encryption key %s: %w", client.ID(key), err)
		}
	}
	return nil
}

// makeContainer makes a container that is not there. One that is there must have the same
// partition key, and keeps its definition; its scripts are replaced.
func makeContainer(ctx context.Context, c *client.Client, n client.Name, d *Definition) (*client.Container, error) {
	err := c.Create(ctx, client.Name{Database: n.Database}, client.Containers, d.Container, d.Throughput.Header())
	if created(err) != nil {
		return nil, fmt.Errorf("make the container %s: %w", n, err)
	}
	of, err := c.Container(ctx, n)
	if err != nil {
		return nil, err
	}
	wanted, err := client.ParseContainer(n, d.Container)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(of.KeyPaths(), wanted.KeyPaths(), func(a, b value.Path) bool { return slices.Equal(a, b) }) {
		return nil, fmt.Errorf("the container %s is there with another partition key", n)
	}
	for _, s := range d.scripts() {
		for _, script := range *s.list {
			err := c.Create(ctx, n, s.kind, script, nil)
			if client.Is(err, http.StatusConflict) {
				err = c.Replace(ctx, n, s.kind, client.ID(script), script)
			}
			if err != nil {
				return nil, fmt.Errorf("make the script %s of %s: %w", client.ID(script), n, err)
			}
		}
	}
	return of, nil
}

// created drops the error that something is there already.
func created(err error) error {
	if client.Is(err, http.StatusConflict) {
		return nil
	}
	return err
}
