// SPDX-License-Identifier: MIT

// The regions of the account. A server that has its data for itself is told them when it
// starts. Those of a cluster are a row that its nodes share, so that all nodes tell clients
// the same, from one moment on.

package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/kv"
)

// MaxRegions bounds the regions of a cluster. The service has about as many in all.
const MaxRegions = 128

// Regions are the regions of an account, as clients are told.
type Regions struct {
	// List has them in the order in which clients fall back on them. Writes go to the first.
	List []Region `json:"regions"`
	// MultiWrite lets clients write in every region.
	MultiWrite bool `json:"multiWrite,omitempty"`
}

// Region is a region of an account.
type Region struct {
	Name string `json:"name"`
	// Endpoint is where clients reach it, as in https://west.example/; empty if it has no
	// endpoint of its own. Host is that of the endpoint, with its port.
	Endpoint string `json:"endpoint,omitempty"`
	Host     string `json:"-"`
}

// ParseRegion reads a region of the form NAME or NAME=URL.
func ParseRegion(text string) (Region, error) {
	name, endpoint, given := strings.Cut(text, "=")
	r := Region{Name: strings.TrimSpace(name)}
	if r.Name == "" {
		return r, fmt.Errorf("the region %q has no name", text)
	}
	if !given {
		return r, nil
	}
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return r, fmt.Errorf("the endpoint of the region %q is not of the form http://host:port/", text)
	}
	r.Endpoint, r.Host = u.Scheme+"://"+u.Host+"/", u.Host
	return r, nil
}

// Mixed reports whether some regions have an endpoint and others have none. Clients would
// take the endpoint that they happen to know for that of the others.
func (r *Regions) Mixed() bool {
	n := 0
	for _, l := range r.List {
		if l.Endpoint != "" {
			n++
		}
	}
	return n > 0 && n < len(r.List)
}

// Writable returns the regions that take writes.
func (r *Regions) Writable() []Region {
	if r.MultiWrite {
		return r.List
	}
	return r.List[:min(1, len(r.List))]
}

// WritableAt reports whether a client that used this host may write. It may not if the host
// is the endpoint of a region that takes no writes.
func (r *Regions) WritableAt(host string) bool {
	for _, l := range r.List {
		if l.Host != "" && strings.EqualFold(l.Host, host) {
			return slices.ContainsFunc(r.Writable(), func(w Region) bool { return w.Name == l.Name })
		}
	}
	return true
}

// Find returns the index of the region with a name, -1 if there is none. As in the service,
// letters may be of either case, and spaces may be left out.
func (r *Regions) Find(name string) int {
	plain := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "")) }
	return slices.IndexFunc(r.List, func(l Region) bool { return plain(l.Name) == plain(name) })
}

func (r *Regions) clone() Regions { return Regions{slices.Clone(r.List), r.MultiWrite} }

// Entered returns the regions with one that a node comes from. A new one is the last in the
// order. What the node says counts from now on.
func (r *Regions) Entered(region Region, multiWrite bool) (Regions, error) {
	next := r.clone()
	next.MultiWrite = multiWrite
	i := next.Find(region.Name)
	switch {
	case i >= 0:
		next.List[i] = region
	case len(next.List) == MaxRegions:
		return next, fmt.Errorf("there are %d regions already: take one away with mayfly cluster forget", MaxRegions)
	default:
		next.List = append(next.List, region)
	}
	if len(next.List) > 1 {
		for _, l := range next.List {
			if l.Endpoint == "" {
				return next, fmt.Errorf("the region %q has no endpoint, which each needs if there are several: start its nodes with --region '%s=URL'", l.Name, l.Name)
			}
			if l.Name != region.Name && strings.EqualFold(l.Host, region.Host) {
				return next, fmt.Errorf("the regions %q and %q have the same endpoint: %s", l.Name, region.Name, l.Endpoint)
			}
		}
	}
	return next, nil
}

// Promoted returns the regions with the named one first.
func (r *Regions) Promoted(name string) (Regions, error) {
	i := r.Find(name)
	if i < 0 {
		return Regions{}, r.unknown(name)
	}
	next := r.clone()
	first := next.List[i]
	next.List = slices.Insert(slices.Delete(next.List, i, i+1), 0, first)
	return next, nil
}

// Without returns the regions without the named one, which must not be the first.
func (r *Regions) Without(name string) (Regions, error) {
	i := r.Find(name)
	switch {
	case i < 0:
		return Regions{}, r.unknown(name)
	case i == 0:
		return Regions{}, invalid("The region '%s' takes writes. Make another the first with mayfly cluster failover.", r.List[0].Name)
	}
	next := r.clone()
	next.List = slices.Delete(next.List, i, i+1)
	return next, nil
}

func (r *Regions) unknown(name string) error {
	var names []string
	for _, l := range r.List {
		names = append(names, l.Name)
	}
	return invalid("There is no region '%s'. There are: %s.", name, strings.Join(names, ", "))
}

// Regions returns the regions of a cluster; nil if no node has entered any.
func (c *Catalog) Regions() *Regions { return c.state.Load().regions }

// ChangeRegions changes the regions of a cluster in one commit. change gets the present ones,
// and may be called again if another process changes the catalog meanwhile. Nothing is
// written if it changes nothing.
func (c *Catalog) ChangeRegions(ctx context.Context, change func(was *Regions) (Regions, error)) error {
	return c.change(func() error {
		old := c.state.Load()
		was := old.regions
		if was == nil {
			was = &Regions{}
		}
		regions, err := change(was)
		if err != nil || regions.MultiWrite == was.MultiWrite && slices.Equal(regions.List, was.List) {
			return err
		}
		next, b := *old, kv.Batch{}
		next.regions = &regions
		b.Set(RegionsKey, mustJSON(regionsRecord{recordVersion, regions}))
		return c.commit(ctx, &b, old, &next)
	})
}

type regionsRecord struct {
	Version int `json:"v"`
	Regions
}

func decodeRegions(raw []byte) (*Regions, error) {
	var record regionsRecord
	if err := json.Unmarshal(raw, &record); err != nil {
		return nil, err
	}
	if record.Version != recordVersion || len(record.List) == 0 {
		return nil, fmt.Errorf("version %d with %d regions", record.Version, len(record.List))
	}
	for i, r := range record.List {
		text := r.Name
		if r.Endpoint != "" {
			text += "=" + r.Endpoint
		}
		parsed, err := ParseRegion(text)
		if err != nil {
			return nil, err
		}
		record.List[i] = parsed
	}
	return &record.Regions, nil
}
