// SPDX-License-Identifier: MIT

// User-defined functions: resources of a container that hold a name and a text. What
// the text means is not decided here.

package catalog

import (
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

// maxUDFs is how many functions a container may have.
const maxUDFs = 50

const (
	kindUDF = 6
	// udfETags keeps the etags of functions apart from those of containers and
	// offers.
	udfETags = 1 << 62
)

// UDF is a user-defined function as it is at one moment.
type UDF struct {
	ID   string
	Text string // the function, as JavaScript
	RID  string
	ETag string
	Body []byte // the exact response

	// number is given once and for ever: the count of the change that made it.
	number uint64
	// revision grows with every replace.
	revision uint64
	ts       int64 // of the last change
}

type udfRecord struct {
	Version  int    `json:"v"`
	ID       string `json:"id"`
	Text     string `json:"text"`
	Revision uint64 `json:"revision"`
	TS       int64  `json:"ts"`
}

// UDFDefinition is what a client may say about a function.
type UDFDefinition struct {
	ID, Text string
}

// ParseUDF checks the body of a create or a replace.
func ParseUDF(body []byte) (UDFDefinition, error) {
	var d UDFDefinition
	o, err := value.ParseObject(body)
	if err != nil {
		return d, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	missing := ""
	for _, name := range []string{"id", "body"} {
		if raw, ok := o.Lookup(name); absent(raw, ok) {
			missing += name + "; "
		}
	}
	if missing != "" {
		return d, invalid("The input content is invalid because the required properties - '%s' - are missing", missing)
	}
	if d.ID, err = parseName(o); err != nil {
		return d, err
	}
	raw, _ := o.Lookup("body")
	d.Text, err = asString("body", raw)
	return d, err
}

// render makes the rid, the etag and the response out of the rest.
func (u *UDF) render(ct *Container) {
	u.RID = ct.RID.ItemRID(kindUDF<<kindShift | u.number)
	u.ETag = ETag(uint64(u.ts)<<32|u.revision&math.MaxUint32, udfETags|u.number)
	b := value.AppendString([]byte(`{"body":`), u.Text)
	b = value.AppendString(append(b, `,"id":`...), u.ID)
	u.Body = fmt.Appendf(b, `,"_rid":"%s","_self":"dbs/%s/colls/%s/udfs/%s/","_etag":%s,"_ts":%d}`,
		u.RID, ct.RID.Database, ct.RIDText, u.RID, strconv.Quote(u.ETag), u.ts)
}

func (u *UDF) encode() []byte {
	return mustJSON(udfRecord{recordVersion, u.ID, u.Text, u.revision, u.ts})
}

// UDFNamed finds a function by its name alone, which is how queries call it.
func (ct *Container) UDFNamed(name string) (*UDF, bool) {
	u := ct.udfs[name]
	return u, u != nil
}

// UDF finds a function of the container by its name or, if no such name exists, by
// its rid.
func (ct *Container) UDF(nameOrRID string) (*UDF, error) {
	if u := ct.udfs[nameOrRID]; u != nil {
		return u, nil
	}
	for _, u := range ct.udfs {
		if u.RID == nameOrRID {
			return u, nil
		}
	}
	return nil, ErrNotFound
}

// UDFs returns all functions of the container, the oldest first.
func (ct *Container) UDFs() []*UDF {
	return slices.SortedFunc(maps.Values(ct.udfs), func(a, b *UDF) int { return cmp.Compare(a.number, b.number) })
}

// FirstUDFAfter returns the index of the first function that follows the one with
// the given rid, which may be gone. It reports false for text that is no function's
// rid.
func FirstUDFAfter(all []*UDF, rid string) (int, bool) {
	n, ok := parseUDFRID(rid)
	if !ok {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(all, n+1, func(u *UDF, n uint64) int { return cmp.Compare(u.number, n) })
	return i, true
}

// parseUDFRID returns the number of a function.
func parseUDFRID(text string) (uint64, bool) {
	raw, err := ridText.DecodeString(text)
	if err != nil || len(raw) != itemRIDBytes || len(text) != ItemRIDChars {
		return 0, false
	}
	ordinal := binary.LittleEndian.Uint64(raw[containerRIDBytes:])
	return ordinal & MaxOrdinal, ordinal>>kindShift == kindUDF
}

// CreateUDF adds a function to a container.
func (c *Catalog) CreateUDF(ctx context.Context, rid ContainerRID, def UDFDefinition, nowMs int64) (*UDF, error) {
	var made *UDF
	err := c.changeUDFs(ctx, rid, func(ct *Container, number uint64, b *kv.Batch) error {
		switch {
		case ct.udfs[def.ID] != nil:
			return ErrExists
		case len(ct.udfs) >= maxUDFs:
			return ErrTooManyUDFs
		}
		made = &UDF{ID: def.ID, Text: def.Text, number: number, revision: 1, ts: nowMs / 1000}
		ct.setUDF(made, b)
		return nil
	})
	return made, err
}

// ReplaceUDF gives a function a new text. Its name stays.
func (c *Catalog) ReplaceUDF(ctx context.Context, rid ContainerRID, nameOrRID string, def UDFDefinition, ifMatch string, nowMs int64) (*UDF, error) {
	var made *UDF
	err := c.changeUDFs(ctx, rid, func(ct *Container, _ uint64, b *kv.Batch) error {
		was, err := ct.matchingUDF(nameOrRID, ifMatch)
		if err != nil {
			return err
		}
		if def.ID != was.ID {
			return invalid("The 'id' of a user-defined function cannot be changed: it is '%s', not '%s'.", was.ID, value.Clip(def.ID))
		}
		made = &UDF{ID: was.ID, Text: def.Text, number: was.number, revision: was.revision + 1, ts: nowMs / 1000}
		ct.setUDF(made, b)
		return nil
	})
	return made, err
}

// DeleteUDF takes a function away from a container.
func (c *Catalog) DeleteUDF(ctx context.Context, rid ContainerRID, nameOrRID, ifMatch string) error {
	return c.changeUDFs(ctx, rid, func(ct *Container, _ uint64, b *kv.Batch) error {
		u, err := ct.matchingUDF(nameOrRID, ifMatch)
		if err != nil {
			return err
		}
		delete(ct.udfs, u.ID)
		b.Delete(udfKey(ct.RID, u.number), 0)
		return nil
	})
}

// changeUDFs lets change alter the functions of a copy of a container, and shows it
// when what it put into the batch is durable. The number is one that no function
// has had.
func (c *Catalog) changeUDFs(ctx context.Context, rid ContainerRID, change func(ct *Container, number uint64, b *kv.Batch) error) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d := old.byRID[rid.Database]
	if d == nil || d.byRID[rid] == nil {
		return ErrNotFound
	}
	ct := *d.byRID[rid]
	ct.udfs = maps.Clone(ct.udfs)
	if ct.udfs == nil {
		ct.udfs = map[string]*UDF{}
	}
	var b kv.Batch
	if err := change(&ct, old.last.changes+1, &b); err != nil {
		return err
	}
	next := old.clone()
	next.put(d.with(&ct))
	return c.commit(ctx, &b, old, next)
}

// matchingUDF finds a function that must have a given etag.
func (ct *Container) matchingUDF(nameOrRID, ifMatch string) (*UDF, error) {
	u, err := ct.UDF(nameOrRID)
	if err == nil && !Matches(ifMatch, u.ETag) {
		err = ErrPrecondition
	}
	return u, err
}

func (ct *Container) setUDF(u *UDF, b *kv.Batch) {
	u.render(ct)
	ct.udfs[u.ID] = u
	b.Set(udfKey(ct.RID, u.number), u.encode())
}

// loadUDF reads the row of a function, whose container has been read before.
func (s *state) loadUDF(e kv.Entry) error {
	corrupt := fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, e.Key)
	var r udfRecord
	if err := json.Unmarshal(e.Value, &r); err != nil || r.Version != recordVersion || len(e.Key) != udfKeyBytes {
		return corrupt
	}
	rid := ContainerRID{DatabaseRID(binary.BigEndian.Uint32(e.Key[2:])), binary.BigEndian.Uint32(e.Key[6:])}
	d := s.byRID[rid.Database]
	if d == nil || d.byRID[rid] == nil || d.byRID[rid].udfs[r.ID] != nil {
		return corrupt
	}
	ct := d.byRID[rid]
	u := &UDF{ID: r.ID, Text: r.Text, number: binary.BigEndian.Uint64(e.Key[10:]), revision: r.Revision, ts: r.TS}
	u.render(ct)
	if ct.udfs == nil {
		ct.udfs = map[string]*UDF{}
	}
	ct.udfs[u.ID] = u
	return nil
}
