// SPDX-License-Identifier: MIT

// Full-text entries. For each path with a full-text index, an item has
//
//	text  {path} 01                  carries the number of words in the text
//	word  {path}{word, as a string}  one for each different word; carries how often it occurs
//	long  {path} 60                  of kind word, in place of the words of a long text
//
// Every item has the first, even without a text at the path. So these rows list all items
// in the order of their ordinals, and the statistics of scores are exact: a query skips
// expired items there too. A text with too many words has no word entries, but a long
// entry: a query for a word also reads all long texts.

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
	// Texts has all items, with the number of words in the text at a path.
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
	// maxItemWords is how many different words of an item have rows. A text with more
	// than are left for it is long.
	maxItemWords = 20_000

	// tagEvery is the value of rows that all items have, and tagLong that of long texts,
	// which sorts after all words.
	tagEvery byte = 0x01
	tagLong  byte = 0x60
)

// EveryItem returns the range of all rows of an index that has all items.
func EveryItem() ValueRange { return ValueRange{[]byte{tagEvery}, []byte{tagEvery + 1}, true} }

// LongTexts returns the range of the long texts, whose words have no rows.
func LongTexts() ValueRange { return ValueRange{[]byte{tagLong}, []byte{tagLong + 1}, true} }

// Word returns the range of the texts that contain a word.
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

// open begins an entry with a path and more bytes.
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

// appendTextSize appends the data that the row of a text carries. The row of an item
// without a text carries none.
func appendTextSize(dst []byte, words int, long bool) []byte {
	size := uint64(words) << 1
	if long {
		size |= 1
	}
	return binary.AppendUvarint(dst, size)
}

// TextSize is the data in the row of a text.
type TextSize struct {
	Present bool // there is a text
	Words   int
	// Long means that its words have no rows.
	Long bool
}

// DecodeTextSize decodes the data that the row of a text carries.
func DecodeTextSize(carried []byte) (TextSize, error) {
	if len(carried) == 0 {
		return TextSize{}, nil
	}
	n, err := decodeCount(carried)
	return TextSize{true, int(n >> 1), n&1 == 1}, err
}

// DecodeOccurrences decodes the data that the row of a word carries: how often the word
// occurs in the text. It is 0, for not known, in the row of a long text.
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
