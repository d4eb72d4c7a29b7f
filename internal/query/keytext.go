// SPDX-License-Identifier: MIT

// What a row was ordered by, as a token has it. Tokens travel in headers, so that a
// long value is cut there. The whole of it is taken from the item, if that is still
// as it was; else the page begins with the first row that has the same beginning, so
// that rows may come again but none is lost.

package query

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/value"
)

// maxKeyText is how much of all values together a token holds. It is more than an
// index holds of a string: 256 bytes, which take 344 as keyText has them.
const maxKeyText = 560

// keyOverhead is what a value takes in a token beside its text.
const keyOverhead = 20

// highest is a character after which, in the order of strings, no other comes.
const highest = "\uffff"

// keyText is a value, or undefined.
type keyText struct {
	JSON json.RawMessage `json:"j,omitempty"`
	// Hash says that the value is an array or an object, whose position in an order is that
	// of its hash.
	Hash []uint64 `json:"h,omitempty"`
	// Text is a string that takes less room so than in JSON.
	Text []byte `json:"t,omitempty"`
	// Cut says that the value is a string that begins so.
	Cut bool `json:"c,omitzero"`
}

func keyTexts(keys []datum.Value) []keyText {
	texts := make([]keyText, len(keys))
	sizes := make([]int, len(keys))
	for i, k := range keys {
		sizes[i] = len(k.AppendJSON(nil))
	}
	room := roomFor(sizes)
	for i, k := range keys {
		texts[i] = newKeyText(k, room)
	}
	return texts
}

// roomFor returns how long values may be so that all of them together are not too
// long: short ones leave room to the others.
func roomFor(sizes []int) int {
	slices.Sort(sizes)
	left := maxKeyText - keyOverhead*(len(sizes)-1)
	for i, size := range sizes {
		share := left / (len(sizes) - i)
		if size > share {
			return max(share, keyOverhead)
		}
		left -= size
	}
	return maxKeyText
}

// newKeyText returns a value so that it takes no more room than that.
func newKeyText(v datum.Value, room int) keyText {
	switch v.Kind() {
	case datum.KindUndefined:
		return keyText{}
	case datum.KindArray:
		return keyText{JSON: []byte("[]"), Hash: []uint64{v.Hash().Low, v.Hash().High}}
	case datum.KindObject:
		return keyText{JSON: []byte("{}"), Hash: []uint64{v.Hash().Low, v.Hash().High}}
	}
	k := keyText{JSON: v.AppendJSON(nil)}
	if len(k.JSON) <= room {
		return k
	}
	if f, ok := v.AsFloat(); ok { // with more digits than it has
		return keyText{JSON: datum.Float(f).AppendJSON(nil)}
	}
	s, _ := v.AsString()
	k = keyText{Text: []byte(beginningOf(s, base64.StdEncoding.DecodedLen(room)))}
	k.Cut = len(k.Text) < len(s)
	return k
}

// beginningOf returns so many bytes of a string, or a few less so that no character
// is cut in two.
func beginningOf(s string, end int) string {
	if len(s) <= end {
		return s
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// value reads a key. Foreign bytes get as far as this.
func (k *keyText) value() (datum.Value, error) {
	if len(k.Text) > 0 {
		if len(k.JSON)+len(k.Hash) > 0 || !utf8.Valid(k.Text) {
			return datum.Value{}, ErrToken
		}
		return datum.Str(string(k.Text)), nil
	}
	if k.Cut || len(k.JSON) == 0 && len(k.Hash) > 0 {
		return datum.Value{}, ErrToken
	}
	if len(k.JSON) == 0 {
		return datum.Undefined(), nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, k.JSON); err != nil || !utf8.Valid(k.JSON) {
		return datum.Value{}, ErrToken
	}
	v := datum.Raw(compact.Bytes())
	switch {
	case v.Kind() < datum.KindArray && len(k.Hash) == 0:
		return v, nil
	case v.Kind() >= datum.KindArray && len(k.Hash) == 2:
		return datum.Hashed(v.Kind(), value.Hash{Low: k.Hash[0], High: k.Hash[1]}), nil
	}
	return datum.Value{}, ErrToken
}

// readKeys finds out what the keys of the token stand for.
func (x *execution) readKeys() error {
	cut := false
	for i := range x.at.Keys {
		v, err := x.at.Keys[i].value()
		if err != nil {
			return err
		}
		x.at.keys = append(x.at.keys, v)
		cut = cut || x.at.Keys[i].Cut
	}
	if !cut {
		return nil
	}
	return x.completeKeys()
}

// completeKeys takes keys that were cut from the item.
func (x *execution) completeKeys() error {
	var whole []datum.Value
	f, live, err := x.r.Get(x.at.Ordinal)
	if err != nil {
		return err
	}
	if live {
		if whole, err = x.keysOf(f.Body); err != nil {
			return err
		}
	}
	for i := range x.at.Keys {
		switch {
		case !x.at.Keys[i].Cut:
		case i < len(whole) && beginsLike(whole[i], x.at.keys[i]):
			x.at.keys[i] = whole[i].Detach()
		case x.q.Program.OrderBy()[i].Desc:
			s, _ := x.at.keys[i].AsString()
			x.at.keys[i] = datum.Str(s + highest)
		}
	}
	return nil
}

// keysOf returns what the rows of an item are ordered by. Of all of them it is the same.
// A page may have ended at an item that has none.
func (x *execution) keysOf(item []byte) (keys []datum.Value, err error) {
	if x.q.Program.Plain() {
		if _, err := x.runner.Filter(datum.Raw(item)); err != nil {
			return nil, err
		}
		return x.runner.AppendSortKeys(nil)
	}
	var failed error
	err = x.runner.Rows(datum.Raw(item), func() bool {
		keys, failed = x.runner.AppendSortKeys(nil)
		return false
	})
	return keys, errors.Join(err, failed)
}

func beginsLike(v, beginning datum.Value) bool {
	s, isString := v.AsString()
	prefix, _ := beginning.AsString()
	return isString && strings.HasPrefix(s, prefix)
}
