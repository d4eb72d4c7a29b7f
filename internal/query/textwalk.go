// SPDX-License-Identifier: MIT

// Questions about texts, answered from the rows of the index of words.

package query

import (
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/internal/index"
	"github.com/mayflydb/mayfly/internal/kv"
	"github.com/mayflydb/mayfly/internal/sql"
	"github.com/mayflydb/mayfly/internal/sql/datum"
	"github.com/mayflydb/mayfly/internal/sql/function"
	"github.com/mayflydb/mayfly/internal/store"
)

// textItem is an item with the answers to questions about its texts; nil where there
// is no text.
type textItem struct {
	ordinal uint64
	counts  []*function.TextCount
}

// each answers the questions for all items in scope, in the order of their ordinals.
func (p *textPath) each(x *execution, yield func(textItem) (more bool, err error)) error {
	w := newTextWalk(x, p)
	defer w.stop()
	for hit, err := range x.r.Index(store.IndexScan{Kind: index.Texts, Path: p.path, Values: index.EveryItem(), Order: p.direction}) {
		if err != nil {
			return err
		}
		x.page.Work.IndexRows++
		if !x.inScope(hit.EPK) {
			continue
		}
		if err := w.sizes[0].take(&hit); err != nil {
			return err
		}
		found, err := w.item(hit.Ordinal)
		if err != nil {
			return err
		}
		if more, err := yield(found); err != nil || !more {
			return err
		}
	}
	return nil
}

// textWalk goes along the rows of all paths and words that questions are about, side
// by side.
type textWalk struct {
	x     *execution
	p     *textPath
	sizes []*textStream   // by question; the first is where the walk is
	words [][]*textStream // by question, those of its phrases after each other
	all   []*textStream
	found textItem
}

// textStream is the rows of one path's texts, or of one word.
type textStream struct {
	kind    index.Kind
	path    index.Path
	word    string
	next    func() (store.Hit, error, bool)
	stop    func()
	ended   bool
	ordinal uint64
	size    index.TextSize
	n       int
}

func newTextWalk(x *execution, p *textPath) *textWalk {
	w := &textWalk{x: x, p: p}
	for _, q := range p.questions {
		w.sizes = append(w.sizes, w.stream(q.Path, index.Texts, ""))
		var words []*textStream
		for _, p := range q.Phrases {
			for _, word := range p.Words {
				words = append(words, w.stream(q.Path, index.Words, word))
			}
		}
		w.words = append(w.words, words)
	}
	w.found.counts = make([]*function.TextCount, len(p.questions))
	return w
}

// stream returns the rows of a path and word, which several questions may share.
func (w *textWalk) stream(path sql.Path, kind index.Kind, word string) *textStream {
	at := steps(path, false)
	for _, s := range w.all {
		if s.kind == kind && slices.Equal(s.path, at) && s.word == word {
			return s
		}
	}
	scan := store.IndexScan{Kind: kind, Path: at, Values: index.EveryItem(), Order: w.p.direction}
	if kind == index.Words {
		scan.Values = index.Word(word)
	}
	s := &textStream{kind: kind, path: at, word: word}
	s.next, s.stop = iter.Pull2(w.x.r.Index(scan))
	w.all = append(w.all, s)
	return s
}

func (w *textWalk) stop() {
	for _, s := range w.all {
		s.stop()
	}
}

// to goes forward to an ordinal, and reports whether there is a row of it.
func (s *textStream) to(ordinal uint64, w *textWalk) (bool, error) {
	for !s.ended && (s.ordinal == 0 || w.before(s.ordinal, ordinal)) {
		hit, err, ok := s.next()
		if !ok || err != nil {
			s.ended = true
			return false, err
		}
		w.x.page.Work.IndexRows++
		if err := s.take(&hit); err != nil {
			return false, err
		}
	}
	return s.ordinal == ordinal, nil
}

// take goes to a row.
func (s *textStream) take(hit *store.Hit) (err error) {
	if s.ordinal = hit.Ordinal; s.kind == index.Texts {
		s.size, err = index.DecodeTextSize(hit.Carried)
	} else {
		s.n, err = index.DecodeOccurrences(hit.Carried)
	}
	if err != nil {
		err = hit.Corrupt(err)
	}
	return err
}

func (w *textWalk) before(a, b uint64) bool {
	if w.p.direction == kv.Reverse {
		return a > b
	}
	return a < b
}

// item answers all questions for the item with an ordinal. What it returns is valid
// until the next.
func (w *textWalk) item(ordinal uint64) (textItem, error) {
	w.found.ordinal = ordinal
	for i := range w.p.questions {
		count, known, err := w.count(i, ordinal)
		if err == nil && !known {
			count, err = w.read(i, ordinal)
		}
		if err != nil {
			return textItem{}, err
		}
		w.found.counts[i] = count
	}
	return w.found, nil
}

// count answers a question from the rows, unless the text has to be read.
func (w *textWalk) count(i int, ordinal uint64) (_ *function.TextCount, known bool, err error) {
	found, err := w.sizes[i].to(ordinal, w)
	if err != nil || !found {
		return nil, false, err
	}
	size := w.sizes[i].size
	if !size.Present || size.Long {
		return nil, !size.Present, nil
	}
	q := &w.p.questions[i]
	count := &function.TextCount{Words: size.Words, Occurrences: make([]int, len(q.Phrases))}
	words := w.words[i]
	for j, p := range q.Phrases {
		here, n := 0, 0
		for _, s := range words[:len(p.Words)] {
			found, err := s.to(ordinal, w)
			if err != nil {
				return nil, false, err
			}
			if found {
				here, n = here+1, s.n
			}
		}
		words = words[len(p.Words):]
		switch {
		case len(p.Words) == 0 || here < len(p.Words):
		case p.Single():
			count.Occurrences[j] = n
		default:
			return nil, false, nil // whether they follow each other, the text tells
		}
	}
	return count, true, nil
}

// read answers a question from the item.
func (w *textWalk) read(i int, ordinal uint64) (*function.TextCount, error) {
	f, live, err := w.x.r.Get(ordinal)
	if err != nil || !live {
		return nil, err
	}
	w.x.read(&f)
	count, ok := w.p.questions[i].CountPhrases(datum.Raw(f.Body))
	if !ok {
		return nil, nil
	}
	return &count, nil
}

// answer gives a group the statistics of texts.
func (p *textPath) answer(x *execution, g *sql.Group) error {
	list, _ := x.q.Program.TextAggregates()
	answers := make([]int64, len(list))
	err := p.each(x, func(item textItem) (bool, error) {
		i := 0
		for n, a := range list {
			if len(a.Path) == 0 {
				answers[n]++
				continue
			}
			count := item.counts[i]
			i++
			switch {
			case count == nil:
			case a.Phrase == nil:
				answers[n] += int64(count.Words)
			case count.Occurrences[0] > 0:
				answers[n]++
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	x.runner.SetTextAggregates(g, answers)
	return nil
}

// find finds the items that a page of rows in the order of their scores may show. Those
// that it cannot are not read.
func (p *textPath) find(x *execution, yield visitor) error {
	score := x.q.Program.OrderBy()[0].Text
	return p.each(x, func(item textItem) (bool, error) {
		row := sortedRow{keys: []datum.Value{{}}, ordinal: item.ordinal, n: 1}
		if c := item.counts[0]; c != nil {
			row.keys[0] = score.Of(c.Words, c.Occurrences)
		}
		if !x.sorting.wants(&row) {
			return true, nil
		}
		return x.visit(item.ordinal, index.Value{}, yield)
	})
}
