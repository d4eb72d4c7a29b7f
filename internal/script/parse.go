// SPDX-License-Identifier: MIT

package script

import (
	"math/bits"
	"strings"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

const arrow = "=>"

// firstArrows is how many arrows are read before it is known how long that takes.
const firstArrows = 6

// parse reads a text that comes from a client in about the given time, or refuses it.
//
// The parser reads parameters in brackets twice when it comes to their arrow, those
// of arrow functions among them four times, and so on: a line of text keeps it busy
// for ever, and it cannot be stopped. Which brackets these are only a parser can
// tell, for quotes, comments and regular expressions may hide them. But an arrow at
// most doubles the time that everything before it takes. So the text is read up to
// one arrow, then up to a later one, as many further as the time allows for the worst.
func parse(name, text string, limit time.Duration) (*ast.Program, error) {
	arrows := firstArrows
	for end, began := 0, time.Now(); ; {
		end = afterArrows(text, end, arrows)
		before := time.Since(began)
		tree, err := parseAll(name, text[:end])
		if end == len(text) {
			return tree, err
		}
		spent := time.Since(began)
		took, left := max(spent-before, time.Microsecond), limit-spent
		if left <= 0 {
			return nil, refused("the body is too complex: its arrow functions take too long to read")
		}
		arrows = max(1, bits.Len64(uint64(left/took))-1)
	}
}

// afterArrows returns where the n-th arrow after a place ends; the end of the text
// if there are not as many.
func afterArrows(text string, from, n int) int {
	for range n {
		i := strings.Index(text[from:], arrow)
		if i < 0 {
			return len(text)
		}
		from += i + len(arrow)
	}
	return from
}

// parseAll reads a text. A source map would be read from whatever file it names.
// The parser panics over some texts that end too soon, like function([.
func parseAll(name, text string) (tree *ast.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			tree, err = nil, refused("SyntaxError: the parser gave up: %v", p)
		}
	}()
	return goja.Parse(name, text, parser.WithDisableSourceMaps)
}
