// SPDX-License-Identifier: MIT

// What all resources have in common, and the operations on them: find, list, write and
// delete, each written once for all kinds. DESIGN.md says why.

package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Resource is the common part of every resource, at one moment.
type Resource struct {
	ID      string
	RIDText string
	ETag    string
	Body    []byte // the exact answer, except for the token of a permission
	TS      int64  // of the last change
	Path    string // by names, as in dbs/d/colls/c

	kind     Kind
	path     path
	rid      string // the bytes of RIDText
	self     string // the link by rids
	revision uint64
	below    [kindCount]*family
}

// Any is a resource of any kind.
type Any interface {
	Common() *Resource
	// follow checks a new version against its owner and the version before (nil for a new
	// resource), and copies what a replace does not change.
	follow(owner, was Any) error
	// render makes the body from the other fields, and fills in what else the type shows.
	render(owner Any, o Options)
	// record returns what the row stores.
	record() any
}

// Common returns the part that all resources have.
func (r *Resource) Common() *Resource { return r }

func (r *Resource) follow(_, _ Any) error { return nil }
func (r *Resource) render(Any, Options)   {}
func (r *Resource) record() any           { return r.row() }

func (r *Resource) number() uint64 { return r.path[kinds[r.kind].depth-1] }

// appendSystem ends a body with the system properties.
func (r *Resource) appendSystem(dst []byte) []byte {
	return fmt.Appendf(dst, `,"_rid":"%s","_self":"%s","_etag":%s,"_ts":%d`, r.RIDText, r.self, strconv.Quote(r.ETag), r.TS)
}

// show sets the rid, links, etag and body of a resource, once it has a number and an
// owner.
func show(r, owner Any, o Options) {
	n, own, k := r.Common(), owner.Common(), &kinds[r.Common().kind]
	if n.kind == Offers {
		n.RIDText = n.ID
	} else {
		n.rid = string(k.rid.append([]byte(own.rid), n.number()))
		n.RIDText = ridText.EncodeToString([]byte(n.rid))
	}
	n.self = own.self + k.link + "/" + n.RIDText + "/"
	n.Path = strings.TrimPrefix(own.Path+"/"+k.link+"/"+n.ID, "/")
	n.ETag = ETag(uint64(n.TS)<<32|n.revision&math.MaxUint32, k.etags|n.number())
	r.render(owner, o)
}

// family holds the resources of one kind below one owner. It is changed only before it is
// published; nil holds none.
type family struct {
	byName   map[string]Any
	byNumber map[uint64]Any
}

func (f *family) clone() *family {
	if f == nil {
		return &family{map[string]Any{}, map[uint64]Any{}}
	}
	return &family{maps.Clone(f.byName), maps.Clone(f.byNumber)}
}

func (f *family) put(r Any) {
	f.byName[r.Common().ID] = r
	f.byNumber[r.Common().number()] = r
}

func (f *family) remove(r Any) {
	delete(f.byName, r.Common().ID)
	delete(f.byNumber, r.Common().number())
}

func (f *family) names() map[string]Any {
	if f == nil {
		return nil
	}
	return f.byName
}

func (f *family) numbers() map[uint64]Any {
	if f == nil {
		return nil
	}
	return f.byNumber
}

// find finds a resource of a kind below r by its name or, if there is no such name, by
// its rid.
func (r *Resource) find(k Kind, nameOrRID string) (Any, error) {
	if found := r.below[k].names()[nameOrRID]; found != nil {
		return found, nil
	}
	if number, ok := k.numberOf(r, nameOrRID); ok {
		if found := r.below[k].numbers()[number]; found != nil {
			return found, nil
		}
	}
	return nil, ErrNotFound
}

// numberOf extracts the number from the rid of a resource below an owner.
func (k Kind) numberOf(owner *Resource, rid string) (uint64, bool) {
	if k == Offers {
		return parseOfferRID(rid)
	}
	var room [ridRoom]byte
	raw, ok := appendRID(room[:0], rid)
	above := len(owner.rid)
	if !ok || len(raw) < above || string(raw[:above]) != owner.rid {
		return 0, false
	}
	return kinds[k].rid.number(raw[above:])
}

// all returns the resources of a kind below r, the oldest first.
func all[T Any](r *Resource, k Kind) []T {
	var list []T
	for _, each := range r.below[k].numbers() {
		list = append(list, each.(T))
	}
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(a.Common().number(), b.Common().number()) })
	return list
}

// typed converts a found resource to its type.
func typed[T Any](r Any, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return r.(T), nil
}

// walk visits everything below a resource, owners first.
func (r *Resource) walk(visit func(owner *Resource, r Any)) {
	for _, f := range r.below {
		for _, child := range f.numbers() {
			visit(r, child)
			child.Common().walk(visit)
		}
	}
}

// Address identifies a resource by names or rids. Without an ID it identifies all
// resources of a kind below an owner. Database, Container and User are the owners, as far
// as the kind has them.
type Address struct {
	Kind                      Kind
	Database, Container, User string
	ID                        string
}

// owner returns the address of the owner.
func (a Address) owner() Address {
	switch up := kinds[a.Kind].owner; up {
	case Databases:
		return Address{Kind: up, ID: a.Database}
	case Containers:
		return Address{Kind: up, Database: a.Database, ID: a.Container}
	case Users:
		return Address{Kind: up, Database: a.Database, ID: a.User}
	}
	return Address{}
}

func (s *state) owner(a Address) (Any, error) {
	up := a.owner()
	if up.Kind == account {
		return s.account, nil
	}
	r, err := s.find(up)
	if err != nil {
		return nil, kinds[a.Kind].missing
	}
	return r, nil
}

func (s *state) find(a Address) (Any, error) {
	if a.Kind == Offers {
		return typed[Any](s.offer(a.ID))
	}
	owner, err := s.owner(a)
	if err != nil {
		return nil, err
	}
	return owner.Common().find(a.Kind, a.ID)
}

// at returns the resource at a path; nil if there is none.
func (s *state) at(k Kind, p path) Any {
	if k == account {
		return s.account
	}
	owner := s.at(kinds[k].owner, p)
	if owner == nil {
		return nil
	}
	return owner.Common().below[k].numbers()[p[kinds[k].depth-1]]
}

// now returns the current version of the resource at a path.
func now[T Any](c *Catalog, k Kind, p path) (T, error) {
	r, found := c.state.Load().at(k, p).(T)
	if !found {
		return r, ErrNotFound
	}
	return r, nil
}

// altered replaces the resource at a path in s, and all its owners, by copies, and
// returns the copy for the caller to change; nil if there is none. s must not be
// published yet.
func (s *state) altered(k Kind, p path) Any {
	if k == account {
		a := *s.account
		s.account = &a
		return &a
	}
	owner, was := s.altered(kinds[k].owner, p), s.at(k, p)
	if owner == nil || was == nil {
		return nil
	}
	r, below := kinds[k].copied(was), &owner.Common().below[k]
	*below = (*below).clone()
	(*below).put(r)
	return r
}

// Find returns a resource.
func (c *Catalog) Find(a Address) (Any, error) { return c.state.Load().find(a) }

// List is the list of resources of a kind below an owner, the oldest first.
type List struct {
	Owner Any
	Kind  Kind
	All   []Any
}

// List returns the list that an address identifies.
func (c *Catalog) List(a Address) (List, error) {
	s := c.state.Load()
	owner, err := s.owner(a)
	switch {
	case err != nil:
		return List{}, err
	case a.Kind == Offers:
		return List{owner, a.Kind, s.offers()}, nil
	}
	return List{owner, a.Kind, all[Any](owner.Common(), a.Kind)}, nil
}

// After returns the index of the first resource after the one with the given rid, which
// may have been deleted. It returns false if the text is no rid of this kind and owner.
func (l *List) After(rid string) (int, bool) {
	number, ok := l.Kind.numberOf(l.Owner.Common(), rid)
	if !ok {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(l.All, number, func(r Any, n uint64) int {
		if r.Common().number() <= n {
			return -1
		}
		return 1
	})
	return i, true
}

// WriteMode says whether a write requires, forbids or accepts an existing resource.
type WriteMode int

// The modes of a write.
const (
	Create WriteMode = iota
	Upsert
	Replace
)

// Write is a request to write a resource.
type Write struct {
	// Address is that of the resource to replace, or of the list to add to.
	Address
	Mode    WriteMode
	IfMatch string
	Body    []byte
	// Throughput is for a new database or container.
	Throughput Throughput
	// Migrate asks for the other kind of throughput, whatever the offer's body says.
	Migrate Migration
	// Check, if set, refuses what the catalog itself cannot judge.
	Check func(Any) error
	NowMs int64
}

// standing finds the resource that a write replaces; nil if it makes a new one. The name
// in the body may differ from the present one.
func (r *Resource) standing(w *Write, id string) (was Any, err error) {
	k, holder := &kinds[w.Kind], r.below[w.Kind].names()[id]
	switch w.Mode {
	case Create:
		if holder != nil {
			return nil, ErrExists
		}
	case Upsert:
		was = holder
	case Replace:
		if was, err = r.find(w.Kind, w.ID); err != nil {
			return nil, err
		}
		if k.clashes && holder != nil && holder != was {
			return nil, ErrExists
		}
	}
	if was != nil && !Matches(w.IfMatch, was.Common().ETag) {
		return nil, ErrPrecondition
	}
	if was == nil && len(r.below[w.Kind].names()) >= k.most {
		return nil, k.tooMany
	}
	return was, nil
}

// Write creates, upserts or replaces a resource. When Write returns, the change is
// durable and published.
func (c *Catalog) Write(ctx context.Context, w Write) (r Any, created bool, err error) {
	if w.Kind == Offers {
		r, err = c.writeOffer(ctx, &w)
		return r, false, err
	}
	owner, err := c.state.Load().owner(w.Address)
	if err != nil {
		return nil, false, err
	}
	if r, err = kinds[w.Kind].parse(&w); err != nil {
		return nil, false, err
	}
	if w.Check != nil {
		if err := w.Check(r); err != nil {
			return nil, false, err
		}
	}
	fresh := true
	err = c.change(func() (err error) {
		if !fresh { // the attempt before has numbered it
			if r, err = kinds[w.Kind].parse(&w); err != nil {
				return err
			}
		}
		fresh = false
		created, err = c.write(ctx, &w, r, owner.Common())
		return err
	})
	return r, created, err
}

// write writes a parsed resource below the owner, of which the caller may have an earlier
// version.
func (c *Catalog) write(ctx context.Context, w *Write, r Any, earlier *Resource) (created bool, err error) {
	old := c.state.Load()
	next, b := *old, kv.Batch{}
	owner := next.altered(earlier.kind, earlier.path)
	if owner == nil {
		return false, ErrNotFound
	}
	was, err := owner.Common().standing(w, r.Common().ID)
	if err != nil {
		return false, err
	}
	if err := c.version(r, owner, was, w, &next.last); err != nil {
		return false, err
	}
	below := &owner.Common().below[w.Kind]
	*below = (*below).clone()
	if was != nil {
		(*below).remove(was)
	}
	(*below).put(r)
	r.Common().setRows(&b, was == nil, r.record())
	return was == nil, c.commit(ctx, &b, old, &next)
}

// version makes a parsed resource the next version of was, or the first one if was is
// nil.
func (c *Catalog) version(r, owner, was Any, w *Write, last *sequence) error {
	n, k := r.Common(), &kinds[w.Kind]
	n.kind, n.path, n.revision, n.TS = w.Kind, owner.Common().path, k.first, w.NowMs/1000
	if was != nil {
		before := was.Common()
		n.path, n.revision, n.below = before.path, before.revision+1, before.below
	} else {
		n.path[k.depth-1] = last.next(w.Kind)
	}
	if k.dated {
		n.revision = last.changes + 1
	}
	if n.number() > k.rid.last() {
		return ErrTooMany
	}
	if err := r.follow(owner, was); err != nil {
		return err
	}
	show(r, owner, c.options)
	return nil
}

// Delete removes a resource and everything below it. also, if it is not nil, adds to the
// commit the removal of items of containers; now is the resource as it is at the commit. It
// may be called again if another process changes the catalog meanwhile.
func (c *Catalog) Delete(ctx context.Context, r Any, ifMatch string, also func(b *kv.Batch, now Any)) error {
	return c.change(func() error { return c.delete(ctx, r.Common(), ifMatch, also) })
}

func (c *Catalog) delete(ctx context.Context, r *Resource, ifMatch string, also func(b *kv.Batch, now Any)) error {
	k, p, old := r.kind, r.path, c.state.Load()
	now := old.at(k, p)
	if now == nil {
		return ErrNotFound
	}
	if !Matches(ifMatch, now.Common().ETag) {
		return ErrPrecondition
	}
	next, b := *old, kv.Batch{}
	below := &next.altered(kinds[k].owner, p).Common().below[k]
	*below = (*below).clone()
	(*below).remove(now)
	if also != nil {
		also(&b, now)
	}
	now.Common().deleteRows(&b)
	now.Common().walk(func(_ *Resource, r Any) { r.Common().deleteRows(&b) })
	return c.commit(ctx, &b, old, &next)
}

// parseResource parses the body of a write and its name, and reports missing properties.
func parseResource(body []byte, required ...string) (o *value.Object, r Resource, err error) {
	if o, err = value.ParseObject(body); err != nil {
		return nil, r, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	missing := ""
	for _, name := range required {
		if raw, ok := o.Lookup(name); absent(raw, ok) {
			missing += name + "; "
		}
	}
	if missing != "" {
		return nil, r, invalid("The input content is invalid because the required properties - '%s' - are missing", missing)
	}
	r.ID, err = parseName(o)
	return o, r, err
}
