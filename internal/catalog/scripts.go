// SPDX-License-Identifier: MIT

// Scripts: stored procedures, triggers and user-defined functions, resources of a
// container that hold a name and a text. What the text means is not decided here.

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
	"strings"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// ScriptKind tells what a script is for.
type ScriptKind int

// The kinds of scripts.
const (
	UDF ScriptKind = iota
	StoredProcedure
	Trigger
)

// scriptKinds says how the kinds differ.
var scriptKinds = [...]struct {
	name string // in links
	rid  uint64 // the high nibble of their rids
	max  int    // that a container may have
}{
	UDF:             {"udfs", 6, 50},
	StoredProcedure: {"sprocs", 8, 100},
	Trigger:         {"triggers", 7, 50},
}

// Max is how many scripts of the kind a container may have.
func (k ScriptKind) Max() int { return scriptKinds[k].max }

// scriptETags keeps the etags of scripts apart from those of containers and offers.
const scriptETags = 1 << 62

// ScriptDefinition is what a client may say about a script.
type ScriptDefinition struct {
	Kind ScriptKind `json:"kind,omitempty"`
	ID   string     `json:"id"`
	Text string     `json:"text"` // JavaScript

	// Type and Operation are a trigger's, as the client spells them: Pre or Post;
	// All, Create, Replace, Delete, Update or Upsert.
	Type      string `json:"type,omitempty"`
	Operation string `json:"operation,omitempty"`
}

// Script is a script as it is at one moment.
type Script struct {
	ScriptDefinition
	RID  string
	ETag string
	Body []byte // the exact response

	// number is given once and for ever: the count of the change that made it.
	number uint64
	// revision grows with every replace.
	revision uint64
	ts       int64 // of the last change
}

// scriptName is what a script is found by.
type scriptName struct {
	kind ScriptKind
	id   string
}

func (k ScriptKind) valid() bool { return k >= 0 && int(k) < len(scriptKinds) }

func (d *ScriptDefinition) name() scriptName { return scriptName{d.Kind, d.ID} }

type scriptRecord struct {
	Version int `json:"v"`
	ScriptDefinition
	Revision uint64 `json:"revision"`
	TS       int64  `json:"ts"`
}

// ParseScript checks the body of a create or a replace.
func ParseScript(kind ScriptKind, body []byte) (ScriptDefinition, error) {
	d := ScriptDefinition{Kind: kind}
	o, err := value.ParseObject(body)
	if err != nil {
		return d, invalid("The input content is invalid because it is not a well-formed JSON object: %v.", err)
	}
	required := []string{"id", "body"}
	if kind == Trigger {
		required = append(required, "triggerType", "triggerOperation")
	}
	missing := ""
	for _, name := range required {
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
	if d.Text, err = asString("body", raw); err != nil || kind != Trigger {
		return d, err
	}
	if d.Type, err = oneOf(o, "triggerType", "Pre", "Post"); err != nil {
		return d, err
	}
	d.Operation, err = oneOf(o, "triggerOperation", "All", "Create", "Replace", "Delete", "Update", "Upsert")
	return d, err
}

// oneOf returns a property that has one of several values, whatever their case.
func oneOf(o *value.Object, name string, allowed ...string) (string, error) {
	raw, _ := o.Lookup(name)
	text, err := asString(name, raw)
	if err == nil && !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, text) }) {
		err = invalid("The '%s' of a trigger must be one of %s, not '%s'.", name, strings.Join(allowed, ", "), value.Clip(text))
	}
	return text, err
}

// render makes the rid, the etag and the response out of the rest.
func (u *Script) render(ct *Container) {
	kind := &scriptKinds[u.Kind]
	u.RID = ct.RID.ItemRID(kind.rid<<kindShift | u.number)
	u.ETag = ETag(uint64(u.ts)<<32|u.revision&math.MaxUint32, scriptETags|u.number)
	b := value.AppendString([]byte(`{"body":`), u.Text)
	b = value.AppendString(append(b, `,"id":`...), u.ID)
	if u.Kind == Trigger {
		b = value.AppendString(append(b, `,"triggerType":`...), u.Type)
		b = value.AppendString(append(b, `,"triggerOperation":`...), u.Operation)
	}
	u.Body = fmt.Appendf(b, `,"_rid":"%s","_self":"dbs/%s/colls/%s/%s/%s/","_etag":%s,"_ts":%d}`,
		u.RID, ct.RID.Database, ct.RIDText, kind.name, u.RID, strconv.Quote(u.ETag), u.ts)
}

func (u *Script) encode() []byte {
	return mustJSON(scriptRecord{recordVersion, u.ScriptDefinition, u.revision, u.ts})
}

// ScriptNamed finds a script by its name alone, which is how others call it.
func (ct *Container) ScriptNamed(kind ScriptKind, name string) (*Script, bool) {
	u := ct.scripts[scriptName{kind, name}]
	return u, u != nil
}

// Script finds a script of the container by its name or, if no such name exists, by
// its rid.
func (ct *Container) Script(kind ScriptKind, nameOrRID string) (*Script, error) {
	if u, found := ct.ScriptNamed(kind, nameOrRID); found {
		return u, nil
	}
	for _, u := range ct.scripts {
		if u.Kind == kind && u.RID == nameOrRID {
			return u, nil
		}
	}
	return nil, ErrNotFound
}

// Scripts returns all scripts of a kind, the oldest first.
func (ct *Container) Scripts(kind ScriptKind) []*Script {
	all := slices.SortedFunc(maps.Values(ct.scripts), func(a, b *Script) int { return cmp.Compare(a.number, b.number) })
	return slices.DeleteFunc(all, func(u *Script) bool { return u.Kind != kind })
}

// FirstScriptAfter returns the index of the first script that follows the one with
// the given rid, which may be gone. It reports false for text that is no script's
// rid.
func FirstScriptAfter(all []*Script, rid string) (int, bool) {
	n, ok := parseScriptRID(rid)
	if !ok {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(all, n+1, func(u *Script, n uint64) int { return cmp.Compare(u.number, n) })
	return i, true
}

// parseScriptRID returns the number of a script.
func parseScriptRID(text string) (uint64, bool) {
	raw, err := ridText.DecodeString(text)
	if err != nil || len(raw) != itemRIDBytes || len(text) != ItemRIDChars {
		return 0, false
	}
	ordinal := binary.LittleEndian.Uint64(raw[containerRIDBytes:])
	for _, kind := range scriptKinds {
		if ordinal>>kindShift == kind.rid {
			return ordinal & MaxOrdinal, true
		}
	}
	return 0, false
}

// CreateScript adds a script to a container.
func (c *Catalog) CreateScript(ctx context.Context, rid ContainerRID, def ScriptDefinition, nowMs int64) (*Script, error) {
	var made *Script
	err := c.changeScripts(ctx, rid, func(ct *Container, number uint64, b *kv.Batch) error {
		switch {
		case ct.scripts[def.name()] != nil:
			return ErrExists
		case len(ct.Scripts(def.Kind)) >= def.Kind.Max():
			return ErrTooManyScripts
		}
		made = &Script{ScriptDefinition: def, number: number, revision: 1, ts: nowMs / 1000}
		ct.setScript(made, b)
		return nil
	})
	return made, err
}

// ReplaceScript gives a script a new text. Its name stays.
func (c *Catalog) ReplaceScript(ctx context.Context, rid ContainerRID, nameOrRID string, def ScriptDefinition, ifMatch string, nowMs int64) (*Script, error) {
	var made *Script
	err := c.changeScripts(ctx, rid, func(ct *Container, _ uint64, b *kv.Batch) error {
		was, err := ct.matchingScript(def.Kind, nameOrRID, ifMatch)
		if err != nil {
			return err
		}
		if def.ID != was.ID {
			return invalid("The 'id' of a script cannot be changed: it is '%s', not '%s'.", was.ID, value.Clip(def.ID))
		}
		made = &Script{ScriptDefinition: def, number: was.number, revision: was.revision + 1, ts: nowMs / 1000}
		ct.setScript(made, b)
		return nil
	})
	return made, err
}

// DeleteScript takes a script away from a container.
func (c *Catalog) DeleteScript(ctx context.Context, rid ContainerRID, kind ScriptKind, nameOrRID, ifMatch string) error {
	return c.changeScripts(ctx, rid, func(ct *Container, _ uint64, b *kv.Batch) error {
		u, err := ct.matchingScript(kind, nameOrRID, ifMatch)
		if err != nil {
			return err
		}
		delete(ct.scripts, u.name())
		b.Delete(scriptKey(ct.RID, u.number), 0)
		return nil
	})
}

// changeScripts lets change alter the scripts of a copy of a container, and shows it
// when what it put into the batch is durable. The number is one that no script
// has had.
func (c *Catalog) changeScripts(ctx context.Context, rid ContainerRID, change func(ct *Container, number uint64, b *kv.Batch) error) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	old := c.state.Load()
	d := old.byRID[rid.Database]
	if d == nil || d.byRID[rid] == nil {
		return ErrNotFound
	}
	ct := *d.byRID[rid]
	ct.scripts = maps.Clone(ct.scripts)
	if ct.scripts == nil {
		ct.scripts = map[scriptName]*Script{}
	}
	var b kv.Batch
	if err := change(&ct, old.last.changes+1, &b); err != nil {
		return err
	}
	next := old.clone()
	next.put(d.with(&ct))
	return c.commit(ctx, &b, old, next)
}

// matchingScript finds a script that must have a given etag.
func (ct *Container) matchingScript(kind ScriptKind, nameOrRID, ifMatch string) (*Script, error) {
	u, err := ct.Script(kind, nameOrRID)
	if err == nil && !Matches(ifMatch, u.ETag) {
		err = ErrPrecondition
	}
	return u, err
}

func (ct *Container) setScript(u *Script, b *kv.Batch) {
	u.render(ct)
	ct.scripts[u.name()] = u
	b.Set(scriptKey(ct.RID, u.number), u.encode())
}

// loadScript reads the row of a script, whose container has been read before.
func (s *state) loadScript(e kv.Entry) error {
	corrupt := fmt.Errorf("%w: catalog row %q", kv.ErrCorrupt, e.Key)
	var r scriptRecord
	if err := json.Unmarshal(e.Value, &r); err != nil || r.Version != recordVersion || !r.Kind.valid() || len(e.Key) != scriptKeyBytes {
		return corrupt
	}
	rid := ContainerRID{DatabaseRID(binary.BigEndian.Uint32(e.Key[2:])), binary.BigEndian.Uint32(e.Key[6:])}
	d := s.byRID[rid.Database]
	if d == nil || d.byRID[rid] == nil || d.byRID[rid].scripts[r.name()] != nil {
		return corrupt
	}
	ct := d.byRID[rid]
	u := &Script{ScriptDefinition: r.ScriptDefinition, number: binary.BigEndian.Uint64(e.Key[10:]), revision: r.Revision, ts: r.TS}
	u.render(ct)
	if ct.scripts == nil {
		ct.scripts = map[scriptName]*Script{}
	}
	ct.scripts[u.name()] = u
	return nil
}
