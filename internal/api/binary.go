// SPDX-License-Identifier: MIT

// Bodies and answers in Cosmos's binary JSON. Everything behind this file is text.

package api

import (
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/binaryjson"
	"github.com/mayflydb/mayfly/internal/memory"
)

// BodyCopies is how many copies of a body are in memory while it is served: as received,
// as parsed, and as the row that is written.
const BodyCopies = 3

// textOf returns the text of a document in binary JSON. A short document can have a long
// text, so memory for the longest is taken before a text is made that is not short.
func (c *Call) textOf(document []byte, limit int) ([]byte, error) {
	text, err := binaryjson.Decode(document, min(limit, memory.FreeBytes))
	if !errors.Is(err, binaryjson.ErrTooLarge) || limit <= memory.FreeBytes {
		return text, err
	}
	most := int64(BodyCopies * limit)
	if err := c.Share.Take(c.Context, most); err != nil {
		return nil, err
	}
	text, err = binaryjson.Decode(document, limit)
	c.Share.Give(most - int64(BodyCopies*len(text)))
	return text, err
}

// toBinary changes the body of an answer to binary JSON, for a client that accepts nothing
// else.
func (a *Answer) toBinary() (err error) {
	if a.Parts[0] == nil || a.Binary {
		return nil
	}
	document, err := binaryjson.Encode(slices.Concat(a.Parts[:]...))
	if err != nil {
		return err
	}
	a.Parts, a.Binary = [3][]byte{document}, true
	return nil
}
