// SPDX-License-Identifier: MIT

// Client encryption keys: data keys that clients wrap and unwrap. The server keeps
// them for clients, and cannot read them.

package catalog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxEncryptionKeys     = 1000 // of one database
	maxEncryptionKeyBytes = 16 << 10
)

// EncryptionKey is a client encryption key as it is at one moment.
type EncryptionKey struct {
	Resource
	// definition is what the client said, but for what the server adds.
	definition json.RawMessage
}

type encryptionKeyRecord struct {
	resourceRecord
	Definition json.RawMessage `json:"definition"`
}

// EncryptionKey finds a key of the database by its name or by its rid.
func (d *Database) EncryptionKey(nameOrRID string) (*EncryptionKey, error) {
	return d.encryptionKeys.find(nameOrRID)
}

// EncryptionKeys returns all keys of the database, the oldest first.
func (d *Database) EncryptionKeys() []*EncryptionKey { return d.encryptionKeys.all() }

// WriteEncryptionKey creates or replaces a key. Its name stays.
func (c *Catalog) WriteEncryptionKey(ctx context.Context, db DatabaseRID, w ResourceWrite) (k *EncryptionKey, created bool, err error) {
	id, definition, err := parseEncryptionKey(w.Body)
	if err != nil {
		return nil, false, err
	}
	err = c.changeDatabase(ctx, db, func(d *Database, change uint64, b *kv.Batch) error {
		was, found, err := standing(d.encryptionKeys, &w, id, maxEncryptionKeys)
		if err != nil {
			return err
		}
		d.encryptionKeys = d.encryptionKeys.clone()
		k, created = &EncryptionKey{definition: definition}, !found
		switch {
		case found && was.ID != id:
			return invalid("The 'id' of a client encryption key cannot be changed: it is '%s', not '%s'.", was.ID, value.Clip(id))
		case found:
			k.Resource = w.next(id, &was.Resource, change)
		default:
			k.Resource = w.next(id, nil, change)
		}
		if k.number > maxKeyNumber {
			return ErrTooMany
		}
		k.render(d.RID)
		d.encryptionKeys.put(k)
		b.Set(encryptionKeyKey(d.RID, k.number), mustJSON(encryptionKeyRecord{k.record(), definition}))
		return nil
	})
	return k, created, err
}

// checkEncryption looks whether the database has the keys that a container's
// encryption policy names.
func (d *Definition) checkEncryption(db *Database) error {
	raw := notNull(d.raw("clientEncryptionPolicy"))
	if raw == nil {
		return nil
	}
	policy, err := asObject("clientEncryptionPolicy", raw)
	if err != nil {
		return err
	}
	list, ok := policy.Lookup("includedPaths")
	if absent(list, ok) {
		return nil
	}
	paths, err := asArray("clientEncryptionPolicy.includedPaths", list)
	if err != nil {
		return err
	}
	for _, raw := range paths {
		path, err := asObject("clientEncryptionPolicy.includedPaths[]", raw)
		if err != nil {
			return err
		}
		id, _ := textMember(path, "clientEncryptionKeyId")
		if db.encryptionKeys.byName[id] == nil {
			return invalid("ClientEncryptionKey with id '[%s]' does not exist.", value.Clip(id))
		}
	}
	return nil
}

// addedProperties are the server's, whatever a client says.
var addedProperties = []string{"id", "_rid", "_self", "_etag", "_ts"}

// parseEncryptionKey reads what a client says of a key. What it means is known to
// clients alone, so that it is echoed as it came.
func parseEncryptionKey(body []byte) (id string, definition json.RawMessage, err error) {
	o, id, err := parseResource(body, "id", "encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata")
	if err != nil {
		return "", nil, err
	}
	if len(body) > maxEncryptionKeyBytes {
		return "", nil, invalid("The client encryption key has %d bytes, more than the %d that are allowed.", len(body), maxEncryptionKeyBytes)
	}
	for _, name := range []string{"encryptionAlgorithm", "wrappedDataEncryptionKey"} {
		raw, _ := o.Lookup(name)
		if _, err := asString(name, raw); err != nil {
			return "", nil, err
		}
	}
	raw, _ := o.Lookup("keyWrapMetadata")
	if _, err := asObject("keyWrapMetadata", raw); err != nil {
		return "", nil, err
	}
	kept := o.AppendMembers([]byte("{"), func(name string) bool { return slices.Contains(addedProperties, name) })
	return id, compact(append(kept, '}')), nil
}

// render makes the rid, the etag and the response out of the rest.
func (k *EncryptionKey) render(db DatabaseRID) {
	k.RID = ridText.EncodeToString(encryptionKeyRID(db, k.number))
	k.ETag = k.etag(encryptionKeyETags)
	b := value.AppendString([]byte(`{"id":`), k.ID)
	b = append(append(b, ','), k.definition[1:len(k.definition)-1]...)
	k.Body = append(k.appendSystem(b, "dbs/"+db.String()+"/clientencryptionkeys/"+k.RID+"/"), '}')
}

// loadEncryptionKey reads the row of a key. It reports false for one that makes no
// sense.
func (d *Database) loadEncryptionKey(e kv.Entry) bool {
	var r encryptionKeyRecord
	if len(e.Key) != resourceKeyBytes || !decodeRecord(e.Value, &r, &r.resourceRecord) || d.encryptionKeys.byName[r.ID] != nil || len(r.Definition) < len("{}") {
		return false
	}
	k := &EncryptionKey{Resource: r.resource(binary.BigEndian.Uint64(e.Key[6:])), definition: r.Definition}
	k.render(d.RID)
	if d.encryptionKeys.byName == nil {
		d.encryptionKeys = d.encryptionKeys.clone()
	}
	d.encryptionKeys.put(k)
	return true
}
