// SPDX-License-Identifier: MIT

// Full-text entries. Of every item, and each path that has a full-text index:
//
//	text  {path} 01                  carries how many words there are
//	word  {path}{word, as a string}  carries how often it is there; one for each word
//	long  {path} 60                  of kind word, in place of all of them
//
// Every item has the first, whatever is at the path, so that these rows are all items
// in the order of their ordinals, and the statistics of scores are exact: what has
// expired is no part of them. A text with too many words has no rows for them but is
// long: whoever looks for a word looks at the long texts as well.

package index

import (
	"encoding/binary"
	"fmt"

	"github.com/mayflydb/mayfly/internal/analysis"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/value"
)

// Kind is a kind of index.
type Kind uint8

// The kinds of index.
const (
	// Scalars has the scalars at a path.
	Scalars Kind = iota
	// Words has the words of the texts at a path.
	Words
	// Texts has all items, with how many words the text at a path has.
	Texts
	// Cells has the cells of the geometries at a path.
	Cells
	// Vectors has all items, with the vector at a path.
	Vectors
)

func (k Kind) entry() entryKind {
	return [...]entryKind{Scalars: entryTerm, Words: entryWord, Texts: entryText, Cells: entryCell, Vectors: entryVector}[k]
}

const (
	// maxItemWords is how many different words of an item have rows. What a text has
	// beyond makes it long.
	maxItemWords = 20_000

	// tagEvery is the value of rows that all items have, and tagLong that of long
	// texts, behind all words.
	tagEvery byte = 0x01
	tagLong  byte = 0x60
)

// EveryItem is the range of an index that has all items.
func EveryItem() ValueRange { return ValueRange{[]byte{tagEvery}, []byte{tagEvery + 1}, true} }

// LongTexts is the range of texts whose words are in no row.
func LongTexts() ValueRange { return ValueRange{[]byte{tagLong}, []byte{tagLong + 1}, true} }

// Word is the range of the texts that have a word.
func Word(word string) ValueRange { return Exactly(value.String(word)) }

// texts adds the entries of the texts of o.
func (w *entryWriter) texts(paths []value.Path, o *value.Object) error {
	room := maxItemWords
	for _, p := range paths {
		if err := w.text(p, o, &room); err != nil {
			return err
		}
	}
	return nil
}

func (w *entryWriter) text(p value.Path, o *value.Object, room *int) error {
	path := appendPathOf(nil, p)
	text, ok := textAt(o, p)
	if !ok {
		return w.end(w.open(entryText, path, tagEvery))
	}
	words := analysis.Words(text)
	counts := make(map[string]int, min(len(words), maxItemWords))
	for _, word := range words {
		if counts[word]++; len(counts) > *room {
			break
		}
	}
	long := len(counts) > *room
	start := w.open(entryText, path, tagEvery)
	end := len(w.buf)
	w.buf = appendTextSize(w.buf, len(words), long)
	if err := w.endCarrying(start, end); err != nil {
		return err
	}
	if long {
		return w.end(w.open(entryWord, path, tagLong))
	}
	*room -= len(counts)
	for word, n := range counts {
		start := w.open(entryWord, path)
		w.buf = appendTermString(w.buf, []byte(word))
		end := len(w.buf)
		w.buf = binary.AppendUvarint(w.buf, uint64(n))
		if err := w.endCarrying(start, end); err != nil {
			return err
		}
	}
	return nil
}

// open begins an entry with a path and what follows that.
func (w *entryWriter) open(kind entryKind, path []byte, more ...byte) (start int) {
	start = w.begin(kind)
	w.buf = append(append(w.buf, path...), more...)
	return start
}

func textAt(o *value.Object, p value.Path) (string, bool) {
	raw, ok := o.At(p)
	if !ok || raw[0] != '"' {
		return "", false
	}
	v, _ := value.FromJSON(raw)
	return v.Text()
}

// appendTextSize appends what the row of a text carries. That of an item without a
// text carries nothing.
func appendTextSize(dst []byte, words int, long bool) []byte {
	size := uint64(words) << 1
	if long {
		size |= 1
	}
	return binary.AppendUvarint(dst, size)
}

// TextSize is what the row of a text says of it.
type TextSize struct {
	Present bool // there is a text
	Words   int
	// Long: its words are in no row.
	Long bool
}

// DecodeTextSize reads what the row of a text carries.
func DecodeTextSize(carried []byte) (TextSize, error) {
	if len(carried) == 0 {
		return TextSize{}, nil
	}
	n, err := decodeCount(carried)
	return TextSize{true, int(n >> 1), n&1 == 1}, err
}

// DecodeOccurrences reads what the row of a word carries: how often it is in the text.
// Of a long text nobody knows, and it is 0.
func DecodeOccurrences(carried []byte) (int, error) {
	if len(carried) == 0 {
		return 0, nil
	}
	n, err := decodeCount(carried)
	return int(n), err
}

func decodeCount(carried []byte) (uint64, error) {
	n, used := binary.Uvarint(carried)
	if used != len(carried) || n > 1<<40 {
		return 0, fmt.Errorf("%w: an index row carries %x", kv.ErrCorrupt, carried)
	}
	return n, nil
}
