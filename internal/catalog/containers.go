// SPDX-License-Identifier: MIT

package catalog

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/internal/value"
)

const maxContainers = 10_000 // in one database

// Container is a container at one moment. Its Epoch grows with every replace. Path and
// the texts of its rid and links are precomputed, since every request needs them.
type Container struct {
	Resource
	Definition
	RID        ContainerRID
	DatabaseID string
	Epoch      uint64
	// IndexGeneration grows with every change of what is indexed: the index rows of each
	// policy have their own keys.
	IndexGeneration uint32
	// Throughput is the container's own; none if it shares its database's.
	Throughput Provision
	// Ranges are in the order of their keys, and Split is the split that is under way.
	Ranges []Range
	Split  *Split
	// nextRange is the id of the next range that a split makes.
	nextRange int
	// Wanted is how many ranges the container's throughput took when it was last replaced,
	// if the container had fewer; otherwise 0.
	Wanted int
	// ItemLinks is the start of its items' _self.
	ItemLinks string
}

type containerRecord struct {
	Version    int             `json:"v"`
	Epoch      uint64          `json:"epoch"`
	Generation uint32          `json:"generation"`
	TS         int64           `json:"ts"`
	Partitions int             `json:"partitions"`
	Throughput Provision       `json:"throughput"`
	Definition json.RawMessage `json:"definition"`
	// The following fields are of a container of which a range was split, or is. The
	// record then has splitVersion.
	Ranges    []rangeRecord `json:"ranges,omitempty"`
	NextRange int           `json:"nextRange,omitempty"`
	Split     *Split        `json:"split,omitempty"`
	Wanted    int           `json:"wanted,omitempty"` // whichever version the record has
}

// parseContainer also checks the throughput and the vector indexes of a new container.
// For a replace, follow checks what may change.
func parseContainer(w *Write) (Any, error) {
	def, err := ParseDefinition(w.Body)
	if err != nil {
		return nil, err
	}
	if err := def.check(); err != nil {
		return nil, err
	}
	ct := &Container{Resource: Resource{ID: def.id}, Definition: *def}
	if w.Mode == Replace {
		return ct, nil
	}
	partitions, err := w.Throughput.partitions()
	if err != nil {
		return nil, err
	}
	ct.IndexGeneration, ct.Throughput, ct.Ranges = 1, provision(w.Throughput, w.NowMs/1000), def.PartitionKey.ranges(partitions)
	ct.nextRange = partitions
	return ct, def.checkVectorIndexes()
}

// follow checks the encryption keys of a new container, and what a replace may change.
func (ct *Container) follow(owner, was Any) error {
	if was == nil {
		return ct.checkEncryption(owner.Common())
	}
	old := was.(*Container)
	if err := ct.replaces(&old.Definition); err != nil {
		return err
	}
	ct.IndexGeneration, ct.Throughput = old.IndexGeneration, old.Throughput
	ct.Ranges, ct.Split, ct.nextRange, ct.Wanted = old.Ranges, old.Split, old.nextRange, old.Wanted
	if !ct.indexesLike(&old.Definition) {
		ct.IndexGeneration++
	}
	return ct.checkVectorIndexes()
}

func decodeContainer(row []byte) (Any, error) {
	var r containerRecord
	if err := json.Unmarshal(row, &r); err != nil {
		return nil, err
	}
	if want := r.version(); r.Version != want {
		return nil, fmt.Errorf("it is of version %d", r.Version)
	}
	if r.Partitions < 1 || r.Partitions > MaxPartitions {
		return nil, fmt.Errorf("it has %d partitions", r.Partitions)
	}
	def, err := ParseDefinition(r.Definition)
	if err != nil {
		return nil, err
	}
	if def.wasLazy {
		// An older version wrote it, with an index that was updated in the background and
		// may lag behind. A new generation rebuilds the index rows.
		r.Epoch, r.Generation = r.Epoch+1, r.Generation+1
	}
	ct := &Container{
		Resource: Resource{ID: def.id, TS: r.TS, revision: r.Epoch}, Definition: *def,
		IndexGeneration: r.Generation, Throughput: r.Throughput, Wanted: r.Wanted,
	}
	return ct, ct.decodeRanges(&r)
}

func (ct *Container) record() any {
	def := append(ct.appendDefinition([]byte("{")), '}')
	r := containerRecord{
		Epoch: ct.Epoch, Generation: ct.IndexGeneration, TS: ct.TS, Partitions: len(ct.Ranges), Throughput: ct.Throughput, Definition: def, Wanted: ct.Wanted,
	}
	ct.encodeRanges(&r)
	r.Version = r.version()
	return r
}

// render also fills in what the definition and the row leave to the account and the
// database.
func (ct *Container) render(owner Any, o Options) {
	ct.complete(o)
	d := owner.(*Database)
	if ct.Throughput.None() && d.Throughput.None() {
		ct.Throughput = provision(defaultThroughput, ct.TS)
	}
	ct.RID = ContainerRID{d.RID, uint32(ct.number())}
	ct.DatabaseID, ct.Epoch, ct.ItemLinks = d.ID, ct.revision, ct.self+"docs/"
	b := ct.appendDefinition([]byte("{"))
	b = fmt.Appendf(b, `,"_rid":"%s","_ts":%d,"_self":"%s","_etag":%s`, ct.RIDText, ct.TS, ct.self, strconv.Quote(ct.ETag))
	ct.Body = append(b, `,"_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"}`...)
}

func (d *Definition) appendDefinition(dst []byte) []byte {
	dst = value.AppendString(append(dst, `"id":`...), d.id)
	for _, m := range d.members {
		dst = append(value.AppendString(append(dst, ','), m.name), ':')
		dst = append(dst, m.raw...)
	}
	return dst
}

// ScriptNamed finds a script by its name alone, as requests name triggers and queries
// functions.
func (ct *Container) ScriptNamed(k Kind, name string) (*Script, bool) {
	s, found := ct.below[k].names()[name].(*Script)
	return s, found
}

// Script finds a script of the container by its name or, if no such name exists, by
// its rid.
func (ct *Container) Script(k Kind, nameOrRID string) (*Script, error) {
	return typed[*Script](ct.find(k, nameOrRID))
}
