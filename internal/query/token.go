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
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/syntax"
)

// maxTokenBytes bounds the text of a token.
const maxTokenBytes = 16 << 10

// token is where a page ended. It means something for one query only. Without a path it
// is the beginning of a partition.
type token struct {
	Query uint64 `json:"q"` // its fingerprint
	// Filter is the fingerprint of the filter, if there is an order.
	Filter uint32 `json:"f,omitzero"`
	// Path names the access path by which the page found its items.
	Path string `json:"p,omitzero"`
	position
	// Rows is how many rows of the item at the position are done.
	Rows int `json:"r,omitzero"`
	// Skipped and Taken count rows for OFFSET and LIMIT.
	Skipped int64 `json:"s,omitzero"`
	Taken   int64 `json:"t,omitzero"`
	// Group is the mark of the last group.
	Group []byte `json:"g,omitzero"`
	// Met are the marks of the last rows that DISTINCT let pass.
	Met []byte `json:"d,omitzero"`
	// Done are the marks of the last rows that are done, of rows without a position.
	Done []byte `json:"w,omitzero"`

	refiltered bool // the query has another filter than the token's
}

// position is an item in the order in which items are found or rows are sorted: an
// ordinal in the order of creation, with a value in that of an index, with keys in that of
// ORDER BY.
type position struct {
	Ordinal uint64      `json:"o,omitzero"`
	Value   index.Value `json:"v,omitzero"`
	Keys    []keyText   `json:"k,omitzero"`

	keys  []datum.Value // what Keys stand for
	named bool          // by a client, perhaps without an item
}

func (p *position) started() bool { return p.Ordinal != 0 || p.named }

func (t *token) started() bool { return t.Path != "" }

// same reports whether a candidate is the item at the position.
func (p *position) same(c *candidate) bool { return p.started() && p.Ordinal == c.Ordinal }

// set notes that so many rows of a candidate are done.
func (t *token) set(c *candidate, rows int) {
	t.Ordinal, t.Rows = c.Ordinal, rows
	t.Value.Set(c.value)
}

// fingerprint tells queries apart, with what they were asked about: a token of
// another would skip rows or repeat them. A position in an order means the same under any
// filter, and clients count on it: to go on, they add one that begins at the last value,
// and send the token along. So the filter has a fingerprint of its own there.
func (q *Request) fingerprint() (query uint64, filter uint32) {
	h := fnv.New64a()
	part := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	text := *q.Program.Query()
	if len(text.OrderBy) > 0 && text.Where != nil {
		part([]byte(syntax.Print(text.Where)))
		filter = uint32(h.Sum64())
		h.Reset()
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
	return h.Sum64(), filter
}

// Begin returns a token that means the beginning of the request's partition.
func Begin(q Request) string {
	var t token
	return t.encode(&q)
}

func (t *token) encode(q *Request) string {
	if t.Query == 0 {
		t.Query, t.Filter = q.fingerprint()
	}
	if len(t.Keys) > 0 {
		t.Value = index.Value{} // they say the same
	}
	raw, err := json.Marshal(t)
	if err != nil {
		panic("query: a token cannot be encoded: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Done is what came before the page of a token: how many of the rows of TOP or LIMIT, and how
// many of the item with the ordinal.
type Done struct {
	Taken   int64
	Ordinal uint64
	Rows    int
}

// DoneBefore returns what came before the page of a token. Before a text that is no token nothing
// did: that is refused when a page is asked for with it.
func DoneBefore(text string) Done {
	var t token
	if raw, err := base64.RawURLEncoding.DecodeString(text); err != nil || len(text) > maxTokenBytes || json.Unmarshal(raw, &t) != nil {
		return Done{}
	}
	return Done{max(t.Taken, 0), t.Ordinal, max(t.Rows, 0)}
}

func (t *token) parse(q *Request) error {
	if q.Token == "" {
		return nil
	}
	if len(q.Token) > maxTokenBytes {
		return ErrToken
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Token)
	if err != nil {
		return ErrToken
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(t)
	if _, rest := d.Token(); err != nil || !errors.Is(rest, io.EOF) {
		return ErrToken
	}
	query, filter := q.fingerprint()
	begin := token{Query: query, Filter: filter}
	t.refiltered = t.Filter != filter
	t.Filter = filter
	switch {
	case t.Query != query:
		return ErrToken
	case !t.started() && t.refiltered, !t.started() && !reflect.DeepEqual(*t, begin):
		return ErrToken
	case !t.started() || t.fits(q.Program):
		return nil
	}
	return ErrToken
}

// fits reports whether a page of a query can have ended so.
func (t *token) fits(p *sql.Program) bool {
	s := p.Slice()
	if t.Skipped < 0 || t.Skipped > s.Offset || t.Taken < 0 || t.Taken > s.Limit || t.Rows < 0 {
		return false
	}
	if len(t.Met)%markBytes != 0 || len(t.Met) > maxMet*markBytes || len(t.Met) > 0 && !p.Distinct() {
		return false
	}
	if len(t.Done)%markBytes != 0 || len(t.Done) > maxDone*markBytes {
		return false
	}
	positioned := t.Ordinal != 0 && len(t.Keys) == len(p.OrderBy()) && (len(t.Keys) == 0 || t.Value.IsZero())
	none := t.Ordinal == 0 && len(t.Keys) == 0 && t.Value.IsZero() && t.Rows == 0
	switch {
	case !p.OverItems():
		return false // there is one row
	case p.Input() != nil || p.Ranking() != nil || p.OrdersGroups():
		return none && len(t.Done) > 0 && len(t.Group) == 0
	case p.Grouped():
		return none && len(t.Done) == 0
	}
	return positioned && len(t.Done) == 0 && len(t.Group) == 0
}

// maxGroupText is how much of a group's key a token holds.
const maxGroupText = 256

// groupMark returns where a group comes among others: by its key, as far as a token
// has room for it.
func groupMark(key string) string {
	if len(key) <= maxGroupText {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return beginningOf(key, maxGroupText) + string(sum[:])
}
