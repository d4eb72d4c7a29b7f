// SPDX-License-Identifier: MIT

// Shorthands of the tests for changes of the catalog.

package engine

import (
	"context"

	"github.com/mayflydb/mayfly/internal/catalog"
)

func write[T catalog.Any](ctx context.Context, e *Engine, w catalog.Write) (T, error) {
	r, _, err := e.Write(ctx, w)
	made, _ := r.(T)
	return made, err
}

func databaseAt(name string) catalog.Address {
	return catalog.Address{Kind: catalog.Databases, ID: name}
}

func containerAt(database, name string) catalog.Address {
	return catalog.Address{Kind: catalog.Containers, Database: database, ID: name}
}

func (e *Engine) CreateDatabase(ctx context.Context, body []byte, t catalog.Throughput) (*catalog.Database, error) {
	return write[*catalog.Database](ctx, e, catalog.Write{Address: databaseAt(""), Body: body, Throughput: t})
}

func (e *Engine) DeleteDatabase(ctx context.Context, name, ifMatch string) error {
	return e.Delete(ctx, databaseAt(name), ifMatch)
}

func (e *Engine) CreateContainer(ctx context.Context, database string, body []byte, t catalog.Throughput) (*catalog.Container, error) {
	return write[*catalog.Container](ctx, e, catalog.Write{Address: containerAt(database, ""), Body: body, Throughput: t})
}

func (e *Engine) ReplaceContainer(ctx context.Context, database, name string, body []byte, ifMatch string) (*catalog.Container, error) {
	w := catalog.Write{Address: containerAt(database, name), Mode: catalog.Replace, Body: body, IfMatch: ifMatch}
	return write[*catalog.Container](ctx, e, w)
}

func (e *Engine) DeleteContainer(ctx context.Context, database, name, ifMatch string) error {
	return e.Delete(ctx, containerAt(database, name), ifMatch)
}

func (e *Engine) Container(database, name string) (*catalog.Container, error) {
	return e.catalog.Container(database, name)
}

// Containers returns a database and its containers.
func (e *Engine) Containers(database string) (*catalog.Database, []*catalog.Container, error) {
	d, err := e.catalog.Database(database)
	if err != nil {
		return nil, nil, err
	}
	return d, d.Containers(), nil
}

// scriptAt returns the address of a script of the container c, or of the scripts of its
// kind.
func scriptAt(k catalog.Kind, name string) catalog.Address {
	return catalog.Address{Kind: k, Database: "d", Container: "c", ID: name}
}

func (e *Engine) CreateScript(ctx context.Context, a catalog.Address, body []byte) (*catalog.Script, error) {
	return write[*catalog.Script](ctx, e, catalog.Write{Address: a, Body: body})
}

func (e *Engine) ReplaceScript(ctx context.Context, a catalog.Address, body []byte, ifMatch string) (*catalog.Script, error) {
	return write[*catalog.Script](ctx, e, catalog.Write{Address: a, Mode: catalog.Replace, Body: body, IfMatch: ifMatch})
}

func (e *Engine) Offers() []*catalog.Offer {
	list, _ := e.catalog.List(catalog.Address{Kind: catalog.Offers})
	var offers []*catalog.Offer
	for _, o := range list.All {
		offers = append(offers, o.(*catalog.Offer))
	}
	return offers
}
