// SPDX-License-Identifier: MIT

// What users, permissions and client encryption keys have in common: each is a
// named resource of a database that holds no items, kept as one row.

package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Resource is what such a resource is at one moment.
type Resource struct {
	ID   string
	RID  string
	ETag string
	Body []byte // the exact response, but for the token of a permission
	TS   int64  // of the last change

	// number is given once and for ever: the count of the change that made it.
	number uint64
	// revision is the count of the change that wrote it last.
	revision uint64
}

// base lets the functions below speak of all kinds alike.
func (r *Resource) base() *Resource { return r }

type resource interface{ base() *Resource }

// Kinds of etags, in the bits above every number, so that two resources never
// have the same.
const (
	userETags = uint64(1+iota)<<56 | 1<<61
	permissionETags
	encryptionKeyETags
)

func (r *Resource) etag(kind uint64) string {
	return ETag(uint64(r.TS)<<32|r.revision&math.MaxUint32, kind|r.number)
}

// appendSystem ends a response with what the server adds.
func (r *Resource) appendSystem(dst []byte, self string) []byte {
	return fmt.Appendf(dst, `,"_rid":"%s","_self":"%s","_etag":%s,"_ts":%d`, r.RID, self, strconv.Quote(r.ETag), r.TS)
}

// family holds the resources of one kind below one owner. It is altered only while
// nobody else has seen it.
type family[T resource] struct {
	byName   map[string]T
	byNumber map[uint64]T
}

func (f family[T]) clone() family[T] {
	if f.byName == nil {
		return family[T]{map[string]T{}, map[uint64]T{}}
	}
	return family[T]{maps.Clone(f.byName), maps.Clone(f.byNumber)}
}

func (f family[T]) put(r T) {
	f.byName[r.base().ID] = r
	f.byNumber[r.base().number] = r
}

func (f family[T]) remove(r T) {
	delete(f.byName, r.base().ID)
	delete(f.byNumber, r.base().number)
}

// find looks for a name or, if there is no such name, for a rid.
func (f family[T]) find(nameOrRID string) (T, error) {
	if r, ok := f.byName[nameOrRID]; ok {
		return r, nil
	}
	if number, ok := ridNumber(nameOrRID); ok {
		if r, ok := f.byNumber[number]; ok && r.base().RID == nameOrRID {
			return r, nil
		}
	}
	var none T
	return none, ErrNotFound
}

// all returns the resources, the oldest first.
func (f family[T]) all() []T {
	return slices.SortedFunc(maps.Values(f.byNumber), func(a, b T) int { return cmp.Compare(a.base().number, b.base().number) })
}

// FirstResourceAfter returns the index of the first resource that follows the one
// with the given rid, which may be gone. It reports false for what is no rid.
func FirstResourceAfter[T resource](all []T, rid string) (int, bool) {
	number, ok := ridNumber(rid)
	if !ok {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(all, number+1, func(r T, n uint64) int { return cmp.Compare(r.base().number, n) })
	return i, true
}

// The rid of a client encryption key has its database's four bytes, four that are
// zero, its number and its kind, both little-endian.
const (
	kindEncryptionKey = 2
	maxUserNumber     = containerBit - 1 // its top bit is clear
	maxKeyNumber      = math.MaxUint32
)

func userRID(db DatabaseRID, user uint64) []byte {
	raw := binary.BigEndian.AppendUint32(nil, uint32(db))
	return binary.BigEndian.AppendUint32(raw, uint32(user))
}

func permissionRID(db DatabaseRID, user, permission uint64) []byte {
	return binary.LittleEndian.AppendUint64(userRID(db, user), permission)
}

func encryptionKeyRID(db DatabaseRID, key uint64) []byte {
	raw := binary.LittleEndian.AppendUint32(userRID(db, 0), uint32(key))
	return binary.LittleEndian.AppendUint32(raw, kindEncryptionKey)
}

// ridNumber takes the number of a user, a permission or a key out of a rid.
func ridNumber(text string) (uint64, bool) {
	raw, ok := ridBytes(text)
	switch {
	case !ok || len(raw) < containerRIDBytes:
		return 0, false
	case len(raw) == containerRIDBytes:
		return uint64(binary.BigEndian.Uint32(raw[databaseRIDBytes:])), true
	case binary.BigEndian.Uint32(raw[databaseRIDBytes:]) == 0:
		return uint64(binary.LittleEndian.Uint32(raw[containerRIDBytes:])), true
	}
	return binary.LittleEndian.Uint64(raw[containerRIDBytes:]), true
}

// IsRID reports whether a text has the form of a rid, of whatever kind.
func IsRID(text string) bool {
	_, ok := ridBytes(text)
	return ok
}

func ridBytes(text string) ([]byte, bool) {
	if len(text) > ItemRIDChars {
		return nil, false
	}
	raw, err := ridText.DecodeString(text)
	if err != nil {
		return nil, false
	}
	switch len(raw) {
	case databaseRIDBytes, containerRIDBytes, itemRIDBytes:
		return raw, ridText.EncodeToString(raw) == text // each has one spelling
	}
	return nil, false
}

// WriteMode says what a write does about a resource that exists, or does not.
type WriteMode int

const (
	CreateResource WriteMode = iota
	UpsertResource
	ReplaceResource
)

// ResourceWrite is a request to write a resource.
type ResourceWrite struct {
	Mode WriteMode
	// Target is the name or rid of what is replaced.
	Target  string
	IfMatch string
	Body    []byte
	NowMs   int64
}

// standing finds what a write replaces; found is false if it makes something new.
// The name in the body may be another than before.
func standing[T resource](f family[T], w *ResourceWrite, id string, most int) (was T, found bool, err error) {
	was, taken := f.byName[id]
	switch w.Mode {
	case CreateResource:
		if taken {
			return was, false, ErrExists
		}
	case UpsertResource:
		found = taken
	case ReplaceResource:
		if was, err = f.find(w.Target); err != nil {
			return was, false, err
		}
		if taken && was.base().ID != id {
			return was, false, ErrExists
		}
		found = true
	}
	if found && !Matches(w.IfMatch, was.base().ETag) {
		return was, false, ErrPrecondition
	}
	if !found && len(f.byName) >= most {
		return was, false, ErrTooMany
	}
	return was, found, nil
}

// next returns the new version of a resource, or the first. change is the
// count of the change under way.
func (w *ResourceWrite) next(id string, was *Resource, change uint64) Resource {
	r := Resource{ID: id, TS: w.NowMs / 1000, number: change, revision: change}
	if was != nil {
		r.number = was.number
	}
	return r
}

// changeDatabase lets a function alter a copy of a database, and shows the copy when
// what was put into the batch is durable.
func (c *Catalog) changeDatabase(ctx context.Context, rid DatabaseRID, alter func(d *Database, change uint64, b *kv.Batch) error) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	was := old.byRID[rid]
	if was == nil {
		return ErrNotFound
	}
	d := *was
	var b kv.Batch
	if err := alter(&d, old.last.changes+1, &b); err != nil {
		return err
	}
	next := old.clone()
	next.put(&d)
	return c.commit(ctx, &b, old, next)
}

// parseResource reads the body of a write and its name, and complains about
// properties that are missing.
func parseResource(body []byte, required ...string) (o *value.Object, id string, err error) {
	if o, err = value.ParseObject(body); err != nil {
		return nil, "", invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	missing := ""
	for _, name := range required {
		if raw, ok := o.Lookup(name); absent(raw, ok) {
			missing += name + "; "
		}
	}
	if missing != "" {
		return nil, "", invalid("The input content is invalid because the required properties - '%s' - are missing", missing)
	}
	id, err = parseName(o)
	return o, id, err
}

// compact copies JSON without its white space, which a record does not keep.
func compact(raw []byte) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		panic(err) // it was parsed before
	}
	return out.Bytes()
}

// loadResources reads the rows of users, then permissions, then keys.
func (s *state) loadResources(snap kv.Snapshot) error {
	for _, kind := range []struct {
		prefix []byte
		load   func(d *Database, e kv.Entry) bool
	}{
		{userPrefix, (*Database).loadUser},
		{permissionPrefix, (*Database).loadPermission},
		{encryptionKeyPrefix, (*Database).loadEncryptionKey},
	} {
		for e, err := range snap.Scan(kind.prefix, prefixEnd(kind.prefix), kv.Forward) {
			if err != nil {
				return err
			}
			if len(e.Key) < resourceKeyBytes {
				return corruptRow(e)
			}
			d := s.byRID[DatabaseRID(binary.BigEndian.Uint32(e.Key[2:]))]
			if d == nil || !kind.load(d, e) {
				return corruptRow(e)
			}
		}
	}
	return nil
}

func corruptRow(e kv.Entry) error { return fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, e.Key) }

// resourceRecord is what every row says.
type resourceRecord struct {
	Version  int    `json:"v"`
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	TS       int64  `json:"ts"`
}

func (r *Resource) record() resourceRecord {
	return resourceRecord{recordVersion, r.ID, r.revision, r.TS}
}

func (r resourceRecord) resource(number uint64) Resource {
	return Resource{ID: r.ID, TS: r.TS, number: number, revision: r.Revision}
}

// decodeRecord reads a row into a record that embeds a resourceRecord.
func decodeRecord(raw []byte, into any, common *resourceRecord) bool {
	return json.Unmarshal(raw, into) == nil && common.Version == recordVersion && common.ID != ""
}

// deleteResourceRows takes away the rows of a database's users, permissions and
// keys.
func (d *Database) deleteResourceRows(b *kv.Batch) {
	for _, u := range d.users.byName {
		u.deleteRows(d.RID, b)
	}
	for _, k := range d.encryptionKeys.byName {
		b.Delete(encryptionKeyKey(d.RID, k.number), 0)
	}
}

// checkResources reports numbers that were never given.
func (d *Database) checkResources(changes uint64, report func(problem string)) {
	look := func(kind string, r *Resource) {
		if r.number > changes || r.revision > changes {
			report(fmt.Sprintf("%s %q of database %q has the numbers %d and %d, and there were %d changes", kind, r.ID, d.ID, r.number, r.revision, changes))
		}
	}
	for _, u := range d.users.byName {
		look("user", &u.Resource)
		for _, p := range u.permissions.byName {
			look("permission", &p.Resource)
		}
	}
	for _, k := range d.encryptionKeys.byName {
		look("client encryption key", &k.Resource)
	}
}
