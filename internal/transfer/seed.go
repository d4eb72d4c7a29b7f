// SPDX-License-Identifier: MIT

package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/value"
)

// seedConnections is how many connections fill a new server.
const seedConnections = 4

// seedFile is what a server may be filled with at its first start, in one file.
type seedFile struct {
	Databases []struct {
		Database
		// Containers are definitions, each of which may also have what is in ofSeed.
		Containers []json.RawMessage `json:"containers"`
	} `json:"databases"`
}

// seedContainer is what a container in such a file has beside its definition.
type seedContainer struct {
	client.Throughput
	Items      []json.RawMessage `json:"items"`
	Procedures []json.RawMessage `json:"storedProcedures"`
	Triggers   []json.RawMessage `json:"triggers"`
	Functions  []json.RawMessage `json:"userDefinedFunctions"`
}

// ofSeed are the names of the properties of seedContainer.
var ofSeed = map[string]bool{"throughput": true, "autoscaleMaxThroughput": true, "items": true, "storedProcedures": true, "triggers": true, "userDefinedFunctions": true}

// Seed fills a server from a file of databases, or from the directory of an export. It may be
// repeated if it was interrupted.
func Seed(ctx context.Context, c *client.Client, place string) error {
	info, err := os.Stat(place)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return Import(ctx, ImportOptions{
			To: c, Place: place, TTL: Full, Connections: seedConnections, Progress: &Progress{},
			Rejected: func(client.Name) string { return os.DevNull }, // none is accepted
		})
	}
	f, err := os.Open(place)
	if err != nil {
		return err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxDefinitionBytes+1))
	if err != nil {
		return err
	}
	if len(raw) > maxDefinitionBytes {
		return fmt.Errorf("the file is larger than %d bytes: give the directory of an export", maxDefinitionBytes)
	}
	var all seedFile
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return fmt.Errorf(`it must be {"databases":[{"id":"shop","containers":[{"id":"carts","partitionKey":{"paths":["/customer"]},"items":[…]}]}]}: %w`, err)
	}
	if len(all.Databases) == 0 {
		return errors.New("it has no databases")
	}
	for i := range all.Databases {
		db := &all.Databases[i]
		if err := makeDatabase(ctx, c, &db.Database); err != nil {
			return err
		}
		for _, raw := range db.Containers {
			if err := seed(ctx, c, db.ID, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

func seed(ctx context.Context, c *client.Client, database string, raw []byte) error {
	var of seedContainer
	if err := json.Unmarshal(raw, &of); err != nil {
		return err
	}
	o, err := value.ParseObject(raw)
	if err != nil {
		return err
	}
	definition := append(o.AppendMembers([]byte{'{'}, func(name string) bool { return ofSeed[name] }), '}')
	n := client.Name{Database: database, Container: client.ID(definition)}
	to, err := makeContainer(ctx, c, n, &Definition{
		Container: definition, Throughput: of.Throughput, Procedures: of.Procedures, Triggers: of.Triggers, Functions: of.Functions,
	})
	if err != nil {
		return err
	}
	for i, raw := range of.Items {
		o, err := value.ParseObject(raw)
		if err != nil {
			return fmt.Errorf("item %d of %s: %w", i, n, err)
		}
		var r row
		prepare(&r, to, o, 0, func() string { return madeID(n.String(), int64(i), raw) })
		if r.fault != "" {
			return fmt.Errorf("item %d of %s: %s", i, n, r.fault)
		}
		if _, err := c.WriteItem(ctx, n, r.body, r.key, client.Upsert); err != nil {
			return fmt.Errorf("item %d of %s: %w", i, n, err)
		}
	}
	return nil
}
