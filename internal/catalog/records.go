// SPDX-License-Identifier: MIT

// How databases and containers are kept, and how they are shown.

package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// recordVersion is that of the records below.
const recordVersion = 1

type databaseRecord struct {
	Version    int       `json:"v"`
	ID         string    `json:"id"`
	TS         int64     `json:"ts"`
	Throughput Provision `json:"throughput,omitzero"`
}

type containerRecord struct {
	Version    int             `json:"v"`
	Epoch      uint64          `json:"epoch"`
	Generation uint32          `json:"generation"`
	TS         int64           `json:"ts"`
	Partitions int             `json:"partitions"`
	Throughput Provision       `json:"throughput"`
	Definition json.RawMessage `json:"definition"`
}

func (s sequence) encode() []byte {
	b := binary.BigEndian.AppendUint32(nil, s.database)
	b = binary.BigEndian.AppendUint32(b, s.container)
	return binary.BigEndian.AppendUint64(b, s.changes)
}

func (d *Database) encode() []byte {
	return mustJSON(databaseRecord{recordVersion, d.ID, d.TS, d.Throughput})
}

func (ct *Container) encode() []byte {
	def := append(ct.appendDefinition([]byte("{")), '}')
	return mustJSON(containerRecord{recordVersion, ct.Epoch, ct.IndexGeneration, ct.TS, len(ct.Ranges), ct.Throughput, def})
}

// mustJSON encodes one of our own records, which cannot fail. A definition within
// it keeps its spelling: it is echoed, and compared with later ones.
func mustJSON(v any) []byte {
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(raw.Bytes(), []byte("\n"))
}

func (ct *Container) deleteRows(b *kv.Batch) {
	b.Delete(containerNameKey(ct.RID.Database, ct.ID), 0)
	b.Delete(containerKey(ct.RID), 0)
	for _, u := range ct.scripts {
		b.Delete(scriptKey(ct.RID, u.number), 0)
	}
}

func load(db kv.DB, o Options) (*state, error) {
	snap, err := db.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	s := &state{byName: map[string]*Database{}, byRID: map[DatabaseRID]*Database{}}
	raw, found, err := snap.Get(sequenceKey)
	if err != nil {
		return nil, err
	}
	if found {
		if len(raw) != 16 {
			return nil, fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, sequenceKey)
		}
		s.last = sequence{binary.BigEndian.Uint32(raw), binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint64(raw[8:])}
	}
	for e, err := range snap.Scan(databasePrefix, prefixEnd(databasePrefix), kv.Forward) {
		if err != nil {
			return nil, err
		}
		d, err := decodeDatabase(e)
		if err != nil {
			return nil, err
		}
		s.put(d)
	}
	for e, err := range snap.Scan(containerPrefix, prefixEnd(containerPrefix), kv.Forward) {
		if err != nil {
			return nil, err
		}
		if err := s.loadContainer(e, o); err != nil {
			return nil, err
		}
	}
	for e, err := range snap.Scan(scriptPrefix, prefixEnd(scriptPrefix), kv.Forward) {
		if err != nil {
			return nil, err
		}
		if err := s.loadScript(e); err != nil {
			return nil, err
		}
	}
	return s, s.loadResources(snap)
}

func decodeDatabase(e kv.Entry) (*Database, error) {
	var r databaseRecord
	if err := json.Unmarshal(e.Value, &r); err != nil || r.Version != recordVersion || len(e.Key) != 6 {
		return nil, fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, e.Key)
	}
	d := newDatabase(r.ID, DatabaseRID(binary.BigEndian.Uint32(e.Key[2:])), r.TS)
	d.Throughput = r.Throughput
	return d, nil
}

func (s *state) loadContainer(e kv.Entry, o Options) error {
	corrupt := fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, e.Key)
	var r containerRecord
	if err := json.Unmarshal(e.Value, &r); err != nil || r.Version != recordVersion || len(e.Key) != 10 ||
		r.Partitions < 1 || r.Partitions > MaxPartitions {
		return corrupt
	}
	def, err := ParseDefinition(r.Definition)
	if err != nil {
		return fmt.Errorf("%w: %v", corrupt, err)
	}
	def.complete(o)
	rid := ContainerRID{DatabaseRID(binary.BigEndian.Uint32(e.Key[2:])), binary.BigEndian.Uint32(e.Key[6:])}
	d := s.byRID[rid.Database]
	if d == nil {
		return corrupt
	}
	ct := &Container{
		Definition: *def, RID: rid, DatabaseID: d.ID, Epoch: r.Epoch, IndexGeneration: r.Generation,
		Throughput: r.Throughput, Ranges: def.PartitionKey.ranges(r.Partitions), TS: r.TS,
	}
	if def.wasLazy {
		// It was written by a version whose index followed items in the background, and may
		// lag behind. It is another policy, whose rows are made anew.
		ct.Epoch, ct.IndexGeneration = ct.Epoch+1, ct.IndexGeneration+1
	}
	if ct.Throughput.None() && d.Throughput.None() {
		ct.Throughput = provisionContainer(d, Throughput{}, ct.TS)
	}
	ct.render()
	d.byName[ct.ID], d.byRID[ct.RID] = ct, ct
	return nil
}

func newDatabase(name string, rid DatabaseRID, ts int64) *Database {
	d := &Database{
		ID: name, RID: rid, TS: ts,
		ETag:   ETag(uint64(ts)<<32, uint64(rid)),
		byName: map[string]*Container{},
		byRID:  map[ContainerRID]*Container{},
	}
	b := value.AppendString([]byte(`{"id":`), name)
	b = fmt.Appendf(b, `,"_rid":"%s","_self":"dbs/%s/","_etag":%s,"_colls":"colls/","_users":"users/","_ts":%d}`,
		rid, rid, strconv.Quote(d.ETag), ts)
	d.Body = b
	return d
}

// render makes the etag, the response and the texts out of the rest.
func (ct *Container) render() {
	ct.RIDText = ct.RID.String()
	ct.Path = "dbs/" + ct.DatabaseID + "/colls/" + ct.ID
	ct.ItemLinks = "dbs/" + ct.RID.Database.String() + "/colls/" + ct.RIDText + "/docs/"
	ct.ETag = ETag(uint64(ct.TS)<<32|ct.Epoch&0xFFFFFFFF, uint64(ct.RID.Container))
	b := ct.appendDefinition([]byte("{"))
	b = fmt.Appendf(b, `,"_rid":"%s","_ts":%d,"_self":"dbs/%s/colls/%s/","_etag":%s`,
		ct.RID, ct.TS, ct.RID.Database, ct.RID, strconv.Quote(ct.ETag))
	ct.Body = append(b, `,"_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"}`...)
}

func (d *Definition) appendDefinition(dst []byte) []byte {
	dst = value.AppendString(append(dst, `"id":`...), d.ID)
	for _, m := range d.members {
		dst = append(value.AppendString(append(dst, ','), m.name), ':')
		dst = append(dst, m.raw...)
	}
	return dst
}
