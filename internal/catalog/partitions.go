// SPDX-License-Identifier: MIT

// Partition keys and the physical partitions that their hashes are spread over.

package catalog

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

const (
	kindHash      = "Hash"
	kindMultiHash = "MultiHash"
	// maxKeyPaths is the greatest depth of a hierarchical partition key.
	maxKeyPaths = 3

	// One physical partition carries up to singlePartitionRU. A container that is made for
	// more has as many as carry it or, of manual throughput, one for every 6,000 RU/s.
	singlePartitionRU = 10_000
	manualPartitionRU = 6_000
	// MaxPartitions bounds how many a container may have. Each is a goroutine and a range
	// of keys, and more of them would add no speed here.
	MaxPartitions = 256
)

// PartitionKeyDefinition says which properties of an item make its partition key
// and how they are hashed.
type PartitionKeyDefinition struct {
	Paths   []value.Path
	Kind    string // Hash or MultiHash
	Version int    // 1 or 2
	// SystemKey marks a container whose partition key was added by the service. Its items
	// may have no such property.
	SystemKey bool
}

// Hierarchical reports whether the key has levels that are hashed separately.
func (d *PartitionKeyDefinition) Hierarchical() bool { return d.Kind == kindMultiHash }

// AppendEPK appends the effective partition key: the hash that determines the physical
// partition of a key, equal to the one that SDKs compute.
func (d *PartitionKeyDefinition) AppendEPK(dst []byte, k value.PartitionKey) []byte {
	switch {
	case d.Hierarchical():
		return value.AppendEPKMultiHash(dst, k)
	case d.Version == 2:
		return value.AppendEPKV2(dst, k)
	default:
		return value.AppendEPKV1(dst, k)
	}
}

// equal reports whether two definitions mean the same.
func (d *PartitionKeyDefinition) equal(o *PartitionKeyDefinition) bool {
	return d.Kind == o.Kind && d.Version == o.Version && d.SystemKey == o.SystemKey &&
		slices.EqualFunc(d.Paths, o.Paths, func(a, b value.Path) bool { return slices.Equal(a, b) })
}

func parsePartitionKey(raw []byte) (PartitionKeyDefinition, error) {
	d := PartitionKeyDefinition{Kind: kindHash, Version: 1}
	o, err := asObject("partitionKey", raw)
	if err != nil {
		return d, err
	}
	if raw, ok := o.Lookup("kind"); !absent(raw, ok) {
		if d.Kind, err = asString("partitionKey.kind", raw); err != nil {
			return d, err
		}
		if d.Kind != kindHash && d.Kind != kindMultiHash {
			return d, invalid("The partition key kind '%s' is invalid. Ensure to provide 'Hash' or 'MultiHash'.", d.Kind)
		}
	}
	if raw, ok := o.Lookup("version"); !absent(raw, ok) {
		if d.Version, err = parseKeyVersion(raw); err != nil {
			return d, err
		}
		if d.Hierarchical() && d.Version != 2 {
			return d, invalid("A partition key of kind 'MultiHash' must have version 2.")
		}
	} else if d.Hierarchical() {
		d.Version = 2
	}
	if raw, ok := o.Lookup("systemKey"); !absent(raw, ok) {
		if d.SystemKey, err = asBool("partitionKey.systemKey", raw); err != nil {
			return d, err
		}
	}
	raw, _ = o.Lookup("paths")
	d.Paths, err = parseKeyPaths(raw, d.Hierarchical())
	return d, err
}

// parseKeyVersion parses the version of a partition key. The Java SDK sends its name.
func parseKeyVersion(raw []byte) (int, error) {
	name, _ := asString("", raw)
	switch strings.ToUpper(name) {
	case "V1":
		return 1, nil
	case "V2":
		return 2, nil
	}
	return asInt("partitionKey.version", raw, 1, 2)
}

func parseKeyPaths(raw []byte, hierarchical bool) ([]value.Path, error) {
	texts, err := asArray("partitionKey.paths", raw)
	if err != nil {
		return nil, err
	}
	most := 1
	if hierarchical {
		most = maxKeyPaths
	}
	switch {
	case len(texts) == 0:
		return nil, invalid("The partition key definition must have at least one path, for example \"/id\".")
	case len(texts) > most:
		return nil, invalid("Too many partition key paths (%d) specified. A maximum of %d is allowed.", len(texts), most)
	}
	var paths []value.Path
	for _, raw := range texts {
		text, err := asString("partitionKey.paths[]", raw)
		if err != nil {
			return nil, err
		}
		p, err := value.ParsePath(text)
		switch {
		case errors.Is(err, value.ErrPathSlash):
			return nil, invalid("The partition key component definition path '%s' could not be accepted, failed near position '0'. Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character.", text)
		case err != nil:
			return nil, invalid("The partition key component definition path '%s' could not be accepted. Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character.", text)
		}
		if slices.ContainsFunc(paths, func(q value.Path) bool { return slices.Equal(p, q) }) {
			return nil, invalid("The partition key path '%s' is given twice.", text)
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// carriers returns how many physical partitions it takes to carry this throughput.
func (t Throughput) carriers() int {
	return max(1, (t.PerSecond()+singlePartitionRU-1)/singlePartitionRU)
}

// partitions returns with how many physical partitions a container is made for this
// throughput.
func (t Throughput) partitions() (int, error) {
	n := t.carriers()
	if t.Manual > singlePartitionRU {
		n = (t.Manual + manualPartitionRU - 1) / manualPartitionRU
	}
	if n > MaxPartitions {
		return 0, invalid("The throughput asks for %d physical partitions, more than the %d that a container can have.", n, MaxPartitions)
	}
	return n, nil
}

// Range is a physical partition: its id, and its range of effective partition keys, from Min,
// inclusive, to Max, exclusive. A nil Max is the end of the key space.
type Range struct {
	// ID names the partition for ever. A container's first ranges count from 0, and later
	// ones get ids that no range had before.
	ID       int
	Min, Max []byte
	// Parents are the ids of the ranges that were split to make this one, the first one
	// first; nil for a range that the container began with.
	Parents []int
}

// First returns the id of the range that this one descends from, of those that the container
// began with.
func (r *Range) First() int {
	if len(r.Parents) > 0 {
		return r.Parents[0]
	}
	return r.ID
}

// DescendsFrom reports whether the range is the one with the id, or was made from it.
func (r *Range) DescendsFrom(id int) bool { return r.ID == id || slices.Contains(r.Parents, id) }

// RangeID returns a range's id as clients see it.
func RangeID(id int) string { return strconv.Itoa(id) }

// ranges cuts the key space where the service cuts it.
func (d *PartitionKeyDefinition) ranges(n int) []Range {
	rs := make([]Range, n)
	for i, cut := range d.boundaries(n) {
		rs[i].Max, rs[i+1].Min = cut, cut
	}
	for i := range rs {
		rs[i].ID = i
	}
	return rs
}

// boundaries returns the cuts between n equal parts of the key space.
func (d *PartitionKeyDefinition) boundaries(n int) [][]byte {
	if d.Version == 1 {
		return value.BoundariesV1(n)
	}
	return value.BoundariesV2(n)
}

// Partition returns the id of the range that epk falls into.
func (c *Container) Partition(epk []byte) int { return c.Ranges[c.Position(epk)].ID }

// Position returns the position in Ranges of the range that epk falls into.
func (c *Container) Position(epk []byte) int {
	i, found := slices.BinarySearchFunc(c.Ranges, epk, func(r Range, epk []byte) int {
		return bytes.Compare(r.Min, epk)
	})
	if found {
		return i
	}
	return i - 1
}

// RangeOf returns the range with an id that it has.
func (c *Container) RangeOf(id int) *Range { return &c.Ranges[c.PositionOf(id)] }

// PositionOf returns the position in Ranges of the range with an id, -1 if there is none.
func (c *Container) PositionOf(id int) int {
	if id >= 0 && id < len(c.Ranges) && c.Ranges[id].ID == id { // always, without splits
		return id
	}
	return slices.IndexFunc(c.Ranges, func(r Range) bool { return r.ID == id })
}
