// SPDX-License-Identifier: MIT

package catalog

import (
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

const maxDatabases = 10_000

// Database is a database at one moment.
type Database struct {
	Resource
	RID DatabaseRID
	// Throughput is shared by the containers that have none of their own.
	Throughput Provision
}

type databaseRecord struct {
	Version    int       `json:"v"`
	ID         string    `json:"id"`
	TS         int64     `json:"ts"`
	Throughput Provision `json:"throughput,omitzero"`
}

// Container finds a container of the database by its name or by its rid.
func (d *Database) Container(nameOrRID string) (*Container, error) {
	return typed[*Container](d.find(Containers, nameOrRID))
}

// Containers returns all containers of the database, the oldest first.
func (d *Database) Containers() []*Container { return all[*Container](&d.Resource, Containers) }

func parseDatabase(w *Write) (Any, error) {
	_, r, err := parseResource(w.Body)
	return &Database{Resource: r, Throughput: provision(w.Throughput, w.NowMs/1000)}, err
}

func decodeDatabase(row []byte) (Any, error) {
	var r databaseRecord
	err := decodeRecord(row, &r, &r.Version)
	return &Database{Resource: Resource{ID: r.ID, TS: r.TS}, Throughput: r.Throughput}, err
}

func (d *Database) record() any { return databaseRecord{recordVersion, d.ID, d.TS, d.Throughput} }

func (d *Database) render(Any, Options) {
	d.RID = DatabaseRID(d.number())
	b := value.AppendString([]byte(`{"id":`), d.ID)
	d.Body = fmt.Appendf(b, `,"_rid":"%s","_self":"%s","_etag":%s,"_colls":"colls/","_users":"users/","_ts":%d}`,
		d.RIDText, d.self, strconv.Quote(d.ETag), d.TS)
}
