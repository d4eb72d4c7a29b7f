// SPDX-License-Identifier: MIT

// Client encryption keys: data keys that clients wrap and unwrap. The server stores them,
// and cannot read them.

package catalog

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	maxEncryptionKeys     = 1000 // of one database
	maxEncryptionKeyBytes = 16 << 10
)

// EncryptionKey is a client encryption key at one moment.
type EncryptionKey struct {
	Resource
	// definition is the client's body without the properties that the server adds.
	definition json.RawMessage
}

type encryptionKeyRecord struct {
	resourceRecord
	Definition json.RawMessage `json:"definition"`
}

// follow refuses another name.
func (k *EncryptionKey) follow(_, was Any) error {
	if was != nil && was.Common().ID != k.ID {
		return invalid("The 'id' of a client encryption key cannot be changed: it is '%s', not '%s'.", was.Common().ID, value.Clip(k.ID))
	}
	return nil
}

// checkEncryption checks that the database has the keys that a container's encryption
// policy names.
func (d *Definition) checkEncryption(db *Resource) error {
	policy, err := d.object("clientEncryptionPolicy")
	if err != nil {
		return err
	}
	for path, err := range objects(policy, "clientEncryptionPolicy", "includedPaths") {
		if err != nil {
			return err
		}
		id, _ := textMember(path, "clientEncryptionKeyId")
		if db.below[EncryptionKeys].names()[id] == nil {
			return invalid("ClientEncryptionKey with id '[%s]' does not exist.", value.Clip(id))
		}
	}
	return nil
}

// addedProperties are set by the server; those of a client are ignored.
var addedProperties = []string{"id", "_rid", "_self", "_etag", "_ts"}

// parseEncryptionKey parses the body of a key. Only clients know its meaning, so it is
// echoed unchanged.
func parseEncryptionKey(w *Write) (Any, error) {
	o, r, err := parseResource(w.Body, "id", "encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata")
	if err != nil {
		return nil, err
	}
	if len(w.Body) > maxEncryptionKeyBytes {
		return nil, invalid("The client encryption key has %d bytes, more than the %d that are allowed.", len(w.Body), maxEncryptionKeyBytes)
	}
	for _, name := range []string{"encryptionAlgorithm", "wrappedDataEncryptionKey"} {
		if _, err := stringMember(o, name); err != nil {
			return nil, err
		}
	}
	raw, _ := o.Lookup("keyWrapMetadata")
	if _, err := asObject("keyWrapMetadata", raw); err != nil {
		return nil, err
	}
	kept := o.AppendMembers([]byte("{"), func(name string) bool { return slices.Contains(addedProperties, name) })
	return &EncryptionKey{r, compact(append(kept, '}'))}, nil
}

func decodeEncryptionKey(row []byte) (Any, error) {
	var r encryptionKeyRecord
	err := decodeRecord(row, &r, &r.Version)
	if err == nil && len(r.Definition) < len("{}") {
		err = errors.New("it has no definition")
	}
	return &EncryptionKey{r.resource(), r.Definition}, err
}

func (k *EncryptionKey) record() any { return encryptionKeyRecord{k.row(), k.definition} }

func (k *EncryptionKey) render(Any, Options) {
	b := value.AppendString([]byte(`{"id":`), k.ID)
	b = append(append(b, ','), k.definition[1:len(k.definition)-1]...)
	k.Body = append(k.appendSystem(b), '}')
}
