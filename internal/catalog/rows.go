// SPDX-License-Identifier: MIT

// How resources are stored: one row each, and for databases and containers another one
// that holds the name.

package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/kv"
)

// recordVersion is the version of every record.
const recordVersion = 1

// resourceRecord begins the records of users, permissions and keys.
type resourceRecord struct {
	Version  int    `json:"v"`
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	TS       int64  `json:"ts"`
}

func (r *Resource) row() resourceRecord {
	return resourceRecord{recordVersion, r.ID, r.revision, r.TS}
}

func (r resourceRecord) resource() Resource {
	return Resource{ID: r.ID, TS: r.TS, revision: r.Revision}
}

// decodeRecord parses a row into a record, and checks its version.
func decodeRecord(row []byte, into any, version *int) error {
	if err := json.Unmarshal(row, into); err != nil {
		return err
	}
	if *version != recordVersion {
		return fmt.Errorf("it is of version %d", *version)
	}
	return nil
}

// mustJSON encodes a record of this package, which cannot fail. A definition within it
// keeps its spelling, since it is echoed and compared with later ones.
func mustJSON(v any) []byte {
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(raw.Bytes(), []byte("\n"))
}

// compact copies JSON without its white space, which records do not keep.
func compact(raw []byte) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		panic(err) // it was already parsed
	}
	return out.Bytes()
}

func (s sequence) encode() []byte {
	b := binary.BigEndian.AppendUint32(nil, s.database)
	b = binary.BigEndian.AppendUint32(b, s.container)
	return binary.BigEndian.AppendUint64(b, s.changes)
}

// decodeSequence reads the row. A catalog that was never changed has none.
func decodeSequence(raw []byte, found bool) (sequence, error) {
	switch {
	case !found:
		return sequence{}, nil
	case len(raw) == 16:
		return sequence{binary.BigEndian.Uint32(raw), binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint64(raw[8:])}, nil
	}
	return sequence{}, fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, SequenceKey)
}

// next returns a number for a new resource. Databases and containers are counted; others
// get the count of the change that makes them.
func (s *sequence) next(k Kind) uint64 {
	switch k {
	case Databases:
		s.database++
	case Containers:
		s.container++
	default:
		return s.changes + 1
	}
	return s.given(k)
}

// given returns the highest number that a resource of the kind may have.
func (s *sequence) given(k Kind) uint64 {
	switch k {
	case Databases:
		return uint64(s.database)
	case Containers:
		return uint64(s.container)
	}
	return s.changes
}

// setRows writes the rows of a resource; created says that it is new.
func (r *Resource) setRows(b *kv.Batch, created bool, record any) {
	if created && kinds[r.kind].names != "" {
		name := r.kind.nameKey(r.path, r.ID)
		b.RequireAbsent(name)
		b.Set(name, r.kind.appendNumber(nil, r.path))
	}
	b.Set(r.kind.key(r.path), mustJSON(record))
}

func (r *Resource) deleteRows(b *kv.Batch) {
	if kinds[r.kind].names != "" {
		b.Delete(r.kind.nameKey(r.path, r.ID), 0)
	}
	b.Delete(r.kind.key(r.path), 0)
}

func load(db kv.DB, o Options) (*state, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	s := &state{account: &Resource{}}
	raw, found, err := snap.Get(SequenceKey)
	if err != nil {
		return nil, err
	}
	if s.last, err = decodeSequence(raw, found); err != nil {
		return nil, err
	}
	if s.purge, found, err = snap.Get(PurgeKey); err != nil {
		return nil, err
	} else if !found {
		s.purge = nil
	}
	if raw, found, err = snap.Get(FormatKey); err != nil {
		return nil, err
	} else if found && len(raw) > 0 {
		s.format = int(raw[0])
	}
	if raw, found, err = snap.Get(RegionsKey); err != nil {
		return nil, err
	} else if found {
		if s.regions, err = decodeRegions(raw); err != nil {
			return nil, fmt.Errorf("%w: catalog row %q: %v", kv.ErrCorrupt, RegionsKey, err)
		}
	}
	read := map[string]bool{"": true} // by prefix: the kinds of scripts share one
	for k := range kinds {
		prefix := kinds[k].prefix
		if read[prefix] {
			continue
		}
		read[prefix] = true
		for e, err := range snap.Scan([]byte(prefix), prefixEnd([]byte(prefix)), kv.Forward) {
			if err != nil {
				return nil, err
			}
			if err := s.loadRow(Kind(k), e, o); err != nil {
				return nil, fmt.Errorf("%w: catalog row %q: %v", kv.ErrCorrupt, e.Key, err)
			}
		}
	}
	return s, nil
}

// loadRow loads the row of a resource, whose owner was loaded before.
func (s *state) loadRow(k Kind, e kv.Entry, o Options) error {
	r, err := kinds[k].decode(e.Value)
	if err != nil {
		return err
	}
	n := r.Common()
	n.kind = max(k, n.kind) // for scripts the row has the kind
	p, ok := n.kind.parsePath(e.Key[len(kinds[k].prefix):])
	if !ok {
		return errors.New("its key has another length")
	}
	owner := s.at(kinds[k].owner, p)
	if owner == nil {
		return errors.New("its owner does not exist")
	}
	n.path = p
	below := &owner.Common().below[n.kind]
	if (*below).names()[n.ID] != nil || n.ID == "" {
		return errors.New("its name is empty, or taken")
	}
	if *below == nil {
		*below = (*below).clone()
	}
	show(r, owner, o)
	(*below).put(r)
	return nil
}

// Check compares the rows that hold names with the databases and containers, and the
// numbers in use with those given. It calls report for each problem.
func (c *Catalog) Check(snap kv.Snapshot, report func(problem string)) error {
	s := c.state.Load()
	names := map[string][]byte{} // the expected name rows
	s.account.walk(func(owner *Resource, r Any) {
		n := r.Common()
		if kinds[n.kind].names != "" {
			names[string(n.kind.nameKey(n.path, n.ID))] = n.kind.appendNumber(nil, n.path)
		}
		s.checkNumbers(owner, n, report)
	})
	for k := range kinds {
		prefix := []byte(kinds[k].names)
		if len(prefix) == 0 {
			continue
		}
		for e, err := range snap.Scan(prefix, prefixEnd(prefix), kv.Forward) {
			if err != nil {
				return err
			}
			if want, ok := names[string(e.Key)]; !ok || string(want) != string(e.Value) {
				report(fmt.Sprintf("catalog row %q says %x, want %x", e.Key, e.Value, want))
			}
			delete(names, string(e.Key))
		}
	}
	for key := range names {
		report(fmt.Sprintf("catalog row %q is missing", key))
	}
	return nil
}

// checkNumbers reports numbers that were never given.
func (s *state) checkNumbers(owner, r *Resource, report func(problem string)) {
	name := fmt.Sprintf("%s %q", kinds[r.kind].name, r.ID)
	switch owner.kind {
	case account:
	case Containers:
		name += fmt.Sprintf(" of container %q", owner.Path)
	default:
		name += fmt.Sprintf(" of %s %q", kinds[owner.kind].name, owner.ID)
	}
	given := s.last.given(r.kind)
	switch {
	case r.number() > given && kinds[r.kind].names != "":
		report(fmt.Sprintf("%s has number %d, and the last one given was %d", name, r.number(), given))
	case r.number() > given:
		report(fmt.Sprintf("%s has number %d, and there were %d changes", name, r.number(), given))
	case r.revision > s.last.changes && kinds[r.kind].dated:
		report(fmt.Sprintf("%s has revision %d, and there were %d changes", name, r.revision, s.last.changes))
	}
}
