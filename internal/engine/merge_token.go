// SPDX-License-Identifier: MIT

// Where the next page of a merge begins.
//
//  1. Rows in order go on behind the last row, by its keys and its item, as SDKs have it.
//  2. Rows without an order go on in a partition, by its own continuation.
//  3. Groups, rows of DISTINCT without a fitting order, and ranks are made anew, and as many
//     rows are passed over as there were. Should items come or go between two pages, a row
//     may be missed or be repeated there. DISTINCT looks for the last row first.
//
// A continuation that would be too long for a header is of the third kind.

package engine

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// mergedPrefix is what no continuation of QueryItems begins with.
const mergedPrefix = "merged."

// mergedContinuation is where a page begins. The zero value is the beginning.
type mergedContinuation struct {
	Query uint64 `json:"q"`           // its fingerprint
	Rows  int64  `json:"n"`           // how many rows of the result were met
	Mark  string `json:"m,omitempty"` // of the last one, with DISTINCT

	// The last row: its keys as a resume filter has them, its item and that item's
	// partition, and how many rows of the item there were with these keys.
	Keys  []string `json:"k,omitempty"`
	RID   string   `json:"i,omitempty"`
	Range int      `json:"r,omitempty"`
	Same  int64    `json:"s,omitempty"`

	// Begun is where later partitions go on among the rows with these keys: a split has made
	// them of one that had come to that item.
	Begun []mergedBegun `json:"b,omitempty"`

	// Token is where the partitions of a part begin that is made anew, from the range.
	Token string `json:"c,omitempty"`

	// Places is where partitions go on that have begun. Those before are done.
	Places []mergedPlace `json:"p,omitempty"`
}

// mergedBegun is the item that a partition, by its id, goes on at, and how many rows of it there
// were.
type mergedBegun struct {
	Range int    `json:"r"`
	RID   string `json:"i"`
	Same  int64  `json:"s,omitempty"`
}

// mergedPlace is where a partition goes on, by its id.
type mergedPlace struct {
	Range int    `json:"r"`
	Token string `json:"t,omitempty"`
}

// parseMergedContinuation parses the continuation of a merge; merged says whether it is one.
func parseMergedContinuation(prefix, text string) (at mergedContinuation, merged bool, err error) {
	text, merged = strings.CutPrefix(text, prefix)
	if !merged {
		return at, false, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxContinuationBytes || json.Unmarshal(raw, &at) != nil || at.Rows < 0 || at.Same < 0 ||
		slices.ContainsFunc(at.Keys, func(k string) bool { return !json.Valid([]byte(k)) }) {
		return at, true, ErrContinuation
	}
	return at, true, nil
}

// countsOnly reports whether the continuation is of the third kind.
func (at *mergedContinuation) countsOnly() bool {
	return at.Query != 0 && at.Keys == nil && at.Places == nil
}

// continueAt continues the page at a place, if there is room to say which.
func (m *merge) continueAt(at mergedContinuation) error {
	at.Query, at.Rows, at.Mark = m.fingerprint(), m.n, m.mark
	if m.part != nil {
		return m.continuePartAt(at)
	}
	limit := maxContinuationBytes
	if m.r.MaxContinuationKB > 0 {
		limit = min(limit, m.r.MaxContinuationKB<<10)
	}
	for _, next := range []mergedContinuation{at, {Query: at.Query, Rows: at.Rows, Mark: at.Mark}} {
		raw, err := json.Marshal(next)
		if err != nil {
			return err
		}
		if text := mergedPrefix + base64.RawURLEncoding.EncodeToString(raw); len(text) <= limit {
			m.page.Continuation = text
			return nil
		}
	}
	return ErrContinuationLimit
}

// fingerprint tells queries apart; it is not 0.
func (m *merge) fingerprint() uint64 {
	text := m.r.Query.Text
	if m.part != nil {
		text = m.part.text
	}
	h := fnv.New64a()
	h.Write(m.body(text, nil))
	return h.Sum64() | 1
}

// behind returns the place behind a row.
func behind(id int, rid string, keys []datum.Value) mergedContinuation {
	return mergedContinuation{Range: id, RID: rid, Same: 1, Keys: resumeTexts(keys)}
}

// resumeTexts returns keys as a resume filter has them.
func resumeTexts(keys []datum.Value) []string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = string(k.AppendResume(nil))
	}
	return texts
}

// same reports whether two continuations name the same item and keys. That of a part begins
// with an item alone.
func (at *mergedContinuation) same(other *mergedContinuation) bool {
	return at.RID == other.RID && (other.Keys == nil || slices.Equal(at.Keys, other.Keys))
}

// places returns where the partitions at the positions go on.
func (at *mergedContinuation) places(c *catalog.Container, positions []int) (places []queryPlace, err error) {
	tokens, first := map[int]string{}, 0
	for n, p := range at.Places {
		of := descendants(c, p.Range, 0, len(c.Ranges)-1)
		if len(of) == 0 || len(p.Token) > maxContinuationBytes {
			return nil, ErrContinuation
		}
		if n == 0 {
			first = of[0]
		}
		for _, i := range of {
			tokens[i] = p.Token
		}
	}
	for _, i := range positions {
		if i >= first {
			places = append(places, queryPlace{i, tokens[i]})
		}
	}
	return places, nil
}

// named returns places as a continuation has them: those that have begun, and the first.
func (m *merge) named(places []queryPlace) (all []mergedPlace) {
	for n, p := range places {
		if n == 0 || p.token != "" {
			all = append(all, mergedPlace{m.c.Ranges[p.at].ID, p.token})
		}
	}
	return all
}

// resumeFilter is where an ordered query goes on in a partition, as clients send it.
type resumeFilter struct {
	Value   []string
	RID     string
	Exclude bool
}

func (f *resumeFilter) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"value":[`...)
	for i, v := range f.Value {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v...)
	}
	dst = append(dst, ']')
	if f.RID != "" {
		dst = value.AppendString(append(dst, `,"rid":`...), f.RID)
	}
	return append(strconv.AppendBool(append(dst, `,"exclude":`...), f.Exclude), '}')
}
