// SPDX-License-Identifier: MIT

// Continuation tokens: where a page ended, in terms of the data and not of a
// position, so that they survive restarts, inserts, deletes and expiry.

package query

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"slices"

	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
)

// maxTokenBytes bounds the text of a token.
const maxTokenBytes = 16 << 10

// Ways to go on that are no way to find items.
const (
	methodSort  method = "sort"
	methodGroup method = "group"
	methodRows  method = "rows"
)

// token is where a page ended. It means something for one query only.
type token struct {
	Query  uint32 `json:"q"` // a hash of the query
	Method method `json:"m"`
	place
	// Rows is how many rows of the item at the place are done.
	Rows int `json:"r,omitzero"`
	// Skipped and Taken count rows for OFFSET and LIMIT.
	Skipped int64 `json:"s,omitzero"`
	Taken   int64 `json:"t,omitzero"`
	// Group is the key of the last group.
	Group string `json:"g,omitzero"`
}

// place is an item in the order in which items are found.
type place struct {
	Ordinal uint64 `json:"o,omitzero"`
	// Value is its place in an index.
	Value []byte `json:"v,omitzero"`
	// Keys are its values in an order that was sorted: JSON, or nothing for
	// undefined.
	Keys []sortKeyText `json:"k,omitzero"`
}

// sortKeyText is a value, or undefined.
type sortKeyText struct {
	JSON json.RawMessage `json:"j,omitempty"`
}

func (p *place) started() bool { return p.Ordinal != 0 }

func (t *token) started() bool { return t.Method != "" }

// same reports whether a candidate is the item at the place.
func (p *place) same(c *candidate) bool {
	return p.Ordinal != 0 && p.Ordinal == c.Ordinal && bytes.Equal(p.Value, c.value)
}

// before reports whether the place comes before a candidate in the plan's order.
func (p *place) before(c *candidate, pl *plan) bool {
	switch pl.method {
	case indexRange, orderedScan:
		order := bytes.Compare(p.Value, c.value)
		if order == 0 {
			order = compareOrdinals(p.Ordinal, c.Ordinal)
		}
		if pl.order == kv.Reverse {
			order = -order
		}
		return order < 0
	}
	return p.Ordinal < c.Ordinal
}

func compareOrdinals(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// set notes that so many rows of a candidate are done.
func (t *token) set(c *candidate, rows int) {
	t.Ordinal, t.Rows = c.Ordinal, rows
	t.Value = append(t.Value[:0], c.value...)
}

// fingerprint tells queries apart.
func fingerprint(p *sql.Program) uint32 {
	h := fnv.New32a()
	h.Write([]byte(p.Query().String()))
	return h.Sum32()
}

func (t *token) encode(p *sql.Program) string {
	t.Query = fingerprint(p)
	raw, err := json.Marshal(t)
	if err != nil {
		panic("query: a token cannot be encoded: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (t *token) parse(text string, p *sql.Program) error {
	if text == "" {
		return nil
	}
	if len(text) > maxTokenBytes {
		return ErrToken
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return ErrToken
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil || t.Query != fingerprint(p) || t.Method == "" || t.Skipped < 0 || t.Taken < 0 || t.Rows < 0 {
		return ErrToken
	}
	if t.Keys != nil && len(t.Keys) != len(p.OrderBy()) {
		return ErrToken
	}
	return nil
}

// keys returns the values of a place that was sorted.
func (p *place) keys() ([]sql.Value, error) {
	values := make([]sql.Value, 0, len(p.Keys))
	for _, k := range p.Keys {
		if len(k.JSON) == 0 {
			values = append(values, sql.Undefined())
			continue
		}
		if !json.Valid(k.JSON) {
			return nil, ErrToken
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, k.JSON); err != nil {
			return nil, ErrToken
		}
		values = append(values, sql.Raw(compact.Bytes()))
	}
	return values, nil
}

func keyTexts(keys []sql.Value) []sortKeyText {
	texts := make([]sortKeyText, len(keys))
	for i, k := range keys {
		if !k.IsUndefined() {
			texts[i].JSON = slices.Clone(k.AppendJSON(nil))
		}
	}
	return texts
}
