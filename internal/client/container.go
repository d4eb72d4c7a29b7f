// SPDX-License-Identifier: MIT

package client

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// Container is what a tool has to know of a container.
type Container struct {
	Name
	// Definition is the whole definition, as the server sends it.
	Definition json.RawMessage
	// DefaultTTL is nil if nothing expires.
	DefaultTTL *int64
	// ExpireAt says that items may name their deadlines.
	ExpireAt bool
	// AllVersions says that there is a feed of all versions and deletes.
	AllVersions bool
	RID         string
	Ranges      []Range
	paths       []value.Path
	kind        string
	version     int
}

// Range is a physical partition.
type Range struct {
	ID       string
	Min, max []byte // nil for no bound above
	Parents  []string
}

// Container reads what there is to know of a container.
func (c *Client) Container(ctx context.Context, n Name) (*Container, error) {
	raw, err := c.Read(ctx, Name{Database: n.Database}, Containers, n.Container)
	if err != nil {
		return nil, err
	}
	of, err := ParseContainer(n, raw)
	if err != nil {
		return nil, err
	}
	if of.Ranges, err = c.ranges(ctx, n); err != nil {
		return nil, err
	}
	return of, nil
}

// ParseContainer reads a definition.
func ParseContainer(n Name, raw []byte) (*Container, error) {
	var d struct {
		PartitionKey struct {
			Paths   []string
			Kind    string
			Version int
		}
		DefaultTTL       *int64 `json:"defaultTtl"`
		ExpireAtPath     string
		RID              string `json:"_rid"`
		ChangeFeedPolicy struct{ RetentionDuration int64 }
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("the definition of container %s cannot be read: %w", n, err)
	}
	of := &Container{
		Name: n, Definition: raw, DefaultTTL: d.DefaultTTL, ExpireAt: d.ExpireAtPath != "", RID: d.RID,
		AllVersions: d.ChangeFeedPolicy.RetentionDuration > 0,
		kind:        cmp.Or(d.PartitionKey.Kind, "Hash"), version: cmp.Or(d.PartitionKey.Version, 1),
	}
	for _, text := range d.PartitionKey.Paths {
		path, err := value.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("the partition key of container %s cannot be read: %w", n, err)
		}
		of.paths = append(of.paths, path)
	}
	if len(of.paths) == 0 {
		return nil, fmt.Errorf("the container %s has no partition key", n)
	}
	return of, nil
}

func (c *Client) ranges(ctx context.Context, n Name) ([]Range, error) {
	rows, err := c.List(ctx, n, Ranges)
	if err != nil {
		return nil, err
	}
	var ranges []Range
	for _, row := range rows {
		var r struct {
			ID           string
			MinInclusive string
			MaxExclusive string
			Parents      []string
		}
		if err := json.Unmarshal(row, &r); err != nil {
			return nil, fmt.Errorf("a partition key range of %s cannot be read: %w", n, err)
		}
		lower, err1 := hex.DecodeString(r.MinInclusive)
		upper, err2 := hex.DecodeString(r.MaxExclusive)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("a partition key range of %s has bounds that are not hexadecimal: %s", n, row)
		}
		if r.MaxExclusive == "FF" {
			upper = nil
		}
		ranges = append(ranges, Range{r.ID, lower, upper, r.Parents})
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("the server names no partitions of %s", n)
	}
	slices.SortFunc(ranges, func(a, b Range) int { return slices.Compare(a.Min, b.Min) })
	return ranges, nil
}

// KeyOf returns the partition key of an item.
func (of *Container) KeyOf(item *value.Object) (value.PartitionKey, error) {
	key := make(value.PartitionKey, len(of.paths))
	for i, path := range of.paths {
		raw, ok := item.At(path)
		if !ok {
			continue // undefined
		}
		v, scalar := value.FromJSON(raw)
		if !scalar {
			return nil, fmt.Errorf("the partition key at %s is no string, number, boolean or null", path)
		}
		key[i] = v
	}
	return key, nil
}

// NamedKey returns the partition key that an object has, as a change feed names it: by the
// names of its properties, without a path to them.
func (of *Container) NamedKey(named *value.Object) value.PartitionKey {
	key := make(value.PartitionKey, len(of.paths))
	for i, path := range of.paths {
		raw, ok := named.At(path)
		if !ok {
			raw, ok = named.Lookup(path[len(path)-1])
		}
		if !ok {
			raw, ok = named.Lookup(strings.TrimPrefix(path.String(), "/"))
		}
		if v, scalar := value.FromJSON(raw); ok && scalar {
			key[i] = v
		}
	}
	return key
}

// KeyPaths returns the paths of the partition key.
func (of *Container) KeyPaths() []value.Path { return of.paths }

// ParseKey reads a partition key as people write it: plain text for a string, or a JSON
// array of all parts.
func (of *Container) ParseKey(text string) (value.PartitionKey, error) {
	key := value.PartitionKey{value.String(text)}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		var err error
		if key, err = value.ParsePartitionKey(text); err != nil {
			return nil, err
		}
	}
	if len(key) != len(of.paths) {
		if len(of.paths) == 1 {
			return nil, fmt.Errorf("the partition key of %s has 1 part and not %d: give it as text, or as a JSON array of one, as in '[7]'", of.Name, len(key))
		}
		return nil, fmt.Errorf("the partition key of %s has %d parts and not %d: give a JSON array of them, as in '[\"a\",7]'", of.Name, len(of.paths), len(key))
	}
	return key, nil
}

// RangeOf returns the place in Ranges of the physical partition of a key.
func (of *Container) RangeOf(key value.PartitionKey) int {
	var scratch [64]byte
	epk := scratch[:0]
	switch {
	case of.kind == "MultiHash":
		epk = value.AppendEPKMultiHash(epk, key)
	case of.version == 2:
		epk = value.AppendEPKV2(epk, key)
	default:
		epk = value.AppendEPKV1(epk, key)
	}
	at, found := slices.BinarySearchFunc(of.Ranges, epk, func(r Range, epk []byte) int { return slices.Compare(r.Min, epk) })
	if !found {
		at--
	}
	return max(at, 0)
}

// Throughput is what is provisioned for a container or a database; the zero value for nothing.
type Throughput struct {
	Manual    int `json:"throughput,omitempty"`
	Autoscale int `json:"autoscaleMaxThroughput,omitempty"`
}

// Throughputs returns what is provisioned, by the rid of its container or database. A server
// without offers has none.
func (c *Client) Throughputs(ctx context.Context) (map[string]Throughput, error) {
	rows, err := c.List(ctx, Name{}, Offers)
	if err != nil {
		if refused := (*Error)(nil); asError(err, &refused) && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusUnauthorized {
			return nil, nil
		}
		return nil, err
	}
	all := map[string]Throughput{}
	for _, row := range rows {
		var o struct {
			OfferResourceID string `json:"offerResourceId"`
			Content         struct {
				OfferThroughput        int `json:"offerThroughput"`
				OfferAutopilotSettings struct {
					MaxThroughput int `json:"maxThroughput"`
				} `json:"offerAutopilotSettings"`
			} `json:"content"`
		}
		if json.Unmarshal(row, &o) != nil {
			continue
		}
		t := Throughput{Manual: o.Content.OfferThroughput}
		if most := o.Content.OfferAutopilotSettings.MaxThroughput; most > 0 {
			t = Throughput{Autoscale: most}
		}
		all[o.OfferResourceID] = t
	}
	return all, nil
}

// Header returns the headers of a create with this throughput.
func (t Throughput) Header() map[string]string {
	switch {
	case t.Autoscale > 0:
		return map[string]string{headerAutoscale: fmt.Sprintf(`{"maxThroughput":%d}`, t.Autoscale)}
	case t.Manual > 0:
		return map[string]string{headerThroughput: fmt.Sprint(t.Manual)}
	}
	return nil
}
