// SPDX-License-Identifier: MIT

// What a row was ordered by, as a token has it. Tokens travel in headers, so that a
// long value is cut there. The whole of it is taken from the item, if that is still
// as it was; else the page begins with the first row that has the same beginning, so
// that rows may come again but none is lost.

package query

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/store"
)

// maxKeyText is how much of a value a token holds. It is more than an index holds of
// a string.
const maxKeyText = 560

// highest is a character after which, in the order of strings, no other comes.
const highest = "\uffff"

// keyText is a value, or undefined.
type keyText struct {
	JSON json.RawMessage `json:"j,omitempty"`
	// Cut says that the value is a string that begins so, or an array or an object.
	Cut bool `json:"c,omitzero"`
}

func keyTexts(keys []sql.Value) []keyText {
	texts := make([]keyText, len(keys))
	for i, k := range keys {
		if k.IsUndefined() {
			continue
		}
		texts[i].JSON = k.AppendJSON(nil)
		if texts[i].Cut = len(texts[i].JSON) > maxKeyText; texts[i].Cut {
			texts[i].JSON = beginningOf(k).AppendJSON(nil)
		}
	}
	return texts
}

// beginningOf returns the beginning of a value that is too long for a token.
func beginningOf(v sql.Value) sql.Value {
	switch v.Kind() {
	case sql.KindArray:
		return sql.Raw([]byte("[]"))
	case sql.KindObject:
		return sql.Raw([]byte("{}"))
	}
	s, _ := v.AsString()
	end := min(len(s), maxKeyText)
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return sql.Str(s[:end])
}

// value reads a key. Foreign bytes get as far as this.
func (k *keyText) value() (sql.Value, error) {
	if len(k.JSON) == 0 {
		return sql.Undefined(), nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, k.JSON); err != nil || !utf8.Valid(k.JSON) {
		return sql.Value{}, ErrToken
	}
	return sql.Raw(compact.Bytes()), nil
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
	if cut {
		if err := x.completeKeys(); err != nil {
			return err
		}
	}
	if x.at.Method == compositeOrdered {
		x.compositePlace()
		return nil
	}
	if x.at.Method != orderedScan {
		return nil
	}
	v, ok := scalarOf(x.at.keys[0])
	if !ok {
		return ErrToken
	}
	x.at.Value = store.Exactly(v).PlaceOf(x.at.Ordinal).Value
	return nil
}

// completeKeys takes keys that were cut from the item.
func (x *execution) completeKeys() error {
	var whole []sql.Value
	f, live, err := x.r.Get(x.at.Ordinal)
	if err != nil {
		return err
	}
	if live {
		err := x.runner.Rows(sql.Raw(f.Body), func() bool {
			whole, err = x.runner.AppendSortKeys(whole[:0])
			return false // of all rows the keys are those of the item
		})
		if err != nil {
			return err
		}
	}
	for i := range x.at.Keys {
		switch {
		case !x.at.Keys[i].Cut:
		case i < len(whole) && beginsLike(whole[i], x.at.keys[i]):
			x.at.keys[i] = whole[i].Detach()
		case x.q.Program.OrderBy()[i].Desc && x.at.keys[i].Kind() == sql.KindString:
			s, _ := x.at.keys[i].AsString()
			x.at.keys[i] = sql.Str(s + highest)
		}
	}
	return nil
}

func beginsLike(v, beginning sql.Value) bool {
	s, isString := v.AsString()
	prefix, _ := beginning.AsString()
	return v.Kind() == beginning.Kind() && (!isString || strings.HasPrefix(s, prefix))
}

// noteKeys puts what the present row is ordered by into the token.
func (x *execution) noteKeys() error {
	keys, err := x.runner.AppendSortKeys(nil)
	x.at.Keys = keyTexts(keys)
	return err
}
