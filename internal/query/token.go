// SPDX-License-Identifier: MIT

// Continuation tokens: where a page ended, in terms of the data and not of a
// position, so that they survive restarts, inserts, deletes and expiry.

package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
)

// maxTokenBytes bounds the text of a token.
const maxTokenBytes = 16 << 10

// Ways to go on that are no way to find items.
const (
	methodSort  method = "sort"
	methodGroup method = "group"
	methodRows  method = "rows"
)

// token is where a page ended. It means something for one query only. Without a
// method it is the beginning of a partition.
type token struct {
	Query  uint64 `json:"q"` // its fingerprint
	Method method `json:"m,omitzero"`
	place
	// Rows is how many rows of the item at the place are done.
	Rows int `json:"r,omitzero"`
	// Skipped and Taken count rows for OFFSET and LIMIT.
	Skipped int64 `json:"s,omitzero"`
	Taken   int64 `json:"t,omitzero"`
	// Index tells in which composite index the place is.
	Index uint32 `json:"x,omitzero"`
	// Group is the place of the last group.
	Group []byte `json:"g,omitzero"`
	// Met are the marks of the last rows that DISTINCT let pass.
	Met []byte `json:"d,omitzero"`
	// Done are the marks of the last rows that are done, for methodRows.
	Done []byte `json:"w,omitzero"`
}

// place is an item in the order in which items are found.
type place struct {
	Ordinal uint64 `json:"o,omitzero"`
	// Value is its place in an index.
	Value index.Value `json:"v,omitzero"`
	// Keys are its values in the order that was asked for.
	Keys []keyText `json:"k,omitzero"`

	keys  []datum.Value // what Keys stand for
	named bool          // by a client, perhaps without an item
}

func (p *place) started() bool { return p.Ordinal != 0 || p.named }

func (t *token) started() bool { return t.Method != "" }

// same reports whether a candidate is the item at the place.
func (p *place) same(c *candidate) bool { return p.started() && p.Ordinal == c.Ordinal }

// before reports whether the place comes before a candidate in the plan's order.
func (p *place) before(c *candidate, pl *plan) bool {
	switch pl.method {
	case compositeRange, compositeOrdered:
		return p.beforeComposed(c, pl)
	case indexRange, orderedScan:
		order := p.Value.Compare(c.value)
		if len(p.keys) > 0 && p.Value.Alike(c.value) {
			order = datum.Compare(p.keys[0], c.key)
		}
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
	t.Value.Set(c.value)
}

// keyed reports whether a place is that of an index in order, which is told by the keys.
func (m method) keyed() bool { return m == orderedScan || m == compositeOrdered }

// fingerprint tells queries apart, with what they were asked about: a token of
// another would skip rows or repeat them.
func (q *Request) fingerprint() uint64 {
	h := fnv.New64a()
	part := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	text := *q.Program.Query()
	if len(text.OrderBy) > 0 {
		// A place in an order means the same under any filter, and clients count on
		// it: to go on, they add one that begins at the last value, and send the
		// token along.
		text.Where = nil
	}
	part([]byte(text.String()))
	params := q.Program.Params()
	for _, name := range slices.Sorted(maps.Keys(params)) {
		part([]byte(name))
		part(params[name].AppendCanonical(nil))
	}
	s := &q.Scope
	part([]byte(s.Name))
	if s.Logical != nil {
		// A key and the range that holds it alone are one, as clients ask for either.
		part(s.Logical.EPK)
	}
	part(s.MinEPK)
	part(s.MaxEPK)
	return h.Sum64()
}

// Begin returns a token that means the beginning of the request's partition.
func Begin(q Request) string {
	var t token
	return t.encode(&q)
}

func (t *token) encode(q *Request) string {
	t.Query = q.fingerprint()
	if t.Method.keyed() {
		t.Value = index.Value{} // its key says the same
	}
	raw, err := json.Marshal(t)
	if err != nil {
		panic("query: a token cannot be encoded: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (t *token) parse(q *Request) error {
	text, p := q.Token, q.Program
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
	err = d.Decode(t)
	if _, rest := d.Token(); !errors.Is(rest, io.EOF) {
		return ErrToken
	}
	if err != nil || t.Query != q.fingerprint() || t.Skipped < 0 || t.Taken < 0 || t.Rows < 0 {
		return ErrToken
	}
	if begin := (token{Query: t.Query}); reflect.DeepEqual(*t, begin) {
		return nil
	}
	if t.Method == "" || t.Method == compositeRange && (t.Value.IsZero() || t.Ordinal == 0) || !t.Method.goesOn(p) {
		return ErrToken
	}
	if len(t.Met)%markBytes != 0 || len(t.Met) > maxMet*markBytes || len(t.Met) > 0 && !p.Distinct() {
		return ErrToken
	}
	if len(t.Done)%markBytes != 0 || len(t.Done) > maxDone*markBytes || len(t.Done) > 0 && t.Method != methodRows {
		return ErrToken
	}
	keyed := t.Method == methodSort || t.Method.keyed()
	if t.Skipped > p.Slice().Offset || t.Taken > p.Slice().Limit || keyed && t.Ordinal == 0 {
		return ErrToken
	}
	if keyed != (len(t.Keys) > 0) || keyed && len(t.Keys) != len(p.OrderBy()) {
		return ErrToken
	}
	return nil
}

// maxGroupText is how much of a group's key a token holds.
const maxGroupText = 256

// groupPlace returns where a group comes among others: by its key, as far as a token
// has room for it.
func groupPlace(key string) string {
	if len(key) <= maxGroupText {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return beginningOf(key, maxGroupText) + string(sum[:])
}

// goesOn reports whether pages of a query may go on in this way.
func (m method) goesOn(p *sql.Program) bool {
	switch {
	case !p.OverItems():
		return false // there is one row
	case p.Input() != nil || p.Ranking() != nil || p.OrdersGroups():
		return m == methodRows
	case p.Grouped():
		return m == methodGroup
	}
	return m != methodRows && m != methodGroup
}
