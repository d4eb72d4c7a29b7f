// SPDX-License-Identifier: MIT

// Shorthands of the tests for writes and rows of each kind.

package catalog

import (
	"context"
	"fmt"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

func write[T Any](ctx context.Context, c *Catalog, w Write) (T, bool, error) {
	r, created, err := c.Write(ctx, w)
	if err != nil {
		var none T
		return none, false, err
	}
	return r.(T), created, nil
}

func (c *Catalog) CreateDatabase(ctx context.Context, body []byte, t Throughput, nowMs int64) (*Database, error) {
	d, _, err := write[*Database](ctx, c, Write{Address: Address{Kind: Databases}, Body: body, Throughput: t, NowMs: nowMs})
	return d, err
}

// plus adds the operations of a batch to another one.
func plus(b *kv.Batch) func(*kv.Batch, Any) {
	return func(to *kv.Batch, _ Any) {
		for op := range b.Ops {
			switch op.Kind {
			case kv.OpSet:
				to.Set(op.Key, op.Value)
			case kv.OpDelete:
				to.Delete(op.Key, int(op.SizeHint))
			case kv.OpDeleteRange:
				to.DeleteRange(op.Key, op.Value)
			case kv.OpRequire:
				to.Require(op.Key, op.Value)
			case kv.OpRequireAbsent:
				to.RequireAbsent(op.Key)
			}
		}
	}
}

func (c *Catalog) DeleteDatabase(ctx context.Context, rid DatabaseRID, ifMatch string, b *kv.Batch) error {
	return c.Delete(ctx, &Database{Resource: Resource{kind: Databases, path: path{uint64(rid)}}}, ifMatch, plus(b))
}

// containerAt returns the address of a container, or of its database's containers.
func containerAt(rid ContainerRID) Address {
	a := Address{Kind: Containers, Database: rid.Database.String()}
	if rid.Container != 0 {
		a.ID = rid.String()
	}
	return a
}

func (c *Catalog) CreateContainer(ctx context.Context, db DatabaseRID, body string, t Throughput, nowMs int64) (*Container, error) {
	ct, _, err := write[*Container](ctx, c, Write{Address: containerAt(ContainerRID{Database: db}), Body: []byte(body), Throughput: t, NowMs: nowMs})
	return ct, err
}

func (c *Catalog) ReplaceContainer(ctx context.Context, rid ContainerRID, body, ifMatch string, nowMs int64) (*Container, error) {
	ct, _, err := write[*Container](ctx, c, Write{Address: containerAt(rid), Mode: Replace, IfMatch: ifMatch, Body: []byte(body), NowMs: nowMs})
	return ct, err
}

func (c *Catalog) DeleteContainer(ctx context.Context, rid ContainerRID, ifMatch string, b *kv.Batch) error {
	p := path{uint64(rid.Database), uint64(rid.Container)}
	return c.Delete(ctx, &Container{Resource: Resource{kind: Containers, path: p}}, ifMatch, plus(b))
}

func (c *Catalog) WriteUser(ctx context.Context, db DatabaseRID, w Write) (*User, bool, error) {
	w.Kind, w.Database = Users, db.String()
	return write[*User](ctx, c, w)
}

func (c *Catalog) WritePermission(ctx context.Context, db DatabaseRID, user string, w Write) (*Permission, bool, error) {
	w.Kind, w.Database, w.User = Permissions, db.String(), user
	return write[*Permission](ctx, c, w)
}

func (c *Catalog) WriteEncryptionKey(ctx context.Context, db DatabaseRID, w Write) (*EncryptionKey, bool, error) {
	w.Kind, w.Database = EncryptionKeys, db.String()
	return write[*EncryptionKey](ctx, c, w)
}

// remove deletes the resource at an address.
func (c *Catalog) remove(ctx context.Context, a Address) error {
	r, err := c.Find(a)
	if err != nil {
		return err
	}
	return c.Delete(ctx, r, "", nil)
}

// udfAt returns the address of a function, or of its container's functions.
func udfAt(rid ContainerRID, id string) Address {
	return Address{Kind: UDFs, Database: rid.Database.String(), Container: rid.String(), ID: id}
}

func (c *Catalog) writeUDF(ctx context.Context, mode WriteMode, rid ContainerRID, name, text string, nowMs int64) (*Script, error) {
	body := fmt.Appendf(nil, `{"id":%s,"body":%s}`, value.AppendString(nil, name), value.AppendString(nil, text))
	s, _, err := write[*Script](ctx, c, Write{Address: udfAt(rid, name), Mode: mode, Body: body, NowMs: nowMs})
	return s, err
}

func (c *Catalog) Offers() []*Offer {
	var list []*Offer
	for _, o := range c.state.Load().offers() {
		list = append(list, o.(*Offer))
	}
	return list
}

func (c *Catalog) Offer(rid string) (*Offer, error) {
	return typed[*Offer](c.Find(Address{Kind: Offers, ID: rid}))
}

func (c *Catalog) ReplaceOffer(ctx context.Context, w Write, nowMs int64) (*Offer, error) {
	w.Kind, w.NowMs = Offers, nowMs
	o, _, err := write[*Offer](ctx, c, w)
	return o, err
}

func databaseKey(r DatabaseRID) []byte        { return Databases.key(path{uint64(r)}) }
func databaseNameKey(name string) []byte      { return Databases.nameKey(path{}, name) }
func userKey(db DatabaseRID, n uint64) []byte { return Users.key(path{uint64(db), n}) }
func encryptionKeyKey(db DatabaseRID, n uint64) []byte {
	return EncryptionKeys.key(path{uint64(db), n})
}
func containerNameKey(db DatabaseRID, name string) []byte {
	return Containers.nameKey(path{uint64(db)}, name)
}
func permissionKey(db DatabaseRID, user, n uint64) []byte {
	return Permissions.key(path{uint64(db), user, n})
}
func containerKey(r ContainerRID) []byte {
	return Containers.key(path{uint64(r.Database), uint64(r.Container)})
}
func scriptKey(r ContainerRID, n uint64) []byte {
	return UDFs.key(path{uint64(r.Database), uint64(r.Container), n})
}
